# SPDX-License-Identifier: BSD-3-Clause
"""From store to store: nothing is lost when workers die, rows are bad or the disk is full."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from phistar import Robot, scale
from phistar.arrays import Array
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.scale.stores import CHECKSUMS, ResultStore
from tests.with_dask import functions

QUIET: dict[str, Any] = {"rows": 100, "progress": False}


def _result(path: str) -> Array:
    return np.asarray(zarr.open_group(path, mode="r")["result"][:])


@pytest.fixture
def expected(panda: Robot, motions: dict[str, Array]) -> Array:
    """What must be in the store."""
    return panda.inverse_dynamics(*motions.values())


@pytest.mark.parametrize("rows", [1003, 100, 64])
def test_results_whatever_the_tasks(
    panda: Robot, store: str, tmp_path: Path, expected: Array, rows: int
) -> None:
    """The same bits for tasks that do not fit the chunks of the inputs, too."""
    out = str(tmp_path / "out.zarr")
    report = scale.run(panda, "inverse_dynamics", store, out, rows=rows, progress=False)
    assert (report.tasks, report.computed, report.kept) == (-(-1003 // rows),) * 2 + (0,)
    np.testing.assert_array_equal(_result(out), expected)


def test_resume_computes_what_is_missing_or_damaged(
    panda: Robot, store: str, tmp_path: Path, expected: Array
) -> None:
    """Chunks that cannot be read, with other numbers, gone, or without a checksum: these four."""
    out = tmp_path / "out.zarr"
    scale.run(panda, "inverse_dynamics", store, out, **QUIET)
    chunks = out / "result" / "c"
    (chunks / "3" / "0").write_bytes(b"junk")
    (chunks / "7" / "0").unlink()
    (out / CHECKSUMS / "c" / "9").write_bytes(b"junk")
    zarr.open_group(str(out), mode="r+")["result"][520, 3] += 1e-9
    report = scale.run(panda, "inverse_dynamics", store, out, resume=True, **QUIET)
    assert (report.computed, report.kept) == (4, 7)
    np.testing.assert_array_equal(_result(str(out)), expected)


def test_stores_of_other_work(panda: Robot, store: str, tmp_path: Path) -> None:
    """What exists is not overwritten; other work does not go on in it; nothing to go on with."""
    out = tmp_path / "out.zarr"
    with pytest.raises(ArgumentError, match="no store of results"):
        scale.run(panda, "inverse_dynamics", store, out, resume=True, **QUIET)
    scale.run(panda, "inverse_dynamics", store, out, **QUIET)
    with pytest.raises(ArgumentError, match=r"resume=True \(--resume\) goes on"):
        scale.run(panda, "inverse_dynamics", store, out, **QUIET)
    heavier = panda.with_payload(panda.frame_names[-1], mass=1.0)
    with pytest.raises(ArgumentError, match="made by other work: work was"):
        scale.run(heavier, "inverse_dynamics", store, out, resume=True, **QUIET)
    assert scale.run(heavier, "inverse_dynamics", store, out, overwrite=True, **QUIET).computed


def test_a_store_with_damaged_metadata_is_not_called_absent(
    panda: Robot, store: str, tmp_path: Path
) -> None:
    """Nobody is told to begin anew where results are."""
    out = tmp_path / "out.zarr"
    scale.run(panda, "inverse_dynamics", store, out, **QUIET)
    for damaged in (f"{CHECKSUMS}/zarr.json", "result/zarr.json", "zarr.json"):
        (out / damaged).write_text("{", encoding="utf-8")
        with pytest.raises(
            ArgumentError, match=r"cannot be read as a store of results \(.*another path"
        ):
            scale.run(panda, "inverse_dynamics", store, out, resume=True, **QUIET)


@pytest.mark.parametrize("array", [CHECKSUMS, "result"])
def test_a_store_without_one_of_its_arrays(
    panda: Robot, store: str, tmp_path: Path, array: str
) -> None:
    """It is not gone on with, and the message is one line; nor are both ways taken at once."""
    out = tmp_path / "out.zarr"
    scale.run(panda, "inverse_dynamics", store, out, **QUIET)
    shutil.rmtree(out / array)
    with pytest.raises(ArgumentError, match=f"store of results .*{array}.*overwrite=True"):
        scale.run(panda, "inverse_dynamics", store, out, resume=True, **QUIET)
    with pytest.raises(ArgumentError, match="give one of them"):
        scale.run(panda, "inverse_dynamics", store, out, resume=True, overwrite=True, **QUIET)


def test_bad_rows_are_reported_and_the_rest_is_done(
    panda: Robot, store: str, tmp_path: Path, expected: Array
) -> None:
    """The task, its rows and the number are named; mended, resume does this task alone."""
    out = str(tmp_path / "out.zarr")
    inputs = zarr.open_group(store, mode="r+")
    good = inputs["q"][250, 3]
    inputs["q"][250, 3] = np.nan
    with pytest.raises(
        scale.TasksFailedError, match=r"1 of 11 tasks.*Task 2, rows 200 to 299.*q\[50, 3\]"
    ):
        scale.run(panda, "inverse_dynamics", store, out, **QUIET)
    found = _result(out)
    np.testing.assert_array_equal(
        np.delete(found, np.s_[200:300], 0), np.delete(expected, np.s_[200:300], 0)
    )
    assert np.isnan(found[200:300]).all()
    inputs["q"][250, 3] = good
    report = scale.run(
        panda, "inverse_dynamics", store, out, resume=True, on_error="report", **QUIET
    )
    assert (report.computed, report.kept, report.failed) == (1, 10, ())
    np.testing.assert_array_equal(_result(out), expected)


def test_a_damaged_chunk_of_the_inputs(
    panda: Robot, store: str, tmp_path: Path, expected: Array
) -> None:
    """It cannot be read: its task is reported, the rest is done."""
    out = str(tmp_path / "out.zarr")
    chunk = Path(store) / "q" / "c" / "4" / "0"
    good = chunk.read_bytes()
    chunk.write_bytes(b"junk")
    report = scale.run(panda, "inverse_dynamics", store, out, on_error="report", **QUIET)
    assert [(each.task, each.rows) for each in report.failed] == [(4, (400, 500))]
    assert "cannot be read" in report.failed[0].reason
    np.testing.assert_array_equal(
        np.delete(_result(out), np.s_[400:500], 0), np.delete(expected, np.s_[400:500], 0)
    )
    chunk.write_bytes(good)
    assert scale.run(panda, "inverse_dynamics", store, out, resume=True, **QUIET).computed == 1
    np.testing.assert_array_equal(_result(out), expected)


def test_results_of_another_shape(
    panda: Robot, store: str, motions: dict[str, Array], tmp_path: Path
) -> None:
    """Tasks whose function gives too few rows are reported, the others are done."""
    out = str(tmp_path / "out.zarr")
    bad = [k for k in range(11) if (motions["v"][100 * k : 100 * (k + 1)] > 3.0).any()]
    assert 0 < len(bad) < 11
    report = scale.run(panda, functions.wrong_shape, store, out, on_error="report", **QUIET)
    assert [each.task for each in report.failed] == bad
    assert "of shape (99, 7) for 100 rows" in report.failed[0].reason


def test_functions_that_raise(
    panda: Robot, store: str, motions: dict[str, Array], tmp_path: Path
) -> None:
    """Whatever a user's function raises is the reason of its task, and the others are done."""
    bad = [k for k in range(11) if (motions["v"][100 * k : 100 * (k + 1)] > 3.0).any()]
    out = str(tmp_path / "out.zarr")
    report = scale.run(panda, functions.raises, store, out, on_error="report", **QUIET)
    assert [each.task for each in report.failed] == bad
    assert report.failed[0].reason == "KeyError: 'too fast'"
    assert report.computed == 11 - len(bad)


def test_rows_that_are_grids_or_numbers(panda: Robot, tmp_path: Path) -> None:
    """A row of an array may have several axes; for a user's function it may be a number."""
    rng = np.random.default_rng(0)
    q, mass = panda.random_configuration(rng, 60).reshape(20, 3, 7), rng.normal(size=20)
    group = zarr.open_group(str(tmp_path / "grid.zarr"), mode="w")
    arrays = {name: group.create_array(name, data=x) for name, x in {"q": q, "mass": mass}.items()}
    quiet: dict[str, Any] = {"rows": 6, "progress": False}
    out = str(tmp_path / "masses.zarr")
    scale.run(panda, "mass_matrix", {"q": arrays["q"]}, out, **quiet)
    np.testing.assert_array_equal(_result(out), panda.mass_matrix(q))
    out = str(tmp_path / "own.zarr")
    scale.run(panda, functions.first_of_each, arrays, out, **quiet)
    np.testing.assert_array_equal(_result(out), np.stack([q[:, 0, 0], mass], axis=-1))
    out = str(tmp_path / "none.zarr")
    with pytest.raises(ShapeError, match=r"q has shape \(20,\), .* needs \(rows, n\)"):
        scale.run(panda, "mass_matrix", {"q": arrays["mass"]}, out, **quiet)
    single = group.create_array("single", data=np.float64(3.0))
    with pytest.raises(ArgumentError, match="q is one number, expected an array"):
        scale.run(panda, "mass_matrix", {"q": single}, out, **quiet)
    assert not Path(out).exists()


def test_a_worker_is_killed(
    panda: Robot, store: str, tmp_path: Path, expected: Array, cluster: Any
) -> None:
    """SIGKILL in the middle of a task changes nothing in the result."""
    out = str(tmp_path / "out.zarr")
    marker = tmp_path / "killed"
    report = scale.run(
        panda,
        functions.dies_once,
        store,
        out,
        options={"marker": str(marker)},
        scheduler=cluster,
        **QUIET,
    )
    assert marker.exists()
    assert report.computed == 11
    np.testing.assert_array_equal(_result(out), expected)


_SCHEDULED = """
import sys
import phistar
from distributed import Client, LocalCluster
from phistar import scale
from tests.with_dask import functions

if __name__ == "__main__":
    settings = dict(host="127.0.0.1", n_workers=1, threads_per_worker=1)
    settings["dashboard_address"] = "127.0.0.1:0"
    with LocalCluster(**settings) as cluster, Client(cluster) as client:
        scale.run(phistar.load("panda"), functions.slow, *sys.argv[1:], rows=100, scheduler=client)
"""


def test_the_scheduler_is_killed(panda: Robot, store: str, tmp_path: Path, expected: Array) -> None:
    """All processes are killed; ``resume`` does the rest and what is there is kept."""
    out = tmp_path / "out.zarr"
    script = tmp_path / "scheduled.py"
    script.write_text(_SCHEDULED)
    root = Path(__file__).parent.parent.parent
    process = subprocess.Popen(
        [sys.executable, str(script), store, str(out)],
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and _tasks_done(out) < 2:
            assert process.poll() is None, "ended before it was killed"
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = _tasks_done(out)
    assert 2 <= done < 11
    report = scale.run(panda, functions.slow, store, out, resume=True, **QUIET)
    assert report.kept >= done - 1
    assert report.kept + report.computed == 11
    np.testing.assert_array_equal(_result(str(out)), expected)


def test_only_the_scheduler_is_killed(
    panda: Robot, store: str, tmp_path: Path, expected: Array
) -> None:
    """Who waits for it is told, in one line, and ``resume`` does the rest."""
    out = tmp_path / "out.zarr"
    where = tmp_path / "scheduler.json"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    module = [sys.executable, "-m"]
    scheduler = subprocess.Popen(
        [*module, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
         "--no-dashboard", "--scheduler-file", str(where)], **quiet,
    )  # fmt: skip
    worker = subprocess.Popen(
        [*module, "distributed.cli.dask_worker", "--scheduler-file", str(where), "--nthreads", "1",
         "--no-dashboard", "--no-nanny", "--death-timeout", "60"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}, **quiet,
    )  # fmt: skip

    def kill() -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end and _tasks_done(out) < 2:
            time.sleep(0.02)
        scheduler.kill()

    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and not where.exists():
            time.sleep(0.05)
        address = json.loads(where.read_text())["address"]
        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(scale.SchedulerLostError, match=f"{address}.*resume=True") as caught:
            scale.run(panda, functions.slow, store, out, scheduler=address, **QUIET)
        killer.join()
        assert "\n" not in str(caught.value)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    assert scale.run(panda, functions.slow, store, out, resume=True, **QUIET).kept >= 2
    np.testing.assert_array_equal(_result(str(out)), expected)


def _tasks_done(out: Path) -> int:
    folder = out / CHECKSUMS / "c"
    return len(list(folder.iterdir())) if folder.exists() else 0


def test_no_space_is_left(
    panda: Robot, store: str, tmp_path: Path, expected: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full after four tasks: one clear error, a store that can be read, and resume."""
    out = str(tmp_path / "out.zarr")
    write = ResultStore.write

    def full(self: ResultStore, task: int, arrays: Any) -> None:
        if task >= 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, task, arrays)

    monkeypatch.setattr(ResultStore, "write", full)
    with pytest.raises(scale.StoreFullError, match="free some space and go on with resume"):
        scale.run(panda, "inverse_dynamics", store, out, threads=1, **QUIET)
    np.testing.assert_array_equal(_result(out)[:400], expected[:400])
    monkeypatch.undo()
    assert scale.run(panda, "inverse_dynamics", store, out, resume=True, **QUIET).kept == 4
    np.testing.assert_array_equal(_result(out), expected)


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system of a few kB, where the system lets us have one."""
    folder = tmp_path / "small"
    folder.mkdir()
    size = f"size={request.param}"
    command = ["mount", "-t", "tmpfs", "-o", size, "phistar-test", str(folder)]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no file system of our own: {error}")
    if found.returncode:
        pytest.skip(f"no file system of our own: {found.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("small_disk", ["64k"], indirect=True)
def test_a_small_disk(
    panda: Robot, store: str, small_disk: Path, motions: dict[str, Array]
) -> None:
    """The same with a disk that really is full; what was written can be read."""
    out = small_disk / "out.zarr"
    with pytest.raises(scale.StoreFullError, match="no space is left"):
        scale.run(panda, "linearize_inverse", store, out, threads=1, **QUIET)
    assert zarr.open_group(str(out), mode="r")[CHECKSUMS].shape == (11,)


@pytest.mark.parametrize("small_disk", ["16k"], indirect=True)
def test_a_disk_too_small_for_an_empty_store(panda: Robot, store: str, small_disk: Path) -> None:
    """Nothing half-made is left that ``resume`` could not go on with."""
    with pytest.raises(scale.StoreFullError, match="nothing was written"):
        scale.run(panda, "linearize_inverse", store, small_disk / "out.zarr", **QUIET)
    assert not list(small_disk.iterdir())


def test_what_does_not_fit(
    panda: Robot, store: str, tmp_path: Path, motions: dict[str, Array]
) -> None:
    """No group, no array, NumPy arrays, an unknown scheduler."""
    out = tmp_path / "out.zarr"
    arrays = dict(zarr.open_group(store, mode="r").arrays())
    with pytest.raises(UnknownNameError, match="velocity"):
        scale.run(panda, "mass_matrix", {"q": arrays["q"], "velocity": arrays["v"]}, out, **QUIET)
    assert scale.run(panda, "mass_matrix", store, out, **QUIET).unused == ("v", "vdot")
    out = tmp_path / "other.zarr"
    with pytest.raises(ArgumentError, match="cannot read a Zarr group"):
        scale.run(panda, "inverse_dynamics", tmp_path / "nothing.zarr", out, **QUIET)
    with pytest.raises(ArgumentError, match="would travel with every task"):
        scale.run(panda, "inverse_dynamics", motions, out, **QUIET)
    with pytest.raises(ArgumentError, match="scheduler is 3"):
        scale.run(panda, "inverse_dynamics", store, out, scheduler=3, **QUIET)
    with pytest.raises(ArgumentError, match="on_error is 'ignore'"):
        scale.run(panda, "inverse_dynamics", store, out, on_error="ignore", **QUIET)


@pytest.mark.parametrize("overwrite", [False, True])
def test_results_do_not_go_where_inputs_are(panda: Robot, store: str, overwrite: bool) -> None:
    """Neither into the store that is read, nor inside it, around it, or through a link."""
    group = zarr.open_group(store, mode="r")
    link = Path(store).parent / "link.zarr"
    link.symlink_to(store)
    arrays = {name: f"{store}/{name}" for name in ("q", "v", "vdot")}
    for inputs in (store, group, arrays):
        for out in (store, f"{store}/q", Path(store).parent, link):
            with pytest.raises(ArgumentError, match="they would destroy each other"):
                scale.run(panda, "inverse_dynamics", inputs, out, overwrite=overwrite, **QUIET)
    assert group["q"].shape == (1003, 7)
    assert np.isfinite(group["q"][:]).all()


def test_overwriting_removes_stores_alone(panda: Robot, store: str, tmp_path: Path) -> None:
    """A folder or file of something else stays; an empty folder is no loss."""
    mine = tmp_path / "mine"
    mine.mkdir()
    assert scale.run(panda, "inverse_dynamics", store, mine, overwrite=True, **QUIET).computed
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("years")
    for out in (other, other / "thesis.txt"):
        with pytest.raises(ArgumentError, match="is no Zarr store, and overwrite=True would rem"):
            scale.run(panda, "inverse_dynamics", store, out, overwrite=True, **QUIET)
    with pytest.raises(ArgumentError, match=r"results cannot be written to .*: Not a directory"):
        scale.run(panda, "inverse_dynamics", store, other / "thesis.txt" / "x", **QUIET)
    assert (other / "thesis.txt").read_text() == "years"


def test_arguments_that_are_missing_or_wrong(panda: Robot, store: str, tmp_path: Path) -> None:
    """Before anything is written: arrays, options, rows, threads, addresses, inputs."""
    out = tmp_path / "out.zarr"
    q = {"q": f"{store}/q"}
    cases: list[tuple[object, dict[str, Any], str]] = [
        (q, {}, "inverse_dynamics: missing a required argument: 'v'"),
        (store, {"options": {"nonsense": 3}}, "unexpected keyword argument 'nonsense'"),
        (store, {"rows": 0}, "rows is 0, expected 1 or more"),
        (store, {"rows": 2.5}, "rows is 2.5, expected 1 or more"),
        (3, {}, "inputs is 3, expected a Zarr group"),
        (store, {"options": "passive"}, "options is 'passive', expected a dict of arguments"),
    ]
    for inputs, options, said in cases:
        with pytest.raises(ArgumentError, match=said):
            scale.run(panda, "inverse_dynamics", inputs, out, **{**QUIET, **options})
    with pytest.raises(ArgumentError, match="out is None, expected the path of a Zarr group"):
        scale.run(panda, "inverse_dynamics", store, None, **QUIET)  # type: ignore[arg-type]
    for options, said in [
        ({"threads": 0}, "threads is 0, expected 1 or more"),
        ({"scheduler": "nonsense"}, "no scheduler of Dask answers at 'nonsense'"),
    ]:
        with pytest.raises(ArgumentError, match=said):
            scale.run(panda, "inverse_dynamics", store, out, **QUIET, **options)
    with pytest.raises(UnknownNameError, match="no quantity 'name'") as caught:
        scale.run(panda, "name", store, out, **QUIET)
    assert "'name' or" not in str(caught.value)
    assert not out.exists()
