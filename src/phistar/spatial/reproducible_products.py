# SPDX-License-Identifier: BSD-3-Clause
"""Products of small matrices, the same bits on every machine.

Terms are added from left to right, each product and each sum rounded on its own, as IEEE 754 says.
``@``, ``einsum`` and ``linalg`` leave order and rounding to BLAS and to NumPy's vector loops, which
differ from processor to processor. A robot's constants must not depend on them: they determine its
code and cache key.
"""

import numpy as np

from phistar.arrays import Array


def product(a: Array, b: Array) -> Array:
    """Matrix times matrix over leading axes, (..., n, k) times (..., k, m)."""
    if not a.shape[-1]:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return np.zeros((*batch, a.shape[-2], b.shape[-1]))
    total: Array = a[..., :, 0, None] * b[..., 0, None, :]
    for k in range(1, a.shape[-1]):
        total = total + a[..., :, k, None] * b[..., k, None, :]
    return total


def matvec(matrix: Array, vector: Array) -> Array:
    """Matrix times vector over leading axes, (..., n, k) times (..., k)."""
    if not matrix.shape[-1]:
        batch = np.broadcast_shapes(matrix.shape[:-2], vector.shape[:-1])
        return np.zeros((*batch, matrix.shape[-2]))
    total: Array = matrix[..., :, 0] * vector[..., 0, None]
    for k in range(1, matrix.shape[-1]):
        total = total + matrix[..., :, k] * vector[..., k, None]
    return total
