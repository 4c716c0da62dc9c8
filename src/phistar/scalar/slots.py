# SPDX-License-Identifier: BSD-3-Clause
"""Where bodies of loops keep numbers for each other: names while they are traced, then slots.

Numbers that are never needed at the same time share a slot. A number at a link lives from the loop
that first writes it to the last one that touches it. If a loop reads it for the last time when it
comes to the link itself, what the same visit leaves behind may take its place: a body loads before
it stores. What walks for columns touch lives as long as there are columns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from phistar.scalar.graph import Value
from phistar.scalar.program import Body, Loop, Store, Walk
from phistar.sweeps.ir import Direction

WORK = "work"

Key = tuple[Any, int]
"""A stream, or the name of one, and the number of an entry of its values."""

Places = Callable[[str, Key, str], tuple[Any, ...]]
"""What a key may stand for at a link that is something to the column's, or at its parent."""

T = TypeVar("T")


def with_slots(
    loops: Sequence[Loop], walks: Sequence[Walk] = (), places: Places | None = None
) -> tuple[list[Loop], list[Walk], int]:
    """Loops with slots in the place of keys, without what nobody reads; equal bodies are the same.

    Args:
        loops: Loops whose bodies keep numbers under keys; they are changed.
        walks: The same for walks for columns.
        places: What the keys of these stand for; those of loops stand for themselves.

    Returns:
        The loops, the walks, and how many slots a link has.
    """
    traced = {id(b): _Traced(b) for loop in loops for b in loop.bodies.values()}
    for walk in walks:
        for (_, relation, _), body in walk.bodies.items():
            own = _own_place if places is None else partial(places, relation)
            traced[id(body)] = _Traced(body, own)
    _drop_unread(traced.values())
    again = [body for walk in walks for body in walk.bodies.values()]
    slots = slots_of(loops, {key for body in again for key, _ in _touches(body)})
    for graph in {id(each.body.graph): each.body.graph for each in traced.values()}.values():
        for number, node in enumerate(graph.nodes):
            if node[0] == "load" and node[1][0] == WORK:
                space, key, base = node[1]
                graph.nodes[number] = ("load", (space, slots.get(key, -1), base))
    once: dict[Any, Body] = {}
    same: dict[int, Body] = {}
    for name, each in traced.items():
        each.body.stores = [
            replace(store, index=slots[store.index]) if store.space == WORK else store
            for store in each.body.stores
        ]
        same[name] = once.setdefault(each.body.key(), each.body)

    def merged(bodies: Mapping[T, Body]) -> dict[T, Body]:
        return {kind: same[id(body)] for kind, body in bodies.items() if body.stores}

    done = [Loop(loop.direction, merged(loop.bodies)) for loop in loops]
    columns = [Walk(walk.direction, merged(walk.bodies)) for walk in walks]
    size = max(slots.values(), default=-1) + 1
    return [loop for loop in done if loop.bodies], [walk for walk in columns if walk.bodies], size


# -- what nobody reads


def _own_place(key: Key, base: str) -> tuple[Any, ...]:
    """What a key may stand for: the same at all links."""
    return (key,)


@dataclass
class _Traced:
    """A body, and what the keys in it may stand for at a link or at its parent."""

    body: Body
    places: Callable[[Key, str], tuple[Any, ...]] = _own_place

    def is_read(self, store: Store, live: Set[Any]) -> bool:
        """Whether anyone reads what a store leaves."""
        return store.space != WORK or not live.isdisjoint(self.places(store.index, store.base))

    def reads(self, live: Set[Any]) -> set[Any]:
        """What the stores that are read need of others."""
        graph = self.body.graph
        roots = [
            store.value
            for store in self.body.stores
            if isinstance(store.value, Value) and self.is_read(store, live)
        ]
        found: set[Any] = set()
        for number in graph.live(roots):
            node = graph.nodes[number]
            if node[0] == "load" and node[1][0] == WORK:
                found.update(self.places(*node[1][1:]))
        return found


def _drop_unread(traced: Collection[_Traced]) -> None:
    live: set[Any] = set()
    grown = True
    while grown:
        before = len(live)
        for each in traced:
            live |= each.reads(live)
        grown = len(live) > before
    for each in traced:
        each.body.stores = [store for store in each.body.stores if each.is_read(store, live)]


# -- what lives at the same time


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


def slots_of(loops: Sequence[Loop], held: Set[Any] = frozenset()) -> dict[Any, int]:
    """A slot for each key of the workspace.

    Args:
        loops: Loops, in order.
        held: Keys that walks touch afterwards, for one column after the other.
    """
    lives = _lives(loops)
    for key in held:
        life = lives.get(key, _Life(len(loops), len(loops), late=False, early=False))
        lives[key] = replace(life, last=len(loops), early=False)
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


def _lives(loops: Sequence[Loop]) -> dict[Any, _Life]:
    touched: dict[Any, dict[int, set[tuple[str, str]]]] = defaultdict(lambda: defaultdict(set))
    for number, loop in enumerate(loops):
        for body in {id(body): body for body in loop.bodies.values()}.values():
            for key, how in _touches(body):
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
