# SPDX-License-Identifier: BSD-3-Clause
"""Small convex quadratic programs with bounds, many at once, by projected Newton steps.

The method is that of Bertsekas, Projected Newton methods for optimization problems with simple
constraints, SIAM J. Control and Optimization 20(2), 1982: entries at a bound where the gradient
points outward are fixed, the others take a projected Newton step.
"""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.control.actuation import matvec

_FRACTIONS = 0.5 ** np.arange(8.0)
_ITERATIONS = 50
_STEP_TOLERANCE = 1e-12


def solve_box_qp(H: Array, g: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """The minimum of x·H x / 2 + g·x with lower <= x <= upper.

    Args:
        H: (..., m, m), positive definite.
        g: (..., m).
        lower, upper: (..., m).

    Returns:
        x (..., m), and which entries are free (..., m): not at a bound.
    """
    x = np.clip(-_solve(H, g), lower, upper)
    free = np.ones(g.shape, dtype=bool)
    for _ in range(_ITERATIONS):
        gradient = g + matvec(H, x)
        free = ~(((x <= lower) & (gradient > 0)) | ((x >= upper) & (gradient < 0)))
        step = -_solve(mask_held(H, free), np.where(free, gradient, 0.0))
        if (np.abs(step) <= _STEP_TOLERANCE * (1.0 + np.abs(x))).all():
            break
        x = _search(H, g, lower, upper, x, step)
    return x, free


def mask_held(H: Array, free: Array) -> Array:
    """H with the rows and columns of fixed entries replaced by those of the identity."""
    both = free[..., :, None] & free[..., None, :]
    return np.where(both, H, np.eye(H.shape[-1]))


def _solve(H: Array, g: Array) -> Array:
    return np.asarray(np.linalg.solve(H, g[..., None])[..., 0])


def _search(H: Array, g: Array, lower: Array, upper: Array, x: Array, step: Array) -> Array:
    """The best of a few projected fractions of a step, or x itself."""
    fractions = _FRACTIONS.reshape(-1, *(1,) * x.ndim)
    tried = np.clip(x + fractions * step, lower, upper)
    tried = np.concatenate([tried, x[None]])
    value = (tried * (0.5 * matvec(H, tried) + g)).sum(axis=-1)
    best = np.argmin(value, axis=0)
    return np.asarray(np.take_along_axis(tried, best[None, ..., None], axis=0)[0])
