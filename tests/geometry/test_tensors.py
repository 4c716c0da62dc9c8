# SPDX-License-Identifier: BSD-3-Clause
"""Symbols of a metric as arrays: how many are free, and what the symmetries say."""

import numpy as np
import pytest

from phistar.errors import ArgumentError
from phistar.geometry import tensors


def random_riemann(n: int, samples: int) -> np.ndarray:
    """Riemann symbols of random metrics at the place where they are the identity."""
    rng = np.random.default_rng(n)
    first, second = rng.normal(size=(samples, n, n, n)), rng.normal(size=(samples, n, n, n, n))
    first = first + np.swapaxes(first, 1, 2)
    second = second + np.swapaxes(second, 1, 2)
    second = second + np.swapaxes(second, 3, 4)
    kind = tensors.first_kind(first)
    return sum(tensors.riemann_parts(second, kind, tensors.second_kind(kind, np.eye(n))))


@pytest.mark.parametrize(("n", "count"), [(1, 0), (2, 1), (3, 6), (4, 20), (5, 50), (6, 105)])
def test_number_of_independent_symbols(n: int, count: int) -> None:
    """Symbols of random metrics span as many dimensions as the formula says, for n up to 5."""
    assert tensors.independent_symbols(n) == count
    if n <= 5:
        samples = random_riemann(n, count + 20).reshape(count + 20, -1)
        assert np.linalg.matrix_rank(samples, rtol=1e-10) == count


def test_printed_number_is_another() -> None:
    """n(n + 1)/2, as printed in Lemma 2.2, agrees at n = 3 alone."""
    agree = [n for n in range(2, 12) if tensors.independent_symbols(n) == n * (n + 1) // 2]
    assert agree == [3]
    with pytest.raises(ArgumentError, match="-1"):
        tensors.independent_symbols(-1)


def test_axes_of_a_tensor() -> None:
    """A change of axes is the product of four matrices; relative 1e-12."""
    rng = np.random.default_rng(1)
    tensor, frame = rng.normal(size=(2, 3, 3, 3, 3)), rng.normal(size=(2, 3, 3))
    expected = np.einsum("zhijk,zah,zbi,zcj,zdk->zabcd", tensor, frame, frame, frame, frame)
    found = tensors.in_frame(tensor, frame)
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(tensors.size(tensor), np.linalg.norm(tensor.reshape(2, -1), axis=1))
