# SPDX-License-Identifier: BSD-3-Clause
"""Our logarithm: error bounds in both precisions, numbers that have none, lanes that do not mix.

The witness is the C library in 80 bits, rounded by NumPy.
"""

from functools import cache

import numpy as np
import pytest

from phistar.arrays import Array
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.emit.unrolled_module import unrolled_module
from phistar.backends.llvm.run import jit
from phistar.backends.llvm.run.calls import KernelCaller
from phistar.scalar.graph import Graph, log
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled

DTYPES = {"double": np.float64, "float": np.float32}


@cache
def kernel(width: int, real: str) -> KernelCaller:
    """The logarithm of one number."""
    graph = Graph()
    body = BasicBlock(graph, [Store("y", 0, "", log(graph.load("x", 0)))])
    program = Unrolled(Signature({"x": 1}, {"y": 1}), body)
    lanes = Lanes(width, real)
    return KernelCaller(jit.load(unrolled_module(program, lanes)), program.signature, lanes, 0)


def logarithms(numbers: Array, width: int, real: str) -> Array:
    """Of an array (n,)."""
    x = numbers.astype(DTYPES[real]).reshape(-1, 1)
    y = np.empty_like(x)
    kernel(width, real)([x], [y])
    return y[:, 0]


@pytest.mark.parametrize("real", DTYPES)
@pytest.mark.parametrize("width", [1, 4])
def test_three_roundings(real: str, width: int) -> None:
    """Near one, where digits cancel, and over the whole range of exponents."""
    rng = np.random.default_rng(0)
    most = np.log(float(np.finfo(DTYPES[real]).max))
    wide = np.exp(rng.uniform(3.0 - most, most - 1.0, 3001))
    near = 1.0 + rng.choice([-1.0, 1.0], 3001) * 10.0 ** rng.uniform(-7, -0.5, 3001)
    powers = 2.0 ** np.arange(-100, 101)
    numbers = np.concatenate([wide, near, powers, [np.sqrt(0.5), np.sqrt(2.0)]])
    numbers = numbers.astype(DTYPES[real])
    known = np.log(numbers.astype(np.longdouble))
    rounding = np.spacing(np.abs(known.astype(DTYPES[real])))
    error = np.abs(logarithms(numbers, width, real) - known) / rounding
    assert error.max() < 3.0


@pytest.mark.parametrize("real", DTYPES)
def test_numbers_without_logarithm(real: str) -> None:
    """Zero, negative, subnormal and undefined numbers give none; other lanes do not feel it."""
    tiny = float(np.finfo(DTYPES[real]).smallest_subnormal)
    given = np.array([2.0, 0.0, -1.0, tiny, np.nan, 3.0, -np.inf, 1.0, 5.0])
    found = logarithms(given, 4, real)
    fine = [0, 5, 7, 8]
    np.testing.assert_allclose(found[fine], np.log(given[fine]), rtol=1e-6)
    assert np.isnan(np.delete(found, fine)).all()
