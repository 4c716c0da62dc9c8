# SPDX-License-Identifier: BSD-3-Clause
"""Control 8.1 of Jain & Rodriguez 1995: rate feedback in the diagonal rates, ε = -cη.

With 𝓜 = m m*, η = m*v and τ = mε it is τ = -m c m*v: damping shaped like the inertia. The kinetic
energy K = ½η*η obeys K̇ = -η*cη, and for a scalar c it is K(0) exp(-2ct) exactly, whatever the
motion: Coriolis forces do no work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.actuation import matvec, positive_gains
from phistar.control.law import Law, motors
from phistar.model.joint_physics import Passive
from phistar.reprs import one_line_repr
from phistar.robot import Robot
from phistar.sim.law_calls import LawProgram


@one_line_repr
@dataclass(frozen=True, eq=False)
class RateFeedback(Law):
    """τ = -m c m*v, with gravity compensated on request.

    Attributes:
        damping: c [1/s]: a number, or (nv,) for each diagonal rate.
    """

    damping: float | Array
    name: ClassVar[str] = "rate"

    def _program(self) -> LawProgram | None:
        if not isinstance(self.damping, float):
            return None
        return self._named("rate", {"inner": self.damping, "rest": np.zeros(self.robot.nv)})

    def pull(self, q: Array) -> Array:
        """None: the law has no goal but rest."""
        return np.zeros((*q.shape[:-1], self.robot.nv))

    def error(self, q: Array, v: Array) -> Array:
        """The velocities (..., nv)."""
        return np.broadcast_to(v, (*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), v.shape[-1]))

    def lyapunov(self, q: Array, v: Array) -> Array:
        """Kinetic energy (...) [J]."""
        return self.robot.kinetic_energy(q, v)

    def require(self, q: Array, v: Array) -> Array:
        """-m c m*v (..., nv)."""
        return self.held(q, -damping_force(self.robot, q, v, self.damping))


def rate_feedback(
    robot: Robot,
    damping: ArrayLike = 1.0,
    *,
    gravity: bool = True,
    actuated: Sequence[str] | None = None,
    limits: ArrayLike | str | None = None,
    passive: Passive = False,
) -> RateFeedback:
    """Rate feedback (Control 8.1): brings a robot to rest wherever it is.

    Args:
        robot: The robot.
        damping: c, a number or one for each diagonal rate η (nv,) [1/s], positive.
        gravity: Add the forces that hold the robot against gravity. Without them it rests only in
            an equilibrium of gravity.
        actuated: Names of the joints that have motors, of a robot with loops; by default all.
        limits: Bounds of forces: a number, (nu,), (2, nu) as lower and upper, or ``"robot"`` for
            those of its file.
        passive: Forces of the joints themselves that the motors make up for: True, or some of
            ``"springs"``, ``"damping"``, ``"friction"``; by default the law knows of none.
    """
    found = motors(robot, limits, actuated)
    c = read_damping(robot, damping)
    return RateFeedback(
        robot,
        *found.bounds,
        gravity,
        c,
        actuation=found.actuation,
        passive=passive,
    )


def read_damping(robot: Robot, damping: ArrayLike) -> float | Array:
    """A number where one was given, else (nv,)."""
    array = positive_gains(robot, "damping", damping)
    return float(array[0]) if np.ndim(damping) == 0 and robot.nv else array


def damping_force(robot: Robot, q: Array, v: Array, damping: float | Array) -> Array:
    """m c m*v (..., nv); for a number c it is c 𝓜v."""
    if isinstance(damping, float):
        return np.asarray(damping * matvec(robot.mass_matrix(q), v))
    at = robot.diagonalize(q)
    return at.from_epsilon(damping * at.to_eta(v))
