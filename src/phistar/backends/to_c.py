# SPDX-License-Identifier: BSD-3-Clause
"""C99 as a backend: programs, matrices and bundles for one robot as source; nothing runs here.

``lower_program``, ``lower_matrix`` and ``lower_bundle`` choose the shape and give scalar programs
on the robot's own coordinates; ``backends.c`` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NoReturn

from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.backends.base import Backend, VectorExecutable, inputs_read, running_names
from phistar.backends.c.coordinates import (
    JOINT_MATRIX,
    JOINT_VECTOR,
    Axes,
    array_shape,
    in_coordinates,
)
from phistar.backends.c.interface import Origin, RobotInfo
from phistar.backends.c.translation_unit import c_source
from phistar.backends.policy import LOOPED, decide_c
from phistar.backends.robot_programs import (
    DEFAULT_TUNING,
    OPTIONAL_INPUTS,
    BundleProgram,
    MatrixProgram,
    RobotProgram,
    TracedProgram,
    Tuning,
    VectorProgram,
)
from phistar.errors import ArgumentError, LoweringError
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.model.wrenches import ProgramInputs
from phistar.scalar.lower import LoweringOptions, to_looped, to_unrolled
from phistar.scalar.lower_fused import to_fused
from phistar.scalar.lower_matrix import (
    FULL_MATRIX,
    MATRIX_OUTPUT,
    result_blocks,
    to_looped_matrix,
    to_unrolled_matrix,
)
from phistar.scalar.program import (
    BasicBlock,
    Looped,
    ScalarProgram,
    Signature,
    Unrolled,
    count_arithmetic,
)
from phistar.sweeps.ir import StreamProgram, Type
from phistar.sweeps.matrix_requests import Full, LoweredBundle, MatrixForm, Request
from phistar.sweeps.schedule import Schedule
from phistar.thresholds import POLICY

ARGUMENT_ORDER = ("q", "v", "vdot", "tau")
"""Of arguments; others follow."""

_MatrixArguments = tuple[Sequence[MatrixForm], Model, Sequence[str], Set[str], LoweringOptions]


@dataclass(frozen=True)
class CFunction:
    """What a C function computes.

    Attributes:
        program: The scalar program, on the robot's coordinates.
        meanings: What arrays hold that their names do not say, e.g. the shape of matrices.
    """

    program: ScalarProgram
    meanings: Mapping[str, str]


def lower_program(
    schedule: Schedule,
    model: Model,
    tuning: Tuning = DEFAULT_TUNING,
    forces: bool = False,
    locked: Set[int] = frozenset(),
) -> CFunction:
    """A program for one robot as scalar operations on its own coordinates.

    Args:
        schedule: The program.
        model: The robot.
        tuning: What may be done to the robot's numbers, and the shape.
        forces: Whether external forces on the links are an input; they are if all is about them.
        locked: Bodies whose joints are not free. Joint vectors are then in body order.
    """
    read = {*inputs_read(schedule.program)}
    absent = _omitted_inputs(forces or read == {"f_ext"})
    arguments = (
        schedule,
        model,
        absent,
        locked,
        LoweringOptions.of(tuning.regroup_inertia, tuning.snap),
    )
    program: ScalarProgram
    if tuning.shape == "rolled":
        program = to_looped(*arguments)
    else:
        program = to_unrolled(*arguments)
        if tuning.shape == "auto" and _is_long(program):
            program = to_looped(*arguments)
    if not locked:
        program = in_coordinates(program, model, _joint_vectors(schedule.program))
    return CFunction(_in_argument_order(program), {})


def lower_matrix(
    forms: Sequence[MatrixForm],
    model: Model,
    frames: Sequence[str] = (),
    tuning: Tuning = DEFAULT_TUNING,
    request: Request = FULL_MATRIX,
    name: str = MATRIX_OUTPUT,
    forces: bool = False,
) -> CFunction:
    """The matrix of an operator on one robot, or a part of it, rows one after the other.

    Args:
        forms: Programs that give the same matrix.
        model: The robot.
        frames: Names of the frames that B selects.
        tuning: What may be done to the robot's numbers, and the shape.
        request: Which part of the matrix the programs are for.
        name: Of the output.
        forces: Whether external forces on the links are an input.
    """
    options = LoweringOptions.of(tuning.regroup_inertia, tuning.snap)
    arguments = (forms, model, frames, _omitted_inputs(forces), options)
    blocks = result_blocks(forms[0], model, frames, request)
    shapes: list[tuple[int, ...]] = [(len(rows), len(columns)) for rows, columns in blocks]
    program = _shaped_matrix(arguments, tuning.shape, request, max(map(max, shapes)))
    arrays: dict[str, Axes] = {}
    for form in forms:
        arrays |= _joint_vectors(form.schedule.program)
    if isinstance(request, Full):
        axes = _matrix_axes(forms[0], shapes[0])
        arrays[MATRIX_OUTPUT] = axes
        shapes = [array_shape(axes, model.nv)]
    program = in_coordinates(program, model, arrays)
    program = rename_output(_in_argument_order(program), MATRIX_OUTPUT, name)
    return CFunction(program, {name: "; ".join(map(matrix_meaning, shapes))})


def lower_bundle(
    bundle: LoweredBundle,
    model: Model,
    tuning: Tuning = DEFAULT_TUNING,
    forces: bool = False,
    real: str = "double",
) -> CFunction:
    """Vectors and matrices of one robot in one function.

    Args:
        bundle: What is wanted.
        model: The robot.
        tuning: What may be done to the robot's numbers; the program is always unrolled.
        forces: Whether external forces on the links are an input.
        real: Precision.

    Raises:
        ArgumentError: The robot is too large.
    """
    rows = sum(body.joint_kind.nv for body in model.bodies)
    if len(model.bodies) * rows > POLICY.max_link_rows_fused:
        raise ArgumentError(
            f"robot '{model.name}' with {model.nv} joint velocities is too large for matrices that "
            f"are computed together: {', '.join(bundle.outputs)}; export them one by one"
        )
    if real == "float" and bundle.matrices:
        # Walks in common axes lose a digit more on long robots.
        bundle = replace(bundle, split=None)
    program = to_fused(
        bundle,
        model,
        _omitted_inputs(forces),
        LoweringOptions.of(tuning.regroup_inertia, tuning.snap),
    )
    if not (program.products or program.row_loops):
        # Small robots have no loops that would read what is kept.
        shown = [store for store in program.block.stores if store.space != "work"]
        program = Unrolled(program.signature, BasicBlock(program.block.graph, shown))
    vectors = {n: JOINT_VECTOR for n in (*program.signature.inputs, *program.signature.outputs)}
    matrices = dict.fromkeys(bundle.outputs, JOINT_MATRIX)
    arrays = {n: axes for n, axes in {**vectors, **matrices}.items() if n not in ("q", "f_ext")}
    changed = in_coordinates(program, model, arrays)
    meaning = matrix_meaning((model.nv, model.nv))
    return CFunction(_in_argument_order(changed), dict.fromkeys(bundle.outputs, meaning))


def lower_traced(program: RobotProgram) -> CFunction:
    """A program that is traced directly."""
    shapes = {name: shape for name, shape in program.sample_shapes.items() if len(shape) > 1}
    meanings = {name: matrix_meaning(shape) for name, shape in shapes.items()}
    return CFunction(_in_argument_order(program.unrolled()), meanings)


def rename_output(program: ScalarProgram, old: str, new: str) -> ScalarProgram:
    """The same program whose output ``old`` is called ``new``."""
    outputs = {new if n == old else n: size for n, size in program.signature.outputs.items()}
    signature = replace(program.signature, outputs=outputs)

    def renamed(block: BasicBlock) -> BasicBlock:
        stores = [replace(s, space=new) if s.space == old else s for s in block.stores]
        return BasicBlock(block.graph, stores)

    if isinstance(program, Unrolled):
        return replace(program, signature=signature, block=renamed(program.block))
    columns = program.column_loop
    if columns is not None:
        walks = [
            replace(walk, blocks={variant: renamed(b) for variant, b in walk.blocks.items()})
            for walk in columns.sweeps
        ]
        columns = replace(columns, sweeps=walks)
    sweeps = [
        replace(sweep, blocks={kind: renamed(b) for kind, b in sweep.blocks.items()})
        for sweep in program.sweeps
    ]
    start = {new if n == old else n: numbers for n, numbers in program.ground_start.items()}
    return replace(
        program, signature=signature, sweeps=sweeps, column_loop=columns, ground_start=start
    )


def matrix_meaning(shape: Sequence[int]) -> str:
    """What a comment says about the shape of an array."""
    sizes = " x ".join(map(str, shape))
    if len(shape) == 2:
        return f"{sizes} matrix, row by row: entry (i, j) is at {shape[1]} * i + j"
    return f"{sizes}, the last index runs first"


def _omitted_inputs(forces: bool) -> frozenset[str]:
    return frozenset(OPTIONAL_INPUTS) - ({"f_ext"} if forces else set())


def _is_long(program: ScalarProgram) -> bool:
    return decide_c(count_arithmetic(program.count())).shape == LOOPED


def _shaped_matrix(
    arguments: _MatrixArguments, shape: str, request: Request, largest: int
) -> ScalarProgram:
    """Loops if they are wanted, or if an unrolled program would be long, and there are any."""
    model = arguments[1]
    loops = isinstance(request, Full) and (shape == "rolled" or joint_map(model).is_identity)
    if shape == "rolled" and loops:
        return to_looped_matrix(*arguments)
    may_loop = shape == "auto" and loops
    if may_loop and len(model.bodies) * largest > POLICY.max_link_columns_unrolled:
        found = _looped_matrix_if_any(arguments)
        if found is not None:
            return found
    unrolled = to_unrolled_matrix(*arguments, request)
    if may_loop and _is_long(unrolled):
        return _looped_matrix_if_any(arguments) or unrolled
    return unrolled


def _looped_matrix_if_any(arguments: _MatrixArguments) -> Looped | None:
    """The loops of a matrix; walks that meet have none."""
    try:
        return to_looped_matrix(*arguments)
    except LoweringError:
        return None


def _joint_vectors(program: StreamProgram) -> dict[str, Axes]:
    """Inputs and outputs of a program that are joint vectors."""
    given = (program.nodes[stream] for stream in program.live())
    types = {node.data: node.type for node in given if node.op == "leaf"}
    types |= {name: program.nodes[stream].type for name, stream in program.outputs.items()}
    return {name: JOINT_VECTOR for name, type in types.items() if type is Type.JOINT}


def _matrix_axes(form: MatrixForm, shape: Sequence[int]) -> Axes:
    spaces = [form.codomain.name, form.domain.name]
    if form.transposed:
        spaces.reverse()
    return tuple(None if s == "JOINT" else size for s, size in zip(spaces, shape, strict=True))


def _in_argument_order(program: ScalarProgram) -> ScalarProgram:
    given = program.signature.inputs
    first = [n for n in ARGUMENT_ORDER if n in given]
    names = [*first, *(n for n in given if n not in ARGUMENT_ORDER)]
    signature: Signature = replace(program.signature, inputs={n: given[n] for n in names})
    return replace(program, signature=signature)


class CSource(VectorExecutable):
    """A program, matrix or bundle as C99 source, made when it is first looked at.

    It has the methods of all executables; those that run say that this backend does not.
    """

    def __init__(self, model: Model, name: str, lower: Callable[[], CFunction]) -> None:
        self.model = model
        self.name = name
        self._lower = lower

    @cached_property
    def function(self) -> CFunction:
        """What it computes."""
        return self._lower()

    @property
    def source(self) -> str:
        """A C99 file with one function."""
        robot = RobotInfo.of(self.model)
        origin = Origin(self.name, robot=robot, meanings=self.function.meanings)
        return c_source(self.function.program, f"{robot.name}_{self.name}", origin)

    @property
    def scalars(self) -> ScalarProgram:
        """See ``base.Executable``."""
        return self.function.program

    def __call__(self, q: ArrayLike, inputs: ProgramInputs) -> NoReturn:
        """Refused."""
        raise ArgumentError(
            "the backend 'c' writes source and runs nothing: compile what .source gives, or what "
            f"`phistar export` writes; backends that run are {', '.join(running_names())}"
        )

    def run(
        self, q: ArrayLike, inputs: ProgramInputs, out: Mapping[str, Array] | None = None
    ) -> NoReturn:
        """Refused."""
        self(q, inputs)


class CBackend(Backend):
    """Writes C99."""

    name = "c"
    executes = False

    def build(self, program: RobotProgram) -> CSource:
        """See ``base.Backend``; forces on frames are an input as forces on the links."""
        model, tuning = program.model, program.tuning
        if isinstance(program, VectorProgram):
            lower = partial(lower_program, program.schedule, model, tuning, locked=program.locked)
            return CSource(model, "_".join(program.schedule.program.outputs), lower)
        if isinstance(program, MatrixProgram):
            lower = partial(
                lower_matrix, program.forms, model, program.frames, tuning, program.part
            )
            return CSource(model, MATRIX_OUTPUT, lower)
        if isinstance(program, BundleProgram):
            name = "_".join(program.sample_shapes)
            return CSource(model, name, partial(lower_bundle, program.bundle, model, tuning))
        if isinstance(program, TracedProgram):
            program = program.everywhere
        return CSource(model, "_".join(program.sample_shapes), partial(lower_traced, program))


backend = CBackend()
