# SPDX-License-Identifier: BSD-3-Clause
"""Costs of motions and their second-order expansions, for all knots at once.

    Σ_k dt/2 (e·Q e + (u - u₀)·R (u - u₀) + Σ f·W f) + 1/2 (e·Q_final e + Σ f·W_final f) at the end

e = (δq, δv) is the error of a state against the goal, f that of a frame. Expansions are along
tangent steps of q; second derivatives are Gauss-Newton, so positive semidefinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.actuation import Actuation, matvec, state_error, weight_matrix
from phistar.control.loop_states import holding_force
from phistar.errors import ArgumentError, ShapeError
from phistar.model.configuration import Coordinates
from phistar.reprs import brief, one_line_repr
from phistar.robot import Robot
from phistar.spatial import log_so3, skew


@one_line_repr
@dataclass(frozen=True)
class Expansion:
    """Derivatives of a cost at the knots of motions.

    Attributes:
        x: (N + 1, ..., 2 nv) gradient along (δq, δv).
        xx: (N + 1, ..., 2 nv, 2 nv).
        u: (N, ..., nu).
        uu: (N, ..., nu, nu), positive definite.
    """

    x: Array
    xx: Array
    u: Array
    uu: Array


class Cost(Protocol):
    """A cost for ``ilqr``; write your own with these three, and test it by ``check_cost``.

    Batch axes may follow that of time, ``q`` (N + 1, ..., nq), for starts and step lengths: sum
    over the first axis and the last, and keep the others.
    """

    @property
    def actuation(self) -> Actuation:
        """The robot and the joints that are driven: ``control.Actuation.of(robot, names)``."""

    def value(self, q: Array, v: Array, u: Array, dt: float) -> Array:
        """(...) of motions q (N + 1, ..., nq), v (N + 1, ..., nv) under forces u (N, ..., nu)."""

    def expansion(self, q: Array, v: Array, u: Array, dt: float) -> Expansion:
        """The derivatives of ``value`` at every knot."""


class FrameGoal:
    """Goal of a frame, with the error f = (rotation vector, difference of positions).

    Args:
        frame: Its name.
        target: World position (3,), or pose (4, 4).
        weight: Weight per second: a number, or one per entry of f, 3 or 6 of them.
        final: Weight at the end, in the same forms; by default one second of ``weight``.
    """

    def __init__(
        self, frame: str, target: ArrayLike, weight: ArrayLike = 1.0, final: ArrayLike | None = None
    ) -> None:
        goal = np.asarray(target, dtype=float)
        if goal.shape not in ((3,), (4, 4)):
            raise ShapeError("target", goal.shape, "(3,) or (4, 4)", f"frame '{frame}'")
        self.frame = frame
        self.turns = goal.shape == (4, 4)
        self.position = goal[:3, 3] if self.turns else goal
        self.rotation = goal[:3, :3] if self.turns else np.eye(3)
        size = 6 if self.turns else 3
        self.weight = weight_matrix(weight, size, "weight")
        self.final = self.weight if final is None else weight_matrix(final, size, "final")

    def __repr__(self) -> str:
        what = "pose" if self.turns else "position"
        return f"<FrameGoal: {what} of '{self.frame}' at {brief(self.position)}>"

    def error(self, robot: Robot, q: Array) -> Array:
        """f, (..., 3) or (..., 6)."""
        pose = robot.frame_pose(q, self.frame)
        offset = pose[..., :3, 3] - self.position
        if not self.turns:
            return np.asarray(offset)
        return np.concatenate([log_so3(self.rotation.T @ pose[..., :3, :3]), offset], axis=-1)

    def derivative(self, robot: Robot, q: Array, error: Array) -> Array:
        """(..., 3 or 6, nv) of f along tangent steps of q."""
        jacobian = robot.jacobian(q, self.frame)
        if not self.turns:
            return jacobian[..., 3:, :]
        axes = np.swapaxes(robot.frame_pose(q, self.frame)[..., :3, :3], -1, -2)
        turning = _log_derivative(error[..., :3]) @ axes @ jacobian[..., :3, :]
        return np.concatenate([turning, jacobian[..., 3:, :]], axis=-2)


def _log_derivative(rotation_vector: Array) -> Array:
    """Derivative (..., 3, 3) of a rotation vector along rotations about the rotated axes."""
    angle = np.linalg.norm(rotation_vector, axis=-1)[..., None, None]
    safe = np.where(angle > 1e-3, angle, 1.0)
    exact = 1.0 / safe**2 - 0.5 / (safe * np.tan(safe / 2.0))
    factor = np.where(angle > 1e-3, exact, 1.0 / 12.0 + angle**2 / 720.0)
    cross = skew(rotation_vector)
    return np.asarray(np.eye(3) + 0.5 * cross + factor * (cross @ cross))


class QuadraticCost:
    """Squares of errors and forces.

    Args:
        robot: The robot.
        q: Goal (nq,), or one for each knot (N + 1, nq); on the loops of a robot that has some,
            unless ``tau`` is given.
        Q: Weight per second of errors (δq, δv): a number, (2 nv,) or (2 nv, 2 nv).
        R: Weight per second of forces: a number, (nu,) or (nu, nu), positive definite.
        Q_final: Weight of the error at the end; by default one second of Q.
        v: Velocity at the goal, (nv,) or (N + 1, nv); by default zero.
        tau: Forces without cost, (nv,) or (N, nv); by default those against gravity at q, with
            loops the shortest efforts of the motors.
        frames: Goals of frames.
        actuated: Names of the joints that have motors; by default all.
    """

    def __init__(
        self,
        robot: Robot,
        q: Coordinates,
        Q: ArrayLike = 1.0,
        R: ArrayLike = 1.0,
        Q_final: ArrayLike | None = None,
        *,
        v: Coordinates | None = None,
        tau: Coordinates | None = None,
        frames: Sequence[FrameGoal] = (),
        actuated: Sequence[str] | None = None,
    ) -> None:
        self.actuation = Actuation.of(robot, actuated)
        self.Q = weight_matrix(Q, 2 * robot.nv, "Q")
        self.R = weight_matrix(R, self.actuation.size, "R", definite=True)
        end = self.Q if Q_final is None else weight_matrix(Q_final, 2 * robot.nv, "Q_final")
        self.Q_final = end
        self.goal_q = robot.configuration(q)
        self.goal_v = np.zeros(robot.nv) if v is None else robot.tangent(v)
        if tau is None:
            free = holding_force(self.actuation, self.goal_q)
            free = free[:-1] if free.ndim > 1 else free
        else:
            free = robot.tangent(tau)
        self.goal_u = self.actuation.pick(free)
        self.frames = tuple(frames)
        for goal in self.frames:
            robot.frames[goal.frame]

    def __repr__(self) -> str:
        names = ("goal_q", "goal_v", "Q", "R", "Q_final")
        texts = [f"{name} {brief(getattr(self, name))}" for name in names]
        texts += [f"frames {', '.join(goal.frame for goal in self.frames)}"] if self.frames else []
        return f"<QuadraticCost: {self.actuation}, {', '.join(texts)}>"

    def value(self, q: Array, v: Array, u: Array, dt: float) -> Array:
        """Cost (...) of motions."""
        error, force_error = self._errors(q, v, u)
        total = dt / 2 * _square(force_error, self.R).sum(axis=0)
        total += _total(error, self.Q, self.Q_final, dt)
        for goal in self.frames:
            missed = goal.error(self.actuation.robot, q)
            total += _total(missed, goal.weight, goal.final, dt)
        return np.asarray(total)

    def expansion(self, q: Array, v: Array, u: Array, dt: float) -> Expansion:
        """The derivatives of ``value`` at every knot."""
        robot, n = self.actuation.robot, self.actuation.robot.nv
        error, force_error = self._errors(q, v, u)
        change = np.zeros((*error.shape, 2 * n))
        change[..., :n, :n] = robot.difference_q(_along(self.goal_q, q), q)
        change[..., n:, n:] = np.eye(n)
        x, xx = _expand(error, change, self.Q, self.Q_final, dt)
        for goal in self.frames:
            missed = goal.error(robot, q)
            more = _expand(missed, goal.derivative(robot, q, missed), goal.weight, goal.final, dt)
            x[..., :n] += more[0]
            xx[..., :n, :n] += more[1]
        uu = np.broadcast_to(dt * self.R, (*u.shape, u.shape[-1]))
        return Expansion(x, xx, dt * matvec(self.R, force_error), uu)

    def _errors(self, q: Array, v: Array, u: Array) -> tuple[Array, Array]:
        goal_q, goal_v = _along(self.goal_q, q), _along(self.goal_v, v)
        error = state_error(self.actuation.robot, goal_q, goal_v, q, v)
        return error, u - _along(self.goal_u, u)


def _along(goal: Array, motion: Array) -> Array:
    """A goal (n,) or (knots, n) that broadcasts with motions (knots, ..., n)."""
    if goal.ndim == 1:
        return goal
    if goal.ndim > 2 or len(goal) != len(motion):
        raise ArgumentError(
            f"a goal has shape {goal.shape}, expected ({motion.shape[-1]},) or one for each knot, "
            f"({len(motion)}, {motion.shape[-1]})"
        )
    return goal.reshape(len(goal), *(1,) * (motion.ndim - 2), goal.shape[-1])


def _square(x: Array, weight: Array) -> Array:
    return np.asarray((matvec(weight, x) * x).sum(axis=-1))


def _total(error: Array, weight: Array, final: Array, dt: float) -> Array:
    return np.asarray(
        dt / 2 * _square(error[:-1], weight).sum(axis=0) + _square(error[-1], final) / 2
    )


def _expand(
    error: Array, change: Array, weight: Array, final: Array, dt: float
) -> tuple[Array, Array]:
    """Gradient and Gauss-Newton matrix of the squares of an error that changes by ``change``."""
    weights = np.broadcast_to(dt * weight, (len(error), *weight.shape)).copy()
    weights[-1] = final
    weights = weights.reshape(len(error), *(1,) * (error.ndim - 2), *weight.shape)
    transposed = np.swapaxes(change, -1, -2)
    weighed = weights @ change
    return matvec(transposed, matvec(weights, error)), transposed @ weighed
