# SPDX-License-Identifier: BSD-3-Clause
"""A long unrolled program cut into functions: what each reads of others, and from which slots.

Compilers take more than linear time for long functions. A number that a later function reads is
spilled: it has a slot from the function that computes it to the last one that reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from phistar.scalar.graph import Graph, operands
from phistar.scalar.linear_scan import LiveRange, linear_scan


@dataclass(frozen=True)
class Spills:
    """Numbers that functions store for each other.

    Attributes:
        reads: For each function the nodes of earlier ones that it reads.
        slots: The slot of each node that is spilled.
        end: The first slot that is not used.
    """

    reads: Sequence[Sequence[int]]
    slots: dict[int, int]
    end: int


def plan_spills(
    graph: Graph,
    cuts: Sequence[Sequence[int]],
    stored: Collection[int] = (),
    read_last: Iterable[int] = (),
    first_slot: int = 0,
) -> Spills:
    """The spills of a program that is cut.

    Args:
        graph: Its graph.
        cuts: The nodes of each function; those in none are computed anew where they are read.
        stored: Nodes that have slots of their own.
        read_last: Nodes that the last function reads besides the operands of its own.
        first_slot: The lowest slot.
    """
    home = {n: i for i, cut in enumerate(cuts) for n in cut}
    needs = [[o for n in cut for o in operands(graph.nodes[n])] for cut in cuts]
    needs[-1] += read_last
    reads = [
        list(dict.fromkeys(n for n in needed if home.get(n, i) != i))
        for i, needed in enumerate(needs)
    ]
    last = {n: i for i, read in enumerate(reads) for n in read}
    spilled = [n for n in home if n in last and n not in stored]
    ranges = [LiveRange(home[n], last[n]) for n in spilled]
    slots, end = linear_scan(ranges, first_slot=first_slot)
    return Spills(reads, dict(zip(spilled, slots, strict=True)), end)
