# SPDX-License-Identifier: BSD-3-Clause
"""Laws that bring the joints to a configuration: PD with gravity, and computed torque.

PD               τ = g(q) + k_p δ - k_d v               δ = difference(q, goal)
computed torque  τ = 𝓜(k_p δ - k_d v) + C v + g(q)      so that v̇ = k_p δ - k_d v
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.control.law import Law, bounds, square
from phistar.control.setting import gains
from phistar.model.configuration import Coordinates
from phistar.robot import Robot

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class JointLaw(Law):
    """What both have: a goal and gains.

    Attributes:
        goal: (..., nq).
        stiffness: k_p (..., nv).
        damping: k_d (..., nv).
    """

    goal: Array
    stiffness: Array
    damping: Array

    def error(self, q: Array, v: Array) -> Array:
        """δ (..., nv): the tangent step to the goal."""
        return self.robot.difference(q, self.goal)

    def _wanted(self, q: Array, v: Array) -> Array:
        return np.asarray(self.stiffness * self.error(q, v) - self.damping * v)


@dataclass(frozen=True, eq=False)
class PDGravity(JointLaw):
    """τ = g(q) + k_p δ - k_d v; gains are forces per angle or length."""

    name: ClassVar[str] = "pd_gravity"

    def pull(self, q: Array) -> Array:
        """k_p δ (..., nv)."""
        return np.asarray(self.stiffness * self.robot.difference(q, self.goal))

    def demand(self, q: Array, v: Array) -> Array:
        """g(q) + k_p δ - k_d v (..., nv)."""
        return self.held(q, self._wanted(q, v))

    def lyapunov(self, q: Array, v: Array) -> Array:
        """½v*𝓜v + ½δ*k_p δ (...) [J]."""
        spring = square(np.sqrt(self.stiffness) * self.error(q, v)) / 2
        return np.asarray(self.robot.kinetic_energy(q, v) + spring)


@dataclass(frozen=True, eq=False)
class ComputedTorque(JointLaw):
    """Inverse dynamics of v̇ = k_p δ - k_d v; gains are accelerations per angle or length."""

    name: ClassVar[str] = "computed_torque"

    def pull(self, q: Array) -> Array:
        """𝓜 k_p δ (..., nv)."""
        rest = np.zeros(self.robot.nv)
        return np.asarray(self.demand(q, rest) - self.robot.gravity_force(q))

    def demand(self, q: Array, v: Array) -> Array:
        """𝓜(k_p δ - k_d v) + C v + g(q) (..., nv)."""
        return self.robot.inverse_dynamics(q, v, self._wanted(q, v))

    def lyapunov(self, q: Array, v: Array) -> Array:
        """½v*v + ½δ*k_p δ (...): the energy of oscillators of unit mass."""
        return (square(v) + square(np.sqrt(self.stiffness) * self.error(q, v))) / 2


def pd_gravity(
    robot: Robot,
    goal: Coordinates,
    stiffness: ArrayLike | None = None,
    damping: ArrayLike | None = None,
    *,
    gravity: bool = True,
    limits: ArrayLike | str | None = None,
) -> PDGravity:
    """Springs and dampers at the joints, with gravity compensated.

    Args:
        robot: The robot.
        goal: (..., nq) where it should be.
        stiffness: k_p, a number or (nv,) [N m/rad, N/m], positive; by default ω²𝓜_kk at the goal
            with ω = 5 rad/s.
        damping: k_d, a number or (nv,) [N m s/rad, N s/m], positive; by default the critical one
            of that inertia, 2 sqrt(k_p 𝓜_kk).
        gravity: Add the forces that hold the robot against gravity.
        limits: Bounds of forces, as in ``rate_feedback``.
    """
    place = robot.configuration(goal)
    inertia = np.diagonal(robot.mass_matrix(place), axis1=-2, axis2=-1)
    kp = 25.0 * inertia if stiffness is None else gains(robot, "stiffness", stiffness)
    kd = 2.0 * np.sqrt(kp * inertia) if damping is None else gains(robot, "damping", damping)
    return PDGravity(robot, *bounds(robot, limits), gravity, place, kp, kd)


def computed_torque(
    robot: Robot,
    goal: Coordinates,
    stiffness: ArrayLike = 25.0,
    damping: ArrayLike | None = None,
    *,
    limits: ArrayLike | str | None = None,
) -> ComputedTorque:
    """Inverse dynamics of linear, decoupled errors: δ̈ + k_d δ̇ + k_p δ = 0 at every joint.

    Args:
        robot: The robot.
        goal: (..., nq) where it should be.
        stiffness: k_p, a number or (nv,) [1/s²], positive.
        damping: k_d, a number or (nv,) [1/s]; by default critical, 2 sqrt(k_p).
        limits: Bounds of forces, as in ``rate_feedback``.
    """
    kp = gains(robot, "stiffness", stiffness)
    kd = 2.0 * np.sqrt(kp) if damping is None else gains(robot, "damping", damping)
    return ComputedTorque(robot, *bounds(robot, limits), True, robot.configuration(goal), kp, kd)
