# SPDX-License-Identifier: BSD-3-Clause
"""From store to store: tasks that read their rows, compute and write them, wherever they run.

A task that fails for its rows is reported and the others go on; what has been written stays, and
``resume=True`` does the rest.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from phistar.arguments import require_count
from phistar.arrays import Array
from phistar.errors import ArgumentError, PhistarError, ShapeError, UnknownNameError
from phistar.progress import progress_bar
from phistar.robot import Robot
from phistar.scale.chunking import rows_per_task
from phistar.scale.executors import Executor, executor
from phistar.scale.packages import Scheduler, StoredArray
from phistar.scale.stores import ResultStore, open_inputs, read_rows, row_count
from phistar.scale.work import Output, Quantity, Work, argument_names

ON_ERROR = ("raise", "report")
FULL = (errno.ENOSPC, errno.EDQUOT)
"""What systems say where no space is left."""
SAFE = "what was written before is safe: free some space and go on with resume=True (--resume)"


@dataclass(frozen=True)
class FailedTask:
    """A task whose rows have no result.

    Attributes:
        task: Its number.
        rows: Its rows, first and one beyond the last.
        reason: What was said.
    """

    task: int
    rows: tuple[int, int]
    reason: str


@dataclass(frozen=True)
class RunReport:
    """What a run did.

    Attributes:
        path: The store of results.
        tasks: Number of tasks.
        computed: How many were computed in this run.
        kept: How many were there already.
        failed: Those that have no result.
        unused: Arrays of the group of inputs that the quantity does not take.
    """

    path: str
    tasks: int
    computed: int
    kept: int
    failed: tuple[FailedTask, ...]
    unused: tuple[str, ...] = ()


class TasksFailedError(PhistarError):
    """Tasks have no result; all others are in the store. ``report`` has them all."""

    def __init__(self, report: RunReport) -> None:
        self.report = report
        first = report.failed[0]
        many = len(report.failed)
        super().__init__(
            f"{many} of {report.tasks} tasks failed, the others are in {report.path!r}. Task "
            f"{first.task}, rows {first.rows[0]} to {first.rows[1] - 1}, counted from 0 there: "
            f"{first.reason}. Mend these rows and go on with resume=True"
        )


class StoreFullError(PhistarError, OSError):
    """Results could not be written; those that were are safe."""


def run(
    robot: Robot,
    quantity: Quantity,
    inputs: object,
    out: str | Path,
    *,
    options: Mapping[str, object] | None = None,
    rows: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    scheduler: Scheduler = None,
    threads: int = 2,
    on_error: str = "raise",
    progress: bool = True,
) -> RunReport:
    """A quantity of a robot for every row of a store, into another store.

    Workers read their rows and write their results themselves; nothing passes through the caller.

    Args:
        robot: The robot.
        quantity: As for ``scale.map``; arrays are given by their names.
        inputs: A Zarr group or its path, with arrays named as the arguments (``q``, ``v``, ...), or
            a mapping from names to Zarr arrays or paths. Rows are the first axis.
        out: Path of the Zarr group of results, one array per output. It must not exist unless
            ``resume`` or ``overwrite`` is given.
        options: Further arguments, the same for all rows.
        rows: Of a task; default: by the cost of the quantity.
        resume: Compute only tasks that are missing in ``out`` or whose rows do not have their
            checksum.
        overwrite: Remove what is at ``out``.
        scheduler: None: threads of this process; a ``distributed.Client``, or its address.
        threads: How many, without a scheduler.
        on_error: ``"raise"`` TasksFailedError after all tasks, or ``"report"`` the failed ones.
        progress: Show a bar, and the address of a cluster's dashboard.

    Raises:
        ArgumentError: Arrays or arguments do not fit, or ``out`` is where the inputs are.
        TasksFailedError: Rows have no result, such as NaN or impossible ones.
        StoreFullError: No space is left.
        SchedulerLostError: The scheduler does not answer any more.
    """
    if on_error not in ON_ERROR:
        raise ArgumentError(f"on_error is {on_error!r}, expected one of {', '.join(ON_ERROR)}")
    if resume and overwrite:
        raise ArgumentError("resume goes on with what overwrite removes; give one of them")
    if not isinstance(out, str | Path):
        raise ArgumentError(f"out is {out!r:.80}, expected the path of a Zarr group to write")
    path = str(out)
    if rows is not None:
        rows = require_count("rows", rows)
    arrays, unused = _taken(robot, quantity, inputs)
    _refuse_overlap(path, inputs, arrays)
    work = Work(robot, quantity, 0, tuple(arrays), options)
    count = row_count(arrays)
    _refuse_numbers(work, arrays)
    outputs, constant = work.outputs(work.example_rows(list(arrays.values()), 1))
    numbers = sum(int(np.prod(x.shape[1:])) for x in arrays.values())
    each = rows or rows_per_task(work, numbers + sum(output.size for output in outputs))
    store = ResultStore(path, count, min(each, max(1, count)), outputs)
    identity = {
        **{"robot": robot.name, "quantity": work.name, "work": work.digest},
        **{"rows": count, "rows_per_task": store.rows_per_task},
    }
    if resume:
        store.check_identity(identity)
    elif Path(path).exists() and not overwrite:
        raise ArgumentError(
            f"{path!r} exists; resume=True (--resume) goes on with it, "
            "overwrite=True (--overwrite) replaces it"
        )
    else:
        _refuse_to_remove(path)
    with executor(scheduler, threads, progress) as where:
        if not resume:
            _create(store, identity, constant)
        report = replace(_run_tasks(work, arrays, store, resume, where, progress), unused=unused)
    if report.failed and on_error == "raise":
        raise TasksFailedError(report)
    return report


def _taken(
    robot: Robot, quantity: Quantity, inputs: object
) -> tuple[dict[str, StoredArray], tuple[str, ...]]:
    """Arrays that a quantity takes, and the names of others in the group."""
    arrays = open_inputs(inputs)
    known = argument_names(robot, quantity)
    unused = tuple(name for name in arrays if known and name not in known)
    if unused and (isinstance(inputs, Mapping) or len(unused) == len(arrays)):
        raise UnknownNameError("argument", unused[0], known)
    return {name: x for name, x in arrays.items() if name not in unused}, unused


def _refuse_numbers(work: Work, arrays: Mapping[str, StoredArray]) -> None:
    """Raise if a quantity of the robot would get a number for each row in place of a vector."""
    for name, x in arrays.items():
        if x.ndim < 2 and work.is_own:
            raise ShapeError(name, tuple(x.shape), "(rows, n)", f"'{work.name}' over a store")


def _refuse_overlap(path: str, inputs: object, arrays: Mapping[str, StoredArray]) -> None:
    """Raise if results would go where the inputs are: into them, around them, or beside them."""
    sources: list[str | Path | None] = [inputs] if isinstance(inputs, str | Path) else []
    sources += [getattr(x.store, "root", None) for x in arrays.values()]
    target = Path(path).resolve()
    for source in sources:
        place = None if source is None else Path(source).resolve()
        if place is not None and (target.is_relative_to(place) or place.is_relative_to(target)):
            raise ArgumentError(
                f"results would go to {path!r}, and inputs are read from {str(source)!r}: they "
                "would destroy each other; give another path"
            )


def _refuse_to_remove(path: str) -> None:
    """Raise if what is at a path is no Zarr store: nobody meant to lose it."""
    found = Path(path)
    stored = any((found / name).exists() for name in ("zarr.json", ".zgroup", ".zarray"))
    if found.is_file() or (found.is_dir() and not stored and any(found.iterdir())):
        raise ArgumentError(
            f"{path!r} is no Zarr store, and overwrite=True would remove it; give another path"
        )


def _create(
    store: ResultStore, identity: Mapping[str, object], constant: Mapping[str, Array]
) -> None:
    nothing = "nothing was written: free some space and begin again"
    with _space_on(store.path, nothing):
        try:
            store.create(identity, constant)
        except OSError as error:
            if error.errno in FULL:
                shutil.rmtree(store.path, ignore_errors=True)
            if not isinstance(error, NotADirectoryError | PermissionError | FileNotFoundError):
                raise
            said = f"results cannot be written to {store.path!r}: {error.strerror}"
            raise ArgumentError(said) from None


def _run_tasks(
    work: Work,
    arrays: Mapping[str, StoredArray],
    store: ResultStore,
    resume: bool,
    where: Executor,
    progress: bool,
) -> RunReport:
    task = partial(_do_task, work, dict(arrays), store, resume)
    done, failed = {"computed": 0, "kept": 0}, []
    title = f"{work.name} of {work.robot.name}"
    with progress_bar(progress, title, store.tasks, "tasks") as advance:
        for outcome in where.results(task, range(store.tasks)):
            if isinstance(outcome, FailedTask):
                failed.append(outcome)
            else:
                done[outcome] += 1
            advance(1)
    failed.sort(key=lambda each: each.task)
    return RunReport(store.path, store.tasks, done["computed"], done["kept"], tuple(failed))


def _do_task(
    work: Work, inputs: Mapping[str, StoredArray], store: ResultStore, resume: bool, task: int
) -> str | FailedTask:
    """One task, on a worker."""
    if resume and store.is_done(task):
        return "kept"
    rows = store.rows_of(task)
    try:
        blocks = [read_rows(name, x, rows.start, rows.stop) for name, x in inputs.items()]
        packed = work.packed(store.outputs, blocks)
    except Exception as error:  # whatever a user's function raises for these rows
        said = str(error).rstrip(".")
        if not isinstance(error, PhistarError):
            said = f"{type(error).__name__}: {said}"
        return FailedTask(task, (rows.start, rows.stop), said)
    with _space_on(store.path):
        store.write(task, {output.name: _unpacked(packed, output) for output in store.outputs})
    return "computed"


def _unpacked(packed: Array, output: Output) -> Array:
    part = packed[:, output.part].reshape(len(packed), *output.shape)
    return np.ascontiguousarray(part, output.dtype)


@contextmanager
def _space_on(path: str, rest: str = SAFE) -> Iterator[None]:
    """Inside, a full disk is an error that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise StoreFullError(errno.ENOSPC, f"no space is left for {path!r}; {rest}") from None
