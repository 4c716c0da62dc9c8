# SPDX-License-Identifier: BSD-3-Clause
"""What a backend is, and which there are: a module ``to_<name>.py`` with an object ``backend``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import ArrayLike, NDArray

from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.model import Model
from phistar.sweeps.ir import Program
from phistar.sweeps.requests import Assembly, Form, Request
from phistar.sweeps.schedule import Schedule

Array = NDArray[Any]
Quick = Callable[..., "Array | None"]
"""Takes arrays, gives the result, or None where anything is out of the ordinary."""
Way = Callable[..., "dict[str, Array] | None"]
"""The same with all outputs by name; arrays (size,) or (batch, size)."""

DEFAULT = "llvm"
OPTIONAL = ("f_ext", "gravity")
"""Inputs with a value of their own: no external forces, the robot's gravity."""
VARIABLE = "PHISTAR_BACKEND"
"""Environment variable that names another default backend."""


@dataclass(frozen=True)
class Tuning:
    """What a backend may do; those that work on links as they are take no notice.

    Attributes:
        whole: The program is about the motion of the whole robot: inertia that a joint cannot feel
            may be counted to its parent link, no output can tell.
        snap: Rotations closer than this to right angles, and smaller lengths and inertias, become
            exactly right or zero; None leaves the robot's numbers alone.
        shape: ``"straight"`` or ``"rolled"`` code, or ``"auto"``.
    """

    whole: bool = False
    snap: float | None = None
    shape: str = "auto"


PLAIN = Tuning()


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
                frames (..., frames, 6) in their own axes. ``f_ext`` and ``gravity`` may be left
                out: no external forces, the robot's own gravity. Names that the program does not
                read are ignored.

        Returns:
            Outputs by name, shaped like the inputs. Their leading axes are those of q and of the
            inputs that the program reads, broadcast.

        Raises:
            ArgumentError: An input that the program reads is missing.
        """
        ...

    def run(
        self,
        q: ArrayLike,
        inputs: Mapping[str, ArrayLike],
        out: Mapping[str, Array] | None = None,
    ) -> tuple[dict[str, Array], bool]:
        """Run, and tell whether all that was read is finite.

        Args:
            q, inputs: As above.
            out: Arrays for some of the outputs, of the right shape and dtype.
        """
        ...

    def quick(self, order: Sequence[str], keep: Callable[[Quick], None]) -> None:
        """Hand over a quick way, now and whenever there is a better one.

        Args:
            order: Names of the inputs, the configuration among them.
            keep: Is given a function of the inputs in this order, plain arrays (size,) or
                (batch, size), that returns the only output, or None where it is no match for what
                it was given. ``out=`` says where to put the output of a vector; only if the result
                is None may something else have been written there. Not called if there is no such
                way.
        """
        ...

    def ways(self, order: Sequence[str], keep: Callable[[Way], None]) -> None:
        """As ``quick``, for any number of outputs: the way returns them by name."""
        ...


class MatrixExecutable(Protocol):
    """The matrix of an operator on one robot, or a part of it."""

    def __call__(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> Any:
        """What ``sweeps.matrix.evaluate`` gives for the request; None if it cannot say it now.

        Args:
            q, inputs: As for ``Executable``.
        """
        ...

    def quick(self, order: Sequence[str], keep: Callable[[Quick], None]) -> None:
        """As for ``Executable``."""
        ...


class Assembled(Protocol):
    """Matrices and vectors of one robot that are computed together.

    Attributes:
        way: A quick way for plain arrays, once there is one.
    """

    way: Way | None

    def __call__(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> dict[str, Array] | None:
        """Vectors (..., joints) and matrices (..., joints, joints) by name, joints in body order.

        None if there is nothing ready: then they come one by one.

        Args:
            q, inputs: As for ``Executable``; joint vectors only.
        """
        ...


class Backend(Protocol):
    """Turns programs into executables. One that inherits from this need not know matrices.

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
        tuning: Tuning = PLAIN,
    ) -> Executable:
        """The executable of a program for a robot.

        Args:
            schedule: The program.
            model: The robot.
            frames: Names of the frames that B speaks of, in order.
            locked: Bodies whose joints are not free: H has no row for them.
            tuning: What the backend may do to the robot's numbers and to the code.
        """
        ...

    def build_matrix(
        self,
        forms: Sequence[Form],
        model: Model,
        frames: Sequence[str],
        tuning: Tuning,
        request: Request,
    ) -> MatrixExecutable | None:
        """Something that answers a request about a matrix, or None: level 2 then does it.

        Args:
            forms: Programs that give the same matrix.
            model, frames, tuning: As above.
            request: The whole matrix, or what part of it.
        """
        return None

    def build_together(self, assembly: Assembly, model: Model, tuning: Tuning) -> Assembled | None:
        """Something that computes matrices together, or None: then they come one by one.

        Args:
            assembly: What is wanted.
            model, tuning: As above.
        """
        return None


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
    """Name of the backend that runs where none is named: that of PHISTAR_BACKEND, or ``llvm``."""
    return os.environ.get(VARIABLE) or DEFAULT


def inputs_read(program: Program) -> tuple[str, ...]:
    """Names of the leaves that the outputs of a program depend on, in order."""
    given = (program.nodes[stream] for stream in program.live())
    names = (node.data for node in given if node.op in ("leaf", "scatter"))
    return tuple(dict.fromkeys(names))


def require_inputs(read: Sequence[str], inputs: Mapping[str, ArrayLike]) -> None:
    """Refuse to run without an input that has no value of its own."""
    for name in read:
        if name not in inputs and name not in OPTIONAL:
            raise ArgumentError(f"no value was given for the input {name!r}")
