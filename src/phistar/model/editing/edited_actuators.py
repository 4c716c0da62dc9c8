# SPDX-License-Identifier: BSD-3-Clause
"""Actuators of an edited robot: on joints that are held, renamed, taken off or larger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import cast

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.actuators import Actuator, Range, Triple


def with_held_joints(
    actuators: Iterable[Actuator], held: Mapping[str, Array]
) -> tuple[Actuator, ...]:
    """Actuators without joints that are held at values; one that has no other joint goes.

    A held joint adds the constant c = gear q to the length: (l + c) takes gain and bias along.
    """
    found = []
    for each in actuators:
        rows = zip(each.joints, each.gear, strict=True)
        left = [(joint, gear) for joint, gear in rows if joint not in held]
        if not left:
            continue
        if len(left) == len(each.joints):
            found.append(each)
            continue
        rows = zip(each.joints, each.gear, strict=True)
        c = sum(gear * float(held[joint][0]) for joint, gear in rows if joint in held)
        gain, bias = ((x[0] + x[1] * c, x[1], x[2]) for x in (each.gain, each.bias))
        joints, gears = zip(*left, strict=True)
        found.append(replace(each, joints=joints, gear=gears, gain=gain, bias=bias))
    return tuple(found)


def renamed(actuators: Iterable[Actuator], prefix: str) -> tuple[Actuator, ...]:
    """Actuators with a prefix to their names and those of their joints."""
    return tuple(
        replace(x, name=prefix + x.name, joints=tuple(prefix + joint for joint in x.joints))
        for x in actuators
    )


def without_joints(
    actuators: Iterable[Actuator], lost: set[str], owner: str
) -> tuple[Actuator, ...]:
    """Actuators without those whose joints go.

    Raises:
        ArgumentError: Some joints of an actuator go and others stay.
    """
    found = []
    for each in actuators:
        gone = [joint for joint in each.joints if joint in lost]
        if gone and len(gone) < len(each.joints):
            raise ArgumentError(
                f"actuator '{each.name}' of '{owner}' drives '{gone[0]}', which would go, and "
                "joints that stay: lock what goes first"
            )
        if not gone:
            found.append(each)
    return tuple(found)


def scaled(
    actuators: Iterable[Actuator],
    coordinate: Callable[[str], float],
    force: float,
    time: float,
) -> tuple[Actuator, ...]:
    """Actuators of a larger robot that moves in the same way, slower by a factor of time.

    Args:
        actuators: Those of the robot.
        coordinate: Factor of a joint's coordinate, by name.
        force: Factor of moments: lengths of actuators stay what they are.
        time: Factor of durations; rates of lengths are divided by it.
    """
    return tuple(_scaled(each, coordinate, force, time) for each in actuators)


def _scaled(
    each: Actuator, coordinate: Callable[[str], float], force: float, time: float
) -> Actuator:
    signal = 1.0 / time if each.kind == "velocity" else 1.0
    gear = tuple(g / coordinate(j) for g, j in zip(each.gear, each.joints, strict=True))
    factors = (force, force, force * time)
    gain = tuple(x * f / signal for x, f in zip(each.gain, factors, strict=True))
    bias = tuple(x * f for x, f in zip(each.bias, factors, strict=True))
    return replace(
        each,
        gear=gear,
        gain=cast("Triple", gain),
        bias=cast("Triple", bias),
        ctrlrange=cast("Range", tuple(x * signal for x in each.ctrlrange)),
        forcerange=cast("Range", tuple(x * force for x in each.forcerange)),
    )
