# SPDX-License-Identifier: BSD-3-Clause
"""One sweep of projected Gauss-Seidel over rows σ = Δλ + g with bounded multipliers λ.

A joint's row is solved exactly for the others: dry friction takes as much of the velocity as it
may, what is left is held between the stops. A contact's normal row has 0 <= λ ⟂ σ >= 0, its
tangential pair goes against σ and is projected onto the disc of radius μλ(normal).
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from phistar.scalar.graph import Scalar, select, sqrt
from phistar.scalar.linear.vectors import Matrix, Vector

_TINY = sys.float_info.min
"""Keeps quotients finite that are not used."""


def larger(a: Scalar, b: Scalar) -> Scalar:
    """The larger of two numbers; the second if the first is not a number."""
    return select(a, b, a, b)


def smaller(a: Scalar, b: Scalar) -> Scalar:
    """The smaller of two numbers; the second if the first is not a number."""
    return select(b, a, a, b)


class RowGroup(ABC):
    """Rows that are solved together.

    Args:
        first: Number of the first one.
        delta: Δ of all rows.
        offset: g of all rows.
    """

    def __init__(self, first: int, delta: Matrix, offset: Vector) -> None:
        self.first = first
        self.delta = delta
        self.offset = offset

    def rate(self, i: int, multipliers: Vector, *, own: bool = True) -> Scalar:
        """σ of a row; without the part of its own λ if that is not wanted.

        The newest multipliers come last, so that the sum of the others need not wait for them.
        """
        total, count = self.offset[i], len(multipliers)
        for j in [*range(i + 1, count), *([i] if own else []), *range(i)]:
            total = total + self.delta[i][j] * multipliers[j]
        return total

    @abstractmethod
    def update(self, multipliers: Vector) -> None:
        """Solve these rows for the others, in place."""


@dataclass(frozen=True)
class JointBounds:
    """What a joint's row allows in a step: impulses of friction, and velocities."""

    friction: Scalar
    lower: Scalar | None
    upper: Scalar | None


class JointGroup(RowGroup):
    """A joint that rubs, stops, or both."""

    def __init__(self, first: int, delta: Matrix, offset: Vector, bounds: JointBounds) -> None:
        super().__init__(first, delta, offset)
        self.bounds = bounds

    @cached_property
    def _inverse(self) -> Scalar:
        return 1.0 / self.delta[self.first][self.first]

    @cached_property
    def _rubbed(self) -> Scalar:
        """Velocity that friction can take away."""
        return self.delta[self.first][self.first] * self.bounds.friction

    def update(self, multipliers: Vector) -> None:
        """See ``RowGroup``."""
        free, bounds = self.rate(self.first, multipliers, own=False), self.bounds
        ahead = free
        if bounds.friction != 0.0:
            ahead = larger(free - self._rubbed, 0.0) + smaller(free + self._rubbed, 0.0)
        if bounds.lower is not None:
            ahead = larger(ahead, bounds.lower)
        if bounds.upper is not None:
            ahead = smaller(ahead, bounds.upper)
        multipliers[self.first] = (ahead - free) * self._inverse


class ContactGroup(RowGroup):
    """A point that touches: normal, two tangents."""

    def __init__(self, first: int, delta: Matrix, offset: Vector, friction: float) -> None:
        super().__init__(first, delta, offset)
        self.friction = friction

    @cached_property
    def _steps(self) -> tuple[Scalar, Scalar]:
        """1/Δ of the normal, and 1/λmax(Δ) of the tangents."""
        n, a, b = range(self.first, self.first + 3)
        x, y, z = self.delta[a][a], self.delta[a][b], self.delta[b][b]
        spread = 0.5 * (x - z)
        largest = 0.5 * (x + z) + sqrt(spread * spread + y * y)
        return 1.0 / self.delta[n][n], 1.0 / largest

    def update(self, multipliers: Vector) -> None:
        """See ``RowGroup``."""
        n, a, b = range(self.first, self.first + 3)
        normal, tangential = self._steps
        pushed = multipliers[n] - self.rate(n, multipliers) * normal
        multipliers[n] = larger(pushed, 0.0)
        if self.friction == 0.0:
            multipliers[a] = multipliers[b] = 0.0
            return
        x = multipliers[a] - self.rate(a, multipliers) * tangential
        y = multipliers[b] - self.rate(b, multipliers) * tangential
        bound = self.friction * multipliers[n]
        length = x * x + y * y
        scale = select(length, bound * bound, bound / sqrt(length + _TINY), 1.0)
        multipliers[a], multipliers[b] = scale * x, scale * y


def sweep(groups: Sequence[RowGroup], multipliers: Vector) -> Vector:
    """The multipliers after one sweep over all rows."""
    found = list(multipliers)
    for group in groups:
        group.update(found)
    return found
