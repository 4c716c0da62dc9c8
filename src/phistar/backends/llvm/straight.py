# SPDX-License-Identifier: BSD-3-Clause
"""A straight line of scalar operations as LLVM text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from phistar.backends.llvm.frame import Block, module, pieces
from phistar.backends.llvm.sincos import all_sincos
from phistar.backends.llvm.writer import Lanes, Writer
from phistar.scalar.graph import Graph, Scalar, Value
from phistar.scalar.program import Body, Repeat, Straight

WORK = "work"
_REAL = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


def arithmetic(w: Writer, graph: Graph, number: int, names: dict[int, str]) -> str:
    """The instruction of a node whose operands have names."""
    node = graph.nodes[number]
    op = node[0]
    if op == "const":
        return w.constant(node[1])
    if op == "neg":
        return w.negative(names[node[1]])
    if op == "sqrt":
        return w.call("sqrt", names[node[1]])
    return w.real(_REAL[op], names[node[1]], names[node[2]])


def straight_module(program: Straight, lanes: Lanes) -> str:
    """The module of a straight line, perhaps with lines for rows after it.

    Raises:
        ValueError: The program has products of matrices; ``long.LongLine`` writes those.
    """
    if program.products:
        names = ", ".join(product.output for product in program.products)
        raise ValueError(f"{names}: products of matrices, which only a line in parts can have")

    def body(block: Block) -> None:
        _Straight(block, program).write()
        for repeat in program.repeats:
            _Repeat(block, repeat).write()

    return module(program.signature, lanes, body, program.slots)


class Line:
    """Nodes of a line.

    Attributes:
        block: Where the text goes.
        names: What the nodes that are done are called.
    """

    def __init__(self, block: Block, program: Straight) -> None:
        self.block = block
        self.w = block.w
        self.graph = program.body.graph
        self.signature = program.signature
        self.names: dict[int, str] = {}
        self.inputs: dict[tuple[str, int], str] = {}

    def load_all(self) -> None:
        """Read all inputs, so that all are looked at."""
        for name, size in self.signature.inputs.items():
            for entry in range(size):
                self._load(name, entry)

    def node(self, number: int) -> None:
        """A node whose operands are done."""
        node = self.graph.nodes[number]
        if node[0] == "load":
            self.names[number] = self._load(*node[1])
        else:
            self.names[number] = arithmetic(self.w, self.graph, number, self.names)

    def angles(self, live: Sequence[int]) -> None:
        """All sines and cosines first, with one test for far angles; those of others in rounds."""
        nodes, graph = self.graph.nodes, self.graph
        turning = [n for n in live if nodes[n][0] in ("sin", "cos")]
        needed = {n: graph.live([Value(graph, nodes[n][1])]) for n in turning}
        while turning:
            now = [n for n in turning if all(k in self.names or k not in needed for k in needed[n])]
            angles = list(dict.fromkeys(nodes[n][1] for n in now))
            for number in graph.live([Value(graph, a) for a in angles]):
                if number not in self.names:
                    self.node(number)
            pairs, label = all_sincos(self.w, [self.names[a] for a in angles], self.block.label)
            self.block.move(label)
            known = dict(zip(angles, pairs, strict=True))
            for n in now:
                op, angle = nodes[n]
                self.names[n] = known[angle][0 if op == "sin" else 1]
            turning = [n for n in turning if n not in self.names]

    def _load(self, name: str, entry: int) -> str:
        key = (name, entry)
        if key not in self.inputs:
            size = self.signature.inputs[name]
            start, count = next(p for p in pieces(size, self.w.lanes) if p[0] + p[1] > entry)
            for i, value in enumerate(self.block.gather_some(name, start, count)):
                self.inputs.setdefault((name, start + i), value)
        return self.inputs[key]


class _Straight(Line):
    """A line in one piece."""

    def __init__(self, block: Block, program: Straight) -> None:
        super().__init__(block, program)
        self.body = program.body
        self.groups = _groups(program.body, self.w.lanes)
        self.waiting: dict[int, list[_Group]] = {}
        for group in self.groups:
            for number in group.pending:
                self.waiting.setdefault(number, []).append(group)

    def write(self) -> None:
        """All of it; results are stored as soon as they are there."""
        live = self.body.live
        self.load_all()
        self.angles(live)
        for group in self.groups:
            if not group.pending:
                self._store(group)
        for number in list(self.names):
            self._announce(number)
        for number in live:
            if number not in self.names:
                self.node(number)
                self._announce(number)

    def _announce(self, number: int) -> None:
        """Store the groups that waited for a value alone."""
        for group in self.waiting.pop(number, ()):
            group.pending.discard(number)
            if not group.pending:
                self._store(group)

    def _store(self, group: _Group) -> None:
        values = [self._sum(entry) for entry in group.entries]
        if group.name == WORK:
            lanes = self.w.lanes
            place = self.w.at("%work", group.start, lanes.type)
            self.w.store(lanes.type, values[0], place, lanes.bytes)
            return
        self.block.scatter_some(f"={group.name}", group.start, values)

    def _sum(self, values: Sequence[Scalar]) -> str:
        names = [
            self.names[value.id] if isinstance(value, Value) else self.w.constant(value)
            for value in values
        ]
        total = names[0]
        for name in names[1:]:
            total = self.w.real("fadd", total, name)
        return total


class _Repeat:
    """A line for each of some rows: a loop over pairs of them, that of an odd number reaching back.

    Two rows at a time, because they share what they read.
    """

    def __init__(self, block: Block, repeat: Repeat) -> None:
        self.block = block
        self.w = block.w
        self.repeat = repeat
        self.graph = repeat.body.graph
        self.together = min(2, len(repeat.rows))

    def write(self) -> None:
        """The loop."""
        w, last = self.w, len(self.repeat.rows) - self.together
        head, after = w.label("rows"), w.label("rowsend")
        w.do(f"br label %{head}")
        w.block(head)
        i, more = f"%i.{head}", f"%n.{head}"
        w.do(f"{i} = phi i64 [0, %{self.block.label}], [{more}, %{head}]")
        back = w(f"icmp slt i64 {i}, {last}")
        self._rows(w(f"select i1 {back}, i64 {i}, i64 {last}"))
        w.do(f"{more} = add i64 {i}, {self.together}")
        again = w(f"icmp slt i64 {more}, {len(self.repeat.rows)}")
        w.do(f"br i1 {again}, label %{head}, label %{after}")
        w.block(after)
        self.block.move(after)

    def _rows(self, i: str) -> None:
        """The rows from the i-th on."""
        w, repeat = self.w, self.repeat
        rows = [w(f"add i64 {i}, {r}") for r in range(self.together)]
        self.kept = [w(f"mul i64 {row}, {repeat.stride}") for row in rows]
        first = repeat.rows.start
        self.begin = [w(f"mul i64 {w(f'add i64 {row}, {first}')}, {repeat.across}") for row in rows]
        self.names: list[dict[int, str]] = [{} for _ in rows]
        groups = _groups(repeat.body, w.lanes)
        waiting: dict[int, list[_Group]] = {}
        for group in groups:
            for number in group.pending:
                waiting.setdefault(number, []).append(group)
            if not group.pending:
                self._store(group)
        for number in repeat.body.live:
            self._node(number)
            for group in waiting.pop(number, ()):
                group.pending.discard(number)
                if not group.pending:
                    self._store(group)

    def _node(self, number: int) -> None:
        node, shared = self.graph.nodes[number], None
        if node[0] == "load" and len(node[1]) == 2:
            shared = self._load(str(node[1][1]))
        for kept, names in zip(self.kept, self.names, strict=True):
            if shared is not None:
                names[number] = shared
            elif node[0] == "load":
                names[number] = self._load(self.w(f"add i64 {kept}, {node[1][1]}"))
            else:
                names[number] = arithmetic(self.w, self.graph, number, names)

    def _load(self, slot: str) -> str:
        lanes = self.w.lanes
        return self.w.load(lanes.type, self.w.at("%work", slot, lanes.type), lanes.bytes)

    def _store(self, group: _Group) -> None:
        w, lanes = self.w, self.w.lanes
        for kept, begin, names in zip(self.kept, self.begin, self.names, strict=True):
            values = [
                names[value.id] if isinstance(value, Value) else w.constant(value)
                for (value,) in group.entries
            ]
            if group.name == WORK:
                place = w.at("%work", w(f"add i64 {kept}, {group.start}"), lanes.type)
                w.store(lanes.type, values[0], place, lanes.bytes)
            else:
                entry = w(f"add i64 {begin}, {group.start}")
                self.block.scatter_some(f"={group.name}", entry, values)


@dataclass
class _Group:
    """Entries of an output that are stored together; some may be stored twice.

    Attributes:
        name: The output.
        start: The first entry.
        entries: For each entry, the values that add up to it.
        pending: Values that are not there yet.
    """

    name: str
    start: int
    entries: list[list[Scalar]]
    pending: set[int]


def _groups(body: Body, lanes: Lanes) -> list[_Group]:
    rows: dict[str, dict[int, list[Scalar]]] = {}
    for store in body.stores:
        rows.setdefault(store.space, {}).setdefault(store.index, []).append(store.value)
    groups = []
    for slot, values in rows.pop(WORK, {}).items():
        pending = {v.id for v in values if isinstance(v, Value)}
        groups.append(_Group(WORK, slot, [values], pending))
    for name, entries in rows.items():
        for first, stop in runs(entries):
            for start, count in pieces(stop - first, lanes):
                chosen = [entries[first + start + k] for k in range(count)]
                pending = {v.id for values in chosen for v in values if isinstance(v, Value)}
                groups.append(_Group(name, first + start, chosen, pending))
    return groups


def runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Where numbers that follow one another begin and stop."""
    found = sorted(numbers)
    first = 0
    for i, number in enumerate(found):
        if i + 1 == len(found) or found[i + 1] != number + 1:
            yield found[first], number + 1
            first = i + 1
