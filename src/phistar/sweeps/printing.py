# SPDX-License-Identifier: BSD-3-Clause
"""A scheduled program as a textbook would print it: a few lines per pass."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from phistar.algebra.printing import GREEK
from phistar.algebra.symbols import SYMBOLS
from phistar.sweeps.ir import Direction, Program
from phistar.sweeps.lines import Lines
from phistar.sweeps.schedule import Pass, Schedule

_HEADS = {
    Direction.INWARD: "inward   k, children j:",
    Direction.OUTWARD: "outward  k, parent p:",
}
_FORMS = {
    "H": "H {0}",
    "Ht": "H* {0}",
    "inertia": "{0} {1}",
    "inertia_t": "{0}* {1}",
    "gyro": "M̂({0})",
    "across": "{0} - {1} H {0}",
    "U": "{0} H*",
    "D": "H {0} + A",
    "G": "{0} {1}⁻¹",
    "down": "{0} - {2} {1}*",
    "Gx": "{0} {1}",
    "Gtx": "{0}* {1}",
    "Dx": "{0} {1}",
    "Dsolve": "{0}⁻¹ {1}",
    "Ax": "A {0}",
    "turn": "{0} ×* {1} - {1} {0} ×",
    "through": "(I - {1} H) {0} (I - {1} H)*",
    "crm": "{0} × {1}",
    "crf": "{0} ×* {1}",
    "shin": "Σ φ(k,j) {0}(j)",
    "cong": "Σ φ(k,j) {0}(j) φ*(k,j)",
    "shout": "φ*(p,k) {0}(p)",
    "outcong": "φ*(p,k) {0}(p) φ(p,k)",
    "give": "(I - {1} H)* {0} (I - {1} H) + H* {2}⁻¹ H",
    "outsim": "φ*(p,k) {0}(p) φ*⁻¹(p,k)",
    "slip": "{0}* H* {3}⁻¹ - {1}* {2}",
    "bend": "{0} + H* {1}*",
    "join": "{0} for columns beyond k, {1} for the others",
}
"""How each operation is written; {0}, {1}, ... are its operands."""


@dataclass(frozen=True)
class Statement:
    """A printed line ``name = body``; ``streams`` are its own and those written in place."""

    name: str
    body: str
    streams: tuple[int, ...]


def statements(schedule: Schedule) -> list[tuple[Direction, list[Statement]]]:
    """The statements of each pass, in order."""
    printer = _Printer(schedule)
    return [(each.direction, printer.statements(each)) for each in schedule.passes]


def to_text(schedule: Schedule) -> str:
    """The passes with their statements."""
    lines = []
    for direction, rows in statements(schedule):
        lines += [_HEADS[direction], *(f"    {row.name} = {row.body}" for row in rows)]
    return "\n".join(lines)


class _Printer:
    """Which streams get a line of their own, and what they are called."""

    def __init__(self, schedule: Schedule) -> None:
        self.program: Program = schedule.program
        self.computed = {s for each in schedule.passes for s in each.streams}
        self.alias = {d: r for r, d in self.program.definitions.items()}
        self.own_line = Lines(schedule).own
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()

    def statements(self, each: Pass) -> list[Statement]:
        """The statements of a pass."""
        own = [s for s in each.streams if s in self.own_line]
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
        return _FORMS[node.op].format(*(self.term(o) for o in node.operands))

    def term(self, stream: int) -> str:
        """An operand: its name, or its own body in place."""
        node = self.program.nodes[stream]
        if node.op in ("rigid", "zero"):
            return "M" if node.op == "rigid" else "0"
        if node.op == "scatter":
            return f"B {SYMBOLS[node.data].text}"
        if node.op in ("leaf", "rec") or stream in self.own_line:
            return self.name(stream)
        text = self.body(stream)
        return f"({text})" if node.op in ("sum", "crm", "crf") else text

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
