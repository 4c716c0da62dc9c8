# SPDX-License-Identifier: BSD-3-Clause
"""Where bodies of loops keep numbers for each other: names while they are traced, then slots.

Numbers that are never needed at the same time share a slot. A number at a link lives from the loop
that first writes it to the last one that touches it. If a loop reads it for the last time when it
comes to the link itself, what the same visit leaves behind may take its place: a body loads before
it stores. What walks for columns touch lives as long as there are columns.

Numbers that one loop alone hands from link to link (velocities outward, articulated inertias
inward) are not kept at the links at all, but in a few places that stay in the nearest cache.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from phistar.scalar.graph import Value
from phistar.scalar.program import Body, Loop, Store, Walk
from phistar.sweeps.ir import Direction

WORK, HAND = "work", "hand"

Key = tuple[Any, int]
"""A stream, or the name of one, and the number of an entry of its values."""

Places = Callable[[str, Key, str], tuple[Any, ...]]
"""What a key may stand for at a link that is something to the column's, or at its parent."""

T = TypeVar("T")


@dataclass(frozen=True)
class Slotted:
    """Loops and walks whose bodies know where numbers are.

    Attributes:
        loops, walks: Without what nobody reads; equal bodies are the same.
        slots: How many a link has.
        hands: How many a place has for what links hand to each other.
    """

    loops: list[Loop]
    walks: list[Walk]
    slots: int
    hands: int


def with_slots(
    loops: Sequence[Loop], walks: Sequence[Walk] = (), places: Places | None = None
) -> Slotted:
    """Loops with slots in the place of keys.

    Args:
        loops: Loops whose bodies keep numbers under keys; they are changed.
        walks: The same for walks for columns.
        places: What the keys of these stand for; those of loops stand for themselves.
    """
    traced = {id(b): _Traced(b) for loop in loops for b in loop.bodies.values()}
    for walk in walks:
        for (_, relation, _), body in walk.bodies.items():
            own = _own_place if places is None else partial(places, relation)
            traced[id(body)] = _Traced(body, own)
    _drop_unread(traced.values())
    again = [body for walk in walks for body in walk.bodies.values()]
    held = {key for body in again for key, _ in _touches(body)}
    handed = handed_on(loops, held)
    slots = slots_of(loops, held, handed)
    homes = {key: (WORK, slot) for key, slot in slots.items()}
    homes |= {key: (HAND, slot) for key, slot in handed.items()}
    for graph in {id(each.body.graph): each.body.graph for each in traced.values()}.values():
        for number, node in enumerate(graph.nodes):
            if node[0] == "load" and node[1][0] == WORK:
                _, key, base = node[1]
                graph.nodes[number] = ("load", (*homes.get(key, (WORK, -1)), base))
    once: dict[Any, Body] = {}
    same: dict[int, Body] = {}
    for name, each in traced.items():
        each.body.stores = [
            _moved(store, *homes[store.index]) if store.space == WORK else store
            for store in each.body.stores
        ]
        same[name] = once.setdefault(each.body.key(), each.body)

    def merged(bodies: Mapping[T, Body]) -> dict[T, Body]:
        return {kind: same[id(body)] for kind, body in bodies.items() if body.stores}

    done = [Loop(loop.direction, merged(loop.bodies)) for loop in loops]
    columns = [Walk(walk.direction, merged(walk.bodies)) for walk in walks]
    return Slotted(
        [loop for loop in done if loop.bodies],
        [walk for walk in columns if walk.bodies],
        max(slots.values(), default=-1) + 1,
        max(handed.values(), default=-1) + 1,
    )


def _moved(store: Store, space: str, slot: int) -> Store:
    return replace(store, space=space, index=slot)


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


def handed_on(loops: Sequence[Loop], held: Set[Any] = frozenset()) -> dict[Any, int]:
    """A slot for each key that is read by children or parents in the loop that writes it, only.

    Args:
        loops, held: As for ``slots_of``.
    """
    used: Counter[int] = Counter()
    handed: dict[Any, int] = {}
    for key, touched in _touched(loops).items():
        number = min(touched)
        way = loops[number].direction
        if len(touched) == 1 and key not in held and touched[number] == _HANDED[way]:
            handed[key] = used[number]
            used[number] += 1
    return handed


_HANDED = {
    Direction.OUTWARD: {("write", "link"), ("read", "parent")},
    Direction.INWARD: {("write", "parent"), ("read", "link")},
}


def slots_of(
    loops: Sequence[Loop], held: Set[Any] = frozenset(), handed: Collection[Any] = ()
) -> dict[Any, int]:
    """A slot for each key that is kept at the links.

    Args:
        loops: Loops, in order.
        held: Keys that walks touch afterwards, for one column after the other.
        handed: Keys that are not kept at the links.
    """
    lives = {key: life for key, life in _lives(loops).items() if key not in handed}
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
    return {key: _life(loops, by_loop) for key, by_loop in _touched(loops).items()}


def _touched(loops: Sequence[Loop]) -> dict[Any, dict[int, set[tuple[str, str]]]]:
    """How each loop touches each key."""
    touched: dict[Any, dict[int, set[tuple[str, str]]]] = defaultdict(lambda: defaultdict(set))
    for number, loop in enumerate(loops):
        for body in {id(body): body for body in loop.bodies.values()}.values():
            for key, how in _touches(body):
                touched[key][number].add(how)
    return touched


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
