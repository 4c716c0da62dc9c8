# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of steps of time: a scheme's instructions, each differentiated.

A step maps (q, v, τ, p) to (q', v'), where p are parameters that joint forces are linear in:
𝓜v̇ + ... + C(q, v, v̇) p = τ, so that ∂v̇/∂p = -∂v̇/∂τ C. Changes of configurations are tangent steps
in the axes of the moving links, at the start and at the end of the step each at its own place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from phistar.arguments import checked_state, refuse_singular, require_time
from phistar.arrays import Array
from phistar.derivatives.discrete import Discretization, discretize_implicitly
from phistar.derivatives.first import linearize
from phistar.derivatives.lie_jacobians import right_jacobian, step_adjoint
from phistar.derivatives.parameter_columns import ParameterColumns
from phistar.derivatives.passive_terms import linearized_with_passive
from phistar.joint_physics.passive_forces import with_passive_force
from phistar.kinematics import integrate_unchecked
from phistar.model.configuration import Coordinates
from phistar.model.kinematic_loops import require_tree
from phistar.model.model import Model
from phistar.model.wrenches import Wrenches, check_batch, check_numbers
from phistar.scalar.trace.state_update import StateUpdate
from phistar.sim.manifold import is_euclidean, lie_bracket
from phistar.sim.schemes import EvaluateRates, Scheme
from phistar.sim.stages import increments


@dataclass(frozen=True)
class StepTangents:
    """Derivatives of steps.

    Attributes:
        A: (..., 2 nv, 2 nv) with respect to (q, v).
        B: (..., 2 nv, nv) with respect to τ.
        G: (..., 2 nv, parameters) with respect to p.
    """

    A: Array
    B: Array
    G: Array


@dataclass(frozen=True)
class _Followed:
    """A joint vector (..., nv), and how it follows (q, v, τ, p) of the start (..., nv, columns)."""

    value: Array
    along: Array


@dataclass(frozen=True)
class _Stage:
    """A stage: q (..., nq), tangent steps of q, and v."""

    q: Array
    along_q: Array
    v: _Followed


def step_tangents(
    columns: ParameterColumns,
    scheme: Scheme,
    state: tuple[Array, Array, Array],
    dt: float,
    parts: tuple[str, ...] = (),
) -> StepTangents:
    """Derivatives of steps from many states at once.

    Args:
        columns: The robot and its parameters.
        scheme: A scheme with fixed steps.
        state: q (..., nq), v and tau (..., nv).
        dt: Their length [s].
        parts: Those of the joint physics that act: springs and damping.
    """
    if scheme.implicit and parts:
        return _implicit_tangents(columns, state, dt, parts)
    end, nv = _end_of_step(columns, scheme, state, dt, parts, None), columns.model.nv
    whole = np.concatenate([end.along_q, end.v.along], axis=-2)
    return StepTangents(whole[..., : 2 * nv], whole[..., 2 * nv : 3 * nv], whole[..., 3 * nv :])


def discretize_in_stages(
    model: Model,
    scheme: Scheme,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    dt: float,
    wrenches: Wrenches | None = None,
    parts: tuple[str, ...] = (),
) -> Discretization:
    """A step of an explicit scheme and its exact derivatives; see ``Robot.discretize``.

    Args:
        model: The robot, a tree.
        scheme: A scheme with fixed steps.
        q, v, tau: (..., nq), (..., nv), (..., nv).
        dt: Its length [s].
        wrenches: On frames, held during the step.
        parts: Those of the joint physics that act at every stage.
    """
    require_time("dt", dt)
    require_tree(model, "linearize")
    refuse_singular(model)
    arrays = checked_state(model, q=q, v=v, tau=tau)
    named = dict(zip(("q", "v", "tau"), arrays, strict=True))
    check_batch(model, named, wrenches)
    check_numbers(model, named, wrenches)
    batch = np.broadcast_shapes(
        *(x.shape[:-1] for x in arrays), () if wrenches is None else wrenches.batch
    )
    state = tuple(np.broadcast_to(x, (*batch, x.shape[-1])) for x in arrays)
    end = _end_of_step(ParameterColumns(model, ()), scheme, state, float(dt), parts, wrenches)
    whole, nv = np.concatenate([end.along_q, end.v.along], axis=-2), model.nv
    found = end.q, end.v.value, whole[..., : 2 * nv], whole[..., 2 * nv :]
    dtype = np.result_type(*arrays)
    return Discretization(*(np.asarray(x, dtype) for x in found))


def _end_of_step(
    columns: ParameterColumns,
    scheme: Scheme,
    state: tuple[Array, ...],
    dt: float,
    parts: tuple[str, ...],
    wrenches: Wrenches | None,
) -> _Stage:
    """The next state, and how it follows the start."""
    model = columns.model
    q, v, tau = state
    start = _start(columns, q, v)
    stages = {0: start}
    velocities: dict[int, _Followed] = {}
    rates: dict[int, _Followed] = {}
    for part in scheme.instructions:
        if not isinstance(part, EvaluateRates):
            stages[part.stage] = _updated(model, part.update, start, velocities, rates, dt)
            continue
        at = stages[part.stage]
        velocities[part.stage] = at.v
        if not part.velocity_only:
            rates[part.stage] = _rate(columns, at, tau, parts, wrenches)
    return stages[0]


def _start(columns: ParameterColumns, q: Array, v: Array) -> _Stage:
    nv = columns.model.nv
    width = 3 * nv + len(columns)
    one = np.zeros((2, *v.shape, width))
    one[0, ..., :nv] = one[1, ..., nv : 2 * nv] = np.eye(nv)
    return _Stage(q, one[0], _Followed(v, one[1]))


def _rate(
    columns: ParameterColumns,
    at: _Stage,
    tau: Array,
    parts: tuple[str, ...],
    wrenches: Wrenches | None,
) -> _Followed:
    """Accelerations at a stage."""
    model, q, v = columns.model, at.q, at.v.value
    nv = model.nv
    if parts:
        pushed = with_passive_force(model, q, v, tau, parts)
        rigid = linearize(model, q, v, pushed, wrenches)
        found = linearized_with_passive(rigid, model, q, v, parts)
    else:
        found = linearize(model, q, v, tau, wrenches)
    along = found.vdot_q @ at.along_q + found.vdot_v @ at.v.along
    along[..., 2 * nv : 3 * nv] += found.vdot_tau
    along[..., 3 * nv :] -= found.vdot_tau @ columns.at(q, v, found.vdot)
    return _Followed(found.vdot, along)


def _updated(
    model: Model,
    update: StateUpdate,
    start: _Stage,
    velocities: Mapping[int, _Followed],
    rates: Mapping[int, _Followed],
    dt: float,
) -> _Stage:
    """Where an update leads from the start."""
    step, change = increments(
        model,
        update,
        start.v.value,
        {stage: each.value for stage, each in velocities.items()},
        {stage: each.value for stage, each in rates.items()},
        dt,
    )
    v = _Followed(
        start.v.value + change,
        start.v.along + dt * _weighted(update.rate_weights, rates, start.v.along),
    )
    if not update.velocities:
        return _Stage(start.q, start.along_q, v)
    along = dt * _weighted(update.velocity_weights, velocities, start.v.along)
    if not is_euclidean(model):
        for one, other, weight in update.bracket_weights:
            along += (weight * dt * dt) * _bracket_along(model, velocities[one], velocities[other])
    carried = step_adjoint(model, step) @ start.along_q + right_jacobian(model, step) @ along
    return _Stage(integrate_unchecked(model, start.q, step), carried, v)


def _weighted(
    weights: tuple[tuple[int, float], ...], values: Mapping[int, _Followed], like: Array
) -> Array:
    total = np.zeros_like(like)
    for stage, weight in weights:
        total += weight * values[stage].along
    return total


def _bracket_along(model: Model, one: _Followed, other: _Followed) -> Array:
    """How the bracket of two velocities follows (..., nv, columns)."""
    first, second = (np.swapaxes(x.along, -1, -2) for x in (one, other))
    both = lie_bracket(model, first, other.value[..., None, :])
    both = both + lie_bracket(model, one.value[..., None, :], second)
    return np.swapaxes(both, -1, -2)


def _implicit_tangents(
    columns: ParameterColumns,
    state: tuple[Array, Array, Array],
    dt: float,
    parts: tuple[str, ...],
) -> StepTangents:
    """Of the scheme with springs and dampers at the end of the step."""
    q, v, tau = state
    step = discretize_implicitly(columns.model, q, v, tau, dt, None, parts)
    # v' and q' follow parameters as they follow joint forces.
    felt = columns.at(q, v, (step.v - v) / dt, ahead=dt)
    return StepTangents(step.A, step.B, -step.B @ felt)
