# SPDX-License-Identifier: BSD-3-Clause
"""A line with an iteration in it: what comes before, rounds as a loop of code, what comes after.

All of it is written in one graph, in which the iterated numbers are loads of the first slots of the
workspace. What depends on them is a round or comes after all rounds; everything else is done once,
before, and what others need of it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from phistar.scalar.graph import WORK, Graph, Place, Scalar, Value, operands
from phistar.scalar.linear.vectors import Vector
from phistar.scalar.program import BasicBlock, RowLoop, Signature, Store, Unrolled


def iterated_loads(graph: Graph, count: int) -> Vector:
    """The iterated numbers, in a round or after all of them."""
    return [graph.load(WORK, i) for i in range(count)]


def iterated_line(
    signature: Signature,
    graph: Graph,
    start: Sequence[Scalar],
    following: Sequence[Scalar],
    rounds: int,
    stores: Sequence[Store],
) -> Unrolled:
    """The program of an iteration.

    Args:
        signature: Inputs and outputs.
        graph: In which all is written.
        start: What the iteration begins with.
        following: The next values, from ``iterated_loads``.
        rounds: How many.
        stores: Outputs, of what is left after the last round or known before the first.
    """
    cut = _Cut(graph, len(start))
    late = [s for s in stores if isinstance(s.value, Value) and s.value.id in cut.later]
    early = [s for s in stores if not (isinstance(s.value, Value) and s.value.id in cut.later)]
    updates = [Store(WORK, i, "row", x) for i, x in enumerate(following)]
    width = max(signature.outputs.values())
    loops = [RowLoop(range(rounds), len(start), 0, cut.block(updates), in_order=True)]
    if late:
        loops.append(RowLoop(range(1), width, 0, cut.block(late), in_order=True))
    begun = [Store(WORK, i, "", x) for i, x in enumerate(start)]
    kept = [Store(WORK, slot, "", Value(graph, n)) for n, slot in cut.slots.items()]
    block = BasicBlock(graph, [*begun, *kept, *early])
    return Unrolled(signature, block, (), len(start) + len(cut.slots), tuple(loops))


class _Cut:
    """What depends on the iterated numbers, and slots for what it reads of the rest."""

    def __init__(self, graph: Graph, count: int) -> None:
        self.graph = graph
        self.count = count
        self.slots: dict[int, int] = {}
        self.later: set[int] = set()
        for number, node in enumerate(graph.nodes):
            if node[0] == "load":
                is_iterated = isinstance(node[1], Place) and node[1].space == WORK
            else:
                is_iterated = any(n in self.later for n in operands(node))
            if is_iterated:
                self.later.add(number)

    def block(self, stores: Iterable[Store]) -> BasicBlock:
        """The later nodes that some stores need, in a graph of their own."""
        old, new = self.graph, Graph()
        # Loads of what a round writes come first, so that none is read after it was written.
        for i in range(self.count):
            new.load(WORK, i)
        stores = list(stores)
        live = old.live_nodes([s.value for s in stores if isinstance(s.value, Value)])
        wanted = {n for k in live if k in self.later for n in operands(old.nodes[k])}
        wanted |= {s.value.id for s in stores if isinstance(s.value, Value)}
        known: dict[int, Value] = {}
        for number in live:
            node = old.nodes[number]
            if number in self.later:
                known[number] = (
                    new.load(WORK, node[1].entry)
                    if node[0] == "load"
                    else new.intern(node[0], *(known[n].id for n in node[1:]))
                )
            elif number in wanted:
                known[number] = self._kept(new, number)
        moved = [
            replace(
                s, base="row", value=known[s.value.id] if isinstance(s.value, Value) else s.value
            )
            for s in stores
        ]
        return BasicBlock(new, moved)

    def _kept(self, new: Graph, number: int) -> Value:
        """Something that was known before."""
        node = self.graph.nodes[number]
        if node[0] == "const":
            return new.intern(*node)
        slot = self.slots.setdefault(number, self.count + len(self.slots))
        return new.load(WORK, slot)
