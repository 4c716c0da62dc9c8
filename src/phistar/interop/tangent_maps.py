# SPDX-License-Identifier: BSD-3-Clause
"""Between the nq numbers of q and tangent steps: for packages that know numbers only.

Other packages differentiate with respect to each of the nq numbers of q. Functions of a robot are
defined for unit quaternions; here they are continued to all others by F(q) = f(normalize(q)), which
has ordinary partial derivatives everywhere but at quaternions of length zero:

    ∂F/∂q = f_q T(q)            f_q along tangent steps (..., nv), T(q) the tangent map (nv, nq)
    q̇ = G(q) v                  rates of q as the robot moves with v;  T(q) G(q) = 1

T does not see the length of a quaternion: its rows are orthogonal to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.joints import JointKind
from phistar.model.model import Model

Entries = dict[tuple[int, int], Any]
"""Entries of a matrix that are not always zero, by row and column."""
CosSin = Callable[[Any], tuple[Any, Any]]


def _quaternion_rows(x: Any, y: Any, z: Any, w: Any, scale: Any) -> list[list[Any]]:
    """scale * vector part of conj(Q) ⊗ dQ: (3, 4)."""
    rows = [[w, z, -y, -x], [-z, w, x, -y], [y, -x, w, -z]]
    return [[scale * entry for entry in row] for row in rows]


def _rotation(x: Any, y: Any, z: Any, w: Any) -> list[list[Any]]:
    """The rotation of a quaternion of any length."""
    s = 2.0 / (x * x + y * y + z * z + w * w)
    return [
        [1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y)],
        [s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x)],
        [s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y)],
    ]


def _spherical(q: Sequence[Any], cos_sin: CosSin, rates: bool) -> Entries:
    square = sum(entry * entry for entry in q)
    rows = _quaternion_rows(*q, 0.5 if rates else 2.0 / square)
    found = {(i, j): rows[i][j] for i in range(3) for j in range(4)}
    return {(j, i): entry for (i, j), entry in found.items()} if rates else found


def _free(q: Sequence[Any], cos_sin: CosSin, rates: bool) -> Entries:
    turn, rotation = _spherical(q[3:], cos_sin, rates), _rotation(*q[3:])
    pairs = [(i, j) for i in range(3) for j in range(3)]
    if rates:
        found = {(3 + i, j): entry for (i, j), entry in turn.items()}
        return found | {(i, 3 + j): rotation[i][j] for i, j in pairs}
    found = {(i, 3 + j): entry for (i, j), entry in turn.items()}
    return found | {(3 + j, i): rotation[i][j] for i, j in pairs}


def _planar(q: Sequence[Any], cos_sin: CosSin, rates: bool) -> Entries:
    c, s = cos_sin(q[2])
    s = -s if rates else s
    return {(0, 0): c, (0, 1): s, (1, 0): -s, (1, 1): c, (2, 2): 1.0}


_KINDS: dict[str, Callable[[Sequence[Any], CosSin, bool], Entries]] = {
    "free": _free,
    "spherical": _spherical,
    "planar": _planar,
}


def _joint_entries(kind: JointKind, q: Sequence[Any], cos_sin: CosSin, rates: bool) -> Entries:
    if kind.is_euclidean:
        return {(i, i): 1.0 for i in range(kind.nv)}
    if kind.name not in _KINDS:
        raise ArgumentError(
            f"joints of kind '{kind.name}' step on a space of their own, whose derivatives with "
            f"respect to q are not known here; known are {', '.join(_KINDS)} and all joints that "
            "add steps to q"
        )
    return _KINDS[kind.name](q, cos_sin, rates)


def matrix_entries(model: Model, q: Sequence[Any], cos_sin: CosSin, rates: bool) -> Entries:
    """T(q) (nv, nq), or with ``rates`` G(q) (nq, nv), by entries.

    Args:
        model: The robot.
        q: nq numbers, arrays or symbols.
        cos_sin: Of an angle, for such values.
        rates: Whether G is wanted.

    Raises:
        ArgumentError: A joint's kind is not known.
    """
    found: Entries = {}
    for name in model.joint_names:
        joint = model.joints[name]
        own = _joint_entries(joint.joint_kind, q[joint.q_slice], cos_sin, rates)
        row, column = joint.v_slice.start, joint.q_slice.start
        if rates:
            row, column = column, row
        found |= {(row + i, column + j): entry for (i, j), entry in own.items()}
    return found


def adds_steps(model: Model) -> bool:
    """Whether T and G are the identity: all joints add steps to q."""
    return all(model.joints[name].joint_kind.is_euclidean for name in model.joint_names)


def _as_array(model: Model, q: Array, rates: bool) -> Array:
    shape = (model.nq, model.nv) if rates else (model.nv, model.nq)
    result = np.zeros((*q.shape[:-1], *shape), dtype=q.dtype)
    columns = [q[..., k] for k in range(model.nq)]
    found = matrix_entries(model, columns, lambda x: (np.cos(x), np.sin(x)), rates)
    for (i, j), entry in found.items():
        result[..., i, j] = entry
    return result


def tangent_map(model: Model, q: Array) -> Array:
    """T(q) (..., nv, nq): tangent steps that changes of the numbers of q are."""
    return _as_array(model, q, rates=False)


def rate_map(model: Model, q: Array) -> Array:
    """G(q) (..., nq, nv): rates of the numbers of q for velocities v."""
    return _as_array(model, q, rates=True)
