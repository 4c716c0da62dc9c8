# SPDX-License-Identifier: BSD-3-Clause
"""Inverse dynamics fed forward, linearized inverse dynamics fed back.

    τ = τ(q₀, v₀, v̇₀) + τ_q δq + τ_v δv - 𝓜 (k_p δq + k_d δv)

The first three terms are inverse dynamics of the robot as it is, to first order, so errors obey δv̇
= -k_p δq - k_d δv, the same at every joint and every knot. All matrices belong to the nominal
motion and are computed before it starts, in one batched call; each step is a matrix-vector product.

With loops, independent coordinates obey the same: δτ are the shortest efforts of the motors with
δv̇_R = -k_p δq_R - k_d δv_R in the linearization along the loops.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.actuation import Actuation, positive_gains
from phistar.control.feedback import Feedback
from phistar.control.loop_states import closes_loops, loop_states, require_driven
from phistar.control.trajectory import Trajectory
from phistar.errors import ArgumentError, ShapeError
from phistar.model.joint_physics import Passive
from phistar.robot import Robot


def feedforward(
    robot: Robot,
    trajectory: Trajectory,
    vdot: ArrayLike,
    stiffness: ArrayLike = 100.0,
    damping: ArrayLike | None = None,
    *,
    actuated: Sequence[str] | None = None,
    limits: ArrayLike | str | None = None,
    passive: Passive = False,
) -> Feedback:
    """Feed-forward by inverse dynamics with linear feedback.

    Args:
        robot: The robot.
        trajectory: The nominal motion; its ``tau`` is replaced by inverse dynamics.
        vdot: (N + 1, ..., nv) or (N, ..., nv) accelerations of the nominal motion.
        stiffness: k_p, a number or (nv,) [1/s^2], positive.
        damping: k_d, a number or (nv,) [1/s]; by default critical, 2 sqrt(k_p).
        actuated: Names of the joints that have motors; by default all. Without loops every joint
            must have one.
        limits: Bounds of forces: a number, (nu,), (2, nu) as lower and upper, or ``"robot"`` for
            those of its file; the forces are clipped to them.
        passive: Forces of the joints themselves that the motors make up for, as in
            ``robot.linearize_inverse``: springs, damping and sliding friction, if wanted.

    Returns:
        The policy; its ``trajectory.tau`` is the feed-forward.

    Raises:
        UnderactuatedError: The motors cannot drive the motion, or not every motion near it.
    """
    actuation = Actuation.of(robot, actuated)
    lower, upper = actuation.bounds(limits)
    kp = positive_gains(robot, "stiffness", stiffness)
    kd = 2.0 * np.sqrt(kp) if damping is None else positive_gains(robot, "damping", damping)
    steps, rates = trajectory.steps, np.asarray(vdot, dtype=float)
    if len(rates) not in (steps, steps + 1):
        raise ShapeError("vdot", rates.shape, f"({steps}, ..., {robot.nv})", "the trajectory")
    if closes_loops(robot):
        bounds = (lower, upper)
        return _on_loops(actuation, trajectory, rates[:steps], kp, kd, bounds, passive)
    if actuation.size < robot.nv:
        raise ArgumentError(
            f"feedforward of robot '{robot.name}': it has no loops, so every joint needs a motor; "
            "tv_lqr tracks with fewer"
        )
    at = robot.linearize_inverse(
        trajectory.q[:-1], trajectory.v[:-1], rates[:steps], passive=passive
    )
    position = at.tau_vdot * kp - at.tau_q
    velocity = at.tau_vdot * kd - at.tau_v
    nominal = Trajectory(trajectory.t, trajectory.q, trajectory.v, at.tau)
    K = np.concatenate([position, velocity], axis=-1)
    return Feedback(actuation, nominal, K, lower, upper)


def _on_loops(
    actuation: Actuation,
    motion: Trajectory,
    vdot: Array,
    kp: Array,
    kd: Array,
    bounds: tuple[Array | None, Array | None],
    passive: Passive,
) -> Feedback:
    robot, q, v = actuation.robot, motion.q[:-1], motion.v[:-1]
    wanted = robot.constrained_inverse_dynamics(
        q, v, vdot, actuated=actuation.names, passive=passive
    )
    at, states = robot.linearize(q, v, wanted.tau, passive=passive), loop_states(robot, q, v)
    n = states.X.shape[-1]
    pick = states.pick
    rates = np.concatenate([at.vdot_q, at.vdot_v], axis=-1) @ states.expand
    chosen = np.swapaxes(pick[..., :n, : robot.nv], -1, -2)
    stiff, damped = (np.take(gains, states.entries)[..., None] * np.eye(n) for gains in (kp, kd))
    needed = np.concatenate([stiff, damped], axis=-1) + np.swapaxes(chosen, -1, -2) @ rates
    drive = (np.swapaxes(chosen, -1, -2) @ at.vdot_tau)[..., actuation.columns]
    require_driven(actuation, states.X)
    K = np.linalg.pinv(drive, rcond=1e-10) @ needed @ pick
    nominal = Trajectory(motion.t, motion.q, motion.v, wanted.tau)
    return Feedback(actuation, nominal, K, *bounds)
