# SPDX-License-Identifier: BSD-3-Clause
"""Control 8.2 of Jain & Rodriguez 1995, corrected: a frame moves to a pose.

    ε = -c₁η + c₂ R⁻¹Hψ B e        τ = -m c₁ m*v + c₂ J_Y* e

Y = (y₀, y₁, y₂, y₃) is the frame's origin and the ends of its three axes, e = Ŷ - Y their distance
from the goal. J_Y*e is a force e₀ at the frame and a moment Σ yᵢ × eᵢ. In the paper the sign of the
second term and the factor R⁻¹ are wrong, and c₂ is not a number; here ½η*η + ½c₂ e*e never rises:
its rate is -η*c₁η. The robot ends where J_Y*e = 0. That is the goal, or a singular pose, or one
rotated by half a turn; without gravity compensation it is another pose. With loops it ends where no
motion that keeps them brings the frame nearer, X*J_Y*e = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.actuation import matvec, require_positive
from phistar.control.law import Law, flat_pose, goal_pose, motors, squared_norm
from phistar.control.loop_states import closes_loops, free_motions
from phistar.control.rate_law import damping_force, read_damping
from phistar.errors import ArgumentError
from phistar.model.joint_physics import Passive
from phistar.reprs import one_line_repr
from phistar.robot import Robot
from phistar.sim.law_calls import LawProgram


@one_line_repr
@dataclass(frozen=True, eq=False)
class PoseControl(Law):
    """τ = -m c₁ m*v + c₂ J_Y*e, with gravity compensated on request.

    Attributes:
        frame: The frame.
        goal: (..., 4, 4) goal pose.
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

    def _program(self) -> LawProgram | None:
        if not isinstance(self.damping, float):
            return None
        numbers: dict[str, ArrayLike] = {
            "goal": flat_pose(self.goal),
            "inner": self.damping,
            "rest": np.zeros(self.robot.nv),
            "stiffness": self.stiffness,
            "length": self.length,
        }
        return self._named("pose", numbers, frame=self.frame)

    def error(self, q: Array, v: Array) -> Array:
        """e (..., 12) [m]: of the origin, then of the ends of the axes relative to it."""
        difference = self.goal - self.robot.frame_pose(q, self.frame)
        axes = np.swapaxes(difference[..., :3, :3], -1, -2)
        ends = self.length * axes.reshape(*axes.shape[:-2], 9)
        return np.concatenate([difference[..., :3, 3], ends], axis=-1)

    def pull(self, q: Array) -> Array:
        """c₂ J_Y*e (..., nv)."""
        pose = self.robot.frame_pose(q, self.frame)
        force = self.goal[..., :3, 3] - pose[..., :3, 3]
        # yᵢ × eᵢ = yᵢ × ŷᵢ, the axes are the columns.
        moment = np.cross(pose[..., :3, :3], self.goal[..., :3, :3], axis=-2).sum(axis=-1)
        wrench = np.concatenate([self.length**2 * moment, force], axis=-1)
        jacobian = self.robot.jacobian(q, self.frame)
        return np.asarray(self.stiffness * matvec(np.swapaxes(jacobian, -1, -2), wrench))

    def lyapunov(self, q: Array, v: Array) -> Array:
        """½η*η + ½c₂ e*e (...) [J]."""
        spring = self.stiffness * squared_norm(self.error(q, v)) / 2
        return np.asarray(self.robot.kinetic_energy(q, v) + spring)

    def require(self, q: Array, v: Array) -> Array:
        """-m c₁ m*v + c₂ J_Y*e (..., nv)."""
        return self.held(q, self.pull(q) - damping_force(self.robot, q, v, self.damping))

    def sight(self, q: Array, v: Array) -> Array:
        """|J_Y*e| / (|J_Y| |e|), (...); 0 where no joint force acts on the error."""
        pull, jacobian = self.pull(q), self.robot.jacobian(q, self.frame)
        if closes_loops(self.robot):
            X = free_motions(self.robot, q)
            pull, jacobian = matvec(np.swapaxes(X, -1, -2), pull), jacobian @ X
        force = np.linalg.norm(pull, axis=-1)
        # |J_Y|² = |J_v|² + 2 length² |J_ω|², Frobenius: each unit axis depends on two directions of
        # ω.
        turning, moving = (np.square(jacobian[..., k : k + 3, :]).sum((-2, -1)) for k in (0, 3))
        width = np.sqrt(moving + 2 * self.length**2 * turning)
        full = self.stiffness * width * np.sqrt(squared_norm(self.error(q, v)))
        return np.asarray(np.divide(force, full, out=np.ones_like(full), where=full > 0))

    def singular_value(self, q: Array) -> Array:
        """The smallest singular value (...) of the frame's Jacobian on the loops, of min(6, n)."""
        jacobian = jacobian_along(self.robot, q, self.frame)
        return smallest_singular_value(jacobian[..., 0 if self.length else 3 :, :])


def pose_control(
    robot: Robot,
    frame: str,
    pose: ArrayLike,
    damping: ArrayLike = 8.0,
    stiffness: float = 300.0,
    *,
    length: float = 0.3,
    gravity: bool = True,
    actuated: Sequence[str] | None = None,
    limits: ArrayLike | str | None = None,
    passive: Passive = False,
) -> PoseControl:
    """Control of a frame's pose (Control 8.2, corrected).

    Args:
        robot: The robot.
        frame: Name of the frame.
        pose: (..., 4, 4) goal pose, in world axes.
        damping: c₁, a number or one for each diagonal rate η (nv,) [1/s], positive.
        stiffness: c₂, a number [N/m], positive.
        length: Length of the axes [m], the weight of orientation relative to position. 1 is the
            paper's; 0 leaves the orientation free.
        gravity: Add the forces that hold the robot against gravity. Without them it rests beside
            the goal.
        actuated: Names of the joints that have motors, of a robot with loops; by default all.
        limits: Bounds of forces, as in ``rate_feedback``.
        passive: Forces of the joints themselves that the motors make up for: True, or some of
            ``"springs"``, ``"damping"``, ``"friction"``; by default the law knows of none.
    """
    if not (np.isfinite(length) and length >= 0):
        raise ArgumentError(f"length is {length}, expected zero or more [m]")
    found = motors(robot, limits, actuated)
    return PoseControl(
        robot,
        *found.bounds,
        gravity,
        frame,
        goal_pose(robot, frame, pose),
        read_damping(robot, damping),
        require_positive("stiffness", stiffness),
        float(length),
        actuation=found.actuation,
        passive=passive,
    )


def jacobian_along(robot: Robot, q: Array, frame: str) -> Array:
    """JX (..., 6, n) for orthonormal motions X that keep the loops; J where there are none."""
    jacobian = robot.jacobian(q, frame)
    return jacobian @ free_motions(robot, q) if closes_loops(robot) else jacobian


def smallest_singular_value(jacobian: Array) -> Array:
    """The smallest singular value (...) of matrices."""
    return np.asarray(np.linalg.svd(jacobian, compute_uv=False)[..., -1])
