# SPDX-License-Identifier: BSD-3-Clause
"""Numbers, poses and children of URDF elements; problems are reported."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.errors import IgnoredWarning, UnitWarning
from phistar.loaders.urdf.context import (
    XACRO_CURE,
    Context,
    is_xacro,
    prefixed_tag,
    quote,
    split_tag,
)
from phistar.loaders.urdf.dialect import qname
from phistar.model.builder import make_pose
from phistar.model.components import IDENTITY
from phistar.spatial import is_rotation

if TYPE_CHECKING:
    from lxml.etree import _Element

Vector = tuple[float, ...]

# XSD's double: no hexadecimal, no underscore, no unit, and a decimal point whatever the locale.
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.ASCII | re.IGNORECASE)
_NAN = re.compile(r"[+-]?nan", re.ASCII | re.IGNORECASE)
_MAX_NUMBER_CHARACTERS = 500

ZERO_VECTOR: Vector = (0.0, 0.0, 0.0)
ROTATION = qname("rotation")
ORIGIN_ATTRIBUTES = frozenset({"xyz", "rpy", ROTATION})


@lru_cache(maxsize=8192)
def parse_number(text: str) -> float:
    """The value of an XSD double; NaN if ``text`` is not a finite one."""
    if len(text) <= _MAX_NUMBER_CHARACTERS and _NUMBER.fullmatch(text):
        return float(text)
    return math.nan


def read_numbers(
    context: Context,
    element: _Element,
    attribute: str,
    counts: Collection[int],
    label: str,
    *,
    thing: str = "",
    infinite: bool = False,
) -> Vector | None:
    """The numbers of an attribute; None if it is absent, or bad (which is reported).

    Args:
        context: Receives the problems.
        element, attribute: Their position.
        counts: Allowed numbers of values; none at all: any.
        label: The link or joint they belong to, for messages.
        thing: What they are, for messages (default: the element's name).
        infinite: Whether ``inf`` is a value.
    """
    text = element.get(attribute)
    if text is None:
        return None
    tokens = text.split()
    values = tuple(map(parse_number, tokens))
    if (not counts or len(values) in counts) and all(map(math.isfinite, values)):
        return values
    thing = thing or prefixed_tag(element.tag)
    for token, value in zip(tokens, values, strict=True):
        if infinite and _INFINITE.fullmatch(token):
            continue
        if not math.isfinite(value):
            _bad_number(context, element, token, value, f"{label}: {{}} {thing}")
            return None
    if counts and len(values) not in counts:
        expected = " or ".join(str(count) for count in sorted(set(counts)))
        what = f"{label}: {thing} needs {expected} values, got {len(values)}: {quote(text)}."
        context.reject("wrong-count", element, what, f"Give {attribute} {expected} numbers.")
        return None
    return tuple(float(token) for token in tokens)


def _bad_number(
    context: Context, element: _Element, token: str, value: float, message: str
) -> None:
    if "$" in token or "{" in token:
        what = f"{message.format('cannot parse')} {quote(token)}."
        context.reject("xacro", element, what, XACRO_CURE)
    elif math.isinf(value) or _INFINITE.fullmatch(token) or _NAN.fullmatch(token):
        what = f"{message.format('')} {quote(token)} is not finite.".replace(":  ", ": ")
        context.reject("not-finite", element, what, "Give a finite number.")
    else:
        what = f"{message.format('cannot parse')} {quote(token)}."
        cure = "Write numbers like 0.1 or 1e-3: a decimal point, no comma, no unit."
        context.reject("bad-number", element, what, cure)


def fast_numbers(element: _Element, names: tuple[str, ...]) -> Vector | None:
    """Numbers of several attributes, if each is there and is a finite one; else None.

    Fast path; ``read_number`` reports problems.
    """
    values = tuple([parse_number(element.get(name) or "") for name in names])
    return values if all(map(math.isfinite, values)) else None


def read_number(
    context: Context,
    element: _Element,
    attribute: str,
    label: str,
    *,
    thing: str = "",
    infinite: bool = False,
) -> float | None:
    """The single number of an attribute; None if it is absent or bad (see ``read_numbers``)."""
    values = read_numbers(context, element, attribute, (1,), label, thing=thing, infinite=infinite)
    return None if values is None else values[0]


def read_pose(
    context: Context,
    element: _Element | None,
    label: str,
    known: frozenset[str] = ORIGIN_ATTRIBUTES,
) -> Array:
    """The (4, 4) pose of an ``<origin>``; the identity if there is none."""
    if element is None:
        return IDENTITY
    check_attributes(context, element, known, label)
    name = prefixed_tag(element.tag)
    xyz = read_numbers(context, element, "xyz", (3,), label, thing=f"{name} xyz") or ZERO_VECTOR
    rpy = read_numbers(context, element, "rpy", (3,), label, thing=f"{name} rpy") or ZERO_VECTOR
    if max(map(abs, rpy)) > 2 * math.pi + 1e-6:
        largest = max(rpy, key=abs)
        what = f"{label}: {name} rpy {element.get('rpy')}: {largest:g} rad exceeds 2*pi."
        cure = "Probably degrees; URDF angles are in radians. The value is kept."
        context.warn("degrees", element, what, cure, UnitWarning)
    if element.get(ROTATION) is not None:
        rotation = _exact_rotation(context, element, make_pose(ZERO_VECTOR, rpy)[:3, :3], label)
        if rotation is not None:
            return make_pose(xyz, rotation=rotation)
    return make_pose(xyz, rpy)


def _exact_rotation(
    context: Context, element: _Element, from_rpy: Array, label: str
) -> Array | None:
    values = read_numbers(context, element, ROTATION, (9,), label, thing="phistar:rotation")
    if values is None:
        return None
    rotation = np.array(values).reshape(3, 3)
    if not is_rotation(rotation, 1e-9):
        what = f"{label}: phistar:rotation is not a rotation matrix."
        cure = "Its rows must be orthonormal, its determinant 1."
        context.reject("not-rotation", element, what, cure)
        return None
    gap = abs(rotation - from_rpy).max()
    if element.get("rpy") is not None and gap > 1e-9:
        what = f"{label}: phistar:rotation and rpy differ by {gap:.3g}."
        context.reject("rotation-differs", element, what, "Change both, or remove one of them.")
        return None
    return rotation


def read_axis(context: Context, element: _Element, label: str) -> tuple[float, float, float] | None:
    """The direction of an ``<axis>`` as the file gives it; None if it is bad."""
    check_attributes(context, element, frozenset({"xyz"}), label)
    name = prefixed_tag(element.tag)
    if element.get("xyz") is None:
        context.reject("axis-empty", element, f"{label}: <{name}> has no xyz.", 'Add xyz="0 0 1".')
        return None
    axis = read_numbers(context, element, "xyz", (3,), label)
    if axis is None:
        return None
    length = math.hypot(*axis)
    if length < 1e-12:
        context.reject("zero-axis", element, f"{label}: {name} is zero.", "Give it a direction.")
        return None
    if abs(length - 1.0) > 1e-3:
        unit = " ".join(f"{x / length:.6g}" for x in axis)
        what = f"{label}: {name} {element.get('xyz')} has length {length:g}."
        context.warn("axis-length", element, what, f"It is normalised to {unit}.")
    return axis[0], axis[1], axis[2]


def read_flag(context: Context, element: _Element, attribute: str, label: str) -> bool | None:
    """A true/false attribute; None if it is absent or bad."""
    text = element.get(attribute)
    if text is None:
        return None
    value = {"true": True, "1": True, "false": False, "0": False}.get(text.strip())
    if value is None:
        what = f"{label}: {prefixed_tag(attribute)} is {quote(text)}."
        context.reject("bad-flag", element, what, "It must be true or false.")
    return value


def check_attributes(
    context: Context, element: _Element, known: frozenset[str], label: str
) -> None:
    """List the attributes that nothing reads."""
    names = element.keys()
    if known.issuperset(names):
        return
    for name in map(str, names):
        if name not in known:
            what = f"{label}: <{prefixed_tag(element.tag)}> attribute {prefixed_tag(name)}"
            context.ignore(element, what, "not an attribute that is read")


def children_by_tag(
    context: Context,
    element: _Element,
    known: frozenset[str],
    label: str,
    *,
    many: frozenset[str] = frozenset(),
    fatal: frozenset[str] = frozenset(),
) -> tuple[dict[str, _Element], list[_Element]]:
    """An element's children by tag, the first of each; repeated and unknown ones are reported.

    Args:
        context: Receives the problems.
        element: The parent.
        known: Tags that may occur once.
        label: The link or joint, for messages.
        many: Tags that may repeat; they come back as a list.
        fatal: Those of ``known`` that must not be repeated at all.
    """
    first: dict[str, _Element] = {}
    rows: list[_Element] = []
    for child in element:
        tag = child.tag
        if tag in many:
            rows.append(child)
        elif tag not in known:
            ignore_element(context, child, label)
        elif tag not in first:
            first[tag] = child
        elif tag in fatal:
            what = f"{label}: more than one <{prefixed_tag(tag)}>."
            context.reject("repeated-element", child, what, "Keep one of them.")
        else:
            what = f"{label}: two <{prefixed_tag(tag)}> elements."
            context.warn("repeated-element", child, what, "The first is used; remove the other.")
    return first, rows


_SIMULATOR = "settings for a simulator or a controller"
_REASONS = {
    "gazebo": "settings of the Gazebo simulator",
    "transmission": "how motors are wired; only which joints have one is kept",
    "ros2_control": "settings of a controller",
    "mujoco": "compiler settings of MuJoCo",
    "sensor": "sensors are not modelled",
    "safety_controller": "soft limits of a controller",
    "calibration": "reference positions of encoders",
    "contact": "contact parameters of a simulator",
    "verbose": "a name to display",
    "collision_checking": _SIMULATOR,
    "self_collision_checking": _SIMULATOR,
    "self_filter": _SIMULATOR,
    "collision_filter_group": "collision pairs",
    "controller_gains": _SIMULATOR,
    "texture": "textures are not drawn",
}
"""Why known elements are not used."""

_DYNAMIC_TAGS = frozenset(
    {"inertial", "origin", "axis", "joint_properties", "dynamics", "limit", "mass", "inertia"}
    | {"loop_joint", "linear_bushing_rpy", "linear_spring_damper", "ball_constraint"}
    | {"rotor_inertia", "gear_ratio", "screw_thread_pitch", "bushing", "force_element"}
)
"""Elements that would change the dynamics in their proper position."""


def ignore_element(context: Context, element: _Element, label: str) -> None:
    """List an element that is not read; warn if it could matter to the dynamics."""
    namespace, local = split_tag(element.tag)
    name = prefixed_tag(element.tag)
    what = f"{label}: <{name}>" if label else f"<{name}>"
    if is_xacro(namespace):
        report_xacro(context, element, label)
    elif local in _DYNAMIC_TAGS:
        context.ignore(element, what, "has no meaning here")
        cure = "It is ignored although it looks like part of the dynamics; correct or remove it."
        what = f"{what} has no meaning here."
        context.warn("ignored-element", element, what, cure, IgnoredWarning)
    else:
        context.ignore(element, what, _REASONS.get(local, "not an element that is read"))


def report_xacro(context: Context, element: _Element, label: str) -> None:
    """An element that xacro should have expanded: an include is an error, others are warned of."""
    local = split_tag(element.tag)[1]
    prefix = f"{label}: " if label else ""
    if local == "include":
        file = quote(element.get("filename") or "")
        what = f"{prefix}unexpanded xacro: <xacro:include filename={file}>."
        context.error("xacro", element, what, XACRO_CURE)
    elif local in ("property", "arg", "macro"):
        context.ignore(element, f"{prefix}<xacro:{local}>", "a definition for xacro")
        what = f"{prefix}<xacro:{local}> was left unexpanded."
        context.warn("xacro", element, what, XACRO_CURE)
    else:
        context.ignore(element, f"{prefix}<xacro:{local}>", "a call of xacro, not expanded")
        what = f"{prefix}<xacro:{local}> was left unexpanded: part of the robot is missing."
        context.warn("xacro", element, what, XACRO_CURE)
