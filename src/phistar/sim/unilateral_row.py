# SPDX-License-Identifier: BSD-3-Clause
"""A step with joints that rub and stop and points that touch, as a row of traced quantities."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from phistar import dynamics
from phistar.arrays import Array
from phistar.backends import OPTIONAL_INPUTS
from phistar.backends.policy import NUMPY, TracedWork, UnilateralWork, decide
from phistar.compile import Traced, add_traced, joint_map
from phistar.errors import ArgumentError
from phistar.loops.assembly import usual_configurations, usual_rank
from phistar.loops.traced_rows import ANYWHERE, live_rows, loop_bias, loop_tracer, loop_work
from phistar.model.joint_physics import PASSIVE_PARTS, passive_numbers
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.model.singular import singular_hinges
from phistar.scalar.trace.unilateral_rows import (
    Ball,
    ContactRow,
    GivenPlane,
    HalfSpace,
    JointRow,
    StepRows,
)
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.scalar.program import Unrolled


def joint_rows(
    model: Model, parts: Collection[str] = PASSIVE_PARTS, *, implicit: bool = True
) -> tuple[JointRow, ...]:
    """Stops, dry friction, damping and springs of the joints that have some.

    Args:
        model: The robot.
        parts: Of the joint physics.
        implicit: Whether springs and dampers push as at the end of the step; else they are given.
    """
    numbers = passive_numbers(model)
    limits = "limits" in parts
    springs, damping = implicit and "springs" in parts, implicit and "damping" in parts
    found = []
    for i in range(model.nv):
        place = int(numbers.coordinates[i])
        row = JointRow(
            i,
            place,
            float(numbers.lower[i]) if limits else -math.inf,
            float(numbers.upper[i]) if limits else math.inf,
            friction=float(numbers.friction[i]) if "friction" in parts else 0.0,
            damping=float(numbers.damping[i]) if damping else 0.0,
            stiffness=float(numbers.stiffness[i]) if springs else 0.0,
            rest=float(numbers.spring_reference[place]) if springs and place >= 0 else 0.0,
        )
        if row.is_bounded or row.damping or row.stiffness:
            found.append(row)
    return tuple(found)


def _rows(model: Model, rows: StepRows | None) -> StepRows:
    return StepRows(joint_rows(model)) if rows is None else rows


def impulse_count(rows: StepRows) -> int:
    """Entries of the impulses; a robot without rows has one that is never used."""
    return max(rows.count, 1)


def _trace(model: Model, rows: StepRows | None) -> Unrolled:
    from phistar.scalar.trace.unilateral_step import TreeBias, unilateral_step

    bias = loop_bias(model.turning_rotors).schedule.classical
    loops = loop_tracer(model, ANYWHERE) if active_loops(model.loops) else None
    found = _rows(model, rows)
    least = least_mobilities(model, found)
    return unilateral_step(model, found, TreeBias(bias, frozenset(OPTIONAL_INPUTS)), loops, least)


def _shapes(model: Model, rows: StepRows | None) -> Mapping[str, tuple[int, ...]]:
    count = impulse_count(_rows(model, rows))
    return {"q_next": (model.nq,), "v_next": (model.nv,), "impulses_next": (count,)}


def _work(model: Model, rows: StepRows | None) -> UnilateralWork | None:
    """None: joints without coordinates or inertia of their own, turning rotors, loops whose rows
    depend on each other."""
    joints = joint_map(model)
    own = joints.one_to_one and not (joints.scales != 1.0).any()
    if not model.bodies or not own or model.turning_rotors or singular_hinges(model):
        return None
    count = impulse_count(_rows(model, rows))
    if not active_loops(model.loops):
        return UnilateralWork(count)
    closed = loop_work(model)
    if closed is None or usual_rank(model) < len(live_rows(model)):
        return None
    return UnilateralWork(count + closed.rows)


def least_mobilities(model: Model, rows: StepRows) -> tuple[float, ...]:
    """Of joints that rub or stop, below which loops hold them; () for trees, whose joints move.

    Powers of two, so that code in which they stand does not depend on how libraries round.
    """
    if not active_loops(model.loops):
        return ()
    mass = dynamics.mass_matrix(model, usual_configurations(model))
    heaviest = np.diagonal(mass, axis1=-2, axis2=-1).max(axis=0)
    least = np.ldexp(POLICY.smallest_joint_mobility, -np.frexp(heaviest)[1])
    return tuple(float(least[row.v]) for row in rows.bounded)


def refuse_many(model: Model, pairs: int, joints: int) -> None:
    """Raise where the program of a step would be too long.

    Args:
        model: The robot.
        pairs: That may touch.
        joints: That rub or stop.
    """
    count, bodies = max(joints + 3 * pairs, 1), len(model.bodies)
    if decide(UnilateralWork(count), bodies).shape == NUMPY:
        raise ArgumentError(
            f"robot '{model.name}' with {pairs} pairs that may touch has {count} rows: rows times "
            f"rows and links are {count * (count + bodies)}, at most "
            f"{POLICY.max_unilateral_pairs} make a program. Give fewer shapes or surfaces, or name "
            "points= of frames instead of shapes."
        )


def _touching(model: Model, rows: StepRows | None) -> StepRows:
    """By default the origin of the last link on the ground."""
    if rows is not None:
        return rows
    return StepRows((), (ContactRow(Ball(len(model.bodies) - 1, (0.0, 0.0, 0.0)), HalfSpace()),))


def _on_terrain(model: Model, rows: StepRows | None) -> StepRows:
    """By default the same on a plane that is given."""
    if rows is not None:
        return rows
    (row,) = _touching(model, None).contacts
    return StepRows((), (replace(row, surface=GivenPlane(0)),))


def _points(model: Model, rows: StepRows) -> Unrolled:
    from phistar.scalar.trace.contact_programs import contact_points

    return contact_points(model, rows)


def _point_shapes(rows: StepRows) -> Mapping[str, tuple[int, ...]]:
    count = len(rows.contacts)
    return {"gap": (count,), "position": (count, 3), "axes": (count, 3, 3), "rates": (count, 3)}


def _point_work(model: Model, rows: StepRows) -> TracedWork | None:
    return TracedWork(len(model.bodies), len(rows.contacts)) if model.bodies else None


_STEP = "v⁺ = v + 𝓜ₕ⁻¹(h(τ - 𝒞) + L*λ), λ by projected Gauss-Seidel on Δ = L𝓜ₕ⁻¹L*"
_STATE = ("q", "v", "tau", "dt", "impulses")
_POINTS = "gaps, places, axes and velocities of pairs that may touch"

UNILATERAL_STEP = add_traced(
    Traced("unilateral_step", _STATE, _shapes, _trace, _work, choices={"rows": None}, defined=_STEP)
)
"""The choice is ``StepRows``; None: what the robot's file says of its joints."""

TERRAIN_STEP = add_traced(
    Traced(
        "terrain_step",
        (*_STATE, "planes"),
        lambda model, rows: _shapes(model, _on_terrain(model, rows)),
        lambda model, rows: _trace(model, _on_terrain(model, rows)),
        lambda model, rows: _work(model, _on_terrain(model, rows)),
        choices={"rows": None},
        defined=f"{_STEP}, on planes that are given",
    )
)
"""The same with planes that are inputs; None: the last link's origin on one."""


def _solver(model: Model, rows: StepRows | None) -> Unrolled:
    from phistar.scalar.trace.row_solver import row_solver

    found = _touching(model, rows)
    return row_solver(model, found, least_mobilities(model, found))


def _well_posed(model: Model, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    """Inputs with a Δ that is symmetric and positive, and a time step above zero."""
    half = inputs["delta"].reshape(len(inputs["delta"]), 3, 3)
    delta = half @ np.swapaxes(half, 1, 2) + np.eye(3)
    return {**inputs, "delta": delta.reshape(-1, 9), "dt": 0.1 + np.abs(inputs["dt"])}


ROW_SOLVER = add_traced(
    Traced(
        "row_solver",
        ("delta", "places", "rates", "free", "dt", "impulses"),
        lambda model, rows: {"impulses_next": (_touching(model, rows).count,)},
        _solver,
        lambda model, rows: UnilateralWork(_touching(model, rows).count),
        choices={"rows": None},
        admit=_well_posed,
        defined="λ by projected Gauss-Seidel on a given Δ",
    )
)
"""Impulses of rows whose Δ is given; None: the last link's origin on the plane z = 0."""

CONTACT_POINTS = add_traced(
    Traced(
        "contact_points",
        ("q", "v"),
        lambda model, rows: _point_shapes(_touching(model, rows)),
        lambda model, rows: _points(model, _touching(model, rows)),
        lambda model, rows: _point_work(model, _touching(model, rows)),
        choices={"rows": None},
        defined=_POINTS,
    )
)
"""The choice is ``StepRows``; None: the last link's origin on the plane z = 0."""

TERRAIN_POINTS = add_traced(
    Traced(
        "terrain_points",
        ("q", "v", "planes"),
        lambda model, rows: _point_shapes(_on_terrain(model, rows)),
        lambda model, rows: _points(model, _on_terrain(model, rows)),
        lambda model, rows: _point_work(model, _on_terrain(model, rows)),
        choices={"rows": None},
        defined=f"{_POINTS}, on planes that are given",
    )
)
"""The same with planes that are inputs."""
