# SPDX-License-Identifier: BSD-3-Clause
"""Rows of equations that are not copied together: columns of arrays, where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from phistar.arrays import Array
from phistar.backends.llvm.run.triangle_code import take_rows

Part = tuple[Array, Sequence[int] | Array]
"""An array (n, ...) of float64 and which of its columns are meant."""


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Rows [Y | τ] of a group.

    Attributes:
        parts: Arrays (n, m) and indices of their columns, side by side; τ is the last of all.
        weights: (n,) factors of the rows, or (1,) one of all.
        shift: (p,) multiples of the columns of Y that are added to τ; default: none.
    """

    parts: Sequence[Part]
    weights: Array = field(default_factory=partial(np.ones, 1))
    shift: Array | None = None

    @classmethod
    def of(cls, rows: Array) -> RowBlock:
        """Of rows (n, p + 1) that are formed."""
        return cls([(np.asarray(rows, dtype=float), np.arange(rows.shape[1]))])

    def __len__(self) -> int:
        return len(self.parts[0][0])

    @cached_property
    def size(self) -> int:
        """p + 1."""
        return sum(len(chosen) for _, chosen in self.parts)

    def weighted(self, factors: Array) -> RowBlock:
        """The rows times (n,) factors."""
        return replace(self, weights=self.weights * factors)

    def dense(self) -> Array:
        """(n, p + 1), times the weights."""
        rows = np.column_stack([array[:, chosen] for array, chosen in self.parts])
        if self.shift is not None:
            rows[:, -1] += np.einsum("ij,j->i", rows[:, :-1], self.shift)
        rows *= self.weights[:, None]
        return rows

    def reflect_into(self, triangle: Array) -> None:
        """Make of the triangle R (p + 1, p + 1) of other rows that of both, in place."""
        parts = [(np.asarray(array, dtype=float), chosen) for array, chosen in self.parts]
        addresses = np.concatenate(
            [x.ctypes.data + x.strides[1] * np.asarray(chosen) for x, chosen in parts]
        )
        strides = np.concatenate([np.full(len(chosen), x.strides[0]) for x, chosen in parts])
        shift = np.zeros(self.size)
        if self.shift is not None:
            shift[:-1] = self.shift
        take_rows(triangle, addresses, strides, len(self), self.weights, shift)
