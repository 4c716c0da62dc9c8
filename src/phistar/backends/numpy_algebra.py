# SPDX-License-Identifier: BSD-3-Clause
"""Small linear algebra with the batch in trailing axes: what generated NumPy code is made of.

Vectors are (n, *batch), matrices (m, n, *batch), spatial vectors [angular; linear]; batch axes
broadcast. A joint block, 6xd in the books, is kept as its d rows of 6. Without batch axes matrix
products are NumPy's own, else one ``einsum`` whose inner loop runs along the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array

_CYCLIC_AXES = np.array([1, 2, 0])
_dot = np.einsum


def times(A: Array, x: Array) -> Array:
    """A x."""
    if x.ndim == 1:
        return np.asarray(A @ x)
    return np.asarray(_dot("ij...,j...->i...", A, x))


def dot(x: Array, y: Array) -> Array:
    """x* y, as one entry."""
    return np.asarray((x * y).sum(axis=0, keepdims=True))


def matrix_times(A: Array, B: Array) -> Array:
    """A B."""
    return np.asarray(A @ B if A.ndim == 2 else _dot("ij...,jk...->ik...", A, B))


def block_times(block: Array, x: Array) -> Array:
    """A joint block times a joint vector, from its rows: Σ x_i row_i."""
    if x.ndim == 1:
        return np.asarray(x @ block)
    return np.asarray(_dot("di...,d...->i...", block, x))


def block_outer(G: Array, U: Array) -> Array:
    """G U* of two joint blocks."""
    if len(G) == 1:
        return np.asarray(G[0][:, None] * U[0])
    if G.ndim == 2:
        return np.asarray(G.T @ U)
    return np.asarray(_dot("di...,dj...->ij...", G, U))


def constant_times(A: Array, x: Array) -> Array:
    """A matrix without batch axes times a vector."""
    if x.ndim <= 2:
        return np.asarray(A @ x)
    flat = A @ x.reshape(len(x), x[0].size)
    return np.asarray(flat.reshape(len(A), *x.shape[1:]))


def crm(x: Array, y: Array) -> Array:
    """The motion cross product: a × c and a × d + b × c for x = [a; b], y = [c; d]."""
    pairs = y.reshape(2, 3, *y.shape[1:])
    result = _cross(x[:3], pairs)
    result[1] += _cross(x[3:], pairs[0])
    return result.reshape(6, *result.shape[2:])


def to_world(x: Array, y: Array, z: Array, motion: Array) -> Array:
    """[R w; R v + p × R w] of a motion [w; v] and the pose with rows x, y, z."""
    rows = np.stack(np.broadcast_arrays(x, y, z))
    angular, linear = (times(rows[:, :3], half) for half in (motion[:3], motion[3:]))
    return np.concatenate([angular, linear + _cross(rows[:, 3], angular)])


def crf(x: Array, f: Array) -> Array:
    """The force cross product: a × m + b × n and a × n for x = [a; b], f = [m; n]."""
    pairs = f.reshape(2, 3, *f.shape[1:])
    result = _cross(x[:3], pairs)
    result[0] += _cross(x[3:], pairs[1])
    return result.reshape(6, *result.shape[2:])


def _cross(a: Array, b: Array) -> Array:
    """a × b for a (3, *batch) and b the same, or several of them, (m, 3, *batch)."""
    axis = b.ndim - a.ndim
    difference = a * b.take(_CYCLIC_AXES, axis) - a.take(_CYCLIC_AXES, 0) * b
    return np.asarray(difference.take(_CYCLIC_AXES, axis))


@dataclass(frozen=True)
class InvertedJointInertia:
    """A joint inertia D with its inverse."""

    matrix: Array
    inverse: Array

    def times(self, x: Array) -> Array:
        """D x."""
        return times(self.matrix, x)

    def solve(self, x: Array) -> Array:
        """D⁻¹ x for a joint vector or for a block of rows."""
        if len(x) == 1:
            return np.asarray(self.inverse[0] * x)
        if self.inverse.ndim == 2:
            return np.asarray(self.inverse @ x)
        return np.asarray(_dot("ij...,j...->i...", self.inverse, x))


def symmetric_inverse(matrix: Array) -> Array:
    """The inverse of a symmetric positive matrix by sweeping its pivots, any dtype.

    Sweeping pivot j replaces A by A - A_j A_j* / A_jj and row and column j by A_j / A_jj, with
    -1/A_jj where they meet; when all are swept, -A⁻¹ is left. No conjugation: analytic.
    """
    if len(matrix) == 1:
        return np.asarray(1 / matrix)
    swept = matrix.copy()
    for j in range(len(matrix)):
        pivot = 1 / swept[j, j]
        row = swept[j] * pivot
        swept = swept - swept[:, j, None] * row
        swept[j] = swept[:, j] = row
        swept[j, j] = -pivot
    return -swept
