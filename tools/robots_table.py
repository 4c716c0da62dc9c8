# SPDX-License-Identifier: BSD-3-Clause
"""``make robots``: load every reference robot and print how it agrees with its golden values."""

from __future__ import annotations

import argparse
import sys
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


def main() -> int:
    """Print the table; the exit code is 1 if a robot disagrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=SHARED / "robots")
    parser.add_argument("--match", default="", help="only files whose path contains this")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 200)
    files = [p for p in golden_files(options.folder) if options.match in str(p)]
    if not files:
        console.print(f"no robots with golden values below {options.folder}")
        return 1
    outcomes = [compare(path) for path in track(files, "loading", console=console)]
    table = Table("robot", "nq", "nv", "warnings", "singular", "worst error", "outcome")
    for outcome in outcomes:
        table.add_row(*_row(outcome, options.folder))
    console.print(table)
    agreeing = sum(outcome.agrees for outcome in outcomes)
    console.print(
        f"{agreeing} of {len(outcomes)} robots agree with their golden values "
        f"(relative {TOLERANCE:g} in poses, Jacobians, mass matrices, torques, accelerations)"
    )
    return 0 if agreeing == len(outcomes) else 1


if __name__ == "__main__":
    raise SystemExit(main())
