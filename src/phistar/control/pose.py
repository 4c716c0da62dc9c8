# SPDX-License-Identifier: BSD-3-Clause
"""Control 8.2 of Jain & Rodriguez 1995, corrected: a frame goes to a pose.

    ε = -c₁η + c₂ R⁻¹Hψ B e        τ = -m c₁ m*v + c₂ J_Y* e

Y = (y₀, y₁, y₂, y₃) is the frame's origin and the ends of its three axes, e = Ŷ - Y their distance
from where they should be. J_Y*e is a force e₀ at the frame and a moment Σ yᵢ × eᵢ. The sign of the
second term is plus, the factor R⁻¹ belongs there and c₂ is a number (the paper prints otherwise);
then ½η*η + ½c₂ e*e never rises: its rate is -η*c₁η. The robot ends where J_Y*e = 0. That is the
goal, or a singular pose, or one turned by half a turn; with gravity uncompensated it is another
place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.control.law import Law, bounds, goal_pose, square
from phistar.control.rate import damped, read_damping
from phistar.control.setting import positive, times
from phistar.errors import ArgumentError
from phistar.robot import Robot

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class PoseControl(Law):
    """τ = -m c₁ m*v + c₂ J_Y*e, with gravity compensated on request.

    Attributes:
        frame: The frame.
        goal: (..., 4, 4) where it should be.
        damping: c₁ [1/s], a number or (nv,).
        stiffness: c₂ [N/m], a number.
        length: Length of the three axes [m]; 0 leaves the orientation free.
    """

    frame: str
    goal: Array
    damping: float | Array
    stiffness: float
    length: float
    name: ClassVar[str] = "pose"

    def error(self, q: Array, v: Array) -> Array:
        """e (..., 12) [m]: of the origin, then of the ends of the axes relative to it."""
        apart = self.goal - self.robot.frame_pose(q, self.frame)
        axes = np.swapaxes(apart[..., :3, :3], -1, -2)
        ends = self.length * axes.reshape(*axes.shape[:-2], 9)
        return np.concatenate([apart[..., :3, 3], ends], axis=-1)

    def pull(self, q: Array) -> Array:
        """c₂ J_Y*e (..., nv)."""
        place = self.robot.frame_pose(q, self.frame)
        force = self.goal[..., :3, 3] - place[..., :3, 3]
        # yᵢ × eᵢ = yᵢ × ŷᵢ, the axes are the columns.
        moment = np.cross(place[..., :3, :3], self.goal[..., :3, :3], axis=-2).sum(axis=-1)
        wrench = np.concatenate([self.length**2 * moment, force], axis=-1)
        jacobian = self.robot.jacobian(q, self.frame)
        return np.asarray(self.stiffness * times(np.swapaxes(jacobian, -1, -2), wrench))

    def lyapunov(self, q: Array, v: Array) -> Array:
        """½η*η + ½c₂ e*e (...) [J]."""
        spring = self.stiffness * square(self.error(q, v)) / 2
        return np.asarray(self.robot.kinetic_energy(q, v) + spring)

    def demand(self, q: Array, v: Array) -> Array:
        """-m c₁ m*v + c₂ J_Y*e (..., nv)."""
        return self.held(q, self.pull(q) - damped(self.robot, q, v, self.damping))

    def sight(self, q: Array, v: Array) -> Array:
        """|J_Y*e| / (|J_Y| |e|), (...); 0 where no joint force acts on the error."""
        felt = np.linalg.norm(self.pull(q), axis=-1)
        jacobian = self.robot.jacobian(q, self.frame)
        # |J_Y|² = |J_v|² + 2 length² |J_ω|², Frobenius: each unit axis sees two directions of ω.
        turning, moving = (np.square(jacobian[..., k : k + 3, :]).sum((-2, -1)) for k in (0, 3))
        width = np.sqrt(moving + 2 * self.length**2 * turning)
        full = self.stiffness * width * np.sqrt(square(self.error(q, v)))
        return np.asarray(np.divide(felt, full, out=np.ones_like(full), where=full > 0))

    def singular_value(self, q: Array) -> Array:
        """The smallest singular value (...) of the frame's Jacobian, of min(6, nv)."""
        return smallest(self.robot.jacobian(q, self.frame)[..., 0 if self.length else 3 :, :])


def pose_control(
    robot: Robot,
    frame: str,
    pose: ArrayLike,
    damping: ArrayLike = 8.0,
    stiffness: float = 300.0,
    *,
    length: float = 0.3,
    gravity: bool = True,
    limits: ArrayLike | str | None = None,
) -> PoseControl:
    """Control of a frame's pose (Control 8.2, corrected).

    Args:
        robot: The robot.
        frame: Name of the frame.
        pose: (..., 4, 4) where it should be, in world axes.
        damping: c₁, a number or one for each diagonal rate η (nv,) [1/s], positive.
        stiffness: c₂, a number [N/m], positive.
        length: Length of the axes whose ends are drawn to their places [m]: how much an error of
            orientation weighs next to one of position. 1 is the paper's; 0 leaves the orientation
            free.
        gravity: Add the forces that hold the robot against gravity. Without them it comes to rest
            beside the goal.
        limits: Bounds of forces, as in ``rate_feedback``.
    """
    if not (np.isfinite(length) and length >= 0):
        raise ArgumentError(f"length is {length}, expected zero or more [m]")
    return PoseControl(
        robot,
        *bounds(robot, limits),
        gravity,
        frame,
        goal_pose(robot, frame, pose),
        read_damping(robot, damping),
        positive("stiffness", stiffness),
        float(length),
    )


def smallest(jacobian: Array) -> Array:
    """The smallest singular value (...) of matrices."""
    return np.asarray(np.linalg.svd(jacobian, compute_uv=False)[..., -1])
