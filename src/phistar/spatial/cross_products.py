# SPDX-License-Identifier: BSD-3-Clause
"""Cross products of spatial vectors X = [a; b] (angular part first), on motions and on forces."""

import numpy as np

from phistar.arrays import Array
from phistar.spatial._arrays import ArrayLike, as_array_with_tail, as_inexact, cross, require_tail
from phistar.spatial.rotation import skew


def crm(X: ArrayLike) -> Array:
    """The matrix of motion cross motion, [[ã, 0], [b̃, ã]].

    Args:
        X: (..., 6) motion vector.

    Returns:
        (..., 6, 6) matrix with crm(X) Y = X × Y.
    """
    X = as_array_with_tail(X, (6,), "X", "crm")
    matrix = np.zeros((*X.shape, 6), dtype=X.dtype)
    matrix[..., :3, :3] = matrix[..., 3:, 3:] = skew(X[..., :3])
    matrix[..., 3:, :3] = skew(X[..., 3:])
    return matrix


def crf(X: ArrayLike) -> Array:
    """The matrix of motion cross force, [[ã, b̃], [0, ã]] = -crm(X)ᵀ.

    Args:
        X: (..., 6) motion vector.

    Returns:
        (..., 6, 6) matrix with crf(X) f = X ×* f.
    """
    X = as_array_with_tail(X, (6,), "X", "crf")
    matrix = np.zeros((*X.shape, 6), dtype=X.dtype)
    matrix[..., :3, :3] = matrix[..., 3:, 3:] = skew(X[..., :3])
    matrix[..., :3, 3:] = skew(X[..., 3:])
    return matrix


def crm_apply(X: ArrayLike, Y: ArrayLike) -> Array:
    """The product crm(X) Y of two motion vectors (..., 6), without forming the matrix."""
    a, b, c, d = _halves(X, Y, "Y", "crm_apply")
    return np.concatenate([cross(a, c), cross(b, c) + cross(a, d)], axis=-1)


def crf_apply(X: ArrayLike, F: ArrayLike) -> Array:
    """The product crf(X) F of a motion and a force vector (..., 6), without forming the matrix."""
    a, b, n, f = _halves(X, F, "F", "crf_apply")
    return np.concatenate([cross(a, n) + cross(b, f), cross(a, f)], axis=-1)


def Q(f: ArrayLike) -> Array:
    """The matrix of a force that acts on motions, Q(f) Y = -crf(Y) f.

    Args:
        f: (..., 6) force vector [a; b].

    Returns:
        (..., 6, 6) matrix [[ã, b̃], [b̃, 0]].
    """
    f = as_array_with_tail(f, (6,), "f", "Q")
    matrix = np.zeros((*f.shape, 6), dtype=f.dtype)
    matrix[..., :3, :3] = skew(f[..., :3])
    matrix[..., :3, 3:] = matrix[..., 3:, :3] = skew(f[..., 3:])
    return matrix


def _halves(
    X: ArrayLike, other: ArrayLike, name: str, owner: str
) -> tuple[Array, Array, Array, Array]:
    X, other = as_inexact(X, other)
    require_tail(X, (6,), "X", owner)
    require_tail(other, (6,), name, owner)
    return X[..., :3], X[..., 3:], other[..., :3], other[..., 3:]
