# SPDX-License-Identifier: BSD-3-Clause
"""``make robots``: load every reference robot and print how it agrees with its golden values.

Nearly all of the time goes into machine code for each robot, so each processor takes robots.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.helpers import SHARED
from tools.golden import TOLERANCE, Outcome, compare, golden_files


def _row(outcome: Outcome, folder: Path) -> tuple[str, ...]:
    worst = max(outcome.errors.values(), default=float("nan"))
    verdict = "[green]agrees" if outcome.agrees else "[red]" + "; ".join(outcome.faults)
    verdict += f" [dim]({'; '.join(outcome.notes)})" if outcome.notes else ""
    name = str(outcome.path.relative_to(folder))
    singular = str(outcome.singular) if outcome.singular else ""
    sizes = str(outcome.nq), str(outcome.nv), str(outcome.warnings)
    return name, *sizes, singular, f"{worst:.1e}", verdict


def _processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _outcomes(files: list[Path], jobs: int, console: Console) -> list[Outcome]:
    """Of all files, in their order, from so many processes."""
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        results = pool.imap(compare, files)
        return list(track(results, "comparing", total=len(files), console=console))


def main() -> int:
    """Print the table; the exit code is 1 if a robot disagrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=SHARED / "robots")
    parser.add_argument("--jobs", type=int, default=_processors(), help="processes")
    parser.add_argument("--match", default="", help="only files whose path contains this")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 200)
    files = [p for p in golden_files(options.folder) if options.match in str(p)]
    if not files:
        console.print(f"no robots with golden values below {options.folder}")
        return 1
    begin = time.monotonic()
    outcomes = _outcomes(files, min(options.jobs, len(files)), console)
    table = Table("robot", "nq", "nv", "warnings", "singular", "worst error", "outcome")
    for outcome in outcomes:
        table.add_row(*_row(outcome, options.folder))
    console.print(table)
    agreeing = sum(outcome.agrees for outcome in outcomes)
    console.print(
        f"{agreeing} of {len(outcomes)} robots agree with their golden values "
        f"(relative {TOLERANCE:g} in poses, Jacobians, mass matrices, torques, accelerations), "
        f"{time.monotonic() - begin:.0f} s"
    )
    return 0 if agreeing == len(outcomes) else 1


if __name__ == "__main__":
    raise SystemExit(main())
