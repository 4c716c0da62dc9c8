# SPDX-License-Identifier: BSD-3-Clause
"""Positive matrices of scalars, factored."""

from __future__ import annotations

from phistar.scalar.graph import Scalar, guard
from phistar.scalar.linear.vectors import Matrix, Vector, zeros


def is_zero(x: Scalar) -> bool:
    """Whether it is zero for the robot as such."""
    return isinstance(x, float) and x == 0.0


def guarded_pivot(x: Scalar, size: Scalar, least: float) -> Scalar:
    """A pivot; not a number below a fraction of a size, if one is given."""
    return guard(x, least * size) if least else x


class SymmetricFactor:
    """A positive matrix Δ = C E C* without pivoting, C unit lower triangular."""

    def __init__(self, delta: Matrix, least: float) -> None:
        """Args:
        delta: The matrix.
        least: Fraction of a row's own number below which its pivot is none.
        """
        work = [list(row) for row in delta]
        count = len(delta)
        self._inverses: Vector = []
        self._lower: Matrix = [zeros(count) for _ in delta]
        for k in range(count):
            self._inverses.append(1.0 / guarded_pivot(work[k][k], delta[k][k], least))
            for i in range(k + 1, count):
                self._lower[i][k] = work[i][k] * self._inverses[k]
                for j in range(k + 1, i + 1):
                    work[i][j] = work[i][j] - self._lower[i][k] * work[j][k]

    def forward(self, x: Vector) -> Vector:
        """C⁻¹x."""
        y = list(x)
        for i, row in enumerate(self._lower):
            for k in range(i):
                y[i] = y[i] - row[k] * y[k]
        return y

    def divided(self, x: Vector) -> Vector:
        """E⁻¹x."""
        return [value * inverse for value, inverse in zip(x, self._inverses, strict=True)]

    def backward(self, x: Vector) -> Vector:
        """C⁻*x."""
        y = list(x)
        for k in reversed(range(len(y))):
            for i in range(k + 1, len(y)):
                y[k] = y[k] - self._lower[i][k] * y[i]
        return y

    def solve(self, right: Vector) -> Vector:
        """Δ⁻¹ right."""
        return self.backward(self.divided(self.forward(right)))
