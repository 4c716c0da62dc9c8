# SPDX-License-Identifier: BSD-3-Clause
"""The plumbing below the spatial functions: dtypes, shapes, plain products."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from phistar.errors import ArgumentError, ShapeError
from phistar.spatial import _arrays

finite = st.floats(-100, 100)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (([1, 2, 3],), np.float64),
        ((True, 2), np.float64),
        ((np.float32(1), 0.5), np.float32),
        ((np.ones(3, np.float32), [0, 0, 1]), np.float32),
        ((np.ones(3, np.float32), 1j), np.complex64),
        ((np.ones(3, np.float32), np.ones(3)), np.float64),
        ((np.ones(3), np.ones(3, np.complex128)), np.complex128),
    ],
)
def test_common_dtype(values: tuple[Any, ...], expected: type) -> None:
    """Integers and Python scalars adopt the precision of the arrays they meet."""
    result = _arrays.as_inexact(*values)
    assert [array.dtype for array in result] == [expected] * len(values)


@pytest.mark.parametrize("value", ["1 0 0", [None, 1.0], np.array(["a"])])
def test_no_numbers_no_computation(value: Any) -> None:
    """Texts and objects are refused by name of their dtype instead of failing deep inside."""
    with pytest.raises(ArgumentError, match="dtype"):
        _arrays.as_inexact(value)


def test_shape_error_keeps_its_data() -> None:
    """A wrong trailing shape is reported with argument, given and expected shape."""
    with pytest.raises(ShapeError, match=r"a has shape \(2, 4\), skew needs \(\.\.\., 3\)") as info:
        _arrays.as_array_with_tail(np.ones((2, 4)), (3,), "a", "skew")
    assert (info.value.argument, info.value.given) == ("a", (2, 4))


@given(arrays(float, (2, 1, 3), elements=finite), arrays(float, (5, 3), elements=finite))
def test_cross_agrees_with_numpy(a: np.ndarray, b: np.ndarray) -> None:
    """The cross product is NumPy's, over broadcast leading axes."""
    np.testing.assert_array_equal(_arrays.cross(a, b), np.cross(a, b))


def test_dot_does_not_conjugate() -> None:
    """i·i = -1: the product is bilinear, else a complex step would lose the derivative."""
    assert _arrays.dot(np.array([1j, 0]), np.array([1j, 5])) == -1


@pytest.mark.parametrize("size", [1e-300, 1e-5, 1.0, 1e300])
def test_normalized_at_extreme_sizes(size: float) -> None:
    """No square under- or overflows on the way to a unit vector."""
    unit = _arrays.unit_vectors(size * np.array([3.0, 0.0, -4.0]), "a")
    np.testing.assert_allclose(unit, [0.6, 0.0, -0.8], rtol=1e-15)


def test_normalized_refuses_zero() -> None:
    """One zero vector in a batch is enough for an error that names the argument."""
    with pytest.raises(ArgumentError, match="axis is zero"):
        _arrays.unit_vectors(np.array([[1.0, 0, 0], [0, 0, 0]]), "axis")
