# SPDX-License-Identifier: BSD-3-Clause
"""A long straight line cut into parts that compilers digest: the time of cc grows with the square.

What one part computes and a later one needs is kept in slots of a small array; inputs and constants
are read anew where they are needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from phistar.errors import LoweringError
from phistar.scalar.graph import Graph, Value, operands
from phistar.scalar.program import Store, Straight

WHOLE = 4000
"""Operations up to which a straight line stays in one piece."""
LENGTH = 1500
"""Operations of a part."""


@dataclass
class Part:
    """Some of the operations.

    Attributes:
        numbers: Values to write, operands first; those in ``given`` are read from their slots.
        given: Slots of the values that earlier parts computed.
        kept: Slots of the values that later parts need.
        stores: Outputs to write as soon as their value is known, by value.
        last: Outputs to write at the end.
    """

    numbers: Sequence[int]
    given: dict[int, int] = field(default_factory=dict)
    kept: dict[int, int] = field(default_factory=dict)
    stores: dict[int, list[Store]] = field(default_factory=dict)
    last: list[Store] = field(default_factory=list)


def parts(program: Straight) -> tuple[list[Part], int]:
    """The parts of a straight line in order, and how many slots they share.

    Raises:
        LoweringError: Products or rows of matrices follow the line.
    """
    if program.products or program.repeats:
        raise LoweringError(
            "several matrices that are computed together have no C form; export them one by one"
        )
    early, late = _stores(program)
    graph, live = program.body.graph, program.body.live
    own = [n for n in live if graph.nodes[n][0] not in ("const", "load")]
    if len(own) <= WHOLE:
        return [Part(live, stores=early, last=late)], 0
    count = -(-len(own) // LENGTH)
    length = -(-len(own) // count)
    chunks = [own[i : i + length] for i in range(0, len(own), length)]
    needs = [list(_needed(graph, chunk)) for chunk in chunks]
    needs[-1] += [s.value.id for s in late if isinstance(s.value, Value)]
    slots, size = _slots(chunks, needs)
    made = []
    for chunk, needed in zip(chunks, needs, strict=True):
        inside = set(chunk)
        part = Part(sorted(inside.union(needed)))
        part.given = {n: slots[n] for n in needed if n in slots and n not in inside}
        part.kept = {n: slots[n] for n in chunk if n in slots}
        part.stores = {n: early.pop(n) for n in list(early) if n in inside}
        made.append(part)
    made[-1].last = [*(s for stores in early.values() for s in stores), *late]
    made[-1].numbers = sorted({*made[-1].numbers, *early})
    return made, size


def _needed(graph: Graph, chunk: Sequence[int]) -> Iterator[int]:
    for number in chunk:
        yield from operands(graph.nodes[number])


def _slots(chunks: list[list[int]], needs: list[list[int]]) -> tuple[dict[int, int], int]:
    """A slot for each value that a later part needs; free again behind the last one that does."""
    home = {number: i for i, chunk in enumerate(chunks) for number in chunk}
    final: dict[int, int] = {}
    for i, needed in enumerate(needs):
        final.update((n, i) for n in needed if n in home and home[n] < i)
    ending: dict[int, list[int]] = defaultdict(list)
    slots: dict[int, int] = {}
    free: list[int] = []
    size = 0
    for i, chunk in enumerate(chunks):
        # A slot that this part reads is not written in it.
        free += [slots[n] for n in ending[i - 1]]
        for number in chunk:
            if number in final:
                if not free:
                    free.append(size)
                    size += 1
                slots[number] = free.pop()
                ending[final[number]].append(number)
    return slots, size


def _stores(program: Straight) -> tuple[dict[int, list[Store]], list[Store]]:
    """What is stored as soon as it is known, by value, and what is stored at the end.

    Every entry of every output is written. One that is written more than once, or with a constant,
    waits.
    """
    entries: dict[tuple[str, int], list[Store]] = {}
    for name, size in program.signature.outputs.items():
        entries.update({(name, index): [] for index in range(size)})
    for store in program.body.stores:
        entries[store.space, store.index].append(store)
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
