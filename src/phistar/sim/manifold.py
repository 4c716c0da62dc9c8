# SPDX-License-Identifier: BSD-3-Clause
"""The bracket of joint motions, and the rates of exponential coordinates, on arrays."""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.model.configuration import manifold_joints
from phistar.model.model import Model


def lie_bracket(model: Model, a: Array, b: Array) -> Array:
    """Lie bracket [a, b] (..., nv) of two joint velocities (..., nv).

    exp(a) exp(b) = exp(a + b + [a, b] / 2 + ...), joint by joint; zero for angles and lengths.
    """
    batch = np.broadcast_shapes(a.shape, b.shape)
    result = np.zeros(batch, dtype=np.result_type(a, b))
    for kind, _, v_slice in manifold_joints(model):
        own = range(v_slice.start, v_slice.stop)
        entries = kind.bracket([a[..., i] for i in own], [b[..., i] for i in own])
        for i, entry in zip(own, entries, strict=True):
            result[..., i] = entry
    return result


def is_euclidean(model: Model) -> bool:
    """Whether every step is an addition, so that all brackets are zero."""
    return not manifold_joints(model)


BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000)
"""Coefficients of the even powers, from the second, of the series x / (1 - exp(-x))."""

SERIES_TOLERANCE = 1e-17
"""Terms of a series smaller than this fraction of the sum are dropped."""


def coordinate_rate(model: Model, u: Array, v: Array, terms: int = len(BERNOULLI)) -> Array:
    """The rate of u as q ⊕ u moves with velocity v: v + [u, v] / 2 + [u, [u, v]] / 12 - ...

    All terms, up to the twelfth power of u, are good to 3e-4 for half a turn and to 3e-8 for a
    quarter. After one term the next has the fourth power of u, which is enough for schemes up to
    the sixth order.
    """
    if is_euclidean(model):
        return v
    power = lie_bracket(model, u, v)
    total = v + power / 2
    for k, factor in enumerate(BERNOULLI[:terms]):
        power = (
            lie_bracket(model, u, lie_bracket(model, u, power))
            if k
            else lie_bracket(model, u, power)
        )
        total = total + factor * power
    return total


def velocity_of(model: Model, u: Array, rate: Array) -> Array:
    """The velocity of q ⊕ u as u changes: u̇ - [u, u̇] / 2 + [u, [u, u̇]] / 6 - ..."""
    if is_euclidean(model):
        return rate
    total, term = rate, rate
    for k in range(2, 40):
        term = lie_bracket(model, u, term) / -k
        total = total + term
        if not np.abs(term).max(initial=0.0) > SERIES_TOLERANCE * np.abs(total).max(initial=0.0):
            break
    return total
