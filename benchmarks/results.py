# SPDX-License-Identifier: BSD-3-Clause
"""What a run found out, and its JSON file."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.casadi_gym import AdapterRow
from benchmarks.cases import Cell
from benchmarks.counts import Count, Figure
from benchmarks.growth import Growth
from benchmarks.interop import InteropRow
from benchmarks.inverse_kinematics import InverseKinematicsRow
from benchmarks.laws import LawRow
from benchmarks.loops import LoopRow
from benchmarks.parallel import ParallelRow, SystemGrowth
from benchmarks.roofline import Dot
from benchmarks.starts import Start, Sweep
from benchmarks.stepping import Stepping
from benchmarks.targets import Verdict
from benchmarks.timing import Ratio, Timing

SCHEMA = 1
"""Number of the layout of the file."""

FOLDER = Path(__file__).parent / "results"
PACKAGES = ("phistar", "numpy", "llvmlite", "pin", "mujoco")


@dataclass(frozen=True)
class Rival:
    """What ours is compared with in a cell.

    Attributes:
        name: ``"pinocchio"``, ``"mujoco"`` or ``"one thread"`` (ourselves).
        how: The fastest of its ways.
        samples: In a run.
        timing: Its seconds a sample.
        ratio: How many times faster ours is.
    """

    name: str
    how: str
    samples: int
    timing: Timing
    ratio: Ratio


@dataclass(frozen=True)
class Row:
    """What became of a cell.

    Attributes:
        cell: What was to be timed.
        ours: Seconds a sample; None if it was left out.
        rivals: What it was compared with.
        missing: Why a rival is not there, by its name.
        why: Why the cell was left out.
        decision: How it was computed, and why so.
    """

    cell: Cell
    ours: Timing | None = None
    rivals: tuple[Rival, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)
    why: str = ""
    decision: str = ""

    def rival(self, name: str) -> Rival | None:
        """A rival by name, if it was run."""
        return next((rival for rival in self.rivals if rival.name == name), None)


@dataclass
class Results:
    """All of a run."""

    command: str
    machine: dict[str, Any] = field(default_factory=lambda: machine())
    rows: list[Row] = field(default_factory=list)
    counts: list[Count] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    sweep: Sweep | None = None
    stepping: Stepping | None = None
    loops: list[LoopRow] = field(default_factory=list)
    loop_stepping: Stepping | None = None
    contacts: Stepping | None = None
    joint_physics: Stepping | None = None
    inverse_kinematics: InverseKinematicsRow | None = None
    laws: list[LawRow] = field(default_factory=list)
    parallel: list[ParallelRow] = field(default_factory=list)
    system: SystemGrowth | None = None
    roofline: list[Dot] = field(default_factory=list)
    interop: list[InteropRow] = field(default_factory=list)
    adapters: list[AdapterRow] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def row(self, cell: Cell) -> Row | None:
        """The row of a cell, if it was timed."""
        return next((r for r in self.rows if r.cell == cell and r.ours is not None), None)

    def loop_row(self, robot: str, quantity: str) -> LoopRow | None:
        """The row of a robot with loops, if it was timed."""
        found = (r for r in self.loops if (r.robot, r.quantity) == (robot, quantity))
        return next(found, None)

    def law_row(self, robot: str, law: str) -> LawRow | None:
        """The row of a robot under a law, if it was timed."""
        return next((r for r in self.laws if (r.robot, r.law) == (robot, law)), None)

    def count(self, robot: str, quantity: str) -> Count | None:
        """Operations of a program on a robot."""
        found = (c for c in self.counts if (c.robot, c.quantity) == (robot, quantity))
        return next(found, None)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"schema": SCHEMA, **asdict(self)}


def write(results: Results, folder: Path = FOLDER) -> Path:
    """Write the JSON file, named by the moment; gives its path."""
    folder.mkdir(parents=True, exist_ok=True)
    kind = "quick" if "quick" in results.command else "full"
    path = folder / f"{results.machine['when'].replace(':', '')}-{kind}.json"
    path.write_text(json.dumps(results.to_dict(), indent=1) + "\n", encoding="utf-8")
    return path


def machine() -> dict[str, Any]:
    """Where and with what this runs."""
    return {
        "when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def processor(listing: Sequence[str] | None = None) -> str:
    """The processor's name, and its widest vectors where ``lscpu`` tells."""
    lines = _lscpu() if listing is None else listing
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    name = fields.get("Model name", "").strip() or platform.processor() or platform.machine()
    flags = fields.get("Flags", "").split()
    widest = next((text for flag, text in _WIDEST.items() if flag in flags), "")
    return f"{name}, {widest}" if widest else name


_WIDEST = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX"}


def _lscpu() -> Sequence[str]:
    try:
        done = subprocess.run(["lscpu"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ()
    return done.stdout.splitlines()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
