# SPDX-License-Identifier: BSD-3-Clause
"""Gravity compensation: τ = g(q) - k_d v. The robot floats; with damping it comes to rest.

The kinetic energy changes at the rate -v*k_d v: not at all without damping.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.actuation import positive_gains
from phistar.control.law import Law, motors
from phistar.model.joint_physics import Passive
from phistar.reprs import one_line_repr
from phistar.robot import Robot
from phistar.sim.law_calls import LawProgram


@one_line_repr
@dataclass(frozen=True, eq=False)
class GravityCompensation(Law):
    """τ = g(q) - k_d v.

    Attributes:
        damping: k_d (nv,).
    """

    damping: Array
    name: ClassVar[str] = "gravity"

    def _program(self) -> LawProgram:
        return self._named("pd", {"damping": self.damping})

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
        """g(q) - k_d v (..., nv)."""
        return self.held(q, -self.damping * v)


def gravity_compensation(
    robot: Robot,
    damping: ArrayLike | None = None,
    *,
    actuated: Sequence[str] | None = None,
    limits: ArrayLike | str | None = None,
    passive: Passive = False,
) -> GravityCompensation:
    """Forces that hold a robot against gravity wherever it is, and damping if wanted.

    Args:
        robot: The robot.
        damping: k_d, a number or (nv,) [N m s/rad, N s/m], positive; by default none.
        actuated: Names of the joints that have motors, of a robot with loops; by default all.
        limits: Bounds of forces, as in ``rate_feedback``.
        passive: Forces of the joints themselves that the motors make up for: True, or some of
            ``"springs"``, ``"damping"``, ``"friction"``; by default the law knows of none.
    """
    found = motors(robot, limits, actuated)
    none = np.zeros(robot.nv)
    kd = none if damping is None else positive_gains(robot, "damping", damping)
    return GravityCompensation(
        robot, *found.bounds, True, kd, actuation=found.actuation, passive=passive
    )
