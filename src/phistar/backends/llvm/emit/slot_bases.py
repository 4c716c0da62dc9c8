# SPDX-License-Identifier: BSD-3-Clause
"""Bases for the slots of a function: addresses in the workspace that are written in few bytes.

An instruction of AVX-512 keeps a distance of up to 127 vectors in one byte and a longer one in
four. Long code runs no faster than it is fetched, and every second instruction of it has an
address. So a function holds the addresses of a few slots, those that have the most uses around
them; LLVM must not see that they are sums, or it would add them up again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate

from phistar.thresholds import POLICY


def has_short_distances(vector_bytes: int) -> bool:
    """Whether distances in vectors of so many bytes are shorter if they are small."""
    return vector_bytes == POLICY.short_distance_vector_bytes


def choose_bases(slots: Iterable[int]) -> list[int]:
    """Slots whose addresses are held, those with the most uses around them first.

    Args:
        slots: The slot of each use. The address of slot 0 is held anyway.
    """
    reach = POLICY.short_distance_vectors
    left = Counter(slot for slot in slots if slot >= reach)
    bases: list[int] = []
    while left and len(bases) < POLICY.max_slot_bases:
        start, uses = _fullest_window(left)
        if uses < POLICY.min_uses_per_slot_base:
            break
        bases.append(start + reach)
        for slot in [s for s in left if start <= s < start + 2 * reach]:
            del left[slot]
    return bases


def nearest_base(slot: int, bases: Iterable[int]) -> int | None:
    """The first base from which a slot is not far; None: none, or slot 0 is as near."""
    reach = POLICY.short_distance_vectors
    if slot < reach:
        return None
    return next((base for base in bases if -reach <= slot - base < reach), None)


def _fullest_window(uses: Mapping[int, int]) -> tuple[int, int]:
    """The first slot of the window with the most uses, and how many they are."""
    slots, width = sorted(uses), 2 * POLICY.short_distance_vectors
    sums = [0, *accumulate(uses[slot] for slot in slots)]
    best, most, end = slots[0], 0, 0
    for first, slot in enumerate(slots):
        while end < len(slots) and slots[end] < slot + width:
            end += 1
        if sums[end] - sums[first] > most:
            best, most = slot, sums[end] - sums[first]
    return best, most
