# SPDX-License-Identifier: BSD-3-Clause
"""What decides the code of a kernel, as one name: so that a kernel on disk is found untraced."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

import phistar.scalar
import phistar.sweeps
from phistar.model.model import Model
from phistar.sweeps.schedule import Schedule


def fingerprint(schedule: Schedule, model: Model, *choices: object) -> str:
    """A name for a program on a robot, made in a certain way by this version of the compiler."""
    parts = [compiler(), _robot(model), _program(schedule), *map(repr, choices)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def direct_fingerprint(model: Model, *choices: object) -> str:
    """The same for a program that is not made of passes; it may depend on all of the robot."""
    parts = [compiler(), model.fingerprint, "direct", *map(repr, choices)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@cache
def compiler() -> str:
    """The text of everything between passes over links and machine code."""
    folders = [
        Path(phistar.scalar.__path__[0]),
        Path(phistar.sweeps.__path__[0]),
        Path(__file__).parent,
    ]
    return _digest(path.read_bytes() for folder in folders for path in sorted(folder.glob("*.py")))


@lru_cache(maxsize=64)
def _robot(model: Model) -> str:
    """Everything about a robot that its dynamics depend on."""
    parts: list[bytes] = [model.gravity.tobytes(), str(model.nq).encode()]
    for body in model.bodies:
        words = (
            body.parent,
            body.motion,
            body.q_slice.start,
            body.scale,
            body.offset,
            body.armature,
        )
        parts += [repr(words).encode(), body.placement.tobytes(), body.inertia.tobytes()]
    return _digest(parts)


def _program(schedule: Schedule) -> str:
    program = schedule.program
    return repr((program.nodes, program.definitions, program.outputs, schedule.passes))


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()
