# SPDX-License-Identifier: BSD-3-Clause
"""Collision shapes without contacts: which kinds touch and are touched in ``robot.simulator``.

What contacts are made of and what the load report says of a file both come from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from phistar.errors import pluralize, with_article
from phistar.model.components import GROUND, Link, Shape
from phistar.model.model import Model

TOUCHING_KINDS = ("sphere", "capsule", "cylinder", "box")
"""Kinds of shapes with which moving links touch things."""
TOUCHED_KINDS = ("plane", "box")
"""Kinds of shapes of the world that are touched."""


@dataclass(frozen=True)
class IdleShape:
    """A collision shape without contacts.

    Attributes:
        name: Its own, or that of its link.
        kind: What it is.
        moves: Whether its link does, or is part of the world.
    """

    name: str
    kind: str
    moves: bool

    def __str__(self) -> str:
        kind = with_article(self.kind)
        if self.moves:
            return f"{self.name}: {kind} touches nothing"
        return f"{self.name}: nothing touches {kind} of the world"


def shape_name(link: Link, shape: Shape) -> str:
    """What a shape is called in contacts: its own name, or its link's."""
    return shape.name or link.name


def idle_shapes(model: Model) -> tuple[IdleShape, ...]:
    """All of a robot, in order of its links."""
    found = []
    for link in model.links:
        if not link.collisions:
            continue
        moves = model.frame(link.name).body != GROUND
        known = TOUCHING_KINDS if moves else TOUCHED_KINDS
        found += [
            IdleShape(shape_name(link, shape), shape.kind, moves)
            for shape in link.collisions
            if shape.kind not in known
        ]
    return tuple(found)


def idle_shape_rows(shapes: Sequence[IdleShape]) -> Iterator[tuple[str, str, str]]:
    """(no place, what, why) of each kind for the load report, with the names of the first."""
    groups: dict[tuple[str, bool], list[str]] = {}
    for shape in shapes:
        groups.setdefault((shape.kind, shape.moves), []).append(shape.name)
    for (kind, moves), names in groups.items():
        count = pluralize(len(names), "collision shape")
        known, reason = (
            (TOUCHING_KINDS, "touch") if moves else (TOUCHED_KINDS, "are touched in the world")
        )
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        yield (
            "",
            f"{count} of kind {kind} ({', '.join(names[:3])}{more})",
            f"no contacts in robot.simulator, where {', '.join(known)} {reason}",
        )
