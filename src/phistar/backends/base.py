# SPDX-License-Identifier: BSD-3-Clause
"""What a backend is, and which there are: a module ``to_<name>.py`` with an object ``backend``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from numpy.typing import ArrayLike

from phistar import settings
from phistar.arrays import Array
from phistar.backends.batch_axes import all_finite, all_valid, as_inexact, copy_into_out
from phistar.backends.robot_programs import OPTIONAL_INPUTS, RobotProgram, VectorProgram
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.configuration import normalized_configuration
from phistar.model.model import Model
from phistar.model.model_cache import Entry
from phistar.model.singular import require_finite_results
from phistar.model.wrenches import ProgramInputs, Wrenches, WrenchFrames, link_forces
from phistar.sweeps.costs import OperationCount, count_operations
from phistar.sweeps.ir import StreamProgram

if TYPE_CHECKING:
    from phistar.scalar.program import ScalarProgram

DEFAULT_BACKEND = "llvm"
BACKEND_VARIABLE = "PHISTAR_BACKEND"
"""Environment variable that names another default backend."""


class Executable(Protocol):
    """A program for one robot that may run."""

    @property
    def source(self) -> str:
        """The code, for people."""
        ...

    @property
    def cost(self) -> OperationCount:
        """Operations that it does for a sample; sines, cosines and roots not counted."""
        assert self.scalars is not None
        return OperationCount.of_scalars(self.scalars.count())

    @property
    def scalars(self) -> ScalarProgram | None:
        """The scalar program that its code is made of; None if it is made of the sweeps."""
        return None

    def try_run(
        self, inputs: ProgramInputs, out: Mapping[str, Array] | None = None
    ) -> tuple[dict[str, Array], bool] | None:
        """Run if possible, and tell whether all that was read and found is valid.

        Valid: finite, and quaternions are unit. Those that drifted by less than
        ``QUATERNION_LENGTH_TOLERANCE`` of ``model.configuration`` are normalised first; samples
        with others have no valid results.

        Args:
            inputs: All that it reads by name, the configuration ``q`` (..., nq) too: JOINT vectors
                (..., joints) in body order without those of locked bodies, MOTION and FORCE vectors
                (..., bodies, 6) in link axes, forces on frames (..., frames, 6) in their own axes.
                ``f_ext`` and ``gravity`` may be left out: no external forces, the robot's own
                gravity. ``f_ext`` may also be wrenches on named frames. Names that the program does
                not read are ignored.
            out: Arrays for some of the outputs, of the right shape and dtype.

        Returns:
            Outputs by name, their leading axes those of the inputs, broadcast; None for dtypes that
            the backend does not know, and while code is being compiled, or is not worth it yet.
        """
        ...

    def wait_for_others(self) -> bool:
        """Wait for code that runs samples again for which this has no results; is there any?"""
        return False

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
        return None


class VectorExecutable(Executable, ABC):
    """A program with vectors as outputs: there always is something that runs.

    A class and not a protocol: to ask an object whether it has the attributes of a protocol works
    out its properties, and ``source`` compiles.
    """

    @abstractmethod
    def __call__(self, q: ArrayLike, inputs: ProgramInputs) -> dict[str, Array]:
        """The outputs.

        Args:
            q: (..., nq).
            inputs: The others, see ``try_run``.

        Raises:
            ArgumentError: An input that the program reads is missing.
            SingularConfigurationError, NotFiniteError: A result is not finite.
        """
        ...

    @abstractmethod
    def run(
        self, q: ArrayLike, inputs: ProgramInputs, out: Mapping[str, Array] | None = None
    ) -> tuple[dict[str, Array], bool]:
        """The same, and whether all is valid; see ``try_run``."""
        ...

    def try_run(
        self, inputs: ProgramInputs, out: Mapping[str, Array] | None = None
    ) -> tuple[dict[str, Array], bool] | None:
        """See ``Executable``."""
        q = inputs["q"]
        assert not isinstance(q, Wrenches)
        return self.run(q, inputs, out)


class PureExecutable(Executable, ABC):
    """A program that is a pure function of arrays of another package, too."""

    @abstractmethod
    def read(
        self, given: Mapping[str, object], samples: Mapping[str, tuple[int, ...]]
    ) -> dict[str, Array]:
        """Values as arrays of that package, their shapes and precision checked.

        Args:
            given: By name.
            samples: Shape of one sample, of each.
        """

    @abstractmethod
    def map(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs for such arrays, q among them, whose leading axes broadcast."""


class SweptExecutable(VectorExecutable):
    """Vectors by walks over the links in Python; inputs of any dtype.

    Attributes:
        program: What it computes.
    """

    def __init__(self, program: VectorProgram) -> None:
        self.program = program
        self.model = program.model
        self.schedule = program.schedule

    @abstractmethod
    def results(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """The outputs, not looked at, for forces on the links."""

    def sample_axes(self, output: str) -> int:
        """How many trailing axes of an output are one sample."""
        program = self.schedule.program
        return program.nodes[program.outputs[output]].type.output_axes

    @property
    def cost(self) -> OperationCount:
        """See ``Executable``."""
        return count_operations(self.schedule, self.model).total

    def __call__(self, q: ArrayLike, inputs: ProgramInputs) -> dict[str, Array]:
        """See ``VectorExecutable``."""
        results = self.results(q, with_link_forces(self.model, q, inputs))
        if not all_finite(results.values()):
            name, one = next(iter(results.items()))
            axes = one.ndim - self.sample_axes(name)
            require_finite_results(self.model, as_inexact(q), results, axes)
        return results

    def run(
        self, q: ArrayLike, inputs: ProgramInputs, out: Mapping[str, Array] | None = None
    ) -> tuple[dict[str, Array], bool]:
        """See ``VectorExecutable``."""
        values = with_link_forces(self.model, q, inputs)
        given = [values[name] for name in inputs_read(self.schedule.program) if name in values]
        results = self.results(q, values)
        return copy_into_out(out, results), all_valid(self.model, q, [*given, *results.values()])


class Backend(Protocol):
    """Turns programs into executables.

    Attributes:
        name: What users call it; its module is ``to_<name>``.
        executes: Whether executables run; those of a backend that writes source only do not.
        in_rounds: Whether it knows parallel schedules.
    """

    name: str
    executes: bool = True
    in_rounds: bool = False

    def build(self, program: RobotProgram) -> Executable | None:
        """The executable of a program for a robot; None if the backend has none for it.

        Of a ``VectorProgram`` every backend has one, a ``VectorExecutable``.
        """
        ...


_NAMES = tuple(
    sorted(file.stem.removeprefix("to_") for file in Path(__file__).parent.glob("to_*.py"))
)


def names() -> tuple[str, ...]:
    """Every backend, by name."""
    return _NAMES


def running_names() -> tuple[str, ...]:
    """The backends whose executables run."""
    return tuple(name for name in names() if get(name).executes)


def get(name: str) -> Backend:
    """The backend called ``name``; its module is imported when it is first asked for.

    Raises:
        UnknownNameError: There is none.
    """
    if name not in names():
        raise UnknownNameError("backend", name, names())
    backend: Backend = import_module(f"phistar.backends.to_{name}").backend
    return backend


def build_vectors(name: str, program: VectorProgram) -> VectorExecutable:
    """The executable of a program with vectors as outputs, by the backend called ``name``."""
    found = get(name).build(program)
    assert isinstance(found, VectorExecutable), name
    return found


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
