# SPDX-License-Identifier: BSD-3-Clause
"""Times calls of one revision of phistar, on orders that come as JSON lines.

``benchmarks.against`` starts this file once per revision, with that revision's sources on
PYTHONPATH. Older revisions have to run it, so it uses public names of phistar alone and no other
module of this repository.

Orders and answers, one line each:

    {"do": "prepare", "cell": {...}}  ->  {"seconds": ..., "value": ...} or {"missing": "reason"}
    {"do": "time", "seconds": 0.05}   ->  {"seconds": ...}: of one run, the best of some

A cell has ``robot``, ``method``, ``arguments``, ``options`` and ``batch``. Arguments and options
that begin with ``$`` stand for arrays and names of the robot: ``$q``, ``$v``, ``$x``, ``$frame``,
``$forces``. An option that ends with ``?`` is left out where the method does not have it. A batch
of 1 stands for ``SINGLES`` samples that are given one by one.

``against_worker.py first ROBOT METHOD`` prints instead the seconds to load a robot and to get the
first result of a method with joint vectors as arguments; imports are not counted.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np

import phistar

SINGLES = 64
"""Samples of a run in which they are given one by one."""
RUNS = 3
"""Timed runs in a slice; the best one counts."""
WARM_UP = 3
"""Runs before anything is timed."""
COPIES = 5
"""Arrays for inputs and results that slices of a batch use in turn: how fast a batch is depends by
up to a quarter on the pages of memory that they happen to have."""
LARGE = 8 << 20
"""Bytes of a result beyond which there is one copy: no cache holds it anyway."""

Act = Callable[[], object]

ALL = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else frozenset[int]()
ONE = frozenset(sorted(ALL)[-1:])
"""Processors for compilation, and the one on which all workers time in turn: its neighbours may
have more or less to do than those of another."""


def pin(processors: Set[int]) -> None:
    """Stay on these processors, where the system can be told."""
    if processors:
        os.sched_setaffinity(0, processors)


@lru_cache(maxsize=1)
def load_robot(name: str) -> phistar.Robot:
    """A bundled robot, or ``chainN``: N links whose joints turn about x, y, z in turn."""
    if name.startswith("chain"):
        return phistar.robots.chain(int(name.removeprefix("chain")), axes="xyz")
    return phistar.load(name)


def values(robot: phistar.Robot, batch: int) -> dict[str, Any]:
    """What ``$`` names stand for; arrays (batch, n)."""
    rng = np.random.default_rng(0)
    frame = robot.frame_names[-1]
    return {
        "q": robot.random_configuration(rng, batch),
        "v": 0.3 * rng.normal(size=(batch, robot.nv)),
        "x": rng.normal(size=(batch, robot.nv)),
        "frame": frame,
        "frames": [frame],
        "forces": {frame: rng.normal(size=6)},
    }


def options_of(method: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by their names in this revision; ``name?`` is left out where it is unknown."""
    known = signature(method).parameters
    return {
        name.removesuffix("?"): value
        for name, value in options.items()
        if not name.endswith("?") or name.removesuffix("?") in known
    }


def prepared(cell: Mapping[str, Any]) -> Act:
    """A run of a cell: one call with a batch, or calls with one sample after the other."""
    robot = load_robot(cell["robot"])
    method = getattr(robot, cell["method"])
    single = cell["batch"] == 1
    known = values(robot, SINGLES if single else cell["batch"])
    chosen = options_of(method, cell["options"])

    def given(wanted: Any, row: int | None) -> Any:
        if not (isinstance(wanted, str) and wanted.startswith("$")):
            return wanted
        found = known[wanted[1:]]
        return found[row] if isinstance(found, np.ndarray) and row is not None else found

    def call(row: int | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        arguments = tuple(given(each, row) for each in cell["arguments"])
        return arguments, {name: given(each, row) for name, each in chosen.items()}

    if not single:
        arguments, options = call(None)
        return lambda: method(*arguments, **options)
    calls = [call(row) for row in range(SINGLES)]
    if not chosen:
        plain = [arguments for arguments, _ in calls]
        return lambda: [method(*arguments) for arguments in plain]
    return lambda: [method(*arguments, **options) for arguments, options in calls]


def arrays(result: Any) -> Iterator[np.ndarray[Any, Any]]:
    """All arrays of a result."""
    if isinstance(result, np.ndarray | np.floating):
        yield np.asarray(result)
    elif isinstance(result, list | tuple):
        for each in result:
            yield from arrays(each)
    elif isinstance(result, Mapping):
        yield from arrays(list(result.values()))
    elif hasattr(result, "__dict__"):
        yield from arrays([v for v in vars(result).values() if isinstance(v, np.ndarray)])


class Worker:
    """Follows orders on one cell at a time."""

    def __init__(self) -> None:
        self._acts: Sequence[Act] = ()
        self._turn = 0
        self._seconds = 0.0
        self._held: deque[object] = deque(maxlen=COPIES)

    def prepare(self, cell: Mapping[str, Any]) -> dict[str, Any]:
        """Compile a cell and see how long it takes; or say why it cannot be run."""
        self._acts = ()
        self._held.clear()
        pin(ALL)
        try:
            acts = [prepared(cell)]
            result = acts[0]()
            found = list(arrays(result))
            value = float(sum(np.abs(x).sum() for x in found))
            for _ in range(WARM_UP):
                acts[0]()
        except Exception as error:
            # Whatever an older revision does not have, or does otherwise.
            return {"missing": f"{type(error).__name__}: {error}".splitlines()[0][:120]}
        if cell["batch"] > 1 and sum(x.nbytes for x in found) <= LARGE:
            acts += [prepared(cell) for _ in range(COPIES - 1)]
        self._acts = acts
        self._seconds = min(self._run(acts[0], 1) for _ in range(RUNS))
        return {"seconds": self._seconds, "value": value}

    def time(self, seconds: float) -> dict[str, float]:
        """Seconds of one run, the best of some groups of runs that take so long together.

        Each slice has other arrays for inputs and results than those before.
        """
        pin(ONE)
        self._turn += 1
        act = self._acts[self._turn % len(self._acts)]
        if len(self._acts) > 1:
            self._held.append(act())
        repeats = max(1, int(seconds / (RUNS * self._seconds)))
        groups = RUNS if RUNS * self._seconds <= 2 * seconds else 1
        return {"seconds": min(self._run(act, repeats) for _ in range(groups)) / repeats}

    def _run(self, act: Act, repeats: int) -> float:
        """Seconds of the processor: those in which it works for others do not count."""
        start = time.process_time()
        for _ in range(repeats):
            act()
        return time.process_time() - start


def serve() -> None:
    """Answer orders until there are none."""
    worker = Worker()
    gc.disable()
    print(json.dumps({"file": phistar.__file__}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "prepare":
            answer: Mapping[str, Any] = worker.prepare(order["cell"])
            gc.collect()
        else:
            answer = worker.time(order["seconds"])
        print(json.dumps(answer), flush=True)


def first(name: str, method: str) -> None:
    """Seconds to load a robot, and to its first result after that."""
    import_module("llvmlite.binding")
    start = time.perf_counter()
    robot = load_robot(name)
    q, v = robot.neutral(), np.zeros(robot.nv)
    loaded = time.perf_counter()
    getattr(robot, method)(q, v, v)
    done = time.perf_counter()
    print(json.dumps({"load": loaded - start, "call": done - loaded}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["first"]:
        first(*sys.argv[2:])
    else:
        serve()
