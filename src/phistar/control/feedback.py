# SPDX-License-Identifier: BSD-3-Clause
"""Linear feedback along a trajectory: the nominal joint forces plus gains times the error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.control.actuation import Actuation, matvec, state_error
from phistar.control.trajectory import Trajectory
from phistar.errors import ArgumentError
from phistar.model.configuration import Coordinates
from phistar.reprs import one_line_repr
from phistar.sim.law_calls import LawProgram, gain_parts


@one_line_repr
@dataclass(frozen=True)
class Feedback:
    """A policy: ``tau = feedback(k, q, v)`` at step k, for ``rollout`` or your own loop.

    Attributes:
        actuation: The joints that are driven.
        trajectory: The nominal motion, N steps.
        K: (N, ..., nu, 2 nv) gains; the driven joints get tau[k] - K[k] (δq, δv).
        lower: (nu,) least forces, or None.
        upper: (nu,) largest forces, or None.
    """

    actuation: Actuation
    trajectory: Trajectory
    K: Array
    lower: Array | None = None
    upper: Array | None = None

    def error(self, k: int, q: Coordinates, v: Coordinates) -> Array:
        """(..., 2 nv): the tangent step (δq, δv) from knot k to a state."""
        robot = self.actuation.robot
        nominal = self.trajectory
        return state_error(robot, nominal.q[k], nominal.v[k], q, robot.tangent(v))

    def __call__(self, k: int, q: Coordinates, v: Coordinates) -> Array:
        """Joint forces (..., nv) at step k; joints without a motor keep their nominal forces."""
        if not 0 <= k < self.trajectory.steps:
            raise ArgumentError(f"step {k} is not one of the trajectory's {self.trajectory.steps}")
        tau = self.trajectory.tau[k] - self.actuation.spread(matvec(self.K[k], self.error(k, q, v)))
        if self.lower is not None or self.upper is not None:
            columns = self.actuation.columns
            tau[..., columns] = np.clip(tau[..., columns], self.lower, self.upper)
        return np.asarray(tau)

    def at_step(self, k: int, q: Coordinates, v: Coordinates) -> Array:
        """The same under the name that regulators have it."""
        return self(k, q, v)

    def program(self) -> LawProgram | None:
        """The feedback for machine code, see ``rollout``; None for a class that does another."""
        if type(self).__call__ is not Feedback.__call__ or type(self).error is not Feedback.error:
            return None
        at, columns, n = self.trajectory, self.actuation.columns, self.trajectory.steps
        numbers = {"goal": at.q[:n], "goal_velocity": at.v[:n], "force": at.tau}
        numbers |= gain_parts(self.K)
        moving = frozenset(numbers)
        if self.lower is not None and self.upper is not None:
            for name, bound, open_end in (
                ("lower", self.lower, -np.inf),
                ("upper", self.upper, np.inf),
            ):
                numbers[name] = np.full(self.actuation.robot.nv, open_end)
                numbers[name][columns] = bound
        return LawProgram("linear", numbers, moving, columns=tuple(columns.tolist()))

    def errors(self, other: Trajectory) -> Array:
        """(N + 1, ..., 2 nv): the error of another motion at every knot."""
        robot, nominal = self.actuation.robot, self.trajectory
        q, v = _align(nominal.q, other.q), _align(nominal.v, other.v)
        return state_error(robot, q, v, other.q, other.v)


def _align(nominal: Array, other: Array) -> Array:
    """``nominal`` with axes for the batch of ``other`` after that of time."""
    extra = (1,) * max(0, other.ndim - nominal.ndim)
    return nominal.reshape(len(nominal), *extra, *nominal.shape[1:])
