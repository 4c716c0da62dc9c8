# SPDX-License-Identifier: BSD-3-Clause
"""Tangent steps of configurations: how they are carried along, and how steps of steps add up.

A step δ at q leads to ``integrate(q, δ)``. Joints with one axis add coordinates, so nothing is to
be done. For the others, with [x, y] the bracket of velocities in the axes of the moving link
(x × y for rotations):

    d(δ)/dt = δv - [v, δ]                                       transport
    integrate(q + δ, x) = integrate(q, x) + Ad(exp(-x)) δ       carried
    integrate(q, x + δ) = integrate(q, x) + J(x) δ              bent, J(x) = (1 - exp(-ad x)) / ad x
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phistar.arrays import Array
from phistar.model.joints import JointKind
from phistar.model.joints.number_ops import split_entries
from phistar.model.model import Model

_TERMS = 20
"""Of the series of exp; steps are halved until they are shorter than one."""


def transport(model: Model, v: Array) -> Array:
    """(..., nv) -> (..., nv, nv): d(δq)/dt = transport δq + δv."""
    return _by_joint(model, v, lambda ad: -ad)


def step_adjoint(model: Model, x: Array) -> Array:
    """(..., nv) -> (..., nv, nv): where a step at q ends up after a common step x."""
    return _by_joint(model, x, lambda ad: expm_and_phi1(-ad)[0], identity=True)


def right_jacobian(model: Model, x: Array) -> Array:
    """(..., nv) -> (..., nv, nv): by how much the end of a step x moves if x changes."""
    return _by_joint(model, x, lambda ad: expm_and_phi1(-ad)[1], identity=True)


def right_jacobian_rate(model: Model, x: Array, rate: Array) -> Array:
    """(..., nv), (..., nv) -> (..., nv, nv): the rate of ``right_jacobian`` as x changes at a
    rate."""
    result = np.zeros((*np.broadcast_shapes(x.shape, rate.shape), model.nv), dtype=x.dtype)
    for body in model.bodies:
        if not body.joint_kind.is_euclidean:
            own = body.v_slice
            here, change = (-_bracket_matrix(body.joint_kind, each[..., own]) for each in (x, rate))
            # Of [[a, ȧ], [0, a]] an analytic function has its own rate in the upper corner.
            doubled = np.block([[here, change], [np.zeros_like(here), here]])
            size = here.shape[-1]
            result[..., own, own] = expm_and_phi1(doubled)[1][..., :size, size:]
    return result


def _by_joint(
    model: Model, x: Array, block: Callable[[Array], Array], identity: bool = False
) -> Array:
    result = np.zeros((*x.shape, model.nv), dtype=x.dtype)
    if identity:
        result[..., range(model.nv), range(model.nv)] = 1.0
    for body in model.bodies:
        if not body.joint_kind.is_euclidean:
            own = body.v_slice
            result[..., own, own] = block(_bracket_matrix(body.joint_kind, x[..., own]))
    return result


def _bracket_matrix(kind: JointKind, x: Array) -> Array:
    """The matrix of [x, ·] in a joint's own velocities, (..., nv) -> (..., nv, nv)."""
    result = np.zeros((*x.shape, kind.nv), dtype=x.dtype)
    for j, unit in enumerate(np.eye(kind.nv)):
        for i, entry in enumerate(kind.bracket(split_entries(x), unit.tolist())):
            result[..., i, j] = entry
    return result


def expm_and_phi1(a: Array) -> tuple[Array, Array]:
    """exp(a) and (exp(a) - 1) / a of square matrices, by their series."""
    norm = float(np.abs(a).sum(axis=-1).max(initial=0.0))
    halvings = max(0, int(np.ceil(np.log2(norm)))) if norm > 1.0 else 0
    small = a / 2**halvings
    eye = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    whole, mean, power = eye + small, eye + small / 2, small
    for n in range(2, _TERMS):
        power = power @ small / n
        whole, mean = whole + power, mean + power / (n + 1)
    for _ in range(halvings):
        mean = (mean + whole @ mean) / 2
        whole = whole @ whole
    return whole, mean
