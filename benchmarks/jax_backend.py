# SPDX-License-Identifier: BSD-3-Clause
"""The backend jax: how long XLA compiles and runs, link after link and in rounds, and beside LLVM.

``make bench`` prints it at its end where JAX is installed, ``python -m benchmarks.jax_backend``
alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import phistar
from benchmarks.timing import duration, interleaved
from phistar import Robot
from phistar.robots import chain

QUANTITY = "forward_dynamics"
BATCH = 4096
BUDGET = 2.0
"""Seconds of timing for a row."""


@dataclass(frozen=True)
class JaxRow:
    """One program of JAX beside another one.

    Attributes:
        robot, samples, schedule: What it runs on, and how.
        compile_seconds: Traced and compiled by XLA.
        seconds: A call, best.
        other: What it is compared with.
        other_seconds: A call of that, best.
    """

    robot: str
    samples: int
    schedule: str
    compile_seconds: float
    seconds: float
    other: str
    other_seconds: float


def measure(quick: bool) -> Iterator[JaxRow]:
    """All rows; quickly without the long chain."""
    for name in ("panda", "humanoid"):
        robot = phistar.load(name)
        for samples in (1, BATCH):
            yield _beside_llvm(robot, samples)
    for links in (1000,) if quick else (1000, 10_000):
        yield _beside_sequential(chain(links))


def _state(robot: Robot, samples: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    shape = () if samples == 1 else (samples,)
    return robot.random_configuration(rng, shape), *rng.normal(size=(2, *shape, robot.nv))


def _compiled(robot: Robot, schedule: str, state: Sequence[Any]) -> tuple[Callable[[], Any], float]:
    """A call on arrays that are where XLA wants them, and the seconds that it took to compile."""
    import jax

    code = robot.compile(QUANTITY, backend="jax", schedule=schedule)
    begin = time.perf_counter()
    run = jax.jit(lambda q, v, tau: code.function(q, v=v, tau=tau)).lower(*state).compile()
    seconds = time.perf_counter() - begin
    held = [jax.device_put(x) for x in state]
    return lambda: jax.block_until_ready(run(*held)), seconds


def _beside_llvm(robot: Robot, samples: int) -> JaxRow:
    state = _state(robot, samples)
    run, seconds = _compiled(robot, "sequential", state)
    acts = {"jax": run, "llvm": lambda: robot.forward_dynamics(*state)}
    ours, theirs = (min(each) for each in interleaved(acts, BUDGET).values())
    return JaxRow(robot.name, samples, "sequential", seconds, ours, "llvm", theirs)


def _beside_sequential(robot: Robot) -> JaxRow:
    state = _state(robot, 1)
    one, _ = _compiled(robot, "sequential", state)
    other, seconds = _compiled(robot, "parallel", state)
    acts = {"sequential": one, "parallel": other}
    first, second = (min(each) for each in interleaved(acts, BUDGET).values())
    return JaxRow(robot.name, 1, "parallel", seconds, second, "sequential", first)


def table(rows: Sequence[JaxRow]) -> Table:
    """Rows for the terminal."""
    found = Table(title=f"JAX on this processor: {QUANTITY}, float64", title_justify="left")
    for name in ("robot", "samples", "schedule", "compiled in", "a call", "beside", "", "ratio"):
        found.add_column(name, justify="left" if name in ("robot", "schedule") else "right")
    for row in rows:
        numbers = (duration(row.seconds), row.other, duration(row.other_seconds))
        ratio = f"{row.seconds / row.other_seconds:.1f}"
        compiled = f"{row.compile_seconds:.1f} s"
        found.add_row(row.robot, str(row.samples), row.schedule, compiled, *numbers, ratio)
    return found


def show(console: Console, quick: bool = False) -> None:
    """Measure and print, or say that JAX is not there."""
    if find_spec("jax") is None:
        console.print('No JAX here: its backend is not timed (pip install "phistar[jax]").')
        return
    import jax

    with jax.enable_x64(True):
        console.print(table(list(measure(quick))))


if __name__ == "__main__":
    show(Console(width=120))
