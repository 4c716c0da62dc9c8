# SPDX-License-Identifier: BSD-3-Clause
"""What decides the code of a kernel, as one name: so that a kernel on disk is found untraced.

A name covers the robot's numbers, the places of the frames that a program uses, the program, how it
is made, and the text of phistar's own sources, its version among them. The processor and the
versions of llvmlite and LLVM are added by ``kernel_cache.cache_key``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cache
from operator import attrgetter
from pathlib import Path

import numpy as np

from phistar.backends.robot_programs import RobotProgram
from phistar.model.fingerprint import fingerprint as fingerprint_of
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.model.wrenches import WrenchFrames
from phistar.sweeps.schedule import Schedule

UNITS_OUTSIDE_KEY = frozenset({"cli", "control", "explain", "loaders", "robots"})
"""Units that decide no code: those above compiled programs, and those whose result is a robot."""


def program_key(
    program: RobotProgram, absent: Set[str], wrenches: WrenchFrames | None = None
) -> str:
    """A name for a program on a robot, made in a certain way by this version of the compiler.

    Args:
        program: The program.
        absent: Optional inputs that are not given.
        wrenches: Frames on which wrenches are given in place of ``f_ext``.
    """
    model = program.model
    robot = model.fingerprint if program.is_about_all else _robot_digest(model)
    frames = (*program.placed_frames, *(() if wrenches is None else wrenches.frames))
    parts = [compiler_digest(), robot, _frames_digest(model, frames)]
    parts += map(_program_text, program.schedules)
    where = None if wrenches is None else wrenches.choices
    parts += map(repr, (sorted(absent), where, *program.key_parts))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@cache
def compiler_digest() -> str:
    """The text of everything that takes part in making code, once per process."""
    return source_digest(Path(__file__).parents[3])


def source_digest(package: Path) -> str:
    """A name for the Python files of a package and their places, units ``UNITS_OUTSIDE_KEY`` left
    out."""
    start = len(os.fspath(package)) + 1
    paths = sorted((path[start:].replace(os.sep, "/"), path) for path in _files(package))
    kept = [(name, path) for name, path in paths if name.partition("/")[0] not in UNITS_OUTSIDE_KEY]
    return _digest(part for name, path in kept for part in (name.encode(), _content(path)))


def _files(folder: str | Path) -> Iterator[str]:
    with os.scandir(folder) as listing:
        for item in listing:
            if item.name.endswith(".py"):
                yield item.path
            elif item.name != "__pycache__" and item.is_dir():
                yield from _files(item.path)


def _content(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()


@cached_on_model
def _robot_digest(model: Model) -> str:
    """Everything about a robot that its dynamics depend on."""
    bodies = model.bodies
    names = "parent", "scale", "offset", "armature"
    columns: list[Sequence[object]] = [list(map(attrgetter(name), bodies)) for name in names]
    # Large robots have few kinds of joints: equal ones count once.
    given = [body.joint_kind for body in bodies]
    distinct = list(dict.fromkeys({id(kind): kind for kind in given}.values()))
    numbers = {kind: number for number, kind in enumerate(distinct)}
    number_of = {id(kind): numbers[kind] for kind in given}
    columns += [distinct, [number_of[id(kind)] for kind in given]]
    columns += [[body.q_slice.start for body in bodies], [body.q_slice.stop for body in bodies]]
    placements = np.concatenate([body.placement for body in bodies]) if bodies else np.zeros(0)
    return fingerprint_of([model.gravity, model.nq, model.inertias, placements, *columns])


def _frames_digest(model: Model, frames: Sequence[str]) -> str:
    """On which body each frame is, and where."""
    found = [model.frame(name) for name in frames]
    return _digest(part for f in found for part in (b"%d" % f.body, f.body_pose.tobytes()))


def _program_text(schedule: Schedule) -> str:
    program = schedule.program
    return repr((program.nodes, program.definitions, program.outputs, schedule.sweeps))


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()
