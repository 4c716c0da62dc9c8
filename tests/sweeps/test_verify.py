# SPDX-License-Identifier: BSD-3-Clause
"""Every program of the catalogue is well formed, and single corruptions of programs are found."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from phistar.algorithms.programs import BUNDLES, MATRICES, PROGRAMS
from phistar.algorithms.rotor_programs import ROTOR_BUNDLES, ROTOR_MATRICES, ROTOR_PROGRAMS
from phistar.compile import compile_outputs, lowered_bundle, with_closed_inverses
from phistar.sweeps.classical_accelerations import with_classical_accelerations
from phistar.sweeps.ir import Direction, Node, StreamProgram, Type
from phistar.sweeps.matrix_requests import Apply, Full, matrix_forms
from phistar.sweeps.ops import OPS
from phistar.sweeps.schedule import Schedule, Sweep, schedule
from phistar.sweeps.verify import (
    StreamProgramError,
    verified,
    verify_program,
    verify_schedule,
)

ALL_PROGRAMS = {
    **PROGRAMS,
    **{f"{name}, turning rotors": outputs for name, outputs in ROTOR_PROGRAMS.items()},
}


@cache
def _scheduled(name: str) -> Schedule:
    return compile_outputs(name, tuple(ALL_PROGRAMS[name].items())).schedule


@pytest.mark.parametrize("name", ALL_PROGRAMS)
def test_programs_are_well_formed_after_each_pass(name: str) -> None:
    """Lowered, pruned, scheduled, and with classical accelerations where there are any."""
    for each, value in compile_outputs(name, tuple(ALL_PROGRAMS[name].items())).after:
        if each.level == "streams":
            assert value.program is not None
            verify_program(value.program)
        elif each.level == "sweeps":
            assert value.schedule is not None
            verify_schedule(value.schedule)
    classical = with_classical_accelerations(_scheduled(name).program)
    if classical is not None:
        verify_schedule(schedule(classical))


def test_matrices_are_well_formed() -> None:
    """Every form of every matrix of the catalogue, and walks along branches."""
    for table in (MATRICES, ROTOR_MATRICES):
        for expr in table.values():
            for request in (Full(), Apply()):
                for form in matrix_forms(with_closed_inverses(expr), request):
                    verify_schedule(form.schedule)
    for turning, bundles in ((False, BUNDLES), (True, ROTOR_BUNDLES)):
        splits = [lowered_bundle(name, turning).split for name in bundles]
        for split in splits:
            if split is not None:
                verify_schedule(split.schedule)


# -- teeth: each corruption of a valid schedule must be found

Corruption = Callable[[Schedule, np.random.Generator], Schedule | None]


def _copy(given: Schedule) -> StreamProgram:
    p = given.program
    return StreamProgram(list(p.nodes), dict(p.definitions), dict(p.names), dict(p.outputs))


def _pick(rng: np.random.Generator, found: list[Any]) -> Any:
    return found[rng.integers(len(found))] if found else None


def _with_node(given: Schedule, stream: int, **changes: Any) -> Schedule:
    program = _copy(given)
    program.nodes[stream] = replace(program.nodes[stream], **changes)
    return Schedule(program, given.sweeps)


def _users(given: Schedule) -> list[int]:
    return [s for s, node in enumerate(given.program.nodes) if node.operands]


def _unknown_op(given: Schedule, rng: np.random.Generator) -> Schedule:
    return _with_node(given, int(rng.integers(len(given.program.nodes))), op="no_such_op")


def _dropped_operand(given: Schedule, rng: np.random.Generator) -> Schedule:
    stream = _pick(rng, _users(given))
    return _with_node(given, stream, operands=given.program.nodes[stream].operands[1:])


def _later_operand(given: Schedule, rng: np.random.Generator) -> Schedule | None:
    """An operand that stands later, also of the same type: a cycle, or not yet defined."""
    nodes = given.program.nodes
    stream = _pick(rng, _users(given))
    operands = list(nodes[stream].operands)
    wanted = nodes[operands[0]].type
    later = _pick(rng, [s for s in range(stream, len(nodes)) if nodes[s].type is wanted])
    if later is None:
        return None
    operands[0] = later
    return _with_node(given, stream, operands=tuple(operands))


def _operand_of_other_type(given: Schedule, rng: np.random.Generator) -> Schedule | None:
    nodes = given.program.nodes
    stream = _pick(rng, _users(given))
    operands = list(nodes[stream].operands)
    place = int(rng.integers(len(operands)))
    node = nodes[stream]

    def misfits(candidate: int) -> bool:
        types = [nodes[o].type for o in operands]
        types[place] = nodes[candidate].type
        return not OPS[node.op].accepts(tuple(types), node.type)

    other = _pick(rng, [s for s in range(stream) if misfits(s)])
    if other is None:
        return None
    operands[place] = other
    return _with_node(given, stream, operands=tuple(operands))


def _other_type(given: Schedule, rng: np.random.Generator) -> Schedule:
    """No operation makes two types of the same operands, but H*, M x and Ĵ x."""
    overloaded = ("Ht", "inertia", "leaf", "zero", "rec")
    streams = [s for s, n in enumerate(given.program.nodes) if n.op not in overloaded]
    stream = _pick(rng, streams)
    types = [each for each in Type if each is not given.program.nodes[stream].type]
    return _with_node(given, stream, type=_pick(rng, types))


def _lost_definition(given: Schedule, rng: np.random.Generator) -> Schedule | None:
    program = _copy(given)
    recursion = _pick(rng, list(program.definitions))
    if recursion is None:
        return None
    del program.definitions[recursion]
    return Schedule(program, given.sweeps)


def _recursion_at_one_link(given: Schedule, rng: np.random.Generator) -> Schedule | None:
    """A recursion that is defined by itself."""
    program = _copy(given)
    recursion = _pick(rng, list(program.definitions))
    if recursion is None:
        return None
    program.definitions[recursion] = recursion
    return Schedule(program, given.sweeps)


def _wrong_factors(given: Schedule, rng: np.random.Generator) -> Schedule | None:
    sums = [s for s, n in enumerate(given.program.nodes) if n.op == "sum"]
    stream = _pick(rng, sums)
    if stream is None:
        return None
    return _with_node(given, stream, data=given.program.nodes[stream].data[1:])


def _lost_output(given: Schedule, rng: np.random.Generator) -> Schedule:
    program = _copy(given)
    name = _pick(rng, list(program.outputs))
    program.outputs[name] = len(program.nodes)
    return Schedule(program, given.sweeps)


def _second_input(given: Schedule, rng: np.random.Generator) -> Schedule | None:
    """A leaf whose name another one has."""
    leaves = [s for s, n in enumerate(given.program.nodes) if n.op == "leaf"]
    if len(leaves) < 2:
        return None
    first, second = rng.permutation(leaves)[:2]
    return _with_node(given, int(second), data=given.program.nodes[first].data)


def _sweeps(given: Schedule, number: int, streams: tuple[int, ...]) -> Schedule:
    sweeps = list(given.sweeps)
    sweeps[number] = Sweep(sweeps[number].direction, streams)
    return Schedule(given.program, tuple(sweeps))


def _skipped_stream(given: Schedule, rng: np.random.Generator) -> Schedule:
    number = int(rng.integers(len(given.sweeps)))
    streams = list(given.sweeps[number].streams)
    del streams[rng.integers(len(streams))]
    return _sweeps(given, number, tuple(streams))


def _repeated_stream(given: Schedule, rng: np.random.Generator) -> Schedule:
    number = int(rng.integers(len(given.sweeps)))
    every = [s for each in given.sweeps for s in each.streams]
    return _sweeps(given, number, (*given.sweeps[number].streams, _pick(rng, every)))


def _swapped_streams(given: Schedule, rng: np.random.Generator) -> Schedule | None:
    """A stream before one that it reads at the same link."""
    program, pairs = given.program, []
    for number, sweep in enumerate(given.sweeps):
        for stream in sweep.streams:
            if program.nodes[stream].spec.shift is None:
                read = [o for o in program.operands(stream) if o in sweep.streams]
                pairs += [(number, stream, o) for o in read]
    if not pairs:
        return None
    number, stream, operand = _pick(rng, pairs)
    other = {stream: operand, operand: stream}
    return _sweeps(given, number, tuple(other.get(s, s) for s in given.sweeps[number].streams))


def _turned_sweep(given: Schedule, rng: np.random.Generator) -> Schedule | None:
    """A sweep that goes the other way."""
    number = int(rng.integers(len(given.sweeps)))
    sweeps = list(given.sweeps)
    streams = set(sweeps[number].streams)
    nodes = [given.program.nodes[s] for s in streams]
    if len(sweeps) == 1 and not any(n.spec.shift and streams & set(n.operands) for n in nodes):
        return None  # links may be visited in any order
    ways = {Direction.INWARD: Direction.OUTWARD, Direction.OUTWARD: Direction.INWARD}
    sweeps[number] = Sweep(ways[sweeps[number].direction], sweeps[number].streams)
    return Schedule(given.program, tuple(sweeps))


def _scheduled_input(given: Schedule, rng: np.random.Generator) -> Schedule:
    leaves = [s for s, n in enumerate(given.program.nodes) if n.spec.is_given]
    return _sweeps(given, 0, (*given.sweeps[0].streams, _pick(rng, leaves)))


CORRUPTIONS: list[Corruption] = [
    _unknown_op,
    _dropped_operand,
    _later_operand,
    _operand_of_other_type,
    _other_type,
    _lost_definition,
    _recursion_at_one_link,
    _wrong_factors,
    _lost_output,
    _second_input,
    _skipped_stream,
    _repeated_stream,
    _swapped_streams,
    _turned_sweep,
    _scheduled_input,
]


@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda each: each.__name__.strip("_"))
def test_single_corruptions_are_found(corrupt: Corruption) -> None:
    """Of every program of the catalogue, by chance; the message names a stream or a sweep."""
    rng, tried = np.random.default_rng(5), 0
    for name in PROGRAMS:
        for _ in range(3):
            corrupted = corrupt(_scheduled(name), rng)
            if corrupted is not None:
                tried += 1
                with pytest.raises(StreamProgramError, match=r"%\d|sweep"):
                    verified(corrupted)
    assert tried >= len(PROGRAMS)


def test_errors_name_the_stream_and_its_operation() -> None:
    """What a reader needs: number, name, operation, types."""
    given = _scheduled("forward_dynamics")
    program = _copy(given)
    stream, node = next((s, n) for s, n in enumerate(program.nodes) if n.op == "G")
    program.nodes[stream] = Node("G", node.operands[::-1], node.type)
    text = rf"stream %{stream} \(G\), operation 'G': \(FACTOR, BLOCK\) >> BLOCK, expected \(BLOCK"
    with pytest.raises(StreamProgramError, match=text):
        verify_program(program)
    with pytest.raises(StreamProgramError, match="no output"):
        verify_program(StreamProgram(program.nodes[:1]))
