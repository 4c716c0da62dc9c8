# SPDX-License-Identifier: BSD-3-Clause
"""Requests through the passes: a kernel once per request, an executable once per robot.

Kernels know no robot and are kept; executables belong to their robot and are gone with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from numpy.typing import ArrayLike

from phistar import backends
from phistar.algebra.ir import Expr
from phistar.algorithms.programs import PROGRAMS
from phistar.arrays import Array
from phistar.backends import (
    BundleProgram,
    Executable,
    MatrixProgram,
    RobotProgram,
    TracedProgram,
    Tuning,
    VectorExecutable,
    VectorProgram,
)
from phistar.backends.policy import UNROLLED
from phistar.compile.passes import PASSES, Draft, Pass, Stage, Stages, draft_text, sweeps_text
from phistar.compile.request_table import request as request_named
from phistar.compile.request_table import vectors_row
from phistar.compile.requests import Bundle, MatrixOf, Outputs, Request, Traced, Vectors
from phistar.model.model import Model
from phistar.model.model_cache import cached_for_equal_models
from phistar.model.wrenches import ProgramInputs
from phistar.sweeps.matrix_plans import MatrixPlan, cheapest_of, without_indices
from phistar.sweeps.matrix_requests import (
    Apply,
    Block,
    Col,
    Diag,
    Full,
    LoweredBundle,
    MatrixForm,
    Row,
)
from phistar.sweeps.matrix_requests import Request as MatrixPart
from phistar.sweeps.schedule import Schedule


@dataclass(frozen=True)
class BuildTarget:
    """What an executable is for, besides the robot.

    Attributes:
        backend: Its name.
        frames: Names of the frames that B selects, in order.
        locked: Bodies whose joints are not free.
        tuning: What the backend may do.
        choices: Of a traced quantity, in the order of its row.
    """

    backend: str
    frames: tuple[str, ...] = ()
    locked: frozenset[int] = frozenset()
    tuning: Tuning = backends.DEFAULT_TUNING
    choices: tuple[object, ...] = ()


@dataclass(frozen=True, eq=False)
class Kernel:
    """A request after the passes that know no robot, ready for any robot.

    Attributes:
        request: What is wanted.
        after: The draft as each pass left it, in order.
    """

    request: Request
    after: tuple[tuple[Pass, Draft], ...]

    @property
    def name(self) -> str:
        """What it is called."""
        return self.request.name

    @property
    def outputs(self) -> Outputs:
        """Vectors that were asked for."""
        return tuple(Draft.of(self.request).outputs.items())

    def __repr__(self) -> str:
        return f"<kernel {self.name}: {', '.join(self.output_names)}>"

    def __str__(self) -> str:
        return f"{self.name}\n{self.sweeps}"

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of all that was asked for."""
        if isinstance(self.request, Traced):
            return (self.name,)
        if isinstance(self.request, Bundle):
            return (*self.draft.outputs, *self.bundle.outputs)
        return (*self.draft.outputs, *self.draft.operators)

    @property
    def draft(self) -> Draft:
        """The last draft."""
        return self.after[-1][1]

    @property
    def schedule(self) -> Schedule:
        """The sweeps of its vectors."""
        scheduled = self.draft.schedule
        assert scheduled is not None, f"{self.name} has no vectors"
        return scheduled

    @property
    def bundle(self) -> LoweredBundle:
        """The sweeps of a bundle."""
        return self.draft.bundle

    @property
    def regroup_inertia(self) -> bool:
        """Whether it is about the motion of the whole robot."""
        return not isinstance(self.request, Traced) and self.request.regroup_inertia

    @cached_property
    def passes(self) -> Stages:
        """The program after each pass of the compiler that knows no robot, as text."""
        return Stages(Stage(p.name, p.level, draft_text(x, p.level)) for p, x in self.after)

    @property
    def trace(self) -> str:
        """``passes`` as one text."""
        return str(self.passes)

    @cached_property
    def sweeps(self) -> str:
        """The walks over the links as text."""
        return sweeps_text(self.draft)

    def __call__(
        self,
        model: Model,
        q: ArrayLike,
        inputs: ProgramInputs,
        frames: Sequence[str] = (),
        locked: Set[int] = frozenset(),
        backend: str | None = None,
    ) -> dict[str, Array]:
        """Run vectors on a robot; see ``backends.base.VectorExecutable`` for the arguments."""
        return self.executable(model, frames, locked, backend)(q, inputs)

    def executable(
        self,
        model: Model,
        frames: Sequence[str] = (),
        locked: Set[int] = frozenset(),
        backend: str | None = None,
        snap: float | None = None,
        shape: str = "auto",
    ) -> VectorExecutable:
        """What runs its vectors on a robot; one is kept for the same arguments."""
        found = self.build(model, frames, locked, backend, snap, shape)
        assert isinstance(found, VectorExecutable), f"{self.name} has other results than vectors"
        return found

    def build(
        self,
        model: Model,
        frames: Sequence[str] = (),
        locked: Set[int] = frozenset(),
        backend: str | None = None,
        snap: float | None = None,
        shape: str = "auto",
        choices: tuple[object, ...] = (),
        keeps_zeros: bool = False,
    ) -> Executable | None:
        """What runs on a robot, kept for the same arguments; None if the backend has nothing.

        Args:
            model: The robot.
            frames: Names of the frames that B selects, in order.
            locked: Bodies whose joints are not free.
            backend: Name of the backend; None: the default one.
            snap, shape, keeps_zeros: See ``Tuning``.
            choices: Of a traced quantity, in the order of its row.
        """
        name = backends.default() if backend is None else backend
        tuning = Tuning(self.regroup_inertia, snap, shape, keeps_zeros)
        return _executable(
            model, self, BuildTarget(name, tuple(frames), frozenset(locked), tuning, choices)
        )

    def on(self, model: Model, target: BuildTarget) -> RobotProgram | None:
        """The program on a robot, of which backends make code; None: there is none."""
        request, draft, tuning = self.request, self.draft, target.tuning
        if isinstance(request, Vectors):
            free = (model, target.frames, target.locked, tuning, draft.parallel)
            return VectorProgram(self.schedule, *free, label=self.name)
        if isinstance(request, Bundle):
            return BundleProgram(draft.bundle, model, tuning, self.name)
        if isinstance(request, MatrixOf):
            if isinstance(request.part, Full):
                forms: Sequence[MatrixForm] = draft.forms[request.name]
            else:
                # Of a part the cheapest form on the robot will do: its columns are few.
                found = matrix_plan(request.operator, request.part, model, target.frames)
                forms = (found.form,)
            label = ", ".join([self.name, *_PART_WORDS.get(type(request.part), ())])
            rest = (model, target.frames, tuning, request.part, draft.factors, label)
            return MatrixProgram(forms, *rest)
        return traced_program(request, model, target.choices)


def traced_program(
    request: Traced, model: Model, choices: tuple[object, ...]
) -> TracedProgram | None:
    """A traced quantity on a robot; None where there is no such program."""
    work = request.work(model, *choices)
    if work is None:
        return None
    everywhere = request.everywhere(model, *choices)
    single = request.trace_single
    return TracedProgram(
        (request.name, *choices),
        model,
        request.inputs,
        request.shapes(model, *choices),
        work,
        lambda: request.trace(model, *choices),
        None if everywhere == choices else traced_program(request, model, everywhere),
        None if single is None else lambda: single(model, *choices),
        ", ".join([request.name, *_choice_words(request, choices)]),
    )


_PART_WORDS: dict[type, tuple[str, ...]] = {
    Diag: ("diagonal",),
    Block: ("a block",),
    Row: ("a row",),
    Col: ("a column",),
    Apply: ("applied",),
}


def _choice_words(request: Traced, choices: Sequence[object]) -> Iterator[str]:
    """What was chosen, for people: what says yes by its name, what says nothing not at all."""
    for name, value in zip(request.choices, choices, strict=False):
        if value is True:
            yield name
        elif isinstance(value, tuple):
            yield from map(str, value)
        elif value is not None and value is not False:
            yield value if isinstance(value, str) else f"{name} {value}"


@lru_cache(maxsize=512)
def compile_request(request: Request) -> Kernel:
    """A request after all passes that know no robot."""
    if isinstance(request, MatrixOf) and without_indices(request.part) != request.part:
        # Which block, row or column it is does not matter before there is a robot.
        plain = replace(request, part=without_indices(request.part))
        return Kernel(request, compile_request(plain).after)
    draft = Draft.of(request)
    after = []
    for each in PASSES:
        if each.run is not None:
            draft = each.run(draft)
            after.append((each, draft))
    return Kernel(request, tuple(after))


def compile_outputs(
    name: str, outputs: Outputs, simplify: bool = False, regroup_inertia: bool = False
) -> Kernel:
    """The kernel of vectors; see ``requests.Vectors`` for the arguments."""
    return compile_request(Vectors(name, outputs, simplify, regroup_inertia))


def kernel(name: str, model: Model | None = None, schedule: str = "sequential") -> Kernel:
    """The kernel of a program of the catalogue, else of a row of ``REQUESTS``.

    Args:
        name: The quantity.
        model: A robot whose rotors may turn (``algorithms.rotor_programs``); they do not without.
        schedule: One of ``SCHEDULES``; of vectors.

    Raises:
        UnknownNameError: No such quantity.
    """
    turning = model is not None and model.turning_rotors
    if name in PROGRAMS:
        return compile_request(replace(vectors_row(name, turning), schedule=schedule))
    return compile_request(request_named(name, turning))


def lowered_bundle(name: str, turning_rotors: bool = False) -> LoweredBundle:
    """The sweeps of a bundle of the catalogue."""
    return compile_request(request_named(name, turning_rotors)).bundle


@cached_for_equal_models(1024)
def _executable(model: Model, kernel: Kernel, target: BuildTarget) -> Executable | None:
    program = kernel.on(model, target)
    if program is None or (isinstance(program, TracedProgram) and _is_too_large(program, target)):
        return None
    return backends.get(target.backend).build(program)


def _is_too_large(program: TracedProgram, target: BuildTarget) -> bool:
    return target.backend == "llvm" and program.decision.shape != UNROLLED


def cheapest_equivalent(name: str, backend: str | None = None) -> str:
    """The program that is cheapest on a backend, or the default one, among those equal to one.

    With classical accelerations, which machine code and C use, the third forward-dynamics algorithm
    takes fewer operations than the fourth: P a is a dense product, M α + b is not.
    """
    used = backends.default() if backend is None else backend
    scalars = used in ("llvm", "c")
    return "forward_dynamics_3" if name == "forward_dynamics" and scalars else name


def matrix_plan(
    operator: Expr, part: MatrixPart, model: Model, frames: tuple[str, ...] = ()
) -> MatrixPlan:
    """The cheapest program on level 2 for a part of an operator's matrix on a robot, kept."""
    return _plan(model, operator, part, frames)


@cached_for_equal_models(512)
def _plan(model: Model, operator: Expr, part: MatrixPart, frames: tuple[str, ...]) -> MatrixPlan:
    request = MatrixOf("matrix", operator, part)
    forms = compile_request(request).draft.forms[request.name]
    return cheapest_of(forms, part, model, frames)
