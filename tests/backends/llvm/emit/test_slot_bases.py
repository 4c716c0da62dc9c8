# SPDX-License-Identifier: BSD-3-Clause
"""Addresses of slots from bases near them: the same slots, and few bases with many uses."""

from __future__ import annotations

import re

import numpy as np
import pytest

from phistar.backends.llvm.emit.ir_builder import FunctionBuilder, Lanes
from phistar.backends.llvm.emit.outlined import OutlinedModule
from phistar.backends.llvm.emit.slot_bases import choose_bases, nearest_base
from phistar.thresholds import POLICY
from tests.backends.llvm.emit.test_outlined import compiled, results, small
from tests.helpers import patch_policy

REACH = POLICY.short_distance_vectors
WIDE = Lanes(POLICY.short_distance_vector_bytes // 8)
"""Vectors whose instructions have short distances, on any machine."""


def random_slots(seed: int) -> list[int]:
    """Clusters of uses, and some that stand alone."""
    rng = np.random.default_rng(seed)
    clusters = (rng.normal(at, 60.0, 40) for at in rng.integers(200, 6000, 14))
    alone = rng.integers(0, 9000, 30)
    return [int(abs(x)) for part in (*clusters, alone) for x in part]


@pytest.mark.parametrize("seed", range(5))
def test_bases_have_the_most_uses_around_them(seed: int) -> None:
    """The first base is the best of all windows; each has enough uses that earlier ones left."""
    slots = random_slots(seed)
    bases = choose_bases(slots)
    assert 1 < len(bases) <= POLICY.max_slot_bases
    far = [slot for slot in slots if slot >= REACH]
    distances = np.array(far)[:, None] - np.arange(10_000)
    uses = ((distances >= -REACH) & (distances < REACH)).sum(axis=0)
    assert uses[bases[0]] == uses.max()
    served = [nearest_base(slot, bases) for slot in far]
    assert all(served.count(base) >= POLICY.min_uses_per_slot_base for base in bases)
    for slot, base in zip(far, served, strict=True):
        near = [b for b in bases if -REACH <= slot - b < REACH]
        assert (base in near) if near else base is None


def test_few_uses_need_no_base() -> None:
    """Slots near the first one, and those that are used once, are left as they are."""
    assert choose_bases([0, 1, 5, REACH - 1] * 9) == []
    assert choose_bases([500, 2000, 9000]) == []
    assert nearest_base(REACH - 1, [REACH]) is None


@pytest.mark.parametrize("seed", range(3))
def test_addresses_are_those_of_the_slots(seed: int) -> None:
    """Base and distance add up to the slot of each use, in order."""
    slots = random_slots(seed)
    w = FunctionBuilder(WIDE)
    for slot in slots:
        w.load_slot(slot)
    w.emit("ret void")
    text = w.function_text("void @f(ptr %work)")
    address = r"= getelementptr inbounds <\d+ x double>, ptr (%\w+), i64 (-?\d+)"
    bases, found = {"%work": 0}, []
    for name, pointer, distance in re.findall(rf"(%\w+) {address}", text):
        if name.startswith("%slot"):
            bases[name.replace("slot", "near")] = int(distance)
        else:
            found.append(bases[pointer] + int(distance))
            assert pointer == "%work" or -REACH <= int(distance) < REACH
    assert found == slots
    assert 1 < len(bases) <= POLICY.max_slot_bases + 1


def test_bits_do_not_depend_on_bases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only addresses change, and only where vectors are wide."""
    patch_policy(monkeypatch, nodes_per_function=25)
    program = small(12)
    x = np.random.default_rng(1).uniform(-1.0, 1.0, (19, 5))
    assert "asm" in OutlinedModule(program, WIDE).text()
    assert "asm" not in OutlinedModule(program, Lanes(WIDE.width // 2)).text()
    with_bases = results(compiled(program, WIDE), x)
    patch_policy(monkeypatch, max_slot_bases=0)
    assert "asm" not in OutlinedModule(program, WIDE).text()
    for one, other in zip(with_bases, results(compiled(program, WIDE), x), strict=True):
        np.testing.assert_array_equal(one.view(np.int64), other.view(np.int64))
