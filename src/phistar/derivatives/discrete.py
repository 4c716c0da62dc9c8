# SPDX-License-Identifier: BSD-3-Clause
"""One step of time and its derivatives: x(t + dt) from x = (q, v), joint forces held.

    euler           q' = q + dt v        v' = v + dt v̇(q, v, τ)
    semi_implicit   v' = v + dt v̇(q, v, τ)        q' = q + dt v'

Schemes of more stages are instructions of ``sim.schemes``; ``sim.step_tangents`` follows them.

Additions to q are steps on the configuration space, ``integrate``; derivatives are along such steps
at both ends, and exact for the scheme: those of rotations are not the flat ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phistar.arguments import checked_state, refuse_singular, require_time, step_lengths
from phistar.arrays import Array, as_vectors
from phistar.compile import chained_entry, joint_map, run_traced_results
from phistar.derivatives.first import Linearization, linearize_checked, linearize_inverse
from phistar.derivatives.lie_jacobians import right_jacobian, step_adjoint
from phistar.errors import UnknownNameError
from phistar.joint_physics.implicit import implicit_acceleration, implicit_numbers
from phistar.joint_physics.passive_forces import passive_derivatives
from phistar.model.configuration import Coordinates, integrate
from phistar.model.kinematic_loops import require_tree
from phistar.model.model import Model
from phistar.model.model_cache import entries
from phistar.model.wrenches import Wrenches
from phistar.reprs import one_line_repr


@one_line_repr
@dataclass(frozen=True)
class Discretization:
    """A step of time: δx' = A δx + B δτ with δx = (δq, δv), δq tangent steps.

    Attributes:
        q: (..., nq) configuration at its end.
        v: (..., nv) velocity at its end.
        A: (..., 2 nv, 2 nv).
        B: (..., 2 nv, nv).
    """

    q: Array
    v: Array
    A: Array
    B: Array


def discretize(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    dt: float,
    method: str = "semi_implicit",
    wrenches: Wrenches | None = None,
) -> Discretization:
    """A step of time and its derivatives."""
    if method not in DISCRETIZATION_SCHEMES:
        known = (*DISCRETIZATION_SCHEMES, "implicit", *STAGED_METHODS)
        raise UnknownNameError("method", method, known)
    require_time("dt", dt)
    require_tree(model, "linearize")
    refuse_singular(model)
    q, v, tau = checked_state(model, q=q, v=v, tau=tau)
    at = linearize_checked(model, q, v, tau, wrenches)
    found = _by_program(model, q, v, float(dt), method, at)
    if found is not None:
        if wrenches is None and found.q.dtype == np.float64:
            _add_entry(model, method)
        return found
    batch = at.vdot.shape[:-1]
    q, v = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (q, v))
    return DISCRETIZATION_SCHEMES[method](model, q, v, float(dt), at)


def discretize_implicitly(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates,
    dt: float,
    wrenches: Wrenches | None,
    parts: tuple[str, ...],
) -> Discretization:
    """A semi-implicit step with springs and damping at its end, and its derivatives.

    (𝓜 + dt B + dt² K) v̇ = τ + p(q, v) - dt K v - 𝒞(q, v), see ``implicit.implicit_numbers``.
    """
    h = float(step_lengths(dt)[0])
    require_tree(model, "linearize")
    refuse_singular(model)
    q, v, tau = checked_state(model, q=q, v=v, tau=tau)
    added, stiffness = implicit_numbers(model, parts, h)
    vdot = implicit_acceleration(model, q, v, tau, h, parts, wrenches)
    at = linearize_inverse(model, q, v, vdot, wrenches)
    along_q, along_v = passive_derivatives(model, q, v, parts)
    inverse = np.linalg.inv(at.tau_vdot + np.diag(added))
    by_q = inverse @ (along_q - at.tau_q)
    by_v = inverse @ (along_v - h * np.diag(stiffness) - at.tau_v)
    q, v = (np.broadcast_to(x, (*vdot.shape[:-1], x.shape[-1])) for x in (q, v))
    return semi_implicit_discretization(
        model, q, v, h, Linearization(vdot, by_q, by_v, inverse, model, v)
    )


def _by_program(
    model: Model, q: Array, v: Array, dt: float, method: str, at: Linearization
) -> Discretization | None:
    """The step by machine code, if that is at hand."""
    matrices = map(as_vectors, (at.vdot_q, at.vdot_v, at.vdot_tau))
    rows = np.full(1, dt, at.vdot.dtype)
    found = run_traced_results(model, ("discretization", method), q, v, rows, at.vdot, *matrices)
    if found is None:
        return None
    return Discretization(found["q_next"], found["v_next"], found["A"], found["B"])


def _add_entry(model: Model, method: str) -> None:
    """Have later calls with plain arrays go straight to the linearization and the step."""
    table = entries(model)
    if ("discretize", method) not in table and joint_map(model).is_identity:
        key, order = ("discretization", method), ("q", "v", "tau", "dt")
        entry = chained_entry(model, "linearize", key, order, {"q_next": "q", "v_next": "v"})
        if entry is not None:
            table["discretize", method] = entry


def _eye(model: Model, like: Array) -> Array:
    shape = (*like.shape[:-1], model.nv, model.nv)
    return np.broadcast_to(np.eye(model.nv, dtype=like.dtype), shape)


def _euler(model: Model, q: Array, v: Array, dt: float, at: Linearization) -> Discretization:
    step = dt * v
    A = np.block(
        [
            [step_adjoint(model, step), dt * right_jacobian(model, step)],
            [dt * at.vdot_q, _eye(model, v) + dt * at.vdot_v],
        ]
    )
    B = np.concatenate([np.zeros_like(at.vdot_tau), dt * at.vdot_tau], axis=-2)
    return Discretization(integrate(model, q, step), v + dt * at.vdot, A, B)


def semi_implicit_discretization(
    model: Model, q: Array, v: Array, dt: float, at: Linearization
) -> Discretization:
    """A semi-implicit step under accelerations whose derivatives are known."""
    later = v + dt * at.vdot
    step = dt * later
    way = dt * right_jacobian(model, step)
    lower = np.concatenate([dt * at.vdot_q, _eye(model, v) + dt * at.vdot_v], axis=-1)
    upper = way @ lower
    upper[..., : model.nv] += step_adjoint(model, step)
    A = np.concatenate([upper, lower], axis=-2)
    push = dt * at.vdot_tau
    return Discretization(
        integrate(model, q, step), later, A, np.concatenate([way @ push, push], axis=-2)
    )


DISCRETIZATION_SCHEMES: dict[str, Callable[..., Discretization]] = {
    "euler": _euler,
    "semi_implicit": semi_implicit_discretization,
}
"""Schemes by name."""
STAGED_METHODS = ("midpoint", "rk4")
"""Schemes with several stages, by the names of ``sim.schemes``."""
