# SPDX-License-Identifier: BSD-3-Clause
"""Second derivatives of the steps of a motion, times costates: what DDP adds to iLQR."""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.control.actuation import Actuation


def dynamics_hessian_times_costate(
    actuation: Actuation, q: Array, v: Array, u: Array, costate: Array, dt: float
) -> Array:
    """(N, B, n + m, n + m) of costate · (q', v') along (δq, δv, δu), in one batched call.

    v' = v + dt v̇ and q' = q + dt v' have the second derivatives of v̇, for euclidean joints.

    Args:
        actuation: The robot, and the joints of u.
        q: (N + 1, B, nq).
        v: (N + 1, B, nv).
        u: (N, B, m).
        costate: (N + 1, B, n), n = 2 nv.
        dt: Length of a step [s].
    """
    robot, nv = actuation.robot, actuation.robot.nv
    weights = dt * (costate[1:, :, nv:] + dt * costate[1:, :, :nv])
    size = 2 * nv + actuation.size
    units = np.zeros((size, 3 * nv))
    units[range(size), [*range(2 * nv), *(2 * nv + actuation.columns)]] = 1.0
    dq, dv, dtau = np.split(units[:, None, None, :], 3, axis=-1)
    tau = actuation.spread(u)
    products = robot.hvp("forward_dynamics", q[:-1], v[:-1], tau, weights, dq=dq, dv=dv, dtau=dtau)
    blocks = (products["q"], products["v"], actuation.pick(products["tau"]))
    rows = [np.broadcast_to(x, (size, *u.shape[:2], x.shape[-1])) for x in blocks]
    result = np.moveaxis(np.concatenate(rows, axis=-1), 0, -2)
    return np.asarray((result + np.swapaxes(result, -1, -2)) / 2)
