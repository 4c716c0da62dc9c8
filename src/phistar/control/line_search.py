# SPDX-License-Identifier: BSD-3-Clause
"""The forward pass of iLQR: motions under improved forces, several step lengths at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.control.actuation import matvec, state_error
from phistar.control.backward import Gains
from phistar.control.cost import Cost
from phistar.control.loop_states import closes_loops
from phistar.control.user_cost import checked_value
from phistar.errors import SampleError
from phistar.model.joint_physics import Passive

STEP_FRACTIONS = 0.5 ** np.arange(10.0)
"""Fractions of a step that are tried, all in one batch."""
_MIN_DECREASE_SHARE = 1e-4
"""Fraction of the predicted decrease of the cost that must be reached."""
_MAX_STATE = 1e8
"""States beyond this count as diverged."""


@dataclass
class TrajectoryBatch:
    """Motions of a batch of problems; time first, then the problems.

    Attributes:
        q: (N + 1, B, nq).
        v: (N + 1, B, nv).
        u: (N, B, nu).
        cost: (B,), infinite where a motion diverges.
    """

    q: Array
    v: Array
    u: Array
    cost: Array

    def at(self, chosen: Array) -> TrajectoryBatch:
        """The motions of some problems."""
        return TrajectoryBatch(
            self.q[:, chosen], self.v[:, chosen], self.u[:, chosen], self.cost[chosen]
        )

    def put(self, chosen: Array, other: TrajectoryBatch) -> None:
        """Replace the motions of some problems."""
        self.q[:, chosen], self.v[:, chosen] = other.q, other.v
        self.u[:, chosen], self.cost[chosen] = other.u, other.cost


def roll_out(
    cost: Cost,
    nominal: TrajectoryBatch,
    gains: Gains,
    dt: float,
    bounds: tuple[Array, Array],
    lengths: Array = STEP_FRACTIONS,
    passive: Passive = False,
) -> TrajectoryBatch:
    """Motions for every step length; its axis follows that of time."""
    actuation, robot = cost.actuation, cost.actuation.robot
    steps, problems, size = nominal.u.shape
    batch = (len(lengths), problems)
    q, v = np.empty((steps + 1, *batch, robot.nq)), np.empty((steps + 1, *batch, robot.nv))
    u = np.empty((steps, *batch, size))
    q[0], v[0] = nominal.q[0], nominal.v[0]
    lost = np.zeros(batch, dtype=bool)
    closed = closes_loops(robot)
    for i in range(steps):
        error = state_error(robot, nominal.q[i], nominal.v[i], q[i], v[i])
        force = nominal.u[i] + lengths[:, None, None] * gains.k[i] - matvec(gains.K[i], error)
        u[i] = np.clip(force, *bounds)
        if closed:
            try:
                tau = actuation.spread(u[i])
                if passive is not False:
                    tau = tau + robot.passive_force(q[i], v[i], passive=passive, on_error="nan")
                q[i + 1], v[i + 1] = robot.step(
                    q[i], v[i], tau, dt, "semi_implicit", passive=False, on_error="nan"
                )
            except SampleError:
                if i == 0:  # the user's own start
                    raise
                v[i + 1] = np.nan  # all have left the loops
        else:
            vdot = robot.forward_dynamics(
                q[i], v[i], actuation.spread(u[i]), passive=passive, on_error="nan"
            )
            v[i + 1] = v[i] + dt * vdot
        # A diverged motion continues from the nominal one, so that the others can finish.
        diverged = ~(np.abs(v[i + 1]) < _MAX_STATE).all(axis=-1)
        if diverged.any():
            v[i + 1] = np.where(diverged[..., None], nominal.v[i + 1], v[i + 1])
            q[i + 1] = np.where(diverged[..., None], nominal.q[i + 1], q[i + 1])
            lost |= diverged
        if not closed:
            q[i + 1] = robot.integrate(q[i], dt * v[i + 1])
    total = np.where(lost, np.inf, checked_value(cost, q, v, u, dt))
    return TrajectoryBatch(q, v, u, total)


def search(
    cost: Cost,
    nominal: TrajectoryBatch,
    gains: Gains,
    dt: float,
    bounds: tuple[Array, Array],
    passive: Passive = False,
) -> tuple[TrajectoryBatch, Array]:
    """The best motion of each problem over the step lengths, and whether it is an improvement."""
    tried = roll_out(cost, nominal, gains, dt, bounds, passive=passive)
    problems = np.arange(nominal.u.shape[1])
    best = np.argmin(tried.cost, axis=0)
    chosen = TrajectoryBatch(
        tried.q[:, best, problems],
        tried.v[:, best, problems],
        tried.u[:, best, problems],
        tried.cost[best, problems],
    )
    length = STEP_FRACTIONS[best]
    expected = -(length * gains.slope + length**2 * gains.curve)
    gain = nominal.cost - chosen.cost
    return chosen, (gain > 0) & (gain >= _MIN_DECREASE_SHARE * expected)
