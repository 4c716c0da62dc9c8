# SPDX-License-Identifier: BSD-3-Clause
"""Square roots of small positive matrices and their rates: D = R R*, Ḋ = Ṙ R* + R Ṙ*.

Blocks come as (..., d, d) with any leading axes. Both roots are smooth where D > 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError


class MatrixRoot(NamedTuple):
    """A matrix root.

    Attributes:
        of: D -> R.
        rate: (R, Ḋ) -> Ṙ.
    """

    of: Callable[[Array], Array]
    rate: Callable[[Array, Array], Array]


def _lower(matrix: Array) -> Array:
    """Cholesky's root, column by column; R R*, not its conjugate, so that complex steps work."""
    root = np.zeros_like(matrix)
    for j in range(matrix.shape[-1]):
        row = root[..., j, :j]
        root[..., j, j] = np.sqrt(matrix[..., j, j] - (row * row).sum(axis=-1))
        column = matrix[..., j + 1 :, j] - (root[..., j + 1 :, :j] * row[..., None, :]).sum(axis=-1)
        root[..., j + 1 :, j] = column / root[..., j, j, None]
    return root


def _lower_rate(root: Array, rate: Array) -> Array:
    """Ṙ = R Φ(R⁻¹ Ḋ R⁻*), Φ the part below the diagonal and half of the diagonal."""
    inner = np.linalg.solve(root, np.swapaxes(np.linalg.solve(root, rate), -1, -2))
    half = np.tril(inner)
    diagonal = np.arange(inner.shape[-1])
    half[..., diagonal, diagonal] /= 2
    return np.asarray(root @ half)


def _symmetric(matrix: Array) -> Array:
    if matrix.dtype.kind == "c":
        raise ArgumentError(
            "the symmetric root takes real arrays, got complex ones; root='cholesky' takes both"
        )
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2))


def _symmetric_rate(root: Array, rate: Array) -> Array:
    """S Ṡ + Ṡ S = Ḋ, solved in the axes of S, where the equations decouple."""
    values, vectors = np.linalg.eigh(root)
    back = np.swapaxes(vectors, -1, -2)
    sums = values[..., :, None] + values[..., None, :]
    return np.asarray(vectors @ ((back @ rate @ vectors) / sums) @ back)


ROOTS: Mapping[str, MatrixRoot] = {
    "cholesky": MatrixRoot(_lower, _lower_rate),
    "symmetric": MatrixRoot(_symmetric, _symmetric_rate),
}
"""Roots by name: lower triangular with a positive diagonal, or symmetric and positive."""
