# SPDX-License-Identifier: BSD-3-Clause
"""Classes of links that may share one body of a loop, and the values that pass between bodies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phistar.model.parts import GROUND
from phistar.scalar.emit import Factor
from phistar.scalar.graph import Scalar
from phistar.scalar.inertia import Nothing, Rigid, Symmetric, Transfer
from phistar.scalar.links import Link
from phistar.scalar.numbers import flat
from phistar.sweeps.ir import Program, Type

MOST = {"alike": 4.5, "turned": 4.5, "mixed": 3.5}
"""Classes of links, a tip counting half, for robots whose loops are soon replaced by a straight
line: the time of compilation grows with the code. By what the links of a class have in common: the
pattern of all constants, that of rotations (other numbers come from a table), or less, which gives
the longest formulas."""

MOST_LASTING = {"alike": 6.5, "turned": 5.5, "mixed": 4.5}
"""The same for robots that stay with loops: constants save more than the code costs."""

LASTING = 2700
"""Links times streams beyond which a program stays loops: a straight line, of about seven
operations each, is not worth its compilation and size."""


@dataclass(frozen=True)
class Classes:
    """Which links share bodies.

    Attributes:
        class_of: Number of the class of each link.
        family_of: Number of the family of each link. Classes of a family have the same constants
            and differ in their place in the tree alone, so that many of their bodies are the same.
    """

    class_of: list[int]
    family_of: list[int]


def classes_of(links: Sequence[Link], children: Sequence[Sequence[int]], streams: int) -> Classes:
    """By pattern of constants if that gives few classes, else by kind and place.

    Args:
        links: The robot.
        children: Of each link.
        streams: Of the program that will be done for the classes.
    """

    def kind(k: int) -> tuple[Any, ...]:
        return links[k].kind, links[k].size, links[k].frame.R[2, 0] == 0.0

    def drive(k: int) -> tuple[Any, ...]:
        link = links[k]
        return (*kind(k), link.scale != 1.0 or link.offset != 0.0, any(link.armature))

    def turns(k: int) -> tuple[Any, ...]:
        return (*drive(k), np.count_nonzero(links[k].frame.R))

    def rotation(k: int) -> tuple[Any, ...]:
        return (*drive(k), *(_whole(x) for x in links[k].frame.R.ravel().tolist()))

    def offset(k: int) -> tuple[Any, ...]:
        return (*rotation(k), *(x == 0.0 for x in links[k].frame.p.tolist()))

    def pattern(k: int) -> tuple[Any, ...]:
        return (*drive(k), *(_whole(x) for x in flat(links[k])))

    classes: list[int] = []
    families: list[int] = []
    most = MOST_LASTING if len(links) * streams > LASTING else MOST
    for key, common in (
        (pattern, "alike"),
        (offset, "turned"),
        (rotation, "turned"),
        (turns, "mixed"),
        (drive, "mixed"),
        (kind, "mixed"),
    ):
        families = _numbered([key(k) for k in range(len(links))])
        ends = ((link.parent == GROUND, not c) for link, c in zip(links, children, strict=True))
        classes = _numbered(list(zip(families, ends, strict=True)))
        if _weight(links, classes, children) <= most[common]:
            break
    return Classes(classes, families)


def _weight(
    links: Sequence[Link], classes: Sequence[int], children: Sequence[Sequence[int]]
) -> float:
    """How much code the classes need; those of a class are all tips, or none.

    Formulas with oblique rotations are about half as long again.
    """
    tips = {c: not found for c, found in zip(classes, children, strict=True)}
    oblique = {
        c for link, c in zip(links, classes, strict=True) if np.count_nonzero(link.frame.R) > 5
    }
    return sum((0.5 if tip else 1.0) * (1.5 if c in oblique else 1.0) for c, tip in tips.items())


def _numbered(keys: Sequence[tuple[Any, ...]]) -> list[int]:
    numbers = {each: i for i, each in enumerate(dict.fromkeys(keys))}
    return [numbers[each] for each in keys]


def _whole(x: float) -> float | None:
    return x if x in (0.0, 1.0, -1.0) else None


_EMPTY: dict[type, Any] = {
    Nothing: Nothing(),
    Rigid: Rigid(0.0, [0.0] * 3, [0.0] * 6),
    Symmetric: Symmetric([0.0] * 6, [[0.0] * 3] * 3, [0.0] * 6),
    Transfer: Transfer([[0.0] * 3] * 3, [[0.0] * 3] * 3),
}
"""An inertia of each kind, for its form."""


_MADE = {"rigid": 1, **dict.fromkeys(("down", "give", "turn", "through"), 2), "gyro": 3, "bend": 3}
"""Operations that make an inertia of one kind, whatever they are given."""


def inertia_forms(program: Program) -> dict[int, Any]:
    """An inertia of the kind that each stream needs, by a fixed point over its recursions."""
    kinds: dict[int, int] = defaultdict(int)
    changed = True
    while changed:
        changed = False
        for stream in program.live():
            node = program.nodes[stream]
            if node.type not in (Type.INERTIA, Type.TRANSFER):
                continue
            made = _MADE.get(node.op)
            kind = (
                max((kinds[o] for o in program.operands(stream)), default=0)
                if made is None
                else made
            )
            if kind != kinds[stream]:
                kinds[stream], changed = kind, True
    return {stream: list(_EMPTY.values())[kind] for stream, kind in kinds.items()}


def flatten(value: Any) -> list[Scalar]:
    """All numbers of a value."""
    if isinstance(value, (Rigid, Symmetric, Transfer, Nothing, Factor)):
        return value.numbers()
    if value and isinstance(value[0], list):
        return [x for row in value for x in row]
    return list(value)


def like(value: Any, scalars: Sequence[Scalar]) -> Any:
    """Other numbers in the form of a value."""
    x = list(scalars)
    if isinstance(value, Rigid):
        return Rigid(x[0], x[1:4], x[4:])
    if isinstance(value, Symmetric):
        return Symmetric(x[:6], [x[6:9], x[9:12], x[12:15]], x[15:])
    if isinstance(value, Transfer):
        return Transfer([x[0:3], x[3:6], x[6:9]], [x[9:12], x[12:15], x[15:18]])
    if isinstance(value, Nothing):
        return value
    if isinstance(value, Factor):
        return Factor.from_numbers(len(value.rows), x)
    if value and isinstance(value[0], list):
        width = len(value[0])
        return [x[i * width : (i + 1) * width] for i in range(len(value))]
    return x
