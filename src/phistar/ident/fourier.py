# SPDX-License-Identifier: BSD-3-Clause
"""Periodic motions as Fourier series: positions, velocities and accelerations in closed form.

q(t) = q₀ + Σ_k a_k sin(kωt)/(kω) - b_k cos(kωt)/(kω), for every coordinate; a and b have the unit
of velocities. Linear in the coefficients, so that samples are a matrix times them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array


@dataclass(frozen=True, eq=False)
class FourierSeries:
    """A periodic motion of n coordinates, or a batch of them.

    Attributes:
        centre: (..., n) q₀.
        coefficients: (..., n, 2 harmonics) a, then b.
        period: [s].
    """

    centre: Array
    coefficients: Array
    period: float

    @property
    def harmonics(self) -> int:
        """How many."""
        return int(self.coefficients.shape[-1]) // 2

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q, v and vdot (..., N, n) at times (N,)."""
        times = np.asarray(t, dtype=float)
        matrices = fourier_matrices(times, self.harmonics, self.period)
        q, v, vdot = (np.swapaxes(self.coefficients @ each.T, -1, -2) for each in matrices)
        return q + self.centre[..., None, :], v, vdot

    @cached_property
    def start(self) -> Array:
        """(..., n) the position at time zero."""
        return self.at([0.0])[0][..., 0, :]


def fourier_matrices(t: Array, harmonics: int, period: float) -> tuple[Array, Array, Array]:
    """(N, 2 harmonics) what coefficients are multiplied by for q - q₀, v and vdot at times (N,)."""
    omega = 2.0 * math.pi / period * np.arange(1, harmonics + 1)
    phase = t[:, None] * omega
    s, c = np.sin(phase), np.cos(phase)
    return (
        np.concatenate([s / omega, -c / omega], axis=1),
        np.concatenate([c, s], axis=1),
        np.concatenate([-omega * s, omega * c], axis=1),
    )
