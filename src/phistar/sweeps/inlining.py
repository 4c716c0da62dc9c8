# SPDX-License-Identifier: BSD-3-Clause
"""Which streams deserve a line of their own when a program is written out, and which are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain

from phistar.sweeps.ir import StreamProgram
from phistar.sweeps.schedule import Schedule


def defining_stream(program: StreamProgram, stream: int) -> int:
    """The stream that defines a recursion; any other stream itself."""
    while program.nodes[stream].op == "rec":
        stream = program.definitions[stream]
    return stream


class Inlining:
    """What becomes of each stream in print, recursions resolved.

    Attributes:
        assigned: Streams with a line of their own; all others are written where they are used.
        stored: Those of them that other links or later passes read, or that are outputs.
    """

    def __init__(self, schedule: Schedule) -> None:
        program = schedule.program

        def defining(streams: Iterable[int]) -> set[int]:
            return {defining_stream(program, stream) for stream in streams}

        live = [s for s in program.live() if program.nodes[s].op != "rec"]
        reads = {s: defining(program.nodes[s].operands) for s in live}
        uses = Counter(chain.from_iterable(reads.values()))
        afar = defining(program.outputs.values()) | _read_afar(schedule, reads)
        computed = {s for s in live if not program.nodes[s].spec.is_given}
        named = {s for s in defining(program.names) if program.nodes[s].op != "sum"}
        often = {s for s, count in uses.items() if count > 1}
        self.stored = computed & afar
        self.assigned = computed & (afar | defining(program.recursions) | often | named)


def _read_afar(schedule: Schedule, reads: Mapping[int, set[int]]) -> set[int]:
    """Streams that other links or later passes read, by what each stream reads."""
    program = schedule.program
    home = {
        defining_stream(program, s): n
        for n, each in enumerate(schedule.sweeps)
        for s in each.streams
    }
    afar: set[int] = set()
    for reader, operands in reads.items():
        spec = program.nodes[reader].spec
        leaves = spec.shift is not None or spec.reduction is not None
        afar |= {o for o in operands if leaves or home[reader] != home.get(o)}
    return afar
