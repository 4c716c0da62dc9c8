# SPDX-License-Identifier: BSD-3-Clause
"""Inverse dynamics fed forward, linearized inverse dynamics fed back.

    τ = τ(q₀, v₀, v̇₀) + τ_q δq + τ_v δv - 𝓜 (k_p δq + k_d δv)

The first three terms are inverse dynamics of the robot as it is, to first order, so errors obey δv̇
= -k_p δq - k_d δv, the same at every joint and every knot. All matrices belong to the nominal
motion and are computed before it starts, in one batched call; each step is a matrix-vector product.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phistar.control.actuation import Actuation, positive_gains
from phistar.control.feedback import Feedback
from phistar.control.trajectory import Trajectory
from phistar.errors import ShapeError
from phistar.robot import Robot


def feedforward(
    robot: Robot,
    trajectory: Trajectory,
    vdot: ArrayLike,
    stiffness: ArrayLike = 100.0,
    damping: ArrayLike | None = None,
    *,
    limits: ArrayLike | str | None = None,
) -> Feedback:
    """Feed-forward by inverse dynamics with linear feedback; every joint has a motor.

    Args:
        robot: The robot.
        trajectory: The nominal motion; its ``tau`` is replaced by inverse dynamics.
        vdot: (N + 1, ..., nv) or (N, ..., nv) accelerations of the nominal motion.
        stiffness: k_p, a number or (nv,) [1/s^2], positive.
        damping: k_d, a number or (nv,) [1/s]; by default critical, 2 sqrt(k_p).
        limits: Bounds of forces: a number, (nv,), (2, nv) as lower and upper, or ``"robot"`` for
            those of its file; the forces are clipped to them.

    Returns:
        The policy; its ``trajectory.tau`` is the feed-forward.
    """
    actuation = Actuation.of(robot, None)
    lower, upper = actuation.bounds(limits)
    kp = positive_gains(robot, "stiffness", stiffness)
    kd = 2.0 * np.sqrt(kp) if damping is None else positive_gains(robot, "damping", damping)
    steps, rates = trajectory.steps, np.asarray(vdot, dtype=float)
    if len(rates) not in (steps, steps + 1):
        raise ShapeError("vdot", rates.shape, f"({steps}, ..., {robot.nv})", "the trajectory")
    at = robot.linearize_inverse(trajectory.q[:-1], trajectory.v[:-1], rates[:steps])
    position = at.tau_vdot * kp - at.tau_q
    velocity = at.tau_vdot * kd - at.tau_v
    nominal = Trajectory(trajectory.t, trajectory.q, trajectory.v, at.tau)
    K = np.concatenate([position, velocity], axis=-1)
    return Feedback(actuation, nominal, K, lower, upper)
