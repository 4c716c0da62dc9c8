# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that differ by rounding become one; others stay as they are."""

import numpy as np
import pytest

from phistar.scalar.graph import CancellingFloat, Graph
from phistar.scalar.robot.rounding import (
    merge_close_numbers,
    snap_to_quarter_turns,
    snap_to_units,
    snap_to_zero,
)

ONE = 1.0 + 4 * np.finfo(float).eps


def test_whole_numbers_of_rotations() -> None:
    """Right angles are exact, and what is further off is kept bit for bit."""
    x = np.array([1e-15, -1e-15, 1 - 1e-15, -1 + 1e-15, 1e-12, 0.5])
    np.testing.assert_array_equal(snap_to_units(x, 1e-14), [0.0, 0.0, 1.0, -1.0, 1e-12, 0.5])
    np.testing.assert_array_equal(snap_to_units(x, 0.0), x)


def test_quarter_turns() -> None:
    """A half turn has one sign, and angles between quarters stay."""
    half = np.pi
    x = np.array([half - 1e-15, -half + 1e-15, half / 2 + 4e-16, 1e-15, 0.3])
    np.testing.assert_array_equal(snap_to_quarter_turns(x, 1e-14), [half, half, half / 2, 0.0, 0.3])


def test_the_first_of_near_numbers_stands_for_all() -> None:
    """But for sign; its place in the array decides, not its size."""
    x = np.array([[3 * ONE, -3.0], [2.0, 0.0]])
    np.testing.assert_array_equal(merge_close_numbers(x, 0.0), [[3 * ONE, -3 * ONE], [2.0, 0.0]])
    np.testing.assert_array_equal(merge_close_numbers(-x[:, ::-1], 0.0), [[3.0, -3.0], [0.0, -2.0]])


def test_near_one_is_one() -> None:
    """A mass of a kilogram is one, whatever unit it was written in."""
    np.testing.assert_array_equal(
        merge_close_numbers(np.array([ONE, -ONE, 1 + 1e-9]), 0.0), [1, -1, 1 + 1e-9]
    )


def test_rounding_is_measured_by_what_a_number_comes_from() -> None:
    """A small difference of large numbers is compared by the rounding of these."""
    x = np.array([1e-6, 1e-6 + 1e-15, 2e-6])
    np.testing.assert_array_equal(merge_close_numbers(x, 0.0), x)
    np.testing.assert_array_equal(merge_close_numbers(x, 1.0), [1e-6, 1e-6, 2e-6])
    np.testing.assert_array_equal(
        merge_close_numbers(x, np.array([0.0, 1.0, 0.0])), [1e-6, 1e-6, 2e-6]
    )


def test_zeros_attract_nothing() -> None:
    """What is a zero is decided before, for each number by its own scale."""
    x = np.array([0.0, 1e-15, 3.0])
    np.testing.assert_array_equal(merge_close_numbers(x, 1e-3), x)
    np.testing.assert_array_equal(merge_close_numbers(x, 1e9), x)
    np.testing.assert_array_equal(snap_to_zero(x, np.array([1.0, 1e-14, 1.0])), [0.0, 0.0, 3.0])
    assert merge_close_numbers(np.zeros((0, 3)), 1.0).shape == (0, 3)


@pytest.mark.parametrize("seed", range(3))
def test_sharing_twice_changes_nothing(seed: int) -> None:
    """Equal numbers stay equal, and each moves by the tolerance at most."""
    rng = np.random.default_rng(seed)
    x = rng.choice(rng.normal(size=20), 200) * (1 + 4 * np.finfo(float).eps * rng.normal(size=200))
    once = merge_close_numbers(x, 0.0)
    assert len(np.unique(np.abs(once))) <= 20
    np.testing.assert_allclose(once, x, rtol=1e-14, atol=0)
    np.testing.assert_array_equal(merge_close_numbers(once, 0.0), once)


# -- folding


def test_what_cancels_up_to_rounding_is_zero() -> None:
    """Sums of a robot's constants; products and quotients stay constants of a robot."""
    x, y = CancellingFloat(0.1) * CancellingFloat(3.0), CancellingFloat(0.3)
    assert float(x) != float(y)
    assert x - y == y - x == -x + y == 0.3 - x == x - 0.3 == 0.0
    assert x + y == pytest.approx(0.6)
    assert type(x / y) is type(1.0 / x) is type(-x) is CancellingFloat
    assert CancellingFloat(1.0) - CancellingFloat(1.0 - 1e-12) == pytest.approx(1e-12, rel=1e-3)


def test_constants_that_differ_by_rounding_are_one_node() -> None:
    """Products with them are shared; across a power of two and for both signs."""
    graph = Graph()
    x = graph.load("q", 0)
    assert (0.3 * x).id == ((0.1 * 3.0) * x).id  # type: ignore[union-attr]
    assert (x * 1.0).id == (x * ONE).id == x.id  # type: ignore[union-attr]
    assert (x + 2.0).id == (x + 2.0 * (1 - 2e-16)).id  # type: ignore[union-attr]
    assert (x + -0.3).id == (x - 0.1 * 3.0).id  # type: ignore[union-attr]
    assert (x + 0.3).id != (x + 0.3000000000001).id  # type: ignore[union-attr]
    assert ((x + 0.3) - 0.1 * 3.0).id == x.id  # type: ignore[union-attr]
