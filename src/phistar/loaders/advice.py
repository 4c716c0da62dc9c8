# SPDX-License-Identifier: BSD-3-Clause
"""Plausibility notes on a valid robot: left against right, units.

Each function takes a model and returns notes. A note is a question to the author of the file, never
an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from phistar.arrays import Array
from phistar.errors import InertiaWarning, PhistarWarning, Problem, UnitWarning
from phistar.model.components import Link, Shape
from phistar.model.model import Model
from phistar.model.problems import MAX_PLAUSIBLE_MASS_KG

MIRROR_TOLERANCE = 0.01
"""Relative difference of mass above which mirrored links get a note."""
HEAVY_LINK = 1000.0
"""Links heavier than this [kg] get a note."""
LONG_DISTANCE = 100.0
"""Distances larger than this [m] get a note."""
INERTIA_EXCESS = 10.0
"""Moments above this many times mass * radius^2 get a note; 1 is the most a body can have."""


def advice(model: Model) -> list[Problem]:
    """All notes on a model."""
    checks: tuple[Callable[[Model], list[Problem]], ...] = (
        mirror_notes,
        mass_notes,
        length_notes,
        inertia_notes,
    )
    return [note for check in checks for note in check(model)]


def _note(code: str, where: str, what: str, cure: str, category: type[PhistarWarning]) -> Problem:
    return Problem("note", code, where, what, cure, category)


# Whole words of a name that mean left, and the same with right. Two letters: legs of quadrupeds,
# front and hind or rear first or last. "rl" is rear left.
_LEFT_WORDS = {
    "left": "right",
    "l": "r",
    "fl": "fr",
    "hl": "hr",
    "rl": "rr",
    "bl": "br",
    "lf": "rf",
    "lh": "rh",
    "lr": "rr",
    "lb": "rb",
}
_WORD = re.compile(r"[A-Za-z]+")
_INSIDE = re.compile(r"left|Left|LEFT|(?<![A-Za-z])L(?=[A-Z][a-z])")
_INSIDE_RIGHT = {"left": "right", "Left": "Right", "LEFT": "RIGHT", "L": "R"}


def mirror_notes(model: Model) -> list[Problem]:
    """Links whose names differ only in left and right, but whose masses differ."""
    links = {link.name: link for link in model.links}
    notes: list[Problem] = []
    for left in model.links:
        right = next((links[name] for name in _mirrored(left.name) if name in links), None)
        if right is None:
            continue
        heavier = max(left.mass, right.mass)
        if abs(left.mass - right.mass) <= MIRROR_TOLERANCE * heavier:
            continue
        share = f"{100.0 * abs(left.mass - right.mass) / heavier:.3g} %"
        what = (
            f'link "{left.name}" has {left.mass:.4g} kg, its mirror image "{right.name}" '
            f"{right.mass:.4g} kg ({share} apart)."
        )
        cure = "Fine if the robot is built so; else one of them is an error."
        notes.append(_note("mirror-mass", left.where, what, cure, InertiaWarning))
    return notes


def _mirrored(name: str) -> Iterator[str]:
    """Possible names of the right-hand twin of a left-hand link."""
    words = _WORD.sub(lambda match: _right_word(match.group()), name)
    if words != name:
        yield words
    inside = _INSIDE.sub(lambda match: _INSIDE_RIGHT[match.group()], name)
    if inside not in (name, words):
        yield inside


def _right_word(word: str) -> str:
    right = _LEFT_WORDS.get(word.lower())
    if right is None:
        return word
    if word.isupper():
        return right.upper()
    return right.capitalize() if word[0].isupper() else right


def mass_notes(model: Model) -> list[Problem]:
    """Links so heavy that the file may mean grams."""
    cure = "Masses are in kg; was it grams?"
    return [
        _note(
            "mass-unit",
            link.where,
            f'link "{link.name}" has a mass of {link.mass:.4g} kg.',
            cure,
            UnitWarning,
        )
        for link in model.links
        if HEAVY_LINK < link.mass < MAX_PLAUSIBLE_MASS_KG
    ]


def length_notes(model: Model) -> list[Problem]:
    """Distances so large that the file may mean millimetres."""
    notes: list[Problem] = []
    for joint in model.joints.values():
        distance = math.hypot(*joint.origin[:3, 3])
        if distance > LONG_DISTANCE:
            notes.append(_length(joint.where, f'joint "{joint.name}" is {distance:.4g} m'))
    for link in model.links:
        distance = math.hypot(*link.com)
        if distance > LONG_DISTANCE:
            what = f'the centre of mass of link "{link.name}" is {distance:.4g} m'
            notes.append(_length(link.where, what))
        size = max((_outer(shape) for shape in _solids(link)), default=0.0)
        if size > LONG_DISTANCE:
            what = f'a shape of link "{link.name}" reaches {size:.4g} m'
            notes.append(_length(link.where, what))
    return notes


def _length(where: str, what: str) -> Problem:
    cure = "Lengths are in m; was it millimetres?"
    text = f"{what} away from the origin of its link."
    if what.startswith("joint"):
        text = f"{what} away from its parent link's origin."
    return _note("length-unit", where, text, cure, UnitWarning)


def inertia_notes(model: Model) -> list[Problem]:
    """Moments of inertia far beyond what the link's mass can have within the link's size."""
    reaches = _reaches(model)
    total_reach = sum(math.hypot(*joint.origin[:3, 3]) for joint in model.joints.values())
    notes: list[Problem] = []
    for link in model.links:
        if not 0.0 < link.mass < MAX_PLAUSIBLE_MASS_KG:
            continue
        has_shapes = bool(_solids(link)) and not _has_mesh(link)
        radius = max(reaches.get(link.name, 0.0), _radius(link)) if has_shapes else total_reach
        moment = float(link.inertia.diagonal().max())
        bound = link.mass * radius * radius
        if 0.0 < bound * INERTIA_EXCESS < moment:
            notes.append(_excess(link, moment, bound, radius, has_shapes))
    return notes


def _excess(link: Link, moment: float, bound: float, radius: float, has_shapes: bool) -> Problem:
    if has_shapes:
        size = f"its shapes end {radius:.3g} m from its centre of mass"
    else:
        size = f"all joint offsets of the robot add up to {radius:.3g} m"
    what = (
        f'link "{link.name}" has a moment of inertia of {moment:.3g} kg m^2, {moment / bound:.0f} '
        f"times what its {link.mass:.4g} kg can have: {size}."
    )
    cure = "Check its units (kg m^2, not kg mm^2) and that it is taken about the centre of mass."
    return _note("inertia-size", link.where, what, cure, UnitWarning)


def _reaches(model: Model) -> dict[str, float]:
    """Largest distance from each link's centre of mass to the joints it carries."""
    coms = {link.name: link.com for link in model.links}
    reaches: dict[str, float] = {}
    for joint in model.joints.values():
        if joint.parent in coms:
            reach = math.hypot(*(joint.origin[:3, 3] - coms[joint.parent]))
            reaches[joint.parent] = max(reaches.get(joint.parent, 0.0), reach)
    return reaches


def _solids(link: Link) -> list[Shape]:
    """The shapes whose size is known without opening a file."""
    shapes = (*link.visuals, *link.collisions)
    return [shape for shape in shapes if shape.kind in _EXTENTS and shape.size]


def _has_mesh(link: Link) -> bool:
    return any(shape.kind == "mesh" for shape in (*link.visuals, *link.collisions))


def _radius(link: Link) -> float:
    """Radius about the centre of mass that contains all shapes of known size."""
    return max((_outer(shape, link.com) for shape in _solids(link)), default=0.0)


def _outer(shape: Shape, center: Array | None = None) -> float:
    offset = shape.pose[:3, 3] - (np.zeros(3) if center is None else center)
    return math.hypot(*offset) + _EXTENTS[shape.kind](shape.size)


# Radius of the sphere about a shape's origin that contains it.
_EXTENTS: dict[str, Callable[[Sequence[float]], float]] = {
    "box": lambda size: 0.5 * math.hypot(*size),
    "sphere": lambda size: size[0],
    "cylinder": lambda size: math.hypot(size[0], 0.5 * size[1]),
    "capsule": lambda size: size[0] + 0.5 * size[1],
    "ellipsoid": lambda size: max(size),
}

__all__ = ["advice", "inertia_notes", "length_notes", "mass_notes", "mirror_notes"]
