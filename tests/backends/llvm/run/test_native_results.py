# SPDX-License-Identifier: BSD-3-Clause
"""The built-in function that makes its results: arrays as NumPy's own, and no reference is lost."""

import ctypes
import sys
from typing import Any

import numpy as np
import pytest

from phistar.arrays import Array
from phistar.backends.llvm import abi
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run.entry import _shape_words
from phistar.backends.llvm.run.machine_kernel import emit_module
from phistar.backends.llvm.run.native_entry import (
    RESULTS_SYMBOL,
    NativeResults,
    load_native_results,
)
from phistar.scalar.interpret import run
from phistar.scalar.program import Unrolled

pytestmark = pytest.mark.skipif(
    abi.new_array_address() is None, reason="needs NumPy's C interface in CPython, and its lock"
)
SHAPES = _shape_words([(2, 3), (1,)])


def made(program: Unrolled, real: str = "double") -> NativeResults:
    """The function of a program."""
    text, _ = emit_module(program, Lanes(1, real, 4))
    function = load_native_results(jit.load(text, symbols=(RESULTS_SYMBOL,)))
    assert function is not None
    return function


@pytest.fixture(scope="module")
def results(program: Unrolled) -> NativeResults:
    """That of the small program."""
    return made(program)


def inputs(dtype: Any = float) -> list[Array]:
    """q, v and x of one sample."""
    rng = np.random.default_rng(4)
    return [rng.normal(size=n).astype(dtype) for n in (3, 2, 9)]


@pytest.mark.parametrize(("real", "dtype"), [("double", np.float64), ("float", np.float32)])
def test_results(program: Unrolled, real: str, dtype: Any) -> None:
    """New plain arrays that own their memory, with the numbers of the interpreter."""
    given = inputs(dtype)
    found = made(program, real)(SHAPES, *given)
    assert isinstance(found, tuple)
    rows = {name: x[None].astype(float) for name, x in zip(("q", "v", "x"), given, strict=True)}
    for x, shape, expected in zip(found, ((2, 3), (1,)), run(program, rows).values(), strict=True):
        assert type(x) is np.ndarray
        assert (x.shape, x.dtype) == (shape, dtype)
        assert x.flags.owndata
        assert x.flags.c_contiguous
        assert x.flags.writeable
        tolerance = 1e-14 if real == "double" else 1e-5
        np.testing.assert_allclose(x.ravel(), expected[0], rtol=tolerance, atol=tolerance)


def test_anything_else_is_refused(results: NativeResults) -> None:
    """False, as the native entry says; other arrays are as good afterwards."""
    given = inputs()
    for place in range(3):
        for other in (
            given[place].tolist(),
            given[place][None],
            given[place].astype(np.float32),
            np.repeat(given[place], 2)[::2],
            np.append(given[place], 1.0),
            np.full_like(given[place], np.nan),
            None,
        ):
            assert results(SHAPES, *given[:place], other, *given[place + 1 :]) is False
    assert results(SHAPES, *given[:2]) is False
    assert results(SHAPES, *given) is not False


def test_no_reference_is_lost(results: NativeResults) -> None:
    """Results belong to the caller alone; calls that fail hold on to nothing."""
    given = inputs()
    bad = [given[0], np.full(2, np.inf), given[2]]
    counts = [sys.getrefcount(x) for x in (*given, *bad, SHAPES, False, None)]
    for _ in range(1000):
        found = results(SHAPES, *given)
        assert results(SHAPES, *bad) is False
    assert isinstance(found, tuple)
    after = [sys.getrefcount(x) for x in (*given, *bad, SHAPES, False, None)]
    assert max(abs(a - b) for a, b in zip(counts, after, strict=True)) < 50
    assert sys.getrefcount(found) == 2
    x, y = found
    del found
    assert (sys.getrefcount(x), sys.getrefcount(y)) == (2, 2)


def test_memory_that_is_not_there(results: NativeResults) -> None:
    """The error that NumPy raises; arrays that were made before are let go."""
    huge = _shape_words([(2, 3), (1 << 60,)])
    for _ in range(3):
        with pytest.raises((MemoryError, ValueError)):
            results(huge, *inputs())
    assert results(SHAPES, *inputs()) is not False


def test_unfamiliar_numpy(program: Unrolled, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where arrays cannot be made so there is no such function."""
    text, _ = emit_module(program, Lanes(1, "double", 4))
    code = jit.load(text, symbols=(RESULTS_SYMBOL,))
    assert load_native_results(code) is not None
    monkeypatch.setattr(abi, "new_array_address", lambda: None)
    assert load_native_results(code) is None


def test_other_kernels_have_none(program: Unrolled) -> None:
    """Those for batches."""
    text, _ = emit_module(program, Lanes(4))
    assert RESULTS_SYMBOL not in text


def test_the_function_is_found_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes other arrays than asked for is not taken."""
    abi.new_array_address.cache_clear()
    try:
        monkeypatch.setattr(abi, "_NEW_ARRAY", lambda place: lambda *given: np.zeros((3, 2)))
        assert abi.new_array_address() is None
    finally:
        abi.new_array_address.cache_clear()
    monkeypatch.undo()
    address = abi.new_array_address()
    assert address is not None
    shape = (ctypes.c_ssize_t * 1)(5)
    made = abi._NEW_ARRAY(address)(np.ndarray, 1, shape, 12, None, None, 0, 0, None)
    assert (made.shape, made.dtype) == ((5,), np.float64)
