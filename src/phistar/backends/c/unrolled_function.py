# SPDX-License-Identifier: BSD-3-Clause
"""An unrolled program as a C function, or as several that are called in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from phistar.backends.c.expressions import StatementWriter, wrap_statement
from phistar.backends.c.interface import Interface
from phistar.backends.c.matrix_loops import matrix_loops
from phistar.backends.c.outlining import FunctionPart, outline_parts
from phistar.backends.c.tokens import IdentifierScope
from phistar.backends.c.unit_quaternions import (
    QUATERNION_SIZE,
    normalize_function,
    normalize_name,
    quaternions_read,
)
from phistar.scalar.graph import Graph, Value
from phistar.scalar.program import Store, Unrolled

_INDENT = "    "


class UnrolledWorkspace:
    """The workspace of an unrolled program.

    It begins with what the parts of a long program pass to each other. What products and loops over
    rows read follows, and at the end are the quaternions of q, made unit.
    """

    def __init__(self, program: Unrolled) -> None:
        self.parts, self.kept_start = outline_parts(program)
        start = self.kept_start + program.slots
        self.unit_starts = {
            entry: start + QUATERNION_SIZE * number
            for number, entry in enumerate(quaternions_read(program))
        }
        self.entries = start + QUATERNION_SIZE * len(self.unit_starts)

    def unit_entry(self, entry: int) -> int | None:
        """Where an entry of q stands if it belongs to a quaternion."""
        for first, place in self.unit_starts.items():
            if 0 <= entry - first < QUATERNION_SIZE:
                return place + entry - first
        return None


def unrolled_function(program: Unrolled, face: Interface) -> tuple[list[str], list[str]]:
    """Functions to stand above the function, and the lines between its braces."""
    workspace = UnrolledWorkspace(program)
    work = face.work_name
    names = IdentifierScope([face.name, *face.arguments, work])
    above: list[str] = []
    lines: list[str] = []
    if workspace.entries and not face.work_entries:
        lines.append(f"{_INDENT}{face.real.type} {work}[{workspace.entries}];\n")
    for start, place in workspace.unit_starts.items():
        q = next(c for name, c, _ in face.inputs if name == "q")
        lines.append(f"{_INDENT}{normalize_name(face)}({q} + {start}, {work} + {place});")
    above += [normalize_function(face)] if workspace.unit_starts else []
    for number, part in enumerate(workspace.parts, 1):
        written = _PartStatements(program.block.graph, part, face, workspace)
        if len(workspace.parts) == 1:
            lines += written.lines
            continue
        name = names.unique_name(f"{face.name}_part{number}")
        head, call = _part_prototype_and_call(name, face, written.arrays)
        above.append("\n".join([f"static void {head}", "{", *written.lines, "}"]))
        lines.append(f"{_INDENT}{call};")
    return above, lines + matrix_loops(program, face, workspace.kept_start)


def _part_prototype_and_call(name: str, face: Interface, arrays: set[str]) -> tuple[str, str]:
    """The head of a part, which takes only the arrays it uses, and how it is called."""
    real, work = face.real.type, face.work_name
    given = [(f"const {real} *{c}", c) for _, c, _ in face.inputs if c in arrays]
    given += [(f"{real} *{c}", c) for _, c, _ in face.outputs if c in arrays]
    given += [(f"{real} *{work}", work)] if work in arrays else []
    head = f"{name}({', '.join(declared for declared, _ in given) or 'void'})"
    return head, f"{name}({', '.join(c for _, c in given)})"


class _PartStatements:
    """The statements of a part, and the arrays that they touch."""

    def __init__(
        self, graph: Graph, part: FunctionPart, face: Interface, workspace: UnrolledWorkspace
    ) -> None:
        self.part = part
        self.work = face.work_name
        self.workspace = workspace
        self.arrays: set[str] = set()
        self.inputs = {name: c for name, c, _ in face.inputs}
        self.outputs = {name: c for name, c, _ in face.outputs}
        used = [*part.live_out, *(n for n, stores in part.stores.items() for _ in stores)]
        used += [store.value.id for store in part.final_stores if isinstance(store.value, Value)]
        names = IdentifierScope([face.name, *face.arguments, self.work])
        live_in = {number: f"{self.work}[{slot}]" for number, slot in part.live_in.items()}
        self.arrays |= {self.work} if live_in else set()
        self.writer = StatementWriter(
            graph, part.nodes, Counter(used), face.real, names, self._load, live_in
        )
        self.lines = self._lines()

    def _load(self, name: str, entry: int, _: str) -> tuple[str, str]:
        c = self.inputs[name]
        place = self.workspace.unit_entry(entry) if name == "q" else None
        if place is not None:
            self.arrays.add(self.work)
            return f"{self.work}[{place}]", f"{c}{entry}"
        self.arrays.add(c)
        return f"{c}[{entry}]", f"{c}{entry}"

    def _lines(self) -> list[str]:
        part, lines = self.part, []
        for number, statement in self.writer.statements():
            lines.append(wrap_statement(statement, _INDENT))
            if number in part.live_out:
                self.arrays.add(self.work)
                name = self.writer.texts[number].text
                lines.append(f"{_INDENT}{self.work}[{part.live_out[number]}] = {name};")
            lines += self._stored(part.stores.get(number, ()))
        return lines + self._stored(part.final_stores)

    def _stored(self, stores: Sequence[Store]) -> list[str]:
        lines = []
        for store in stores:
            kept = store.space == "work"
            c = self.work if kept else self.outputs[store.space]
            index = store.index + (self.workspace.kept_start if kept else 0)
            self.arrays.add(c)
            sign = "+=" if store.add else "="
            lines.append(f"{_INDENT}{c}[{index}] {sign} {self.writer.text(store.value)};")
        return lines
