# SPDX-License-Identifier: BSD-3-Clause
"""Outputs that keep zeros: which lines are written, what is written, and what stays."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.nonzero_runs import nonzero_runs, written_lines
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run.calls import KernelCaller
from phistar.backends.llvm.run.machine_kernel import emit_module
from phistar.backends.policy import CACHE_LINE_BYTES
from phistar.scalar.graph import Graph
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from tests.helpers import patch_policy

POISON = 7.0
LANES = {"double": Lanes(8, "double"), "float": Lanes(16, "float")}
"""Of vectors that are lines; LLVM makes code of them for any processor."""


def _random_zeros(rng: np.random.Generator, size: int) -> set[int]:
    """Gaps of all lengths, at the begin and at the end, too."""
    cuts = np.sort(rng.integers(0, size + 1, rng.integers(1, 8)))
    ends = [0, *cuts.tolist(), size]
    pairs = list(pairwise(ends))[rng.integers(0, 2) :: 2]
    return {entry for start, stop in pairs for entry in range(start, stop)}


@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_lines_that_are_written(width: int) -> None:
    """They are aligned and different, hold all that is not zero, and runs are as long as can be."""
    rng = np.random.default_rng(width)
    for _ in range(60):
        size = int(rng.integers(width, 12 * width))
        zeros = _random_zeros(rng, size)
        lines = [lane * size + entry for lane, entry in written_lines(zeros, size, width)]
        assert len(set(lines)) == len(lines)
        assert all(0 <= place <= (size - 1) * width and place % width == 0 for place in lines)
        held = np.zeros(size * width, dtype=bool)
        for place in lines:
            held[place : place + width] = True
        kept = np.array([entry not in zeros for entry in range(size)])
        assert (held | ~np.tile(kept, width)).all()
        runs = nonzero_runs(zeros, size, width)
        for before, after in pairwise(runs):
            assert before.stop < after.start
        # What is written for nothing: only next to the end of a row, or in a run.
        for place in set(range(0, size * width, width)) & set(lines):
            lane, entry = divmod(place, size)
            row = range(max(entry, 0), min(entry + width, size))
            near_end = entry + 2 * width > size or entry < 0
            inside = any(r.start < entry + width and entry < r.stop for r in runs)
            assert near_end or inside or any(e not in zeros for e in row), (lane, entry)


def test_nothing_and_everything() -> None:
    """Without zeros all lines are written; of zeros alone those in which a row ends."""
    assert len(list(written_lines((), 41 * 41, 8))) == 41 * 41
    ends = list(written_lines(range(64), 64, 8))
    assert ends == []
    assert [run.start for run in nonzero_runs({0, 1, 30}, 64, 8)] == [0]
    (run,) = nonzero_runs(set(range(64)) - {9, 20}, 64, 8)
    assert (run.start, run.stop, run.lead, run.trail) == (8, 24, 7, 3)


SIZES = (64, 97, 216)


@cache
def _kernel(real: str) -> tuple[KernelCaller, list[set[int]]]:
    """Outputs whose entries are entry + x, or zero, and where they are zero."""
    graph, rng = Graph(), np.random.default_rng(len(real))
    x = graph.load("q", 0)
    zeros = [_random_zeros(rng, size) for size in SIZES]
    # One with gaps of its own between all runs.
    zeros[-1] = {k for k in range(216) if k % 60 > 20}
    stores = [
        Store(f"y{n}", entry, "", 0.0 if entry in zeros[n] else x + float(entry))
        for n, size in enumerate(SIZES)
        for entry in range(size)
    ]
    signature = Signature({"q": 1}, {f"y{n}": size for n, size in enumerate(SIZES)})
    program = Unrolled(signature, BasicBlock(graph, stores), keeps_zeros=True)
    text, room = emit_module(program, LANES[real])
    code = jit.load(jit.compile_text(text, quick=True))
    return KernelCaller(code, signature, LANES[real], room), zeros


def _poisoned(batch: int, size: int, dtype: np.dtype, shift: int = 0) -> np.ndarray:
    """An array of poison that begins so many entries behind a line of the caches."""
    room = np.full(batch * size + 2 * CACHE_LINE_BYTES, POISON, dtype)
    start = -room.ctypes.data % CACHE_LINE_BYTES // dtype.itemsize + shift
    return room[start : start + batch * size].reshape(batch, size)


def _full(batch: int, zeros: list[set[int]], q: np.ndarray) -> list[np.ndarray]:
    """What everything that is written must be."""
    return [
        np.where([entry in held for entry in range(size)], 0, np.arange(size) + q).astype(q.dtype)
        for size, held in zip(SIZES, zeros, strict=True)
    ]


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("batch", [1, 8, 16, 45])
def test_what_stays(real: str, streamed: bool, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that are passed over keep the poison that was there, all others are right; blocks that
    are not full are written in full."""
    share = 0.0 if streamed else 1e6
    patch_policy(monkeypatch, min_streamed_caches=share, min_streamed_victim_share=share)
    call, zeros = _kernel(real)
    width = LANES[real].width
    q = np.random.default_rng(0).normal(size=(batch, 1)).astype(call.dtype)
    outputs = [_poisoned(batch, size, call.dtype) for size in SIZES]
    assert call([q], outputs)
    stayed = 0
    for size, held, found, expected in zip(
        SIZES, zeros, outputs, _full(batch, zeros, q), strict=True
    ):
        written = np.ones(batch * size, dtype=bool)
        block = np.zeros(width * size, dtype=bool)
        for lane, entry in written_lines(held, size, width):
            start = lane * size + entry
            block[start : start + width] = True
        for first in range(0, batch - width + 1, width):
            written[first * size : (first + width) * size] = block
        expected = np.where(written.reshape(batch, size), expected, POISON)
        np.testing.assert_array_equal(found, expected)
        stayed += np.count_nonzero(~written)
    assert (stayed > 0) == (batch >= width)


@pytest.mark.parametrize("real", ["double", "float"])
def test_other_places_are_written_in_full(real: str) -> None:
    """Arrays that do not begin with a line, and samples with gaps between them."""
    call, zeros = _kernel(real)
    q = np.random.default_rng(1).normal(size=(32, 1)).astype(call.dtype)
    shifted = [_poisoned(32, size, call.dtype, shift=1) for size in SIZES]
    gaps = [_poisoned(32, size + 8, call.dtype)[:, :size] for size in SIZES]
    for outputs in (shifted, gaps):
        assert call([q], outputs)
        for found, expected in zip(outputs, _full(32, zeros, q), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_numbers_that_are_not_finite_stay_in_their_lane() -> None:
    """And leave zeros alone."""
    call, zeros = _kernel("double")
    q = np.random.default_rng(2).normal(size=(16, 1))
    q[5] = np.nan
    outputs = [_poisoned(16, size, call.dtype) for size in SIZES]
    for each in outputs:
        each.fill(0.0)
    assert not call([q], outputs)
    for found, expected, held in zip(outputs, _full(16, zeros, q), zeros, strict=True):
        np.testing.assert_array_equal(found, expected)
        assert not found[5][sorted(held)].any()
