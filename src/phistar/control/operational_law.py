# SPDX-License-Identifier: BSD-3-Clause
"""Operational-space control: a frame moves to a pose like a free body of unit inertia.

    τ = h(q, v) + J*Λ(a - J̇v) - c(𝓜 - J*ΛJ)v        a = a° + k_p e - k_d (V - V°)

In world axes, at the frame's origin: V = Jv its velocity, V° and a° velocity and acceleration of
the goal, e = (rotation vector, difference of positions) to it, Λ the operational inertia. The
origin moves straight to its goal. The last term damps motions without effect on the frame. With
loops Λ⁻¹ = JX(X*𝓜X)⁻¹X*J*, and J̇v is what the frame's acceleration is under τ = h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.actuation import matvec, require_positive
from phistar.control.law import Law, flat_pose, goal_pose, motors, squared_norm
from phistar.control.loop_states import closes_loops, inverse_inertia_on_loops
from phistar.control.pose_law import jacobian_along, smallest_singular_value
from phistar.errors import ArgumentError
from phistar.loops.assembly import usual_rank
from phistar.model.joint_physics import Passive
from phistar.reprs import one_line_repr
from phistar.robot import Robot
from phistar.sim.law_calls import LawProgram
from phistar.sim.loop_stepper import loop_accelerations
from phistar.spatial import log_so3

MIN_RELATIVE_SINGULAR_VALUE = 1e-9
"""Smallest singular value of a Jacobian, relative to the largest, at which it has no inverse."""


@one_line_repr
@dataclass(frozen=True, eq=False)
class OperationalSpace(Law):
    """Gives a frame the acceleration of a damped spring to its goal.

    Attributes:
        frame: The frame.
        goal: (..., 4, 4) goal pose.
        stiffness: k_p [1/s²].
        damping: k_d [1/s].
        inner: c [1/s], damping of motions without effect on the frame.
        goal_velocity: (..., 6) of the goal [rad/s, m/s], world axes at its origin; None: it rests.
        goal_acceleration: (..., 6), the rate of that; None: zero.
    """

    frame: str
    goal: Array
    stiffness: float
    damping: float
    inner: float
    goal_velocity: Array | None = field(default=None, kw_only=True)
    goal_acceleration: Array | None = field(default=None, kw_only=True)
    name: ClassVar[str] = "operational"

    def _program(self) -> LawProgram:
        names = ("stiffness", "damping", "inner", "goal_velocity", "goal_acceleration")
        numbers = {name: getattr(self, name) for name in names}
        return self._named(
            "operational", {"goal": flat_pose(self.goal), **numbers}, frame=self.frame
        )

    def error(self, q: Array, v: Array) -> Array:
        """e (..., 6) [rad, m]: rotation vector and translation to the goal, world axes."""
        return self._offset(q)

    def _offset(self, q: Array) -> Array:
        pose = self.robot.frame_pose(q, self.frame)
        rotation = self.goal[..., :3, :3] @ np.swapaxes(pose[..., :3, :3], -1, -2)
        translation = self.goal[..., :3, 3] - pose[..., :3, 3]
        return np.concatenate([log_so3(rotation), translation], axis=-1)

    def pull(self, q: Array) -> Array:
        """k_p J*Λe (..., nv)."""
        jacobian, inertia = self._task(q)
        wrench = matvec(inertia, self.stiffness * self._offset(q))
        return matvec(np.swapaxes(jacobian, -1, -2), wrench)

    def lyapunov(self, q: Array, v: Array) -> Array:
        """½V*V + ½k_p e*e (...), V less that of the goal."""
        speed = self._relative(self.robot.frame_velocity(q, v, self.frame))
        return (squared_norm(speed) + self.stiffness * squared_norm(self.error(q, v))) / 2

    def _relative(self, speed: Array) -> Array:
        """A velocity (..., 6) of the frame less that of the goal."""
        return speed if self.goal_velocity is None else np.asarray(speed - self.goal_velocity)

    def require(self, q: Array, v: Array) -> Array:
        """Joint forces (..., nv)."""
        robot = self.robot
        jacobian, inertia = self._task(q)
        speed = matvec(jacobian, v)
        bias = robot.bias_force(q, v)
        coasting = np.zeros(robot.nv)
        if closes_loops(robot):
            coasting = loop_accelerations(robot.model, q, v, bias)
        drift = robot.frame_acceleration(q, v, coasting, self.frame)
        acceleration = self.stiffness * self.error(q, v) - self.damping * self._relative(speed)
        if self.goal_acceleration is not None:
            acceleration = acceleration + self.goal_acceleration
        wrench = matvec(inertia, acceleration - drift + self.inner * speed)
        internal = -self.inner * matvec(robot.mass_matrix(q), v)
        across = matvec(np.swapaxes(jacobian, -1, -2), wrench)
        return np.asarray(bias + across + internal)

    def singular_value(self, q: Array) -> Array:
        """The smallest singular value (...) of the frame's Jacobian along the loops."""
        return smallest_singular_value(jacobian_along(self.robot, q, self.frame))

    def _task(self, q: Array) -> tuple[Array, Array]:
        """J and Λ, world axes."""
        jacobian = self.robot.jacobian(q, self.frame)
        values = np.linalg.svd(jacobian_along(self.robot, q, self.frame), compute_uv=False)
        if (values[..., -1] <= MIN_RELATIVE_SINGULAR_VALUE * values[..., 0]).any():
            raise ArgumentError(
                f"frame '{self.frame}' of robot '{self.robot.name}' is at a singular pose: it "
                "cannot move in every direction and has no operational inertia; start elsewhere, "
                "or use pose_control, which needs no inverse"
            )
        if closes_loops(self.robot):
            mobility = inverse_inertia_on_loops(self.robot, q)
            return jacobian, np.linalg.inv(jacobian @ mobility @ np.swapaxes(jacobian, -1, -2))
        inertia = self.robot.operational_inertia(q, [self.frame])
        axes = self.robot.frame_pose(q, self.frame)[..., :3, :3]
        to_world = np.zeros_like(inertia)
        to_world[..., :3, :3] = to_world[..., 3:, 3:] = axes
        inertia = to_world @ inertia @ np.swapaxes(to_world, -1, -2)
        return jacobian, inertia


def operational_space(
    robot: Robot,
    frame: str,
    pose: ArrayLike,
    stiffness: float = 25.0,
    damping: float | None = None,
    *,
    inner: float = 4.0,
    actuated: Sequence[str] | None = None,
    limits: ArrayLike | str | None = None,
    passive: Passive = False,
) -> OperationalSpace:
    """Operational-space control of a frame's pose.

    Args:
        robot: The robot; at least six degrees of freedom.
        frame: Name of the frame.
        pose: (..., 4, 4) goal pose, in world axes.
        stiffness: k_p [1/s²], positive.
        damping: k_d [1/s]; by default critical, 2 sqrt(k_p).
        inner: Damping of motions without effect on the frame [1/s].
        actuated: Names of the joints that have motors, of a robot with loops; by default all.
        limits: Bounds of forces, as in ``rate_feedback``.

    Raises:
        ArgumentError: The robot cannot move a frame in six directions.
    """
    freedoms = robot.nv - (usual_rank(robot.model) if closes_loops(robot) else 0)
    if freedoms < 6:
        raise ArgumentError(
            f"robot '{robot.name}' has {freedoms} degrees of freedom, and a pose has six: frame "
            f"'{frame}' has no operational inertia; use pose_control"
        )
    found = motors(robot, limits, actuated)
    kp = require_positive("stiffness", stiffness)
    kd = 2.0 * kp**0.5 if damping is None else require_positive("damping", damping)
    c = require_positive("inner", inner)
    goal = goal_pose(robot, frame, pose)
    return OperationalSpace(
        robot,
        *found.bounds,
        True,
        frame,
        goal,
        kp,
        kd,
        c,
        actuation=found.actuation,
        passive=passive,
    )
