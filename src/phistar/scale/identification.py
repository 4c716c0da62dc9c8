# SPDX-License-Identifier: BSD-3-Clause
"""Identification of a robot from a log that is larger than memory, in one pass over it.

Tasks turn their samples into triangles (``ident.triangles``), a few hundred kB each, and workers
join those of neighbours, until one set is left. The tree of joins is that of the samples: the
result has the same bits whatever the tasks and workers are, and those of ``ident.identify`` of the
whole log by final code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phistar.arguments import require_count, require_robot
from phistar.arrays import Array
from phistar.errors import ArgumentError, ModelMismatchWarning, ShapeError, pluralize, warn
from phistar.ident.base_parameters import BaseParameters, base_parameters
from phistar.ident.columns import Columns
from phistar.ident.doubts import doubts
from phistar.ident.equations import TorqueEquations, fold_edges, pile_of
from phistar.ident.identify_robot import rest_speeds, solve_parts
from phistar.ident.result import Identification
from phistar.ident.triangles import Pile
from phistar.progress import progress_bar
from phistar.robot import Robot
from phistar.scale.executors import executor
from phistar.scale.final_code import final_code
from phistar.scale.packages import Scheduler, StoredArray
from phistar.scale.stores import open_inputs, read_rows, row_count
from phistar.scale.travel import Travelling, travelling
from phistar.thresholds import POLICY

LOG = ("q", "v", "vdot", "tau")
"""Arrays of a log."""

LOOKED_AT = 20_000
"""Samples, evenly chosen, by which a log is judged beforehand."""


class _StoredLog:
    """Equations of a log in a store, which are made on workers."""

    def __init__(
        self,
        robot: Robot,
        options: Mapping[str, Any],
        arrays: Mapping[str, StoredArray],
        rest: Array,
    ) -> None:
        self._made_of = (robot, dict(options), dict(arrays), rest)
        self.arrays = arrays
        with final_code():
            self.base: BaseParameters = base_parameters(Columns.of(robot, **options))
        self.equations = self._equations(arrays)

    def __reduce__(self) -> Travelling:
        robot, options, arrays, rest = self._made_of
        told = blake2b(robot.model.fingerprint.encode(), digest_size=16)
        told.update(repr(sorted(options.items())).encode() + rest.tobytes())
        told.update(repr([str(arrays[name].store) for name in LOG]).encode())
        return travelling(told.hexdigest(), _StoredLog, *self._made_of)

    @property
    def pieces_per_task(self) -> int:
        """As many as are worth a task: a power of two, so that a task ends with one triangle."""
        numbers = sum(int(x.shape[1]) for x in self.arrays.values())
        operations = sum(2 * (len(own) + 1) ** 2 for own in self.base.support)
        samples = min(POLICY.task_bytes // (8 * numbers), POLICY.task_operations // operations)
        pieces = max(1, samples // POLICY.identification_piece_samples)
        return 1 << (pieces.bit_length() - 1)

    def pile(self, piece: tuple[int, int, int]) -> Pile:
        """The triangles of some samples: first, last, and the number of their first piece."""
        first, last, number = piece
        read = _read(self.arrays, first, last)
        with final_code():
            return pile_of(self._equations(read), 0, last - first, number)

    def _equations(self, arrays: Mapping[str, StoredArray]) -> TorqueEquations:
        rest = self._made_of[3]
        return TorqueEquations(
            self.base, arrays["q"], arrays["v"], arrays["vdot"], arrays["tau"], rest
        )


def identify(
    robot: Robot,
    inputs: object,
    *,
    friction: Sequence[str] | bool = True,
    rotors: bool = True,
    springs: bool = False,
    bodies: Sequence[str] | None = None,
    consistent: bool = True,
    prior_weight: float = 1.0,
    folds: int = 5,
    rest_speed: ArrayLike | None = None,
    scheduler: Scheduler = None,
    threads: int = 2,
    progress: bool = True,
) -> Identification:
    """Inertia, friction and rotors of a robot from a log in a Zarr store.

    Args:
        robot: What is known, as for ``ident.identify``.
        inputs: A Zarr group or its path, with arrays ``q``, ``v``, ``vdot`` and ``tau``, or a
            mapping from these names to Zarr arrays or paths.
        friction, rotors, springs, bodies, consistent, prior_weight, folds: As for
            ``ident.identify``.
        rest_speed: The same; default: 1 % of the largest speed of 20 000 samples.
        scheduler, threads, progress: As for ``scale.run``.

    Raises:
        ArgumentError: Arrays are missing, of different lengths, zero, not finite, or damaged.
        ShapeError: An array does not fit the robot.
    """
    require_robot(robot)
    folds = require_count("folds", folds)
    arrays = open_inputs(inputs, LOG)
    _check_arrays(robot, arrays)
    count = row_count(arrays)
    few = _some_samples(arrays, count)
    _refuse_zeros(arrays, few)
    said = doubts(robot, *(few[name] for name in LOG))
    for text in said:
        warn(text, ModelMismatchWarning)
    rest = rest_speeds(np.abs(few["v"]).max(axis=0), rest_speed)
    options = {"friction": friction, "rotors": rotors, "springs": springs, "bodies": bodies}
    log = _StoredLog(robot, options, arrays, rest)
    tasks = _tasks(count, folds, log.pieces_per_task)
    with (
        final_code(),
        executor(scheduler, threads, progress) as where,
        progress_bar(progress, f"identifying {robot.name}", len(tasks), "tasks") as advance,
    ):
        piles = where.joined(partial(_do_task, log), _join, tasks, advance)
        parts = [piles[fold].total() for fold in range(folds)]
        return solve_parts(
            log.equations, parts, (), said, consistent=consistent, prior_weight=prior_weight
        )


def _do_task(log: _StoredLog, task: tuple[int, int, int, int]) -> dict[int, Pile]:
    fold, *piece = task
    return {fold: log.pile((piece[0], piece[1], piece[2]))}


def _join(found: Sequence[Mapping[int, Pile]]) -> dict[int, Pile]:
    """The piles of each fold together."""
    total: dict[int, Pile] = {}
    for piles in found:
        for fold, pile in piles.items():
            total.setdefault(fold, Pile()).update(pile)
    return total


def _tasks(count: int, folds: int, pieces: int) -> list[tuple[int, int, int, int]]:
    """Fold, first sample, one beyond the last, and number of the first piece in the fold."""
    step = pieces * POLICY.identification_piece_samples
    found = []
    for fold, (first, last) in enumerate(fold_edges(count, folds)):
        for k, start in enumerate(range(first, last, step)):
            found.append((fold, start, min(start + step, last), k * pieces))
    return found


def _check_arrays(robot: Robot, arrays: Mapping[str, StoredArray]) -> None:
    """Raise unless shapes and types are those of a log of this robot."""
    for name, x in arrays.items():
        width = robot.nq if name == "q" else robot.nv
        if x.ndim != 2 or x.shape[1] != width:
            raise ShapeError(name, tuple(x.shape), f"(N, {width})", f"a log of '{robot.name}'")
        if np.dtype(x.dtype).kind not in "iuf":
            raise ArgumentError(f"{name} has dtype {x.dtype}, expected real numbers")


def _refuse_zeros(arrays: Mapping[str, StoredArray], few: Mapping[str, Array]) -> None:
    """Raise for a log without forces or motion; all of it is read only if it looks like one."""

    def zero(name: str) -> bool:
        x, size = arrays[name], POLICY.task_rows
        starts = range(0, x.shape[0], size)
        return not few[name].any() and not any(
            read_rows(name, x, s, s + size).any() for s in starts
        )

    if zero("tau"):
        raise ArgumentError("tau is zero everywhere; was it recorded?")
    if zero("v") and zero("vdot"):
        raise ArgumentError("the robot is at rest in the whole log: v and vdot are zero everywhere")


def _some_samples(arrays: Mapping[str, StoredArray], count: int) -> dict[str, Array]:
    """Samples by which the log is judged, in a few runs of it."""
    if count < 1:
        raise ArgumentError("the log has no samples")
    length = min(LOOKED_AT // 4, count)
    starts = sorted({int(s) for s in np.linspace(0, count - length, 4)})
    return {
        name: np.concatenate([_read({name: x}, s, s + length)[name] for s in starts])
        for name, x in arrays.items()
    }


def _read(arrays: Mapping[str, StoredArray], first: int, last: int) -> dict[str, Array]:
    """Some rows of all arrays, all of them finite."""
    found = {
        name: np.asarray(read_rows(name, x, first, last), dtype=float) for name, x in arrays.items()
    }
    for name, rows in found.items():
        bad = ~np.isfinite(rows).all(axis=1)
        if bad.any():
            raise ArgumentError(
                f"{name} of the log is not finite at {pluralize(int(bad.sum()), 'sample')}, the "
                f"first is {first + int(bad.argmax())}; leave them out of the store"
            )
    return found
