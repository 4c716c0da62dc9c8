# SPDX-License-Identifier: BSD-3-Clause
"""Laws towards goals that move: arrays of goals, one row for each step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.joint_laws import JointLaw, PDGravity
from phistar.control.law import Law, flat_pose, goal_pose
from phistar.control.operational_law import OperationalSpace
from phistar.control.pose_law import PoseControl
from phistar.errors import ArgumentError, ShapeError
from phistar.model.configuration import Coordinates
from phistar.reprs import one_line_repr
from phistar.sim.law_calls import LawProgram

_RATES = ("goal_velocity", "goal_acceleration")


@one_line_repr
@dataclass(frozen=True, eq=False)
class Following:
    """A law whose goal moves: a policy, ``tau = following(k, q, v)`` at step k.

    Attributes:
        law: The law.
        goal: (N, ..., nq) configurations or (N, ..., 4, 4) poses, one for each step.
        goal_velocity: (N, ..., nv) or (N, ..., 6); None: as if the goal rested.
        goal_acceleration: The same of accelerations.
    """

    law: Law
    goal: Array
    goal_velocity: Array | None
    goal_acceleration: Array | None

    @property
    def steps(self) -> int:
        """N, the number of steps that have a goal."""
        return len(self.goal)

    def at(self, k: int) -> Law:
        """The law towards the goal of step k."""
        if not 0 <= k < self.steps:
            raise ArgumentError(f"step {k} is not one of the {self.steps} that have a goal")
        rows = {name: rate[k] for name, rate in self._rates().items()}
        return replace(self.law, **{"goal": self.goal[k], **rows})

    def _rates(self) -> dict[str, Array]:
        given = {name: getattr(self, name) for name in _RATES}
        return {name: rate for name, rate in given.items() if rate is not None}

    def __call__(self, k: int, q: Coordinates, v: Coordinates) -> Array:
        """Joint forces (..., nv) at step k, within the limits."""
        return self.at(k).forces(q, v)

    def at_step(self, k: int, q: Coordinates, v: Coordinates) -> Array:
        """The same under the name that regulators have it."""
        return self(k, q, v)

    def program(self) -> LawProgram | None:
        """The same for machine code, see ``rollout``; None if the law is not."""
        found = self.law.program()
        if found is None:
            return None
        poses = not isinstance(self.law, JointLaw)
        moving = {"goal": flat_pose(self.goal) if poses else self.goal, **self._rates()}
        return replace(found, numbers={**found.numbers, **moving}, moving=frozenset(moving))


def follow(
    law: Law,
    goal: ArrayLike,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
) -> Following:
    """A law with a goal that moves, for ``rollout``.

    Errors decay as they do towards a goal at rest, but for what forces held during a step leave:
    computed torque needs velocity and acceleration for that, operational space too; PD takes the
    velocity, ``pose_control`` neither.

    Args:
        law: ``pd_gravity``, ``computed_torque``, ``operational_space`` or ``pose_control``; its own
            goal is replaced.
        goal: (N, ..., nq), or poses (N, ..., 4, 4): row k is the goal of step k. The first axis is
            time, batch axes follow.
        velocity: (N, ..., nv) velocities of the goal, in its own axes on ball, free and planar
            joints; of poses (N, ..., 6), angular and linear, in world axes at the frame's origin.
            By default zero.
        acceleration: Their rates. By default zero.

    Raises:
        ArgumentError: The law has no goal, or does not know velocities or accelerations of one.
        ShapeError: Numbers of steps differ.
    """
    taken = _rates_of(law)
    given = {"goal_velocity": velocity, "goal_acceleration": acceleration}
    for name, rate in given.items():
        if rate is not None and name not in taken:
            said = name.replace("_", " ").replace("goal", "the goal's")
            raise ArgumentError(f"the law '{law.name}' does not know {said}; leave it out")
    goals = _read_goals(law, goal)
    if goals.ndim < (2 if isinstance(law, JointLaw) else 3):
        raise ShapeError("goal", goals.shape, "time as its first axis", f"the law '{law.name}'")
    size = law.robot.nv if isinstance(law, JointLaw) else 6
    rates = {name: _read_rate(law, name, rate, size, len(goals)) for name, rate in given.items()}
    return Following(law, goals, **rates)


def _rates_of(law: Law) -> tuple[str, ...]:
    """What a law knows of the motion of its goal."""
    if isinstance(law, PDGravity):
        return _RATES[:1]
    if isinstance(law, JointLaw | OperationalSpace):
        return _RATES
    if isinstance(law, PoseControl):
        return ()
    raise ArgumentError(
        f"the law '{law.name}' has no goal that could move; pd_gravity, computed_torque, "
        "operational_space and pose_control have"
    )


def _read_goals(law: Law, goal: ArrayLike) -> Array:
    if isinstance(law, JointLaw):
        return law.robot.configuration(np.asarray(goal, dtype=float))
    assert isinstance(law, OperationalSpace | PoseControl)
    return goal_pose(law.robot, law.frame, goal)


def _read_rate(law: Law, name: str, rate: ArrayLike | None, size: int, steps: int) -> Array | None:
    if rate is None:
        return None
    array = np.asarray(rate, dtype=float)
    if array.ndim < 2 or array.shape[-1] != size or len(array) != steps:
        raise ShapeError(name, array.shape, f"({steps}, ..., {size})", f"the law '{law.name}'")
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name} of the law '{law.name}' is not finite")
    return array
