# SPDX-License-Identifier: BSD-3-Clause
"""A long line of scalar operations, cut into parts that hand numbers on in the workspace.

The first part reads all inputs and turns all angles; each of the others has so many nodes, in their
order. A number that a later part needs has a slot as long as it is needed; what the line leaves
behind, in outputs or for products of matrices, has one for good.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from phistar.scalar.graph import Graph, Scalar, Value, operands
from phistar.scalar.program import Straight

WORK = "work"


@dataclass(frozen=True)
class Part:
    """Some of the nodes of a line.

    Attributes:
        nodes: The nodes, in order, without constants.
        reads: Slots of the nodes of earlier parts that they need.
        keeps: Slots that nodes of this part go to.
    """

    nodes: Sequence[int]
    reads: Mapping[int, int]
    keeps: Mapping[int, Sequence[int]]


@dataclass(frozen=True)
class Plan:
    """All parts of a line.

    Attributes:
        parts: The parts, in order.
        places: For each output, the slots of its entries.
        constants: Numbers that are known beforehand, by slot.
        result: The slot of the first entry of a product, the same for all products: each is moved
            to its output before the next one begins.
        slots: How many slots there are.
    """

    parts: Sequence[Part]
    places: Mapping[str, Mapping[int, int]]
    constants: Mapping[int, float]
    result: int
    slots: int


def plan(program: Straight, size: int) -> Plan:
    """The parts of a line.

    Args:
        program: A line, perhaps with products after it.
        size: Nodes of a part.
    """
    homes = _Homes(program)
    graph = program.body.graph
    nodes = [n for n in graph.live(homes.roots) if graph.nodes[n][0] != "const"]
    first = _early(graph, nodes)
    rest = [n for n in nodes if n not in first]
    cuts = [sorted(first), *(rest[i : i + size] for i in range(0, len(rest), size))]
    reads = _reads(graph, cuts)
    # What is handed on is gone when products are made; they may take its place.
    result = homes.count
    homes.lend(cuts, reads)
    slots = homes.count
    for product in program.products:
        count = product.rows * len(product.right)
        homes.places[product.output] = {entry: result + entry for entry in range(count)}
        slots = max(slots, result + count)
    parts = [
        Part(
            part,
            {n: homes.slots[n][0] for n in read},
            {n: homes.slots[n] for n in part if n in homes.slots},
        )
        for part, read in zip(cuts, reads, strict=True)
    ]
    return Plan(parts, homes.places, homes.constants, result, slots)


def _early(graph: Graph, nodes: Sequence[int]) -> set[int]:
    """Inputs, angles and what leads to them."""
    turning = [Value(graph, n) for n in nodes if graph.nodes[n][0] in ("sin", "cos")]
    given = {n for n in nodes if graph.nodes[n][0] == "load"}
    return given | {n for n in graph.live(turning) if graph.nodes[n][0] != "const"}


def _reads(graph: Graph, cuts: Sequence[Sequence[int]]) -> list[dict[int, None]]:
    """The nodes of earlier parts that each part needs."""
    part_of = {n: i for i, part in enumerate(cuts) for n in part}
    return [
        dict.fromkeys(
            operand
            for n in part
            for operand in operands(graph.nodes[n])
            if part_of.get(operand, i) != i
        )
        for i, part in enumerate(cuts)
    ]


class _Homes:
    """Which numbers live in which slots."""

    def __init__(self, program: Straight) -> None:
        self.count = program.slots
        self.slots: dict[int, list[int]] = {}
        self.constants: dict[int, float] = {}
        self.places: dict[str, dict[int, int]] = defaultdict(dict)
        entries: dict[tuple[str, int], Scalar] = {}
        for store in program.body.stores:
            key = (store.space, store.index)
            entries[key] = entries[key] + store.value if key in entries else store.value
        self.roots = [x for x in entries.values() if isinstance(x, Value)]
        for (space, slot), x in entries.items():
            if space == WORK:
                self._put(x, slot)
        known = {x: slot for slot, x in self.constants.items()}
        for (space, entry), x in entries.items():
            if space != WORK:
                self.places[space][entry] = self._place(x, known)

    def lend(self, cuts: Sequence[Sequence[int]], reads: Sequence[Mapping[int, None]]) -> None:
        """Slots for what parts hand on, taken again after the last part that reads it."""
        last = {n: i for i, read in enumerate(reads) for n in read}
        free: list[int] = []
        ends: dict[int, list[int]] = defaultdict(list)
        for i, part in enumerate(cuts):
            for n in part:
                if n in last and n not in self.slots:
                    slot = free.pop() if free else self._new()
                    self._put(n, slot)
                    ends[last[n]].append(slot)
            free += ends.pop(i, [])

    def _place(self, x: Scalar, known: dict[float, int]) -> int:
        """The slot of an entry of an output; the same number has one slot only."""
        if isinstance(x, Value):
            if x.id not in self.slots:
                self._put(x, self._new())
            return self.slots[x.id][0]
        if x not in known:
            known[x] = self._new()
            self._put(x, known[x])
        return known[x]

    def _put(self, x: Scalar | int, slot: int) -> None:
        if isinstance(x, float):
            self.constants[slot] = x
        else:
            self.slots.setdefault(x.id if isinstance(x, Value) else x, []).append(slot)

    def _new(self) -> int:
        self.count += 1
        return self.count - 1
