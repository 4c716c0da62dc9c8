# SPDX-License-Identifier: BSD-3-Clause
"""A line with iterations in it: what comes before, rounds as loops of code, what comes after.

All of it is written in one graph, in which numbers that change are loads of the first slots of the
workspace. What depends on them is done in the stages that need it; everything else is done once,
before, and what stages need of it is kept. What only stages need that are seldom done is done right
before the first of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from phistar.scalar.graph import WORK, Graph, Place, Scalar, Value, operands
from phistar.scalar.program import BasicBlock, RowLoop, Signature, Store, Unrolled


@dataclass(frozen=True)
class IterationStage:
    """Rounds in which numbers in slots change.

    Attributes:
        updates: Their next values, by slot.
        rounds: How often.
        condition: A slot: the stage may be skipped where its number is not above zero; -1: never.
    """

    updates: Mapping[int, Scalar]
    rounds: int = 1
    condition: int = -1


class ChangingSlots:
    """Slots for numbers that change, from 0 on."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.count = 0

    def take(self, count: int) -> range:
        """Some more slots."""
        self.count += count
        return range(self.count - count, self.count)

    def load(self, slots: Iterable[int]) -> list[Scalar]:
        """What is in them, whenever that is read."""
        return [self._graph.load(WORK, slot) for slot in slots]


def iterated_line(
    signature: Signature,
    graph: Graph,
    changing: int,
    begun: Mapping[int, Scalar],
    stages: Sequence[IterationStage],
    stores: Sequence[Store],
) -> Unrolled:
    """The program.

    Args:
        signature: Inputs and outputs.
        graph: In which all is written.
        changing: Slots of numbers that change.
        begun: What some of them hold before the first stage.
        stages: In order.
        stores: Outputs, of what is left after the last stage or known before the first.
    """
    cut = _Cut(graph, changing)
    late, early = cut.by_time(stores)
    always = {k: cut.loop(x) for k, x in enumerate(stages) if x.condition < 0}
    last = [RowLoop(range(1), max(signature.outputs.values()), 0, cut.block(late), in_order=True)]
    begin = [Store(WORK, slot, "", x) for slot, x in begun.items()]
    cut.begin([*begin, *early])
    seldom = {k: cut.loop(x) for k, x in enumerate(stages) if x.condition >= 0}
    loops: list[RowLoop] = []
    for k, stage in enumerate(stages):
        if k in seldom:
            loops += cut.postponed_loops(stage.condition)
        loops.append(always[k] if k in always else seldom[k])
    block = BasicBlock(graph, [*begin, *cut.kept_at_first(), *early])
    after = last if late else []
    return Unrolled(signature, block, (), changing + len(cut.slots), (*loops, *after))


class _Cut:
    """What depends on changing numbers, and slots for what stages read of the rest.

    Attributes:
        later: Nodes that depend on changing numbers.
        slots: Of other nodes that stages read.
        known: Those of them that are done before all stages.
        postponed: Those that only seldom stages need.
    """

    def __init__(self, graph: Graph, changing: int) -> None:
        self.graph = graph
        self.changing = changing
        self.slots: dict[int, int] = {}
        self.known: set[int] = set()
        self.postponed: list[int] = []
        self._done: set[int] | None = None
        self.later: set[int] = set()
        for number, node in enumerate(graph.nodes):
            if node[0] == "load":
                changes = isinstance(node[1], Place) and node[1].space == WORK
            else:
                changes = any(n in self.later for n in operands(node))
            if changes:
                self.later.add(number)

    def by_time(self, stores: Iterable[Store]) -> tuple[list[Store], list[Store]]:
        """Those of what depends on changing numbers, and the others."""
        late: list[Store] = []
        early: list[Store] = []
        for store in stores:
            changes = isinstance(store.value, Value) and store.value.id in self.later
            (late if changes else early).append(store)
        return late, early

    def kept_at_first(self) -> list[Store]:
        """What stages read of that which is done before them."""
        known = ((n, slot) for n, slot in self.slots.items() if n in self.known)
        return [Store(WORK, slot, "", Value(self.graph, n)) for n, slot in known]

    def postponed_loops(self, condition: int) -> list[RowLoop]:
        """What stages that are done under a condition need first; after that nothing of it is."""
        if not self.postponed:
            return []
        kept = [Store(WORK, self.slots[n], "row", Value(self.graph, n)) for n in self.postponed]
        block = self.block(kept, inner=True)
        self.postponed = []
        return [RowLoop(range(1), 1, 0, block, in_order=True, condition=condition)]

    def begin(self, stores: Iterable[Store]) -> None:
        """Everything that stages which are always done need is known by now."""
        roots = [s.value for s in stores if isinstance(s.value, Value)]
        roots += [Value(self.graph, n) for n in self.slots]
        self._done = set(self.graph.live_nodes(roots))

    def loop(self, stage: IterationStage) -> RowLoop:
        """A stage as a loop."""
        stores = [Store(WORK, slot, "row", x) for slot, x in stage.updates.items()]
        block = self.block(stores)
        return RowLoop(range(stage.rounds), 1, 0, block, in_order=True, condition=stage.condition)

    def block(self, stores: Iterable[Store], inner: bool = False) -> BasicBlock:
        """The nodes that some stores need and that are not kept, in a graph of their own.

        ``inner``: what is postponed, all of it that is not known.
        """
        old, new, stores = self.graph, Graph(), list(stores)
        # Loads of what a round writes come first, so that none is read after it was written.
        for i in range(self.changing):
            new.load(WORK, i)
        here = self._postponed_nodes(stores) if inner else self.later
        roots = {s.value.id for s in stores if isinstance(s.value, Value)}
        live = old.live_nodes([Value(old, n) for n in roots])
        wanted = roots | {n for k in live if k in here for n in operands(old.nodes[k])}
        known: dict[int, Value] = {}
        for number in live:
            if number in here:
                known[number] = self._copied(new, number, known)
            elif number in wanted:
                known[number] = self._kept(new, number)

        def moved(x: Scalar) -> Scalar:
            return known[x.id] if isinstance(x, Value) else x

        return BasicBlock(new, [replace(s, base="row", value=moved(s.value)) for s in stores])

    def _copied(self, new: Graph, number: int, known: Mapping[int, Value]) -> Value:
        """A node in another graph, which has its operands."""
        node = self.graph.nodes[number]
        if node[0] == "load":
            return new.load(WORK, node[1].entry)
        return new.intern(node[0], *(known[n].id for n in node[1:]))

    def _postponed_nodes(self, stores: Sequence[Store]) -> set[int]:
        """What is not known before all stages; inputs always are."""
        assert self._done is not None
        roots = [s.value for s in stores if isinstance(s.value, Value)]
        nodes = self.graph.nodes
        return {
            n
            for n in self.graph.live_nodes(roots)
            if n not in self._done and nodes[n][0] not in ("load", "const")
        }

    def _kept(self, new: Graph, number: int) -> Value:
        """Something that does not change."""
        node = self.graph.nodes[number]
        if node[0] == "const":
            return new.intern(*node)
        if number not in self.slots:
            self.slots[number] = self.changing + len(self.slots)
            if self._done is None or number in self._done or node[0] == "load":
                self.known.add(number)
            else:
                self.postponed.append(number)
        elif self._done is not None and number in self._done:
            self.known.add(number)
        return new.load(WORK, self.slots[number])
