# SPDX-License-Identifier: BSD-3-Clause
"""Actuators of a description: what makes joint forces out of control signals. Plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.components import Joint

Triple = tuple[float, float, float]
Range = tuple[float, float]

ACTUATOR_KINDS = ("motor", "position", "velocity", "general")
"""What an actuator is called: its gain and bias say what it does."""
UNLIMITED: Range = (-math.inf, math.inf)


@dataclass(frozen=True)
class Actuator:
    """An actuator without states of its own, on one joint or on a sum of joints.

    With l = Σ gear q over its joints and ctrl in ``ctrlrange`` its force is

        f = (gain₀ + gain₁ l + gain₂ dl/dt) ctrl + bias₀ + bias₁ l + bias₂ dl/dt,

    clamped to ``forcerange``; the joints feel gear f.

    Attributes:
        name: Unique name.
        kind: One of ``ACTUATOR_KINDS``.
        joints: Names of its joints, each with one coordinate.
        gear: One number for each joint: l per unit of its coordinate.
        gain, bias: Coefficients of 1, l and dl/dt.
        ctrlrange, forcerange: Least and largest, infinite where there is no limit.
    """

    name: str
    kind: str
    joints: tuple[str, ...]
    gear: tuple[float, ...]
    gain: Triple = (1.0, 0.0, 0.0)
    bias: Triple = (0.0, 0.0, 0.0)
    ctrlrange: Range = UNLIMITED
    forcerange: Range = UNLIMITED
    where: str = field(default="", repr=False)


def actuator_kind(gain: Triple, bias: Triple) -> str:
    """What an actuator with these coefficients is called.

    A motor has no bias, a servo pulls back with the gain of its control signal.
    """
    if gain[1:] != (0.0, 0.0):
        return "general"
    if bias == (0.0, 0.0, 0.0):
        return "motor"
    if bias == (0.0, 0.0, -gain[0]):
        return "velocity"
    return "position" if bias[:2] == (0.0, -gain[0]) else "general"


def check_actuators(
    actuators: Sequence[Actuator], joints: Mapping[str, Joint], owner: str
) -> tuple[Actuator, ...]:
    """The same actuators.

    Raises:
        UnknownNameError: No such joint.
        ArgumentError: Two have one name, a joint has more or fewer than one coordinate, a range is
            empty or a number is not finite.
    """
    names: set[str] = set()
    for each in actuators:
        label = f"actuator '{each.name}' of '{owner}'"
        if each.name in names:
            raise ArgumentError(f"two actuators of '{owner}' are called '{each.name}'; rename one")
        names.add(each.name)
        if each.kind not in ACTUATOR_KINDS:
            raise UnknownNameError("kind of actuator", each.kind, ACTUATOR_KINDS)
        for joint in each.joints:
            if joint not in joints:
                raise UnknownNameError("joint", joint, joints, label)
            if joints[joint].joint_kind.nv != 1:
                raise ArgumentError(
                    f"{label} is on the {joints[joint].kind} joint '{joint}'; actuators are on "
                    "joints with one coordinate"
                )
        if len(each.gear) != len(each.joints) or not each.joints:
            raise ArgumentError(
                f"{label} has {len(each.joints)} joints and gear {each.gear}, expected at least "
                "one joint and one number for each"
            )
        numbers = (*each.gear, *each.gain, *each.bias)
        if not all(map(math.isfinite, numbers)):
            raise ArgumentError(f"{label}: gear, gain and bias must be finite, got {numbers}")
        for what, (low, high) in (("ctrlrange", each.ctrlrange), ("forcerange", each.forcerange)):
            if not low <= high:
                raise ArgumentError(f"{label}: {what} is ({low:g}, {high:g}), expected low <= high")
    return tuple(actuators)
