# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of which only entries that can be other than zero are kept.

Where these entries stand is known once; their values are given for each sample, in rows of numbers
side by side. A symmetric matrix keeps its lower triangle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, ShapeError

EliminationStep = tuple[int, Array, Array, Array, tuple[Array, Array]]
"""See ``EntryPattern.elimination_steps``."""


@dataclass(frozen=True, eq=False)
class EntryPattern:
    """Where the entries that are kept stand, row by row.

    Attributes:
        shape: (rows, columns) of the matrix.
        rows, columns: (entries,) of each entry; rows ascend, and in them columns.
        order: Of a symmetric matrix: its coordinates so that eliminating the last one first leaves
            all other entries zero; None: there is no such order.
    """

    shape: tuple[int, int]
    rows: Array
    columns: Array
    order: Array | None = None

    @classmethod
    def of(cls, mask: Array, order: Array | None = None) -> EntryPattern:
        """That of the true entries of a matrix of booleans."""
        rows, columns = np.nonzero(mask)
        return cls((mask.shape[0], mask.shape[1]), rows, columns, order)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def indptr(self) -> Array:
        """(rows + 1,) where each row begins, as ``scipy.sparse`` has it."""
        return np.searchsorted(self.rows, np.arange(self.shape[0] + 1)).astype(np.intp)

    @cached_property
    def places(self) -> Array:
        """(rows, columns) which entry is kept of each place, -1 if none is."""
        found = np.full(self.shape, -1, dtype=np.intp)
        found[self.rows, self.columns] = np.arange(len(self))
        return found

    @cached_property
    def elimination_steps(self) -> list[EliminationStep]:
        """For each coordinate in order: those before it that it meets, the places of their entries
        with it, and of their entries with each other, as pairs of them."""
        assert self.order is not None
        places = np.maximum(self.places, self.places.T)
        found = []
        for n, k in enumerate(self.order):
            before = self.order[:n]
            above = before[places[k, before] >= 0]
            i, j = np.tril_indices(len(above))
            found.append((int(k), above, places[k, above], places[above[i], above[j]], (i, j)))
        return found

    def to_dense(self, values: Array) -> Array:
        """(..., entries) -> (..., rows, columns)."""
        found = np.zeros((*values.shape[:-1], *self.shape), values.dtype)
        found[..., self.rows, self.columns] = values
        return found


def _vectors(x: ArrayLike, size: int, what: str) -> Array:
    """Vectors along the last axis."""
    found = np.asarray(x)
    if found.ndim == 0 or found.shape[-1] != size:
        raise ShapeError("x", found.shape, f"(..., {size})", what)
    return found


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """Matrices with one pattern: values for each sample.

    Of one sample, ``scipy.sparse.csr_array(m.csr, shape=m.shape)`` is SciPy's matrix.

    Attributes:
        pattern: Where the values stand.
        values: (..., entries).
    """

    pattern: EntryPattern
    values: Array

    def __repr__(self) -> str:
        batch = f", batch {self.values.shape[:-1]}" if self.values.ndim > 1 else ""
        kept = f"{len(self.pattern)} entries"
        return f"<sparse {self.shape[0]} x {self.shape[1]}, {kept}{batch}, {self.values.dtype}>"

    def __getitem__(self, sample: int | slice | tuple[int | slice, ...]) -> SparseMatrix:
        """Those of some samples."""
        taken = sample if isinstance(sample, tuple) else (sample,)
        return SparseMatrix(self.pattern, self.values[(*taken, Ellipsis, slice(None))])

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.pattern.shape

    @property
    def csr(self) -> tuple[Array, Array, Array]:
        """Values, columns and starts of rows of one sample, as SciPy takes them.

        Raises:
            ArgumentError: There are several samples.
        """
        if self.values.ndim != 1:
            raise ArgumentError(
                f"csr is that of one sample, got a batch {self.values.shape[:-1]}; "
                "take one of them, e.g. m[0].csr"
            )
        return self.values, self.pattern.columns, self.pattern.indptr

    def to_dense(self) -> Array:
        """(..., rows, columns)."""
        return self.pattern.to_dense(self.values)

    def __matmul__(self, x: ArrayLike) -> Array:
        """Products (..., rows) with vectors (..., columns)."""
        pattern = self.pattern
        terms = self.values * _vectors(x, self.shape[1], "the matrix")[..., pattern.columns]
        return _row_sums(terms, pattern.indptr)


def _row_sums(terms: Array, starts: Array) -> Array:
    """(..., entries) -> (..., rows): sums of what stands between starts; empty rows are zero."""
    filled = starts[1:] > starts[:-1]
    found = np.zeros((*terms.shape[:-1], len(starts) - 1), terms.dtype)
    if filled.any():
        found[..., filled] = np.add.reduceat(terms, starts[:-1][filled], axis=-1)
    return found


@dataclass(frozen=True, eq=False)
class PackedMatrix:
    """Symmetric positive matrices of which the lower triangle is kept, without its zeros.

    Attributes:
        pattern: Where the values stand, all of them on or below the diagonal.
        values: (..., entries).
    """

    pattern: EntryPattern
    values: Array
    _kept: dict[str, Array] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        batch = f", batch {self.values.shape[:-1]}" if self.values.ndim > 1 else ""
        kept = f"{len(self.pattern)} entries"
        return f"<packed {self.shape[0]} x {self.shape[1]}, {kept}{batch}, {self.values.dtype}>"

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.pattern.shape

    def to_dense(self) -> Array:
        """(..., n, n)."""
        found = self.pattern.to_dense(self.values)
        found[..., self.pattern.columns, self.pattern.rows] = self.values
        return found

    def __matmul__(self, x: ArrayLike) -> Array:
        """Products (..., n) with vectors (..., n)."""
        pattern = self.pattern
        vectors = _vectors(x, self.shape[1], "the matrix")
        below = self.values * vectors[..., pattern.columns]
        found = _row_sums(below, pattern.indptr)
        # The upper triangle is the lower one column by column.
        off = pattern.rows != pattern.columns
        turn = np.flatnonzero(off)[np.argsort(pattern.columns[off], kind="stable")]
        above = self.values[..., turn] * vectors[..., pattern.rows[turn]]
        starts = np.searchsorted(pattern.columns[turn], np.arange(self.shape[0] + 1))
        return found + _row_sums(above, starts)

    def solve(self, b: ArrayLike) -> Array:
        """Solutions (..., n) of the matrix times x = b (..., n).

        By M = L* D L, which has no entries where the matrix has none (Featherstone 2005).
        """
        right = _vectors(b, self.shape[0], "the matrix")
        if self.pattern.order is None:
            return np.asarray(np.linalg.solve(self.to_dense(), right[..., None]))[..., 0]
        factor = self._factor()
        dtype = np.result_type(factor, right)
        batch = np.broadcast_shapes(self.values.shape[:-1], right.shape[:-1])
        x = np.array(np.broadcast_to(right, (*batch, self.shape[0])), dtype)
        steps = self.pattern.elimination_steps
        for k, above, row, _, _ in reversed(steps):
            x[..., above] -= factor[..., row] * x[..., k, None]
        x /= factor[..., self.pattern.places.diagonal()]
        for k, above, row, _, _ in steps:
            x[..., k] -= (factor[..., row] * x[..., above]).sum(axis=-1)
        return x

    def _factor(self) -> Array:
        """Rows of L below the diagonal and D on it, in the places of the matrix."""
        if "factor" not in self._kept:
            found = self.values.copy()
            for k, _, row, targets, (i, j) in reversed(self.pattern.elimination_steps):
                pivot = found[..., self.pattern.places[k, k], None]
                old = found[..., row]
                new = old / pivot
                found[..., targets] -= new[..., i] * old[..., j]
                found[..., row] = new
            self._kept["factor"] = found
        return self._kept["factor"]
