# SPDX-License-Identifier: BSD-3-Clause
"""Slots for the numbers that blocks of loops store for each other; while traced, they have keys.

Numbers that are never needed at the same time share a slot. A number at a link is live from the
loop that first writes it to the last one that reads or writes it. If the last read is at the link's
own visit, what that visit stores may take its slot: a block loads before it stores. What column
sweeps read or write is live until the last column.

Numbers that only one loop passes from link to link (velocities outward, articulated inertias
inward) are not stored per link, but in a few forward slots that stay in the nearest cache.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from phistar.scalar.graph import FORWARD, WORK, Place, SlotKey, Value
from phistar.scalar.linear_scan import LiveRange, linear_scan
from phistar.scalar.program import BasicBlock, ColumnSweep, LinkSweep, Store
from phistar.sweeps.ir import Direction

Alias = SlotKey | tuple[SlotKey, str]
"""A stored number: its key, or its key and the relation of its link to the column's link."""

KeyAliases = Callable[[str, SlotKey, str], tuple[Alias, ...]]
"""What a key may mean at a link with some relation to the column's link, or at its parent."""

Access = tuple[str, str]
"""``"read"`` or ``"write"``, at ``"link"`` or ``"parent"``."""

Accesses = Mapping[SlotKey, Mapping[int, Set[Access]]]
"""How each loop, by its number, touches each key."""

T = TypeVar("T")


@dataclass(frozen=True)
class SlotAllocation:
    """Link and column sweeps whose blocks use slots.

    Attributes:
        link_sweeps, column_sweeps: Without dead stores; equal blocks are one object.
        slots: Per link.
        forward_slots: Per place for what links pass to each other.
    """

    link_sweeps: list[LinkSweep]
    column_sweeps: list[ColumnSweep]
    slots: int
    forward_slots: int


def allocate_slots(
    link_sweeps: Sequence[LinkSweep],
    walks: Sequence[ColumnSweep] = (),
    places: KeyAliases | None = None,
) -> SlotAllocation:
    """Replace the keys of loops by slots.

    Args:
        link_sweeps: Loops whose blocks store numbers under keys; changed in place.
        walks: The column sweeps, likewise.
        places: What the keys of these may mean; those of loops mean themselves.
    """
    traced = _traced_blocks(link_sweeps, walks, places)
    _eliminate_dead_stores(traced.values())
    again = [body for walk in walks for body in walk.blocks.values()]
    held = {key for body in again for key, _ in _block_accesses(body)}
    touched = accesses_by_sweep(link_sweeps)
    handed = allocate_forward_slots(link_sweeps, touched, held)
    slots = allocate_link_slots(link_sweeps, touched, held, handed)
    homes = {key: (WORK, slot) for key, slot in slots.items()}
    homes |= {key: (FORWARD, slot) for key, slot in handed.items()}
    same = _put_in_slots({name: each.block for name, each in traced.items()}, homes)
    done = [LinkSweep(loop.direction, _merged(loop.blocks, same)) for loop in link_sweeps]
    columns = [ColumnSweep(walk.direction, _merged(walk.blocks, same)) for walk in walks]
    return SlotAllocation(
        [loop for loop in done if loop.blocks],
        [walk for walk in columns if walk.blocks],
        max(slots.values(), default=-1) + 1,
        max(handed.values(), default=-1) + 1,
    )


def _traced_blocks(
    link_sweeps: Sequence[LinkSweep], walks: Sequence[ColumnSweep], places: KeyAliases | None
) -> dict[int, _TracedBlock]:
    """All blocks by their identity, with what their keys may mean."""
    traced = {id(b): _TracedBlock(b) for loop in link_sweeps for b in loop.blocks.values()}
    for walk in walks:
        for (_, relation, _), body in walk.blocks.items():
            own = _no_aliases if places is None else partial(places, relation)
            traced[id(body)] = _TracedBlock(body, own)
    return traced


def _merged(blocks: Mapping[T, BasicBlock], same: Mapping[int, BasicBlock]) -> dict[T, BasicBlock]:
    """Blocks that store something, equal ones as one object."""
    return {kind: same[id(block)] for kind, block in blocks.items() if block.stores}


def _put_in_slots(
    blocks: Mapping[int, BasicBlock], homes: Mapping[SlotKey, tuple[str, int]]
) -> dict[int, BasicBlock]:
    """Loads and stores get spaces and slots; of equal blocks the first stands for all."""
    for graph in {id(block.graph): block.graph for block in blocks.values()}.values():
        for number, place in graph.keyed_loads(range(len(graph.nodes))):
            space, slot = homes.get(place.key, (WORK, -1))
            graph.nodes[number] = ("load", Place(space, slot, place.base))
    once: dict[tuple[object, ...], BasicBlock] = {}
    same: dict[int, BasicBlock] = {}
    for name, block in blocks.items():
        block.stores = [
            store if store.key is None else _store_in_slot(store, *homes[store.key])
            for store in block.stores
        ]
        same[name] = once.setdefault(block.key(), block)
    return same


def _store_in_slot(store: Store, space: str, slot: int) -> Store:
    # Field by field: ``replace`` takes four times as long.
    return Store(
        space, slot, store.base, store.value, store.add, store.first_child_stores, store.transposed
    )


# -- what nobody reads


def _no_aliases(key: SlotKey, base: str) -> tuple[Alias, ...]:
    """What a key may stand for: the same at all links."""
    return (key,)


@dataclass
class _TracedBlock:
    """A block, and what the keys in it may stand for at a link or at its parent.

    Attributes:
        waiting: Stores that nobody is known to read.
    """

    block: BasicBlock
    key_aliases: Callable[[SlotKey, str], tuple[Alias, ...]] = _no_aliases

    def __post_init__(self) -> None:
        self.waiting = list(self.block.stores)

    def is_read(self, store: Store, live: Set[Alias]) -> bool:
        """Whether anyone reads what a store leaves."""
        return store.key is None or not live.isdisjoint(self.key_aliases(store.key, store.base))

    def reads(self, live: Set[Alias]) -> set[Alias]:
        """What the stores that are read need of others, as far as it was not said before."""
        graph = self.block.graph
        roots: list[Value] = []
        rest: list[Store] = []
        for store in self.waiting:
            if not self.is_read(store, live):
                rest.append(store)
            elif isinstance(store.value, Value):
                roots.append(store.value)
        self.waiting = rest
        found: set[Alias] = set()
        for _, place in graph.keyed_loads(graph.live_nodes(roots)) if roots else ():
            found.update(self.key_aliases(*place))
        return found


def _eliminate_dead_stores(traced: Collection[_TracedBlock]) -> None:
    live: set[Alias] = set()
    grown = True
    while grown:
        before = len(live)
        for each in traced:
            live |= each.reads(live)
        grown = len(live) > before
    for each in traced:
        each.block.stores = [store for store in each.block.stores if each.is_read(store, live)]


# -- what lives at the same time


def allocate_forward_slots(
    link_sweeps: Sequence[LinkSweep], accesses: Accesses, held: Set[SlotKey] = frozenset()
) -> dict[SlotKey, int]:
    """A slot for each key that only the loop that writes it reads, at children or parents.

    Args:
        link_sweeps, accesses, held: As for ``allocate_link_slots``.
    """
    used: Counter[int] = Counter()
    handed: dict[SlotKey, int] = {}
    for key, touched in accesses.items():
        number = min(touched)
        way = link_sweeps[number].direction
        if len(touched) == 1 and key not in held and touched[number] == _FORWARD_ACCESSES[way]:
            handed[key] = used[number]
            used[number] += 1
    return handed


_FORWARD_ACCESSES = {
    Direction.OUTWARD: {("write", "link"), ("read", "parent")},
    Direction.INWARD: {("write", "parent"), ("read", "link")},
}


def allocate_link_slots(
    link_sweeps: Sequence[LinkSweep],
    accesses: Accesses,
    held: Set[SlotKey] = frozenset(),
    handed: Collection[SlotKey] = (),
) -> dict[SlotKey, int]:
    """A slot for each key that is kept at the links.

    Args:
        link_sweeps: Loops, in order.
        accesses: What ``accesses_by_sweep`` says of them.
        held: Keys that column sweeps use afterwards.
        handed: Keys with forward slots.
    """
    lives = {
        key: _live_range(link_sweeps, touched)
        for key, touched in accesses.items()
        if key not in handed
    }
    columns = 2 * len(link_sweeps)
    for key in held:
        start = lives[key].start if key in lives else columns
        lives[key] = LiveRange(start, columns + 1)
    order = sorted(lives, key=lambda key: (lives[key].start, str(key)))
    slots, _ = linear_scan([lives[key] for key in order], _latest_sweep_first)
    return dict(zip(order, slots, strict=True))


def _latest_sweep_first(live: LiveRange, _: int, slot: int) -> tuple[int, int]:
    """The slot freed by the latest loop: slots free for longer suit more other numbers."""
    return -(live.end // 2), slot


def accesses_by_sweep(loops: Sequence[LinkSweep]) -> Accesses:
    """How each loop touches each key."""
    touched: dict[SlotKey, dict[int, set[Access]]] = defaultdict(lambda: defaultdict(set))
    for number, loop in enumerate(loops):
        for body in {id(body): body for body in loop.blocks.values()}.values():
            for key, how in _block_accesses(body):
                touched[key][number].add(how)
    return touched


def _block_accesses(body: BasicBlock) -> Iterator[tuple[SlotKey, Access]]:
    for store in body.stores:
        if store.key is not None:
            yield store.key, ("write", store.base)
    for _, place in body.graph.keyed_loads(body.live_nodes):
        yield place.key, ("read", place.base)


def _live_range(loops: Sequence[LinkSweep], touched: Mapping[int, Set[Access]]) -> LiveRange:
    """From the first loop that touches a number to the last one.

    Loop i has two steps. A number that nothing touches before the link's visit has stored it begins
    at 2i + 1, one that nothing touches after the visit has read it ends at 2i: the same visit may
    read one and leave the other in its place.
    """
    first, last = min(touched), max(touched)

    def only(number: int, own: str, children: Direction) -> bool:
        """Whether a link touches its number in one way, and children in a certain order to it."""
        return all(
            how == own if base == "link" else loops[number].direction is children
            for how, base in touched[number]
        )

    starts_at_visit = only(first, "write", Direction.OUTWARD)
    ends_at_visit = only(last, "read", Direction.INWARD)
    return LiveRange(2 * first + starts_at_visit, 2 * last + (not ends_at_visit))
