# SPDX-License-Identifier: BSD-3-Clause
"""A scheduled program as a textbook would print it: a few lines per pass."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from phistar.algebra.printing import GREEK
from phistar.algebra.symbols import SYMBOLS
from phistar.sweeps.ir import SHIFTS, Direction, Program
from phistar.sweeps.schedule import Pass, Schedule

_HEADS = {
    Direction.INWARD: "inward   k, children j:",
    Direction.OUTWARD: "outward  k, parent p:",
}
_FORMS = {
    "H": "H {0}",
    "Ht": "H* {0}",
    "inertia": "{0} {1}",
    "U": "{0} H*",
    "D": "H {0} + A",
    "G": "{0} {1}⁻¹",
    "down": "{0} - {2} {1}*",
    "Gx": "{0} {1}",
    "Gtx": "{0}* {1}",
    "Dx": "{0} {1}",
    "Dsolve": "{0}⁻¹ {1}",
    "Ax": "A {0}",
    "crm": "{0} × {1}",
    "crf": "{0} ×* {1}",
    "shin": "Σ φ(k,j) {0}(j)",
    "cong": "Σ φ(k,j) {0}(j) φ*(k,j)",
    "shout": "φ*(p,k) {0}(p)",
}
"""How each operation is written; {0}, {1}, ... are its operands."""


def to_text(schedule: Schedule) -> str:
    """The passes with their statements."""
    printer = _Printer(schedule)
    return "\n".join(line for each in schedule.passes for line in printer.lines(each))


class _Printer:
    """Which streams get a line of their own, and what they are called."""

    def __init__(self, schedule: Schedule) -> None:
        self.program: Program = schedule.program
        live = list(self.program.live())
        uses = Counter(o for s in live for o in set(self.program.operands(s)))
        homes = {s: n for n, each in enumerate(schedule.passes) for s in each.streams}
        definitions = set(self.program.definitions.values())
        self.alias = {d: r for r, d in self.program.definitions.items()}
        self.own_line: set[int] = set()
        for stream in live:
            node = self.program.nodes[stream]
            if node.op in ("leaf", "scatter", "rigid", "rec", "zero"):
                continue
            readers = [s for s in live if stream in self.program.operands(s)]
            crosses = any(homes.get(s) != homes.get(stream) for s in readers)
            shifted = any(self.program.nodes[s].op in SHIFTS for s in readers)
            wanted = stream in self.program.outputs.values() or stream in definitions
            named = stream in self.program.names and node.op != "sum"
            if wanted or crosses or shifted or uses[stream] > 1 or named:
                self.own_line.add(stream)
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()

    def lines(self, each: Pass) -> list[str]:
        """The statements of a pass."""
        rows = [f"    {self.name(s)} = {self.body(s)}" for s in each.streams if s in self.own_line]
        return [_HEADS[each.direction], *rows]

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
