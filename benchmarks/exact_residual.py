# SPDX-License-Identifier: BSD-3-Clause
"""How far the solution of a sparse system is from the exact one.

The residual b - Ax is summed in twice the working precision from products without rounding error,
so that it has all its digits; the factors of the matrix turn it into the error of x.
"""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.whole_system.sparse_equations import WholeSystem

_SPLITTER = 2.0**27 + 1.0


def exact_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Products and their rounding errors: p + e = a b exactly (Dekker)."""
    high_a, high_b = (_SPLITTER * x - (_SPLITTER * x - x) for x in (a, b))
    low_a, low_b = a - high_a, b - high_b
    product = a * b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return product, error


def exact_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Sums and their rounding errors: s + e = a + b exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def residual(system: WholeSystem, unknowns: Array) -> Array:
    """b - Ax (size,), rounded once."""
    matrix = system.matrix.tocsr()
    lengths = np.diff(matrix.indptr)
    high, low = np.array(system.right_hand_side), np.zeros(len(lengths))
    for place in range(lengths.max(initial=0)):
        rows = np.flatnonzero(lengths > place)
        entries = matrix.indptr[rows] + place
        product, error = exact_product(-matrix.data[entries], unknowns[matrix.indices[entries]])
        high[rows], lost = exact_sum(high[rows], product)
        low[rows] += lost + error
    return np.asarray(high + low)


def forward_error(system: WholeSystem, unknowns: Array) -> float:
    """Largest error of the unknowns, relative to the largest of them."""
    error = system.factor.solve(residual(system, unknowns))
    return float(np.abs(error).max() / np.abs(unknowns).max())
