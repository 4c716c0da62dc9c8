# SPDX-License-Identifier: BSD-3-Clause
"""An unrolled program of scalar operations as LLVM text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from phistar.backends.llvm.emit.ir_builder import (
    FAST_MATH_FLAGS,
    UNFUSED_FLAGS,
    FunctionBuilder,
    Lanes,
)
from phistar.backends.llvm.emit.logarithm import emit_log
from phistar.backends.llvm.emit.sincos import emit_sincos_any_angle
from phistar.backends.llvm.emit.skeleton import SampleBlock, kernel_module, row_tiles
from phistar.scalar.graph import Graph, Scalar, Value, operands
from phistar.scalar.program import BasicBlock, RowLoop, Unrolled, consecutive_runs
from phistar.thresholds import POLICY

WORK_SPACE = "work"
FLOAT32_EPS_PER_FLOAT64_EPS = 2.0**29
"""Rounding of single precision in those of double precision."""
_LLVM_OPS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


def needs_outlining(program: Unrolled) -> bool:
    """Whether a program is to be outlined; one that has products after it always is.

    One that keeps zeros is, too: epilogues know which lines to leave.

    Iterations, and rows that may be skipped, stay in one function with what leads to them.
    """
    if program.short_lived or any(x.in_order or x.condition >= 0 for x in program.row_loops):
        return False
    results = sum(program.signature.outputs.values())
    many = (
        results > POLICY.max_results_one_function
        and results + len(program.block.live_nodes) > POLICY.max_nodes_one_function
    )
    return many or program.keeps_zeros or bool(program.products)


def needs_pieces(program: Unrolled) -> bool:
    """Whether a line has more results than one function should write (``pieces``)."""
    return program.short_lived and len(program.block.stores) > POLICY.stores_per_piece


def fused_products(graph: Graph, live: Sequence[int], stored: Iterable[int]) -> dict[int, int]:
    """For sums and differences that take a product in, that product: nothing else needs it.

    LLVM would choose by the same rule, but not always the same of two products for vectors and for
    single numbers; results must not depend on the number of lanes.

    Args:
        graph: The nodes.
        live: Those that are done in one function.
        stored: Those that something outside needs, once for each time.
    """
    uses = Counter(stored)
    for number in live:
        uses.update(operands(graph.nodes[number]))
    products = {n for n in live if graph.nodes[n][0] == "mul" and uses[n] == 1}
    found: dict[int, int] = {}
    for number in live:
        op, *given = graph.nodes[number]
        if op in ("add", "sub"):
            chosen = next((n for n in given if n in products), None)
            if chosen is not None:
                found[number] = chosen
    return found


def emit_fused(
    w: FunctionBuilder, graph: Graph, number: int, product: int, names: dict[int, str]
) -> str:
    """A sum or difference with one of its products, whose operands have names."""
    op, first, second = graph.nodes[number]
    a, b = (names[n] for n in graph.nodes[product][1:])
    if op == "add":
        return w.multiply_add(a, b, names[second if product == first else first])
    if product == first:
        return w.multiply_add(a, b, w.negate(names[second]))
    return w.multiply_add(w.negate(a), b, names[first])


def emit_node(
    w: FunctionBuilder,
    graph: Graph,
    number: int,
    names: dict[int, str],
    flags: str = FAST_MATH_FLAGS,
) -> str:
    """The instruction of a node whose operands have names."""
    node = graph.nodes[number]
    op = node[0]
    if op == "const":
        return w.constant(node[1])
    if op == "neg":
        return w.negate(names[node[1]])
    if op == "sqrt":
        return w.intrinsic("sqrt", names[node[1]])
    if op == "guard":
        return emit_guard(w, names[node[1]], names[node[2]])
    if op == "select":
        return emit_select(w, *(names[n] for n in node[1:]))
    if op == "log":
        return emit_log(w, names[node[1]])
    return w.binary(_LLVM_OPS[op], names[node[1]], names[node[2]], flags)


def emit_select(w: FunctionBuilder, a: str, b: str, x: str, y: str) -> str:
    """x in the lanes in which a > b, else y."""
    lanes = w.lanes
    more = w(f"fcmp ogt {lanes.type} {a}, {b}")
    return w.select_lanes(more, x, y)


def emit_guard(w: FunctionBuilder, x: str, least: str) -> str:
    """x where it exceeds a limit, which is coarser in single precision; else not a number."""
    if w.lanes.real == "float":
        least = w.binary("fmul", least, w.constant(FLOAT32_EPS_PER_FLOAT64_EPS))
    return emit_select(w, x, least, x, w.constant(math.nan))


def unrolled_module(program: Unrolled, lanes: Lanes) -> str:
    """The module of an unrolled program, perhaps with loops over rows after it.

    Raises:
        ValueError: The program has products of matrices; ``OutlinedModule`` writes those.
    """
    if program.products:
        names = ", ".join(product.output for product in program.products)
        raise ValueError(f"{names}: products of matrices, which only an outlined program can have")

    def body(block: SampleBlock) -> None:
        UnrolledEmitter(block, program).write()
        for repeat in program.row_loops:
            RowLoopEmitter(block, repeat).write()

    return kernel_module(program.signature, lanes, body, program.slots)


class NodeEmitter:
    """Writes the nodes of a program.

    Attributes:
        block: Where the text goes.
        names: What the nodes that are done are called.
        fused: See ``fused_products``; the products are not done by themselves.
    """

    def __init__(self, block: SampleBlock, program: Unrolled) -> None:
        self.fused: dict[int, int] = {}
        self.block = block
        self.w = block.w
        self.graph = program.block.graph
        self.signature = program.signature
        self.names: dict[int, str] = {}
        self.inputs: dict[tuple[str, int], str] = {}

    def load_inputs(self, only: Collection[str] | None = None) -> None:
        """Read inputs, so that all are checked but common ones; quaternions are normalized.

        Args:
            only: Names of those that are read now; the others are read where they are used.
        """
        for name, size in self.signature.inputs.items():
            for entry in range(size) if only is None or name in only else ():
                self._load(name, entry)
        for name in self.signature.configurations:
            for start in self.signature.quaternions:
                entries = [(name, start + i) for i in range(4)]
                values = self.block.normalize_quaternion([self.inputs[entry] for entry in entries])
                self.inputs.update(zip(entries, values, strict=True))

    def emit_node_of(self, number: int) -> None:
        """A node whose operands are done."""
        node = self.graph.nodes[number]
        if node[0] == "load":
            self.names[number] = self._load(node[1].space, node[1].entry)
        elif number in self.fused:
            product = self.fused[number]
            self.names[number] = emit_fused(self.w, self.graph, number, product, self.names)
        else:
            self.names[number] = emit_node(self.w, self.graph, number, self.names, UNFUSED_FLAGS)

    def emit_angles(self, live: Sequence[int]) -> None:
        """All sines and cosines first, with one test for far angles; those of others in rounds."""
        nodes, graph = self.graph.nodes, self.graph
        turning = [n for n in live if nodes[n][0] in ("sin", "cos")]
        needed = {n: graph.live_nodes([Value(graph, nodes[n][1])]) for n in turning}
        while turning:
            self._emit_round_of_angles(
                [n for n in turning if all(k in self.names or k not in needed for k in needed[n])]
            )
            turning = [n for n in turning if n not in self.names]

    def _emit_round_of_angles(self, turning: Sequence[int]) -> None:
        """Sines and cosines whose angles need no others that are not there yet."""
        nodes, graph = self.graph.nodes, self.graph
        angles = list(dict.fromkeys(nodes[n][1] for n in turning))
        for number in graph.live_nodes([Value(graph, a) for a in angles]):
            if number not in self.names:
                self.emit_node_of(number)
        pairs = emit_sincos_any_angle(self.w, [self.names[a] for a in angles])
        known = dict(zip(angles, pairs, strict=True))
        for n in turning:
            op, angle = nodes[n]
            self.names[n] = known[angle][0 if op == "sin" else 1]

    def _load(self, name: str, entry: int) -> str:
        key = (name, entry)
        if name in self.signature.common:
            self.inputs.setdefault(key, self.block.common_entry(name, entry))
        elif key not in self.inputs:
            size = self.signature.inputs[name]
            start, count = next(p for p in row_tiles(size, self.w.lanes) if p[0] + p[1] > entry)
            for i, value in enumerate(self.block.gather_entries(name, start, count)):
                self.inputs.setdefault((name, start + i), value)
        return self.inputs[key]


class UnrolledEmitter(NodeEmitter):
    """A program in one function."""

    def __init__(self, block: SampleBlock, program: Unrolled) -> None:
        super().__init__(block, program)
        self.body = program.block
        self.short_lived = program.short_lived
        self.groups = _PendingStores(program.block, self.w.lanes)

    def write(self) -> None:
        """All of it; results are stored as soon as they are there."""
        live = self.body.live_nodes
        self.fused = fused_products(self.graph, live, (x.id for x in self.body.roots))
        done_later = set(self.fused.values())
        self.load_inputs(self.signature.configurations if self.short_lived else None)
        self.emit_angles(live)
        for group in self.groups.constant:
            self._store(group)
        for number in list(self.names):
            self._store_completed(number)
        for number in live:
            if number not in self.names and number not in done_later:
                self.emit_node_of(number)
                self._store_completed(number)

    def _store_completed(self, number: int) -> None:
        """Store the groups that waited for a value alone."""
        for group in self.groups.completed_by(number):
            self._store(group)

    def _store(self, group: _StoreGroup) -> None:
        values = [self._sum(entry) for entry in group.entries]
        if group.name == WORK_SPACE:
            self.w.store_slot(group.start, values[0])
            return
        for i, value in enumerate(values):
            if self._is_checked(group.name, group.start + i):
                self.block.accumulate_finite_check(value)
        self.block.scatter_entries(f"={group.name}", group.start, values)

    def _is_checked(self, name: str, entry: int) -> bool:
        """Whether an entry of an output is checked: all of small ones, diagonals of matrices.

        An inertia and its inverse are no larger off the diagonal than on it, and what is divided
        by D, or multiplied by squares of v, shows on the diagonal, too. All of a matrix would
        have to be held for the sum, in registers that are not there.
        """
        size = self.signature.outputs[name]
        side = math.isqrt(size)
        step = side + 1 if side * side == size else size // POLICY.checked_entries
        return size < POLICY.min_entries_sparsely_checked or entry % step == 0

    def _sum(self, values: Sequence[Scalar]) -> str:
        names = [
            self.names[value.id] if isinstance(value, Value) else self.w.constant(value)
            for value in values
        ]
        total = names[0]
        for name in names[1:]:
            total = self.w.binary("fadd", total, name)
        return total


class RowLoopEmitter:
    """Code for each of some rows: a loop over pairs of them, the last of an odd number overlapping.

    Two rows at a time, because they share what they read; rounds of an iteration one by one.
    """

    def __init__(
        self, block: SampleBlock, repeat: RowLoop, first_slots: Mapping[str, int] | None = None
    ) -> None:
        """Args:
        block: Where the text goes.
        repeat: The rows.
        first_slots: Slots of the first entries of outputs that stay in the workspace.
        """
        self.first_slots = first_slots or {}
        self.block = block
        self.w = block.w
        self.repeat = repeat
        self.graph = repeat.block.graph
        self.rows_per_round = 1 if repeat.in_order else min(2, len(repeat.rows))

    def write(self) -> None:
        """The loop, perhaps for some lanes only."""
        if self.repeat.condition < 0:
            self._loop()
            return
        w, finite = self.w, self.block.finite_sum
        idle = w.compare_lanes("ole", w.load_slot(self.repeat.condition), w.constant(0.0))
        with w.if_(w.all_lanes(idle), negated=True, stem="seldom"):
            self._loop()
            w.start_block()
        # Slots are not checked, so that the sum is what it was.
        self.block.finite_sum = finite

    def _loop(self) -> None:
        w, count = self.w, len(self.repeat.rows)
        last = count - self.rows_per_round
        with self.block.loop(count, self.rows_per_round, "rows") as i:
            self._rows(w.select(w.compare("slt", i, last), i, last))

    def _rows(self, i: str) -> None:
        """The rows from the i-th on."""
        w, repeat = self.w, self.repeat
        rows = [w.add(i, r) for r in range(self.rows_per_round)]
        self.row_slots = [w.mul(row, repeat.stride) for row in rows]
        first = repeat.rows.start
        self.row_starts = [w.mul(w.add(row, first), repeat.row_width) for row in rows]
        self.names: list[dict[int, str]] = [{} for _ in rows]
        self.angles: dict[str, tuple[str, str]] = {}
        groups = _PendingStores(repeat.block, w.lanes)
        for group in groups.constant:
            self._store(group)
        live = repeat.block.live_nodes
        self.fused = fused_products(self.graph, live, (x.id for x in repeat.block.roots))
        for number in live:
            self._node(number)
            for group in groups.completed_by(number):
                self._store(group)

    def _node(self, number: int) -> None:
        node, shared = self.graph.nodes[number], None
        if node[0] == "load" and not node[1].base:
            shared = self.w.load_slot(node[1].entry)
        for kept, names in zip(self.row_slots, self.names, strict=True):
            if shared is not None:
                names[number] = shared
            elif node[0] == "load":
                names[number] = self.w.load_slot(self.w.add(kept, node[1].entry))
            elif number in self.fused:
                product = self.fused[number]
                names[number] = emit_fused(self.w, self.graph, number, product, names)
            elif node[0] in ("sin", "cos"):
                names[number] = self._angle(names[node[1]])[0 if node[0] == "sin" else 1]
            else:
                names[number] = emit_node(self.w, self.graph, number, names, UNFUSED_FLAGS)

    def _angle(self, name: str) -> tuple[str, str]:
        """Sine and cosine."""
        if name not in self.angles:
            (self.angles[name],) = emit_sincos_any_angle(self.w, [name])
        return self.angles[name]

    def _store(self, group: _StoreGroup) -> None:
        w = self.w
        for kept, begin, names in zip(self.row_slots, self.row_starts, self.names, strict=True):
            values = [
                names[value.id] if isinstance(value, Value) else w.constant(value)
                for (value,) in group.entries
            ]
            if group.name == WORK_SPACE:
                w.store_slot(w.add(kept, group.start), values[0])
            elif group.name in self.first_slots:
                first = self.first_slots[group.name] + group.start
                for i, value in enumerate(values):
                    w.store_slot(w.add(begin, first + i), value)
            else:
                for value in values:
                    self.block.accumulate_finite_check(value)
                self.block.scatter_entries(f"={group.name}", w.add(begin, group.start), values)


@dataclass
class _StoreGroup:
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


class _PendingStores:
    """Groups that wait for values.

    Attributes:
        constant: Groups that wait for none.
    """

    def __init__(self, body: BasicBlock, lanes: Lanes) -> None:
        groups = _store_groups(body, lanes)
        self.constant = [group for group in groups if not group.pending]
        self._waiting: dict[int, list[_StoreGroup]] = {}
        for group in groups:
            for number in group.pending:
                self._waiting.setdefault(number, []).append(group)

    def completed_by(self, number: int) -> Sequence[_StoreGroup]:
        """Groups that waited for a value alone."""
        waiting = self._waiting.pop(number, ())
        for group in waiting:
            group.pending.discard(number)
        return [group for group in waiting if not group.pending] if waiting else ()


def _store_groups(body: BasicBlock, lanes: Lanes) -> list[_StoreGroup]:
    rows: dict[str, dict[int, list[Scalar]]] = {}
    for store in body.stores:
        rows.setdefault(store.space, {}).setdefault(store.index, []).append(store.value)
    groups = []
    for slot, values in rows.pop(WORK_SPACE, {}).items():
        pending = {v.id for v in values if isinstance(v, Value)}
        groups.append(_StoreGroup(WORK_SPACE, slot, [values], pending))
    for name, entries in rows.items():
        for first, stop in consecutive_runs(entries):
            for start, count in row_tiles(stop - first, lanes):
                chosen = [entries[first + start + k] for k in range(count)]
                pending = {v.id for values in chosen for v in values if isinstance(v, Value)}
                groups.append(_StoreGroup(name, first + start, chosen, pending))
    return groups
