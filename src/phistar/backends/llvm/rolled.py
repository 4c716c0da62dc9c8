# SPDX-License-Identifier: BSD-3-Clause
"""Loops over links as LLVM text.

Inputs are first turned into vectors of lanes and kept in the workspace, outputs are turned back at
the end. The workspace holds, in vectors: the inputs, the outputs, then the slots of each link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from phistar.backends.llvm.frame import Block, module
from phistar.backends.llvm.sincos import all_sincos
from phistar.backends.llvm.straight import arithmetic
from phistar.backends.llvm.writer import Lanes, literal
from phistar.scalar.graph import Value
from phistar.scalar.program import Body, Loop, Rolled, Store, first_met
from phistar.sweeps.ir import Direction


def workspace(program: Rolled) -> int:
    """Vectors that a block needs."""
    signature = program.signature
    given = sum(signature.inputs.values()) + sum(signature.outputs.values())
    return given + len(program.links) * program.slots


def rolled_module(program: Rolled, lanes: Lanes) -> str:
    """The module of a rolled program."""

    def body(block: Block) -> None:
        _Loops(block, program).write()

    return module(program.signature, lanes, body, _tables(program, lanes))


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

    reals = ", ".join(f"{lanes.real} {literal(x, lanes.real)}" for x in table)
    return "\n".join(
        [
            integers("class", list(links.class_of)),
            integers("parent", [max(parent, 0) for parent in links.parent]),
            integers("q_start", list(links.q)),
            integers("v_start", list(links.v)),
            integers("row", starts),
            *(integers(f"begins_{way.value}", first_met(links.parent, way)) for way in Direction),
            f"@zeros = private constant [{program.slots} x {lanes.type}] zeroinitializer",
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

    def write(self) -> None:
        for name, size in self.signature.inputs.items():
            self._turn_in(name, size)
        for loop in self.program.loops:
            if loop.bodies:
                self._loop(loop)
        for name, size in self.signature.outputs.items():
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
            self.block.scatter_square(f"={name}", index, values)

        def single(entry: int) -> None:
            value = w.load(t, self._vector(base + entry), align)
            self.block.scatter(f"={name}", entry, value)

        self._chunks(size, whole, single)

    # -- loops

    def _loop(self, loop: Loop) -> None:
        w, n = self.w, len(self.program.links)
        head, tail, done = w.label("link"), w.label("linkend"), w.label("walked")
        outward = loop.direction is Direction.OUTWARD
        start, step = (0, 1) if outward else (n - 1, -1)
        w.do(f"br label %{head}")
        w.block(head)
        k, after = f"%k.{head}", f"%n.{head}"
        w.do(f"{k} = phi i64 [{start}, %{self.block.label}], [{after}, %{tail}]")
        kind = w.load("i64", w.at("@class", k, "i64"), 8)
        bodies = {id(body): body for body in loop.bodies.values()}
        labels = {name: w.label("class") for name in bodies}
        listed = " ".join(f"i64 {c}, label %{labels[id(b)]}" for c, b in loop.bodies.items())
        w.do(f"switch i64 {kind}, label %{tail} [{listed}]")
        for name, label in labels.items():
            w.block(label)
            _LinkBody(self, bodies[name], loop.direction, k, label).write()
            w.do(f"br label %{tail}")
        w.block(tail)
        w.do(f"{after} = add i64 {k}, {step}")
        limit = f"icmp slt i64 {after}, {n}" if outward else f"icmp sge i64 {after}, 0"
        w.do(f"br i1 {w(limit)}, label %{head}, label %{done}")
        w.block(done)
        self.block.move(done)


class _LinkBody:
    def __init__(self, loops: _Loops, body: Body, direction: Direction, k: str, label: str) -> None:
        self.loops = loops
        self.direction = direction
        self.w = loops.w
        self.body = body
        self.k = k
        self.label = label
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
        if space == "begun":
            # What a sum over children begins with: zeros, or what is there.
            flags = w.at(f"@begins_{self.direction.value}", self.k, "i64")
            first = w(f"icmp ne i64 {w.load('i64', flags, 8)}, 0")
            return w(f"select i1 {first}, ptr @zeros, ptr {self._base('work', base)}")
        if space == "work":
            index = self.k
            if base == "parent":
                index = w.load("i64", w.at("@parent", self.k, "i64"), 8)
            slot = w(f"mul i64 {index}, {loops.program.slots}")
            return loops._vector(w(f"add i64 {slot}, {loops.links_base}"))
        if base == "body":
            entry = w(f"mul i64 {self.k}, 6")
        else:
            entry = w.load("i64", w.at(f"@{base}_start", self.k, "i64"), 8)
        return loops._vector(w(f"add i64 {entry}, {loops.bases[space]}"))

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
        space = store.space if store.space == "work" else f"={store.space}"
        pointer = self._address(space, store.index, store.base)
        if store.add:
            before = pointer
            if store.begins:
                before = self._address("begun", store.index, store.base)
            known = w.real("fadd", w.load(t, before, align), known)
        w.store(t, known, pointer, align)
