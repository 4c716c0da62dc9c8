# SPDX-License-Identifier: BSD-3-Clause
"""Triangles of pieces: the same bits in any order, the same solution as all rows at once."""

import numpy as np
import pytest

from phistar.arrays import Array
from phistar.ident.row_blocks import RowBlock
from phistar.ident.triangles import Pile, RowTriangles, triangle, triangle_inverse


def pieces(count: int) -> list[RowTriangles]:
    """Rows of two joints with three and two parameters."""
    rng = np.random.default_rng(0)
    return [_triangles(rng.normal(size=(20, 4)), rng.normal(size=(20, 3))) for _ in range(count)]


def _triangles(*rows: Array) -> RowTriangles:
    return RowTriangles.of([RowBlock.of(x) for x in rows], np.array([len(x) for x in rows]))


def test_any_order_and_any_split_give_the_same_bits() -> None:
    """Pieces added forward, shuffled, or by three workers whose piles are merged."""
    made = pieces(13)
    forward = Pile()
    for k, piece in enumerate(made):
        forward.add(k, piece)
    expected = forward.total()
    shuffled = Pile()
    for k in np.random.default_rng(1).permutation(13):
        shuffled.add(int(k), made[k])
    workers = [Pile() for _ in range(3)]
    for k, piece in enumerate(made):
        workers[(5 * k) % 3].add(k, piece)
    joined = Pile()
    for worker in reversed(workers):
        joined.update(worker)
    for other in (shuffled.total(), joined.total()):
        for a, b in zip(expected.factors, other.factors, strict=True):
            assert np.array_equal(a, b)
        assert np.array_equal(expected.counts, other.counts)
    assert expected.counts.tolist() == [260, 260]


def test_squares_are_those_of_all_rows() -> None:
    """Residuals of any parameters from the triangle, and from the rows."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(300, 4))
    pile = Pile()
    for k, start in enumerate(range(0, 300, 70)):
        pile.add(k, _triangles(rows[start : start + 70]))
    theta = rng.normal(size=3)
    direct = np.sum((rows[:, :3] @ theta - rows[:, 3]) ** 2)
    assert abs(pile.total().squares([theta])[0] - direct) <= 1e-12 * direct


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (64, 5), (65, 5), (500, 47), (150, 130)])
def test_triangles_are_those_of_lapack(shape: tuple[int, int]) -> None:
    """R up to signs of its rows, whatever the sizes of columns; and its inverse."""
    rng = np.random.default_rng(shape[0])
    rows = rng.normal(size=shape) * 10.0 ** rng.uniform(-8, 8, size=shape[1])
    found, expected = triangle(rows), np.linalg.qr(rows, mode="r")
    size = np.linalg.norm(rows, axis=0)
    assert not np.tril(found, -1).any()
    assert (np.abs(found[len(expected) :]) <= 2e-13 * size).all()
    assert (np.abs(np.abs(found[: len(expected)]) - np.abs(expected)) <= 2e-13 * size).all()
    assert (np.abs(found.T @ found - rows.T @ rows) <= 1e-14 * np.outer(size, size)).all()
    if shape[0] >= shape[1]:
        eye = (triangle_inverse(found) * size[:, None]) @ (found / size)
        assert np.abs(eye - np.eye(shape[1])).max() < 1e-11


def test_columns_of_several_arrays_with_weights_and_a_shift() -> None:
    """What is read from where it is equals what is formed first; rows without weight do nothing."""
    rng = np.random.default_rng(5)
    bodies, signals = rng.normal(size=(200, 3, 9)), rng.normal(size=(200, 3)).astype(np.float32)
    weights = rng.integers(0, 2, size=(200, 3)).astype(float)
    shift = rng.normal(size=4)
    parts = [(bodies[:, 1], np.array([0, 4, 8])), (signals, (1,)), (bodies[:, 2], (3,))]
    block = RowBlock(parts, weights[:, 1], shift)
    formed = np.column_stack([bodies[:, 1][:, [0, 4, 8]], signals[:, 1], bodies[:, 2, 3]])
    formed[:, -1] += formed[:, :-1] @ shift
    formed = formed[weights[:, 1] > 0.0]
    assert np.abs(block.dense()[weights[:, 1] > 0.0] - formed).max() < 1e-14
    expected = np.linalg.qr(formed, mode="r")
    assert np.abs(np.abs(triangle(block)) - np.abs(expected)).max() < 1e-13 * np.abs(expected).max()


def test_columns_without_numbers_and_numbers_that_are_none() -> None:
    """A column of zeros stays one; NaN is seen in the result, wherever it was."""
    rows = np.random.default_rng(6).normal(size=(100, 4))
    rows[:, 1] = 0.0
    found = triangle(rows)
    assert np.isfinite(found).all()
    assert not found[1, 1]
    rows[70, 1] = np.nan
    assert np.isnan(triangle(rows)).any()
