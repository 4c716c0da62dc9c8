# SPDX-License-Identifier: BSD-3-Clause
"""Where bodies of loops keep numbers for each other: names while they are traced, then slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from phistar.scalar.graph import Value
from phistar.scalar.program import Body, Store

Key = tuple[Any, int]
"""A stream, or the name of one, and the number of an entry of its values."""


def own_place(key: Key, base: str) -> tuple[Any, ...]:
    """What a key may stand for: the same at all links."""
    return (key,)


@dataclass
class Traced:
    """A body, and what the keys in it may stand for at a link or at its parent."""

    body: Body
    places: Callable[[Key, str], tuple[Any, ...]] = own_place

    def is_read(self, store: Store, live: Set[Any]) -> bool:
        """Whether anyone reads what a store leaves."""
        return store.space != "work" or not live.isdisjoint(self.places(store.index, store.base))

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
            if node[0] == "load" and node[1][0] == "work":
                found.update(self.places(*node[1][1:]))
        return found


def number_slots(traced: Sequence[Traced]) -> dict[Key, int]:
    """Drop what nobody reads, and put numbers of slots in the place of keys."""
    live: set[Any] = set()
    grown = True
    while grown:
        before = len(live)
        for each in traced:
            live |= each.reads(live)
        grown = len(live) > before
    keys: set[Key] = set()
    for each in traced:
        each.body.stores = [store for store in each.body.stores if each.is_read(store, live)]
        keys |= {store.index for store in each.body.stores if store.space == "work"}
    slots = {key: i for i, key in enumerate(sorted(keys, key=str))}
    for graph in {id(each.body.graph): each.body.graph for each in traced}.values():
        for number, node in enumerate(graph.nodes):
            if node[0] == "load" and node[1][0] == "work":
                space, key, base = node[1]
                graph.nodes[number] = ("load", (space, slots.get(key, -1), base))
    for each in traced:
        each.body.stores = [
            replace(store, index=slots[store.index]) if store.space == "work" else store
            for store in each.body.stores
        ]
    return slots
