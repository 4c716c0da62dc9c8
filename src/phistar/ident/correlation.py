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
    total = np.zeros((2, length // 2 + 1, groups))
    for error, counted in runs:
        for lag in range(total.shape[1]):
            pairs = counted[lag:] & counted[: length - lag]
            total[0, lag] += (error[lag:] * error[: length - lag] * pairs).sum(axis=0)
            total[1, lag] += pairs.sum(axis=0)
    products, pairs = total
    mean = products / np.maximum(pairs, 1)
    rho = mean / np.where(mean[0] > 0.0, mean[0], 1.0)
    clear = np.cumprod(rho[1:] > 2.0 / np.sqrt(np.maximum(pairs[1:], 1)), axis=0)
    return np.asarray(1.0 + 2.0 * (rho[1:] * clear).sum(axis=0))
