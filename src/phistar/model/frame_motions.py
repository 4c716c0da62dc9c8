# SPDX-License-Identifier: BSD-3-Clause
"""Motions of frames out of those of the links that carry them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phistar.arrays import Array
from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.spatial import motion_transform, pose_inverse
from phistar.spatial.any_namespace import namespace


def frame_motions(model: Model, frames: Sequence[str], motions: Array) -> Array:
    """Motions (..., frames, 6) of frames, in their own axes, out of those of the links.

    Arrays of any namespace (``spatial.any_namespace``).
    """
    xp, placed = namespace(motions), [model.frame(name) for name in frames]
    moving = np.array([frame.body != GROUND for frame in placed], dtype=bool)
    if not moving.any():
        return xp.zeros((*motions.shape[:-2], len(placed), 6), dtype=motions.dtype)
    poses = np.array([frame.body_pose for frame in placed])
    carry = motion_transform(pose_inverse(poses)).astype(np.finfo(motions.dtype).dtype)
    bodies = np.array(
        [frame.body if frame.body != GROUND else 0 for frame in placed], dtype=np.int32
    )
    moved = (carry @ motions[..., bodies, :, None])[..., 0]
    return xp.where(moving[:, None], moved, xp.zeros_like(moved))
