# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of logs: right in the pass band, not delayed, nothing made up at the ends."""

import numpy as np
import pytest

from phistar.errors import ArgumentError
from phistar.ident import differentiate
from phistar.ident.filtering import kernels

DT = 1e-3


@pytest.mark.parametrize("hertz", [0.5, 3.0, 15.0])
def test_sines(hertz: float) -> None:
    """Value, velocity and acceleration to 1e-4 of their size, in phase."""
    t = DT * np.arange(3000)
    w = 2.0 * np.pi * hertz
    found = differentiate(np.column_stack([np.sin(w * t), 5.0 + np.cos(w * t)]), DT, cutoff=20.0)
    s = t[found.kept]
    assert np.abs(found.x[:, 0] - np.sin(w * s)).max() < 1e-4
    assert np.abs(found.first[:, 0] - w * np.cos(w * s)).max() < 1e-4 * w
    assert np.abs(found.second[:, 1] + w * w * np.cos(w * s)).max() < 1e-4 * w * w


def test_parabolas_are_exact() -> None:
    """A motion of constant acceleration, to rounding."""
    t = DT * np.arange(2000)
    found = differentiate((1.0 + 2.0 * t + 3.0 * t * t)[:, None], DT, cutoff=25.0)
    assert np.abs(found.second - 6.0).max() < 1e-6
    assert np.abs(found.first[:, 0] - 2.0 - 6.0 * t[found.kept]).max() < 1e-8


def test_no_sample_beyond_the_kernel_matters() -> None:
    """A kept sample has all its neighbours in the log, and depends on nothing else."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 1))
    half = len(kernels(DT, 20.0)[0]) // 2
    whole = differentiate(x, DT, cutoff=20.0)
    assert whole.kept == slice(half, 1500 - half)
    assert len(whole.x) == 1500 - 2 * half
    cut = differentiate(x[: 2 * half + 2], DT, cutoff=20.0)
    assert np.abs(cut.second - whole.second[:2]).max() < 1e-9 * np.abs(whole.second).max()


def test_noise_gains() -> None:
    """White noise of one becomes noise of the sizes that are told."""
    found = differentiate(np.random.default_rng(1).normal(size=(200_000, 1)), DT, cutoff=20.0)
    for gain, values in zip(found.noise_gains, (found.x, found.first, found.second), strict=True):
        assert values.std() == pytest.approx(gain, rel=0.05)


def test_default_cutoff_follows_the_motion() -> None:
    """Above the fastest part of the motion, below the noise of the sensor."""
    t = DT * np.arange(10_000)
    noise = 1e-5 * np.random.default_rng(2).normal(size=(10_000, 1))
    found = differentiate(np.sin(2 * np.pi * 2.0 * t)[:, None] + noise, DT)
    assert 6.0 < found.cutoff < 20.0


@pytest.mark.parametrize(
    ("samples", "dt", "cutoff", "text"),
    [
        (100, DT, 20.0, "too few for a cutoff"),
        (5000, DT, 400.0, "at most 125 Hz"),
        (5000, DT, -1.0, "above 0"),
        (5000, 0.0, 20.0, "greater than zero"),
    ],
)
def test_what_is_refused(samples: int, dt: float, cutoff: float, text: str) -> None:
    """Short logs, cutoffs that the sampling does not carry, no time."""
    with pytest.raises(ArgumentError, match=text):
        differentiate(np.random.default_rng(0).normal(size=(samples, 1)), dt, cutoff)
    with pytest.raises(ArgumentError, match="do not move"):
        differentiate(np.ones((5000, 1)), DT)
