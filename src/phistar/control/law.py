# SPDX-License-Identifier: BSD-3-Clause
"""Base of control laws: joint forces of a state, an error, a Lyapunov function.

A law is a policy for ``rollout`` and an argument of ``regulate``. Every joint has a motor; on a
robot with loops some joints may have none, and motors give the motion that the law's joint forces
would (``at_motors``). Loops do no work: Lyapunov functions of trees hold with loops, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.actuation import Actuation
from phistar.control.loop_states import at_motors, closes_loops
from phistar.errors import ArgumentError, ShapeError
from phistar.model.configuration import Coordinates
from phistar.model.joint_physics import Passive, passive_parts
from phistar.robot import Robot
from phistar.sim.law_calls import LawProgram
from phistar.spatial import is_rotation


@dataclass(frozen=True, eq=False)
class Law(ABC):
    """A control law: ``tau = law.forces(q, v)``.

    Attributes:
        robot: The robot.
        lower: (nv,) least joint forces, or None.
        upper: (nv,) largest joint forces, or None.
        gravity: Whether the law adds the forces that hold the robot against gravity.
        actuation: The joints with motors, of a robot with loops; None: all.
        passive: Forces of the joints themselves that the motors make up for, as in
            ``robot.passive_force``; False: the law knows of none.
    """

    robot: Robot
    lower: Array | None
    upper: Array | None
    gravity: bool
    name: ClassVar[str]
    actuation: Actuation | None = field(default=None, kw_only=True)
    passive: Passive = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        """Raise unless ``passive`` is what ``robot.simulate`` takes.

        Raises:
            UnknownNameError, ArgumentError: A name that is no part of the joint physics, or none.
        """
        passive_parts(self.passive)

    @abstractmethod
    def pull(self, q: Array) -> Array:
        """Joint forces (..., nv) towards the goal at rest, without gravity compensation."""

    @abstractmethod
    def error(self, q: Array, v: Array) -> Array:
        """The error (..., m) that the law brings to zero."""

    @abstractmethod
    def lyapunov(self, q: Array, v: Array) -> Array:
        """The function (...) that decreases under this law, with gravity compensation and within
        limits."""

    @abstractmethod
    def require(self, q: Array, v: Array) -> Array:
        """Joint forces (..., nv) of the law, before limits."""

    def demand(self, q: Array, v: Array) -> Array:
        """Forces (..., nv) of the motors, before limits."""
        tau = self.require(q, v)
        if self.passive is not False:
            tau = tau - self.robot.passive_force(q, v, passive=self.passive)
        return tau if self.actuation is None else at_motors(self.actuation, q, tau)

    def forces(self, q: Coordinates, v: Coordinates) -> Array:
        """Joint forces (..., nv), within the limits."""
        tau = self.demand(self.robot.configuration(q), self.robot.tangent(v))
        return tau if self.lower is None else np.clip(tau, self.lower, self.upper)

    def __call__(self, k: int, q: Coordinates, v: Coordinates) -> Array:
        """The same as a policy, for ``rollout``; k is ignored."""
        return self.forces(q, v)

    def at_step(self, k: int, q: Coordinates, v: Coordinates) -> Array:
        """The same under the name that regulators have it."""
        return self(k, q, v)

    def program(self) -> LawProgram | None:
        """The law for machine code, see ``rollout``; None for one that does not say.

        A class says it by ``_program``; one derived from it may do something else, and says so
        again.
        """
        own = type(self).__dict__.get("_program")
        return None if own is None else own(self)

    def _named(self, kind: str, numbers: Mapping[str, ArrayLike | None], **more: Any) -> LawProgram:
        """A program of a kind, with the law's limits."""
        given = {**numbers, "lower": self.lower, "upper": self.upper}
        arrays = {k: np.atleast_1d(np.asarray(x, float)) for k, x in given.items() if x is not None}
        return LawProgram(kind, arrays, gravity=self.gravity, passive=self.passive, **more)

    def saturated(self, tau: Array) -> Array:
        """Where demanded forces (..., nv) lie outside the limits."""
        if self.lower is None or self.upper is None:
            return np.zeros(tau.shape, dtype=bool)
        return np.asarray((tau < self.lower) | (tau > self.upper))

    def sight(self, q: Array, v: Array) -> Array:
        """(...) from 0 to 1: how well the joints can act on the error; 0 at a singular pose."""
        return np.ones(self.error(q, v).shape[:-1])

    def singular_value(self, q: Array) -> Array:
        """Smallest singular value (...) of the Jacobian that the law uses; NaN if it uses none."""
        return np.full(q.shape[:-1], np.nan)

    def held(self, q: Array, tau: Array) -> Array:
        """Joint forces with gravity compensation, if the law has it."""
        return np.asarray(tau + self.robot.gravity_force(q)) if self.gravity else tau


@dataclass(frozen=True)
class Motors:
    """What a law knows of the motors.

    Attributes:
        bounds: Lower and upper forces (nv,), or None.
        actuation: The joints that have one; None: all.
    """

    bounds: tuple[Array | None, Array | None]
    actuation: Actuation | None

    @property
    def driven(self) -> Array | bool:
        """(nv,) of booleans, or True."""
        if self.actuation is None:
            return True
        return np.isin(np.arange(self.actuation.robot.nv), self.actuation.columns)


def motors(
    robot: Robot, limits: ArrayLike | str | None, actuated: Sequence[str] | None = None
) -> Motors:
    """The motors of a law.

    Raises:
        ArgumentError: A joint of a robot without loops has none.
    """
    actuation = Actuation.of(robot, actuated)
    lower, upper = actuation.bounds(limits)
    if actuation.size == robot.nv:
        return Motors((lower, upper), None)
    if not closes_loops(robot):
        raise ArgumentError(
            f"robot '{robot.name}' has no loops, so a law needs a motor at every joint; lqr, "
            "tv_lqr and ilqr do with fewer"
        )
    if lower is not None and upper is not None:
        lower, upper = actuation.spread(lower), actuation.spread(upper)
    return Motors((lower, upper), actuation)


def goal_pose(robot: Robot, frame: str, pose: ArrayLike) -> Array:
    """A checked goal (..., 4, 4) of a frame that exists."""
    _ = robot.frames[frame]
    goal = np.asarray(pose, dtype=float)
    if goal.shape[-2:] != (4, 4):
        raise ShapeError("pose", goal.shape, "(..., 4, 4)", f"frame '{frame}'")
    rigid = is_rotation(goal[..., :3, :3]) & np.isfinite(goal[..., :3, 3]).all(axis=-1)
    if not (rigid.all() and (goal[..., 3, :] == (0.0, 0.0, 0.0, 1.0)).all()):
        raise ArgumentError(
            f"pose of frame '{frame}' is not a rigid one: expected a rotation, a finite position "
            "and (0, 0, 0, 1) in the last row"
        )
    return goal


def flat_pose(pose: Array) -> Array:
    """(..., 4, 4) -> (..., 16), rows one after the other."""
    return pose.reshape(*pose.shape[:-2], 16)


def squared_norm(x: Array) -> Array:
    """Sum of squares over the last axis."""
    return np.asarray((x * x).sum(axis=-1))
