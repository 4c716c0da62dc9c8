# SPDX-License-Identifier: BSD-3-Clause
"""A step with joints that rub and stop and points that touch, as a row of traced quantities."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from phistar.backends import OPTIONAL_INPUTS
from phistar.backends.policy import UnilateralWork
from phistar.compile import Traced, add_traced, joint_map
from phistar.loops.traced_rows import loop_bias
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.model.singular import singular_hinges
from phistar.scalar.trace.unilateral_rows import JointRow, StepRows

if TYPE_CHECKING:
    from phistar.scalar.program import Unrolled


def joint_rows(model: Model) -> tuple[JointRow, ...]:
    """Stops, dry friction, damping and springs of the joints, as the robot's file has them."""
    found = []
    for joint in (model.joints[name] for name in model.joint_names):
        kind, drive, limits = joint.joint_kind, joint.drive, joint.limits
        plain = kind.is_euclidean and kind.nq == kind.nv
        for i in range(kind.nv):
            row = JointRow(
                joint.v_slice.start + i,
                joint.q_slice.start + i if plain else -1,
                limits.lower[i] if plain else -math.inf,
                limits.upper[i] if plain else math.inf,
                friction=drive.friction[i],
                damping=drive.damping[i],
                stiffness=drive.stiffness[i] if plain else 0.0,
                rest=drive.spring_reference[i] if plain else 0.0,
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
    return unilateral_step(model, _rows(model, rows), TreeBias(bias, frozenset(OPTIONAL_INPUTS)))


def _shapes(model: Model, rows: StepRows | None) -> Mapping[str, tuple[int, ...]]:
    count = impulse_count(_rows(model, rows))
    return {"q_next": (model.nq,), "v_next": (model.nv,), "impulses_next": (count,)}


def _work(model: Model, rows: StepRows | None) -> UnilateralWork | None:
    """None: closed loops, joints without coordinates or inertia of their own, turning rotors."""
    joints = joint_map(model)
    if active_loops(model.loops) or not joints.one_to_one or (joints.scales != 1.0).any():
        return None
    if not model.bodies or model.turning_rotors or singular_hinges(model):
        return None
    return UnilateralWork(impulse_count(_rows(model, rows)))


UNILATERAL_STEP = add_traced(
    Traced(
        "unilateral_step",
        ("q", "v", "tau", "dt", "impulses"),
        _shapes,
        _trace,
        _work,
        choices={"rows": None},
        defined="v⁺ = v + 𝓜ₕ⁻¹(h(τ - 𝒞) + L*λ), λ by projected Gauss-Seidel on Δ = L𝓜ₕ⁻¹L*",
    )
)
"""The choice is ``StepRows``; None: what the robot's file says of its joints."""
