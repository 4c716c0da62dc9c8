# SPDX-License-Identifier: BSD-3-Clause
"""Where loops keep their numbers: streams that are never needed at the same time share a slot.

A number at a link lives from the loop that first writes it to the last one that touches it. If a
loop reads it for the last time when it comes to the link itself, what the same visit leaves behind
may take its place: a body loads before it stores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

from phistar.scalar.program import Body, Loop
from phistar.sweeps.ir import Direction

WORK = "work"


@dataclass(frozen=True)
class _Life:
    """When a number is there.

    Attributes:
        first, last: Loops.
        late: Whether in the first loop nothing touches it before the link's visit stores it.
        early: Whether in the last loop nothing touches it after the link's visit has read it.
    """

    first: int
    last: int
    late: bool
    early: bool

    def before(self, other: _Life) -> bool:
        """Whether another number may follow in the same place."""
        meet = self.last == other.first and self.early and other.late
        return self.last < other.first or meet


def slots_of(loops: Sequence[Loop], live: Set[Any]) -> dict[Any, int]:
    """A slot for each key of the workspace that is live."""
    lives = _lives(loops, live)
    order = sorted(lives, key=lambda key: (lives[key].first, lives[key].late, str(key)))
    tenants: list[_Life] = []
    slots: dict[Any, int] = {}
    for key in order:
        life = lives[key]
        free = [i for i, tenant in enumerate(tenants) if tenant.before(life)]
        # The one that was left last: what is free for longer suits more of the others.
        slot = max(free, key=lambda i: (tenants[i].last, -i), default=len(tenants))
        tenants[slot : slot + 1] = [life]
        slots[key] = slot
    return slots


def _lives(loops: Sequence[Loop], live: Set[Any]) -> dict[Any, _Life]:
    touched: dict[Any, dict[int, set[tuple[str, str]]]] = defaultdict(lambda: defaultdict(set))
    for number, loop in enumerate(loops):
        for body in {id(body): body for body in loop.bodies.values()}.values():
            for key, how in _touches(body):
                if key in live:
                    touched[key][number].add(how)
    return {key: _life(loops, by_loop) for key, by_loop in touched.items()}


def _touches(body: Body) -> Iterator[tuple[Any, tuple[str, str]]]:
    for store in body.stores:
        if store.space == WORK:
            yield store.index, ("write", store.base)
    for number in body.live:
        node = body.graph.nodes[number]
        if node[0] == "load" and node[1][0] == WORK:
            yield node[1][1], ("read", node[1][2])


def _life(loops: Sequence[Loop], touched: dict[int, set[tuple[str, str]]]) -> _Life:
    first, last = min(touched), max(touched)

    def only(number: int, own: str, children: Direction) -> bool:
        """Whether a link touches its number in one way, and children in a certain order to it."""
        return all(
            how == own if base == "link" else loops[number].direction is children
            for how, base in touched[number]
        )

    return _Life(
        first, last, only(first, "write", Direction.OUTWARD), only(last, "read", Direction.INWARD)
    )
