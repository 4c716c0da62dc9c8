# SPDX-License-Identifier: BSD-3-Clause
"""``make bench`` and ``make bench-quick``: time everything, print tables, keep the numbers."""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import (
    casadi_gym,
    cases,
    contacts,
    counts,
    floors_page,
    growth,
    interop,
    inverse_kinematics,
    jax_backend,
    joint_physics,
    laws,
    loops,
    parallel,
    readme,
    report,
    results,
    roofline,
    starts,
    stepping,
    targets,
)
from benchmarks.cases import Cell
from benchmarks.results import Results
from benchmarks.runner import THREADS, Runner
from benchmarks.timing import duration
from phistar.errors import PhistarWarning


@dataclass(frozen=True)
class Limits:
    """Seconds: until the last cell starts, for reference robots, and those of ``Runner``."""

    last: float
    sweep: float
    budget: float
    main_budget: float
    peer_seconds: float


FULL = Limits(430.0, 30.0, 0.25, 1.0, 0.02)
QUICK = Limits(42.0, 4.0, 0.1, 0.25, 0.01)


def run(quick: bool, console: Console) -> Results:
    """Measure everything."""
    begin = time.perf_counter()
    limits = QUICK if quick else FULL
    found = Results("make bench-quick" if quick else "make bench")
    runner = Runner(limits.budget, limits.main_budget, limits.peer_seconds, begin + limits.last)
    first, rest = cases.plan(quick)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(first) + len(rest))

        def time_all(cells: Sequence[Cell]) -> None:
            for cell in cells:
                progress.update(task, description=str(cell))
                found.rows.append(runner.run(cell))
                if not console.is_terminal:
                    console.print(_line(found.rows[-1]), highlight=False)
                progress.advance(task)

        time_all(first)
        for what, step in _steps(found, limits, quick).items():
            progress.update(task, description=what)
            began = time.perf_counter()
            step()
            if not console.is_terminal:
                console.print(f"{what}: {time.perf_counter() - began:.0f} s", highlight=False)
        time_all(rest)
        progress.update(task, description="adapters to other packages")
        try:
            found.interop = interop.measure(quick)
            found.adapters = casadi_gym.measure(quick)
        except interop.DisagreementError as error:
            found.faults.append(str(error))
    found.faults += runner.faults
    found.verdicts = targets.verdicts(found)
    found.seconds = time.perf_counter() - begin
    return found


def _steps(found: Results, limits: Limits, quick: bool) -> dict[str, Callable[[], None]]:
    """What is measured besides cells, by its title."""

    def grow() -> None:
        os.environ[THREADS] = "1"
        rounds = 3 if quick else growth.ROUNDS
        codes = [(x, code) for code in ("final", "rolled") for x in cases.VECTORS]
        found.growth = [growth.measure(x, code, rounds=rounds) for x, code in codes]
        if not quick:
            derived = [(x, code) for code in ("final", "rolled") for x in growth.DERIVATIVES]
            found.growth += [growth.measure_derivatives(x, code) for x, code in derived]

    def start() -> None:
        found.starts = starts.all_first_calls(quick)

    def sweep() -> None:
        found.sweep = starts.sweep(limits.sweep, targets.ROLLED)

    def count() -> None:
        timed = dict.fromkeys((r.cell.robot, r.cell.quantity) for r in found.rows if r.ours)
        found.counts = [counts.count(*each) for each in timed]
        found.figures = [] if quick else counts.figures()

    def step() -> None:
        os.environ[THREADS] = "1"
        found.stepping, fault = stepping.measure(quick)
        found.faults += [fault] if fault else []

    def close_loops() -> None:
        os.environ[THREADS] = "1"
        found.loops, faults = loops.measure(limits.main_budget, limits.peer_seconds)
        found.loop_stepping, fault = loops.simulate_four_bars(quick)
        found.faults += [*faults, *([fault] if fault else [])]

    def touch() -> None:
        os.environ[THREADS] = "1"
        found.contacts, fault = contacts.measure(quick)
        found.faults += [fault] if fault else []

    def rub() -> None:
        os.environ[THREADS] = "1"
        found.joint_physics, fault = joint_physics.measure(quick)
        found.faults += [fault] if fault else []

    def roll_out() -> None:
        os.environ[THREADS] = "1"
        found.laws, faults = laws.measure(quick)
        found.faults += faults

    def reach() -> None:
        os.environ[THREADS] = "1"
        found.inverse_kinematics, fault = inverse_kinematics.measure(quick)
        found.faults += [fault] if fault else []

    def floors() -> None:
        os.environ[THREADS] = "1"
        seconds, batches = (0.1, (256,)) if quick else (0.3, roofline.BATCHES)
        found.roofline = roofline.measure(seconds, batches)

    def in_rounds() -> None:
        os.environ[THREADS] = "1"
        found.parallel, faults = parallel.measure(limits.main_budget)
        found.system = parallel.measure_system(quick)
        found.faults += faults

    return {
        "simulation of many robots": step,
        "floors of matrices": floors,
        "parallel schedules": in_rounds,
        "contacts": touch,
        "joint physics": rub,
        "closed loops": close_loops,
        "rollouts under laws": roll_out,
        "inverse kinematics": reach,
        "growth over chains": grow,
        "first results in new processes": start,
        "loops of reference robots": sweep,
        "operation counts": count,
    }


def _line(row: results.Row) -> str:
    if row.ours is None:
        return f"{row.cell}: left out, {row.why}"
    rivals = ", ".join(f"{r.name} {report.times(r.ratio.median)}" for r in row.rivals)
    time = f"{duration(row.ours.median)}{', ' if rivals else ''}{rivals}"
    return f"{row.cell}: {time}; {row.decision}"


def main() -> int:
    """Run; the exit code is 1 if a peer disagrees with us."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the main cells only, in a minute")
    parser.add_argument("--readme", action="store_true", help="write the table into the README")
    options = parser.parse_args()
    # The final shape of the code, and one thread unless a cell says otherwise.
    os.environ["PHISTAR_TIER"] = "wait"
    warnings.simplefilter("ignore", PhistarWarning)
    console = Console(width=None if sys.stdout.isatty() else 170)
    found = run(options.quick, console)
    report.show(found, console)
    jax_backend.show(console, options.quick)
    interop.show(console, found.interop)
    console.print(casadi_gym.table(found.adapters))
    path = results.write(found)
    console.print(f"written to {path}")
    if options.readme:
        readme.write(found)
        floors_page.write(found)
        console.print("README.md: table of speed written; docs/performance.md: its tables")
    return 1 if found.faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
