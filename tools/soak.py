# SPDX-License-Identifier: BSD-3-Clause
"""``make soak``: many small kernels made, loaded from the cache, run and dropped; memory watched.

Every tenth cycle compiles a new program, the others load one that was made before, and each
thousandth is a robot of its own through the public methods. Robots that fill the caches of the
process come first, then a tenth of the cycles; from then on, memory must stay where it is.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn, TimeRemainingColumn

import phistar
from phistar.backends.llvm import kernel as kernels
from phistar.model.random import random_model
from phistar.scalar.graph import Graph, sin, sqrt
from phistar.scalar.program import Body, Signature, Store, Straight

WARM = 0.1
"""Part of the cycles after which memory counts."""
ROBOTS_AT_ONCE = 256
"""Executables that a process keeps: so many robots fill its caches."""
GROWTH = 16.0
"""Megabytes that memory may grow by afterwards."""
SAMPLES = 20


def resident() -> float:
    """Megabytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def program(number: int) -> Straight:
    """A small program that no other number gives."""
    graph = Graph()
    x, y = graph.load("x", 0), graph.load("x", 1)
    value = sin(x * (1.0 + number)) + sqrt(y * y + 1.0) * float(number + 2)
    body = Body(graph, [Store("y", 0, "", value)])
    return Straight(Signature({"x": 2}, {"y": 1}), body)


def _check(kernel: kernels.Kernel | None, number: int) -> None:
    if kernel is None:
        raise SystemExit(f"kernel {number} is not in the cache")
    x, out = np.full((5, 2), 0.5), np.empty((5, 1))
    kernel.call([x], [out])
    want = np.sin(0.5 * (1 + number)) + np.sqrt(1.25) * (number + 2)
    if not np.abs(out - want).max() <= 1e-12 * abs(want):
        raise SystemExit(f"kernel {number} gives {out[0, 0]}, expected {want}")


def _robot(seed: int) -> None:
    """A robot that nobody has seen: inverse dynamics of forward dynamics."""
    robot = phistar.Robot(random_model(np.random.default_rng(seed), 2, kinds=["revolute"]))
    rng = np.random.default_rng(seed)
    q, v, tau = (rng.normal(size=(3, 2)) for _ in range(3))
    back = robot.inverse_dynamics(q, v, robot.forward_dynamics(q, v, tau))
    if not np.abs(back - tau).max() <= 1e-6 * np.abs(tau).max():
        raise SystemExit(f"robot {seed}: dynamics do not invert each other")


def cycle(i: int, made: list[int]) -> None:
    """One kernel, new or from the cache."""
    if i % 1000 == 999:
        _robot(i)
    elif i % 10 == 0:
        _check(kernels.make(f"soak {i}", "double", "soak", lambda: program(i)), i)
        made.append(i)
        del made[:-50]
    else:
        number = made[i % len(made)]
        _check(kernels.find(f"soak {number}", "double"), number)


def run(cycles: int, show: Callable[[int, float | None], None]) -> list[tuple[int, float]]:
    """Resident memory (MB) after so many cycles, sampled; ``show`` hears of cycles and samples."""
    found = []
    made: list[int] = []
    every = max(cycles // SAMPLES, 1)
    for seed in range(ROBOTS_AT_ONCE):
        _robot(cycles + seed)
    for i in range(cycles):
        cycle(i, made)
        size = None
        if (i + 1) % every == 0:
            gc.collect()
            size = resident()
            found.append((i + 1, size))
        show(i + 1, size)
    return found


def main() -> int:
    """Print the samples; the exit code is 1 if memory grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100_000)
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120)
    columns = (*Progress.get_default_columns()[:-1], TimeElapsedColumn(), TimeRemainingColumn())
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Progress(*columns, console=console) as progress:
        os.environ |= {"PHISTAR_CACHE": folder, "PHISTAR_CACHE_SIZE": "8", "PHISTAR_TIER": "rolled"}
        task = progress.add_task("kernels", total=options.cycles)

        def show(done: int, size: float | None) -> None:
            progress.update(task, completed=done)
            if size is not None:
                spent = time.monotonic() - begin
                console.print(f"{done:>9} cycles  {size:8.1f} MB  {spent:6.0f} s")

        found = run(options.cycles, show)
    seconds = time.monotonic() - begin
    settled = [size for done, size in found if done >= WARM * options.cycles]
    growth = settled[-1] - settled[0]
    console.print(
        f"{options.cycles} cycles in {seconds:.0f} s; after the first {WARM:.0%} memory grew by "
        f"{growth:.1f} MB (at most {GROWTH:g})"
    )
    return 0 if growth <= GROWTH else 1


if __name__ == "__main__":
    raise SystemExit(main())
