# SPDX-License-Identifier: BSD-3-Clause
"""How residuals of a log are correlated in time: how many samples are worth one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phistar.arrays import Array


def samples_worth_one(runs: Sequence[tuple[Array, Array]]) -> Array:
    """(groups,) 1 + 2 Σ ρ_k up to the first lag at which ρ is not clear of zero.

    Args:
        runs: Residuals (n, groups), n the same for all, and which of them count.
    """
    length, groups = runs[0][0].shape
    first = _mean_product(runs, 0)[0]
    size = np.where(first > 0.0, first, 1.0)
    result, clear = np.ones(groups), np.ones(groups, dtype=bool)
    for lag in range(1, length // 2 + 1):
        mean, pairs = _mean_product(runs, lag)
        rho = mean / size
        clear &= rho > 2.0 / np.sqrt(np.maximum(pairs, 1))
        if not clear.any():
            break
        result += 2.0 * np.where(clear, rho, 0.0)
    return result


def _mean_product(runs: Sequence[tuple[Array, Array]], lag: int) -> tuple[Array, Array]:
    """(groups,) means of products of residuals so many samples apart, and of how many."""
    products, pairs = np.zeros((2, runs[0][0].shape[1]))
    for error, counted in runs:
        last = len(error) - lag
        both = counted[lag:] & counted[:last]
        products += (error[lag:] * error[:last] * both).sum(axis=0)
        pairs += both.sum(axis=0)
    return products / np.maximum(pairs, 1), pairs
