# SPDX-License-Identifier: BSD-3-Clause
"""One step of time and its derivatives: x(t + dt) from x = (q, v), joint forces held.

    euler           q' = q + dt v        v' = v + dt v̇(q, v, τ)
    semi_implicit   v' = v + dt v̇(q, v, τ)        q' = q + dt v'

Additions to q are steps on the configuration space, ``integrate``; derivatives are along such steps
at both ends, and exact for the scheme: those of rotations are not the flat ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.arguments import state
from phistar.derivatives.first import Linearization, linearize
from phistar.derivatives.tangent import bent, carried
from phistar.dynamics import Forces
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.configuration import Coordinates, integrate
from phistar.model.model import Model

Array = NDArray[Any]


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
    forces: Forces | None = None,
    reference: str = "world_aligned",
) -> Discretization:
    """A step of time and its derivatives."""
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    if not (np.isfinite(dt) and dt > 0):
        raise ArgumentError(f"dt is {dt}, expected a time greater than zero [s]")
    q, v, tau = state(model, q=q, v=v, tau=tau)
    at = linearize(model, q, v, tau, forces, reference)
    batch = at.vdot.shape[:-1]
    q, v = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (q, v))
    return METHODS[method](model, q, v, float(dt), at)


def _eye(model: Model, like: Array) -> Array:
    shape = (*like.shape[:-1], model.nv, model.nv)
    return np.broadcast_to(np.eye(model.nv, dtype=like.dtype), shape)


def _euler(model: Model, q: Array, v: Array, dt: float, at: Linearization) -> Discretization:
    step = dt * v
    A = np.block(
        [
            [carried(model, step), dt * bent(model, step)],
            [dt * at.vdot_q, _eye(model, v) + dt * at.vdot_v],
        ]
    )
    B = np.concatenate([np.zeros_like(at.vdot_tau), dt * at.vdot_tau], axis=-2)
    return Discretization(integrate(model, q, step), v + dt * at.vdot, A, B)


def _semi_implicit(
    model: Model, q: Array, v: Array, dt: float, at: Linearization
) -> Discretization:
    later = v + dt * at.vdot
    step = dt * later
    way = dt * bent(model, step)
    lower = np.concatenate([dt * at.vdot_q, _eye(model, v) + dt * at.vdot_v], axis=-1)
    upper = way @ lower
    upper[..., : model.nv] += carried(model, step)
    A = np.concatenate([upper, lower], axis=-2)
    push = dt * at.vdot_tau
    return Discretization(
        integrate(model, q, step), later, A, np.concatenate([way @ push, push], axis=-2)
    )


METHODS: dict[str, Callable[..., Discretization]] = {
    "euler": _euler,
    "semi_implicit": _semi_implicit,
}
"""Schemes by name."""
