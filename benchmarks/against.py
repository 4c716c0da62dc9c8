# SPDX-License-Identifier: BSD-3-Clause
"""Speed of the working tree next to an older revision, both measured in the same run.

Each revision has some processes (``against_worker``). In a round each of them runs a slice of the
same cell, old new old new ..., the next round begins with new; so both see the same machine. The
best process of each revision counts: where its arrays happen to be in memory makes a process up to
a quarter slower, whatever the revision. The ratio old / new is taken per round, and its median and
quartiles are printed. Above 1 the working tree is faster.
Slices are timed in seconds of one processor, on one thread; first results by the clock on the wall.
Cells are those of the README's table, kinematics and energies, calls with forces, simulations, and
first results in new processes with an empty cache. Cells below ``LEAST`` are measured again, twice
as long and in new processes; if some stay below, the exit code is 1.

    python -m benchmarks.against HEAD~5            # about 6 minutes
    python -m benchmarks.against v0.3.0 --quick    # about 1 minute
    python -m benchmarks.against main --cells 'panda*single*'
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from benchmarks.against_worker import SINGLES
from benchmarks.cases import MAIN, QUANTITIES, robots_for
from benchmarks.readme import SHOWN
from benchmarks.timing import Ratio, duration

ROOT = Path(__file__).resolve().parent.parent
WORKER = Path(__file__).with_name("against_worker.py")
SIDES = ("old", "new")

LEAST = 0.97
"""Ratio old / new below which a cell counts as slower."""
SAME = 1e-9
"""Relative difference of results up to which both revisions compute the same."""
SLICE = 0.01
"""Seconds of one slice of one worker."""
ROUNDS = (4, 100)
"""Rounds of a cell, at least and at most."""

FURTHER: Mapping[str, Sequence[str]] = {
    "bias_force": ("$q", "$v"),
    "coriolis_matrix": ("$q", "$v"),
    "frame_pose": ("$q", "$frame"),
    "jacobian": ("$q", "$frame"),
    "frame_velocity": ("$q", "$v", "$frame"),
    "center_of_mass": ("$q",),
    "momentum": ("$q", "$v"),
    "kinetic_energy": ("$q", "$v"),
    "integrate": ("$q", "$v"),
    "regressor": ("$q", "$v", "$x"),
    "operational_inertia": ("$q", "$frames"),
}
"""Methods beside the README's table, with their arguments (see ``against_worker``)."""
FURTHER_ROBOTS = ("panda", "quadruped")
FORCED = ("inverse_dynamics", "forward_dynamics")
STEPS = 50
STEPPED = ("panda", "quadruped")
FIRST_ROBOTS = ("panda", "humanoid")
FIRST_METHODS = ("inverse_dynamics", "linearize")


@dataclass(frozen=True)
class Limits:
    """Seconds of all cells and of one; workers per revision; starts for a first result."""

    total: float
    cell: float
    workers: int
    starts: int


FULL = Limits(290.0, 2.0, 5, 8)
QUICK = Limits(40.0, 0.8, 4, 4)


@dataclass(frozen=True)
class Cell:
    """Something to time.

    Attributes:
        robot, method: What is called.
        batch: Samples in a call; 1 is a sample without batch axis.
        arguments, options: See ``against_worker``.
        samples: In a run of the worker.
        note: What else is special, for the name.
    """

    robot: str
    method: str
    batch: int
    arguments: Sequence[Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    samples: int = 1
    note: str = ""

    def __str__(self) -> str:
        size = "single" if self.batch == 1 else f"batch {self.batch}"
        return f"{self.robot}, {self.method}{self.note}, {size}"


@dataclass(frozen=True)
class Row:
    """What was found about a cell.

    Attributes:
        name: Of the cell.
        old, new: Median seconds, per sample or per start.
        ratio: old / new; None if the cell was not measured.
        why: Why it was not.
        lost: Whether it was not because the working tree cannot run it and the old revision can.
    """

    name: str
    old: float = 0.0
    new: float = 0.0
    ratio: Ratio | None = None
    why: str = ""
    lost: bool = False

    @property
    def slow(self) -> bool:
        """Whether the working tree is slower than allowed, or cannot run it any more.

        Slower are both the median of the ratios and the best round of all against the best.
        """
        if self.ratio is None:
            return self.lost
        return max(self.ratio.median, self.ratio.best) < LEAST


# -- what is timed


def cells(quick: bool = False) -> list[Cell]:
    """Cells in the order in which they are timed; those that matter most come first."""
    found = []
    third = {"q": "$q", "v": "$v", "vdot": "$x", "tau": "$x"}
    for robot in SHOWN:
        for method, names in QUANTITIES.items():
            if robot in robots_for(method):
                found += _both(robot, method, [third[name] for name in names])
    for robot in STEPPED:
        stepping: dict[str, Any] = {
            **{"dt": 1e-3, "steps": STEPS, "threads": 1, "progress": False},
            # Revisions before joint physics simulate without damping and limits.
            "passive?": False,
        }
        note, samples = f" {STEPS} steps", MAIN * STEPS
        found.append(Cell(robot, "simulate", MAIN, ("$q", "$v"), stepping, samples, note))
    for robot in FURTHER_ROBOTS:
        for method, arguments in FURTHER.items():
            found += _both(robot, method, arguments)
        for method in FORCED:
            options = {"forces": "$forces"}
            found += _both(robot, method, ("$q", "$v", "$x"), options, " with forces")
    return [cell for cell in found if _is_quick(cell)] if quick else found


def _both(
    robot: str,
    method: str,
    arguments: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    note: str = "",
) -> list[Cell]:
    rest = (arguments, options or {})
    return [
        Cell(robot, method, MAIN, *rest, MAIN, note),
        Cell(robot, method, 1, *rest, SINGLES, note),
    ]


def _is_quick(cell: Cell) -> bool:
    if cell.robot == "panda":
        wanted = (*QUANTITIES, "simulate", "jacobian", "kinetic_energy")
        return cell.method in wanted and (not cell.note or cell.method != "forward_dynamics")
    return cell.robot == "quadruped" and cell.method in FORCED and not cell.note


def starts(quick: bool = False) -> list[tuple[str, str]]:
    """Robots and methods whose first results are timed."""
    robots = FIRST_ROBOTS[:1] if quick else FIRST_ROBOTS
    return [(robot, method) for robot in robots for method in FIRST_METHODS]


def start_name(robot: str, method: str) -> str:
    """The cell of a first result."""
    return f"{robot}, first {method}"


# -- statistics


def alternated(rounds: int) -> Iterator[tuple[str, str]]:
    """Which side goes first in each round: old new, new old, old new, ..."""
    for number in range(rounds):
        yield SIDES if number % 2 == 0 else SIDES[::-1]


def round_count(round_seconds: float, seconds: float) -> int:
    """Rounds that fit into some seconds; an even number, so that both sides begin as often."""
    least, most = ROUNDS
    return max(least, min(most, int(seconds / round_seconds))) // 2 * 2


def row_of(name: str, times: Mapping[str, Sequence[float]], samples: int = 1) -> Row:
    """A row from the seconds of both sides, round by round."""
    ratio = Ratio.of(times["new"], times["old"])
    old, new = (_median(times[side]) / samples for side in SIDES)
    return Row(name, old, new, ratio)


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def line(row: Row) -> str:
    """A row of the table."""
    if row.ratio is None:
        return f"{row.name:52} {row.why}"
    spread = f"({row.ratio.low:.3f} to {row.ratio.high:.3f})"
    times = f"{duration(row.old):>9} {duration(row.new):>9}"
    return f"{row.name:52} {times} {row.ratio.median:7.3f} {spread}"


def verdict(rows: Iterable[Row]) -> tuple[list[str], int]:
    """The last lines of the report, and the exit code."""
    slow = [row for row in rows if row.slow]
    if not slow:
        return [f"no cell below {LEAST}"], 0
    return [f"{len(slow)} cells below {LEAST}:", *(f"  {line(row)}" for row in slow)], 1


# -- processes


@dataclass(frozen=True)
class Side:
    """One revision: its sources and an environment in which they run."""

    source: Path
    environment: Mapping[str, str]

    def command(self, *arguments: str) -> list[str]:
        """What starts a worker; its directory is not put on the path."""
        return [sys.executable, "-P", str(WORKER), *arguments]


def side(source: Path, folder: Path, name: str) -> Side:
    """A revision with a cache and compiled bytecode of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PHISTAR_", "PYTHON"))}
    return Side(
        source,
        {
            **kept,
            "PYTHONPATH": str(source),
            "PYTHONPYCACHEPREFIX": str(folder / f"{name}-bytecode"),
            "PHISTAR_CACHE": str(folder / f"{name}-cache"),
            "PHISTAR_TIER": "wait",
            "PHISTAR_THREADS": "1",
        },
    )


class Worker:
    """A process that times cells of one revision."""

    def __init__(self, which: Side) -> None:
        # A session of its own: Ctrl-C is for us, and we end it.
        self.process = subprocess.Popen(
            which.command(),
            env=which.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        used = Path(self.receive()["file"])
        if not used.is_relative_to(which.source):
            self.close()
            raise RuntimeError(f"a worker for {which.source} runs {used}")

    def send(self, **order: Any) -> None:
        """Give an order."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """The answer to the last order."""
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        if not text:
            raise RuntimeError(f"a worker ended with exit code {self.process.wait()}")
        answer: dict[str, Any] = json.loads(text)
        return answer

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


Couple = Mapping[str, Worker]
"""A worker per revision, by side."""


@contextmanager
def workers(sides: Mapping[str, Side], count: int) -> Iterator[list[Couple]]:
    """So many couples of workers.

    The speed of a process depends on where its memory happens to be; of several one is lucky.
    """
    with ExitStack() as stack:
        found: list[Couple] = []
        for order in alternated(count):
            couple: dict[str, Worker] = {}
            for name in order:
                couple[name] = Worker(sides[name])
                stack.callback(couple[name].close)
            found.append(couple)
        yield found


@contextmanager
def revision(rev: str, folder: Path) -> Iterator[Path]:
    """A temporary git worktree of a revision; its path."""
    path = folder / "revision"
    _git("worktree", "add", "--quiet", "--detach", str(path), rev)
    try:
        yield path
    finally:
        _git("worktree", "remove", "--force", str(path))


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(ROOT), *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.strip()


# -- measurements


def measured(cell: Cell, couples: Sequence[Couple], seconds: float, deadline: float) -> Row:
    """Time a cell in all workers."""
    name = str(cell)
    if time.perf_counter() > deadline:
        return Row(name, why="out of time")
    # The first couple compiles, the others find the code in their caches.
    ready = _prepared(cell, couples[:1])
    for which, answer in ready:
        if "missing" in answer:
            why = f"{which} cannot run it: {answer['missing']}"
            return Row(name, why=why, lost=which == "new")
    old, new = (answer["value"] for _, answer in sorted(ready, key=lambda x: SIDES.index(x[0])))
    if abs(old - new) > SAME * abs(old):
        print(f"{name}: results differ, {old!r} and {new!r}", flush=True)
    _prepared(cell, couples[1:])
    slowest = max(answer["seconds"] for _, answer in ready)
    round_seconds = 2 * len(couples) * max(SLICE, slowest)
    times: dict[str, list[float]] = {which: [] for which in SIDES}
    for order in alternated(round_count(round_seconds, seconds)):
        best = dict.fromkeys(SIDES, math.inf)
        for couple in couples:
            for which in order:
                couple[which].send(do="time", seconds=SLICE)
                best[which] = min(best[which], couple[which].receive()["seconds"])
        for which in SIDES:
            times[which].append(best[which])
    return row_of(name, times, cell.samples)


def _prepared(cell: Cell, couples: Sequence[Couple]) -> list[tuple[str, dict[str, Any]]]:
    """What workers say who prepare a cell at the same time, by side."""
    names = ("robot", "method", "batch", "arguments", "options")
    order = {name: getattr(cell, name) for name in names}
    each = [(which, worker) for couple in couples for which, worker in couple.items()]
    for _, worker in each:
        worker.send(do="prepare", cell=order)
    return [(which, worker.receive()) for which, worker in each]


def first_results(
    robot: str, method: str, sides: Mapping[str, Side], pairs: int, deadline: float
) -> list[Row]:
    """Time to load and time to the first result, each in a new process with an empty cache."""
    names = {"call": start_name(robot, method)}
    if method == FIRST_METHODS[0]:
        names["load"] = f"{robot}, load"
    if time.perf_counter() > deadline:
        return [Row(name, why="out of time") for name in names.values()]
    found: dict[str, dict[str, list[float]]] = {key: {s: [] for s in SIDES} for key in names}
    for pair in alternated(pairs):
        for which in pair:
            answer = _first(robot, method, sides[which])
            if answer is None:
                why = f"{which} cannot run it"
                return [Row(name, why=why, lost=which == "new") for name in names.values()]
            for key in names:
                found[key][which].append(answer[key])
    return [row_of(name, found[key]) for key, name in names.items()]


def _first(robot: str, method: str, which: Side) -> dict[str, float] | None:
    with tempfile.TemporaryDirectory(prefix="phistar-against-") as cache:
        done = subprocess.run(
            which.command("first", robot, method),
            env={**which.environment, "PHISTAR_CACHE": cache, "PHISTAR_TIER": "auto"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    found: dict[str, float] | None = json.loads(done.stdout) if not done.returncode else None
    return found


def run(sides: Mapping[str, Side], limits: Limits, quick: bool, pattern: str) -> list[Row]:
    """Measure everything, and what is slow once more."""
    begin = time.perf_counter()
    wanted = [cell for cell in cells(quick) if fnmatch(str(cell), pattern)]
    rows: dict[str, Row] = {}
    slow: list[Cell] = []
    with workers(sides, limits.workers) as couples:
        for number, cell in enumerate(wanted):
            left = begin + limits.total - time.perf_counter()
            seconds = min(limits.cell, max(left, 0.0) / (len(wanted) - number))
            row = measured(cell, couples, seconds, begin + limits.total)
            rows[row.name] = row
            print(line(row), flush=True)
            if row.slow and row.ratio:
                slow.append(cell)
    deadline = time.perf_counter() + limits.total / 2
    wanted_starts = [each for each in starts(quick) if fnmatch(start_name(*each), pattern)]
    for method in {method for _, method in wanted_starts}:
        for which in SIDES:
            # Python compiles the modules of a first call to bytecode.
            _first(FIRST_ROBOTS[0], method, sides[which])
    for robot, method in wanted_starts:
        for longer in (1, 2):
            found = first_results(robot, method, sides, longer * limits.starts, deadline)
            rows |= {row.name: row for row in found}
            print("\n".join(map(line, found)), flush=True)
            if not any(row.slow for row in found):
                break
    if slow:
        deadline = time.perf_counter() + limits.total / 2
        print(f"\nbelow {LEAST}, once more, twice as long, in new processes:")
        with workers(sides, 2 * limits.workers) as couples:
            for cell in slow:
                row = measured(cell, couples, 2 * limits.cell, deadline)
                if row.ratio:
                    rows[row.name] = row
                print(line(row), flush=True)
    return list(rows.values())


def main() -> int:
    """Compare; the number of the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks.against", description=__doc__.splitlines()[0])
    parser.add_argument("rev", help="the older revision, as git names it")
    parser.add_argument("--quick", action="store_true", help="about a minute, fewer cells")
    parser.add_argument("--cells", default="*", help="only cells whose names match, as file names")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="phistar-against-")))
        old = stack.enter_context(revision(options.rev, folder))
        commits = _git("rev-parse", "--short", options.rev), _git("describe", "--always", "--dirty")
        print(f"old: {commits[0]} ({options.rev}); new: {commits[1]}, {ROOT}")
        print(f"{'cell':52} {'old':>9} {'new':>9} {'old/new':>7} (quartiles)", flush=True)
        sides = {
            "old": side(old / "src", folder, "old"),
            "new": side(ROOT / "src", folder, "new"),
        }
        limits = QUICK if options.quick else FULL
        rows = run(sides, limits, options.quick, options.cells)
    lines, code = verdict(rows)
    left = [row.name for row in rows if row.ratio is None and not row.lost]
    print(f"\n{len(rows) - len(left)} cells measured, {len(left)} not")
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; the worktree and the workers are gone")
