# SPDX-License-Identifier: BSD-3-Clause
"""3-vectors, rotations and symmetric 3x3 matrices of scalars, with as few operations as we know.

A symmetric matrix is the list [xx, xy, xz, yy, yz, zz]. A rotation is a list of factors, each a
turn about one axis, a signed permutation or a dense matrix; it takes child coordinates to parent
coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from phistar.scalar.graph import Scalar

Vector = list[Scalar]
Matrix = list[Vector]

_CYCLIC_AXES = ((1, 2), (2, 0), (0, 1))
"""For each axis the two others, in cyclic order."""
_SYMMETRIC_INDEX = {(0, 0): 0, (0, 1): 1, (0, 2): 2, (1, 1): 3, (1, 2): 4, (2, 2): 5}


def symmetric_index(i: int, j: int) -> int:
    """Where entry (i, j) of a symmetric matrix stands in its list."""
    return _SYMMETRIC_INDEX[(i, j) if i <= j else (j, i)]


def zeros(count: int = 6) -> Vector:
    """A vector of zeros; of six for motions and forces."""
    return [0.0] * count


def dot(x: Sequence[Scalar], y: Sequence[Scalar]) -> Scalar:
    """Inner product."""
    total: Scalar = 0.0
    for a, b in zip(x, y, strict=True):
        total = total + a * b
    return total


def plus(x: Sequence[Scalar], y: Sequence[Scalar]) -> Vector:
    """Entrywise sum."""
    return [a + b for a, b in zip(x, y, strict=True)]


def minus(x: Sequence[Scalar], y: Sequence[Scalar]) -> Vector:
    """Entrywise difference."""
    return [a - b for a, b in zip(x, y, strict=True)]


def scaled(factor: Scalar, x: Sequence[Scalar]) -> Vector:
    """A multiple."""
    return [factor * a for a in x]


def cross(x: Sequence[Scalar], y: Sequence[Scalar]) -> Vector:
    """x × y."""
    return [x[i] * y[j] - x[j] * y[i] for i, j in _CYCLIC_AXES]


def times(matrix: Matrix, x: Sequence[Scalar]) -> Vector:
    """A matrix times a vector."""
    return [dot(row, x) for row in matrix]


def symmetric_times(s: Sequence[Scalar], x: Sequence[Scalar]) -> Vector:
    """A symmetric matrix times a vector."""
    return [dot([s[symmetric_index(i, j)] for j in range(3)], x) for i in range(3)]


def transposed(matrix: Matrix) -> Matrix:
    """Rows and columns swapped."""
    return [list(column) for column in zip(*matrix, strict=True)]


@dataclass(frozen=True)
class AxisRotation:
    """A rotation about axis 0, 1 or 2 by an angle with this cosine and sine."""

    axis: int
    c: Scalar
    s: Scalar

    def rotate(self, x: Vector) -> Vector:
        """R x."""
        i, j = _CYCLIC_AXES[self.axis]
        y = list(x)
        y[i] = self.c * x[i] - self.s * x[j]
        y[j] = self.s * x[i] + self.c * x[j]
        return y

    def rotate_back(self, x: Vector) -> Vector:
        """R* x."""
        i, j = _CYCLIC_AXES[self.axis]
        y = list(x)
        y[i] = self.c * x[i] + self.s * x[j]
        y[j] = self.c * x[j] - self.s * x[i]
        return y

    def inverse(self) -> AxisRotation:
        """The other way round."""
        return AxisRotation(self.axis, self.c, -self.s)

    @cached_property
    def squares(self) -> tuple[Scalar, Scalar]:
        """s² and c s."""
        return self.s * self.s, self.c * self.s

    def congruence(self, m: Vector) -> Vector:
        """R S R* of a symmetric matrix: the corner by s² and cs, the edge as a vector."""
        i, j = _CYCLIC_AXES[self.axis]
        k = self.axis
        ss, cs = self.squares
        xx, xy, yy = m[symmetric_index(i, i)], m[symmetric_index(i, j)], m[symmetric_index(j, j)]
        # xx' = xx + e, yy' = yy - e, e = s²(yy - xx) - 2 cs xy; xy' = xy + cs(xx - yy) - 2 s² xy
        spread, double = yy - xx, xy + xy
        e = ss * spread - cs * double
        r = list(m)
        r[symmetric_index(i, i)] = xx + e
        r[symmetric_index(j, j)] = yy - e
        r[symmetric_index(i, j)] = xy - (cs * spread + ss * double)
        r[symmetric_index(i, k)] = (
            self.c * m[symmetric_index(i, k)] - self.s * m[symmetric_index(j, k)]
        )
        r[symmetric_index(j, k)] = (
            self.s * m[symmetric_index(i, k)] + self.c * m[symmetric_index(j, k)]
        )
        return r

    def general_congruence(self, m: Matrix) -> Matrix:
        """R B R* of any 3x3 matrix: its corner by sum and difference, its edges as vectors."""
        i, j = _CYCLIC_AXES[self.axis]
        k = self.axis
        ss, cs = self.squares
        b = [list(row) for row in m]
        xx, xy, yx, yy = m[i][i], m[i][j], m[j][i], m[j][j]
        spread, double = yy - xx, xy + yx
        e = ss * spread - cs * double
        f = cs * spread + ss * double
        b[i][i], b[j][j] = xx + e, yy - e
        b[i][j], b[j][i] = xy - f, yx - f
        b[i][k] = self.c * m[i][k] - self.s * m[j][k]
        b[j][k] = self.s * m[i][k] + self.c * m[j][k]
        b[k][i] = self.c * m[k][i] - self.s * m[k][j]
        b[k][j] = self.s * m[k][i] + self.c * m[k][j]
        return b


@dataclass(frozen=True)
class SignedPermutation:
    """A signed permutation: entry i of R x is ``signs[i] * x[places[i]]``."""

    source_axes: tuple[int, int, int]
    signs: tuple[float, float, float]

    def rotate(self, x: Vector) -> Vector:
        """R x."""
        return [s * x[p] for p, s in zip(self.source_axes, self.signs, strict=True)]

    def rotate_back(self, x: Vector) -> Vector:
        """R* x."""
        y: Vector = [0.0, 0.0, 0.0]
        for i, (p, s) in enumerate(zip(self.source_axes, self.signs, strict=True)):
            y[p] = s * x[i]
        return y

    def inverse(self) -> SignedPermutation:
        """The permutation back."""
        places, signs = [0, 0, 0], [0.0, 0.0, 0.0]
        for i, (p, s) in enumerate(zip(self.source_axes, self.signs, strict=True)):
            places[p], signs[p] = i, s
        return SignedPermutation((places[0], places[1], places[2]), (signs[0], signs[1], signs[2]))

    def congruence(self, m: Vector) -> Vector:
        """R S R*."""
        p, s = self.source_axes, self.signs
        return [s[i] * s[j] * m[symmetric_index(p[i], p[j])] for i in range(3) for j in range(i, 3)]

    def general_congruence(self, m: Matrix) -> Matrix:
        """R B R*."""
        p, s = self.source_axes, self.signs
        return [[s[i] * s[j] * m[p[i]][p[j]] for j in range(3)] for i in range(3)]


@dataclass(frozen=True)
class DenseRotation:
    """Any rotation matrix."""

    rows: Matrix

    def rotate(self, x: Vector) -> Vector:
        """R x."""
        return times(self.rows, x)

    def rotate_back(self, x: Vector) -> Vector:
        """R* x."""
        return times(transposed(self.rows), x)

    def inverse(self) -> DenseRotation:
        """The transpose."""
        return DenseRotation(transposed(self.rows))

    def congruence(self, m: Vector) -> Vector:
        """R S R*, with the trace taken out: two columns of S - zz I, then the six entries."""
        zz = m[5]
        a, b, c, d, e = m[0] - zz, m[1], m[2], m[3] - zz, m[4]
        # S - zz I = [[a b c] [b d e] [c e 0]]; R R* = I returns zz to the diagonal.
        r = self.rows
        left = [
            [r[i][0] * a + r[i][1] * b + r[i][2] * c for i in range(3)],
            [r[i][0] * b + r[i][1] * d + r[i][2] * e for i in range(3)],
            [r[i][0] * c + r[i][1] * e for i in range(3)],
        ]
        result = [
            left[0][i] * r[j][0] + left[1][i] * r[j][1] + left[2][i] * r[j][2]
            for i in range(3)
            for j in range(i, 3)
            if (i, j) != (2, 2)
        ]
        # The trace is the same on both sides.
        corner = (a + d) - result[0] - result[3]
        return [result[0] + zz, result[1], result[2], result[3] + zz, result[4], corner + zz]

    def general_congruence(self, m: Matrix) -> Matrix:
        """R B R*."""
        half = [times(self.rows, list(column)) for column in zip(*m, strict=True)]
        return [times(self.rows, list(row)) for row in zip(*half, strict=True)]


RotationFactor = AxisRotation | SignedPermutation | DenseRotation


@dataclass(frozen=True)
class Rotation:
    """A product of factors; ``factors[0]`` is the one nearest the parent."""

    factors: tuple[RotationFactor, ...] = ()

    def rotate(self, x: Vector) -> Vector:
        """Child coordinates to parent coordinates."""
        for factor in reversed(self.factors):
            x = factor.rotate(x)
        return x

    def rotate_back(self, x: Vector) -> Vector:
        """Parent coordinates to child coordinates."""
        for factor in self.factors:
            x = factor.rotate_back(x)
        return x

    def inverse(self) -> Rotation:
        """Parent coordinates to child coordinates."""
        return Rotation(tuple(factor.inverse() for factor in reversed(self.factors)))

    def congruence(self, m: Vector) -> Vector:
        """R S R*: a symmetric matrix to parent coordinates."""
        for factor in reversed(self.factors):
            m = factor.congruence(m)
        return m

    def general_congruence(self, m: Matrix) -> Matrix:
        """R B R*: any matrix to parent coordinates."""
        for factor in reversed(self.factors):
            m = factor.general_congruence(m)
        return m
