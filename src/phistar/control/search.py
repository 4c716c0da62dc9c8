# SPDX-License-Identifier: BSD-3-Clause
"""The forward pass of iLQR: motions under improved forces, several lengths of step at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.control.backward import Gains
from phistar.control.cost import Cost
from phistar.control.setting import state_error, times

Array = NDArray[Any]

LENGTHS = 0.5 ** np.arange(10.0)
"""Fractions of a step that are tried, all in one batch."""
_ENOUGH = 1e-4
"""Share of the expected decrease of the cost that must be reached."""
_FAR = 1e8
"""States beyond this are given up."""


@dataclass
class Motions:
    """Motions of a batch of problems; time first, then the problems.

    Attributes:
        q: (N + 1, B, nq).
        v: (N + 1, B, nv).
        u: (N, B, nu).
        cost: (B,), infinite where a motion runs away.
    """

    q: Array
    v: Array
    u: Array
    cost: Array

    def at(self, chosen: Array) -> Motions:
        """The motions of some problems."""
        return Motions(self.q[:, chosen], self.v[:, chosen], self.u[:, chosen], self.cost[chosen])

    def put(self, chosen: Array, other: Motions) -> None:
        """Replace the motions of some problems."""
        self.q[:, chosen], self.v[:, chosen] = other.q, other.v
        self.u[:, chosen], self.cost[chosen] = other.u, other.cost


def run(
    cost: Cost,
    nominal: Motions,
    gains: Gains,
    dt: float,
    bounds: tuple[Array, Array],
    lengths: Array = LENGTHS,
) -> Motions:
    """Motions for every length of step; their arrays have an axis for it after that of time."""
    actuation, robot = cost.actuation, cost.actuation.robot
    steps, problems, size = nominal.u.shape
    batch = (len(lengths), problems)
    q, v = np.empty((steps + 1, *batch, robot.nq)), np.empty((steps + 1, *batch, robot.nv))
    u = np.empty((steps, *batch, size))
    q[0], v[0] = nominal.q[0], nominal.v[0]
    lost = np.zeros(batch, dtype=bool)
    for i in range(steps):
        error = state_error(robot, nominal.q[i], nominal.v[i], q[i], v[i])
        push = nominal.u[i] + lengths[:, None, None] * gains.k[i] - times(gains.K[i], error)
        u[i] = np.clip(push, *bounds)
        vdot = robot.forward_dynamics(q[i], v[i], actuation.spread(u[i]))
        v[i + 1] = v[i] + dt * vdot
        # A motion that runs away goes on from the nominal one, so that the others can finish.
        away = ~(np.abs(v[i + 1]) < _FAR).all(axis=-1)
        if away.any():
            v[i + 1] = np.where(away[..., None], nominal.v[i + 1], v[i + 1])
            lost |= away
        q[i + 1] = robot.integrate(q[i], dt * v[i + 1])
    total = np.where(lost, np.inf, cost.value(q, v, u, dt))
    return Motions(q, v, u, total)


def search(
    cost: Cost, nominal: Motions, gains: Gains, dt: float, bounds: tuple[Array, Array]
) -> tuple[Motions, Array]:
    """The best motion of each problem among the lengths tried, and whether it is an improvement."""
    tried = run(cost, nominal, gains, dt, bounds)
    problems = np.arange(nominal.u.shape[1])
    best = np.argmin(tried.cost, axis=0)
    chosen = Motions(
        tried.q[:, best, problems],
        tried.v[:, best, problems],
        tried.u[:, best, problems],
        tried.cost[best, problems],
    )
    length = LENGTHS[best]
    expected = -(length * gains.slope + length**2 * gains.curve)
    gain = nominal.cost - chosen.cost
    return chosen, (gain > 0) & (gain >= _ENOUGH * expected) & ~gains.failed
