# SPDX-License-Identifier: BSD-3-Clause
"""Limits, damping, friction, springs and motors of URDF joints, one number per coordinate."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from phistar.errors import IgnoredWarning, LimitWarning
from phistar.loaders.urdf.context import Context, prefixed_tag
from phistar.loaders.urdf.dialect import DRAKE_NAMESPACE, qname
from phistar.loaders.urdf.values import (
    Vector,
    check_attributes,
    fast_numbers,
    ignore_element,
    parse_number,
    read_number,
    read_numbers,
)
from phistar.model.components import Drive, Limits
from phistar.model.joints import JointKind

if TYPE_CHECKING:
    from lxml.etree import _Element

Values = TypeVar("Values", Limits, Drive)

LIMITS, DYNAMICS = qname("limits"), qname("dynamics")
_LIMIT = ("lower", "upper", "velocity", "effort")
_LIMIT_SET = frozenset(_LIMIT)
_DRIVE = tuple(field.name for field in fields(Drive))
_FRICTION = ("damping", "friction")
_OLD_DYNAMICS = frozenset({"D", "K", "mu_coulomb", "mu_viscous", "stiffness", "spring_stiffness"})
_PLAIN_MOTOR = frozenset({"type", "joint", "actuator"})
"""What a transmission has that only says that a joint has a motor."""
_NEEDS_LIMIT = ("revolute", "prismatic")


class Rotor(NamedTuple):
    """Rotor inertia [kg m^2] and gear ratio of a joint's motor."""

    inertia: float = 0.0
    ratio: float = 1.0


def read_limits(
    context: Context, joint: _Element, motion: JointKind, children: dict[str, _Element], label: str
) -> Limits:
    """Limits of a joint; removes its elements from ``children``."""
    unlimited = without_effect(type(motion))[0]
    if motion.nv == 0:
        return unlimited
    plain, dialect = children.pop("limit", None), children.pop(LIMITS, None)
    if dialect is not None:
        check_attributes(context, dialect, _LIMIT_SET, label)
        limits = _with_attributes(context, unlimited, dialect, _LIMIT, label, infinite=True)
        return _without_reversed(context, dialect, limits, label)
    if plain is not None:
        limits = _plain_limits(context, plain, motion, unlimited, label)
        return _without_reversed(context, plain, limits, label)
    if motion.name in _NEEDS_LIMIT:
        what = f"{label}: <limit> is required for {motion.name}, there is none."
        other = ", or make the joint continuous" if motion.name == "revolute" else ""
        cure = f"It is taken as unlimited; add <limit>{other}."
        context.warn("no-limit", joint, what, cure, LimitWarning)
        context.default(joint, label, "no <limit>: unlimited")
    return unlimited


def _plain_limits(
    context: Context, element: _Element, motion: JointKind, unlimited: Limits, label: str
) -> Limits:
    check_attributes(context, element, _LIMIT_SET, label)
    if motion.nv == 1 and not motion.unlimited:
        if plain := fast_numbers(element, _LIMIT):
            lower, upper, velocity, effort = plain
            return Limits((lower,), (upper,), (velocity,), (effort,))
        _warn_missing_limits(context, element, motion, label)
        return _with_attributes(context, unlimited, element, _LIMIT, label, infinite=True)
    for name in ("lower", "upper"):
        if element.get(name) is not None:
            read_number(context, element, name, label, thing=f"limit {name}", infinite=True)
            note = f"a {motion.name} joint has no such limit"
            context.ignore(element, f"{label}: limit {name}", note)
    return _with_attributes(context, unlimited, element, _LIMIT[2:], label, infinite=True)


def _without_reversed(context: Context, element: _Element, limits: Limits, label: str) -> Limits:
    """The limits; a lower above its upper becomes infinite, as such files mean none."""
    pairs = list(zip(limits.lower, limits.upper, strict=True))
    if not any(low > high for low, high in pairs):
        return limits
    for low, high in pairs:
        if low > high:
            what = f"{label}: lower limit {low:g} is above upper limit {high:g}."
            cure = "Taken as unlimited, which some files mean by it; else swap them."
            context.warn("limit-order", element, what, cure, LimitWarning)
            context.default(element, label, "limit lower above upper: unlimited")
    lower, upper = zip(
        *((x, y) if x <= y else (-math.inf, math.inf) for x, y in pairs), strict=True
    )
    return replace(limits, lower=lower, upper=upper)


def _warn_missing_limits(
    context: Context, element: _Element, motion: JointKind, label: str
) -> None:
    missing = [name for name in _LIMIT if element.get(name) is None]
    if missing and motion.name in _NEEDS_LIMIT:
        names = ", ".join(missing)
        what = f"{label}: <limit> has no {names}."
        context.warn("limit-missing", element, what, "Taken as unlimited; add it.", LimitWarning)
        context.default(element, label, f"limit {names}: unlimited")


def read_drive(
    context: Context,
    motion: JointKind,
    children: dict[str, _Element],
    rotor: Rotor | None,
    label: str,
) -> Drive:
    """Drive of a joint; removes its elements from ``children``."""
    drive = without_effect(type(motion))[1]
    if motion.nv == 0:
        return drive
    if rotor is not None:
        inertia, ratio = (rotor.inertia,) * motion.nv, (rotor.ratio,) * motion.nv
        drive = replace(drive, rotor_inertia=inertia, gear_ratio=ratio)
    if (plain := children.pop("dynamics", None)) is not None:
        _warn_old_dynamics(context, plain, label)
        drive = _with_attributes(context, drive, plain, _FRICTION, label)
    if (dialect := children.pop(DYNAMICS, None)) is not None:
        check_attributes(context, dialect, frozenset(_DRIVE), label)
        drive = _with_attributes(context, drive, dialect, _DRIVE, label)
    return drive


@cache
def without_effect(kind: type[JointKind]) -> tuple[Limits, Drive]:
    """Limits and a drive that do nothing."""
    return Limits.unlimited(kind()), Drive.passive_free(kind())


def _warn_old_dynamics(context: Context, element: _Element, label: str) -> None:
    check_attributes(context, element, frozenset(_FRICTION), label)
    old = sorted(_OLD_DYNAMICS.intersection(element.keys()))
    if any(parse_number(element.get(name) or "") != 0 for name in old):
        what = f"{label}: <dynamics> attributes {', '.join(old)} are not URDF's and are ignored."
        cure = "Give damping and friction, or <phistar:dynamics stiffness=.../>."
        context.warn("ignored-dynamics", element, what, cure, IgnoredWarning)


def _with_attributes(
    context: Context,
    values: Values,
    element: _Element,
    names: tuple[str, ...],
    label: str,
    *,
    infinite: bool = False,
) -> Values:
    """Values updated from an element: one number per coordinate, or one for all."""
    changes: dict[str, Vector] = {}
    for name in names:
        size = len(getattr(values, name))
        thing = f"{prefixed_tag(element.tag)} {name}"
        numbers = read_numbers(
            context, element, name, (1, size), label, thing=thing, infinite=infinite
        )
        if numbers is not None:
            changes[name] = numbers * size if len(numbers) == 1 else numbers
    return replace(values, **changes) if changes else values


def read_motors(context: Context, element: _Element, moving: Collection[str]) -> list[str]:
    """Moving joints of a transmission with an actuator; what else it says is listed as ignored."""
    joints = [joint.get("name") or "" for joint in element.iterfind("joint")]
    driven = [name for name in joints if name in moving]
    if element.find("actuator") is None:
        driven = []
    plain = all(child.tag in _PLAIN_MOTOR and not len(child) for child in element)
    if not (plain and len(driven) == len(joints) == 1):
        ignore_element(context, element, "")
    return driven


def read_rotors(context: Context, root: _Element) -> dict[str, Rotor]:
    """Motors by joint name: Drake's rotor inertia and gear ratio inside transmissions."""
    inertia_tag, ratio_tag = (f"{{{DRAKE_NAMESPACE}}}{x}" for x in ("rotor_inertia", "gear_ratio"))
    rotors: dict[str, Rotor] = {}
    for transmission in root.iterfind("transmission"):
        joint, actuator = transmission.find("joint"), transmission.find("actuator")
        name = None if joint is None else joint.get("name")
        if actuator is None or not name:
            continue
        values = {}
        for key, tag in (("inertia", inertia_tag), ("ratio", ratio_tag)):
            element = actuator.find(tag)
            if element is not None:
                value = read_number(context, element, "value", f'transmission of joint "{name}"')
                if value is not None:
                    values[key] = value
        if values:
            rotors[name] = Rotor(**values)
    return rotors
