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

from phistar.scalar.graph import Scalar, Value, select, sqrt
from phistar.scalar.linear.elementary import larger, smaller
from phistar.scalar.linear.vectors import Matrix, Vector, dot
from phistar.scalar.trace.row_systems import RowSystem
from phistar.thresholds import POLICY

_TINY = sys.float_info.min
"""Keeps quotients finite that are not used."""


class RowGroup(ABC):
    """Rows that are solved together.

    Args:
        first: Number of the first one.
        delta: Δ of all rows.
    """

    def __init__(self, first: int, delta: Matrix) -> None:
        self.first = first
        self.delta = delta

    @abstractmethod
    def update(self, system: RowSystem) -> None:
        """Solve these rows for the others."""

    @abstractmethod
    def work(self, multipliers: Vector, offset: Vector) -> Scalar:
        """λ*g of these rows: the work of given multipliers on rates, bounds taken off."""


@dataclass(frozen=True)
class JointBounds:
    """What a joint's row allows in a step: impulses of friction, and velocities."""

    friction: Scalar
    lower: Scalar | None
    upper: Scalar | None


class JointGroup(RowGroup):
    """A joint that rubs, stops, or both.

    Args:
        first, delta: As of ``RowGroup``.
        bounds: What it may do.
        least: Mobility below which loops hold it, so that its row does nothing; 0: it always moves.
    """

    def __init__(self, first: int, delta: Matrix, bounds: JointBounds, least: float = 0.0) -> None:
        super().__init__(first, delta)
        self.bounds = bounds
        self.least = least

    @cached_property
    def _inverse(self) -> Scalar:
        mobility = self.delta[self.first][self.first]
        return _reciprocal(mobility, self.least) if self.least else 1.0 / mobility

    @property
    def is_stop(self) -> bool:
        """Whether it only stops."""
        return isinstance(self.bounds.friction, float) and self.bounds.friction == 0.0

    def violation(self, v: Scalar) -> Scalar:
        """How far a velocity is beyond the bounds."""
        total: Scalar = 0.0
        if self.bounds.lower is not None:
            total = total + larger(self.bounds.lower - v, 0.0)
        if self.bounds.upper is not None:
            total = total + larger(v - self.bounds.upper, 0.0)
        return total

    def work(self, multipliers: Vector, offset: Vector) -> Scalar:
        """See ``RowGroup``."""
        given, bounds = multipliers[self.first], self.bounds
        low, high = (0.0 if x is None else x for x in (bounds.lower, bounds.upper))
        return given * (offset[self.first] - select(given, 0.0, low, high))

    @cached_property
    def _rubbed(self) -> Scalar:
        """Velocity that friction can take away."""
        return self.delta[self.first][self.first] * self.bounds.friction

    @property
    def rubs_and_stops(self) -> bool:
        """Whether it does both."""
        return not self.is_stop and (self.bounds.lower is not None or self.bounds.upper is not None)

    def update(self, system: RowSystem) -> None:
        """See ``RowGroup``."""
        system.assign(self.first, self._solved(system))

    def stay_at_stop(self, system: RowSystem) -> None:
        """Solve this row once more where a stop pushes: more than friction can."""
        given = system.multiplier(self.first)
        beyond = larger(given, -given) - self.bounds.friction
        system.assign(self.first, select(beyond, 0.0, self._solved(system), given))

    def _solved(self, system: RowSystem) -> Scalar:
        free, bounds = system.rate(self.first, own=False), self.bounds
        ahead = free
        if bounds.friction != 0.0:
            ahead = larger(free - self._rubbed, 0.0) + smaller(free + self._rubbed, 0.0)
        if bounds.lower is not None:
            ahead = larger(ahead, bounds.lower)
        if bounds.upper is not None:
            ahead = smaller(ahead, bounds.upper)
        return (ahead - free) * self._inverse


class ContactGroup(RowGroup):
    """A point that touches: normal, two tangents."""

    def __init__(self, first: int, delta: Matrix, friction: float) -> None:
        super().__init__(first, delta)
        self.friction = friction

    @cached_property
    def _steps(self) -> tuple[Scalar, Scalar]:
        """1/Δ of the normal, and 1/λmax(Δ) of the tangents; zero where nothing can move."""
        n, a, b = range(self.first, self.first + 3)
        x, y, z = self.delta[a][a], self.delta[a][b], self.delta[b][b]
        spread = 0.5 * (x - z)
        largest = 0.5 * (x + z) + sqrt(spread * spread + y * y)
        least = POLICY.smallest_row_mobility * (self.delta[n][n] + x + z)
        return _reciprocal(self.delta[n][n], least), _reciprocal(largest, least)

    def update(self, system: RowSystem) -> None:
        """See ``RowGroup``."""
        n, a, b = range(self.first, self.first + 3)
        normal, tangential = self._steps
        pushed = larger(system.multiplier(n) - system.rate(n) * normal, 0.0)
        system.assign(n, pushed)
        if self.friction == 0.0:
            system.assign(a, 0.0)
            system.assign(b, 0.0)
            return
        x = system.multiplier(a) - system.rate(a) * tangential
        y = system.multiplier(b) - system.rate(b) * tangential
        bound = self.friction * pushed
        length = x * x + y * y
        scale = select(length, bound * bound, bound / sqrt(length + _TINY), 1.0)
        system.assign(a, scale * x)
        system.assign(b, scale * y)

    def work(self, multipliers: Vector, offset: Vector) -> Scalar:
        """See ``RowGroup``."""
        rows = range(self.first, self.first + 3)
        return dot([multipliers[i] for i in rows], [offset[i] for i in rows])


def _reciprocal(x: Scalar, least: Scalar) -> Scalar:
    """1/x, or zero if that is not above a limit."""
    if not isinstance(x, Value):
        return 1.0 / x if x > 0.0 else 0.0
    return select(x, least, 1.0 / x, 0.0)


def start_scale(
    groups: Sequence[RowGroup], multipliers: Vector, offset: Vector, weight: Scalar
) -> Scalar:
    """How much of given multipliers is a good start: the best part of them, 0 to 1.

    It makes ½λ*Δλ + λ*g least along the given λ, so that this is not above zero, and sweeps only
    lower it: however few they are, impulses do not put energy in. Parts of what is in its cones are
    in them.

    Args:
        groups: All rows.
        multipliers: λ.
        offset: g.
        weight: λ*Δλ.
    """
    work: Scalar = 0.0
    for group in groups:
        work = work - group.work(multipliers, offset)
    return select(work, weight, 1.0, larger(work, 0.0) / (weight + _TINY))


def sweep(groups: Sequence[RowGroup], system: RowSystem) -> Vector:
    """The iterated numbers after one sweep over all rows."""
    for group in groups:
        group.update(system)
    return system.state


def stay_at_stops(groups: Sequence[RowGroup], system: RowSystem) -> Vector | None:
    """The iterated numbers after stops that push had the last word; None: no joint rubs and stops.

    On closed loops joints depend on each other. Friction of others then takes away what velocity a
    stop has left, round after round: little by little, and without an end where that is little.
    """
    both = [group for group in groups if isinstance(group, JointGroup) and group.rubs_and_stops]
    for group in both:
        group.stay_at_stop(system)
    return system.state if both else None
