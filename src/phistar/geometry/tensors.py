# SPDX-License-Identifier: BSD-3-Clause
"""Christoffel and Riemann symbols of a metric, from the metric and its derivatives as arrays.

Indices are in the order of the names, batch axes lead:

    [ij,k] = ½(∂_j M_ik + ∂_i M_jk - ∂_k M_ij)                first kind
    {ij,l} = [ij,k] M⁻¹_kl                                    second kind
    S_hijk = ½(∂_i∂_j M_hk + ∂_h∂_k M_ij - ∂_i∂_k M_hj - ∂_h∂_j M_ik)
    R_hijk = S_hijk + {ij,l}[hk,l] - {ik,l}[hj,l]

With this order R_1212 is Gauss's curvature times det M, positive on a sphere.
"""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError


def independent_symbols(n: int) -> int:
    """Number of independent Riemann symbols in n dimensions: n²(n² - 1)/12.

    1, 6, 20, 50 for n = 2, 3, 4, 5. All of them vanish if and only if the metric is flat.

    Raises:
        ArgumentError: n is negative.
    """
    if n < 0:
        raise ArgumentError(f"the number of dimensions is {n}, expected zero or more")
    return n * n * (n * n - 1) // 12


def first_kind(metric_q: Array) -> Array:
    """[ij,k] (..., n, n, n) from ∂_k M_ij (..., n, n, n)."""
    by_j = np.swapaxes(metric_q, -1, -2)
    by_i = np.moveaxis(metric_q, -1, -3)
    return np.asarray((by_j + by_i - metric_q) / 2)


def second_kind(first: Array, inverse: Array) -> Array:
    """{ij,l} (..., n, n, n) from [ij,k] and the inverse metric."""
    return np.asarray(first @ inverse[..., None, :, :])


def riemann_parts(metric_qq: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """The two parts of R_hijk, each (..., n, n, n, n): of second derivatives, and of products.

    Args:
        metric_qq: ∂_k∂_l M_ij as [i, j, k, l].
        first: [ij,k].
        second: {ij,l}.
    """
    # linear[h, i, j, k] = ∂_i∂_j M_hk; its other terms permute these indices.
    linear = np.einsum("...hkij->...hijk", metric_qq)
    linear = linear + np.einsum("...ijhk->...hijk", metric_qq)
    quadratic = np.einsum("...ijl,...hkl->...hijk", second, first)
    flip = "...hijk->...hikj"
    return (linear - np.einsum(flip, linear)) / 2, quadratic - np.einsum(flip, quadratic)


def ricci(riemann: Array, inverse: Array) -> Array:
    """Ricci's tensor (..., n, n): R_hijk summed over h and j with the inverse metric."""
    return np.asarray(np.einsum("...hj,...hijk->...ik", inverse, riemann))


def in_frame(tensor: Array, frame: Array) -> Array:
    """A tensor (..., n, n, n, n) in the axes given by the rows of ``frame`` (..., n, n)."""
    n = frame.shape[-1]
    for _ in range(4):
        # Each pass contracts the first of the four axes and puts the new one last.
        rotated = frame @ tensor.reshape(*tensor.shape[:-4], n, n**3)
        tensor = np.moveaxis(rotated.reshape(*rotated.shape[:-1], n, n, n), -4, -1)
    return tensor


def size(tensor: Array) -> Array:
    """Root of the sum of the squares of the entries (...)."""
    return np.asarray(np.sqrt((tensor**2).sum(axis=(-4, -3, -2, -1))))


def sectional(riemann: Array, metric: Array, u: Array, w: Array) -> Array:
    """Curvature (...) of the surface that u and w (..., n) span: R(u, w, u, w) / area².

    NaN where u and w are parallel within rounding.
    """
    uu, ww, uw = (np.einsum("...i,...ij,...j->...", a, metric, b) for a, b in _pairs(u, w))
    area = uu * ww - uw**2
    numerator = np.einsum("...hijk,...h,...i,...j,...k->...", riemann, u, w, u, w, optimize=True)
    spans = area > 64 * np.finfo(area.dtype).eps * uu * ww
    return np.asarray(np.where(spans, numerator / np.where(spans, area, 1.0), np.nan))


def _pairs(u: Array, w: Array) -> tuple[tuple[Array, Array], ...]:
    return ((u, u), (w, w), (u, w))
