# SPDX-License-Identifier: BSD-3-Clause
"""Scalar programs as C99: one function, its arrays as arguments, nothing but math.h beside it."""

from __future__ import annotations

from phistar.backends.c.loops import rolled_body, workspace
from phistar.backends.c.signature import (
    Interface,
    Origin,
    describe,
    interface,
    is_over_links,
    layout,
    link_order,
    made_by,
)
from phistar.backends.c.straight import shared_slots, straight_function
from phistar.backends.c.text import Names, comment, identifier, precision
from phistar.scalar.program import Rolled, ScalarProgram


def source(
    program: ScalarProgram,
    name: str,
    origin: Origin | None = None,
    real: str = "double",
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
    function = Names().take(identifier(name, "robot"))
    face = interface(function, program, precision(real), work_numbers(program), origin.robot)
    lines = describe(face, origin, sum(program.count().values()))
    if origin.robot is not None:
        lines += ["", *layout(origin.robot)]
        if takes_links(face, origin):
            lines += ["", *link_order(origin.robot)]
    lines += ["", f"Written by {made_by()}."]
    parts = [comment(lines), "#include <math.h>", *work_macro(face), definition(program, face)]
    return "\n\n".join(parts) + "\n"


def work_numbers(program: ScalarProgram) -> int:
    """Numbers of workspace that a program needs."""
    return workspace(program) if isinstance(program, Rolled) else shared_slots(program)


def work_macro(face: Interface) -> list[str]:
    """The definition of the workspace's size, if the caller gives it."""
    if not face.work:
        return []
    return [f"#define {face.work_size} {face.work} /* entries of {face.work_name} */"]


def takes_links(face: Interface, origin: Origin) -> bool:
    """Whether an array of a function is a vector over links."""
    arrays = (*face.inputs, *face.outputs)
    return any(is_over_links(name, size, origin.robot) for name, _, size in arrays)


def definition(program: ScalarProgram, face: Interface) -> str:
    """The function itself, below those it calls."""
    above, body = (
        ([], rolled_body(program, face))
        if isinstance(program, Rolled)
        else straight_function(program, face)
    )
    unread = [f"    (void){c};" for name, c, _ in face.inputs if name not in inputs_read(program)]
    empty = [f"    (void){c};" for _, c, size in face.outputs if size == 0]
    function = "\n".join([face.prototype(), "{", *body, *unread, *empty, "}"])
    return "\n\n".join([*above, function])


def inputs_read(program: ScalarProgram) -> set[str]:
    """Names of the inputs that a program reads."""
    bodies = (
        [body for loop in program.loops for body in loop.bodies.values()]
        if isinstance(program, Rolled)
        else [program.body]
    )
    nodes = (body.graph.nodes[number] for body in bodies for number in body.live)
    return {node[1][0] for node in nodes if node[0] == "load"}
