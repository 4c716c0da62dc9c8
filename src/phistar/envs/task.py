# SPDX-License-Identifier: BSD-3-Clause
"""What an environment asks of a robot: vectorised functions of batches, no package of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.model.configuration import quaternion_starts
from phistar.robot import Robot, load


@dataclass(frozen=True)
class Moment:
    """A batch at one time.

    Attributes:
        robot: The robot.
        q, v: (batch, nq) and (batch, nv).
        time: (batch,) since each began [s].
        action: (batch, actions) that led here; zero at the beginning.
        goal: (batch, goals), what ``Task.start`` gave; (batch, 0) without any.
    """

    robot: Robot
    q: Array
    v: Array
    time: Array
    action: Array
    goal: Array


@dataclass(frozen=True)
class Start:
    """Where samples begin: q (samples, nq), v (samples, nv), goal (samples, goals) or None."""

    q: Array
    v: Array
    goal: Array | None = None


@dataclass(frozen=True)
class Bounds:
    """Lowest and highest entries, (n,) each."""

    low: Array
    high: Array


def default_observation(moment: Moment) -> Array:
    """[q, v] (batch, nq + nv)."""
    return np.concatenate([moment.q, moment.v], axis=-1)


def _no_end(moment: Moment) -> Array:
    return np.zeros(len(moment.q), dtype=bool)


@dataclass(frozen=True)
class Task:
    """A robot, what it is paid for, and when that ends. All functions are of whole batches.

    Attributes:
        robot: A robot, or the name of a bundled one.
        reward: Moments before and after a step -> (batch,).
        start: Robot, random numbers (samples, draws) in [0, 1) -> ``Start``. By default the
            robot's home, at rest.
        terminated: Moment -> (batch,) booleans.
        observe: Moment -> (batch, n); [q, v] by default.
        forces: Moment, actions (batch, actions) -> joint forces (batch, nv). By default actions are
            the forces of the joints in ``actuated``.
        actuated: Names of joints with motors; all with an effort limit by default.
        action_bounds: Of actions; by default the effort limits of ``actuated``.
        observation_bounds: Of observations; by default limits of joints for [q, v], else none.
        draws: Random numbers that a start takes.
        dt: Length of a step of the simulator [s].
        substeps: Steps of the simulator in one of the environment.
        hold: Of these, steps for which forces are held before they are asked for again; None: all.
        horizon: Steps of the environment after which it is cut off (truncated).
        simulator: Other arguments of ``robot.simulator``.
    """

    robot: Robot | str
    reward: Callable[[Moment, Moment], Array]
    start: Callable[[Robot, Array], Start] | None = None
    terminated: Callable[[Moment], Array] = _no_end
    observe: Callable[[Moment], Array] = default_observation
    forces: Callable[[Moment, Array], Array] | None = None
    actuated: Sequence[str] | None = None
    action_bounds: Bounds | None = None
    observation_bounds: Bounds | None = None
    draws: int = 0
    dt: float = 0.01
    substeps: int = 2
    hold: int | None = None
    horizon: int = 500
    simulator: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("substeps", "horizon"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ArgumentError(f"{name} is {number!r}, expected a whole number, 1 or more")
        if self.hold is not None and (self.hold < 1 or self.substeps % self.hold):
            raise ArgumentError(f"hold is {self.hold!r}, expected a divisor of {self.substeps}")
        if self.draws < 0:
            raise ArgumentError(f"draws is {self.draws!r}, expected 0 or more")

    def with_options(self, **changes: Any) -> Task:
        """The same task with other fields."""
        for name in changes:
            if name not in self.__dataclass_fields__:
                raise UnknownNameError("field of a task", name, self.__dataclass_fields__)
        return replace(self, **changes)

    @cached_property
    def loaded(self) -> Robot:
        """The robot."""
        return load(self.robot) if isinstance(self.robot, str) else self.robot

    @cached_property
    def motors(self) -> Array:
        """Indices into v of what actions drive."""
        robot = self.loaded
        if self.actuated is None:
            found = np.flatnonzero(np.isfinite(robot.limits.effort))
            if not len(found):
                raise ArgumentError(
                    f"no joint of robot '{robot.name}' has an effort limit: name joints by "
                    "actuated= and give action_bounds="
                )
            return found
        unknown = [name for name in self.actuated if name not in robot.joint_names]
        if unknown:
            raise UnknownNameError("joint", unknown[0], robot.joint_names, robot.name)
        slices = [robot.model.joints[name].v_slice for name in self.actuated]
        return np.concatenate([np.arange(x.start, x.stop) for x in slices])

    @cached_property
    def actions(self) -> Bounds:
        """Bounds of actions."""
        if self.action_bounds is not None:
            return _checked("action_bounds", self.action_bounds)
        effort = self.loaded.limits.effort[self.motors]
        if not np.isfinite(effort).all():
            without = [self.loaded.joint_names[0]] if self.actuated is None else self.actuated
            raise ArgumentError(
                f"joints {', '.join(without)} of robot '{self.loaded.name}' have no effort limit: "
                "give action_bounds="
            )
        return Bounds(-effort, effort)

    def observations(self, size: int) -> Bounds:
        """Bounds of observations with ``size`` entries."""
        if self.observation_bounds is not None:
            found = _checked("observation_bounds", self.observation_bounds)
            if found.low.shape != (size,):
                raise ShapeError("observation_bounds", found.low.shape, f"({size},)", "the task")
            return found
        if self.observe is not default_observation:
            return Bounds(np.full(size, -np.inf), np.full(size, np.inf))
        return _state_bounds(self.loaded, self.simulator.get("passive", True) is True)

    def drive(self, moment: Moment, actions: Array) -> Array:
        """Joint forces (batch, nv) of actions."""
        if self.forces is not None:
            return self.forces(moment, actions)
        tau = np.zeros_like(moment.v)
        tau[:, self.motors] = actions
        return tau

    def begin(self, uniform: Array) -> Start:
        """Where samples begin, for random numbers (samples, draws)."""
        if self.start is None:
            rows = np.ones((len(uniform), 1))
            return Start(rows * self.loaded.home, rows * np.zeros(self.loaded.nv))
        return self.start(self.loaded, uniform)


def _checked(name: str, bounds: Bounds) -> Bounds:
    low, high = (np.asarray(x, dtype=float) for x in (bounds.low, bounds.high))
    if low.ndim != 1 or low.shape != high.shape or not (low <= high).all():
        raise ArgumentError(f"{name} are {low} and {high}, expected low <= high, (n,) each")
    return Bounds(low, high)


def _state_bounds(robot: Robot, limited: bool) -> Bounds:
    """Of [q, v]: limits of joints that the simulator enforces, a little wider; v has none."""
    low, high = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)
    if limited:
        width = np.where(np.isfinite(robot.limits.upper), 0.05, 0.0)
        low, high = robot.limits.lower - width, robot.limits.upper + width
    for _, begin in quaternion_starts(robot.model):
        low[begin : begin + 4], high[begin : begin + 4] = -1.0 - 1e-6, 1.0 + 1e-6
    free = np.full(robot.nv, np.inf)
    return Bounds(np.concatenate([low, -free]), np.concatenate([high, free]))
