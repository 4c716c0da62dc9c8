# SPDX-License-Identifier: BSD-3-Clause
"""Limits, damping, friction, springs and motors of URDF joints, one number per coordinate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from phistar.errors import IgnoredWarning, LimitWarning
from phistar.loaders.urdf_context import Context
from phistar.loaders.urdf_dialect import DRAKE_NAMESPACE, qname
from phistar.loaders.urdf_values import check_attributes, number, numbers, parse_number
from phistar.model.joints import JointKind

if TYPE_CHECKING:
    from lxml.etree import _Element

LIMITS, DYNAMICS = qname("limits"), qname("dynamics")
_LIMIT = ("lower", "upper", "effort", "velocity")
_LIMIT_SET = frozenset(_LIMIT)
_PER_NV = ("armature", "rotor_inertia", "gear_ratio", "damping", "friction", "stiffness")
_DYNAMICS_SET = frozenset({*_PER_NV, "spring_reference"})
_FRICTION = ("damping", "friction")
_OLD_DYNAMICS = frozenset({"D", "K", "mu_coulomb", "mu_viscous", "stiffness", "spring_stiffness"})
_NEEDS_LIMIT = ("revolute", "prismatic")


class Rotor(NamedTuple):
    """Rotor inertia [kg m^2] and gear ratio of a joint's motor."""

    inertia: float = 0.0
    ratio: float = 1.0


def read_limits(
    context: Context,
    joint: _Element,
    motion: JointKind,
    parts: dict[str, _Element],
    label: str,
) -> dict[str, Any]:
    """Limits of a joint as arguments of ``ModelBuilder.joint``; takes its elements out of parts."""
    if motion.nv == 0:
        return {}
    plain, own = parts.pop("limit", None), parts.pop(LIMITS, None)
    if own is not None:
        check_attributes(context, own, _LIMIT_SET, label)
        sizes = {"lower": motion.nq, "upper": motion.nq, "velocity": motion.nv, "effort": motion.nv}
        return _lists(context, own, sizes, label, infinite=True)
    if plain is None:
        if motion.name in _NEEDS_LIMIT:
            what = f"{label}: <limit> is required for {motion.name}, there is none."
            other = ", or make the joint continuous" if motion.name == "revolute" else ""
            cure = f"It is taken as unlimited; add <limit>{other}."
            context.warn("no-limit", joint, what, cure, LimitWarning)
            context.default(joint, label, "no <limit>: unlimited")
        return {}
    return _plain_limits(context, plain, motion, label)


def _plain_limits(
    context: Context, element: _Element, motion: JointKind, label: str
) -> dict[str, Any]:
    check_attributes(context, element, _LIMIT_SET, label)
    values: dict[str, Any] = {}
    for name in _LIMIT:
        value = number(context, element, name, label, thing=f"limit {name}", infinite=True)
        if value is not None:
            values[name] = value
    if motion.name not in (*_NEEDS_LIMIT, "helical"):
        for name in ("lower", "upper"):
            if values.pop(name, None) is not None:
                note = f"a {motion.name} joint has no such limit"
                context.ignore(element, f"{label}: limit {name}", note)
        return values
    missing = [name for name in _LIMIT if element.get(name) is None]
    if missing and motion.name in _NEEDS_LIMIT:
        names = ", ".join(missing)
        what = f"{label}: <limit> has no {names}."
        context.warn("limit-missing", element, what, "Taken as unlimited; add it.", LimitWarning)
        context.default(element, label, f"limit {names}: unlimited")
    return values


def read_drive(
    context: Context,
    motion: JointKind,
    parts: dict[str, _Element],
    rotor: Rotor | None,
    label: str,
) -> dict[str, Any]:
    """Drive of a joint as arguments of ``ModelBuilder.joint``; takes its elements out of parts."""
    if motion.nv == 0:
        return {}
    values: dict[str, Any] = {}
    if rotor is not None:
        values |= {"rotor_inertia": rotor.inertia, "gear_ratio": rotor.ratio}
    if (plain := parts.pop("dynamics", None)) is not None:
        _warn_old_dynamics(context, plain, label)
        for name in _FRICTION:
            value = number(context, plain, name, label, thing=name)
            if value is not None:
                values[name] = value
    if (own := parts.pop(DYNAMICS, None)) is not None:
        check_attributes(context, own, _DYNAMICS_SET, label)
        sizes = dict.fromkeys(_PER_NV, motion.nv) | {"spring_reference": motion.nq}
        values |= _lists(context, own, sizes, label)
    return values


def _warn_old_dynamics(context: Context, element: _Element, label: str) -> None:
    check_attributes(context, element, frozenset(_FRICTION), label)
    old = sorted(_OLD_DYNAMICS.intersection(element.keys()))
    if any(parse_number(element.get(name) or "") != 0 for name in old):
        what = f"{label}: <dynamics> attributes {', '.join(old)} are not URDF's and are ignored."
        cure = "Give damping and friction, or <phistar:dynamics stiffness=.../>."
        context.warn("ignored-dynamics", element, what, cure, IgnoredWarning)


def _lists(
    context: Context,
    element: _Element,
    sizes: dict[str, int],
    label: str,
    *,
    infinite: bool = False,
) -> dict[str, Any]:
    """Attributes with one number per coordinate, or a single one that holds for all."""
    values: dict[str, Any] = {}
    for name, size in sizes.items():
        found = numbers(context, element, name, (1, size), label, thing=name, infinite=infinite)
        if found is not None:
            values[name] = found[0] if len(found) == 1 else found
    return values


def read_rotors(context: Context, root: _Element) -> dict[str, Rotor]:
    """Motors by joint name: Drake's rotor inertia and gear ratio inside transmissions."""
    inertia_tag, ratio_tag = (f"{{{DRAKE_NAMESPACE}}}{x}" for x in ("rotor_inertia", "gear_ratio"))
    rotors: dict[str, Rotor] = {}
    for transmission in root.iterfind("transmission"):
        joint, actuator = transmission.find("joint"), transmission.find("actuator")
        name = None if joint is None else joint.get("name")
        if actuator is None or not name:
            continue
        found = {}
        for key, tag in (("inertia", inertia_tag), ("ratio", ratio_tag)):
            element = actuator.find(tag)
            if element is not None:
                value = number(context, element, "value", f'transmission of joint "{name}"')
                if value is not None:
                    found[key] = value
        if found:
            rotors[name] = Rotor(**found)
    return rotors
