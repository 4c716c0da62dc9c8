# SPDX-License-Identifier: BSD-3-Clause
"""Gyroscopic rotors: rotor inertia of joints with several axes."""

from __future__ import annotations

import numpy as np

from phistar.model.components import Body
from phistar.spatial import crf


def has_gyroscopic_rotors(body: Body) -> bool:
    """Whether the rotors of a body's joint need a force as it moves: H(H*v ×* NAv) is not zero.

    See ``algorithms.rotor_forces``.
    """
    if len(body.armature) < 2 or not any(body.armature):
        return False
    axes = body.joint_kind.motion_map()
    forces = np.einsum("ai,jab,bk->ijk", axes, crf(axes.T), axes * np.array(body.armature))
    # Axes are unit vectors; rounding must not decide which program runs.
    least = 1e-9 * max(map(abs, body.armature))
    return bool(np.any(np.abs(forces + forces.swapaxes(1, 2)) > least))
