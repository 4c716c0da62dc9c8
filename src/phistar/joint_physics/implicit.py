# SPDX-License-Identifier: BSD-3-Clause
"""Accelerations over a step with springs and dampers at its end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from phistar import dynamics
from phistar.arrays import Array
from phistar.backends import OPTIONAL_INPUTS
from phistar.backends.policy import StagesWork
from phistar.compile import (
    Traced,
    add_traced,
    cheapest_equivalent,
    joint_map,
    kernel,
    node_loads,
    run_traced,
)
from phistar.joint_physics.passive_forces import passive_force_unchecked
from phistar.model.joint_physics import FORCE_PARTS, passive_numbers
from phistar.model.model import Model
from phistar.model.model_cache import cached_for_equal_models
from phistar.model.wrenches import Wrenches

if TYPE_CHECKING:
    from phistar.scalar.program import Unrolled

SMOOTH_PARTS = FORCE_PARTS[:2]
"""Parts of the joint physics that are smooth: springs and damping."""


def implicit_numbers(
    model: Model, parts: tuple[str, ...], dt: float | Array
) -> tuple[Array, Array]:
    """What springs and dampers at the end of a step add to the joint inertia, and the stiffness.

    With forces -K e(q ⊕ dt v') - B v' and v' = v + dt v̇ the equation of motion is

        (𝓜 + dt B + dt² K) v̇ = τ - K e(q) - B v - dt K v - 𝒞,

    rigid-body dynamics with dt B + dt² K added to the inertia of rotors A.

    Args:
        model: The robot.
        parts: Those of the joint physics; springs and damping count.
        dt: [s], a number or (..., 1).

    Returns:
        dt B + dt² K (..., nv), and K (nv,).
    """
    numbers = passive_numbers(model)
    K = numbers.stiffness if "springs" in parts else np.zeros(model.nv)
    B = numbers.damping if "damping" in parts else np.zeros(model.nv)
    return np.asarray(dt * B + dt * dt * K), K


def implicit_acceleration(
    model: Model,
    q: Array,
    v: Array,
    tau: Array,
    dt: float | Array,
    parts: tuple[str, ...],
    wrenches: Wrenches | None = None,
) -> Array:
    """Accelerations (..., nv) over a step with springs and damping at its end, in O(n).

    Args:
        model, q, v, tau: Checked.
        dt: Length of the step [s], or (..., 1), one for each sample.
        parts: Those of the joint physics.
        wrenches: On frames.
    """
    if wrenches is None:
        lengths = np.reshape(dt, (1,)) if np.ndim(dt) == 0 else dt
        dtype = np.result_type(q, v, tau).type(0).real.dtype
        key = ("implicit_dynamics", parts)
        found = run_traced(model, key, q, v, tau, np.asarray(lengths, dtype))
        if found is not None:
            return found
    added, K = implicit_numbers(model, parts, dt)
    total = tau + passive_force_unchecked(model, q, v, parts) - (dt * K).astype(v.dtype) * v
    total = total - dynamics.bias_force(model, q, v, wrenches)
    if added.ndim > 1:
        mass = dynamics.mass_matrix(model, q) + added[..., None] * np.eye(model.nv)
        return dynamics.solve(mass, total)
    return dynamics.mass_matrix_solve(with_joint_inertia(model, tuple(added.tolist())), q, total)


@cached_for_equal_models(8)
def with_joint_inertia(model: Model, added: tuple[float, ...]) -> Model:
    """The robot with more inertia of rotors along its coordinates, for solving with 𝓜 alone."""
    leaders = {model.joints[name].bodies for name in model.joint_names}
    own = {index for bodies in leaders for index in bodies}
    bodies = []
    for body in model.bodies:
        extra = added[body.v_slice] if body.index in own else (0.0,) * body.joint_kind.nv
        start = body.armature or (0.0,) * body.joint_kind.nv
        armature = tuple(a + b for a, b in zip(start, extra, strict=True))
        bodies.append(replace(body, armature=armature))
    return replace(model, bodies=tuple(bodies))


def heavier_dynamics(model: Model, parts: tuple[str, ...]) -> Unrolled:
    """Forward dynamics that reads more joint inertia, see ``implicit_programs``."""
    from phistar.scalar.lower import LoweringOptions, to_unrolled
    from phistar.scalar.trace import node_programs
    from phistar.scalar.trace.implicit_programs import added_entries

    added = added_entries(model, parts)
    if not joint_map(model).one_to_one:
        return node_programs.forward_dynamics(model, node_loads(model.turning_rotors), added)
    rates = kernel(cheapest_equivalent("forward_dynamics"), model)
    absent, options = frozenset(OPTIONAL_INPUTS), LoweringOptions(regroup=rates.regroup_inertia)
    return to_unrolled(rates.schedule, model, absent, options=options, added=added)


def _trace(model: Model, parts: tuple[str, ...]) -> Unrolled:
    from phistar.scalar.trace.implicit_programs import implicit_dynamics

    return implicit_dynamics(model, parts, heavier_dynamics(model, parts))


def _work(model: Model, parts: tuple[str, ...]) -> StagesWork | None:
    """None where coordinates are scaled, which happens without their leader only."""
    joints = joint_map(model)
    if not model.bodies or (joints.one_to_one and (joints.scales != 1.0).any()):
        return None
    schedule = kernel(cheapest_equivalent("forward_dynamics"), model).schedule
    return StagesWork(sum(1 for _ in schedule.program.live()), 1)


IMPLICIT_DYNAMICS = add_traced(
    Traced(
        "implicit_dynamics",
        ("q", "v", "tau", "dt"),
        lambda model, parts: {"vdot": (model.nv,)},
        _trace,
        _work,
        choices={"parts": SMOOTH_PARTS},
        defined="(𝓜 + dt B + dt² K)⁻¹(τ - K e - B v - dt K v - 𝒞): dt B + dt² K is added to A",
    )
)
"""Accelerations over an implicit step as a row of traced quantities."""
