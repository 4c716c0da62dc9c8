# SPDX-License-Identifier: BSD-3-Clause
"""Argument conversion of the spatial functions: array-likes to arrays of one inexact dtype."""

import numpy as np
import numpy.typing as npt

from phistar.arrays import Array, DType
from phistar.errors import ArgumentError, ShapeError

ArrayLike = npt.ArrayLike


def as_inexact(*values: ArrayLike) -> tuple[Array, ...]:
    """The values as arrays of one float or complex dtype.

    Integers and Python scalars take the precision of the other values (float64 if alone), so
    that float32 data stay float32.
    """
    arrays = [np.asarray(value) for value in values]
    dtype = np.result_type(0.0, *map(_promotion, values, arrays))
    return tuple(array.astype(dtype, copy=False) for array in arrays)


def _promotion(value: ArrayLike, array: Array) -> ArrayLike | DType:
    if array.dtype.kind in "biu":
        return 0.0
    if array.dtype.kind not in "fc":
        raise ArgumentError(
            f"cannot compute with an array of dtype {array.dtype}; give real or complex numbers"
        )
    return value if type(value) in (float, complex) else array.dtype


def as_array_with_tail(value: ArrayLike, tail: tuple[int, ...], name: str, owner: str) -> Array:
    """One value as an inexact array whose last axes have the sizes ``tail``."""
    (array,) = as_inexact(value)
    require_tail(array, tail, name, owner)
    return array


def require_tail(array: Array, tail: tuple[int, ...], name: str, owner: str) -> None:
    """Raise ShapeError unless the last axes of the array have the sizes ``tail``."""
    if array.shape[-len(tail) :] != tail:
        raise ShapeError(name, array.shape, f"(..., {', '.join(map(str, tail))})", owner)


def dot(a: Array, b: Array) -> Array:
    """Σ aᵢbᵢ over the last axis, without conjugation (hence analytic).

    Few terms: NumPy adds up to seven from left to right on every processor.
    """
    return np.asarray((a * b).sum(axis=-1))


def cross(a: Array, b: Array) -> Array:
    """The cross product over the last axis; several times faster than NumPy's on few vectors."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    product = np.empty(shape, dtype=np.result_type(a, b))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        product[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
    return product


def outer(a: Array, b: Array) -> Array:
    """Column times row over leading axes."""
    return np.asarray(a[..., :, None] * b[..., None, :])


def scaled_eye(factor: Array, size: int) -> Array:
    """The identity matrix times a factor of shape (...)."""
    return np.asarray(factor[..., None, None] * np.eye(size, dtype=factor.dtype))


def unit_vectors(a: Array, name: str) -> Array:
    """The vectors of the last axis with length one; prescaled, so that no square underflows.

    Raises:
        ArgumentError: If a vector is zero.
    """
    scale = np.max(np.abs(a), axis=-1, keepdims=True)
    if np.any(scale == 0):
        raise ArgumentError(f"{name} is zero and has no direction; give a non-zero vector")
    a = a / scale
    return np.asarray(a / np.sqrt(dot(a, a))[..., None])
