# SPDX-License-Identifier: BSD-3-Clause
"""Rounds, ratios and exponents of the benchmarks."""

import gc

import numpy as np
import pytest

from benchmarks.timing import TRIES, Ratio, Timing, best_of, exponent, interleaved, quartiles


def test_timing_is_a_sample() -> None:
    """Best and median of rounds are divided by the samples of a run."""
    found = Timing.of([3.0, 1.0, 8.0], samples=2)
    assert (found.best, found.median, found.rounds) == (0.5, 1.5, 3)


def test_ratio_is_taken_round_by_round() -> None:
    """A round that is slow for both sides leaves the ratio alone; best is best against best."""
    found = Ratio.of([1.0, 10.0, 2.0], [4.0, 40.0, 6.0])
    assert (found.median, found.best) == (4.0, 4.0)
    assert found.low == pytest.approx(3.5)
    assert found.high == 4.0


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_quartiles(count: int) -> None:
    """They are NumPy's."""
    values = np.random.default_rng(count).normal(size=count)
    expected = np.quantile(values, [0.25, 0.5, 0.75])
    np.testing.assert_allclose(quartiles(values.tolist()), expected, rtol=1e-12)


def test_rounds_treat_everyone_alike() -> None:
    """As many runs, timed and not, for each; every second round goes the other way round."""
    calls: list[str] = []
    acts = {name: lambda name=name: calls.append(name) for name in "ab"}
    times = interleaved(acts, budget=0.0, least=2)
    assert {name: len(found) for name, found in times.items()} == {"a": 2, "b": 2}
    run = 1 + TRIES
    assert "".join(calls) == "a" * run + "b" * run + "b" * run + "a" * run


def test_rounds_end() -> None:
    """No more rounds than asked for, however much time is left, and garbage is collected again."""
    times = interleaved({"a": lambda: None}, budget=60.0, least=1, most=4, tries=1)
    assert len(times["a"]) == 4
    assert gc.isenabled()


def test_garbage_is_collected_again_after_an_error() -> None:
    """An error in a run goes through and leaves the collector on."""

    def fail() -> None:
        raise RuntimeError("as it should")

    with pytest.raises(RuntimeError, match="as it should"):
        interleaved({"a": fail}, budget=0.0)
    assert gc.isenabled()


def test_best_of_runs_once_more_than_it_times() -> None:
    """The first run does not count."""
    calls: list[int] = []
    assert best_of(lambda: calls.append(0), tries=2) >= 0.0
    assert len(calls) == 3


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_exponent(power: float) -> None:
    """A power law gives its power."""
    sizes = (10, 30, 100, 300, 1000)
    assert exponent(sizes, [3e-6 * n**power for n in sizes]) == pytest.approx(power, rel=1e-12)
