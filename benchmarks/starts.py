# SPDX-License-Identifier: BSD-3-Clause
"""How long the first result takes: with an empty cache, with loops alone, from a full cache.

Each is measured in a process of its own, best of some. Imports are counted apart. Modules come as
bytecode, as they do once a package is installed, whatever the environment says.
"""

from __future__ import annotations

import atexit
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks import cases

SHARED = Path(
    os.environ.get("PHISTAR_SHARED", Path(__file__).resolve().parent.parent.parent / "shared")
)
"""Reference robots beside the repository, as in the tests."""

TRIES = 2

_FIRST = """
import json, sys, time, warnings
start = time.perf_counter()
import numpy
import phistar
imported = time.perf_counter()
import llvmlite.binding
import phistar.backends.to_llvm
engine = time.perf_counter()
warnings.simplefilter("ignore")
robot = phistar.load(sys.argv[1]).tree
q, v = robot.neutral(), numpy.zeros(robot.nv)
loaded = time.perf_counter()
getattr(robot, sys.argv[2])(q, v, v)
done = time.perf_counter()
print(json.dumps([imported - start, engine - imported, loaded - engine, done - loaded]))
"""

_SWEEP = """
import json, sys, time, warnings
import phistar
from phistar.backends import Tuning, VectorProgram, get
from phistar.compile import cheapest_equivalent, kernel
warnings.simplefilter("ignore")
limit, budget, *files = sys.argv[1:]
names = ("inverse_dynamics", "forward_dynamics")
tuning = Tuning(regroup_inertia=True, shape="rolled")

def compiled(model, name):
    start = time.process_time()
    schedule = kernel(cheapest_equivalent(name)).schedule
    code = get("llvm").build(VectorProgram(schedule, model, tuning=tuning))
    if model.bodies:
        code.tiers().kernel
    return time.process_time() - start

for name in names:
    compiled(phistar.load("panda").model, name)
end = time.perf_counter() + float(budget)
for path in files:
    if time.perf_counter() > end:
        break
    model = phistar.load(path).model
    for name in names:
        seconds = compiled(model, name)
        for _ in range(2):
            if seconds > float(limit):
                seconds = min(seconds, compiled(model, name))
        print(json.dumps([path, name, seconds]), flush=True)
"""


@dataclass(frozen=True)
class Start:
    """Seconds to the first result in a new process.

    Attributes:
        robot, quantity: What is computed.
        mode: ``"cold"`` (nothing was ever compiled), ``"rolled"`` (the same, with loops over links
            alone) or ``"cached"``.
        imports: ``import phistar``, NumPy included.
        engine: The modules that the first call would import.
        load: Reading the robot.
        call: The first call, all else being there.
    """

    robot: str
    quantity: str
    mode: str
    imports: float
    engine: float
    load: float
    call: float

    @property
    def after_import(self) -> float:
        """From ``import phistar`` to the result."""
        return self.engine + self.load + self.call


def first_calls(robot: str, quantity: str, tries: int = TRIES) -> list[Start]:
    """Cold, rolled and cached, the best of some tries each."""
    found: dict[str, list[Start]] = {"cold": [], "rolled": [], "cached": []}
    for _ in range(tries):
        with tempfile.TemporaryDirectory(prefix="phistar-bench-") as folder:
            for mode in ("cold", "cached"):
                found[mode].append(_first(robot, quantity, mode, folder, "auto"))
        with tempfile.TemporaryDirectory(prefix="phistar-bench-") as folder:
            found["rolled"].append(_first(robot, quantity, "rolled", folder, "rolled"))
    return [min(starts, key=lambda start: start.call) for starts in found.values()]


@cache
def _bytecode() -> Mapping[str, str]:
    """An environment in which all modules of a first call have been compiled by Python before."""
    folder = tempfile.mkdtemp(prefix="phistar-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "PYTHONPYCACHEPREFIX": folder}
    command = [sys.executable, "-c", _FIRST, cases.ARMS[0], cases.VECTORS[0]]
    off = {"PHISTAR_CACHE": "off", "PHISTAR_TIER": "rolled"}
    subprocess.run(command, env={**environment, **off}, stdout=subprocess.PIPE, check=True)
    return environment


def _first(robot: str, quantity: str, mode: str, folder: str, tier: str) -> Start:
    settings = {"PHISTAR_CACHE": folder, "PHISTAR_TIER": tier}
    (line,) = _run(_FIRST, [robot, quantity], settings)
    return Start(robot, quantity, mode, *json.loads(line))


def _run(script: str, arguments: list[str], settings: Mapping[str, str]) -> list[str]:
    """The lines that a script prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**_bytecode(), **settings},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@dataclass(frozen=True)
class Sweep:
    """Seconds of the processor to compile loops, over reference robots, most joints first.

    Attributes:
        robots: How many were compiled.
        of: How many there are.
        median, longest: Seconds, over robots, inverse and forward dynamics.
        worst: The file and the program that took longest.
    """

    robots: int
    of: int
    median: float
    longest: float
    worst: str


def sweep(budget: float, limit: float) -> Sweep | None:
    """Compile loops for reference robots; None if they are not there.

    Args:
        budget: Seconds.
        limit: Above this a time is measured twice more, and the best counts.
    """
    index = SHARED / "robots" / "index.csv"
    if not index.is_file():
        return None
    with index.open(newline="", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if (SHARED / row["path"]).is_file()]
    rows.sort(key=lambda row: -float(row["nv"] or 0))
    files = [str(SHARED / row["path"]) for row in rows]
    settings = {"PHISTAR_CACHE": "off"}
    found = [json.loads(line) for line in _run(_SWEEP, [str(limit), str(budget), *files], settings)]
    return _summary(found, len(files))


def _summary(found: list[tuple[str, str, float]], of: int) -> Sweep:
    path, name, longest = max(found, key=lambda each: each[2])
    median = statistics.median(seconds for _, _, seconds in found)
    count = len({path for path, _, _ in found})
    return Sweep(count, of, median, longest, f"{Path(path).name}, {name}")


def all_first_calls(quick: bool) -> list[Start]:
    """For the bundled robots."""
    if quick:
        return first_calls(cases.ARMS[-1], cases.VECTORS[0], 1)
    return [s for r in cases.ARMS for x in cases.VECTORS for s in first_calls(r, x)]
