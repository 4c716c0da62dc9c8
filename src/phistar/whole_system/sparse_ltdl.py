# SPDX-License-Identifier: BSD-3-Clause
"""𝓜 = L*DL without fill: rows of L are zero except at a link's ancestors.

Coordinates are eliminated tips first, a joint at a time. What comes out is the innovations
factorization number by number: D(k) = HPH* + A, and L* = I + HφK.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phistar.arrays import Array
from phistar.compile import joint_map
from phistar.errors import ArgumentError, SingularHingeError
from phistar.model.components import GROUND
from phistar.model.model import Model


def sparse_ltdl(model: Model, mass_matrix: Array) -> tuple[Array, Array]:
    """L (nv, nv), unit lower triangular by joints, and D (nv, nv), a block per joint.

    Args:
        model: The robot.
        mass_matrix: (nv, nv), in the robot's coordinates.

    Raises:
        ArgumentError: Joints share coordinates.
        SingularHingeError: A joint moves no inertia.
    """
    joints = joint_map(model)
    if not joints.one_to_one:
        raise ArgumentError(f"the factors of robot '{model.name}': joints share coordinates")
    H = np.array(mass_matrix, dtype=float)
    L, D = np.eye(len(H)), np.zeros_like(H)
    for body in reversed(model.bodies):
        own = body.v_slice
        D[own, own] = H[own, own]
        try:
            inverse = np.linalg.inv(H[own, own])
        except np.linalg.LinAlgError:
            raise SingularHingeError([body.joint]) from None
        ancestors = _ancestors(model, body.parent)
        for j in ancestors:
            L[own, j] = inverse @ H[own, j]
        for i in ancestors:
            for j in ancestors:
                H[i, j] -= H[i, own] @ L[own, j]
    return L, D


def _ancestors(model: Model, k: int) -> Sequence[slice]:
    """Coordinates of a link and of those between it and the ground."""
    return [] if k == GROUND else [model.bodies[i].v_slice for i in model.ancestors(k)]
