# SPDX-License-Identifier: BSD-3-Clause
"""Many steps in pieces: between them a bar moves, users may interrupt, results are looked at."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from phistar.arrays import Array
from phistar.progress import progress_bar as terminal_bar
from phistar.sim.stepper import Stepper, StepSpan
from phistar.thresholds import POLICY

MIN_PROGRESS_NANOSECONDS = 1e9
"""Nanoseconds of a simulation from which a progress bar is shown."""


def run_in_pieces(
    engine: Stepper,
    name: str,
    given: Array,
    times: tuple[float, int, int],
    results: tuple[Array, ...],
    progress: bool | None,
    look: Callable[[int], None],
) -> None:
    """Fill the results from their first knots on.

    Args:
        engine: What takes the steps.
        name: Of the robot.
        given: Joint forces, or the reference of a law: (B, n), or (steps, B, n), of each step.
        times: Length of a step [s], number of steps, steps from one knot to the next.
        results: q and x, and under a law joint forces, (knots + 1, B, n) each; there are no forces
            at the first knot.
        progress: As of ``simulate``.
        look: Called with the number of the last knot of each piece.
    """
    dt, count, every = times
    samples = results[0].shape[1]
    if not samples or not results[1].shape[-1]:
        return
    step_ns = engine.cost_ns * samples
    length = engine.piece or int(POLICY.simulation_piece_nanoseconds / step_ns)
    piece = max(1, length // every) * every
    with progress_bar(progress, count, name, step_ns * count) as advance:
        for begin in range(0, count, piece):
            end = min(begin + piece, count)
            first, last = begin // every, end // every
            own = given if given.ndim == 2 else given[begin:end]
            pieces = tuple(each[first + 1 : last + 1] for each in results)
            start = results[0][first], results[1][first]
            engine.run(StepSpan.of_batch(start, own, dt, end - begin, every, pieces, begin))
            look(last)
            advance(end - begin)


@contextmanager
def progress_bar(
    progress: bool | None, total: int, name: str, nanoseconds: float
) -> Iterator[Callable[[float], None]]:
    """A function of the number of steps done that moves the bar, if there is one.

    Default: a bar on a terminal, if it takes long.
    """
    if progress is None:
        progress = sys.stderr.isatty() and nanoseconds > MIN_PROGRESS_NANOSECONDS
    with terminal_bar(progress, f"simulating {name}", total, "steps") as advance:
        yield advance
