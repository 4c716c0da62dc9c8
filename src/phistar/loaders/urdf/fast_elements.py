# SPDX-License-Identifier: BSD-3-Clause
"""Fast path for common links and joints without anything to report.

Functions return None for what is rare or wrong; then the readers of ``link`` and ``joint`` read the
element in full and report. Both paths give the same result. Values are cached by their attributes,
as large robots repeat most of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from phistar.arrays import Array
from phistar.loaders.urdf.context import MAX_NAME_CHARACTERS
from phistar.loaders.urdf.values import parse_number
from phistar.model.builder import inertia_rows, make_pose
from phistar.model.components import IDENTITY, Limits, frozen
from phistar.model.joints import Axis

if TYPE_CHECKING:
    from lxml.etree import _Element

Value = TypeVar("Value")
Attributes = tuple[tuple[str, str], ...]

_CACHE_ENTRIES = 32768
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_LIMIT = ("lower", "upper", "velocity", "effort")


def fast_name(element: _Element, others: int = 0) -> str | None:
    """The name of an element with ``others`` more attributes."""
    name = element.get("name")
    if not name or len(name) > MAX_NAME_CHARACTERS or len(element.attrib) != others + 1:
        return None
    return name


def fast_inertial(element: _Element) -> tuple[float, Array, Array] | None:
    """Mass, centre of mass and inertia of an ``<inertial>`` without rotation."""
    values: dict[str, Any] = {}
    for child in element:
        tag = child.tag
        read = _INERTIAL.get(tag)
        if read is None or tag in values:
            return None
        values[tag] = value = _read_once(read, tuple(child.items()))
        if value is None:
            return None
    if len(values) != 3:
        return None
    return values["mass"], values["origin"], values["inertia"]


def fast_joint(element: _Element) -> dict[str, Any] | None:
    """Contents of a ``<joint>`` that has each of its usual elements, by name."""
    values: dict[str, object] = {}
    for child in element:
        tag = child.tag
        if tag in _ENDS:
            items = child.items()
            value: object = items[0][1] if len(items) == 1 and items[0][0] == "link" else ""
            value = value or None
        elif tag in _JOINT:
            value = _read_once(_JOINT[tag], tuple(child.items()))
        else:
            return None
        if value is None or tag in values:
            return None
        values[tag] = value
    return values if len(values) == len(_JOINT) + len(_ENDS) else None


@lru_cache(_CACHE_ENTRIES)
def _read_once(read: Callable[[Attributes], Value], attributes: Attributes) -> Value:
    """What a reader makes of attributes; files repeat them from link to link."""
    return read(attributes)


def _mass(attributes: Attributes) -> float | None:
    values = _numbers(attributes, ("value",))
    return None if values is None else values[0]


def _inertia(attributes: Attributes) -> Array | None:
    values = _numbers(attributes, _MOMENTS)
    return None if values is None else frozen(inertia_rows(values, ""), (3, 3))


def _centre(attributes: Attributes) -> Array | None:
    pose = _translation(attributes)
    return None if pose is None else frozen(pose[:3, 3], (3,))


def _axis(attributes: Attributes) -> Axis | None:
    axis = _triple(attributes[0][1]) if [name for name, _ in attributes] == ["xyz"] else None
    return axis if axis is not None and abs(math.hypot(*axis) - 1.0) <= 1e-3 else None


def _limits(attributes: Attributes) -> Limits | None:
    values = _numbers(attributes, _LIMIT)
    if values is None or values[0] > values[1]:
        return None
    lower, upper, velocity, effort = values
    return Limits((lower,), (upper,), (velocity,), (effort,))


def _origin(attributes: Attributes) -> Array | None:
    values = dict(attributes)
    xyz, rpy = _triple(values.pop("xyz", "0 0 0")), _triple(values.pop("rpy", "0 0 0"))
    if values or xyz is None or rpy is None or max(map(abs, rpy)) > 2 * math.pi:
        return None
    return make_pose(xyz, rpy)


def _translation(attributes: Attributes) -> Array | None:
    """A pose without rotation."""
    pose = _origin(attributes)
    is_rotated = pose is None or pose[:3, :3].tobytes() != IDENTITY[:3, :3].tobytes()
    return None if is_rotated else pose


def _numbers(attributes: Attributes, names: tuple[str, ...]) -> tuple[float, ...] | None:
    """The finite numbers of attributes that are exactly ``names``, in that order."""
    texts = dict(attributes)
    if len(texts) != len(names) or not texts.keys() >= set(names):
        return None
    values = tuple(parse_number(texts[name]) for name in names)
    return values if all(map(math.isfinite, values)) else None


def _triple(text: str) -> Axis | None:
    """Three finite numbers."""
    values = tuple(map(parse_number, text.split()))
    if len(values) != 3 or not all(map(math.isfinite, values)):
        return None
    return values


_INERTIAL = {"mass": _mass, "origin": _centre, "inertia": _inertia}
_JOINT = {"origin": _origin, "axis": _axis, "limit": _limits}
_ENDS = frozenset({"parent", "child"})
