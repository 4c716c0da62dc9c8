# SPDX-License-Identifier: BSD-3-Clause
"""Velocities and accelerations of logged positions: symmetric filters, whole samples only.

The low-pass is a sinc under Kaiser's window; velocities and accelerations are central differences
of eighth order of what it leaves. All are symmetric, so that nothing is delayed. At the ends of a
log no sample is made up, repeated or mirrored: what a kernel would need from beyond an end is not
there, and the samples that need it are left out. ``Derivatives.kept`` says which ones are left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from phistar.arguments import require_real, require_time
from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.configuration import as_numbers, require_finite
from phistar.reprs import one_line_repr

ATTENUATION = 80.0
"""Of noise beyond the transition [dB]."""
TRANSITION = 0.5
"""Width of the transition from pass to stop, as a fraction of the cutoff."""
HIGHEST = 0.125
"""Highest cutoff as a fraction of the sampling frequency: differences are right to 1e-4 there."""
FIRST = np.array([-3, 32, -168, 672, 0, -672, 168, -32, 3]) / 840.0
SECOND = np.array([-9, 128, -1008, 8064, -14350, 8064, -1008, 128, -9]) / 5040.0
"""Central differences of eighth order, to convolve with."""
POWER_SHARE = 0.9999
"""Share of the power of positions that the default cutoff lies above."""
FEWEST = 4
"""Samples that have a spectrum."""
CUTOFF_MARGIN = 4.0
"""The default cutoff over the frequency with that share."""


@one_line_repr
@dataclass(frozen=True, eq=False)
class Derivatives:
    """Smoothed samples and their derivatives.

    Attributes:
        x, first, second: (n, ...) smoothed values, their first and second derivatives.
        kept: Samples of the log that they belong to.
        cutoff: Frequency up to which they follow [Hz].
        noise_gains: Standard deviations of x, first and second that white noise of one causes.
    """

    x: Array
    first: Array
    second: Array
    kept: slice
    cutoff: float
    noise_gains: tuple[float, float, float]


def kernels(dt: float, cutoff: float) -> tuple[Array, Array, Array]:
    """Taps (2 n + 1,) to convolve with: the low-pass, its first and its second derivative.

    Args:
        dt: Time between samples [s].
        cutoff: End of the pass band [Hz]; the stop band begins half as far above.
    """
    width = TRANSITION * cutoff
    half = math.ceil((ATTENUATION - 7.95) / (2.285 * 4.0 * math.pi * width * dt))
    t = dt * np.arange(-half, half + 1)
    low = np.sinc((2.0 * cutoff + width) * t) * np.kaiser(len(t), 0.1102 * (ATTENUATION - 8.7))
    low = low / low.sum()
    first, second = (np.convolve(low, each) for each in (FIRST / dt, SECOND / dt**2))
    reach = len(FIRST) // 2
    return np.pad(low, reach), first, second


def _convolved(x: Array, taps: Array) -> Array:
    """(N - taps + 1, ...) those of x * taps that no end of x cuts off, by Fourier transforms."""
    size = 1 << (len(x) - 1).bit_length()
    spectrum = np.fft.rfft(taps, size).reshape(-1, *(1,) * (x.ndim - 1))
    # Circular: what wraps around is in the first taps - 1 samples, which are cut off.
    return np.fft.irfft(np.fft.rfft(x, size, axis=0) * spectrum, size, axis=0)[
        len(taps) - 1 : len(x)
    ]


def default_cutoff(x: Array, dt: float) -> float:
    """Four times the frequency below which lies nearly all power of positions (N, ...) [Hz].

    At most what the sampling allows.
    """
    rows = np.asarray(x, dtype=float).reshape(len(x), -1)
    rows = (rows - rows.mean(axis=0)) * np.hanning(len(rows))[:, None]
    power = (np.abs(np.fft.rfft(rows, axis=0)) ** 2).sum(axis=1)
    total = np.cumsum(power)
    highest = HIGHEST / dt
    if not total[-1] > 0.0:
        if len(rows) < FEWEST:
            return highest
        raise ArgumentError("the positions do not move, so there is nothing to differentiate")
    index = int(np.searchsorted(total, POWER_SHARE * total[-1])) + 1
    return min(CUTOFF_MARGIN * index / (len(rows) * dt), highest)


def _frequency(cutoff: object) -> float:
    if not isinstance(cutoff, int | float | np.number):
        raise ArgumentError(f"cutoff is {cutoff!r:.80}, expected a frequency [Hz]")
    return float(cutoff)


def differentiate(x: Array, dt: float, cutoff: float | None = None) -> Derivatives:
    """Positions (N, ...) that are sampled every dt [s], smoothed and differentiated twice.

    Args:
        x: Positions along the first axis.
        dt: Time between samples [s].
        cutoff: End of the pass band [Hz]; default: ``default_cutoff``.

    Raises:
        ArgumentError: The cutoff does not fit the sampling, or the log is shorter than the kernel.
    """
    x = as_numbers(x, "x")
    require_real(x=x)
    require_finite("x", x)
    dt = require_time("dt", dt)
    chosen = default_cutoff(x, dt) if cutoff is None else _frequency(cutoff)
    highest = HIGHEST / dt
    if not 0.0 < chosen <= highest:
        raise ArgumentError(
            f"cutoff is {chosen:g} Hz, expected one above 0 and at most {highest:.4g} Hz at "
            f"{1 / dt:.6g} samples a second"
        )
    taps = kernels(dt, chosen)
    size = len(taps[0])
    if len(x) < size + 1:
        raise ArgumentError(
            f"{len(x)} samples at {1 / dt:.6g} a second are too few for a cutoff of {chosen:.4g} "
            f"Hz, whose filter has {size}; record longer or raise the cutoff"
        )
    # Centred, so that a convolution by Fourier transforms rounds relative to the motion.
    centre = x.mean(axis=0)
    moved = x - centre
    found = [_convolved(moved, each) for each in taps]
    half = size // 2
    gains = tuple(float(np.linalg.norm(each)) for each in taps)
    return Derivatives(
        found[0] + centre, found[1], found[2], slice(half, len(x) - half), chosen,
        (gains[0], gains[1], gains[2]),
    )  # fmt: skip
