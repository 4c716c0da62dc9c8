# SPDX-License-Identifier: BSD-3-Clause
"""What a viewer shows: a state of the robot, with the poses of its bodies."""

from __future__ import annotations

from functools import cached_property

from phistar.arrays import Array
from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.model.numpy_kinematics import body_poses
from phistar.spatial import rotation_to_quat, xyzw_to_wxyz


class ViewState:
    """A configuration and a velocity of a robot at one time.

    Attributes:
        model: The robot.
        q: (nq,).
        v: (nv,).
        t: Time [s].
    """

    def __init__(self, model: Model, q: Array, v: Array, t: float = 0.0) -> None:
        self.model = model
        self.q, self.v, self.t = q, v, t

    @cached_property
    def poses(self) -> Array:
        """(bodies, 4, 4) world poses of the bodies."""
        return body_poses(self.model, self.q)

    def pose(self, body: int, offset: Array) -> Array:
        """World pose (4, 4) of what is at ``offset`` on a body."""
        return offset if body == GROUND else self.poses[body] @ offset


def place(node: object, pose: Array) -> None:
    """Put a node of the scene at a pose (4, 4)."""
    node.position = pose[:3, 3]  # type: ignore[attr-defined]
    node.wxyz = xyzw_to_wxyz(rotation_to_quat(pose[:3, :3]))  # type: ignore[attr-defined]
