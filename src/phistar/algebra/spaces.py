# SPDX-License-Identifier: BSD-3-Clause
"""The spaces that operators map between, each with its dual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Space:
    """A graded vector space over the links of a robot.

    Attributes:
        name: Identifier.
        reads: What its vectors are called in messages.
        dual_name: Name of the dual space; power is the pairing.
    """

    name: str
    reads: str
    dual_name: str

    @property
    def dual(self) -> Space:
        """The space paired with this one by power."""
        return _SPACES[self.dual_name]

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], Space], tuple[str]]:
        return _by_name, (self.name,)


_SPACES: dict[str, Space] = {}


def _by_name(name: str) -> Space:
    """The one space of this name: spaces are compared by identity, so copies must be the same."""
    return _SPACES[name]


def _space(name: str, reads: str, dual: str) -> Space:
    _SPACES[name] = Space(name, reads, dual)
    return _SPACES[name]


ONE = _space("ONE", "numbers", "ONE")
JOINT = _space("JOINT", "joint vectors", "JOINT")
MOTION = _space("MOTION", "link motions", "FORCE")
FORCE = _space("FORCE", "link forces", "MOTION")
TASK_MOTION = _space("TASK_MOTION", "frame motions", "TASK_FORCE")
TASK_FORCE = _space("TASK_FORCE", "frame forces", "TASK_MOTION")
WORLD_MOTION = _space("WORLD_MOTION", "link motions in the world", "WORLD_FORCE")
WORLD_FORCE = _space("WORLD_FORCE", "link forces in the world", "WORLD_MOTION")
GROUND_MOTION = _space("GROUND_MOTION", "motions of the ground", "GROUND_FORCE")
GROUND_FORCE = _space("GROUND_FORCE", "forces on the ground", "GROUND_MOTION")
POINT = _space("POINT", "weighted points of links", "PLANE")
PLANE = _space("PLANE", "affine functions on links", "POINT")
GROUND_POINT = _space("GROUND_POINT", "weighted points of the world", "GROUND_PLANE")
GROUND_PLANE = _space("GROUND_PLANE", "affine functions on the world", "GROUND_POINT")
PLACE = _space("PLACE", "places in the world", "PLACE")
GROUND_SPACES = (GROUND_MOTION, GROUND_FORCE, GROUND_POINT, GROUND_PLANE, PLACE)
"""Spaces without a part for each link: there is one ground."""
NORMALISED = _space("NORMALISED", "normalised link motions", "NORMALISED")
CONSTRAINT = _space("CONSTRAINT", "constraint vectors", "CONSTRAINT")
LOOP = _space("LOOP", "loop vectors", "LOOP")
MINIMAL = _space("MINIMAL", "minimal vectors", "MINIMAL")
