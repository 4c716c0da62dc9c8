# SPDX-License-Identifier: BSD-3-Clause
"""Memory of large results is used again, but never while anybody can see it."""

import gc

import numpy as np
import pytest

import phistar
from phistar.backends.llvm.run.result_pool import ResultPool
from phistar.thresholds import POLICY
from tests.helpers import patch_policy

DOUBLE = np.dtype(float)


def test_memory_comes_back() -> None:
    """An array that nobody holds leaves its memory to the next one of about its size."""
    pool = ResultPool()
    shape = (POLICY.min_pooled_bytes // 8, 2)
    first = pool.empty(shape, DOUBLE)
    place = first.ctypes.data
    assert (first.shape, first.dtype, first.flags.c_contiguous) == (shape, DOUBLE, True)
    del first
    gc.collect()
    assert pool.empty(shape, DOUBLE).ctypes.data == place


def test_what_is_held_is_left_alone() -> None:
    """A view of a view, or a memoryview, keeps the memory of a result."""
    pool = ResultPool()
    shape = (POLICY.min_pooled_bytes // 8, 2)
    for look in (
        lambda x: x,
        lambda x: x[3:, 1][::2],
        lambda x: x.T.reshape(2, -1),
        lambda x: memoryview(x),
    ):
        held = look(pool.empty(shape, DOUBLE))
        before = np.array(held)
        for _ in range(4):
            pool.empty(shape, DOUBLE)[:] = np.random.default_rng(0).normal(size=shape)
        np.testing.assert_array_equal(np.array(held), before)


def test_two_at_a_time_are_apart() -> None:
    """Results of the same size that are alive at once never overlap."""
    pool = ResultPool()
    arrays = [pool.empty((POLICY.min_pooled_bytes,), DOUBLE) for _ in range(5)]
    for i, one in enumerate(arrays):
        assert not any(np.shares_memory(one, other) for other in arrays[:i])


def test_small_and_huge_results_are_ordinary(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come from NumPy, and nothing is kept of them."""
    pool = ResultPool()
    pool.empty((3,), DOUBLE)
    patch_policy(monkeypatch, max_pool_bytes=1 << 20)
    pool.empty((POLICY.max_pool_bytes // 8 + 1,), DOUBLE)
    assert not pool._blocks


def test_results_of_a_robot_stay() -> None:
    """A batch of mass matrices does not change when the next one is computed."""
    robot = phistar.load("double_pendulum")
    rng = np.random.default_rng(0)
    first = robot.mass_matrix(rng.normal(size=(20000, 2)))
    copy = first.copy()
    for _ in range(3):
        robot.mass_matrix(rng.normal(size=(20000, 2)))
    np.testing.assert_array_equal(first, copy)
