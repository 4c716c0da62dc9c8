# SPDX-License-Identifier: BSD-3-Clause
"""Scalar programs as C99: one function, its arrays as arguments, nothing but math.h beside it."""

from __future__ import annotations

from phistar.backends.c.interface import (
    Interface,
    Origin,
    function_comment,
    generator_version,
    interface,
    is_over_links,
    joint_layout,
    link_order,
)
from phistar.backends.c.looped_function import looped_function, looped_workspace
from phistar.backends.c.tokens import IdentifierScope, c_precision, comment, identifier
from phistar.backends.c.unrolled_function import UnrolledWorkspace, unrolled_function
from phistar.scalar.program import BasicBlock, Looped, ScalarProgram, Unrolled


def c_source(
    program: ScalarProgram, name: str, origin: Origin | None = None, real: str = "double"
) -> str:
    """A C99 file with one function, which needs no header of ours.

    Args:
        program: The program.
        name: Name of the function; made an identifier where it is none.
        origin: What the comment says it is.
        real: ``"double"`` or ``"float"``.

    Raises:
        ArgumentError: The precision is unknown, or a constant does not fit into it.
    """
    origin = origin or Origin()
    function = IdentifierScope().unique_name(identifier(name, "robot"))
    face = interface(function, program, c_precision(real), workspace_entries(program), origin.robot)
    lines = function_comment(face, origin, sum(program.count().values()))
    if origin.robot is not None:
        lines += ["", *joint_layout(origin.robot)]
        if has_link_vectors(face, origin):
            lines += ["", *link_order(origin.robot)]
    lines += ["", f"Written by {generator_version()}."]
    parts = [
        comment(lines),
        "#include <math.h>",
        *workspace_macro(face),
        function_definition(program, face),
    ]
    return "\n\n".join(parts) + "\n"


def workspace_entries(program: ScalarProgram) -> int:
    """Numbers of workspace that a program needs."""
    if isinstance(program, Looped):
        return looped_workspace(program)
    return UnrolledWorkspace(program).entries


def workspace_macro(face: Interface) -> list[str]:
    """The definition of the workspace's size, if the caller gives it."""
    if not face.work_entries:
        return []
    return [f"#define {face.work_size_macro} {face.work_entries} /* entries of {face.work_name} */"]


def has_link_vectors(face: Interface, origin: Origin) -> bool:
    """Whether an array of a function is a vector over links."""
    arrays = (*face.inputs, *face.outputs)
    return any(is_over_links(name, size, origin) for name, _, size in arrays)


def function_definition(program: ScalarProgram, face: Interface) -> str:
    """The function itself, below those it calls."""
    above, body = (
        looped_function(program, face)
        if isinstance(program, Looped)
        else unrolled_function(program, face)
    )
    unread = [f"    (void){c};" for name, c, _ in face.inputs if name not in loaded_inputs(program)]
    empty = [f"    (void){c};" for _, c, size in face.outputs if size == 0]
    function = "\n".join([face.prototype(), "{", *body, *unread, *empty, "}"])
    return "\n\n".join([*above, function])


def loaded_inputs(program: ScalarProgram) -> set[str]:
    """Names of the inputs that a program reads."""
    bodies = [program.block] if isinstance(program, Unrolled) else _loop_bodies(program)
    nodes = (body.graph.nodes[number] for body in bodies for number in body.live_nodes)
    return {node[1][0] for node in nodes if node[0] == "load"}


def _loop_bodies(program: Looped) -> list[BasicBlock]:
    bodies = [body for loop in program.sweeps for body in loop.blocks.values()]
    columns = program.column_loop
    for walk in () if columns is None else columns.sweeps:
        bodies += walk.blocks.values()
    return bodies
