# SPDX-License-Identifier: BSD-3-Clause
"""Identification from a store is that of the whole log in memory, bit by bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import phistar
from phistar import Robot, ident, scale
from phistar.arrays import Array
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.scale.final_code import final_code
from phistar.thresholds import POLICY

SAMPLES = 6000


@pytest.fixture(scope="module")
def pendulum() -> Robot:
    """Two joints."""
    return phistar.load("double_pendulum")


@pytest.fixture(scope="module")
def log(pendulum: Robot) -> dict[str, Array]:
    """Samples with noise."""
    rng = np.random.default_rng(0)
    q, v, vdot = rng.normal(size=(3, SAMPLES, 2))
    tau = pendulum.inverse_dynamics(q, v, vdot) + 0.01 * rng.normal(size=q.shape)
    return {"q": q, "v": v, "vdot": vdot, "tau": tau}


@pytest.fixture
def stored(tmp_path: Path, log: dict[str, Array]) -> str:
    """The same as a Zarr group."""
    path = str(tmp_path / "log.zarr")
    group = zarr.open_group(path, mode="w")
    for name, array in log.items():
        group.create_array(name, data=array, chunks=(1000, 2))
    return path


@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_same_bits_as_in_memory(
    pendulum: Robot,
    log: dict[str, Array],
    stored: str,
    where: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By threads with many small tasks, and by two processes with the sizes of every day."""
    options: dict[str, Any] = {"friction": ["viscous"], "folds": 3, "rest_speed": 0.0}
    scheduler = None
    if where == "cluster":
        scheduler = request.getfixturevalue("cluster")
    else:
        monkeypatch.setitem(vars(POLICY), "task_bytes", 1)
        monkeypatch.setitem(vars(POLICY), "identification_piece_samples", 256)
    found = scale.identify(pendulum, stored, scheduler=scheduler, progress=False, **options)
    with final_code():
        expected = ident.identify(pendulum, *log.values(), **options)
    np.testing.assert_array_equal(found.fit.beta, expected.fit.beta)
    np.testing.assert_array_equal(found.parameters, expected.parameters)
    assert found.robot.model == expected.robot.model


def test_any_tasks_and_workers_give_the_same_bits(
    pendulum: Robot, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of the store, sizes of tasks, threads, two workers, and one that is killed."""
    rng = np.random.default_rng(4)
    q, v, vdot = rng.normal(size=(3, 70_000, 2))
    tau = pendulum.inverse_dynamics(q, v, vdot) + 0.01 * rng.normal(size=q.shape)
    arrays = {"q": q, "v": v, "vdot": vdot, "tau": tau}
    options: dict[str, Any] = {"folds": 2, "rest_speed": 0.0, "consistent": False}
    with final_code():
        expected = ident.identify(pendulum, *arrays.values(), **options)
    for chunk in (9_000, 70_000):
        group = zarr.open_group(str(tmp_path / f"{chunk}.zarr"), mode="w")
        for name, array in arrays.items():
            group.create_array(name, data=array, chunks=(chunk, 2))

    def check(chunk: int, pieces: int, **where: Any) -> None:
        size = POLICY.identification_piece_samples * 8 * 8 * pieces
        monkeypatch.setitem(vars(POLICY), "task_bytes", size)
        found = scale.identify(pendulum, str(tmp_path / f"{chunk}.zarr"), **where, **options)
        np.testing.assert_array_equal(found.fit.beta, expected.fit.beta)
        np.testing.assert_array_equal(found.fit.covariance, expected.fit.covariance)

    check(9_000, 1, threads=1, progress=False)
    check(70_000, 5, threads=3, progress=False)
    check(9_000, 2, scheduler=cluster, progress=False)
    killed: list[int] = []

    @contextmanager
    def killing(*_: object) -> Iterator[Callable[[int], None]]:
        """A progress bar; at the fourth task that is done a worker is killed."""
        workers, done = list(cluster.run(os.getpid).values()), []

        def advance(count: int) -> None:
            done.append(count)
            if len(done) == 4:
                os.kill(workers[0], signal.SIGKILL)
                killed.append(workers[0])

        yield advance

    monkeypatch.setattr("phistar.scale.identification.progress_bar", killing)
    check(9_000, 1, scheduler=cluster, progress=False)
    assert killed


PROGRAM = """
import hashlib, sys
import numpy as np
import phistar
from phistar import scale

robot = phistar.load("panda")
found = scale.identify(robot, sys.argv[1], progress=False, threads=2, rest_speed=0.0)
print(hashlib.sha256(found.fit.beta.tobytes() + found.parameters.tobytes()).hexdigest())
"""


def test_threads_of_blas_do_not_matter(panda: Robot, tmp_path: Path) -> None:
    """The same bits where linear algebra has one thread and where it has two."""
    rng = np.random.default_rng(1)
    q = panda.random_configuration(rng, 9000)
    v, vdot = rng.normal(size=(2, *q.shape))
    group = zarr.open_group(str(tmp_path / "log.zarr"), mode="w")
    tau = panda.inverse_dynamics(q, v, vdot) + rng.normal(size=q.shape)
    for name, array in {"q": q, "v": v, "vdot": vdot, "tau": tau}.items():
        group.create_array(name, data=array, chunks=(3000, 7))
    said = set()
    for threads in ("1", "2"):
        told = {**os.environ, "OPENBLAS_NUM_THREADS": threads}
        order = [sys.executable, "-c", PROGRAM, str(tmp_path / "log.zarr")]
        done = subprocess.run(order, env=told, capture_output=True, text=True, check=True)
        said.add(done.stdout.strip())
    assert len(said) == 1


def test_what_does_not_fit(pendulum: Robot, stored: str, log: dict[str, Array]) -> None:
    """A missing array, arrays of different lengths, folds; NaN names the array."""
    group = zarr.open_group(stored, mode="r+")
    with pytest.raises(ArgumentError, match="folds is 0"):
        scale.identify(pendulum, stored, folds=0)
    group["tau"][4000, 1] = np.nan
    with pytest.raises(ArgumentError, match=r"tau of the log is not finite at 1 sample.* is 4000"):
        scale.identify(pendulum, stored, progress=False)
    del group["tau"]
    with pytest.raises(UnknownNameError, match="tau"):
        scale.identify(pendulum, stored)
    group.create_array("tau", data=log["tau"][:100], chunks=(1000, 2))
    with pytest.raises(ArgumentError, match=r"different numbers of rows.*tau 100"):
        scale.identify(pendulum, stored)


def test_logs_that_are_none(
    pendulum: Robot, stored: str, log: dict[str, Array], tmp_path: Path
) -> None:
    """Shapes, types, zeros, one sample, a damaged chunk: one line each."""

    def refused(said: str, error: type[Exception] = ArgumentError, **changed: Array) -> None:
        group = zarr.open_group(str(tmp_path / "bad.zarr"), mode="w")
        for name, array in {**log, **changed}.items():
            group.create_array(name, data=array, chunks=(1000, *array.shape[1:]))
        with pytest.raises(error, match=said):
            scale.identify(pendulum, str(tmp_path / "bad.zarr"), progress=False)

    q, tau = log["q"], log["tau"]
    refused(r"q has shape \(6000, 1\), a log of 'double_pendulum' needs", ShapeError, q=q[:, :1])
    refused(r"tau has shape \(6000,\)", ShapeError, tau=tau[:, 0])
    refused("q has dtype complex128, expected real", q=q + 0j)
    refused("tau is zero everywhere", tau=0.0 * tau)
    refused("the robot is at rest in the whole log", v=0.0 * q, vdot=0.0 * q)
    refused("the log has 1 sample, and 5 folds", **{name: x[:1] for name, x in log.items()})
    refused("so large that their squares", v=1e200 * q)
    with pytest.raises(UnknownNameError, match="no array 'v'"):
        scale.identify(pendulum, {"q": f"{stored}/q"})
    with pytest.raises(ArgumentError, match="robot is 'panda', expected"):
        scale.identify("panda", stored)  # type: ignore[arg-type]
    (Path(stored) / "tau" / "c" / "5" / "0").write_bytes(b"junk")
    with pytest.raises(ArgumentError, match="'tau' cannot be read there, rows"):
        scale.identify(pendulum, stored, progress=False)
