# SPDX-License-Identifier: BSD-3-Clause
"""What a backend is, and which there are: a module ``to_<name>.py`` with an object ``backend``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import ArrayLike, NDArray

from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.model import Model
from phistar.sweeps.ir import Program
from phistar.sweeps.schedule import Schedule

Array = NDArray[Any]

DEFAULT = "numpy"
VARIABLE = "PHISTAR_BACKEND"
"""Environment variable that names another default backend."""


class Executable(Protocol):
    """A program for one robot, ready to run."""

    @property
    def source(self) -> str:
        """The code, for people."""
        ...

    def __call__(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """Run.

        Args:
            q: (..., nq).
            inputs: Leaves by name: JOINT vectors (..., joints) in body order without those of
                locked bodies, MOTION and FORCE vectors (..., bodies, 6) in link axes, forces on
                frames (..., frames, 6) in their own axes. ``gravity`` may be left out: it is then
                the robot's. Names that the program does not read are ignored.

        Returns:
            Outputs by name, shaped like the inputs. Their leading axes are those of q and of the
            inputs that the program reads, broadcast.

        Raises:
            ArgumentError: An input that the program reads is missing.
        """
        ...


class Backend(Protocol):
    """Turns programs into executables.

    Attributes:
        name: What users call it; its module is ``to_<name>``.
    """

    name: str

    def build(
        self,
        schedule: Schedule,
        model: Model,
        frames: Sequence[str] = (),
        locked: Set[int] = frozenset(),
    ) -> Executable:
        """The executable of a program for a robot.

        Args:
            schedule: The program.
            model: The robot.
            frames: Names of the frames that B speaks of, in order.
            locked: Bodies whose joints are not free: H has no row for them.
        """
        ...


@cache
def names() -> tuple[str, ...]:
    """Every backend, by name."""
    files = Path(__file__).parent.glob("to_*.py")
    return tuple(sorted(file.stem.removeprefix("to_") for file in files))


@cache
def get(name: str) -> Backend:
    """The backend called ``name``; its module is imported when it is first asked for.

    Raises:
        UnknownNameError: There is none.
    """
    if name not in names():
        raise UnknownNameError("backend", name, names())
    backend: Backend = import_module(f"phistar.backends.to_{name}").backend
    return backend


def default() -> str:
    """Name of the backend that runs where none is named: that of PHISTAR_BACKEND, or ``numpy``."""
    return os.environ.get(VARIABLE) or DEFAULT


def inputs_read(program: Program) -> tuple[str, ...]:
    """Names of the leaves that the outputs of a program depend on, in order."""
    given = (program.nodes[stream] for stream in program.live())
    names = (node.data for node in given if node.op in ("leaf", "scatter"))
    return tuple(dict.fromkeys(names))


def require_inputs(read: Sequence[str], inputs: Mapping[str, ArrayLike]) -> None:
    """Refuse to run without an input; gravity is known from the robot."""
    for name in read:
        if name not in inputs and name != "gravity":
            raise ArgumentError(f"no value was given for the input {name!r}")
