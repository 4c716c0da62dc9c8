# SPDX-License-Identifier: BSD-3-Clause
"""What the commands say of a robot's loops: how far open they are, how the robot can move."""

from __future__ import annotations

import warnings

import numpy as np

from phistar.arrays import Array
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
