# SPDX-License-Identifier: BSD-3-Clause
"""A scheduled program as a textbook would print it: a few lines per pass."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from fractions import Fraction

from phistar.algebra.printing import GREEK
from phistar.algebra.symbols import SYMBOLS
from phistar.sweeps.inlining import Inlining
from phistar.sweeps.ir import Direction, StreamProgram
from phistar.sweeps.schedule import Schedule

_SWEEP_TITLES = {
    Direction.INWARD: "inward   k, children j:",
    Direction.OUTWARD: "outward  k, parent p:",
}


@dataclass(frozen=True)
class Statement:
    """A printed line ``name = body``; ``streams`` are its own and those written in place."""

    name: str
    body: str
    streams: tuple[int, ...]


def statements(schedule: Schedule) -> list[tuple[Direction, list[Statement]]]:
    """The statements of each pass, in order."""
    computed = {s for each in schedule.sweeps for s in each.streams}
    printer = Printer(schedule.program, computed, Inlining(schedule).assigned)
    return [(each.direction, printer.statements(each.streams)) for each in schedule.sweeps]


def to_text(schedule: Schedule) -> str:
    """The passes with their statements."""
    lines = []
    for direction, rows in statements(schedule):
        lines += [_SWEEP_TITLES[direction], *(f"    {row.name} = {row.body}" for row in rows)]
    return "\n".join(lines)


class Printer:
    """Which streams get a line of their own, and what they are called."""

    def __init__(self, program: StreamProgram, computed: Set[int], own_line: Set[int]) -> None:
        self.program = program
        self.computed = computed
        self.alias = {d: r for r, d in self.program.definitions.items()}
        self.own_line = own_line
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()

    def statements(self, streams: Sequence[int]) -> list[Statement]:
        """The statements of a pass."""
        own = [s for s in streams if s in self.own_line]
        return [Statement(self.name(s), self.body(s), self._written(s)) for s in own]

    def _written(self, stream: int) -> tuple[int, ...]:
        """A stream and those that are written in place in its statement."""
        found = [stream]
        for each in found:
            operands = self.program.nodes[each].operands
            found += [o for o in operands if o in self.computed - self.own_line - set(found)]
        return tuple(found)

    def name(self, stream: int) -> str:
        """What a stream is called; a definition goes by the name of its recursion."""
        stream = self.alias.get(stream, stream)
        if stream not in self._names:
            given = self.program.names.get(stream)
            if given in SYMBOLS:
                given = SYMBOLS[given].text
            self._names[stream] = self._fresh(GREEK.get(given or "", given))
        return self._names[stream]

    def _fresh(self, wanted: str | None) -> str:
        name, count = wanted or "x1", 1
        while name in self._taken:
            count += 1
            name = f"{wanted or 'x'}{count}"
        self._taken.add(name)
        return name

    def body(self, stream: int) -> str:
        """The right side of a statement."""
        node = self.program.nodes[stream]
        if node.op == "sum":
            return self._sum(node.operands, node.data)
        return node.spec.text.format(*(self.term(o) for o in node.operands))

    def term(self, stream: int) -> str:
        """An operand: its name, or its own body in place."""
        node = self.program.nodes[stream]
        if node.spec.is_given and not node.spec.is_input:
            return node.spec.text
        if node.op == "scatter":
            return f"B {SYMBOLS[node.data].text}"
        if node.op in ("leaf", "rec") or stream in self.own_line:
            return self.name(stream)
        text = self.body(stream)
        return f"({text})" if node.spec.is_infix else text

    def _sum(self, streams: tuple[int, ...], factors: tuple[Fraction, ...]) -> str:
        parts = []
        for factor, stream in sorted(
            zip(factors, streams, strict=True), key=lambda pair: pair[0] < 0
        ):
            size = "" if abs(factor) == 1 else f"{abs(factor)} "
            parts.append(("-" if factor < 0 else "+", size + self.term(stream)))
        sign, first = parts[0]
        rest = "".join(f" {sign} {text}" for sign, text in parts[1:])
        return (first if sign == "+" else f"-{first}") + rest
