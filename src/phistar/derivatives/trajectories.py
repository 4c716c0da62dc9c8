# SPDX-License-Identifier: BSD-3-Clause
"""Motions: their knots for a batched linearization, and derivatives of errors between states."""

from __future__ import annotations

from typing import Protocol, cast, runtime_checkable

import numpy as np

from phistar.arrays import Array
from phistar.derivatives.lie_jacobians import right_jacobian, right_jacobian_rate
from phistar.errors import ArgumentError, ShapeError
from phistar.model.configuration import Coordinates, configuration, difference, tangent
from phistar.model.model import Model


@runtime_checkable
class TrajectoryLike(Protocol):
    """Anything with arrays q, v and tau whose first axis is time."""

    @property
    def q(self) -> Array:
        """(N, ..., nq)."""

    @property
    def v(self) -> Array:
        """(N, ..., nv)."""

    @property
    def tau(self) -> Array:
        """(N, ..., nv) or, without the last knot, (N - 1, ..., nv)."""


def knots(
    model: Model,
    motion: TrajectoryLike | Coordinates,
    v: Coordinates | None,
    tau: Coordinates | None,
) -> tuple[Array, Array, Array]:
    """q, v and tau at the knots where all three are known."""
    if isinstance(motion, TrajectoryLike):
        if v is not None or tau is not None:
            raise ArgumentError("v and tau are part of the trajectory; pass it alone, or q, v, tau")
        q, v, tau = motion.q, motion.v, motion.tau
    elif v is None or tau is None:
        raise ArgumentError("pass a trajectory with q, v and tau, or the three arrays")
    else:
        q = cast(Array, motion)
    places, rates, pushes = configuration(model, q), tangent(model, v), tangent(model, tau, "tau")
    for name, array in (("q", places), ("v", rates), ("tau", pushes)):
        if array.ndim < 2:
            raise ShapeError(name, array.shape, "(N, ..., n)", "a motion")
    count = len(pushes)
    for name, array in (("q", places), ("v", rates)):
        if len(array) not in (count, count + 1):
            expected = f"({count}, ..., n) or ({count + 1}, ..., n), as tau has {count} rows"
            raise ShapeError(name, array.shape, expected, "a motion")
    return places[:count], rates[:count], pushes


def difference_q(model: Model, q0: Coordinates, q1: Coordinates) -> Array:
    """(..., nv, nv): the change of ``difference(q0, q1)`` along tangent steps of q1."""
    return np.asarray(np.linalg.inv(right_jacobian(model, difference(model, q0, q1))))


def difference_bias(model: Model, q0: Coordinates, q1: Coordinates, v: Coordinates) -> Array:
    """(..., nv): the second rate of ``difference(q0, q1)`` as q1 moves with a constant v."""
    way, speed = difference(model, q0, q1), tangent(model, v)
    batch = np.broadcast_shapes(way.shape, speed.shape)
    way, speed = np.broadcast_to(way, batch), np.broadcast_to(speed, batch)
    turned = right_jacobian(model, way)
    rate = np.linalg.solve(turned, speed[..., None])
    # From v = J(x) ẋ: 0 = J ẍ + J̇ ẋ.
    change = right_jacobian_rate(model, way, rate[..., 0]) @ rate
    return np.asarray(-np.linalg.solve(turned, change)[..., 0])
