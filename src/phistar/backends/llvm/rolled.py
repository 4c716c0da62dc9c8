# SPDX-License-Identifier: BSD-3-Clause
"""Loops over links as LLVM text.

Inputs are first turned into vectors of lanes and kept in the workspace, outputs are turned back at
the end. The workspace holds, in vectors: the inputs, the outputs, the slots of each link, then the
places for what links hand to each other.
Walks for the columns of a matrix use the same slots again for each column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from phistar.backends.llvm.columns import WIDTH, Turner, blocked, kept
from phistar.backends.llvm.frame import Block, module
from phistar.backends.llvm.sincos import all_sincos
from phistar.backends.llvm.straight import arithmetic
from phistar.backends.llvm.writer import Lanes, literal
from phistar.scalar.graph import Value
from phistar.scalar.program import (
    Body,
    Columns,
    Loop,
    Rolled,
    Store,
    Walk,
    first_met,
    hand_places,
)
from phistar.scalar.relations import ABOVE, AFTER, AT, BEFORE, BELOW, RELATIONS, Kinship
from phistar.sweeps.ir import Direction


def workspace(program: Rolled) -> int:
    """Vectors that a block needs."""
    given = sum(program.signature.inputs.values()) + kept(program)
    return given + len(program.links) * program.slots + _places(program) * program.hands


def _places(program: Rolled) -> int:
    """Places for what links hand to each other."""
    parents = program.links.parent
    return max((max(hand_places(parents, way)) + 1 for way in Direction), default=0)


def rolled_module(program: Rolled, lanes: Lanes, tune: str = "") -> str:
    """The module of a rolled program; ``tune`` as for ``frame.module``."""

    def body(block: Block) -> None:
        _Loops(block, program).write()

    room, tables = workspace(program), _tables(program, lanes)
    return module(program.signature, lanes, body, room, tables, tune)


def _tables(program: Rolled, lanes: Lanes) -> str:
    links = program.links
    starts: list[int] = []
    table: list[float] = []
    for row in links.table:
        starts.append(len(table))
        table += row
    table = table or [0.0]

    def integers(name: str, values: Sequence[int]) -> str:
        listed = ", ".join(f"i64 {int(v)}" for v in values)
        return f"@{name} = private constant [{len(values)} x i64] [{listed}]"

    named: dict[str, Sequence[int]] = {
        "class": links.class_of,
        "parent": links.parent,
        "q_start": links.q,
        "v_start": links.v,
        "row": starts,
        **{f"begins_{way.value}": first_met(links.parent, way) for way in Direction},
        **{f"hand_{way.value}": hand_places(links.parent, way) for way in Direction},
    }
    if program.columns is not None:
        kinship = Kinship(links.parent)
        named |= {
            "enter": kinship.enter,
            "leave": kinship.leave,
            "column_link": program.columns.link,
            "column_entry": program.columns.entry,
        }
    reals = ", ".join(f"{lanes.real} {literal(x, lanes.real)}" for x in table)
    zeros = max(program.slots, program.hands)
    return "\n".join(
        [
            *(integers(name, values) for name, values in named.items()),
            f"@zeros = private constant [{zeros} x {lanes.type}] zeroinitializer",
            f"@table = private constant [{len(table)} x {lanes.real}] [{reals}]",
        ]
    )


class _Loops:
    def __init__(self, block: Block, program: Rolled) -> None:
        self.block = block
        self.w = block.w
        self.program = program
        self.signature = signature = program.signature
        self.bases: dict[str, int] = {}
        place = 0
        sizes = [*signature.inputs.items(), *((f"={k}", n) for k, n in signature.outputs.items())]
        for name, size in sizes:
            self.bases[name] = place
            place += size
        self.links_base = place
        self.turner: Turner | None = None
        if blocked(program):
            (base,) = [self.bases[f"={name}"] for name in signature.outputs]
            self.links_base = base + kept(program)
            self.turner = Turner(block, program, base, self._vector, self._count)
        self.hands_base = self.links_base + len(program.links) * program.slots

    def write(self) -> None:
        for name, size in self.signature.inputs.items():
            self._turn_in(name, size)
        for loop in self.program.loops:
            if loop.bodies:
                self._loop(loop)
        if self.program.columns is not None:
            self._columns(self.program.columns)
        for name, size in self.signature.outputs.items() if self.turner is None else ():
            self._turn_out(name, size)

    # -- rows of samples <-> vectors of lanes

    def _vector(self, index: str | int) -> str:
        return self.w.at("%work", index, self.w.lanes.type)

    def _chunks(
        self, size: int, whole: Callable[[str], None], single: Callable[[int], None]
    ) -> None:
        """Squares in a loop, what is left over one by one."""
        w, width = self.w, self.w.lanes.width
        squares = size // width if width > 1 else 0
        if squares:
            head, done = w.label("turn"), w.label("turned")
            w.do(f"br label %{head}")
            w.block(head)
            index = f"%i.{head}"
            after = f"%n.{head}"
            here, sums = self.block.label, f"%s.{head}"
            before = self.block.finite
            w.do(f"{index} = phi i64 [0, %{here}], [{after}, %{head}]")
            place = len(w.lines)
            self.block.move(head, sums)
            whole(index)
            t = w.lanes.type
            w.lines.insert(
                place, f"  {sums} = phi {t} [{before}, %{here}], [{self.block.finite}, %{head}]"
            )
            w.do(f"{after} = add i64 {index}, {width}")
            more = w(f"icmp slt i64 {after}, {squares * width}")
            w.do(f"br i1 {more}, label %{head}, label %{done}")
            w.block(done)
            self.block.move(done)
        for entry in range(squares * width, size):
            single(entry)

    def _turn_in(self, name: str, size: int) -> None:
        w, base = self.w, self.bases[name]
        t, align = w.lanes.type, w.lanes.bytes

        def whole(index: str) -> None:
            there = w(f"add i64 {index}, {base}")
            for i, value in enumerate(self.block.gather_square(name, index)):
                w.store(t, value, self._vector(w(f"add i64 {there}, {i}")), align)

        def single(entry: int) -> None:
            w.store(t, self.block.gather(name, entry), self._vector(base + entry), align)

        self._chunks(size, whole, single)

    def _turn_out(self, name: str, size: int) -> None:
        w, base = self.w, self.bases[f"={name}"]
        t, align = w.lanes.type, w.lanes.bytes

        def whole(index: str) -> None:
            there = w(f"add i64 {index}, {base}")
            values = [
                w.load(t, self._vector(w(f"add i64 {there}, {i}")), align)
                for i in range(w.lanes.width)
            ]
            self.block.scatter_some(f"={name}", index, values)

        def single(entry: int) -> None:
            value = w.load(t, self._vector(base + entry), align)
            self.block.scatter(f"={name}", entry, value)

        self._chunks(size, whole, single)

    # -- loops

    def _loop(self, loop: Loop) -> None:
        n = len(self.program.links)
        outward = loop.direction is Direction.OUTWARD
        first, last = ("0", str(n - 1)) if outward else (str(n - 1), "0")

        def visit(k: str, tail: str) -> None:
            self._switch(self._entry("class", k), loop.bodies, tail, loop.direction, k)

        self._count("link", first, last, outward, visit)

    def _entry(self, table: str, index: str) -> str:
        return self.w.load("i64", self.w.at(f"@{table}", index, "i64"), 8)

    def _count(
        self, stem: str, first: str, last: str, up: bool, visit: Callable[[str, str], None]
    ) -> None:
        """A loop over numbers up or down to the last."""
        w = self.w

        def step(k: str) -> tuple[str, str]:
            after = w(f"add i64 {k}, {1 if up else -1}")
            return after, w(f"icmp {'sle' if up else 'sge'} i64 {after}, {last}")

        self._repeat(stem, first, visit, step)

    def _repeat(
        self,
        stem: str,
        first: str,
        visit: Callable[[str, str], None],
        step: Callable[[str], tuple[str, str]],
    ) -> None:
        """A loop over numbers.

        Args:
            stem: Of labels.
            first: The first number.
            visit: Writes what is done with a number, and ends in branches to a label.
            step: Writes the next number, and whether there is one.
        """
        w, before = self.w, self.block.label
        head, tail, done = w.label(stem), w.label(f"{stem}end"), w.label(f"{stem}done")
        w.do(f"br label %{head}")
        w.block(head)
        place, k = len(w.lines), f"%k.{head}"
        self.block.move(head)
        visit(k, tail)
        w.block(tail)
        after, more = step(k)
        w.lines.insert(place, f"  {k} = phi i64 [{first}, %{before}], [{after}, %{tail}]")
        w.do(f"br i1 {more}, label %{head}, label %{done}")
        w.block(done)
        self.block.move(done)

    def _switch(
        self,
        kind: str,
        cases: Mapping[int, Body],
        tail: str,
        way: Direction,
        k: str,
        column: str = "",
    ) -> None:
        """Go on with the body of a case, or past it."""
        w = self.w
        labels = {id(body): w.label("case") for body in cases.values()}
        listed = " ".join(f"i64 {c}, label %{labels[id(b)]}" for c, b in cases.items())
        w.do(f"switch i64 {kind}, label %{tail} [{listed}]")
        for body in {id(body): body for body in cases.values()}.values():
            w.block(labels[id(body)])
            _LinkBody(self, body, way, k, labels[id(body)], column).write()
            w.do(f"br label %{tail}")

    # -- columns of a matrix

    def _columns(self, columns: Columns) -> None:
        (size,) = self.signature.outputs.values()
        if columns.fill:
            self._fill(size)

        def visit(column: str, tail: str) -> None:
            c, entry = self._entry("column_link", column), self._entry("column_entry", column)
            place = column if self.turner is None else self.turner.within(column)
            for walk in columns.walks:
                if walk.bodies:
                    self._walk(walk, place, c, entry)
            if self.turner is None:
                self.w.do(f"br label %{tail}")
            else:
                self.turner.when_full(column, tail)

        self._count("column", "0", str(len(columns.link) - 1), True, visit)
        if self.turner is not None:
            self.turner.rest()

    def _fill(self, size: int) -> None:
        w, (base,) = self.w, [self.bases[f"={name}"] for name in self.signature.outputs]

        def visit(index: str, tail: str) -> None:
            place = self._vector(w(f"add i64 {index}, {base}"))
            w.store(w.lanes.type, w.constant(0.0), place, w.lanes.bytes)
            w.do(f"br label %{tail}")

        self._count("fill", "0", str(size - 1), True, visit)

    def _walk(self, walk: Walk, column: str, c: str, entry: str) -> None:
        w = self.w
        cases = {
            kind * _CODES + (_AT + e if relation == AT else RELATIONS.index(relation)): body
            for (kind, relation, e), body in walk.bodies.items()
        }
        here = w(f"add i64 {entry}, {_AT}")

        def visit(k: str, tail: str) -> None:
            code = self._related(k, c, walk)
            same = w(f"icmp eq i64 {k}, {c}")
            code = w(f"select i1 {same}, i64 {here}, i64 {code}")
            kind = w(f"mul i64 {self._entry('class', k)}, {_CODES}")
            self._switch(w(f"add i64 {kind}, {code}"), cases, tail, walk.direction, k, column)

        if walk.path:
            self._climb(c, visit)
            return
        before, after = walk.span
        low, high = "0" if before else c, str(len(self.program.links) - 1) if after else c
        outward = walk.direction is Direction.OUTWARD
        self._count("link", low if outward else high, high if outward else low, outward, visit)

    def _climb(self, c: str, visit: Callable[[str, str], None]) -> None:
        """From a link to its ancestors."""

        def step(k: str) -> tuple[str, str]:
            after = self._entry("parent", k)
            return after, self.w(f"icmp sge i64 {after}, 0")

        self._repeat("climb", c, visit, step)

    def _related(self, k: str, c: str, walk: Walk) -> str:
        """The number of what link k is to another link c."""
        w = self.w
        if walk.path:
            return str(RELATIONS.index(ABOVE))
        enter_k, enter_c = self._entry("enter", k), self._entry("enter", c)
        leave_k, leave_c = self._entry("leave", k), self._entry("leave", c)
        code = w(f"select i1 {w(f'icmp slt i64 {k}, {c}')}, i64 {_BEFORE}, i64 {_AFTER}")
        for relation, (a, b, end) in {
            ABOVE: (enter_k, enter_c, leave_k),
            BELOW: (enter_c, enter_k, leave_c),
        }.items():
            inside = w(f"icmp slt i64 {b}, {end}")
            inside = w(f"and i1 {inside}, {w(f'icmp slt i64 {a}, {b}')}")
            code = w(f"select i1 {inside}, i64 {RELATIONS.index(relation)}, i64 {code}")
        return code


_BEFORE, _AFTER, _AT = (RELATIONS.index(each) for each in (BEFORE, AFTER, AT))
_CODES = _AT + 6
"""Numbers of relations: that of the column's own link goes on with the entry of the column."""


_BEGUN = "begun "


class _LinkBody:
    def __init__(
        self, loops: _Loops, body: Body, way: Direction, k: str, label: str, column: str = ""
    ) -> None:
        self.loops = loops
        self.way = way
        self.w = loops.w
        self.body = body
        self.k = k
        self.label = label
        self.column = column
        self.addresses: dict[str, str] = {}

    def _base(self, space: str, base: str) -> str:
        """Address of the first entry of this link in a space."""
        key = f"{space}.{base}"
        if key not in self.addresses:
            self.addresses[key] = self._find(space, base)
        return self.addresses[key]

    def _find(self, space: str, base: str) -> str:
        w, loops = self.w, self.loops
        if space == "table":
            return w.at("@table", w.load("i64", w.at("@row", self.k, "i64"), 8))
        if space.startswith(_BEGUN):
            # What a sum over children begins with: zeros, or what is there.
            flags = w.at(f"@begins_{self.way.value}", self.k, "i64")
            first = w(f"icmp ne i64 {w.load('i64', flags, 8)}, 0")
            there = self._base(space.removeprefix(_BEGUN), base)
            return w(f"select i1 {first}, ptr @zeros, ptr {there}")
        if space in ("work", "hand"):
            index, size, start = self.k, loops.program.slots, loops.links_base
            if base == "parent":
                index = loops._entry("parent", self.k)
            if space == "hand":
                index, size = loops._entry(f"hand_{self.way.value}", index), loops.program.hands
                start = loops.hands_base
            return loops._vector(w(f"add i64 {w(f'mul i64 {index}, {size}')}, {start}"))
        return loops._vector(w(f"add i64 {self._start(base)}, {loops.bases[space]}"))

    def _start(self, base: str) -> str:
        """Where the part of this link begins."""
        w, links = self.w, self.loops.program.links
        if base in ("body", "frame"):
            own = w(f"mul i64 {self.k}, 6")
            return own if base == "body" else w(f"sub i64 {own}, {6 * (len(links) - links.frames)}")
        return self.loops._entry(f"{base}_start", self.k)

    def _matrix_address(self, store: Store, columns: Columns) -> str:
        """Of an entry of a matrix: rows below each other are a row apart."""
        w, loops = self.w, self.loops
        across = columns.across if loops.turner is None else WIDTH
        key = f"{store.base}.{store.turned}"
        if key not in self.addresses:
            row, column = self._start(store.base), self.column
            row, column = (column, row) if store.turned else (row, column)
            entry = w(f"add i64 {w(f'mul i64 {row}, {across}')}, {column}")
            base = loops.bases[f"={store.space}"]
            self.addresses[key] = loops._vector(w(f"add i64 {entry}, {base}"))
        step = 1 if store.turned else across
        return w.at(self.addresses[key], store.index * step, w.lanes.type)

    def _address(self, space: str, index: int, base: str) -> str:
        return self.w.at(self._base(space, base), index, self.w.lanes.type)

    def write(self) -> None:
        w, graph = self.w, self.body.graph
        t, align = w.lanes.type, w.lanes.bytes
        roots = [s.value for s in self.body.stores if isinstance(s.value, Value)]
        names: dict[int, str] = {}
        pairs: dict[int, tuple[str, str]] = {}
        for number in graph.live(roots):
            node = graph.nodes[number]
            if node[0] == "load" and node[1][0] == "table":
                pointer = w.at(self._base("table", "link"), node[1][1])
                names[number] = w.spread(w.load(w.lanes.real, pointer, w.lanes.bits // 8))
            elif node[0] == "load":
                names[number] = w.load(t, self._address(*node[1]), align)
            elif node[0] in ("sin", "cos"):
                if node[1] not in pairs:
                    (pair,), self.label = all_sincos(w, [names[node[1]]], self.label)
                    pairs[node[1]] = pair
                names[number] = pairs[node[1]][0 if node[0] == "sin" else 1]
            else:
                names[number] = arithmetic(w, graph, number, names)
        for store in self.body.stores:
            self._store(store, names)

    def _store(self, store: Store, names: dict[int, str]) -> None:
        w = self.w
        t, align = w.lanes.type, w.lanes.bytes
        value = store.value
        known = names[value.id] if isinstance(value, Value) else w.constant(value)
        columns = self.loops.program.columns if self.column else None
        if columns is not None and store.space not in ("work", "hand"):
            pointer = self._matrix_address(store, columns)
        else:
            space = store.space if store.space in ("work", "hand") else f"={store.space}"
            pointer = self._address(space, store.index, store.base)
        if store.add:
            before = pointer
            if store.begins:
                before = self._address(f"{_BEGUN}{store.space}", store.index, store.base)
            known = w.real("fadd", w.load(t, before, align), known)
        w.store(t, known, pointer, align)
