# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers by key and counter: those of a sample depend on its own key and count only."""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def _mixed(x: Array) -> Array:
    """The finaliser of splitmix64: 64 bits of which each depends on all of the argument's."""
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return np.asarray(x ^ (x >> np.uint64(31)))


def uniform(keys: Array, counts: Array, draws: int) -> Array:
    """Numbers (samples, draws) in [0, 1).

    Args:
        keys: (samples,) uint64.
        counts: (samples,) uint64, how often each was asked before.
        draws: Numbers for each.
    """
    with np.errstate(over="ignore"):
        begun = _mixed(_mixed(keys + _STEP) + counts * _STEP)
        steps = np.arange(1, draws + 1, dtype=np.uint64) * _STEP
        bits = _mixed(begun[:, None] + steps)
    return (bits >> np.uint64(11)).astype(float) / 2.0**53
