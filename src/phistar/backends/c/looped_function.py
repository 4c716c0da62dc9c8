# SPDX-License-Identifier: BSD-3-Clause
"""Loops over links as the body of a C function: constants in tables, one case for each class.

kind[k]   class of link k             q_at[k], v_at[k]   first entries in q and in v
up[k]     number of its parent        row[k]             first entry in ``array_definition``
first_inward[k], first_outward[k]     whether a walk meets it before its siblings
hand_inward[k], hand_outward[k]       its place for what links hand to each other

A matrix has walks for each of its columns c, with a case for each class and relation:

column_link[c], column_entry[c]       the link at which it begins, and which of its columns it is
enter[k], leave[k]                    descendants are entered after a link, and before it is left
above[k]                              number of its parent plus one; 0 is the ground
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from phistar.backends.c.expressions import StatementWriter, wrap_statement
from phistar.backends.c.interface import Interface
from phistar.backends.c.tokens import IdentifierScope, array_definition, index_type
from phistar.backends.c.unit_quaternions import normalize_function, normalize_name
from phistar.scalar.program import (
    BasicBlock,
    ColumnLoop,
    ColumnSweep,
    LinkSweep,
    LinkVariant,
    Looped,
    Store,
    entry_start,
    first_visited_siblings,
)
from phistar.scalar.robot.link_relations import ABOVE, AFTER, AT, BEFORE, BELOW, AncestorRelations
from phistar.sweeps.ir import Direction

_FIRST_TABLE = {way: f"first_{way.value}" for way in Direction}
_FORWARD_TABLE = {way: f"hand_{way.value}" for way in Direction}
_INDENT = " " * 4
_CASE_INDENT = " " * 8
_INNER_INDENT = " " * 12
_LOCAL_NAMES = (
    "k",
    "kind",
    "up",
    "q_at",
    "v_at",
    "row",
    "table",
    *_FIRST_TABLE.values(),
    *_FORWARD_TABLE.values(),
    "column_link",
    "column_entry",
    "enter",
    "leave",
    "above",
    "quaternion_at",
    "unit_q",
    "c",
    "at",
    "relation",
)
_RELATION_CODES = {ABOVE: 0, BELOW: 1, BEFORE: 2, AFTER: 3, AT: 4}
"""Of the column's own link: plus the entry of the column."""
_RELATION_STRIDE = 10
"""Relations of a class: a joint has at most six columns."""


def looped_workspace(program: Looped) -> int:
    """Numbers kept at the links and handed to each other, and q with unit quaternions."""
    return _unit_start(program) + (program.signature.inputs["q"] if _has_unit_q(program) else 0)


def _unit_start(program: Looped) -> int:
    places = [max(each) + 1 for each in program.links.forward_places.values()]
    return _link_entries(program) + max(places) * program.forward_slots


def _has_unit_q(program: Looped) -> bool:
    return bool(program.signature.quaternions)


def _link_entries(program: Looped) -> int:
    return len(program.links) * program.slots


def looped_function(program: Looped, face: Interface) -> tuple[list[str], list[str]]:
    """Functions to stand above the function, and the lines between its braces."""
    above = [normalize_function(face)] if _has_unit_q(program) else []
    return above, _LoopWriter(program, face).lines()


class _LoopWriter:
    def __init__(self, program: Looped, face: Interface) -> None:
        self.program = program
        self.links = program.links
        self.face = face
        self.names = IdentifierScope([face.name, *face.arguments, face.work_name])
        self.local = {name: self.names.unique_name(name) for name in _LOCAL_NAMES}
        self.local["work"] = face.work_name
        self.inputs = {name: c for name, c, _ in face.inputs}
        self.outputs = {name: c for name, c, _ in face.outputs}
        self.used_tables: set[str] = set()

    def lines(self) -> list[str]:
        walks = [line for loop in self.program.sweeps if loop.blocks for line in self._loop(loop)]
        columns = self.program.column_loop
        if columns is not None:
            walks += self._column_loop(columns)
        unit = list(self._unit_q())
        clear = list(self._clear())
        return [*self._tables(), *self._locals(bool(walks or clear)), *unit, *clear, *walks]

    # -- what stands above the loops

    def _tables(self) -> Iterator[str]:
        links = self.links
        starts: list[int] = []
        numbers: list[float] = []
        for row in links.table:
            starts.append(len(numbers))
            numbers += row
        whole: dict[str, Sequence[int]] = {
            "kind": links.class_of,
            "up": [max(parent, 0) for parent in links.parent],
            "q_at": links.q,
            "v_at": links.v,
            "row": starts,
            **{
                _FIRST_TABLE[way]: [*map(int, first_visited_siblings(links.parent, way))]
                for way in Direction
            },
            **{_FORWARD_TABLE[way]: places for way, places in links.forward_places.items()},
            **self._column_tables(),
            "quaternion_at": self.program.signature.quaternions,
        }
        for name, values in whole.items():
            if name in self.used_tables:
                declaration = f"static const {index_type(values)} {self.local[name]}[{len(values)}]"
                yield array_definition(declaration, [str(x) for x in values], _INDENT)
        if "table" in self.used_tables:
            real = self.face.real
            declaration = f"static const {real.type} {self.local['table']}[{len(numbers)}]"
            yield array_definition(declaration, [real.literal(x) for x in numbers], _INDENT)

    def _locals(self, walks: bool) -> Iterator[str]:
        real, work = self.face.real.type, self.local["work"]
        if not self.face.work_entries and "work" in self.used_tables:
            yield f"{_INDENT}{real} {work}[{looped_workspace(self.program)}];"
        if _has_unit_q(self.program):
            start = _unit_start(self.program)
            yield f"{_INDENT}{real} *const {self.local['unit_q']} = {work} + {start};"
        if walks:
            yield f"{_INDENT}int {self.local['k']};"

    def _unit_q(self) -> Iterator[str]:
        """A copy of q whose quaternions are unit."""
        if not _has_unit_q(self.program):
            return
        self.used_tables |= {"work", "quaternion_at"}
        k, q, unit = self.local["k"], self.inputs["q"], self.local["unit_q"]
        size, count = self.program.signature.inputs["q"], len(self.program.signature.quaternions)
        at = f"{self.local['quaternion_at']}[{k}]"
        yield f"\n{_INDENT}for ({k} = 0; {k} < {size}; ++{k}) {{"
        yield f"{_CASE_INDENT}{unit}[{k}] = {q}[{k}];\n{_INDENT}}}"
        yield f"{_INDENT}for ({k} = 0; {k} < {count}; ++{k}) {{"
        yield f"{_CASE_INDENT}{normalize_name(self.face)}({q} + {at}, {unit} + {at});\n{_INDENT}}}"

    def _column_tables(self) -> dict[str, Sequence[int]]:
        columns, parent = self.program.column_loop, self.links.parent
        if columns is None:
            return {}
        relations = AncestorRelations(parent)
        return {
            "column_link": columns.link,
            "column_entry": columns.entry,
            "enter": relations.enter,
            "leave": relations.leave,
            "above": [each + 1 for each in parent],
        }

    def _clear(self) -> Iterator[str]:
        """Zeros where outputs are added to, and where no link writes."""
        for name, c in self.outputs.items():
            if name in self.program.ground_start:
                for i, value in enumerate(self.program.ground_start[name]):
                    yield f"\n{_INDENT}{c}[{i}] = {self.face.real.literal(value)};"
                continue
            size = self.program.signature.outputs[name]
            if size and self._needs_zeros(name, size):
                zero = self.face.real.literal(0.0)
                k = self.local["k"]
                yield f"\n{_INDENT}for ({k} = 0; {k} < {size}; ++{k}) {{"
                yield f"{_CASE_INDENT}{c}[{k}] = {zero};\n{_INDENT}}}"

    def _needs_zeros(self, name: str, size: int) -> bool:
        if self.program.column_loop is not None:
            return self.program.column_loop.zero_fill
        written: set[int] = set()
        for loop in self.program.sweeps:
            for k, kind in enumerate(self.links.class_of):
                body = loop.blocks.get(kind)
                for store in body.stores if body is not None else ():
                    if store.space == name:
                        if store.add:
                            return True
                        written.add(entry_start(self.links, store.base, k) + store.index)
        return len(written) < size

    # -- loops

    def _loop(self, loop: LinkSweep) -> Iterator[str]:
        k, n = self.local["k"], len(self.links)
        outward = loop.direction is Direction.OUTWARD
        way = "outward: parents first" if outward else "inward: children first"
        steps = f"{k} = 0; {k} < {n}; ++{k}" if outward else f"{k} = {n - 1}; {k} >= 0; --{k}"
        self.used_tables.add("kind")
        yield f"\n{_INDENT}/* {way} */"
        yield f"{_INDENT}for ({steps}) {{"
        yield f"{_CASE_INDENT}switch ({self.local['kind']}[{k}]) {{"
        yield from self._cases(loop.blocks, loop.direction)
        yield f"{_INDENT}}}"

    def _cases(self, blocks: Mapping[int, BasicBlock], way: Direction) -> Iterator[str]:
        """The cases of a switch and its end."""
        bodies = {id(body): body for body in blocks.values() if body.stores}
        for name, body in bodies.items():
            codes = [code for code, each in blocks.items() if id(each) == name]
            yield "\n".join(f"{_CASE_INDENT}case {code}:" for code in codes) + " {"
            yield from self._case(body, way)
            yield f"{_INNER_INDENT}break;\n{_CASE_INDENT}}}"
        yield f"{_CASE_INDENT}default:\n{_INNER_INDENT}break;\n{_CASE_INDENT}}}"

    def _column_loop(self, columns: ColumnLoop) -> Iterator[str]:
        """The walks that are done for each column."""
        c, at = self.local["c"], self.local["at"]
        self.used_tables.add("column_link")
        yield f"\n{_INDENT}int {c};\n"
        yield f"{_INDENT}for ({c} = 0; {c} < {len(columns.link)}; ++{c}) {{"
        yield f"{_INDENT}const int {at} = {self.local['column_link']}[{c}];"
        for walk in columns.sweeps:
            if walk.blocks:
                yield from self._column_walk(walk)
        yield f"{_INDENT}}}"

    def _column_walk(self, walk: ColumnSweep) -> Iterator[str]:
        k, relation = self.local["k"], self.local["relation"]
        self.used_tables.add("kind")
        yield f"\n{_INDENT}for ({self._column_steps(walk)}) {{"
        yield f"{_CASE_INDENT}const int {relation} = {self._relation(walk)};\n"
        code = f"{_RELATION_STRIDE} * {self.local['kind']}[{k}] + {relation}"
        yield f"{_CASE_INDENT}switch ({code}) {{"
        blocks = {_variant_code(variant): body for variant, body in walk.blocks.items()}
        yield from self._cases(blocks, walk.direction)
        yield f"{_INDENT}}}"

    def _column_steps(self, walk: ColumnSweep) -> str:
        """The links that a walk visits, as the head of a loop."""
        k, at, n = self.local["k"], self.local["at"], len(self.links)
        if walk.is_ancestor_path:
            self.used_tables.add("above")
            return f"{k} = {at}; {k} >= 0; {k} = {self.local['above']}[{k}] - 1"
        before, after = walk.visits_before_after
        first = "0" if before else at
        last = str(n - 1) if after else at
        if walk.direction is Direction.OUTWARD:
            return f"{k} = {first}; {k} <= {last}; ++{k}"
        return f"{k} = {last}; {k} >= {first}; --{k}"

    def _relation(self, walk: ColumnSweep) -> str:
        """What a link is to the column's link, as a number."""
        k, at, c = self.local["k"], self.local["at"], self.local["c"]
        self.used_tables.add("column_entry")
        own = f"{_RELATION_CODES[AT]} + {self.local['column_entry']}[{c}]"
        if walk.is_ancestor_path:
            return f"{k} == {at} ? {own} : {_RELATION_CODES[ABOVE]}"
        self.used_tables |= {"enter", "leave"}
        enter, leave = self.local["enter"], self.local["leave"]

        def beyond(one: str, other: str) -> str:
            return f"{enter}[{one}] < {enter}[{other}] && {enter}[{other}] < {leave}[{one}]"

        aside = f"{k} < {at} ? {_RELATION_CODES[BEFORE]} : {_RELATION_CODES[AFTER]}"
        lead = f"\n{_INNER_INDENT}"
        return (
            f"{k} == {at} ? {own}{lead}: {beyond(k, at)} ? {_RELATION_CODES[ABOVE]}"
            f"{lead}: {beyond(at, k)} ? {_RELATION_CODES[BELOW]}{lead}: {aside}"
        )

    def _case(self, body: BasicBlock, way: Direction) -> Iterator[str]:
        kept = Counter(value.id for value in body.roots)
        names = IdentifierScope([*self.local.values(), self.face.name, *self.face.arguments])
        pointers = _Pointers(names)

        def load(space: str, index: int, base: str) -> tuple[str, str]:
            return f"{self._base(space, base, way, False, pointers)}[{index}]", ""

        writer = StatementWriter(body.graph, body.live_nodes, kept, self.face.real, names, load)
        lines = [wrap_statement(statement, _INNER_INDENT) for _, statement in writer.statements()]
        lines += [self._store(store, writer, pointers, way) for store in body.stores]
        yield from (f"{_INNER_INDENT}{line}" for line in pointers.lines)
        yield from lines

    def _store(
        self, store: Store, writer: StatementWriter, pointers: _Pointers, way: Direction
    ) -> str:
        columns, index = self.program.column_loop, store.index
        base = self._base(store.space, store.base, way, True, pointers, store.transposed)
        if columns is not None and store.space in self.outputs and not store.transposed:
            index *= columns.row_width
        place = f"{base}[{index}]"
        value = writer.text(store.value)
        if store.first_child_stores:
            self.used_tables.add(_FIRST_TABLE[way])
            zero = self.face.real.literal(0.0)
            first = f"{self.local[_FIRST_TABLE[way]]}[{self.local['k']}]"
            return f"{_INNER_INDENT}{place} = ({first} ? {zero} : {place}) + ({value});"
        return f"{_INNER_INDENT}{place} {'+=' if store.add else '='} {value};"

    def _base(
        self,
        space: str,
        base: str,
        way: Direction,
        output: bool,
        pointers: _Pointers,
        transposed: bool = False,
    ) -> str:
        """A pointer to where the link's part of an array begins, declared at the first use."""
        key = (space, base, output and space not in ("work", "forward"), transposed)
        if key not in pointers.pointer_by_base:
            declared = self._declared(space, base, way, output, pointers, transposed)
            pointers.pointer_by_base[key] = declared
        return pointers.pointer_by_base[key]

    def _declared(
        self,
        space: str,
        base: str,
        way: Direction,
        output: bool,
        pointers: _Pointers,
        transposed: bool,
    ) -> str:
        real, local, k = self.face.real.type, self.local, self.local["k"]
        if space == "table":
            self.used_tables |= {"table", "row"}
            return pointers.declare(f"const {real}", "c", f"{local['table']} + {local['row']}[{k}]")
        if space in ("work", "forward"):
            self.used_tables.add("work")
            link = k
            if base == "parent":
                self.used_tables.add("up")
                link = f"{local['up']}[{k}]"
            wish = "own" if base == "link" else "parent"
            start = f"{local['work']} + {self.program.slots} * {link}"
            if space == "forward":
                self.used_tables.add(_FORWARD_TABLE[way])
                wish = "handed" if base == "link" else "parents"
                place = f"{local[_FORWARD_TABLE[way]]}[{link}]"
                size, end = self.program.forward_slots, _link_entries(self.program)
                start = f"{local['work']} + {end} + {size} * {place}"
            return pointers.declare(real, wish, start)
        array = self.outputs[space] if output else self.inputs[space]
        first, columns = self._entry(base), self.program.column_loop
        wish = f"{array}_k"
        if output and columns is not None:
            # Rows of a column, or columns of a row.
            row, column = (local["c"], first) if transposed else (f"({first})", local["c"])
            first = f"{columns.row_width} * {row} + {column}"
            wish += "_transposed" if transposed else ""
        elif space == "q" and _has_unit_q(self.program):
            array = local["unit_q"]
        return pointers.declare(real if output else f"const {real}", wish, f"{array} + {first}")

    def _entry(self, base: str) -> str:
        k = self.local["k"]
        if base == "body":
            return f"6 * {k}"
        if base == "ground":
            return "0"
        if base == "plane":
            return f"4 * {k}"
        if base == "frame":
            return f"6 * ({k} - {len(self.links) - self.links.frames})"
        self.used_tables.add(f"{base}_at")
        return f"{self.local[f'{base}_at']}[{k}]"


def _variant_code(variant: LinkVariant) -> int:
    kind, relation, entry = variant
    return _RELATION_STRIDE * kind + _RELATION_CODES[relation] + entry


class _Pointers:
    """Pointers that a case declares, by what they point at."""

    def __init__(self, names: IdentifierScope) -> None:
        self.names = names
        self.pointer_by_base: dict[tuple[str, str, bool, bool], str] = {}
        self.lines: list[str] = []

    def declare(self, kind: str, wish: str, start: str) -> str:
        name = self.names.unique_name(wish)
        self.lines.append(f"{kind} *const {name} = {start};")
        return name
