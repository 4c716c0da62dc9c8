# SPDX-License-Identifier: BSD-3-Clause
"""Results that go past the caches are the same bits, and nothing else is touched."""

from __future__ import annotations

import numpy as np
import pytest

import phistar
from phistar.backends.llvm import call, lean
from phistar.backends.llvm.frame import LARGE, staging
from phistar.backends.llvm.memory import LINE, pool
from phistar.compile import matrix_executable
from phistar.scalar.program import Signature

ROBOT = phistar.load("quadruped")


def _rows(batch: int, real: type = np.float64) -> np.ndarray:
    return ROBOT.random_configuration(np.random.default_rng(1), batch).astype(real)


@pytest.mark.parametrize("batch", [1, 3, 4, 5, 8, 1003])
@pytest.mark.parametrize("real", [np.float64, np.float32])
def test_same_bits(batch: int, real: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Full blocks take the way past the caches, the rest of a batch the usual one."""
    code = matrix_executable("mass_matrix", ROBOT.model)
    assert code is not None
    q = _rows(batch, real)
    usual = code(q, {}).copy()
    monkeypatch.setattr(call, "PAST", 0)
    assert (code(q, {}) == usual).all()


@pytest.mark.parametrize("shift", [0, 8, 16, 24, 32])
def test_only_the_output_is_written(shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the output lies: what stands before and after it stays."""
    monkeypatch.setattr(call, "PAST", 0)
    code = matrix_executable("mass_matrix", ROBOT.model)
    assert code is not None
    q, size = _rows(9), ROBOT.nv**2
    kernel = code.tiers().kernel
    room = np.full(9 * size * 8 + 256, 7, np.uint8)
    start = -room.ctypes.data % LINE + LINE + shift
    out = room[start : start + 9 * size * 8].view(np.float64).reshape(9, size)
    kernel.call([q], [out])
    assert (out.reshape(9, ROBOT.nv, ROBOT.nv) == code(q, {})).all()
    assert (room[:start] == 7).all()
    assert (room[start + out.nbytes :] == 7).all()


def test_gaps_take_the_usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples that do not follow each other are not overrun."""
    monkeypatch.setattr(call, "PAST", 0)
    code = matrix_executable("mass_matrix", ROBOT.model)
    assert code is not None
    q, size = _rows(9), ROBOT.nv**2
    wide = np.full((9, size + 8), 7.0)
    code.tiers().kernel.call([q], [wide[:, :size]])
    assert (wide[:, :size].reshape(9, ROBOT.nv, ROBOT.nv) == code(q, {})).all()
    assert (wide[:, size:] == 7.0).all()


def test_large_enough_batches_go_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their bytes; small outputs never do."""
    kernel = matrix_executable("mass_matrix", ROBOT.model)
    assert kernel is not None
    caller = kernel.tiers().kernel.call
    size = ROBOT.nv**2
    many = pool.empty((call.PAST // (8 * size) + 1, size), np.dtype(np.float64))
    place = many.ctypes.data
    assert place % LINE == 0
    assert caller._past([many], [place]) == 1
    assert caller._past([many[:100]], [place]) == 0
    assert caller._past([many], [place + 8]) == 0
    assert staging(Signature({"q": 3}, {"x": LARGE - 1, "y": LARGE})) == LARGE
    assert lean.PAST == call.PAST
