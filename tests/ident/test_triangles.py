# SPDX-License-Identifier: BSD-3-Clause
"""Triangles of pieces: the same bits in any order, the same solution as all rows at once."""

import numpy as np

from phistar.ident.triangles import Pile, RowTriangles


def pieces(count: int) -> list[RowTriangles]:
    """Rows of two joints with three and two parameters."""
    rng = np.random.default_rng(0)
    return [
        RowTriangles.of([rng.normal(size=(20, 4)), rng.normal(size=(20, 3))]) for _ in range(count)
    ]


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
        pile.add(k, RowTriangles.of([rows[start : start + 70]]))
    theta = rng.normal(size=3)
    direct = np.sum((rows[:, :3] @ theta - rows[:, 3]) ** 2)
    assert abs(pile.total().squares([theta])[0] - direct) <= 1e-12 * direct
