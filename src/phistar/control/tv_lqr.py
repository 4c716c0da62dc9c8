# SPDX-License-Identifier: BSD-3-Clause
"""Linear-quadratic tracking of a trajectory: gains of every step, from its end backward.

The trajectory is linearized in one batched call, with exact derivatives of the steps; then the
Riccati difference equation runs from the last knot to the first. Weights are per second, as in
``lqr``; the final weight is not. Robots with loops are tracked in coordinates that are independent
at each knot; gains for dependent ones are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.actuation import Actuation, state_error, weight_matrix
from phistar.control.feedback import Feedback
from phistar.control.loop_states import closes_loops, loop_states, reduced_weight
from phistar.control.loop_steps import reduced_steps
from phistar.control.trajectory import Trajectory
from phistar.model.joint_physics import Passive
from phistar.reprs import one_line_repr
from phistar.robot import Robot


@one_line_repr
@dataclass(frozen=True, kw_only=True)
class Tracker(Feedback):
    """Feedback along a trajectory with its cost to go.

    Attributes:
        S: (N + 1, ..., 2 nv, 2 nv); e·S[k] e is the cost from an error e at knot k to the end, to
            second order.
        defect: Largest error of one step of the robot against the next knot; zero for a trajectory
            that was simulated with the same steps.
    """

    S: Array
    defect: float


def tv_lqr(
    robot: Robot,
    trajectory: Trajectory,
    Q: ArrayLike = 1.0,
    R: ArrayLike = 1.0,
    Q_final: ArrayLike | None = None,
    *,
    actuated: Sequence[str] | None = None,
    limits: ArrayLike | str | None = None,
    passive: Passive = False,
) -> Tracker:
    """Time-varying gains that keep a robot on a trajectory.

    Args:
        robot: The robot.
        trajectory: The nominal motion, in steps of one length; batch axes are allowed. Its knots
            are on the loops of a robot that has some.
        Q: Weight of errors (δq, δv): a number, (2 nv,) or (2 nv, 2 nv), semidefinite; with loops it
            counts errors along them.
        R: Weight of added forces: a number, (nu,) or (nu, nu), positive definite.
        Q_final: Weight of the error at the end, as Q; by default Q times one second.
        actuated: Names of the joints that have motors; by default all.
        limits: Bounds of forces: a number, (nu,), (2, nu) as lower and upper, or ``"robot"`` for
            those of its file; the forces are clipped to them.
        passive: As in ``robot.discretize``: springs, damping and sliding friction of the joints, if
            wanted.

    Raises:
        LoopOpenError, LoopVelocityError: A knot is not on the loops.
    """
    actuation = Actuation.of(robot, actuated)
    Q = weight_matrix(Q, 2 * robot.nv, "Q")
    R = weight_matrix(R, actuation.size, "R", definite=True)
    end = Q if Q_final is None else weight_matrix(Q_final, 2 * robot.nv, "Q_final")
    if closes_loops(robot):
        bounds = actuation.bounds(limits)
        return _track_on_loops(actuation, trajectory, Q, R, end, bounds, passive)
    lower, upper = actuation.bounds(limits)
    dt, at = trajectory.dt, trajectory
    step = robot.discretize(at.q[:-1], at.v[:-1], at.tau, dt, passive=passive)
    K, S = riccati(step.A, step.B[..., actuation.columns], dt * Q, dt * R, end)
    missed = state_error(robot, at.q[1:], at.v[1:], step.q, step.v)
    defect = float(np.abs(missed).max())
    return Tracker(actuation, at, K, lower, upper, S=S, defect=defect)


def _track_on_loops(
    actuation: Actuation,
    at: Trajectory,
    Q: Array,
    R: Array,
    end: Array,
    bounds: tuple[Array | None, Array | None],
    passive: Passive,
) -> Tracker:
    robot, dt = actuation.robot, at.dt
    knots = loop_states(robot, at.q, at.v)
    step = reduced_steps(
        robot, at.q[:-1], at.v[:-1], at.tau, dt, knots.at(slice(-1)), knots.entries[1:], passive
    )
    weights = reduced_weight(knots.at(slice(-1)), dt * Q, "Q")
    final = reduced_weight(knots.at(slice(-1, None)), end, "Q_final")[0]
    K, S = riccati(step.A, step.B[..., actuation.columns], weights, dt * R, final)
    pick = knots.pick
    K, S = K @ pick[:-1], np.swapaxes(pick, -1, -2) @ S @ pick
    missed = state_error(robot, at.q[1:], at.v[1:], step.q, step.v)
    return Tracker(actuation, at, K, *bounds, S=S, defect=float(np.abs(missed).max()))


def riccati(A: Array, B: Array, Q: Array, R: Array, end: Array) -> tuple[Array, Array]:
    """Gains (N, ..., nu, n) and costs (N + 1, ..., n, n) of linear steps x' = A x + B u.

    Args:
        A: (N, ..., n, n).
        B: (N, ..., n, nu).
        Q: Weight of the states of a step, (n, n), or (N, ..., n, n) of each.
        R: Weight of the forces of a step.
        end: Weight at the end, (n, n) or (..., n, n).
    """
    Q = np.broadcast_to(Q, A.shape)
    K = np.empty((*A.shape[:-2], B.shape[-1], A.shape[-1]))
    S = np.empty((len(A) + 1, *A.shape[1:]))
    S[-1] = end
    for k in range(len(A) - 1, -1, -1):
        B_T_S = np.swapaxes(B[k], -1, -2) @ S[k + 1]
        K[k] = np.linalg.solve(R + B_T_S @ B[k], B_T_S @ A[k])
        closed = A[k] - B[k] @ K[k]
        # Joseph's form: symmetric and semidefinite whatever the rounding of K.
        force_cost = np.swapaxes(K[k], -1, -2) @ R @ K[k]
        S[k] = Q[k] + force_cost + np.swapaxes(closed, -1, -2) @ S[k + 1] @ closed
    return K, S
