# SPDX-License-Identifier: BSD-3-Clause
"""Laws that bring the joints to a configuration: PD with gravity, and computed torque.

    PD               τ = g(q) + E*k_p δ - k_d v
    computed torque  τ = 𝓜a + Cv + g(q)     with a such that δ̈ + k_d δ̇ + k_p δ = 0

δ = difference(q, goal) is the tangent step to the goal, and E gives its rate: δ̇ = -E v. For joints
with one axis E is the identity and a = k_p δ - k_d v. On ball, free and planar joints E* makes the
pull the gradient of ½δ*k_p δ; without it the law adds energy. There δ is the shortest step: it is
discontinuous at half a turn.

With loops, PD acts at the joints with motors, which also hold gravity. Computed torque makes the
independent coordinates obey the linear equation; the others follow, v̇ = Xv̇_R + x̄.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.actuation import matvec, positive_gains
from phistar.control.law import Law, motors, squared_norm
from phistar.control.loop_states import (
    closes_loops,
    independent_motions,
    inverse_inertia_on_loops,
)
from phistar.derivatives.lie_jacobians import step_adjoint
from phistar.loops.minimal import MinimalCoordinates
from phistar.model.configuration import Coordinates
from phistar.model.joint_physics import Passive
from phistar.reprs import one_line_repr
from phistar.robot import Robot
from phistar.sim.law_calls import LawProgram
from phistar.sim.manifold import is_euclidean, lie_bracket

_HELD = 1e-9
"""Fraction of its own inertia's inverse at which a joint moves, below which the loops hold it."""


@dataclass(frozen=True, eq=False)
class JointLaw(Law):
    """Common base: a goal and gains.

    Attributes:
        goal: (..., nq).
        stiffness: k_p (..., nv).
        damping: k_d (..., nv).
        goal_velocity: (..., nv) of the goal, in its own axes; None: it rests.
        goal_acceleration: (..., nv), the rate of that; None: zero.
    """

    goal: Array
    stiffness: Array
    damping: Array
    goal_velocity: Array | None = field(default=None, kw_only=True)
    goal_acceleration: Array | None = field(default=None, kw_only=True)

    def error(self, q: Array, v: Array) -> Array:
        """δ (..., nv): the tangent step to the goal."""
        return self.robot.difference(q, self.goal)

    def _carried(self, q: Array, x: Array) -> Array:
        """A velocity (..., nv) of the goal in the axes at q."""
        if is_euclidean(self.robot.model):
            return x
        return matvec(step_adjoint(self.robot.model, self.robot.difference(self.goal, q)), x)

    def _relative(self, q: Array, v: Array) -> Array:
        """The velocity (..., nv) less that of the goal: δ̇ = -E of it."""
        if self.goal_velocity is None:
            return v
        return np.asarray(v - self._carried(q, self.goal_velocity))

    def _goal_rates(self, q: Array, v: Array) -> Array | None:
        """The rate (..., nv) of the goal's velocity in the axes at q, which move; None: zero."""
        total: Array | None = None
        if self.goal_acceleration is not None:
            total = self._carried(q, self.goal_acceleration)
        if self.goal_velocity is not None and not is_euclidean(self.robot.model):
            turned = lie_bracket(self.robot.model, v, self._carried(q, self.goal_velocity))
            total = -turned if total is None else total - turned
        return total

    def _goal_numbers(self) -> dict[str, Array | None]:
        """For machine code."""
        names = ("goal", "stiffness", "damping", "goal_velocity", "goal_acceleration")
        return {name: getattr(self, name) for name in names}

    def _step_rate(self, q: Array) -> Array | None:
        """E (..., nv, nv) of δ̇ = -E v; None where it is the identity."""
        if is_euclidean(self.robot.model):
            return None
        # The step to the goal is minus the step from it.
        return self.robot.difference_q(self.goal, q)


@one_line_repr
@dataclass(frozen=True, eq=False)
class PDGravity(JointLaw):
    """τ = g(q) + E*k_p δ - k_d v; gains are forces per angle or length."""

    name: ClassVar[str] = "pd_gravity"

    def pull(self, q: Array) -> Array:
        """E*k_p δ (..., nv), minus the gradient of ½δ*k_p δ."""
        spring = np.asarray(self.stiffness * self.robot.difference(q, self.goal))
        E = self._step_rate(q)
        return spring if E is None else matvec(np.swapaxes(E, -1, -2), spring)

    def require(self, q: Array, v: Array) -> Array:
        """g(q) + E*k_p δ - k_d v (..., nv), v less that of the goal."""
        return self.held(q, self.pull(q) - self.damping * self._relative(q, v))

    def _program(self) -> LawProgram:
        numbers = self._goal_numbers()
        del numbers["goal_acceleration"]
        return self._named("pd", numbers)

    def lyapunov(self, q: Array, v: Array) -> Array:
        """½v*𝓜v + ½δ*k_p δ (...) [J]; its rate is -v*k_d v, v less that of the goal."""
        spring = squared_norm(np.sqrt(self.stiffness) * self.error(q, v)) / 2
        return np.asarray(self.robot.kinetic_energy(q, self._relative(q, v)) + spring)


@one_line_repr
@dataclass(frozen=True, eq=False)
class ComputedTorque(JointLaw):
    """Inverse dynamics of δ̈ + k_d δ̇ + k_p δ = 0; gains are accelerations per angle or length.

    Attributes:
        free: The coordinates that obey the equation, of a robot with loops; None: all.
    """

    name: ClassVar[str] = "computed_torque"
    free: MinimalCoordinates | None = field(default=None, kw_only=True)

    def pull(self, q: Array) -> Array:
        """𝓜E⁻¹k_p δ (..., nv)."""
        zero = np.zeros(self.robot.nv)
        return np.asarray(self.require(q, zero) - self.robot.gravity_force(q))

    def require(self, q: Array, v: Array) -> Array:
        """𝓜a + Cv + g(q) (..., nv), with the acceleration a that makes δ̈ = -k_d δ̇ - k_p δ."""
        if self.free is None:
            return self.robot.inverse_dynamics(q, v, self._acceleration(q, v))
        return self.robot.inverse_dynamics(q, v, self._acceleration_on_loops(self.free, q, v))

    def _program(self) -> LawProgram | None:
        return self._named("computed_torque", self._goal_numbers()) if self.free is None else None

    def _acceleration(self, q: Array, v: Array) -> Array:
        step, E, speed = self.error(q, v), self._step_rate(q), self._relative(q, v)
        if E is None:
            found = np.asarray(self.stiffness * step - self.damping * speed)
        else:
            # -δ = difference(goal, q) has the rate E v and the second rate E a + bias.
            bias = self.robot.difference_bias(self.goal, q, speed)
            right_side = self.stiffness * step - self.damping * matvec(E, speed) - bias
            found = np.asarray(np.linalg.solve(E, right_side[..., None])[..., 0])
        carried = self._goal_rates(q, v)
        return found if carried is None else found + carried

    def _acceleration_on_loops(self, free: MinimalCoordinates, q: Array, v: Array) -> Array:
        """Xv̇_R + x̄ (..., nv), v̇_R such that the independent entries of δ obey the equation."""
        step, E, speed = self.error(q, v), self._step_rate(q), self._relative(q, v)
        X, rest = independent_motions(self.robot, free.entries, q, v)
        carried = self._goal_rates(q, v)
        drift, rate = rest if carried is None else rest - carried, X
        if E is not None:
            drift = matvec(E, drift) + self.robot.difference_bias(self.goal, q, speed)
            speed, rate = matvec(E, speed), E @ X
        right_side = self.stiffness * step - self.damping * speed - drift
        chosen = rate[..., free.entries, :], right_side[..., free.entries, None]
        return np.asarray(matvec(X, np.linalg.solve(*chosen)[..., 0]) + rest)

    def lyapunov(self, q: Array, v: Array) -> Array:
        """½δ̇*δ̇ + ½δ*k_p δ (...), oscillators of unit mass; its rate is -δ̇*k_d δ̇.

        With loops of independent coordinates.
        """
        E, speed = self._step_rate(q), self._relative(q, v)
        speed = speed if E is None else matvec(E, speed)
        spring = np.sqrt(self.stiffness) * self.error(q, v)
        if self.free is not None:
            speed, spring = speed[..., self.free.entries], spring[..., self.free.entries]
        return (squared_norm(speed) + squared_norm(spring)) / 2


def pd_gravity(
    robot: Robot,
    goal: Coordinates,
    stiffness: ArrayLike | None = None,
    damping: ArrayLike | None = None,
    *,
    gravity: bool = True,
    actuated: Sequence[str] | None = None,
    limits: ArrayLike | str | None = None,
    passive: Passive = False,
) -> PDGravity:
    """Springs and dampers at the joints, with gravity compensation.

    ½v*𝓜v + ½δ*k_p δ decreases at the rate v*k_d v, δ = ``robot.difference(q, goal)``, on joints of
    every kind. With loops, of the joints that have motors.

    Args:
        robot: The robot.
        goal: (..., nq) goal configuration.
        stiffness: k_p, a number or (nv,) [N m/rad, N/m], positive; by default ω²𝓜_kk at the goal
            with ω = 5 rad/s. With loops the inertia is that of moving joint k along them.
        damping: k_d, a number or (nv,) [N m s/rad, N s/m], positive; by default the critical one
            of that inertia, 2 sqrt(k_p 𝓜_kk).
        gravity: Add the forces that hold the robot against gravity.
        actuated: Names of the joints that have motors, of a robot with loops; by default all.
        limits: Bounds of forces, as in ``rate_feedback``.
        passive: Forces of the joints themselves that the motors make up for: True, or some of
            ``"springs"``, ``"damping"``, ``"friction"``; by default the law knows of none.
    """
    goal_q = robot.configuration(goal)
    inertia = _joint_inertia(robot, goal_q)
    kp = 25.0 * inertia if stiffness is None else positive_gains(robot, "stiffness", stiffness)
    kd = (
        2.0 * np.sqrt(kp * inertia)
        if damping is None
        else positive_gains(robot, "damping", damping)
    )
    found = motors(robot, limits, actuated)
    kp, kd = kp * found.driven, kd * found.driven
    return PDGravity(
        robot,
        *found.bounds,
        gravity,
        goal_q,
        kp,
        kd,
        actuation=found.actuation,
        passive=passive,
    )


def _joint_inertia(robot: Robot, q: Array) -> Array:
    """𝓜_kk (..., nv); with loops 1 over the acceleration of joint k by its own unit force."""
    inertia = np.diagonal(robot.mass_matrix(q), axis1=-2, axis2=-1)
    if not closes_loops(robot):
        return inertia
    yielding = np.diagonal(inverse_inertia_on_loops(robot, q), axis1=-2, axis2=-1)
    moves = yielding * inertia > _HELD
    return np.where(moves, 1.0 / np.where(moves, yielding, 1.0), inertia)


def computed_torque(
    robot: Robot,
    goal: Coordinates,
    stiffness: ArrayLike = 25.0,
    damping: ArrayLike | None = None,
    *,
    actuated: Sequence[str] | None = None,
    limits: ArrayLike | str | None = None,
    passive: Passive = False,
) -> ComputedTorque:
    """Inverse dynamics of linear, decoupled errors: δ̈ + k_d δ̇ + k_p δ = 0 at every joint.

    δ = ``robot.difference(q, goal)``, on joints of every kind; ball, free and planar joints must
    stay within half a turn of the goal, where the shortest step is discontinuous. With loops the
    coordinates of ``robot.minimal(goal)`` obey it, as long as they stay independent.

    Args:
        robot: The robot.
        goal: (..., nq) goal configuration; (nq,), on the loops, if the robot has any.
        stiffness: k_p, a number or (nv,) [1/s²], positive.
        damping: k_d, a number or (nv,) [1/s]; by default critical, 2 sqrt(k_p).
        actuated: Names of the joints that have motors, of a robot with loops; by default all.
        limits: Bounds of forces, as in ``rate_feedback``.
        passive: Forces of the joints themselves that the motors make up for: True, or some of
            ``"springs"``, ``"damping"``, ``"friction"``; by default the law knows of none.
    """
    kp = positive_gains(robot, "stiffness", stiffness)
    kd = 2.0 * np.sqrt(kp) if damping is None else positive_gains(robot, "damping", damping)
    found, goal_q = motors(robot, limits, actuated), robot.configuration(goal)
    free = robot.minimal(goal_q) if closes_loops(robot) else None
    return ComputedTorque(
        robot,
        *found.bounds,
        True,
        goal_q,
        kp,
        kd,
        actuation=found.actuation,
        passive=passive,
        free=free,
    )
