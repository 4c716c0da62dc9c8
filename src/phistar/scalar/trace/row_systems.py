# SPDX-License-Identifier: BSD-3-Clause
"""Rates σ = Δλ + g of rows while their multipliers change one by one, in two forms.

    PairSystem    σ(i) = g(i) + Σ Δ(i, j) λ(j): a product for each pair of rows that feel each other
    PathSystem    σ(i) = g(i) + Z(i)*w, w = D⁻¹Zλ: products along the paths of the rows, twice

With 𝓜 = N D N* and Z = N⁻¹L*, Δ = Z*D⁻¹Z. Few rows are best taken in pairs, many by their paths.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from phistar.scalar.graph import Scalar
from phistar.scalar.linear.symmetric_factor import is_zero
from phistar.scalar.linear.vectors import Matrix, Vector
from phistar.thresholds import POLICY

SparseRow = Mapping[int, Scalar]
"""Entries that are not zero, by number."""


class RowSystem(ABC):
    """Rows and their multipliers in a sweep.

    Args:
        delta: Δ; of rows that are not solved together only where it is read.
        offset: g.
        state: The iterated numbers, multipliers first.
    """

    def __init__(self, delta: Matrix, offset: Vector, state: Vector) -> None:
        self.delta = delta
        self.offset = offset
        self.state = list(state)

    def multiplier(self, i: int) -> Scalar:
        """λ of a row."""
        return self.state[i]

    @abstractmethod
    def rate(self, i: int, *, own: bool = True) -> Scalar:
        """σ of a row; without the part of its own λ if that is not wanted."""

    @abstractmethod
    def assign(self, i: int, value: Scalar) -> None:
        """Change λ of a row."""


class PairSystem(RowSystem):
    """By Δ."""

    def rate(self, i: int, *, own: bool = True) -> Scalar:
        """See ``RowSystem``.

        The newest multipliers come last, so that the sum of the others need not wait for them.
        """
        total, count = self.offset[i], len(self.offset)
        for j in [*range(i + 1, count), *([i] if own else []), *range(i)]:
            total = total + self.delta[i][j] * self.state[j]
        return total

    def assign(self, i: int, value: Scalar) -> None:
        """See ``RowSystem``."""
        self.state[i] = value


class PathSystem(RowSystem):
    """By Z and D⁻¹Z; the state goes on with w.

    Args:
        delta, offset, state: See ``RowSystem``.
        paths: Z of each row.
        weighted: D⁻¹Z of each row.
    """

    def __init__(
        self,
        delta: Matrix,
        offset: Vector,
        state: Vector,
        paths: Sequence[SparseRow],
        weighted: Sequence[SparseRow],
    ) -> None:
        super().__init__(delta, offset, state)
        self.paths = paths
        self.weighted = weighted

    def rate(self, i: int, *, own: bool = True) -> Scalar:
        """See ``RowSystem``; outer joints first, which fewer rows have just changed."""
        count = len(self.offset)
        terms = [z * self.state[count + k] for k, z in sorted(self.paths[i].items())]
        total = self.offset[i] + _balanced_sum(terms[::-1])
        return total if own else total - self.delta[i][i] * self.state[i]

    def assign(self, i: int, value: Scalar) -> None:
        """See ``RowSystem``."""
        change, count = value - self.state[i], len(self.offset)
        for k, z in self.weighted[i].items():
            self.state[count + k] = self.state[count + k] + z * change
        self.state[i] = value


def _balanced_sum(terms: Sequence[Scalar]) -> Scalar:
    """A sum in a few short chains."""
    if not terms:
        return 0.0
    if len(terms) <= 3:
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total
    half = len(terms) // 2
    return _balanced_sum(terms[:half]) + _balanced_sum(terms[half:])


def prefers_paths(delta: Matrix, paths: Sequence[SparseRow]) -> bool:
    """Whether a sweep is quicker along paths than in pairs."""
    in_pairs = sum(not is_zero(x) for row in delta for x in row)
    return POLICY.pair_products_per_path_product * 2 * sum(map(len, paths)) < in_pairs
