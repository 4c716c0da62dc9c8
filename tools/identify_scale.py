# SPDX-License-Identifier: BSD-3-Clause
"""``make identify-scale``: identification of a log that is larger than memory, by Dask from Zarr.

Workers make the log of a robot (a hundred million rows by default, each a sample of all joints)
and write it; ``scale.identify`` reads it once. Memory of each worker and equality with the
identification in memory of a part have bounds, exit code 1 if one is not kept. The efficiency of
two workers against one is printed with the load of the machine: its aim, 0.9, is for an idle one.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from distributed import Client, LocalCluster, as_completed

import phistar
from phistar import ident, scale
from phistar.progress import progress_bar
from phistar.scale.final_code import final_code
from tools.identification import Verdicts
from tools.identify_logs import random_motion, torque_noise, true_robot

ROWS = 10**8
CHUNK = 1 << 17
"""Rows of a chunk of the store: as many as of a task of an arm's identification."""
PART = 10**6
"""Rows that are identified in memory, too."""
TIMED = 4 * 10**6
"""Rows that are identified by one worker and by two."""
ROUNDS = 3
"""Times that both are timed."""
DT = 1e-3
REST = 0.02
"""Speed up to which a joint is at rest [rad/s]."""
MEMORY = 2.0
"""Most of a worker [GB], the parts of the operating system and of Python included."""
SAME = 1e-10
"""Largest difference from the estimate in memory, relative to the largest base parameter."""
AIM = 0.9


def make_chunk(path: str, robot: str, rows: int, chunk: int) -> int:
    """Write a chunk of the log, on a worker: a random motion of its own, friction, noise."""
    known = phistar.load(robot)
    true = true_robot(known, np.random.default_rng(0))
    first = chunk * CHUNK
    count = min(CHUNK, rows - first)
    rng = np.random.default_rng([1, chunk])
    motion = random_motion(known, rng, harmonics=10, period=25.0)
    q, v, vdot = motion.at(DT * np.arange(count))
    tau = true.inverse_dynamics(q, v, vdot, passive=True)
    tau += torque_noise(known) * rng.normal(size=tau.shape)
    group = zarr.open_group(path, mode="r+")
    for name, values in {"q": q, "v": v, "vdot": vdot, "tau": tau}.items():
        group[name][first : first + count] = values
    return count


def empty_log(path: str, robot: phistar.Robot, rows: int) -> None:
    """A store for a log, in single precision as sensors have it."""
    group = zarr.open_group(path, mode="w")
    for name in ("q", "v", "vdot", "tau"):
        shape, chunks = (rows, robot.nv), (min(CHUNK, rows), robot.nv)
        group.create_array(name, shape=shape, chunks=chunks, dtype="float32", compressors=None)


def beginning(source: str, target: str, rows: int) -> str:
    """A store of the first rows of another one."""
    whole, group = zarr.open_group(source, mode="r"), zarr.open_group(target, mode="w")
    for name, array in whole.arrays():
        group.create_array(name, data=array[:rows], chunks=(CHUNK, array.shape[1]))
    return target


def peak_memory() -> float:
    """Of this process since it began [GB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


@contextmanager
def workers(count: int) -> Iterator[Client]:
    """A cluster of processes with one thread each on this machine."""
    told: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(n_workers=count, threads_per_worker=1, memory_limit=None, **told) as cluster,
        Client(cluster) as client,
    ):
        yield client


def identified(robot: phistar.Robot, path: str, client: Client | None) -> tuple[Any, float]:
    """The identification of a store and its seconds."""
    begin = time.perf_counter()
    found = scale.identify(
        robot, path, scheduler=client, rest_speed=REST, progress=sys.stderr.isatty()
    )
    return found, time.perf_counter() - begin


def shown(found: Iterable[Any], count: int) -> Iterator[Any]:
    """The chunks that are made, with a bar, or a line for each tenth where nobody sees bars."""
    with progress_bar(sys.stderr.isatty(), "making the log", count, "chunks") as advance:
        for number, each in enumerate(found, 1):
            yield each
            advance(1)
            if not sys.stderr.isatty() and 10 * number // count > 10 * (number - 1) // count:
                print(f"     {number} of {count} chunks are made", flush=True)


def whole_log(name: str, path: str, rows: int, count: int, verdicts: Verdicts) -> None:
    """Made and identified by all workers."""
    robot = phistar.load(name)
    empty_log(path, robot, rows)
    with workers(count) as client:
        begin = time.perf_counter()
        chunks = range(-(-rows // CHUNK))
        futures = client.map(partial(make_chunk, path, name, rows), chunks, pure=False)
        made = sum(each for _, each in shown(as_completed(futures, with_results=True), len(chunks)))
        seconds = time.perf_counter() - begin
        size = sum(x.nbytes for _, x in zarr.open_group(path, mode="r").arrays())
        print(f"     {made:.3g} rows of {name}, {size / 1e9:.2f} GB, made in {seconds:.0f} s")
        found, seconds = identified(robot, path, client)
        memory = max(client.run(peak_memory).values())
    print(f"     identified in {seconds:.0f} s, {rows / seconds:.3g} rows/s: {found!r}", flush=True)
    true = true_robot(robot, np.random.default_rng(0))
    beta = found.base.matrix @ ident.Columns.of(true).values
    far = np.abs(found.fit.beta - beta) / found.fit.deviation
    verdicts.say(
        "largest error of a base parameter, deviations", f"{far.max():.2f}", "<= 5", far.max() <= 5
    )
    verdicts.say(
        "largest memory of a worker", f"{memory:.2f} GB", f"< {MEMORY:g} GB", memory < MEMORY
    )


def same_as_in_memory(name: str, path: str, folder: str, rows: int, verdicts: Verdicts) -> None:
    """The first rows from a store by two workers, and from arrays."""
    robot, part = phistar.load(name), beginning(path, f"{folder}/part.zarr", min(PART, rows))
    group = zarr.open_group(part, mode="r")
    arrays = [np.asarray(group[x][:], dtype=float) for x in ("q", "v", "vdot", "tau")]
    with workers(2) as client:
        found, _ = identified(robot, part, client)
    with final_code():
        expected = ident.identify(robot, *arrays, rest_speed=REST)
    off = np.abs(found.fit.beta - expected.fit.beta).max() / np.abs(expected.fit.beta).max()
    verdicts.say(
        f"{len(arrays[0]):.0e} rows: difference from memory", f"{off:.1e}", f"<= {SAME:g}",
        off <= SAME,
    )  # fmt: skip


def efficiency(name: str, path: str, folder: str, rows: int) -> None:
    """The same rows by one worker and by two in turn, after each has compiled; least times."""
    robot, part = phistar.load(name), beginning(path, f"{folder}/timed.zarr", min(TIMED, rows))
    warm = beginning(path, f"{folder}/warm.zarr", min(CHUNK, rows))
    seconds: dict[int, list[float]] = {1: [], 2: []}
    worked: dict[int, list[float]] = {1: [], 2: []}
    with workers(1) as one, workers(2) as two:
        clients = {1: one, 2: two}
        for client in clients.values():
            identified(robot, warm, client)
        for _ in range(ROUNDS):
            for count, client in clients.items():
                before = sum(client.run(time.process_time).values())
                seconds[count].append(identified(robot, part, client)[1])
                worked[count].append(sum(client.run(time.process_time).values()) - before)
    (first, second), (alone, both) = (map(min, each.values()) for each in (seconds, worked))
    print(
        f"     {min(TIMED, rows):.0e} rows: one worker {first:.1f} s, two {second:.1f} s: "
        f"efficiency {first / (2.0 * second):.2f} (aim {AIM:g} on an idle machine; load "
        f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores); processors of workers {alone:.1f} "
        f"and {both:.1f} s",
        flush=True,
    )


def main() -> int:
    """All of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=ROWS, help="of the log")
    parser.add_argument("--robot", default="panda")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", help="where the log goes; default: a temporary folder")
    options = parser.parse_args()
    verdicts = Verdicts()
    rows = int(options.rows)
    folder = tempfile.mkdtemp(prefix="phistar-", dir=options.folder)
    path = str(Path(folder) / "log.zarr")
    try:
        whole_log(options.robot, path, rows, options.workers, verdicts)
        same_as_in_memory(options.robot, path, folder, rows, verdicts)
        efficiency(options.robot, path, folder, rows)
    finally:
        shutil.rmtree(folder)
    return 0 if verdicts.kept else 1


if __name__ == "__main__":
    sys.exit(main())
