# SPDX-License-Identifier: BSD-3-Clause
"""Spatial formulas on arrays of any namespace: NumPy's, or another package's with the same calls.

They make new arrays and write into none, check nothing and keep the dtype. Vectors have leading
axes of any number; the functions of the same names beside this module are for users' arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array, DType
from phistar.spatial import entries


class Namespace(Protocol):
    """What formulas call of an array library; arrays of another one are typed as NumPy's are."""

    # As in NumPy, where their arguments are said.
    # ruff: noqa: D102
    def asarray(self, x: ArrayLike, dtype: DType | None = None) -> Array: ...
    def zeros(self, shape: tuple[int, ...], dtype: DType | type = ...) -> Array: ...
    def zeros_like(self, x: Array) -> Array: ...
    def eye(self, n: int, dtype: DType | type = ...) -> Array: ...
    def einsum(self, subscripts: str, *operands: Array) -> Array: ...
    def concatenate(self, arrays: Sequence[Array], axis: int = 0) -> Array: ...
    def stack(self, arrays: Sequence[Array], axis: int = 0) -> Array: ...
    def where(self, condition: Array, x: ArrayLike, y: ArrayLike) -> Array: ...
    def swapaxes(self, x: Array, first: int, second: int) -> Array: ...
    def diagonal(self, x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array: ...
    def broadcast_to(self, x: Array, shape: tuple[int, ...]) -> Array: ...
    def broadcast_arrays(self, *arrays: Array) -> Sequence[Array]: ...
    def cos(self, x: Array) -> Array: ...
    def sin(self, x: Array) -> Array: ...
    def sqrt(self, x: Array) -> Array: ...
    def result_type(self, *arrays: object) -> DType: ...


NUMPY = cast(Namespace, np)


def namespace(x: object) -> Namespace:
    """The module whose functions take x: that which x names, else NumPy."""
    named = getattr(x, "__array_namespace__", None)
    return NUMPY if named is None else cast(Namespace, named())


def cross(a: Array, b: Array) -> Array:
    """a × b over the last axis."""
    x, y = ([each[..., i] for i in range(3)] for each in (a, b))
    return namespace(a).stack(entries.cross(x, y), axis=-1)


def skew(a: Array) -> Array:
    """(..., 3) -> (..., 3, 3), the matrix with skew(a) b = a × b."""
    xp = namespace(a)
    x, y, z = (a[..., i] for i in range(3))
    zero = xp.zeros_like(x)
    rows = ((zero, -z, y), (z, zero, -x), (-y, x, zero))
    return xp.stack([xp.stack(row, axis=-1) for row in rows], axis=-2)


def blocks(rows: tuple[tuple[Array, Array], tuple[Array, Array]]) -> Array:
    """Four 3x3 blocks as (..., 6, 6)."""
    xp = namespace(rows[0][0])
    return xp.concatenate([xp.concatenate(row, axis=-1) for row in rows], axis=-2)


def crf(X: Array) -> Array:
    """The matrix of motion cross force, [[ã, b̃], [0, ã]]."""
    a, b = skew(X[..., :3]), skew(X[..., 3:])
    return blocks(((a, b), (namespace(X).zeros_like(a), a)))


def crm_apply(X: Array, Y: Array) -> Array:
    """X × Y of two motions."""
    a, b, c, d = X[..., :3], X[..., 3:], Y[..., :3], Y[..., 3:]
    return namespace(X).concatenate([cross(a, c), cross(b, c) + cross(a, d)], axis=-1)


def crf_apply(X: Array, F: Array) -> Array:
    """X ×* F of a motion and a force."""
    a, b, n, f = X[..., :3], X[..., 3:], F[..., :3], F[..., 3:]
    return namespace(X).concatenate([cross(a, n) + cross(b, f), cross(a, f)], axis=-1)


def force_transform(T: Array) -> Array:
    """φ = [[R, p̃R], [0, R]] of poses (..., 4, 4)."""
    R, p = T[..., :3, :3], T[..., :3, 3]
    return blocks(((R, skew(p) @ R), (namespace(T).zeros_like(R), R)))


def solve_positive(d: Array, x: Array) -> Array:
    """d⁻¹ x of small symmetric positive matrices (..., n, n) and (..., n, m).

    By LAPACK in NumPy. Elsewhere eliminated without a choice of pivots, which positive matrices do
    not need: a handful of products that a compiler joins, where a call per matrix would be slow.
    """
    if namespace(d) is NUMPY:
        return np.linalg.solve(d, x)
    size = d.shape[-1]
    if size == 1:
        return x / d
    unit = np.eye(size).astype(d.dtype)
    for j in range(size):
        # Row j is divided by its pivot, and its multiples are taken from all others.
        factor = (d[..., :, j : j + 1] - unit[:, j : j + 1]) / d[..., j : j + 1, j : j + 1]
        x = x - factor * x[..., j : j + 1, :]
        d = d - factor * d[..., j : j + 1, :]
    return x
