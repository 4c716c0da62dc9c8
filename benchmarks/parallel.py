# SPDX-License-Identifier: BSD-3-Clause
"""Parallel schedules beside sequential ones, one sample of long chains; the sparse system's growth.

``python -m benchmarks.parallel`` prints both alone.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.exact_residual import forward_error
from benchmarks.timing import Ratio, Timing, best_of, exponent, interleaved
from phistar import Robot, robots
from phistar.gc_pause import gc_paused

LENGTHS = (1000, 10_000)
"""Links of the chains."""
SYSTEM_LENGTHS = (1000, 3000, 10_000, 30_000, 100_000)
"""Of those whose sparse equations are solved; the last two in full runs only."""
TOLERANCE = 1e-8
"""Of the largest acceleration."""


@dataclass(frozen=True)
class ParallelRow:
    """Forward dynamics of one sample by NumPy, in rounds and link after link.

    Attributes:
        robot: Its name.
        compiled: Seconds until the first result in rounds, and link after link.
        ours, sequential: Seconds.
        ratio: How many times faster the rounds are.
        error: Largest difference, relative to the largest acceleration.
    """

    robot: str
    compiled: tuple[float, float]
    ours: Timing
    sequential: Timing
    ratio: Ratio
    error: float


@dataclass(frozen=True)
class SystemGrowth:
    """The sparse system of all links, made and solved, against the number of links.

    Attributes:
        lengths: Links.
        seconds: Of each.
        exponent: Of the seconds.
        error: Of the accelerations with the most links, relative to the largest, against the
            recursion in extended precision; not a number where long doubles have no more digits.
        solver_error: Of that solution as one of the equations as they are rounded, see
            ``exact_residual.forward_error``.
    """

    lengths: tuple[int, ...]
    seconds: tuple[float, ...]
    exponent: float
    error: float
    solver_error: float


def _state(robot: Robot) -> tuple[np.ndarray, ...]:
    return tuple(0.3 * np.random.default_rng(0).normal(size=(3, robot.nv)))


def measure_chain(links: int, budget: float) -> tuple[ParallelRow, str]:
    """A chain, and what is wrong with it, if anything is."""
    robot = robots.chain(links)
    q, v, tau = _state(robot)
    begin = time.perf_counter()
    rounds = robot.compile("forward_dynamics", schedule="parallel", backend="numpy")
    found = rounds(q, v=v, tau=tau)
    middle = time.perf_counter()
    loop = robot.compile("forward_dynamics", backend="numpy")
    expected = loop(q, v=v, tau=tau)
    compiled = middle - begin, time.perf_counter() - middle
    acts = {
        "rounds": lambda: rounds(q, v=v, tau=tau),
        "loop": lambda: loop(q, v=v, tau=tau),
    }
    times = interleaved(acts, budget, least=3, tries=1)
    ours, theirs = times["rounds"], times["loop"]
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    name = f"chain{links}"
    fault = f"{name}: rounds and recursion differ by {error:.1e}" if error > TOLERANCE else ""
    ratio = Ratio.of(ours, theirs)
    return ParallelRow(name, compiled, Timing.of(ours), Timing.of(theirs), ratio, error), fault


def measure(budget: float) -> tuple[list[ParallelRow], list[str]]:
    """All chains, and what is wrong."""
    found = [measure_chain(links, budget) for links in LENGTHS]
    return [row for row, _ in found], [fault for _, fault in found if fault]


def _solve(robot: Robot, state: tuple[np.ndarray, ...]) -> object:
    return robot.system(*state).solve()


def extended_accelerations(robot: Robot, state: tuple[np.ndarray, ...]) -> np.ndarray:
    """v̇ (nv,) in long doubles, by rounds over all links."""
    rounds = robot.compile("forward_dynamics", schedule="parallel", backend="numpy")
    q, v, tau = (x.astype(np.longdouble) for x in state)
    return np.asarray(rounds(q, v=v, tau=tau))


def system_errors(robot: Robot, state: tuple[np.ndarray, ...]) -> tuple[float, float]:
    """``SystemGrowth.error`` and ``.solver_error``."""
    system = robot.system(*state)
    found = system.solve()
    error = math.nan
    if np.finfo(np.longdouble).eps < np.finfo(float).eps / 100:
        exact = extended_accelerations(robot, state)
        error = float(np.abs(found.vdot - exact).max() / np.abs(exact).max())
    return error, forward_error(system, found.unknowns)


def measure_system(quick: bool) -> SystemGrowth:
    """The sparse system of chains, made and solved."""
    lengths = SYSTEM_LENGTHS[:3] if quick else SYSTEM_LENGTHS
    seconds, errors = [], (math.nan, math.nan)
    for links in lengths:
        robot = robots.chain(links)
        solved = partial(_solve, robot, _state(robot))
        # Collecting garbage costs more than linearly, with all the blocks by name.
        with gc_paused:
            seconds.append(best_of(solved, 1 if links > 10_000 else 3))
        if links == lengths[-1]:
            errors = system_errors(robot, _state(robot))
    return SystemGrowth(lengths, tuple(seconds), exponent(lengths, seconds), *errors)


def main() -> int:
    """Print both; the exit code is 1 if rounds and recursion differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="no system of 100 000 links")
    options = parser.parse_args()
    rows, faults = measure(5.0)
    for row in rows:
        print(
            f"{row.robot}: rounds {1e3 * row.ours.median:.1f} ms, link after link "
            f"{1e3 * row.sequential.median:.0f} ms, ratio {row.ratio.median:.1f} "
            f"({row.ratio.low:.1f} to {row.ratio.high:.1f}); first result after "
            f"{row.compiled[0]:.2f} and {row.compiled[1]:.2f} s; error {row.error:.1e}"
        )
    growth = measure_system(options.quick)
    times = ", ".join(
        f"{n}: {t:.3f} s" for n, t in zip(growth.lengths, growth.seconds, strict=True)
    )
    print(
        f"sparse system: {times}; exponent {growth.exponent:.3f}; error {growth.error:.1e}, "
        f"of the solver {growth.solver_error:.1e}"
    )
    for fault in faults:
        print(f"FAULT: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
