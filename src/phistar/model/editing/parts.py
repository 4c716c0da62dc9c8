# SPDX-License-Identifier: BSD-3-Clause
"""A model taken apart, so that some of its parts can be exchanged and a model be built again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.actuators import Actuator
from phistar.model.components import Frame, Joint, Link, Loop
from phistar.model.configuration import neutral
from phistar.model.model import Model


@dataclass(frozen=True)
class Edit:
    """A new model and what was done to make it.

    Attributes:
        model: The new robot.
        what, note: A line of the load report.
        expected: Codes of problems that such an edit is meant to have; nobody is warned of them.
    """

    model: Model
    what: str
    note: str
    expected: frozenset[str] = field(default=frozenset())


@dataclass(frozen=True)
class Parts:
    """What a model is built of; configurations by joint, so that coordinates may change.

    Attributes:
        name, links, joints, loops, gravity, actuated, actuators: As of ``Model``.
        frames: Those that are no links.
        configurations: Values of each independent joint by name, for each named configuration.
        order: The independent joints in the order of coordinates.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...]
    loops: tuple[Loop, ...]
    gravity: Array
    configurations: Mapping[str, Mapping[str, Array]]
    order: tuple[str, ...]
    actuated: tuple[str, ...]
    actuators: tuple[Actuator, ...]

    @classmethod
    def of(cls, model: Model) -> Parts:
        """The parts of a model."""
        return cls(
            model.name,
            model.links,
            tuple(model.joints.values()),
            tuple(f for f in model.frames.values() if f.name not in model.link_table),
            model.loops,
            model.gravity,
            {name: by_joint(model, q) for name, q in model.configurations.items()},
            model.joint_names,
            model.actuated,
            model.actuators,
        )

    def build(self) -> Model:
        """The model of the parts; joints that are not independent any more leave the order."""
        independent = {joint.name for joint in self.joints if joint.nv}
        moving = {joint.name for joint in self.joints if joint.joint_kind.nv}
        model = Model.build(
            self.name,
            self.links,
            self.joints,
            frames=self.frames,
            loops=self.loops,
            gravity=self.gravity,
            order=[name for name in self.order if name in independent],
            actuated=[name for name in self.actuated if name in moving],
            actuators=self.actuators,
        )
        return model.with_configurations(
            {name: _configuration(model, named) for name, named in self.configurations.items()}
        )


def by_joint(model: Model, q: Array) -> dict[str, Array]:
    """A configuration (nq,) by independent joint."""
    return {name: q[model.joints[name].q_slice] for name in model.joint_names}


def _configuration(model: Model, named: Mapping[str, Array]) -> Array:
    q = np.array(neutral(model))
    for name in model.joint_names:
        if name in named:
            q[model.joints[name].q_slice] = named[name]
    return q


def refuse_taken(model: Model, what: str, name: str, taken: Iterable[str], cure: str) -> None:
    """Raise if something of the robot has the name already."""
    if name in taken:
        raise ArgumentError(f"'{model.name}' has a {what} named '{name}' already; {cure}")


def finite_number(value: object, name: str) -> float:
    """A user's number.

    Raises:
        ArgumentError: It is none, or not finite.
    """
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} is {value!r}, expected a number") from None
    if not np.isfinite(number):
        raise ArgumentError(f"{name} is {number}, expected a finite number")
    return number
