# SPDX-License-Identifier: BSD-3-Clause
"""Everything that a robot can be asked for as C files, each with its formula and its references.

A quantity is named as elsewhere: programs (``forward_dynamics``) and matrices (``mass_matrix``) of
the catalogue, vectors and matrices that are computed together (``linearize``), and kinematics and
energies (``jacobian``, ``kinetic_energy``). One about a frame names it: ``jacobian:hand``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from phistar.algebra.ir import Expr
from phistar.algebra.printing import to_text
from phistar.algebra.proof_text import let_lines
from phistar.algebra.symbols import SYMBOLS
from phistar.arguments import refuse_singular
from phistar.arrays import Array
from phistar.backends import Tuning
from phistar.backends.base import inputs_read
from phistar.backends.c import ExportedProgram, RobotInfo, c_source, random_inputs
from phistar.backends.c import write_package as export_files
from phistar.backends.c.interface import Interface, interface
from phistar.backends.c.tokens import c_precision, identifier
from phistar.backends.c.translation_unit import workspace_entries
from phistar.backends.to_c import (
    CFunction,
    lower_bundle,
    lower_matrix,
    lower_program,
    matrix_meaning,
    rename_output,
)
from phistar.compile import (
    REQUESTS,
    Bundle,
    Kernel,
    MatrixOf,
    Traced,
    Vectors,
    compile_request,
    embedded_request,
    is_embedded,
    quantity_on,
    refuse_on_nodes,
    request,
)
from phistar.compile.traced import TRACED
from phistar.errors import ArgumentError, UnknownNameError
from phistar.explain.dependencies import theorems_in
from phistar.explain.meanings import MATRIX_MEANINGS
from phistar.kernels import CODE_SHAPES as CODE_SHAPES
from phistar.kernels import RobotKernel
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.model.numpy_kinematics import check_reference
from phistar.scalar.program import ScalarProgram
from phistar.scalar.trace.kinematics_programs import RESULT_OUTPUT
from phistar.sweeps.ir import StreamProgram

_DEFAULT_REFERENCES = {"jacobian_rate": "local"}
"""References of exported quantities that are not those of the methods."""

RESULT_MEANINGS: Mapping[str, str] = {
    "frame_pose": "world pose of the frame [m]",
    "link_poses": "world poses of all links, fixed ones too, in file order [m]",
    "jacobian": "Jacobian of the frame, rows angular then linear",
    "frame_velocity": "velocity of the frame, angular [rad/s] then linear [m/s]",
    "center_of_mass": "centre of mass in the world [m]; links welded to the ground count",
    "momentum": "momentum about the world's origin, angular [N m s] then linear [N s]",
    "kinetic_energy": "kinetic energy [J], that of the rotors included",
    "potential_energy": "potential energy [J] of the moving links, zero at the world's origin",
    "integrate": "configuration reached along the tangent step dv",
    "difference": "tangent step from q0 to q1",
    "jacobian_rate": "time derivative of the frame's Jacobian",
    "frame_acceleration": "time derivative of the frame's velocity, angular then linear",
    "regressor": "joint forces per unit of each body's ten inertial parameters",
    "log_determinant": "log det of the mass matrix",
    "operational_inertia": "inertia that the frame shows to forces on it",
    "damped_operational_inertia": "the same, damping added to the compliance before it is inverted",
    "discretization": "",
    "step": "",
    "unilateral_step": "",
    "terrain_step": "",
    "contact_points": "",
    "terrain_points": "",
    "row_solver": "",
    "loop_dynamics": "rates of v; NaN where a state is not on the loops, or they lose rank",
}
"""What the results of traced quantities hold."""


@dataclass(frozen=True)
class ExportOptions:
    """How functions are written.

    Attributes:
        frames: Frames of the quantities that name none, a function for each.
        reference: Axes and point of Jacobians and velocities of frames; None for the usual.
        real: ``"double"`` or ``"float"``.
        shape: ``"straight"``, ``"rolled"`` or ``"auto"``.
        forces: Whether external forces on the links are an input.
    """

    frames: Sequence[str] = ()
    reference: str | None = None
    real: str = "double"
    shape: str = "auto"
    forces: bool = False


@dataclass(frozen=True)
class _Wanted:
    """A quantity and its frame; ``""`` where it has none."""

    quantity: str
    frame: str

    @property
    def name(self) -> str:
        return f"{self.quantity}_{self.frame}" if self.frame else self.quantity


def export_c(
    model: Model,
    programs: Sequence[str],
    directory: str | os.PathLike[str],
    *,
    frames: Sequence[str] = (),
    reference: str | None = None,
    real: str = "double",
    shape: str = "auto",
    forces: bool = False,
    force: bool = False,
) -> list[Path]:
    """Write quantities of one robot as C99.

    Args:
        model: The robot.
        programs: What to compute, e.g. ``["forward_dynamics", "mass_matrix", "jacobian:hand"]``;
            all names are in ``quantity_names``.
        directory: Where to; made if it is not there.
        frames: Frames of the quantities that name none themselves, a function for each.
        reference: Axes and point of Jacobians and velocities of frames, as for ``Robot.jacobian``;
            the default is ``"world_aligned"``, and ``"local"`` for ``jacobian_rate`` and
            ``operational_inertia``.
        real: ``"double"`` or ``"float"``.
        shape: ``"straight"`` (fast), ``"rolled"`` (small, for many links) or ``"auto"``.
            Kinematics, energies and what is computed together are straight lines always.
        forces: Whether external forces on the links are an input; otherwise there are none.
        force: Replace files that no export wrote, or that were changed since.

    Returns:
        The files.

    Raises:
        UnknownNameError: There is no such quantity or frame.
        SingularHingeError: It divides by the inertia of a joint that moves none.
        ArgumentError: It needs a frame, or has none; it needs a coordinate for every joint and
            mimic joints are reduced; the robot is too large for what is computed together; or a
            file is in the way. Nothing has been written.
        LoweringError: A matrix has no loops, but the shape is ``"rolled"``.
    """
    options = ExportOptions(tuple(frames), reference, real, shape, forces)
    wanted = _wanted(programs, options)
    chosen = [_exported(model, each, options) for each in dict.fromkeys(wanted)]
    return export_files(chosen, RobotInfo.of(model), directory, real=real, force=force)


def source_c(model: Model, name: str, *, real: str = "double", shape: str = "auto") -> str:
    """One quantity as C99 for one robot, in one file."""
    options = ExportOptions(real=real, shape=shape)
    (wanted,) = _wanted([name], options)
    each = _exported(model, wanted, options)
    robot = RobotInfo.of(model)
    return c_source(each.program, f"{robot.name}_{each.name}", each.origin(robot), real)


def function_c(model: Model, name: str, reference: str | None = None) -> tuple[str, Interface]:
    """One quantity as C99 in double precision, and how the function is called.

    Args:
        model: The robot.
        name: Of the quantity, its frame behind a colon.
        reference: Of quantities that have one; None for the usual.
    """
    (wanted,) = _wanted([name], ExportOptions())
    options = ExportOptions(reference=reference)
    each = _exported(model, wanted, options)
    robot = RobotInfo.of(model)
    symbol = identifier(f"{robot.name}_{each.name}", "robot")
    source = c_source(each.program, symbol, each.origin(robot))
    work = workspace_entries(each.program)
    return source, interface(symbol, each.program, c_precision("double"), work, robot)


def quantity_names() -> tuple[str, ...]:
    """Everything that can be exported; those that need a frame take it behind a colon."""
    return tuple(REQUESTS)


def needs_frame(quantity: str) -> bool:
    """Whether a quantity is about a frame."""
    return not {"frame", "frames"}.isdisjoint(_choices(quantity))


def _choices(quantity: str) -> Mapping[str, object]:
    """What can be chosen of a quantity that is traced directly."""
    return TRACED[quantity].choices if quantity in TRACED else {}


def check_names(programs: Iterable[str]) -> None:
    """Refuse names of quantities that are not known.

    Raises:
        UnknownNameError: There is no such quantity.
    """
    for name in programs:
        quantity = name.partition(":")[0]
        if quantity not in quantity_names():
            raise UnknownNameError("program", quantity, quantity_names())


def _wanted(programs: Sequence[str], options: ExportOptions) -> list[_Wanted]:
    """The functions that are asked for."""
    if options.shape not in CODE_SHAPES:
        shapes = ", ".join(map(repr, CODE_SHAPES))
        raise ArgumentError(f"shape is {options.shape!r}; it may be {shapes}")
    check_names(programs)
    found = [each for name in programs for each in _of_frames(name, options.frames)]
    if options.frames and not any(needs_frame(each.quantity) for each in found):
        raise ArgumentError("frames are given, but nothing that is exported is about a frame")
    if options.reference is not None:
        _check_reference(options.reference, found)
    return found


def _of_frames(name: str, frames: Sequence[str]) -> Iterator[_Wanted]:
    """A quantity, for each of its frames."""
    quantity, colon, own = name.partition(":")
    if not needs_frame(quantity):
        if colon:
            raise ArgumentError(f"{name!r} names a frame, but {quantity} is not about one")
        yield _Wanted(quantity, "")
        return
    if (colon and not own) or (not colon and not frames):
        raise ArgumentError(
            f"{quantity} is about a frame: name it behind a colon, {quantity}:FRAME, "
            "or for all such quantities by frames= (--frame)"
        )
    for frame in (own,) if colon else frames:
        yield _Wanted(quantity, frame)


def _check_reference(reference: str, wanted: Sequence[_Wanted]) -> None:
    check_reference(reference)
    if not any("reference" in _choices(each.quantity) for each in wanted):
        raise ArgumentError("a reference is given, but nothing that is exported has one")


def _exported(model: Model, wanted: _Wanted, options: ExportOptions) -> ExportedProgram:
    """A quantity on a robot."""
    if wanted.frame:
        model.frame(wanted.frame)
    quantity = quantity_on(model, wanted.quantity, f"export of {wanted.quantity}")
    name = embedded_request(quantity, model)
    found = request(name, model.turning_rotors)
    if name != quantity:
        refuse_singular(model)
        if options.forces:
            raise ArgumentError(
                f"{wanted.quantity} of robot '{model.name}' has no external forces as an input: "
                "its mimic joints are reduced; load it with mimic='independent'"
            )
    if isinstance(found, Traced):
        return _exported_trace(model, wanted, options, found)
    if isinstance(found, Vectors):
        # Refuses what this robot cannot be asked for.
        RobotKernel(model, found.name, backend="c")
        compiled = compile_request(found)
        function = lower_program(
            compiled.schedule, model, _tuning(compiled, options.shape), options.forces
        )
        read = set(inputs_read(compiled.schedule.program))
        return _described(model, wanted, function, dict(found.vectors), read)
    if isinstance(found, MatrixOf):
        return _exported_matrix(model, wanted, options, found)
    return _exported_bundle(model, wanted, options, found)


def _exported_matrix(
    model: Model, wanted: _Wanted, options: ExportOptions, found: MatrixOf
) -> ExportedProgram:
    name = found.name
    forms = compile_request(found).draft.forms[name]
    read = _refuse_undefined(model, name, (form.schedule.program for form in forms))
    tuning = Tuning(regroup_inertia=True, shape=options.shape)
    function = lower_matrix(forms, model, (), tuning, name=name, forces=options.forces)
    meaning = f"{MATRIX_MEANINGS[name]}; {function.meanings[name]}"
    function = CFunction(function.program, {name: meaning})
    notes = []
    if name == "link_jacobians":
        notes.append(f"Six rows per link, in link axes: {', '.join(b.link for b in model.bodies)}.")
    return _described(model, wanted, function, {name: found.operator}, read, notes)


def _exported_bundle(
    model: Model, wanted: _Wanted, options: ExportOptions, found: Bundle
) -> ExportedProgram:
    bundle = compile_request(found).bundle
    forms = (form for forms in bundle.matrices.values() for form in forms)
    programs = [bundle.vectors.program, *(form.schedule.program for form in forms)]
    if bundle.split is not None:
        programs.append(bundle.split.schedule.program)
    read = _refuse_undefined(model, found.name, programs)
    tuning = Tuning(regroup_inertia=True, shape=options.shape)
    function = lower_bundle(bundle, model, tuning, options.forces, options.real)
    exprs = {**dict(found.vectors), **found.wanted.matrices}
    notes = [f"{out} = -{a} {b}" for out, (a, b) in found.wanted.products.items()]
    return _described(model, wanted, function, exprs, read, notes)


def _exported_trace(
    model: Model, wanted: _Wanted, options: ExportOptions, row: Traced
) -> ExportedProgram:
    name = row.name
    if name == "center_of_mass" and not sum(link.mass for link in model.links):
        raise ArgumentError(f"robot '{model.name}' has no mass, and so no centre of mass")
    usual = _DEFAULT_REFERENCES.get(name) or row.choices.get("reference")
    reference = options.reference or usual
    given = {
        "frame": wanted.frame,
        "frames": (wanted.frame,),
        "reference": reference,
        "precision": options.real,
    }
    choices = tuple(given.get(choice, default) for choice, default in row.choices.items())
    choices = row.everywhere(model, *choices)
    if row.work(model, *choices) is None:
        asked = wanted.quantity
        raise ArgumentError(f"{asked} has no program on robot '{model.name}', and so no C")
    traced = row.trace(model, *choices)
    program = rename_output(traced, RESULT_OUTPUT, name)
    meanings = _traced_meanings(name, row.shapes(model, *choices))
    notes = [f"The frame is '{wanted.frame}'."] if wanted.frame else []
    if is_embedded(row.name):
        notes.append(f"{row.defined}.")
    if "reference" in row.choices:
        notes[-1] = f"The frame is '{wanted.frame}', the reference is {given['reference']}."
    inputs: Mapping[str, Array] = random_inputs(model, program.signature)
    text = ""
    if row.admit is not None:
        if options.forces:
            raise ArgumentError(
                f"{wanted.quantity} of robot '{model.name}' keeps its loops closed, and has no "
                "external forces: add their joint forces Σ J*f to tau"
            )
        inputs, text = row.admit(model, inputs), row.defined
        loops = ", ".join(f"'{loop.name}'" for loop in active_loops(model.loops))
        notes.append(f"The robot keeps its loops closed: {loops}.")
    return ExportedProgram(wanted.name, program, inputs, text, "", notes, meanings)


def _traced_meanings(name: str, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """What the outputs of a traced quantity mean, for the comments of the header."""
    meanings = {}
    for output, shape in shapes.items():
        parts = [RESULT_MEANINGS.get(name, ""), matrix_meaning(shape) if len(shape) > 1 else ""]
        meanings[name if output == RESULT_OUTPUT else output] = "; ".join(filter(None, parts))
    return meanings


def _refuse_undefined(model: Model, name: str, programs: Iterable[StreamProgram]) -> set[str]:
    """What programs read, if a robot can be asked for them; those that divide by D may not be."""
    read: set[str] = set()
    for program in programs:
        read |= set(inputs_read(program))
        if any(program.nodes[stream].spec.divides for stream in program.live()):
            refuse_singular(model)
            refuse_on_nodes(name, model)
    return read


def _described(
    model: Model,
    wanted: _Wanted,
    function: CFunction,
    exprs: Mapping[str, Expr],
    read: set[str],
    notes: Sequence[str] = (),
) -> ExportedProgram:
    """A function with its formula, its references, and inputs for its self-test."""
    program = function.program
    notes = list(notes)
    if "f_ext" in read and "f_ext" not in program.signature.inputs:
        notes.append("There are no external forces.")
    inputs = random_inputs(model, program.signature)
    text, papers = formula(exprs), references(exprs.values())
    return ExportedProgram(wanted.name, program, inputs, text, papers, notes, function.meanings)


def formula(exprs: Mapping[str, Expr]) -> str:
    """Outputs as operator expressions, a line each."""
    lines = []
    for name, expr in exprs.items():
        label = SYMBOLS[name].text if name in SYMBOLS else name
        if to_text(expr) != label:
            lines.append(f"{label} = {to_text(expr)}")
    return "\n".join([*lines, *(f"  {line}" for line in let_lines(exprs.values()))])


def references(exprs: Iterable[Expr]) -> str:
    """The places in the papers that expressions come from."""
    found = (str(theorem.ref) for theorem in theorems_in(exprs) if theorem.ref is not None)
    return "; ".join(dict.fromkeys(found))


def scalar_program(
    compiled: Kernel, model: Model, shape: str = "auto", forces: bool = False
) -> ScalarProgram:
    """A program for one robot as scalar operations on its own coordinates.

    Args:
        compiled: The program.
        model: The robot.
        shape: ``"straight"``, ``"rolled"`` or ``"auto"``.
        forces: Whether external forces on the links are an input.
    """
    return lower_program(compiled.schedule, model, _tuning(compiled, shape), forces).program


def _tuning(compiled: Kernel, shape: str) -> Tuning:
    return Tuning(regroup_inertia=compiled.regroup_inertia, shape=shape)
