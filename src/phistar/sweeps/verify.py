# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a program of streams and its schedule are well formed; a fault is the compiler's.

Of a program: operations are known, operands stand earlier in the table and have types that the
operation takes, data fits, recursions are closed by a stream of their type and cross a joint, names
and outputs are streams. Of a schedule: every stream that an output needs is computed once, after
what it reads, in a sweep whose direction suits its shifts.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NoReturn

from phistar.sweeps.ir import Node, StreamProgram
from phistar.sweeps.ops import OPS
from phistar.sweeps.schedule import Schedule


class StreamProgramError(AssertionError):
    """A program of streams that is not well formed: a fault of the compiler."""


def verified(schedule: Schedule) -> Schedule:
    """A schedule, checked unless Python runs with ``-O``."""
    if __debug__:
        verify_schedule(schedule)
    return schedule


def verify_program(program: StreamProgram) -> None:
    """Raise unless a program is well formed.

    Raises:
        StreamProgramError: It is not; the message names the stream and its operation.
    """
    for stream, node in enumerate(program.nodes):
        _verify_node(program, stream, node)
    _verify_inputs(program)
    _verify_tables(program)
    _verify_recursions(program)


def verify_schedule(schedule: Schedule) -> None:
    """Raise unless a program is well formed and its sweeps compute it.

    Raises:
        StreamProgramError: They do not; the message names the stream and its operation.
    """
    program = schedule.program
    verify_program(program)
    place = _places(schedule)
    live = set(program.live())
    for stream in live:
        if stream in place:
            _verify_order(schedule, stream, place)
        elif not program.nodes[stream].spec.is_given:
            _fail(program, stream, "is in no sweep")
    for stream in place.keys() - live:
        _fail(program, stream, "is in a sweep, but no output needs it")
    for number, (before, after) in enumerate(pairwise(schedule.sweeps)):
        if before.direction is after.direction:
            raise StreamProgramError(
                f"sweeps {number} and {number + 1} are both {after.direction.value}"
            )


def _fail(program: StreamProgram, stream: int, fault: str) -> NoReturn:
    node = program.nodes[stream]
    name = f" ({program.names[stream]})" if stream in program.names else ""
    raise StreamProgramError(f"stream %{stream}{name}, operation {node.op!r}: {fault}")


# -- programs


def _verify_node(program: StreamProgram, stream: int, node: Node) -> None:
    if node.op not in OPS:
        _fail(program, stream, "no such operation")
    for operand in node.operands:
        if not 0 <= operand < stream:
            _fail(program, stream, f"operand %{operand} is not an earlier stream")
    operands = tuple(program.nodes[o].type for o in node.operands)
    if not OPS[node.op].accepts(operands, node.type):
        found = ", ".join(each.name for each in operands)
        known = "; ".join(map(str, node.spec.signatures)) or "terms of the type of the sum"
        _fail(program, stream, f"({found}) >> {node.type.name}, expected {known}")
    if not _data_fits(node):
        _fail(program, stream, f"data {node.data!r} does not fit")


def _data_fits(node: Node) -> bool:
    if node.op == "sum":
        factors = node.data if isinstance(node.data, tuple) else ()
        numbers = all(isinstance(each, Fraction) and each for each in factors)
        return numbers and len(factors) == len(node.operands)
    if node.spec.is_input:
        return isinstance(node.data, str)
    return (node.data is not None) is (node.op == "rec")


def _verify_inputs(program: StreamProgram) -> None:
    """Every name from outside stands for one stream."""
    seen: dict[str, int] = {}
    for stream, node in enumerate(program.nodes):
        if node.spec.is_input and seen.setdefault(node.data, stream) != stream:
            _fail(program, stream, f"%{seen[node.data]} is the input {node.data!r}, too")


def _verify_tables(program: StreamProgram) -> None:
    streams = range(len(program.nodes))
    for recursion, stream in program.definitions.items():
        if recursion not in streams or program.nodes[recursion].op != "rec":
            raise StreamProgramError(f"%{recursion} is defined, but is no recursion")
        if stream not in streams:
            _fail(program, recursion, f"its definition %{stream} does not exist")
        if program.nodes[stream].type is not program.nodes[recursion].type:
            _fail(program, recursion, f"its definition %{stream} has another type")
    for stream, node in enumerate(program.nodes):
        if node.op == "rec" and stream not in program.definitions:
            _fail(program, stream, "it is not defined")
    if not program.outputs:
        raise StreamProgramError("there is no output")
    for name, stream in program.outputs.items():
        if stream not in streams:
            raise StreamProgramError(f"output {name!r}: stream %{stream} does not exist")
    for stream, name in program.names.items():
        if stream not in streams:
            raise StreamProgramError(f"name {name!r}: stream %{stream} does not exist")


def _verify_recursions(program: StreamProgram) -> None:
    """No stream depends on itself at the same link: a recursion must cross a joint."""
    finished: set[int] = set()
    for root in program.definitions:
        path: dict[int, Iterator[int]] = {root: iter(_read_here(program, root))}
        while path:
            stream = next(reversed(path))
            for operand in path[stream]:
                if operand in path:
                    _fail(program, operand, "depends on itself at the same link")
                if operand not in finished:
                    path[operand] = iter(_read_here(program, operand))
                    break
            else:
                finished.add(stream)
                del path[stream]


def _read_here(program: StreamProgram, stream: int) -> tuple[int, ...]:
    """The streams whose values at a link a stream reads at that link."""
    return () if program.nodes[stream].spec.shift is not None else program.operands(stream)


# -- schedules


def _places(schedule: Schedule) -> dict[int, tuple[int, int]]:
    """The sweep of each stream and its number in it."""
    program, place = schedule.program, dict[int, tuple[int, int]]()
    for number, sweep in enumerate(schedule.sweeps):
        for position, stream in enumerate(sweep.streams):
            if stream not in range(len(program.nodes)):
                raise StreamProgramError(f"sweep {number}: stream %{stream} does not exist")
            if program.nodes[stream].spec.is_given:
                _fail(program, stream, f"is given, but in sweep {number}")
            if stream in place:
                _fail(program, stream, f"is in sweep {place[stream][0]} and again in {number}")
            place[stream] = (number, position)
    return place


def _verify_order(schedule: Schedule, stream: int, place: dict[int, tuple[int, int]]) -> None:
    program = schedule.program
    shift, own = program.nodes[stream].spec.shift, place[stream]
    for operand in program.operands(stream):
        if program.nodes[operand].spec.is_given:
            continue
        if operand not in place:
            _fail(program, operand, f"is in no sweep, but %{stream} reads it")
        read = place[operand]
        if shift is None and read >= own:
            _fail(program, stream, f"reads %{operand}, which is computed later at the same link")
        if shift is not None and read[0] > own[0]:
            _fail(program, stream, f"reads %{operand}, which a later sweep computes")
        direction = schedule.sweeps[own[0]].direction
        if shift is not None and read[0] == own[0] and shift is not direction:
            _fail(program, stream, f"reads %{operand}, but its sweep goes {direction.value}")
