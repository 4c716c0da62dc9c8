# SPDX-License-Identifier: BSD-3-Clause
"""Estimates that a few bad samples do not spoil: Huber's and Tukey's, by weighting again.

A row whose residual is many standard deviations loses weight. The standard deviation of a joint is
1.4826 times the median of the residuals' sizes, which half of the rows may not move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from phistar.arrays import Array
from phistar.errors import ConvergenceWarning, UnknownNameError, warn
from phistar.ident.equations import Equations, accumulate, merged, residuals
from phistar.ident.least_squares import LinearFit, weighted_fit

LOSSES: Mapping[str, Callable[[Array], Array]] = {
    "squares": np.ones_like,
    "huber": lambda x: 1.345 / np.maximum(np.abs(x), 1.345),
    "tukey": lambda x: np.clip(1.0 - (x / 4.685) ** 2, 0.0, None) ** 2,
}
"""Weights of residuals in units of their standard deviation; 95 % efficient for normal noise."""
_NORMAL_MEDIAN = 1.4826
"""Standard deviation of normal numbers over the median of their sizes."""
PASSES = 50
"""Most passes over the log."""
SETTLED = 1e-3
"""Largest change of a parameter, in its standard deviations, at which the passes end."""


def robust_fit(equations: Equations, first: LinearFit, loss: str, start: Array) -> LinearFit:
    """An estimate by a loss that grows slower than squares.

    Huber's is convex; Tukey's, which gives far rows no weight at all, begins with Huber's.

    Args:
        equations: The log.
        first: Where to begin: least squares.
        loss: ``"huber"`` or ``"tukey"``.
        start: (b,) values of directions that were not excited.

    Raises:
        UnknownNameError: No such loss.
    """
    if loss not in LOSSES:
        raise UnknownNameError("loss", loss, LOSSES)
    if loss == "tukey":
        first = robust_fit(equations, first, "huber", start)
    fit = first
    for _ in range(PASSES):
        left, counts = residuals(equations, fit.beta)
        noise = spread(left, counts)
        weights = np.where(counts, LOSSES[loss](left / noise), 0.0)
        triangles = merged(accumulate(equations, 1, lambda a, b, w=weights: w[a:b]))  # type: ignore[misc]
        found = weighted_fit(triangles, equations.support, start, noise)
        moved = np.linalg.norm(found.information @ (found.beta - fit.beta), ord=np.inf)
        fit = found
        if moved < SETTLED:
            return _honest(fit, left / noise, counts, loss)
    warn(f"the {loss} estimate still moves after {PASSES} passes", ConvergenceWarning)
    return _honest(fit, left / noise, counts, loss)


def spread(left: Array, counts: Array) -> Array:
    """(groups,) standard deviations from medians; 1 for a group without rows."""
    found = np.ones(left.shape[1])
    for k in range(left.shape[1]):
        own = np.abs(left[counts[:, k], k])
        if own.size:
            found[k] = _NORMAL_MEDIAN * np.median(own)
    least = np.finfo(float).eps * max(float(found.max()), 1.0)
    return np.maximum(found, least)


def _honest(fit: LinearFit, scaled: Array, counts: Array, loss: str) -> LinearFit:
    """Covariance as Huber's theory has it: E ψ² / (E ψ')² rather than 1 / E w."""
    x = scaled[counts]
    weight = LOSSES[loss]
    psi = x * weight(x)
    step = 1e-6
    slope = (((x + step) * weight(x + step)) - ((x - step) * weight(x - step))) / (2.0 * step)
    factor = float(np.mean(psi**2) / np.mean(slope) ** 2 * np.mean(weight(x)))
    return replace(
        fit,
        covariance=fit.covariance * factor,
        deviation=fit.deviation * np.sqrt(factor),
        information=fit.information / np.sqrt(factor),
    )
