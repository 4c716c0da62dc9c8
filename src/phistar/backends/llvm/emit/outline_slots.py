# SPDX-License-Identifier: BSD-3-Clause
"""A long unrolled program cut into parts, which pass numbers on in the workspace.

The first part reads all inputs and turns all angles; each of the others has so many nodes, in their
order. A number that a later part needs has a slot as long as it is needed; outputs and factors of
products of matrices have one to the end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from phistar.scalar.graph import WORK, Graph, Scalar, Value
from phistar.scalar.outline import plan_spills
from phistar.scalar.program import Unrolled


@dataclass(frozen=True)
class OutlinedPart:
    """Some of the nodes of a program.

    Attributes:
        nodes: The nodes, in order, without constants.
        live_in: Slots of the nodes of earlier parts that they need.
        live_out: Slots that nodes of this part go to.
    """

    nodes: Sequence[int]
    live_in: Mapping[int, int]
    live_out: Mapping[int, Sequence[int]]


@dataclass(frozen=True)
class Outline:
    """All parts of a program.

    Attributes:
        parts: The parts, in order.
        output_slots: For each output, the slots of its entries.
        constants: Numbers that are known beforehand, by slot.
        product_slot: The slot of the first entry of a product, the same for all products: each is
            moved to its output before the next one begins.
        slots: How many slots there are.
        row_slots: Slots of the first entries of outputs that rows write.
    """

    parts: Sequence[OutlinedPart]
    output_slots: Mapping[str, Mapping[int, int]]
    constants: Mapping[int, float]
    product_slot: int
    slots: int
    row_slots: Mapping[str, int]


def plan_outline(program: Unrolled, size: int) -> Outline:
    """The parts of a program.

    Args:
        program: Unrolled, perhaps with products after it.
        size: Nodes of a part.
    """
    homes = _ResultSlots(program)
    graph = program.block.graph
    nodes = [n for n in graph.live_nodes(homes.roots) if graph.nodes[n][0] != "const"]
    first = _input_nodes(graph, nodes)
    rest = [n for n in nodes if n not in first]
    cuts = [sorted(first), *(rest[i : i + size] for i in range(0, len(rest), size))]
    # What is spilled is gone when products are made; they may take its place.
    result = homes.count
    spills = plan_spills(graph, cuts, homes.slots, first_slot=result)
    homes.slots |= {n: [slot] for n, slot in spills.slots.items()}
    slots = spills.end
    for product in program.products:
        count = product.rows * len(product.right_slots)
        places = {entry: result + entry for entry in range(count)}
        same = {entry: result + other for entry, other in product.mirrored.items()}
        homes.output_slots[product.output] = {**places, **product.known, **same}
        slots = max(slots, result + count)
    parts = [
        OutlinedPart(
            part,
            {n: homes.slots[n][0] for n in read},
            {n: homes.slots[n] for n in part if n in homes.slots},
        )
        for part, read in zip(cuts, spills.reads, strict=True)
    ]
    return Outline(parts, homes.output_slots, homes.constants, result, slots, homes.row_slots)


def _input_nodes(graph: Graph, nodes: Sequence[int]) -> set[int]:
    """Inputs, angles and what leads to them."""
    turning = [Value(graph, n) for n in nodes if graph.nodes[n][0] in ("sin", "cos")]
    given = {n for n in nodes if graph.nodes[n][0] == "load"}
    return given | {n for n in graph.live_nodes(turning) if graph.nodes[n][0] != "const"}


class _ResultSlots:
    """Slots of results and of factors of products; they are not reused."""

    def __init__(self, program: Unrolled) -> None:
        self.count = program.slots
        self.slots: dict[int, list[int]] = {}
        self.constants: dict[int, float] = {}
        self.output_slots: dict[str, dict[int, int]] = defaultdict(dict)
        entries: dict[tuple[str, int], Scalar] = {}
        for store in program.block.stores:
            key = (store.space, store.index)
            entries[key] = entries[key] + store.value if key in entries else store.value
        self.roots = [x for x in entries.values() if isinstance(x, Value)]
        for (space, slot), x in entries.items():
            if space == WORK:
                self._assign(x, slot)
        self._assign_rows(program, entries)
        known = {x: slot for slot, x in self.constants.items()}
        slot = -1
        for (space, entry), x in entries.items():
            if space != WORK and space not in self.row_slots:
                slot = self._output_slot(x, known, slot + 1)
                self.output_slots[space][entry] = slot

    def _assign_rows(self, program: Unrolled, entries: Mapping[tuple[str, int], Scalar]) -> None:
        """Outputs that rows write stand in the workspace as they do in the result."""
        self.row_slots: dict[str, int] = {}
        for store in (x for repeat in program.row_loops for x in repeat.block.stores):
            if store.space != WORK and store.space not in self.row_slots:
                size = program.signature.outputs[store.space]
                first = self.row_slots[store.space] = self.count
                self.count += size
                self.output_slots[store.space] = {i: first + i for i in range(size)}
        for (space, entry), x in entries.items():
            if space in self.row_slots:
                self._assign(x, self.row_slots[space] + entry)

    def _output_slot(self, x: Scalar, known: dict[float, int], following: int) -> int:
        """The slot of an entry of an output: that after the entry before, if the number is there.

        The same number has no new slot.
        """
        if isinstance(x, Value):
            if x.id not in self.slots:
                self._assign(x, self._new_slot())
            slots = self.slots[x.id]
            return following if following in slots else slots[0]
        if x not in known:
            known[x] = self._new_slot()
            self._assign(x, known[x])
        return known[x]

    def _assign(self, x: Scalar, slot: int) -> None:
        if isinstance(x, Value):
            self.slots.setdefault(x.id, []).append(slot)
        else:
            self.constants[slot] = x

    def _new_slot(self) -> int:
        self.count += 1
        return self.count - 1
