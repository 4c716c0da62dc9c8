# SPDX-License-Identifier: BSD-3-Clause
"""The bracket of joint motions, and the rates of exponential coordinates, on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.model.joints import Free, JointKind, Planar, Spherical
from phistar.model.model import Model

Array = NDArray[Any]


def bracket(model: Model, a: Array, b: Array) -> Array:
    """[a, b] (..., nv) of two joint velocities (..., nv): how far moves by a and b do not commute.

    exp(a) exp(b) = exp(a + b + [a, b] / 2 + ...), joint by joint; zero for angles and lengths.
    """
    batch = np.broadcast_shapes(a.shape, b.shape)
    result = np.zeros(batch, dtype=np.result_type(a, b))
    for name in model.joint_names:
        joint = model.joints[name]
        if not joint.motion.is_euclidean:
            own = joint.v_slice
            result[..., own] = _of_joint(joint.motion, a[..., own], b[..., own])
    return result


def _of_joint(kind: JointKind, a: Array, b: Array) -> Array:
    if isinstance(kind, Spherical):
        return np.cross(a, b)
    if isinstance(kind, Free):
        turned = np.cross(a[..., :3], b[..., 3:]) - np.cross(b[..., :3], a[..., 3:])
        return np.concatenate([np.cross(a[..., :3], b[..., :3]), turned], axis=-1)
    assert isinstance(kind, Planar)
    x = b[..., 2] * a[..., 1] - a[..., 2] * b[..., 1]
    y = a[..., 2] * b[..., 0] - b[..., 2] * a[..., 0]
    return np.stack([x, y, np.zeros_like(x)], axis=-1)


def is_flat(model: Model) -> bool:
    """Whether every step is an addition, so that all brackets are zero."""
    return all(model.joints[name].motion.is_euclidean for name in model.joint_names)


def coordinate_rate(model: Model, u: Array, v: Array) -> Array:
    """The rate of u as q ⊕ u moves with velocity v: v + [u, v] / 2 + [u, [u, v]] / 12.

    The next term has the fourth power of u, so that schemes up to the sixth order need no more.
    """
    if is_flat(model):
        return v
    once = bracket(model, u, v)
    return v + once / 2 + bracket(model, u, once) / 12


def velocity_of(model: Model, u: Array, rate: Array) -> Array:
    """The velocity of q ⊕ u as u changes: u̇ - [u, u̇] / 2 + [u, [u, u̇]] / 6 - ..."""
    if is_flat(model):
        return rate
    total, term = rate, rate
    for k in range(2, 8):
        term = bracket(model, u, term) / -k
        total = total + term
    return total
