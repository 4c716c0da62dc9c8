# SPDX-License-Identifier: BSD-3-Clause
"""Another named frame on a robot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.components import IDENTITY, Frame, frozen
from phistar.model.editing.parts import Edit, Parts, refuse_taken
from phistar.model.model import Model
from phistar.spatial import is_rotation, pose_product


def checked_pose(pose: ArrayLike | None, name: str) -> Array:
    """A user's rigid pose (4, 4); None is the identity.

    Raises:
        ArgumentError: It has another shape, is not finite, or is no rigid motion.
    """
    if pose is None:
        return IDENTITY
    given = frozen(pose, (4, 4), name)
    if not np.isfinite(given).all():
        raise ArgumentError(f"{name} is not finite: {given.tolist()}")
    if not is_rotation(given[:3, :3]) or not np.array_equal(given[3], IDENTITY[3]):
        raise ArgumentError(
            f"{name} is {given.tolist()}, expected a rotation (3, 3), a position and the last row "
            "0, 0, 0, 1; phistar.model.make_pose(xyz, rpy) makes one"
        )
    return given


def with_frame(model: Model, name: str, parent: str, pose: ArrayLike | None) -> Edit:
    """The model with a frame at ``pose`` (4, 4) in the frame or link ``parent``."""
    carrier = model.frame(parent)
    refuse_taken(model, "frame", name, model.frames, "choose another name")
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"the name of a frame is {name!r}, expected a text")
    placed = pose_product(carrier.pose, checked_pose(pose, f"pose of frame '{name}'"))
    parts = Parts.of(model)
    frame = Frame(name, carrier.link, frozen(placed, (4, 4)))
    made = replace(parts, frames=(*parts.frames, frame)).build()
    return Edit(made, f"frame '{name}'", f"added on '{parent}' by with_frame")
