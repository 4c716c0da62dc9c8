# SPDX-License-Identifier: BSD-3-Clause
"""The compiler: an ordered list of named passes from operator expressions to something that runs.

    expressions   check, derive     what is wanted, then a form of it that sweeps can compute
    streams       lower, prune      one value a link, and nothing that no output needs
    passes        schedule          the fewest walks over the links
    code          build             one robot and one backend enter here

All but the last know no robot, so a kernel is made once per expression and kept; executables are
kept per kernel, robot and backend, the last few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar import backends
from phistar.algebra.derivation import named
from phistar.algebra.identities import DEFINITIONS
from phistar.algebra.ir import Expr, Inverse
from phistar.algebra.printing import to_text as expression_text
from phistar.algebra.spaces import ONE
from phistar.algebra.symbols import D
from phistar.algebra.traverse import nodes, substitute
from phistar.algorithms.programs import ASSEMBLIES, MATRICES, PROGRAMS, WHOLE
from phistar.backends import PLAIN, Assembled, Executable, MatrixExecutable, Tuning
from phistar.derive import INVERSES, derive
from phistar.errors import LoweringError, UnknownNameError
from phistar.model.configuration import configuration
from phistar.model.joint_map import JointMap, joint_map
from phistar.model.model import Model
from phistar.model.parts import GROUND
from phistar.spatial import motion_transform, pose_inverse
from phistar.sweeps.lower import lower
from phistar.sweeps.matrix import Plan, evaluate
from phistar.sweeps.matrix import plan as make_plan
from phistar.sweeps.printing import to_text
from phistar.sweeps.prune import listing, prune
from phistar.sweeps.requests import (
    ARGUMENTS,
    Apply,
    Assembly,
    Block,
    Col,
    Diag,
    Full,
    Request,
    Row,
    forms,
)
from phistar.sweeps.schedule import Schedule, schedule
from phistar.sweeps.split import Terms, split

Array = NDArray[Any]
Outputs = Mapping[str, Expr]

_WHOLE = Full()


@dataclass(frozen=True)
class Target:
    """What an executable is for.

    Attributes:
        model: The robot.
        backend: Name of the backend.
        frames: Names of the frames that B speaks of, in order.
        locked: Bodies whose joints are not free.
        tuning: What the backend may do.
    """

    model: Model
    backend: str
    frames: tuple[str, ...] = ()
    locked: Set[int] = frozenset()
    tuning: Tuning = PLAIN


@dataclass(frozen=True)
class Pass:
    """One step of the compiler.

    Attributes:
        name: What it is called.
        level: What it leaves: ``"expressions"``, ``"streams"``, ``"passes"`` or ``"code"``.
        doc: What it does, in one line.
        run: The program before -> the program after; ``"code"`` passes also take the target.
    """

    name: str
    level: str
    doc: str
    run: Callable[..., Any]


class Stage(NamedTuple):
    """A program as a pass left it, for people."""

    name: str
    level: str
    text: str

    def __str__(self) -> str:
        rows = "\n".join(f"    {line}" for line in self.text.splitlines())
        return f"{self.name} -> {self.level}\n{rows}"


def _check(outputs: Outputs) -> Outputs:
    """Every output is a vector."""
    if not outputs:
        raise LoweringError("nothing to compute: no output is asked for")
    for name, expr in outputs.items():
        if expr.domain is not ONE:
            raise LoweringError(f"output {name!r} is an operator, not a vector; apply it to one")
    return outputs


def _derive(outputs: Outputs) -> Outputs:
    """The cheapest form that the identities give."""
    return derive(outputs).outputs


def _needs_derivation(outputs: Outputs) -> bool:
    """Whether there are inverses other than D⁻¹, which have no sweep form."""
    inverses = {node for node in nodes(outputs.values()) if isinstance(node, Inverse)}
    return bool(inverses - {D.inv})


def _build(scheduled: Schedule, target: Target) -> Executable:
    backend = backends.get(target.backend)
    return backend.build(scheduled, target.model, target.frames, target.locked, target.tuning)


PASSES = (
    Pass("check", "expressions", "every output is a vector", _check),
    Pass("derive", "expressions", "the cheapest form, proved equal, without inverses", _derive),
    Pass("lower", "streams", "operators become recursions over the links", lower),
    Pass("prune", "streams", "streams that no output needs go", prune),
    Pass("schedule", "passes", "the fewest inward and outward walks", schedule),
    Pass("build", "code", "a backend's code, with the tables of one robot", _build),
)
"""The compiler, in order."""


def _expressions_text(outputs: Outputs) -> str:
    lines = [f"{name} = {expression_text(expr)}" for name, expr in outputs.items()]
    return "\n".join([*lines, *named(outputs.values())])


def _source(executable: Executable) -> str:
    return executable.source


_TEXT: Mapping[str, Callable[[Any], str]] = {
    "expressions": _expressions_text,
    "streams": listing,
    "passes": to_text,
    "code": _source,
}
"""How the program at each level is shown."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """A compiled program: outputs by name, ready to run on any robot.

    Attributes:
        name: For people.
        outputs: Vector expressions by name.
        after: The program as each pass left it, in order; the last one is the schedule.
        whole: Whether it is about the motion of the whole robot, see ``WHOLE``.
    """

    name: str
    outputs: tuple[tuple[str, Expr], ...]
    after: tuple[tuple[Pass, Any], ...]
    whole: bool = False

    def __call__(
        self,
        model: Model,
        q: ArrayLike,
        inputs: Mapping[str, ArrayLike],
        frames: Sequence[str] = (),
        locked: Set[int] = frozenset(),
        backend: str | None = None,
    ) -> dict[str, Array]:
        """Run on a robot; see ``backends.base.Executable`` for the arguments."""
        return self.executable(model, frames, locked, backend)(q, inputs)

    def executable(
        self,
        model: Model,
        frames: Sequence[str] = (),
        locked: Set[int] = frozenset(),
        backend: str | None = None,
        snap: float | None = None,
        shape: str = "auto",
    ) -> Executable:
        """What runs on a robot; one is kept for the same arguments."""
        name = backends.default() if backend is None else backend
        tuning = Tuning(self.whole, snap, shape)
        target = Target(model, name, tuple(frames), frozenset(locked), tuning)
        return _executable(self, target)

    @property
    def schedule(self) -> Schedule:
        """The passes over the links."""
        scheduled: Schedule = self.after[-1][1]
        return scheduled

    @cached_property
    def passes(self) -> tuple[Stage, ...]:
        """The program after each pass of the compiler that knows no robot, as text."""
        return tuple(Stage(p.name, p.level, _TEXT[p.level](value)) for p, value in self.after)

    @property
    def trace(self) -> str:
        """``passes`` as one text."""
        return "\n".join(map(str, self.passes))

    @property
    def sweeps(self) -> str:
        """The passes over the links as text."""
        return to_text(self.schedule)


@lru_cache(maxsize=256)
def compile_outputs(
    name: str,
    outputs: tuple[tuple[str, Expr], ...],
    simplify: bool = False,
    whole: bool = False,
) -> Kernel:
    """Compile vector expressions by all passes that know no robot.

    Args:
        name: For people.
        outputs: Vector expressions by name.
        simplify: Look for the cheapest equal form even where the one given could be computed as it
            stands. Programs of the catalogue are what their names say, so they are not touched.
        whole: Whether the program is about the motion of the whole robot.
    """
    value: Any = dict(outputs)
    after = []
    for each in PASSES:
        if each.level != "code":
            if each.run is not _derive or simplify or _needs_derivation(value):
                value = each.run(value)
            after.append((each, value))
    return Kernel(name, outputs, tuple(after), whole)


@lru_cache(maxsize=256)
def _executable(kernel: Kernel, target: Target) -> Executable:
    value: Any = kernel.schedule
    for each in PASSES:
        if each.level == "code":
            value = each.run(value, target)
    executable: Executable = value
    return executable


def kernel(name: str) -> Kernel:
    """The kernel of a program of the catalogue.

    Raises:
        UnknownNameError: No such program.
    """
    if name not in PROGRAMS:
        raise UnknownNameError("program", name, PROGRAMS)
    return compile_outputs(name, tuple(PROGRAMS[name].items()), whole=name in WHOLE)


def preferred(name: str) -> str:
    """The program that is cheapest on the default backend among those equal to a program.

    With classical accelerations, which machine code uses, the third forward-dynamics algorithm
    takes fewer operations than the fourth: P a is a dense product, M α + b is not.
    """
    return "forward_dynamics_3" if (name, backends.default()) == _DEAR else name


_DEAR = ("forward_dynamics", "llvm")


def factored(operator: Expr) -> Expr:
    """An operator with the inverses that have a closed form replaced by it."""
    known = {theorem.definition: theorem.result for theorem in INVERSES}
    known |= {row.rhs.inv: known[row.lhs.inv] for row in DEFINITIONS if row.lhs.inv in known}
    return substitute(operator, known)


@lru_cache(maxsize=512)
def plan(expr: Expr, request: Request, model: Model, frames: tuple[str, ...] = ()) -> Plan:
    """The cheapest program for a request about an operator's matrix on a robot, kept."""
    return make_plan(factored(expr), request, model, frames)


def matrix(
    operator: Expr | str,
    request: Request,
    model: Model,
    q: ArrayLike,
    inputs: Mapping[str, ArrayLike] | None = None,
    frames: Sequence[str] = (),
) -> Any:
    """The matrix of an operator, or a part of it, joints in body order.

    Args:
        operator: An expression, or the name of one in ``MATRICES``.
        request: What is wanted, e.g. ``Full()``.
        model: The robot.
        q: (..., nq).
        inputs: Vectors that the expression names.
        frames: Names of the frames that B speaks of.

    Returns:
        What ``sweeps.matrix.evaluate`` says.
    """
    expr = MATRICES[operator] if isinstance(operator, str) else operator
    given = inputs or {}
    code = matrix_executable(operator, model, frames, request)
    found = None if code is None else code(configuration(model, q), given)
    if found is not None:
        return found
    return evaluate(plan(expr, request, model, tuple(frames)), q, given)


def matrix_executable(
    operator: Expr | str, model: Model, frames: Sequence[str] = (), request: Request = _WHOLE
) -> MatrixExecutable | None:
    """What the default backend has for an operator's matrix or a part, if it has anything."""
    expr = MATRICES[operator] if isinstance(operator, str) else operator
    tuning = Tuning(whole=isinstance(operator, str))
    target = Target(model, backends.default(), tuple(frames), tuning=tuning)
    return _matrix_executable(expr, target, request)


@lru_cache(maxsize=256)
def _matrix_executable(expr: Expr, target: Target, request: Request) -> MatrixExecutable | None:
    if isinstance(request, Full):
        found = forms(factored(expr), request)
    else:
        # Of a part the cheapest program on level 2 will do: its columns are few.
        found = (plan(expr, request, target.model, target.frames).form,)
    return backends.get(target.backend).build_matrix(
        found, target.model, target.frames, target.tuning, request
    )


def together(
    name: str, model: Model, q: ArrayLike, inputs: Mapping[str, ArrayLike]
) -> dict[str, Array] | None:
    """Vectors and matrices of ``ASSEMBLIES`` at once, joints in body order, if that is possible."""
    code = together_executable(name, model)
    return None if code is None else code(configuration(model, q), inputs)


def together_executable(name: str, model: Model) -> Assembled | None:
    """What the default backend has for a row of ``ASSEMBLIES``, if it has anything."""
    return _assembled(name, Target(model, backends.default(), tuning=Tuning(whole=True)))


@lru_cache(maxsize=64)
def _assembled(name: str, target: Target) -> Assembled | None:
    return backends.get(target.backend).build_together(assembly(name), target.model, target.tuning)


@lru_cache(maxsize=16)
def assembly(name: str) -> Assembly:
    """A row of ``ASSEMBLIES``, lowered."""
    wanted = ASSEMBLIES[name]
    matrices = {n: forms(factored(expr), Full()) for n, expr in wanted.matrices.items()}
    walks = None
    if wanted.split is not None:
        inverse, parts = wanted.split
        walks = split(inverse, {n: Terms(*terms) for n, terms in parts.items()})
    return Assembly(kernel(wanted.vectors).schedule, matrices, wanted.products, walks)


def pick_off(model: Model, frames: Sequence[str], motions: Array) -> Array:
    """Motions (..., frames, 6) of frames, in their own axes, out of those of the links."""
    result = np.zeros((*motions.shape[:-2], len(frames), 6), dtype=motions.dtype)
    for number, name in enumerate(frames):
        frame = model.frame(name)
        if frame.body != GROUND:
            carry = motion_transform(pose_inverse(frame.body_pose))
            result[..., number, :] = motions[..., frame.body, :] @ carry.T
    return result


__all__ = [
    "ARGUMENTS",
    "PASSES",
    "Apply",
    "Block",
    "Col",
    "Diag",
    "Full",
    "JointMap",
    "Kernel",
    "Pass",
    "Request",
    "Row",
    "Stage",
    "Target",
    "assembly",
    "compile_outputs",
    "factored",
    "joint_map",
    "kernel",
    "matrix",
    "matrix_executable",
    "pick_off",
    "plan",
    "preferred",
    "together",
    "together_executable",
]
