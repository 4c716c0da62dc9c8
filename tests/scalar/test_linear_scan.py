# SPDX-License-Identifier: BSD-3-Clause
"""Linear scan: ranges that overlap have different slots, and there are as few as can be."""

import numpy as np
import pytest

from phistar.scalar.linear_scan import LiveRange, linear_scan


def _ranges(seed: int) -> list[LiveRange]:
    rng = np.random.default_rng(seed)
    starts = np.sort(rng.integers(0, 40, 60))
    return [LiveRange(int(s), int(s + rng.integers(0, 12))) for s in starts]


@pytest.mark.parametrize("seed", range(5))
def test_overlapping_ranges_have_different_slots(seed: int) -> None:
    """No two ranges that share a step share a slot."""
    ranges = _ranges(seed)
    slots, _ = linear_scan(ranges)
    for i, one in enumerate(ranges):
        for j, other in enumerate(ranges[:i]):
            apart = one.end < other.start or other.end < one.start
            assert apart or slots[i] != slots[j]


@pytest.mark.parametrize("seed", range(5))
def test_there_are_as_many_slots_as_ranges_at_a_time(seed: int) -> None:
    """The number of slots is the largest number of ranges in one step."""
    ranges = _ranges(seed)
    slots, end = linear_scan(ranges, first_slot=7)
    most = max(sum(r.start <= step <= r.end for r in ranges) for step in range(60))
    assert sorted(set(slots)) == list(range(7, 7 + most))
    assert end == 7 + most


def test_the_slot_that_was_left_last_is_taken_first() -> None:
    """Of slots left at once it is that of the last range; another rank takes another one."""
    ranges = [LiveRange(0, 1), LiveRange(0, 2), LiveRange(0, 2), LiveRange(3, 3)]
    assert linear_scan(ranges)[0] == [0, 1, 2, 2]
    assert linear_scan(ranges, lambda live, number, slot: (live.end, slot))[0] == [0, 1, 2, 0]
