# SPDX-License-Identifier: BSD-3-Clause
"""Positive matrices of scalars, factored."""

from __future__ import annotations

from collections.abc import Sequence

from phistar.scalar.graph import Scalar, guard
from phistar.scalar.linear.vectors import Matrix, Vector, zeros


def is_zero(x: Scalar) -> bool:
    """Whether it is zero for the robot as such."""
    return isinstance(x, float) and x == 0.0


class SymmetricFactor:
    """A positive matrix Δ = C E C* without pivoting, C unit lower triangular."""

    def __init__(self, delta: Matrix, least: Sequence[float] | None = None) -> None:
        """Args:
        delta: The matrix.
        least: Pivots below these are none; None: all count.
        """
        work = [list(row) for row in delta]
        count = len(delta)
        self._inverses: Vector = []
        self._lower: Matrix = [zeros(count) for _ in delta]
        for k in range(count):
            pivot = work[k][k] if least is None else guard(work[k][k], least[k])
            self._inverses.append(1.0 / pivot)
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
