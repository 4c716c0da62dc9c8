# SPDX-License-Identifier: BSD-3-Clause
"""Classes of links that may share one body of a loop, and the values that pass between bodies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from phistar.model.parts import GROUND
from phistar.scalar.emit import Factor
from phistar.scalar.graph import Scalar
from phistar.scalar.inertia import Nothing, Rigid, Symmetric, Transfer
from phistar.scalar.links import Link
from phistar.scalar.numbers import flat
from phistar.sweeps.ir import Program, Type

MOST_CLASSES = 8
"""More would make the code larger than the constants they save."""

Key = Callable[[int], tuple[Any, ...]]


def classes_of(links: Sequence[Link], children: Sequence[Sequence[int]]) -> list[int]:
    """A class for each link: by pattern of constants if that gives few classes, else by kind."""
    roots = {k for k, link in enumerate(links) if link.parent == GROUND}
    firsts = {min(c) for c in children if c} | roots
    lasts = {max(c) for c in children if c} | roots

    def place(k: int) -> tuple[Any, ...]:
        link = links[k]
        follows = link.scale != 1.0 or link.offset != 0.0
        return (
            *(link.kind, link.size, follows, any(link.armature)),
            *(k in roots, not children[k], k in firsts, k in lasts),
        )

    def by_pattern(k: int) -> tuple[Any, ...]:
        return (place(k), *(_whole(x) for x in flat(links[k])))

    def by_rotation(k: int) -> tuple[Any, ...]:
        return (place(k), *(_whole(x) for x in links[k].frame.R.ravel().tolist()))

    def by_kind(k: int) -> tuple[Any, ...]:
        return (place(k), links[k].frame.R[2, 0] == 0.0)

    numbers: dict[tuple[Any, ...], int] = {}
    keys: list[tuple[Any, ...]] = []
    for key in (by_pattern, by_rotation, by_kind):
        keys = [key(k) for k in range(len(links))]
        numbers = {each: i for i, each in enumerate(dict.fromkeys(keys))}
        if len(numbers) <= MOST_CLASSES:
            break
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
            made = {"rigid": 1, "down": 2, "give": 2, "gyro": 3}.get(node.op)
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
