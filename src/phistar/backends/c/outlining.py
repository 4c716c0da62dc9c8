# SPDX-License-Identifier: BSD-3-Clause
"""A long unrolled program cut into parts: the time of a C compiler grows with the square.

What one part computes and a later one needs is kept in slots of a small array; inputs and constants
are read anew where they are needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from phistar.scalar.graph import Graph, Value, operands
from phistar.scalar.outline import plan_spills
from phistar.scalar.program import Store, Unrolled
from phistar.thresholds import POLICY


@dataclass
class FunctionPart:
    """Some of the operations.

    Attributes:
        nodes: Values to write, operands first; those in ``live_in`` are read from their slots.
        live_in: Slots of the values that earlier parts computed.
        live_out: Slots of the values that later parts need.
        stores: Outputs to write as soon as their value is known, by value.
        final_stores: Outputs to write at the end.
    """

    nodes: Sequence[int]
    live_in: dict[int, int] = field(default_factory=dict)
    live_out: dict[int, int] = field(default_factory=dict)
    stores: dict[int, list[Store]] = field(default_factory=dict)
    final_stores: list[Store] = field(default_factory=list)


def outline_parts(program: Unrolled) -> tuple[list[FunctionPart], int]:
    """The parts of an unrolled program in order, and how many slots they share."""
    early, late = _early_and_late_stores(program)
    graph, live = program.block.graph, program.block.live_nodes
    own = [n for n in live if graph.nodes[n][0] not in ("const", "load")]
    if len(own) <= POLICY.max_c_operations_one_function:
        return [FunctionPart(live, stores=early, final_stores=late)], 0
    count = -(-len(own) // POLICY.c_operations_per_function)
    length = -(-len(own) // count)
    chunks = [own[i : i + length] for i in range(0, len(own), length)]
    at_end = [s.value.id for s in late if isinstance(s.value, Value)]
    spills = plan_spills(graph, chunks, read_last=at_end)
    made = [
        _part(graph, chunk, reads, spills.slots, early)
        for chunk, reads in zip(chunks, spills.reads, strict=True)
    ]
    made[-1].final_stores = [*(s for stores in early.values() for s in stores), *late]
    made[-1].nodes = sorted({*made[-1].nodes, *early, *at_end})
    return made, spills.end


def _part(
    graph: Graph,
    chunk: Sequence[int],
    reads: Iterable[int],
    slots: Mapping[int, int],
    early: dict[int, list[Store]],
) -> FunctionPart:
    """Nodes as a part, with what is stored as soon as they are known; that is ``early`` no more."""
    given = {o for n in chunk for o in operands(graph.nodes[n])}
    return FunctionPart(
        sorted(given.union(chunk)),
        live_in={n: slots[n] for n in reads},
        live_out={n: slots[n] for n in chunk if n in slots},
        stores={n: early.pop(n) for n in sorted(early.keys() & set(chunk))},
    )


def _early_and_late_stores(program: Unrolled) -> tuple[dict[int, list[Store]], list[Store]]:
    """What is stored as soon as it is known, by value, and what is stored at the end.

    Every entry of every output is written, but for those that products and loops over rows write
    later. One that is written more than once, or with a constant, waits.
    """
    later = _entries_after_the_line(program)
    entries: dict[tuple[str, int], list[Store]] = {}
    for name, size in program.signature.outputs.items():
        entries.update({(name, i): [] for i in range(size) if (name, i) not in later})
    for store in program.block.stores:
        entries.setdefault((store.space, store.index), []).append(store)
    early: dict[int, list[Store]] = defaultdict(list)
    late: list[Store] = []
    for (name, index), stores in entries.items():
        first = Store(name, index, "", stores[0].value if stores else 0.0)
        value = first.value
        if len(stores) == 1 and isinstance(value, Value) and value.node[0] != "const":
            early[value.id].append(first)
        else:
            late += [first, *stores[1:]]
    return dict(early), late


def _entries_after_the_line(program: Unrolled) -> set[tuple[str, int]]:
    """Entries of outputs that are written by products and loops over rows."""
    outputs = program.signature.outputs
    found = {(p.output, i) for p in program.products for i in range(outputs[p.output])}
    for loop in program.row_loops:
        own = [store for store in loop.block.stores if store.space != "work"]
        found.update((s.space, row * loop.row_width + s.index) for s in own for row in loop.rows)
    return found
