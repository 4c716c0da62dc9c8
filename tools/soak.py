# SPDX-License-Identifier: BSD-3-Clause
"""``make soak``: robots and small kernels made, run and dropped; memory watched.

First come kernels, while the process is small and has no free memory in which a leak would hide:
every tenth cycle compiles a new program, the others load one that was made before, and each
thousandth is a robot of its own through the public methods. After a tenth of the cycles, memory
must stay where it is, up to ``GROWTH`` for each cycle, whatever their number.

Then robots one after another, those of ../shared or random ones: each is loaded and asked for
kinematics, dynamics and linearizations, as a user would, straight lines in the background and all,
and dropped. At no time may memory be more than ``ABOVE`` over where it was after the first of them.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn, TimeRemainingColumn

import phistar
from phistar import settings
from phistar.backends.llvm.run import machine_kernel as kernels
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.scalar.graph import Graph, sin, sqrt
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled

WARM = 0.1
"""Part of the cycles after which memory counts."""
ABOVE = 300.0
"""Megabytes that robots which were dropped may leave behind, at most."""
MOST_JOINTS = 60
"""Coordinates of the robots, at most; single large ones would take most of the time."""
GROWTH = 200e-6
"""Megabytes that memory may grow by in each cycle afterwards; the smallest thing that could be left
behind, the code of a kernel, has 4000 bytes."""
SAMPLES = 20


def resident() -> float:
    """Megabytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def program(number: int) -> Unrolled:
    """A small program that no other number gives."""
    graph = Graph()
    x, y = graph.load("x", 0), graph.load("x", 1)
    value = sin(x * (1.0 + number)) + sqrt(y * y + 1.0) * float(number + 2)
    body = BasicBlock(graph, [Store("y", 0, "", value)])
    return Unrolled(Signature({"x": 2}, {"y": 1}), body)


def _check(kernel: kernels.MachineKernel | None, number: int) -> None:
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
        _check(kernels.compile_kernel(f"soak {i}", "double", "soak", lambda: program(i)), i)
        made.append(i)
        del made[:-50]
    else:
        number = made[i % len(made)]
        _check(kernels.load_cached(f"soak {number}", "double"), number)


def run(cycles: int, show: Callable[[int, float | None], None]) -> list[tuple[int, float]]:
    """Resident memory (MB) after so many cycles, sampled; ``show`` hears of cycles and samples."""
    found = []
    made: list[int] = []
    every = max(cycles // SAMPLES, 1)
    for i in range(cycles):
        cycle(i, made)
        size = None
        if (i + 1) % every == 0:
            gc.collect()
            size = resident()
            found.append((i + 1, size))
        show(i + 1, size)
    return found


def models(count: int) -> Iterator[Model]:
    """So many robots: of ../shared in random order, or made up where there is no such folder."""
    rng = np.random.default_rng(0)
    folder = settings.shared_folder(Path(__file__).parents[2] / "shared") / "robots"
    files = sorted(each for kind in ("urdf", "xml") for each in folder.rglob(f"*.{kind}"))
    rng.shuffle(files)  # type: ignore[arg-type]
    found = 0
    for file in files:
        try:
            model = phistar.load(file).model
        except phistar.errors.PhistarError:
            continue
        if 0 < model.nv <= MOST_JOINTS:
            found += 1
            yield model
        if found == count:
            return
    for seed in range(count - found):
        yield random_model(np.random.default_rng(seed), 5 + seed % 25, floating_base=seed % 2 > 0)


def ask(model: Model) -> None:
    """What a user may want of a robot; some robots have no answer to some questions."""
    robot = phistar.Robot(model)
    q, v = robot.neutral(), np.zeros(robot.nv)
    many = np.tile(q, (64, 1))
    for question in (
        lambda: robot.forward_dynamics(q, v, v),
        lambda: robot.linearize(q, v, v),
        lambda: robot.linearize_inverse(q, v, v),
        lambda: robot.center_of_mass(many),
        lambda: robot.frame_pose(many, robot.frame_names[-1]),
    ):
        with contextlib.suppress(phistar.errors.PhistarError):
            question()


def robots(count: int, seconds: float, say: Callable[[str], None]) -> bool:
    """Whether robots that were dropped give their memory back.

    Ends after so many seconds; robots that were not reached by then count as a failure.
    """
    begin, start, most, done = time.monotonic(), 0.0, 0.0, 0
    for model in models(count):
        ask(model)
        del model
        done += 1
        size = resident()
        start, most = start or size, max(most, size)
        if done % 20 == 0:
            say(f"{done:>9} robots  {size:8.1f} MB  {time.monotonic() - begin:6.0f} s")
        if time.monotonic() - begin > seconds:
            break
    say(
        f"{done} of {count} robots in {time.monotonic() - begin:.0f} s; memory was {start:.0f} MB "
        f"after the first, at most {most - start:.0f} MB above it (bound {ABOVE:g}), and "
        f"{resident() - start:.0f} MB at the end"
    )
    return done == count and most - start <= ABOVE


def main() -> int:
    """Print the samples; the exit code is 1 if memory grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=20_000)
    parser.add_argument("--robots", type=int, default=155)
    parser.add_argument("--seconds", type=float, default=1500, help="that robots may take")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 120)
    steady = kernels_alone(options.cycles, console)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PHISTAR_CACHE": folder, "PHISTAR_TIER": "auto"}
        del os.environ["PHISTAR_CACHE_SIZE"]
        warnings.simplefilter("ignore", phistar.errors.PhistarWarning)
        given_back = robots(options.robots, options.seconds, console.print)
    return 0 if steady and given_back else 1


def kernels_alone(cycles: int, console: Console) -> bool:
    """Whether memory stays where it is while kernels come and go."""
    columns = (*Progress.get_default_columns()[:-1], TimeElapsedColumn(), TimeRemainingColumn())
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Progress(*columns, console=console) as progress:
        os.environ |= {"PHISTAR_CACHE": folder, "PHISTAR_CACHE_SIZE": "8", "PHISTAR_TIER": "rolled"}
        task = progress.add_task("kernels", total=cycles)

        def show(done: int, size: float | None) -> None:
            progress.update(task, completed=done)
            if size is not None:
                spent = time.monotonic() - begin
                console.print(f"{done:>9} cycles  {size:8.1f} MB  {spent:6.0f} s")

        found = run(cycles, show)
    seconds = time.monotonic() - begin
    settled = [(done, size) for done, size in found if done >= WARM * cycles]
    growth = settled[-1][1] - settled[0][1]
    bound = GROWTH * (settled[-1][0] - settled[0][0])
    console.print(
        f"{cycles} cycles in {seconds:.0f} s; after the first {WARM:.0%} memory grew by "
        f"{growth:.2f} MB (at most {bound:.2f})"
    )
    return growth <= bound


if __name__ == "__main__":
    raise SystemExit(main())
