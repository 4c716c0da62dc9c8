# SPDX-License-Identifier: BSD-3-Clause
"""A straight line of scalar operations as a C function, or as several that are called in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from phistar.backends.c.expressions import Writer, folded
from phistar.backends.c.parts import Part, parts
from phistar.backends.c.signature import Interface
from phistar.backends.c.text import Names
from phistar.scalar.graph import Graph, Value
from phistar.scalar.program import Store, Straight

_INDENT = "    "


def shared_slots(program: Straight) -> int:
    """Numbers that the parts of a long line hand on."""
    return parts(program)[1]


def straight_function(program: Straight, face: Interface) -> tuple[list[str], list[str]]:
    """Functions to stand above the function, and the lines between its braces."""
    pieces, slots = parts(program)
    if len(pieces) == 1:
        return [], _Lines(program.body.graph, pieces[0], face, "").lines
    names = Names([face.name, *face.arguments])
    keep = face.work_name if face.work else names.take("keep")
    above, calls = [], [] if face.work else [f"{_INDENT}{face.real.type} {keep}[{slots}];\n"]
    for number, piece in enumerate(pieces, 1):
        written = _Lines(program.body.graph, piece, face, keep)
        name = names.take(f"{face.name}_part{number}")
        head, call = _part_call(name, face, written.arrays, keep)
        above.append("\n".join([f"static void {head}", "{", *written.lines, "}"]))
        calls.append(f"{_INDENT}{call};")
    return above, calls


def _part_call(name: str, face: Interface, arrays: set[str], keep: str) -> tuple[str, str]:
    """The head of a part, which takes only the arrays it uses, and how it is called."""
    real = face.real.type
    given = [(f"const {real} *{c}", c) for _, c, _ in face.inputs if c in arrays]
    given += [(f"{real} *{c}", c) for _, c, _ in face.outputs if c in arrays]
    given += [(f"{real} *{keep}", keep)] if keep in arrays else []
    head = f"{name}({', '.join(declared for declared, _ in given) or 'void'})"
    return head, f"{name}({', '.join(c for _, c in given)})"


class _Lines:
    """The statements of a part, and the arrays that they touch."""

    def __init__(self, graph: Graph, part: Part, face: Interface, keep: str) -> None:
        self.part = part
        self.keep = keep
        self.arrays: set[str] = set()
        self.inputs = {name: c for name, c, _ in face.inputs}
        self.outputs = {name: c for name, c, _ in face.outputs}
        used = [*part.kept, *(n for n, stores in part.stores.items() for _ in stores)]
        used += [store.value.id for store in part.last if isinstance(store.value, Value)]
        names = Names([face.name, *face.arguments, keep])
        given = {number: f"{keep}[{slot}]" for number, slot in part.given.items()}
        self.arrays |= {keep} if given else set()
        self.writer = Writer(
            graph, part.numbers, Counter(used), face.real, names, self._load, given
        )
        self.lines = self._lines()

    def _load(self, name: str, entry: int) -> tuple[str, str]:
        c = self.inputs[name]
        self.arrays.add(c)
        return f"{c}[{entry}]", f"{c}{entry}"

    def _lines(self) -> list[str]:
        part, lines = self.part, []
        for number, statement in self.writer.statements():
            lines.append(folded(statement, _INDENT))
            if number in part.kept:
                self.arrays.add(self.keep)
                name = self.writer.texts[number].text
                lines.append(f"{_INDENT}{self.keep}[{part.kept[number]}] = {name};")
            lines += self._stored(part.stores.get(number, ()))
        return lines + self._stored(part.last)

    def _stored(self, stores: Sequence[Store]) -> list[str]:
        lines = []
        for store in stores:
            c = self.outputs[store.space]
            self.arrays.add(c)
            sign = "+=" if store.add else "="
            lines.append(f"{_INDENT}{c}[{store.index}] {sign} {self.writer.text(store.value)};")
        return lines
