# SPDX-License-Identifier: BSD-3-Clause
"""Least squares in pieces: any number of rows kept as one triangle per joint.

Rows [Y | τ] of a piece of a log become the triangle R of their QR factorization, and two triangles
become one. Solutions, residuals and weights per joint need the triangles only, so that a log is
read once, from wherever it is. Pieces have numbers; neighbours are merged as the leaves of a binary
tree, so that the result has the same bits in whatever order and by whomever they are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from phistar.arrays import Array
from phistar.ident.row_blocks import RowBlock


@dataclass(frozen=True, eq=False)
class RowTriangles:
    """What is left of rows: for each joint a triangle and how many rows it had.

    Attributes:
        factors: For each joint R (p + 1, p + 1) of its rows [Y | τ].
        counts: (joints,) rows.
    """

    factors: tuple[Array, ...]
    counts: Array

    @classmethod
    def of(cls, rows: Sequence[RowBlock], counts: Array) -> RowTriangles:
        """The triangles of rows of each joint, of which so many count."""
        return cls(tuple(triangle(each) for each in rows), counts)

    def merge(self, other: RowTriangles) -> RowTriangles:
        """The triangles of the rows of both, those of ``other`` after these."""
        pairs = zip(self.factors, other.factors, strict=True)
        return RowTriangles(
            tuple(triangle(rows, above) for above, rows in pairs), self.counts + other.counts
        )

    def squares(self, theta: Sequence[Array]) -> Array:
        """(joints,) sums of squares of Yθ - τ, given the parameters that each joint has."""
        found = [
            float(np.sum((R[:, :-1] @ x - R[:, -1]) ** 2))
            for R, x in zip(self.factors, theta, strict=True)
        ]
        return np.array(found)


def triangle(rows: Array | RowBlock, above: Array | None = None) -> Array:
    """R (n, n) of a QR factorization of rows (N, n), of which some may be a triangle already.

    Args:
        rows: The rows; squares of their numbers neither overflow nor vanish.
        above: (n, n) the triangle of rows before them.
    """
    block = rows if isinstance(rows, RowBlock) else RowBlock.of(rows)
    found = np.zeros((block.size, block.size)) if above is None else np.array(above)
    block.reflect_into(found)
    return found


def triangle_inverse(R: Array) -> Array:
    """R⁻¹ of an upper triangle (n, n) without zeros on its diagonal."""
    found = np.zeros(R.shape)
    for i in reversed(range(len(R))):
        row = -np.einsum("j,jk->k", R[i, i + 1 :], found[i + 1 :])
        row[i] += 1.0
        found[i] = row / R[i, i]
    return found


def times(matrix: Array, x: Array) -> Array:
    """A matrix times a vector, with the same bits whatever the threads of BLAS."""
    return np.asarray(np.einsum("ij,j->i", matrix, x))


@dataclass
class Pile:
    """Triangles of numbered pieces, merged pairwise: ``add``, ``update`` with another, ``total``.

    The triangle at (level, k) is that of the pieces 2^level k to 2^level (k + 1) - 1.
    """

    nodes: dict[tuple[int, int], RowTriangles] = field(default_factory=dict)

    def add(self, piece: int, triangles: RowTriangles) -> None:
        """Add a piece, in any order; each number once."""
        self._put(0, piece, triangles)

    def update(self, other: Pile) -> None:
        """Add the pieces of another pile."""
        for (level, k), triangles in sorted(other.nodes.items(), key=lambda item: item[0]):
            self._put(level, k, triangles)

    def _put(self, level: int, k: int, triangles: RowTriangles) -> None:
        while (beside := self.nodes.pop((level, k ^ 1), None)) is not None:
            triangles = beside.merge(triangles) if k % 2 else triangles.merge(beside)
            level, k = level + 1, k // 2
        self.nodes[level, k] = triangles

    def total(self) -> RowTriangles:
        """The triangles of all rows; what is left at the end is merged from left to right."""
        ordered = sorted(self.nodes.items(), key=lambda item: item[0][1] << item[0][0])
        result = ordered[0][1]
        for _, triangles in ordered[1:]:
            result = result.merge(triangles)
        return result
