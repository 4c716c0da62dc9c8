# SPDX-License-Identifier: BSD-3-Clause
"""What the commands say of a robot's loops: how far open they are, how the robot can move."""

from __future__ import annotations

import warnings

import numpy as np

from phistar.arrays import Array
from phistar.cli.terminal import clean
from phistar.errors import LoopOpenError, PhistarError, PhistarWarning, Problem, pluralize
from phistar.model.components import Loop
from phistar.model.kinematic_loops import active_loops, loop_label
from phistar.model.model import Model
from phistar.robot import Robot

MAX_COORDINATES = 300
"""Robots with more have dense matrices that take long; their mobility is not computed unasked."""
CLOSED = 1e-9
"""Loops that are open by less [m, rad] are called closed."""


def gap_of(robot: Robot, loop: str, q: Array) -> float:
    """How far open a loop is at a configuration (nq,) [m, rad]: the length of its error."""
    return float(np.linalg.norm(robot.loop_error(q)[loop]))


def worst_gap(robot: Robot, q: Array) -> tuple[str, float]:
    """The active loop that is furthest open at a configuration, and how far."""
    gaps = {loop.name: gap_of(robot, loop.name, q) for loop in active_loops(robot.loops)}
    worst = max(gaps, key=lambda name: gaps[name])
    return worst, gaps[worst]


def onto_loops(robot: Robot, q: Array, v: Array) -> tuple[Array, Array]:
    """The start (nq,), (nv,) on the robot's loops, with a line on what that took.

    Raises:
        LoopOpenError: They cannot be closed from there.
    """
    begin = onto_configuration(robot, q, "start")
    rates = robot.project(begin, v)[1]
    if (change := float(np.abs(rates - v).max(initial=0.0))) > CLOSED:
        print(f"  velocities of the start projected onto the loops, changed by up to {change:.3g}")
    return begin, rates


def onto_configuration(robot: Robot, q: Array, what: str) -> Array:
    """A configuration (nq,) assembled onto the robot's loops, with a line on what that took."""
    loop, gap = worst_gap(robot, q)
    closed = robot.assemble(q)
    name = clean(robot.name)
    if gap > CLOSED:
        print(f"{name}: assembled the {what}, where loop '{clean(loop)}' was open by {gap:.3g}")
    else:
        print(f"{name}: the {what} is on its {pluralize(len(active_loops(robot.loops)), 'loop')}")
    return closed


def mobility_text(robot: Robot, limit: int | None = MAX_COORDINATES) -> str:
    """A sentence on how a robot with loops can move, at a configuration assembled from home."""
    if limit is not None and robot.nv > limit:
        return (
            f"Mobility is not computed for more than {limit} coordinates (--all does it; in "
            "Python robot.mobility(q))."
        )
    name, gap = worst_gap(robot, robot.home)
    try:
        q = robot.assemble(robot.home)
    except LoopOpenError as error:
        return f"It cannot be assembled from its home pose: {_open_text(error)}."
    where = "" if gap <= CLOSED else f" Home is open (loop '{name}' by {gap:.3g}): assembled first."
    return f"{robot.mobility(q)}{where}"


def _open_text(error: LoopOpenError) -> str:
    return f"{error.loop} stays open by {error.gap:.3g} {error.unit}"


def loop_notes(model: Model) -> list[Problem]:
    """Notes of ``phistar check`` on the loops of a model, a warning if they cannot be closed."""
    if not model.loops:
        return []
    off = [
        Problem("note", "loop-off", loop.where, f"{loop_label(loop)} is switched off.", "")
        for loop in model.loops
        if not loop.active
    ]
    active = active_loops(model.loops)
    if not active:
        return off
    robot = Robot(model)
    drawn = robot.home
    notes = [_loop_note(robot, loop, drawn) for loop in active]
    if robot.nv > MAX_COORDINATES:
        return off + notes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhistarWarning)
        return off + notes + _mobility_notes(robot, drawn)


def _loop_note(robot: Robot, loop: Loop, q: Array) -> Problem:
    rows = pluralize(len(robot.loop_error(q)[loop.name]), "row")
    gap = gap_of(robot, loop.name, q)
    if gap <= CLOSED:
        what = f"{loop_label(loop)}, {rows}, is closed in the drawn pose."
        return Problem("note", "loop", loop.where, what, "")
    what = f"{loop_label(loop)}, {rows}, is open by {gap:.3g} in the drawn pose."
    cure = "Fine if it is meant so: robot.assemble(robot.home) closes it."
    return Problem("note", "loop-open", loop.where, what, cure)


def _mobility_notes(robot: Robot, drawn: Array) -> list[Problem]:
    try:
        found = robot.mobility(robot.assemble(drawn))
    except LoopOpenError as error:
        what = f"no configuration was found on the loops: {_open_text(error)}."
        cure = "Check the poses at both ends of the loop and the lengths of the links."
        return [Problem("warning", "loop-not-closed", "", what, cure)]
    except PhistarError as error:
        return [Problem("note", "loop-unknown", "", f"mobility is not known: {error}.", "")]
    notes = [Problem("note", "mobility", "", f"{found}", "")]
    if found.redundant:
        what = f"{pluralize(found.redundant, 'row')} of the loops follow from others."
        cure = "Motion is unique; constrained_dynamics tells which wrenches are, too."
        notes.append(Problem("note", "loop-redundant", "", what, cure))
    return notes
