# SPDX-License-Identifier: BSD-3-Clause
"""Matrices between the nq numbers of q and tangent steps, of arrays or of symbols.

Other packages differentiate with respect to each of the nq numbers of q. Functions of a robot are
defined for unit quaternions; they are continued to all others by F(q) = f(normalize(q)), which has
ordinary partial derivatives everywhere but at quaternions of length zero:

    ∂F/∂q = f_q T(q)            f_q along tangent steps (..., nv), T(q) the tangent map (nv, nq)
    q̇ = G(q) v                  rates of q as the robot moves with v;  T G = 1 where they are unit

T does not see the length of a quaternion: its rows are orthogonal to it. Both are made of what the
kinds of joints say, ``velocity`` and ``coordinate_rates``.
"""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.model.configuration import quaternion_starts
from phistar.model.joints.number_ops import ARRAY_OPS, Ops
from phistar.model.model import Model
from phistar.spatial.entries import Entries, Number

MatrixEntries = dict[tuple[int, int], Number]
"""Entries of a matrix by row and column; those of joints that do not share are left out."""


def matrix_entries(model: Model, q: Entries, ops: Ops, rates: bool) -> MatrixEntries:
    """T(q) (nv, nq), or with ``rates`` G(q) (nq, nv), by entries.

    Args:
        model: The robot.
        q: nq numbers, arrays or symbols; for G quaternions unit.
        ops: Functions of such values, as kinds of joints call them.
        rates: Whether G is wanted.

    Raises:
        ArgumentError: A joint's kind steps in its own way and has no such derivatives.
    """
    found: MatrixEntries = {}
    for name in model.joint_names:
        joint = model.joints[name]
        kind, own = joint.joint_kind, list(q[joint.q_slice])
        row, column = joint.v_slice.start, joint.q_slice.start
        if rates:
            row, column = column, row
        apply = kind.coordinate_rates if rates else kind.velocity
        size = kind.nv if rates else kind.nq
        for j in range(size):
            unit = [1.0 if i == j else 0.0 for i in range(size)]
            for i, entry in enumerate(apply(own, unit, ops)):
                found[row + i, column + j] = entry
    return found


def adds_steps(model: Model) -> bool:
    """Whether T and G are the identity: all joints add steps to q."""
    joints = [model.joints[name] for name in model.joint_names]
    return all(x.joint_kind.is_euclidean and x.q_slice == x.v_slice for x in joints)


def unit_columns(model: Model, columns: Entries, ops: Ops) -> list[Number]:
    """The numbers of q with quaternions made unit."""
    result = list(columns)
    for _, start in quaternion_starts(model):
        part = result[start : start + 4]
        length = ops.sqrt(sum(x * x for x in part))
        result[start : start + 4] = [x / length for x in part]
    return result


def _as_array(model: Model, q: Array, rates: bool) -> Array:
    shape = (model.nq, model.nv) if rates else (model.nv, model.nq)
    result = np.zeros((*q.shape[:-1], *shape), dtype=q.dtype)
    columns = [q[..., k] for k in range(model.nq)]
    if rates:
        columns = unit_columns(model, columns, ARRAY_OPS)
    for (i, j), entry in matrix_entries(model, columns, ARRAY_OPS, rates).items():
        result[..., i, j] = entry
    return result


def tangent_map(model: Model, q: Array) -> Array:
    """T(q) (..., nv, nq): tangent steps that changes of the numbers of q are."""
    return _as_array(model, q, rates=False)


def rate_map(model: Model, q: Array) -> Array:
    """G(normalize(q)) (..., nq, nv): rates of the numbers of q for velocities v."""
    return _as_array(model, q, rates=True)
