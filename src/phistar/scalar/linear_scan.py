# SPDX-License-Identifier: BSD-3-Clause
"""Linear scan: numbers that do not live at the same time share a slot.

All slots of the compiler come from here: those of numbers kept at links, the places of what links
forward to each other, and the spill slots of programs that are cut into functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple


class LiveRange(NamedTuple):
    """Steps in which a number is live, ``start`` and ``end`` included."""

    start: int
    end: int


Rank = Callable[[LiveRange, int, int], tuple[int, int]]
"""Of a range that has ended, its number and its slot: free slots with lower ranks go first."""


def latest_first(live: LiveRange, number: int, slot: int) -> tuple[int, int]:
    """The slot that was left last, of several that of the last range: it is still in the cache."""
    return -live.end, -number


def linear_scan(
    ranges: Sequence[LiveRange], rank: Rank = latest_first, first_slot: int = 0
) -> tuple[list[int], int]:
    """A slot for each range, and the first slot that was never used.

    Args:
        ranges: In the order of their starts.
        rank: Which of the free slots is taken.
        first_slot: The lowest slot.
    """
    slots: list[int] = []
    active: list[tuple[int, int]] = []
    free: list[tuple[tuple[int, int], int]] = []
    unused = first_slot
    for number, live in enumerate(ranges):
        while active and active[0][0] < live.start:
            _, ended = heappop(active)
            heappush(free, (rank(ranges[ended], ended, slots[ended]), slots[ended]))
        if free:
            slots.append(heappop(free)[1])
        else:
            slots.append(unused)
            unused += 1
        heappush(active, (live.end, number))
    return slots, unused
