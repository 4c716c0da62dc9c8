# SPDX-License-Identifier: BSD-3-Clause
"""Timing of rivals: interleaved rounds with the same tries for everyone, and what to say of them.

A round lets everyone run once untimed and then a few times timed, and keeps the best of those; the
next round goes the other way round. So all see the same machine, and ratios are taken round by
round: absolute times drift on a shared machine, ratios hardly.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Act = Callable[[], object]

TRIES = 3
"""Timed runs in a round."""


@dataclass(frozen=True)
class Timing:
    """Seconds a sample over some rounds."""

    best: float
    median: float
    rounds: int

    @classmethod
    def of(cls, rounds: Sequence[float], samples: int = 1) -> Timing:
        """From the seconds of each round for so many samples."""
        return cls(min(rounds) / samples, statistics.median(rounds) / samples, len(rounds))


@dataclass(frozen=True)
class Ratio:
    """How many times faster we are: median and quartiles of the rounds, and best against best."""

    median: float
    low: float
    high: float
    best: float

    @classmethod
    def of(cls, ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
        """From seconds a sample of both, round by round."""
        each = [b / a for a, b in zip(ours, theirs, strict=True)]
        low, middle, high = quartiles(each)
        return cls(middle, low, high, min(theirs) / min(ours))


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The values a quarter, half and three quarters of the way up."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def best_of(act: Act, tries: int = TRIES) -> float:
    """Least seconds of some runs, after one that does not count."""
    act()
    best = math.inf
    for _ in range(tries):
        start = time.perf_counter()
        act()
        best = min(best, time.perf_counter() - start)
    return best


def interleaved(
    acts: Mapping[str, Act], budget: float, least: int = 5, most: int = 40, tries: int = TRIES
) -> dict[str, list[float]]:
    """Seconds of everyone in each round.

    Args:
        acts: What to run, by name.
        budget: Seconds after which no further round starts, once there are enough.
        least: Rounds that are made in any case.
        most: Rounds at most.
        tries: Timed runs in a round, the best of which counts.
    """
    times: dict[str, list[float]] = {name: [] for name in acts}
    order = list(acts)
    collecting = gc.isenabled()
    gc.disable()
    try:
        end = time.perf_counter() + budget
        for done in range(most):
            if done >= least and time.perf_counter() > end:
                break
            for name in order:
                times[name].append(best_of(acts[name], tries))
            order.reverse()
    finally:
        if collecting:
            gc.enable()
    return times


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """Slope of log(time) against log(size), by least squares over all points."""
    fit = statistics.linear_regression([math.log(n) for n in sizes], [math.log(t) for t in times])
    return fit.slope


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{_digits(seconds * 1e9)} ns"


def _digits(x: float) -> str:
    return f"{x:.0f}" if x >= 99.95 else f"{x:.1f}" if x >= 9.995 else f"{x:.2f}"
