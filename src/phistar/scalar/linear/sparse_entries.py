# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of scalars without their zeros: times columns, and L*SL of factors with few entries."""

from __future__ import annotations

from collections.abc import Mapping

from phistar.scalar.graph import Scalar

MatrixEntries = Mapping[tuple[int, int], Scalar]
"""Numbers by row and column; those left out are zero."""

SparseRows = Mapping[int, Mapping[int, Scalar]]
"""Numbers that are not zero, by row and in it by column."""


def nonzero_rows(entries: MatrixEntries) -> dict[int, dict[int, Scalar]]:
    """A matrix row by row."""
    found: dict[int, dict[int, Scalar]] = {}
    for (i, j), x in sorted(entries.items(), key=lambda item: item[0]):
        if not (isinstance(x, float) and x == 0.0):
            found.setdefault(i, {})[j] = x
    return found


def nonzero_columns(entries: MatrixEntries) -> dict[int, dict[int, Scalar]]:
    """A matrix column by column."""
    return nonzero_rows({(j, i): x for (i, j), x in entries.items()})


def times_column(matrix: SparseRows, column: Mapping[int, Scalar]) -> dict[int, Scalar]:
    """A matrix times a column."""
    found: dict[int, Scalar] = {}
    for i, row in matrix.items():
        terms = [x * column[k] for k, x in row.items() if k in column]
        if terms:
            found[i] = sum(terms[1:], terms[0])
    return found


def count_congruence(lower: MatrixEntries, middle: MatrixEntries) -> int:
    """Multiplications of ``congruence``."""
    columns, rows = nonzero_columns(lower), nonzero_rows(middle)
    count = 0
    for j, column in columns.items():
        reached = {i for i, row in rows.items() if not row.keys().isdisjoint(column)}
        count += sum(len(rows[i].keys() & column.keys()) for i in reached)
        count += sum(len(reached & other.keys()) for i, other in columns.items() if i <= j)
    return count


def congruence(lower: MatrixEntries, middle: MatrixEntries) -> dict[tuple[int, int], Scalar]:
    """L*SL with symmetric S, each number of the symmetric result once."""
    columns, rows = nonzero_columns(lower), nonzero_rows(middle)
    found: dict[tuple[int, int], Scalar] = {}
    for j, column in columns.items():
        halfway = times_column(rows, column)
        above = {i: other for i, other in columns.items() if i <= j}
        for i, x in times_column(above, halfway).items():
            found[i, j] = found[j, i] = x
    return found
