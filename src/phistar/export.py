# SPDX-License-Identifier: BSD-3-Clause
"""Programs of the catalogue as C files for one robot, each with its formula and its references."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from phistar.algebra.derivation import named
from phistar.algebra.printing import to_text
from phistar.algebra.symbols import SYMBOLS
from phistar.backends.c import Exported, Origin, RobotInfo, random_inputs, source
from phistar.backends.c import export as export_files
from phistar.backends.c.coordinates import in_coordinates
from phistar.compile import Kernel, kernel
from phistar.errors import ArgumentError
from phistar.explain import where
from phistar.kernels import RobotKernel
from phistar.model.model import Model
from phistar.scalar.lower import Options, to_rolled, to_straight
from phistar.scalar.program import ScalarProgram, Signature, arithmetic
from phistar.sweeps.ir import Type

SHAPES = ("auto", "straight", "rolled")
ORDER = ("q", "v", "vdot", "tau")
"""Of arguments; others follow."""
MOST = 14_000
"""Operations up to which ``auto`` chooses a straight line."""


def export_c(
    model: Model,
    programs: Sequence[str],
    directory: str | os.PathLike[str],
    *,
    real: str = "double",
    shape: str = "auto",
    forces: bool = False,
    force: bool = False,
) -> list[Path]:
    """Write programs of the catalogue as C99 for one robot.

    Args:
        model: The robot.
        programs: Names of programs, e.g. ``["forward_dynamics"]``.
        directory: Where to; made if it is not there.
        real: ``"double"`` or ``"float"``.
        shape: ``"straight"`` (fast), ``"rolled"`` (small, for many links) or ``"auto"``.
        forces: Whether external forces on the links are an input; otherwise there are none.
        force: Replace files that no export wrote, or that were changed since.

    Returns:
        The files.

    Raises:
        UnknownNameError: A program is not in the catalogue.
        SingularHingeError: It divides by the inertia of a joint that moves none.
        ArgumentError: It needs a coordinate for every joint and mimic joints are reduced, or a
            file is in the way. Nothing has been written.
    """
    chosen = [_exported(model, name, shape, forces) for name in dict.fromkeys(programs)]
    return export_files(chosen, RobotInfo.of(model), directory, real=real, force=force)


def source_c(model: Model, name: str, *, real: str = "double", shape: str = "auto") -> str:
    """One program of the catalogue as C99 for one robot, in one file."""
    each = _exported(model, name, shape, forces=False)
    robot = RobotInfo.of(model)
    origin = Origin(each.name, each.formula, each.reference, each.notes, robot)
    return source(each.program, f"{robot.name}_{name}", origin, real)


def _exported(model: Model, name: str, shape: str, forces: bool) -> Exported:
    # Refuses what this robot cannot be asked for.
    RobotKernel(model, name)
    compiled = kernel(name)
    program = scalar_program(compiled, model, shape, forces)
    inputs = random_inputs(model, program.signature)
    without = "f_ext" in _leaves(compiled) and "f_ext" not in program.signature.inputs
    notes = ["There are no external forces."] if without else []
    return Exported(name, program, inputs, formula(compiled), references(name), notes)


def formula(compiled: Kernel) -> str:
    """The outputs of a program as operator expressions, a line each."""
    exprs = dict(compiled.outputs)
    lines = []
    for name, expr in exprs.items():
        label = SYMBOLS[name].text if name in SYMBOLS else name
        if to_text(expr) != label:
            lines.append(f"{label} = {to_text(expr)}")
    return "\n".join([*lines, *(f"  {line}" for line in named(exprs.values()))])


def references(name: str) -> str:
    """The places in the papers that a program comes from."""
    found: dict[str, None] = {}
    for line in where(name).splitlines():
        for reference in line.split("  ")[2:]:
            found.update(dict.fromkeys(reference.split("; ")))
    return "; ".join(found)


def scalar_program(
    compiled: Kernel, model: Model, shape: str = "auto", forces: bool = False
) -> ScalarProgram:
    """A program for one robot as scalar operations on its own coordinates.

    Args:
        compiled: The program.
        model: The robot.
        shape: ``"straight"``, ``"rolled"`` or ``"auto"``.
        forces: Whether external forces on the links are an input.

    Raises:
        ArgumentError: There is no such shape.
    """
    if shape not in SHAPES:
        raise ArgumentError(f"shape is {shape!r}; it may be {', '.join(map(repr, SHAPES))}")
    absent = _absent(compiled, forces)
    options = Options(regroup=compiled.whole)
    program: ScalarProgram
    if shape == "rolled":
        program = to_rolled(compiled.schedule, model, absent, options=options)
    else:
        program = to_straight(compiled.schedule, model, absent, options=options)
        if shape == "auto" and arithmetic(program.count()) > MOST:
            program = to_rolled(compiled.schedule, model, absent, options=options)
    joint = {name for name, type in _arrays(compiled) if type is Type.JOINT}
    program = in_coordinates(program, model, joint)
    return replace(program, signature=_ordered(program.signature))


def _arrays(compiled: Kernel) -> list[tuple[str, Type]]:
    """Inputs and outputs of a program with their types."""
    program = compiled.schedule.program
    given = (program.nodes[stream] for stream in program.live())
    inputs = [(node.data, node.type) for node in given if node.op == "leaf"]
    return [*inputs, *((name, program.nodes[s].type) for name, s in program.outputs.items())]


def _leaves(compiled: Kernel) -> set[str]:
    program = compiled.schedule.program
    given = (program.nodes[stream] for stream in program.live())
    return {node.data for node in given if node.op == "leaf"}


def _absent(compiled: Kernel, forces: bool) -> frozenset[str]:
    """External forces are an input where they are asked for, or where there is no other."""
    others = _leaves(compiled) - {"f_ext", "gravity"}
    return frozenset({"gravity", "f_ext"} if others and not forces else {"gravity"})


def _ordered(signature: Signature) -> Signature:
    given = signature.inputs
    names = [*(n for n in ORDER if n in given), *(n for n in given if n not in ORDER)]
    return Signature({name: given[name] for name in names}, signature.outputs)
