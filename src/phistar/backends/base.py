# SPDX-License-Identifier: BSD-3-Clause
"""What a backend is, and which there are: a module ``to_<name>.py`` with an object ``backend``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import ArrayLike

from phistar import settings
from phistar.arrays import Array
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.configuration import normalized_configuration
from phistar.model.model import Model
from phistar.model.model_cache import Entry
from phistar.model.wrenches import ProgramInputs, Wrenches, WrenchFrames, link_forces
from phistar.sweeps.costs import OperationCount
from phistar.sweeps.ir import StreamProgram
from phistar.sweeps.requests import LoweredBundle, MatrixForm, Request
from phistar.sweeps.schedule import Schedule

DEFAULT_BACKEND = "llvm"
OPTIONAL_INPUTS = ("f_ext", "gravity")
"""Inputs with a value of their own: no external forces, the robot's gravity."""
BACKEND_VARIABLE = "PHISTAR_BACKEND"
"""Environment variable that names another default backend."""


@dataclass(frozen=True)
class Tuning:
    """What a backend may do; those that work on links as they are take no notice.

    Attributes:
        regroup_inertia: The program is about the motion of the whole robot: inertia that a joint
            cannot feel may be counted to its parent link, no output can tell.
        snap: Rotations closer than this to right angles, and smaller lengths and inertias, become
            exactly right or zero; None leaves the robot's numbers alone.
        shape: ``"straight"`` or ``"rolled"`` code, or ``"auto"``.
    """

    regroup_inertia: bool = False
    snap: float | None = None
    shape: str = "auto"


DEFAULT_TUNING = Tuning()


class Executable(Protocol):
    """A program for one robot, ready to run."""

    @property
    def source(self) -> str:
        """The code, for people."""
        ...

    @property
    def cost(self) -> OperationCount:
        """Operations that it does for a sample; sines, cosines and roots not counted."""
        ...

    def __call__(self, q: ArrayLike, inputs: ProgramInputs) -> dict[str, Array]:
        """Run.

        Args:
            q: (..., nq).
            inputs: Leaves by name: JOINT vectors (..., joints) in body order without those of
                locked bodies, MOTION and FORCE vectors (..., bodies, 6) in link axes, forces on
                frames (..., frames, 6) in their own axes. ``f_ext`` and ``gravity`` may be left
                out: no external forces, the robot's own gravity. ``f_ext`` may also be wrenches on
                named frames. Names that the program does not read are ignored.

        Returns:
            Outputs by name, shaped like the inputs. Their leading axes are those of q and of the
            inputs that the program reads, broadcast.

        Raises:
            ArgumentError: An input that the program reads is missing.
            SingularConfigurationError, NotFiniteError: A result is not finite.
        """
        ...

    def run(
        self,
        q: ArrayLike,
        inputs: ProgramInputs,
        out: Mapping[str, Array] | None = None,
    ) -> tuple[dict[str, Array], bool]:
        """Run, and tell whether all that was read and found is finite, and quaternions are unit.

        Quaternions that drifted by less than ``QUATERNION_LENGTH_TOLERANCE`` of
        ``model.configuration`` are normalised first; samples with others have no valid results.

        Args:
            q, inputs: As above.
            out: Arrays for some of the outputs, of the right shape and dtype.
        """
        ...

    def entry(
        self,
        order: Sequence[str],
        names: Mapping[str, str] | None = None,
        *,
        wrenches: WrenchFrames | None = None,
        real: str = "double",
    ) -> Entry | None:
        """The entry for inputs in this order, the configuration among them, if there is one.

        Args:
            order: Names of all inputs, wrenches left out.
            names: Other names for the outputs, where there are several.
            wrenches: Frames whose wrenches are inputs, too.
            real: Precision of all arrays, ``"double"`` or ``"float"``.
        """
        ...


class MatrixExecutable(Protocol):
    """The matrix of an operator on one robot, or a part of it."""

    def __call__(self, q: ArrayLike, inputs: ProgramInputs) -> Any:
        """What ``sweeps.matrix.evaluate`` gives for the request; None if it cannot say it now.

        Args:
            q, inputs: As for ``Executable``.
        """
        ...

    def entry(self, order: Sequence[str]) -> Entry | None:
        """As for ``Executable``."""
        ...


class FusedExecutable(Protocol):
    """Matrices and vectors of one robot that are computed together."""

    def __call__(self, q: ArrayLike, inputs: ProgramInputs) -> dict[str, Array] | None:
        """Vectors (..., joints) and matrices (..., joints, joints) by name, joints in body order.

        None if there is nothing ready: then they come one by one.

        Args:
            q, inputs: As for ``Executable``; joint vectors, and wrenches on frames.
        """
        ...

    def entry(self, order: Sequence[str], *, wrenches: WrenchFrames | None = None) -> Entry | None:
        """As for ``Executable``; None as long as there is no kernel."""
        ...


class Backend(Protocol):
    """Turns programs into executables. One that inherits from this need not know matrices.

    Attributes:
        name: What users call it; its module is ``to_<name>``.
        executes: Whether executables run; those of a backend that writes source only do not.
    """

    name: str
    executes: bool = True

    def build(
        self,
        schedule: Schedule,
        model: Model,
        frames: Sequence[str] = (),
        locked: Set[int] = frozenset(),
        tuning: Tuning = DEFAULT_TUNING,
    ) -> Executable:
        """The executable of a program for a robot.

        Args:
            schedule: The program.
            model: The robot.
            frames: Names of the frames that B selects, in order.
            locked: Bodies whose joints are not free: H has no row for them.
            tuning: What the backend may do to the robot's numbers and to the code.
        """
        ...

    def build_matrix(
        self,
        forms: Sequence[MatrixForm],
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

    def build_fused(
        self, assembly: LoweredBundle, model: Model, tuning: Tuning
    ) -> FusedExecutable | None:
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


def running_names() -> tuple[str, ...]:
    """The backends whose executables run."""
    return tuple(name for name in names() if get(name).executes)


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


_default_name: str | None = None


def default() -> str:
    """Name of the backend that runs where none is named: that of PHISTAR_BACKEND, or ``llvm``.

    The variable is read once, when it is first needed: quick ways into machine code are kept per
    robot and do not look at it, so that a change later on would be obeyed by some methods alone.
    """
    global _default_name
    if _default_name is None:
        name = settings.backend()
        if name and name not in (running := running_names()):
            raise UnknownNameError(f"backend for {BACKEND_VARIABLE}:", name, running)
        _default_name = name or DEFAULT_BACKEND
    return _default_name


def inputs_read(program: StreamProgram) -> tuple[str, ...]:
    """Names of the leaves that the outputs of a program depend on, in order."""
    given = (program.nodes[stream] for stream in program.live())
    names = (node.data for node in given if node.op in ("leaf", "scatter"))
    return tuple(dict.fromkeys(names))


def with_link_forces(model: Model, q: ArrayLike, inputs: ProgramInputs) -> dict[str, ArrayLike]:
    """Inputs with wrenches on frames as forces on the links, by NumPy."""
    return {
        name: link_forces(model, normalized_configuration(model, q), value)
        if isinstance(value, Wrenches)
        else value
        for name, value in inputs.items()
    }


def require_inputs(read: Sequence[str], inputs: ProgramInputs) -> None:
    """Refuse to run without an input that has no value of its own."""
    for name in read:
        if name not in inputs and name not in OPTIONAL_INPUTS:
            raise ArgumentError(f"no value was given for the input {name!r}")
