# SPDX-License-Identifier: BSD-3-Clause
"""Results that go past the caches are the same bits, and nothing else is touched."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.backends.llvm.emit.entry_function import native_entry_text
from phistar.backends.llvm.emit.skeleton import (
    STORE_ALIGNED,
    STORE_ANYWHERE,
    STORE_STREAMING,
    staging_vectors,
)
from phistar.backends.llvm.run.machine_caches import (
    is_made_by_amd,
    linux_cache_bytes,
    min_streamed_bytes,
    threshold_address,
)
from phistar.backends.llvm.run.result_pool import pool
from phistar.backends.policy import CACHE_LINE_BYTES
from phistar.backends.to_llvm import MachineCode
from phistar.compile import matrix_executable
from phistar.scalar.program import Signature
from phistar.thresholds import POLICY
from tests.helpers import numbers, patch_policy

ROBOT = phistar.load("quadruped")
ALWAYS_STREAMED = {"min_streamed_caches": 0, "min_streamed_victim_share": 0}


def _rows(batch: int, real: type = np.float64) -> np.ndarray:
    return ROBOT.random_configuration(np.random.default_rng(1), batch).astype(real)


@pytest.mark.parametrize("batch", [1, 3, 4, 5, 8, 1003])
@pytest.mark.parametrize("real", [np.float64, np.float32])
def test_same_bits(batch: int, real: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Full blocks take the way past the caches, the rest of a batch the usual one."""
    code = matrix_executable("mass_matrix", ROBOT.model)
    assert isinstance(code, MachineCode)
    q = _rows(batch, real)
    usual = numbers(code, q, {}).copy()
    patch_policy(monkeypatch, **ALWAYS_STREAMED)
    assert (numbers(code, q, {}) == usual).all()


@pytest.mark.parametrize("shift", [0, 8, 16, 24, 32])
def test_only_the_output_is_written(shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the output lies: what stands before and after it stays."""
    patch_policy(monkeypatch, **ALWAYS_STREAMED)
    code = matrix_executable("mass_matrix", ROBOT.model)
    assert isinstance(code, MachineCode)
    q, size = _rows(9), ROBOT.nv**2
    kernel = code.tiers().kernel
    room = np.full(9 * size * 8 + 256, 7, np.uint8)
    start = -room.ctypes.data % CACHE_LINE_BYTES + CACHE_LINE_BYTES + shift
    out = room[start : start + 9 * size * 8].view(np.float64).reshape(9, size)
    kernel.call([q], [out])
    assert (out.reshape(9, ROBOT.nv, ROBOT.nv) == numbers(code, q, {})).all()
    assert (room[:start] == 7).all()
    assert (room[start + out.nbytes :] == 7).all()


def test_gaps_take_the_usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples that do not follow each other are not overrun."""
    patch_policy(monkeypatch, **ALWAYS_STREAMED)
    code = matrix_executable("mass_matrix", ROBOT.model)
    assert isinstance(code, MachineCode)
    q, size = _rows(9), ROBOT.nv**2
    wide = np.full((9, size + 8), 7.0)
    code.tiers().kernel.call([q], [wide[:, :size]])
    assert (wide[:, :size].reshape(9, ROBOT.nv, ROBOT.nv) == numbers(code, q, {})).all()
    assert (wide[:, size:] == 7.0).all()


def test_large_enough_batches_go_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their bytes; small outputs never do."""
    kernel = matrix_executable("mass_matrix", ROBOT.model)
    assert isinstance(kernel, MachineCode)
    caller = kernel.tiers().kernel.call
    size = ROBOT.nv**2
    many = pool.empty((min_streamed_bytes() // (8 * size) + 1, size), np.dtype(np.float64))
    place = many.ctypes.data
    assert place % CACHE_LINE_BYTES == 0
    assert caller._store_kind([many], [place]) == STORE_STREAMING
    assert caller._store_kind([many[:10]], [place]) == STORE_ALIGNED
    assert caller._store_kind([many], [place + 8]) == STORE_ANYWHERE
    assert caller._store_kind([many[::2]], [place]) == STORE_ANYWHERE
    assert (
        staging_vectors(
            Signature(
                {"q": 3}, {"x": POLICY.min_streamed_entries - 1, "y": POLICY.min_streamed_entries}
            )
        )
        == POLICY.min_streamed_entries
    )
    entry = native_entry_text(caller.signature, caller.lanes, 0)
    assert str(min_streamed_bytes()) not in entry


def test_the_threshold_is_that_of_the_machine(tmp_path: Path) -> None:
    """It is read from the system; code finds it in memory, so that it is no part of it."""
    for number, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("2", "Instruction", "1K"), ("2", "Unified", "2M"), ("3", "", "7")]
    ):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(f"{text}\n")
    assert linux_cache_bytes(tmp_path, "2") == 2 << 20
    assert linux_cache_bytes(tmp_path, "3") == 7
    assert linux_cache_bytes(tmp_path, "4") is None
    assert not is_made_by_amd(tmp_path / "absent")
    for maker, expected in (("AuthenticAMD", True), ("GenuineIntel", False)):
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nvendor_id\t: {maker}\n")
        assert is_made_by_amd(tmp_path / "cpuinfo") is expected
    assert ctypes.c_int64.from_address(threshold_address()).value == min_streamed_bytes() > 0
