# SPDX-License-Identifier: BSD-3-Clause
"""The compiler: an ordered list of named passes from operator expressions to something that runs.

    expressions   check, derive     what is wanted, then a form of it that sweeps can compute
    streams       lower, prune      one value a link, and nothing that no output needs
    passes        schedule          the fewest walks over the links
    code          build             one robot and one backend enter here

All but the last know no robot, so a kernel is made once per expression and kept; executables belong
to their robot and are gone with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from phistar import backends
from phistar.algebra.ir import Expr, Inverse
from phistar.algebra.printing import to_text as expression_text
from phistar.algebra.proof_text import let_lines
from phistar.algebra.spaces import ONE
from phistar.algebra.symbols import D
from phistar.algebra.traverse import nodes
from phistar.algorithms.programs import BUNDLES, MATRICES, PROGRAMS, REGROUPABLE_PROGRAMS
from phistar.algorithms.rotor_programs import (
    ROTOR_BUNDLES,
    ROTOR_MATRICES,
    ROTOR_PROGRAMS,
)
from phistar.arrays import Array
from phistar.backends import DEFAULT_TUNING, Executable, FusedExecutable, MatrixExecutable, Tuning
from phistar.derive import derive, spell_inverses_for_robot, with_closed_inverses
from phistar.errors import LoweringError, UnknownNameError
from phistar.memory_limits import UNCHECKED_BYTES, refuse_large
from phistar.model.components import GROUND
from phistar.model.configuration import read_coordinates
from phistar.model.joint_map import JointMap, joint_map
from phistar.model.model import Model
from phistar.model.model_cache import cached_for_equal_models
from phistar.model.singular import require_finite_results
from phistar.model.wrenches import ProgramInputs, Wrenches
from phistar.spatial import motion_transform, pose_inverse
from phistar.sweeps.column_support import BlockPartition
from phistar.sweeps.inner_products import DualPair, InnerProductTerm, inner_product_terms
from phistar.sweeps.ir import StreamProgram
from phistar.sweeps.lower import ARGUMENTS, lower
from phistar.sweeps.matrix_plans import MatrixPlan, evaluate
from phistar.sweeps.matrix_plans import cheapest_plan as make_plan
from phistar.sweeps.printing import to_text
from phistar.sweeps.prune import program_listing, prune
from phistar.sweeps.requests import (
    Apply,
    Block,
    Col,
    Diag,
    Full,
    LoweredBundle,
    Request,
    Row,
    matrix_forms,
)
from phistar.sweeps.schedule import Schedule, schedule
from phistar.sweeps.split_matrices import SplitTerms, lower_split
from phistar.sweeps.verify import verified

Outputs = Mapping[str, Expr]
_TargetOptions = tuple[str, tuple[str, ...], frozenset[int], Tuning]

_FULL = Full()


@dataclass(frozen=True)
class Target:
    """What an executable is for.

    Attributes:
        model: The robot.
        backend: Name of the backend.
        frames: Names of the frames that B selects, in order.
        locked: Bodies whose joints are not free.
        tuning: What the backend may do.
    """

    model: Model
    backend: str
    frames: tuple[str, ...] = ()
    locked: Set[int] = frozenset()
    tuning: Tuning = DEFAULT_TUNING


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

    def __repr__(self) -> str:
        return f"<{self.name} -> {self.level}: lines: {len(self.text.splitlines())}>"


class Stages(tuple[Stage, ...]):
    """A program as each pass left it; ``print`` shows all of them."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self))


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


def _schedule(program: StreamProgram) -> Schedule:
    return verified(schedule(program))


def _build(scheduled: Schedule, target: Target) -> Executable:
    backend = backends.get(target.backend)
    return backend.build(scheduled, target.model, target.frames, target.locked, target.tuning)


PASSES = (
    Pass("check", "expressions", "every output is a vector", _check),
    Pass("derive", "expressions", "the cheapest form, proved equal, without inverses", _derive),
    Pass("lower", "streams", "operators become recursions over the links", lower),
    Pass("prune", "streams", "streams that no output needs go", prune),
    Pass("schedule", "passes", "the fewest inward and outward walks", _schedule),
    Pass("build", "code", "a backend's code, with the tables of one robot", _build),
)
"""The compiler, in order."""


def _expressions_text(outputs: Outputs) -> str:
    lines = [f"{name} = {expression_text(expr)}" for name, expr in outputs.items()]
    return "\n".join([*lines, *let_lines(outputs.values())])


def _source(executable: Executable) -> str:
    return executable.source


_LEVEL_PRINTERS: Mapping[str, Callable[[Any], str]] = {
    "expressions": _expressions_text,
    "streams": program_listing,
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
        regroup_inertia: Whether it is about the motion of the whole robot, see
            ``REGROUPABLE_PROGRAMS``.
    """

    name: str
    outputs: tuple[tuple[str, Expr], ...]
    after: tuple[tuple[Pass, Any], ...]
    regroup_inertia: bool = False

    def __repr__(self) -> str:
        return f"<kernel {self.name}: {', '.join(name for name, _ in self.outputs)}>"

    def __str__(self) -> str:
        return f"{self.name}\n{self.sweeps}"

    def __call__(
        self,
        model: Model,
        q: ArrayLike,
        inputs: ProgramInputs,
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
        tuning = Tuning(self.regroup_inertia, snap, shape)
        return _executable(model, self, (name, tuple(frames), frozenset(locked), tuning))

    @property
    def schedule(self) -> Schedule:
        """The passes over the links."""
        scheduled: Schedule = self.after[-1][1]
        return scheduled

    @cached_property
    def passes(self) -> Stages:
        """The program after each pass of the compiler that knows no robot, as text."""
        return Stages(
            Stage(p.name, p.level, _LEVEL_PRINTERS[p.level](value)) for p, value in self.after
        )

    @property
    def trace(self) -> str:
        """``passes`` as one text."""
        return str(self.passes)

    @property
    def sweeps(self) -> str:
        """The passes over the links as text."""
        return to_text(self.schedule)


@lru_cache(maxsize=256)
def compile_outputs(
    name: str,
    outputs: tuple[tuple[str, Expr], ...],
    simplify: bool = False,
    regroup_inertia: bool = False,
) -> Kernel:
    """Compile vector expressions by all passes that know no robot.

    Args:
        name: For people.
        outputs: Vector expressions by name.
        simplify: Look for the cheapest equal form even where the one given could be computed as it
            stands. Programs of the catalogue are what their names say, so they are not touched.
        regroup_inertia: Whether the program is about the motion of the whole robot.
    """
    value: Any = dict(outputs)
    after = []
    for each in PASSES:
        if each.level != "code":
            if each.run is not _derive or simplify or _needs_derivation(value):
                value = each.run(value)
            after.append((each, value))
    return Kernel(name, outputs, tuple(after), regroup_inertia)


@cached_for_equal_models(256)
def _executable(model: Model, kernel: Kernel, options: _TargetOptions) -> Executable:
    value: Any = kernel.schedule
    target = Target(model, *options)
    for each in PASSES:
        if each.level == "code":
            value = each.run(value, target)
    executable: Executable = value
    return executable


def kernel(name: str, model: Model | None = None) -> Kernel:
    """The kernel of a program of the catalogue, in the form that a robot needs.

    Args:
        name: The program.
        model: A robot whose rotors may turn (``algorithms.turning_rotors``); they do not without.

    Raises:
        UnknownNameError: No such program.
    """
    if name not in PROGRAMS:
        raise UnknownNameError("program", name, PROGRAMS)
    return _catalogue_kernel(name, model is not None and model.turning_rotors)


def _catalogue_kernel(name: str, turning: bool) -> Kernel:
    outputs = (ROTOR_PROGRAMS if turning and name in ROTOR_PROGRAMS else PROGRAMS)[name]
    return compile_outputs(
        name, tuple(outputs.items()), regroup_inertia=name in REGROUPABLE_PROGRAMS
    )


def cheapest_equivalent(name: str) -> str:
    """The program that is cheapest on the default backend among those equal to a program.

    With classical accelerations, which machine code uses, the third forward-dynamics algorithm
    takes fewer operations than the fourth: P a is a dense product, M α + b is not.
    """
    return "forward_dynamics_3" if (name, backends.default()) == _COSTLIER_ON_LLVM else name


_COSTLIER_ON_LLVM = ("forward_dynamics", "llvm")


def matrix_plan(
    expr: Expr, request: Request, model: Model, frames: tuple[str, ...] = ()
) -> MatrixPlan:
    """The cheapest program for a request about an operator's matrix on a robot, kept."""
    return _plan(model, expr, request, frames)


@cached_for_equal_models(512)
def _plan(model: Model, expr: Expr, request: Request, frames: tuple[str, ...]) -> MatrixPlan:
    return make_plan(with_closed_inverses(expr), request, model, frames)


@lru_cache(maxsize=64)
def cheapest_inner_products(expr: Expr) -> tuple[InnerProductTerm, ...]:
    """A number as a sum of products of vectors, cut where that is cheapest."""

    def cost(pair: DualPair) -> float:
        try:
            return derive({"left": pair[0], "right": pair[1]}).chosen.cost.total
        except LoweringError:
            return inf

    return inner_product_terms(expr, cost)


def matrix(
    operator: Expr | str,
    request: Request,
    model: Model,
    q: ArrayLike,
    inputs: ProgramInputs | None = None,
    frames: Sequence[str] = (),
) -> Any:
    """The matrix of an operator, or a part of it, joints in body order.

    Args:
        operator: An expression, or the name of one in ``MATRICES``.
        request: What is wanted, e.g. ``Full()``.
        model: The robot.
        q: (..., nq).
        inputs: Vectors that the expression names; ``f_ext`` may be wrenches on frames.
        frames: Names of the frames that B selects.

    Returns:
        What ``sweeps.matrix.evaluate`` says.
    """
    expr = _operator_expression(operator, model)
    given = inputs or {}
    if isinstance(request, Full):
        _refuse_large(expr, model, q, given, frames)
    code = matrix_executable(operator, model, frames, request)
    found = None if code is None else code(read_coordinates(model, q, "q", "q"), given)
    if found is not None:
        return found
    values = backends.with_link_forces(model, q, given)
    found = evaluate(matrix_plan(expr, request, model, tuple(frames)), q, values)
    blocks = found if isinstance(found, list) else [found]
    if not all(np.isfinite(block).all() for block in blocks):
        axes = blocks[0].ndim - (1 if isinstance(request, Apply) else 2)
        named = {f"block {i} of the matrix": block for i, block in enumerate(blocks)}
        require_finite_results(model, np.asarray(q), named, axes)
    return found


def _refuse_large(
    expr: Expr, model: Model, q: ArrayLike, inputs: ProgramInputs, frames: Sequence[str]
) -> None:
    """Raise before any work if matrices would not fit into memory."""
    bodies = len(model.bodies)
    shapes = [np.shape(x) for x in inputs.values() if not isinstance(x, Wrenches)]
    batches = [shape[:-2] if shape[-2:] == (bodies, 6) else shape[:-1] for shape in shapes]
    batches += [x.batch for x in inputs.values() if isinstance(x, Wrenches)]
    samples = prod(np.broadcast_shapes(np.shape(q)[:-1], *batches))
    one = samples * np.result_type(np.asarray(q), np.float32).itemsize
    if one * (6 * max(bodies, len(frames))) ** 2 <= UNCHECKED_BYTES:
        return
    spaces = (expr.codomain, expr.domain)
    rows, columns = (sum(BlockPartition.of(each, model, tuple(frames)).sizes) for each in spaces)
    what = f"matrices ({samples}, {rows}, {columns}) of robot '{model.name}'"
    cure = "apply the operator to vectors, ask for parts of its matrix, or take smaller batches"
    refuse_large(what, one * rows * columns, cure)


def _operator_expression(operator: Expr | str, model: Model) -> Expr:
    """An expression, or the one of a name in the form that a robot needs."""
    if not isinstance(operator, str):
        return operator
    turning = model.turning_rotors and operator in ROTOR_MATRICES
    return (ROTOR_MATRICES if turning else MATRICES)[operator]


def matrix_executable(
    operator: Expr | str, model: Model, frames: Sequence[str] = (), request: Request = _FULL
) -> MatrixExecutable | None:
    """What the default backend has for an operator's matrix or a part, if it has anything."""
    expr = _operator_expression(operator, model)
    tuning = Tuning(regroup_inertia=isinstance(operator, str))
    options = (backends.default(), tuple(frames), frozenset[int](), tuning)
    return _matrix_executable(model, expr, request, options)


@cached_for_equal_models(256)
def _matrix_executable(
    model: Model, expr: Expr, request: Request, options: _TargetOptions
) -> MatrixExecutable | None:
    target = Target(model, *options)
    if isinstance(request, Full):
        found = matrix_forms(with_closed_inverses(expr), request)
    else:
        # Of a part the cheapest program on level 2 will do: its columns are few.
        found = (matrix_plan(expr, request, target.model, target.frames).form,)
    return backends.get(target.backend).build_matrix(
        found, target.model, target.frames, target.tuning, request
    )


def evaluate_bundle(
    name: str, model: Model, q: ArrayLike, inputs: ProgramInputs
) -> dict[str, Array] | None:
    """Vectors and matrices of ``BUNDLES`` at once, joints in body order, if that is possible."""
    code = fused_executable(name, model)
    return None if code is None else code(read_coordinates(model, q, "q", "q"), inputs)


def fused_executable(name: str, model: Model) -> FusedExecutable | None:
    """What the default backend has for a row of ``BUNDLES``, if it has anything."""
    return _fused_executable(model, name, backends.default())


@cached_for_equal_models(64)
def _fused_executable(model: Model, name: str, backend: str) -> FusedExecutable | None:
    wanted = lowered_bundle(name, model.turning_rotors)
    return backends.get(backend).build_fused(wanted, model, Tuning(regroup_inertia=True))


@lru_cache(maxsize=16)
def lowered_bundle(name: str, turning: bool = False) -> LoweredBundle:
    """A row of ``BUNDLES``, lowered; for robots with turning rotors that of the other table."""
    wanted = (ROTOR_BUNDLES if turning else BUNDLES)[name]
    matrices = {
        n: matrix_forms(with_closed_inverses(expr), Full()) for n, expr in wanted.matrices.items()
    }
    walks = None
    if wanted.split is not None:
        inverse, parts = wanted.split
        walks = lower_split(inverse, {n: SplitTerms(*terms) for n, terms in parts.items()})
    vectors = _catalogue_kernel(wanted.vectors, turning).schedule
    return LoweredBundle(vectors, matrices, wanted.products, walks)


def frame_motions(model: Model, frames: Sequence[str], motions: Array) -> Array:
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
    "DualPair",
    "Executable",
    "Full",
    "JointMap",
    "Kernel",
    "Pass",
    "Request",
    "Row",
    "Stage",
    "Stages",
    "Target",
    "cheapest_equivalent",
    "cheapest_inner_products",
    "compile_outputs",
    "evaluate_bundle",
    "frame_motions",
    "fused_executable",
    "joint_map",
    "kernel",
    "lowered_bundle",
    "matrix",
    "matrix_executable",
    "matrix_plan",
    "spell_inverses_for_robot",
    "with_closed_inverses",
]
