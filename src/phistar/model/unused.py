# SPDX-License-Identifier: BSD-3-Clause
"""Data of joints besides their motion: what ``simulate`` uses, and what dynamics does not use.

Rigid-body dynamics leaves out limits, springs, damping and friction unless it is told; ``simulate``
and ``step`` use them. The numbers are stored with the joints. Each property is a row of
``PROPERTIES``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from phistar.errors import pluralize
from phistar.model.components import Coupling, Joint, Loop
from phistar.model.kinematic_loops import loop_label
from phistar.model.loop_kinds import LOOP_KINDS

_LINEAR_UNITS = {"N m": "N", "N m s/rad": "N s/m", "N m/rad": "N/m", "kg m^2": "kg"}


@dataclass(frozen=True)
class JointProperty:
    """One kind of number of a joint, one number per velocity coordinate.

    Attributes:
        name: Its name.
        values: The values of a joint.
        unit: Unit for an angle; empty for the unit of the velocity itself.
        default_value: The value that means none.
        simulated: Whether ``simulate`` and ``step`` use it.
    """

    name: str
    values: Callable[[Joint], Sequence[float]]
    unit: str
    default_value: float = 0.0
    simulated: bool = True

    def units(self, joint: Joint) -> list[str]:
        """The unit of each of a joint's values."""
        rates = joint.joint_kind.v_units
        if not self.unit:
            return list(rates)
        return [self.unit if rate == "rad/s" else _LINEAR_UNITS[self.unit] for rate in rates]

    def is_given(self, joint: Joint) -> bool:
        """Whether a joint has another value than the default."""
        return any(value != self.default_value for value in self.values(joint))

    def parts(self, joint: Joint, number: Callable[[float], str]) -> list[str]:
        """Values with their units, empty for the default."""
        pairs = zip(self.values(joint), self.units(joint), strict=True)
        return [f"{number(x)} {unit}" if x != self.default_value else "" for x, unit in pairs]


PROPERTIES = (
    JointProperty("speed limit", lambda joint: joint.limits.velocity, "", math.inf, False),
    JointProperty("effort limit", lambda joint: joint.limits.effort, "N m", math.inf, False),
    JointProperty("damping", lambda joint: joint.drive.damping, "N m s/rad"),
    JointProperty("friction", lambda joint: joint.drive.friction, "N m"),
    JointProperty("stiffness", lambda joint: joint.drive.stiffness, "N m/rad"),
)
"""Properties of a joint that rigid-body dynamics does not use, besides its range."""
ARMATURE = JointProperty("armature", lambda joint: joint.drive.reflected_inertia, "kg m^2")
"""A property that it uses."""


def unused_properties(
    joints: Sequence[Joint], loops: Sequence[Loop]
) -> Iterator[tuple[str, str, str]]:
    """(``file:line``, what, value with its unit) of everything that dynamics does not use."""
    for loop in loops:
        if not loop.active:
            yield loop.where, loop_label(loop), "switched off by the file"
    for joint in joints:
        for name, value in joint_properties(joint, simulated=False):
            yield joint.where, f'joint "{joint.name}": {name}', value


def simulated_properties(joints: Sequence[Joint]) -> Iterator[tuple[str, str, str]]:
    """(``file:line``, what, value with its unit) of what ``simulate`` and ``step`` use."""
    for joint in joints:
        for name, value in joint_properties(joint, simulated=True):
            yield joint.where, f'joint "{joint.name}": {name}', value


def closed_loops(loops: Sequence[Loop]) -> Iterator[tuple[str, str, str]]:
    """(``file:line``, what, note) of the loops that dynamics keeps closed."""
    for loop in loops:
        if loop.active:
            rows = 1 if isinstance(loop, Coupling) else LOOP_KINDS[loop.kind].rows
            yield loop.where, loop_label(loop), f"kept closed, {pluralize(rows, 'row')}"


def joint_properties(joint: Joint, simulated: bool) -> Iterator[tuple[str, str]]:
    """(name, value with its unit) of what rigid-body dynamics does not use of a joint.

    Args:
        joint: The joint.
        simulated: Whether of what ``simulate`` uses, or of the rest: speed and effort limits, and
            ranges of joints that follow others.
    """
    limited = any(map(math.isfinite, (*joint.limits.lower, *joint.limits.upper)))
    if limited and simulated is (joint.mimic is None):
        yield "range", join_values(range_parts(joint, _number))
    for each in PROPERTIES:
        if each.is_given(joint) and each.simulated is simulated:
            value = join_values(each.parts(joint, _number))
            if each.name == "stiffness":
                rests = zip(joint.drive.spring_reference, joint.joint_kind.q_units, strict=True)
                texts = [f"{x:.6g} {unit}".rstrip() for x, unit in rests]
                value += f", at rest at {join_values(texts)}"
            yield each.name, value


def range_parts(joint: Joint, number: Callable[[float], str]) -> list[str]:
    """The range of each configuration coordinate with its unit, empty where there is none."""
    limits, units = joint.limits, joint.joint_kind.q_units
    return [
        f"{number(low)} .. {number(high)} {unit}"
        if math.isfinite(low) or math.isfinite(high)
        else ""
        for low, high, unit in zip(limits.lower, limits.upper, units, strict=True)
    ]


def join_values(parts: Sequence[str]) -> str:
    """One entry if all are the same, a list with gaps marked otherwise."""
    if len(set(parts)) == 1:
        return parts[0]
    return ", ".join(part or "-" for part in parts)


def _number(value: float) -> str:
    return f"{value:.6g}"
