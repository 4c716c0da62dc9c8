# SPDX-License-Identifier: BSD-3-Clause
"""Loops over links as LLVM text.

Inputs are first transposed to vectors of lanes in the workspace, outputs are transposed back at
the end. The workspace holds, in vectors: the inputs, the outputs, the slots of each link, then the
slots for what links forward to each other. Sweeps for the columns of a matrix use the same slots
again for each column; what columns carry side by side (``ancestor_columns``) comes last. Where one
sample runs alone its columns are in the lanes (``lane_columns``), and there are no vectors for
outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from phistar.backends.llvm.emit.ancestor_columns import AncestorColumns
from phistar.backends.llvm.emit.column_tiles import ColumnTiles, is_tiled, output_vectors
from phistar.backends.llvm.emit.ir_builder import (
    FunctionBuilder,
    Lanes,
    Loop,
    Operand,
    byte_array,
    literal_list,
)
from phistar.backends.llvm.emit.lane_columns import LaneColumns, lane_declarations, lane_tables
from phistar.backends.llvm.emit.relation_codes import (
    AFTER_CODE,
    AT_CODE,
    BEFORE_CODE,
    CODES_PER_CLASS,
    case_code,
)
from phistar.backends.llvm.emit.sincos import emit_sincos_any_angle
from phistar.backends.llvm.emit.skeleton import SampleBlock, kernel_module
from phistar.backends.llvm.emit.unrolled_module import emit_node
from phistar.scalar.graph import TABLE, WORK, Place, Value
from phistar.scalar.program import (
    BasicBlock,
    ColumnLoop,
    ColumnSweep,
    LinkSweep,
    Looped,
    Store,
    first_visited_siblings,
)
from phistar.scalar.robot.link_relations import (
    ABOVE,
    BELOW,
    RELATIONS,
    AncestorRelations,
)
from phistar.sweeps.ir import Direction
from phistar.thresholds import POLICY


def looped_workspace(program: Looped, alone: bool = False) -> int:
    """Vectors that a block needs; ``alone`` as for ``looped_module``."""
    given = sum(program.signature.inputs.values()) + (0 if alone else output_vectors(program))
    beside = None if alone else AncestorColumns.of(program)
    return (
        given
        + len(program.links) * program.slots
        + _forward_places(program) * program.forward_slots
        + (0 if beside is None else beside.vectors)
    )


def _forward_places(program: Looped) -> int:
    """Places for what links forward to each other."""
    return max((max(places) + 1 for places in program.links.forward_places.values()), default=0)


def looped_module(program: Looped, lanes: Lanes, tune: str = "", alone: bool = False) -> str:
    """The module of a looped program.

    Args:
        program: The program.
        lanes: Samples side by side.
        tune: As for ``kernel_module``.
        alone: Whether it is for one sample, of which columns are in the lanes.
    """

    def body(block: SampleBlock) -> None:
        _LoopEmitter(block, program, alone).write()

    workspace_vectors = looped_workspace(program, alone)
    tables = _link_tables(program, lanes, alone)
    return kernel_module(program.signature, lanes, body, workspace_vectors, tables, tune)


def _link_tables(program: Looped, lanes: Lanes, alone: bool) -> str:
    links = program.links
    starts: list[int] = []
    table: list[float] = []
    for row in links.table:
        starts.append(len(table))
        table += row
    table = table or [0.0]
    many = len(links) >= POLICY.min_links_packed

    def integers(name: str, values: Sequence[int]) -> str:
        if many:
            return f"@{name} = private constant {byte_array(np.array(values, dtype=np.int64))}"
        listed = "i64 " * bool(values) + ", i64 ".join(map(str, map(int, values)))
        return f"@{name} = private constant [{len(values)} x i64] [{listed}]"

    named: dict[str, Sequence[int]] = {
        "class": links.class_of,
        "parent": links.parent,
        "q_start": links.q,
        "v_start": links.v,
        "row": starts,
        **{
            f"begins_{direction.value}": first_visited_siblings(links.parent, direction)
            for direction in Direction
        },
        **{f"hand_{direction.value}": places for direction, places in links.forward_places.items()},
    }
    if program.signature.quaternions:
        named["quaternion"] = program.signature.quaternions
    if program.column_loop is not None:
        kinship = AncestorRelations(links.parent)
        named |= {
            "enter": kinship.enter,
            "leave": kinship.leave,
            "column_link": program.column_loop.link,
            "column_entry": program.column_loop.entry,
        }
        if alone:
            named |= lane_tables(program, lanes.width)
        elif (beside := AncestorColumns.of(program)) is not None:
            named |= {
                "own_columns": beside.first,
                "columns_below": beside.below,
                "columns_end": beside.end,
            }
    if many:
        reals = byte_array(
            np.array(table, dtype=np.float32 if lanes.real == "float" else np.float64)
        )
    else:
        reals = f"[{len(table)} x {lanes.real}] [{literal_list(table, lanes.real)}]"
    zeros = max(program.slots, program.forward_slots)
    return "\n".join(
        [
            *(integers(name, values) for name, values in named.items()),
            f"@zeros = private constant [{zeros} x {lanes.type}] zeroinitializer",
            f"@table = private constant {reals}",
            *([lane_declarations(lanes)] if alone else ()),
        ]
    )


class _LoopEmitter:
    def __init__(self, block: SampleBlock, program: Looped, alone: bool) -> None:
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
        self.tiles: ColumnTiles | None = None
        self.lane_columns = LaneColumns(block, program) if alone else None
        if alone:
            self.links_base = sum(signature.inputs.values())
        elif is_tiled(program):
            (base,) = [self.bases[f"={name}"] for name in signature.outputs]
            self.links_base = base + output_vectors(program)
            self.tiles = ColumnTiles(block, program, base)
        self.forward_base = self.links_base + len(program.links) * program.slots
        self.carried_base = self.forward_base + _forward_places(program) * program.forward_slots
        self.beside = None if alone else AncestorColumns.of(program)

    def write(self) -> None:
        for name, size in self.signature.inputs.items():
            self._transpose_in(name, size)
        if self.signature.quaternions:
            self._normalize_quaternions()
        if self.tiles is not None:
            self.tiles.zero_sums()
        for name, start in self.program.ground_start.items():
            for i, value in enumerate(start):
                self.w.store_slot(self.bases[f"={name}"] + i, self.w.constant(value))
        for loop in self.program.sweeps:
            if loop.blocks:
                self._link_sweep(loop)
        if self.program.column_loop is not None:
            self._column_loop(self.program.column_loop)
        if self.lane_columns is not None:
            self.lane_columns.check_finite()
        elif self.tiles is not None:
            self.tiles.check_sums()
        else:
            for name, size in self.signature.outputs.items():
                self._transpose_out(name, size)

    # -- rows of samples <-> vectors of lanes

    def _tile_loop(
        self, size: int, whole: Callable[[str], None], single: Callable[[int], None]
    ) -> None:
        """Tiles in a loop, what is left over one by one."""
        width = self.w.lanes.width
        in_tiles = size - size % width if width > 1 else 0
        if in_tiles:
            with self.block.loop(in_tiles, width, "tile") as index:
                whole(index)
        for entry in range(in_tiles, size):
            single(entry)

    def _transpose_in(self, name: str, size: int) -> None:
        w, base = self.w, self.bases[name]

        def whole(index: str) -> None:
            there = w.add(index, base)
            for i, value in enumerate(self.block.gather_tile(name, index)):
                w.store_slot(w.add(there, i), value)

        self._tile_loop(
            size, whole, lambda entry: w.store_slot(base + entry, self.block.gather(name, entry))
        )

    def _normalize_quaternions(self) -> None:
        """Quaternions in the workspace become unit, one after the other."""
        w = self.w
        with self.block.loop(len(self.signature.quaternions), 1, "quaternion") as i:
            start = w.add(self._table_entry("quaternion", i), self.bases["q"])
            places = [w.slot_address(w.add(start, k)) for k in range(4)]
            values = self.block.normalize_quaternion([w.load_vector(x) for x in places])
            for there, value in zip(places, values, strict=True):
                w.store_vector(value, there)

    def _transpose_out(self, name: str, size: int) -> None:
        w, base = self.w, self.bases[f"={name}"]

        def whole(index: str) -> None:
            there = w.add(index, base)
            values = [w.load_slot(w.add(there, i)) for i in range(w.lanes.width)]
            for value in values:
                self.block.accumulate_finite_check(value)
            self.block.scatter_entries(f"={name}", index, values)

        def single(entry: int) -> None:
            value = w.load_slot(base + entry)
            self.block.accumulate_finite_check(value)
            self.block.scatter(f"={name}", entry, value)

        self._tile_loop(size, whole, single)

    # -- loops

    def _link_sweep(self, loop: LinkSweep) -> None:
        with self._count_links(0, len(self.program.links) - 1, loop.direction) as (k, _):
            for body in self.w.switch(self._table_entry("class", k), loop.blocks):
                _LinkBlock(self, body, loop.direction, k).write()

    def _count_links(self, low: Operand, high: Operand, direction: Direction) -> Loop:
        """A loop over links from low to high, or from high to low."""
        outward = direction is Direction.OUTWARD
        first, last, step = (low, high, 1) if outward else (high, low, -1)
        return self.w.count(first, last, step, "link")

    def _table_entry(self, table: str, index: str) -> str:
        return self.w.load("i64", self.w.gep(f"@{table}", index, "i64"), 8)

    # -- columns of a matrix

    def _column_loop(self, columns: ColumnLoop) -> None:
        if self.lane_columns is not None:
            self._columns_in_lanes(columns, self.lane_columns)
            return
        (size,) = self.signature.outputs.values()
        if columns.zero_fill:
            self._zero_output(size)
        if self.beside is not None:
            self._columns_beside(self.beside)
            return
        with self.w.count(0, len(columns.link) - 1, stem="column") as (column, _):
            c = self._table_entry("column_link", column)
            entry = self._table_entry("column_entry", column)
            place = column if self.tiles is None else self.tiles.column_in_tile(column)
            for walk in columns.sweeps:
                if walk.blocks:
                    self._column_sweep(walk, place, c, entry)
            if self.tiles is None:
                self.w.start_block()
            else:
                self.tiles.store_if_full(column)
        if self.tiles is not None:
            self.tiles.store_remainder()

    def _columns_in_lanes(self, columns: ColumnLoop, lanes: LaneColumns) -> None:
        """Columns of one sample, as many at a time as there are lanes."""
        lanes.fill_with_zeros()
        with lanes.groups():
            for walk in columns.sweeps:
                if walk.blocks:
                    self._lane_sweep(walk, lanes)

    def _lane_sweep(self, walk: ColumnSweep, lanes: LaneColumns) -> None:
        cases = {case_code(variant): body for variant, body in walk.blocks.items()}
        before, after = walk.visits_before_after
        low = 0 if before else lanes.first
        high = len(self.program.links) - 1 if after else lanes.last
        with self._count_links(low, high, walk.direction) as (k, _):
            about_link = (self._table_entry(name, k) for name in ("class", "enter", "leave"))
            with lanes.cases(k, *about_link) as code:
                for body in self.w.switch(code, cases):
                    _LaneBlock(self, body, walk.direction, k, "lanes").write()

    def _columns_beside(self, columns: AncestorColumns) -> None:
        """Columns side by side: at each link those that begin there, then those from below."""
        w, by_class = self.w, columns.by_class
        with self._count_links(0, len(self.program.links) - 1, Direction.INWARD) as (k, _):
            for own, below in w.switch(self._table_entry("class", k), by_class):
                first = self._table_entry("own_columns", k) if own else ""
                for entry, body in own.items():
                    column = w.add(first, entry)
                    _PassingColumn(self, body, Direction.INWARD, k, column).write()
                if below is None:
                    continue
                start = self._table_entry("columns_below", k)
                stop = self._table_entry("columns_end", k)
                passing = _PassingColumn(self, below, Direction.INWARD, k)
                passing.load_shared()
                with w.loop(start, stop, maybe_empty=True, stem="column") as (column, _):
                    passing.column = column
                    passing.write()

    def _zero_output(self, size: int) -> None:
        w, (base,) = self.w, [self.bases[f"={name}"] for name in self.signature.outputs]
        with w.count(0, size - 1, stem="fill") as (index, _):
            w.store_slot(w.add(index, base), w.constant(0.0))
            w.start_block()

    def _column_sweep(self, walk: ColumnSweep, column: str, c: str, entry: str) -> None:
        w = self.w
        cases = {case_code(variant): body for variant, body in walk.blocks.items()}
        here = w.add(entry, AT_CODE)

        if walk.is_ancestor_path:
            links: Loop = w.repeat(c, self._parent, stem="ancestor")
        else:
            before, after = walk.visits_before_after
            low, high = 0 if before else c, len(self.program.links) - 1 if after else c
            links = self._count_links(low, high, walk.direction)
        with links as (k, _):
            code = self._relation_code(k, c, walk)
            code = w.select(w.compare("eq", k, c), here, code)
            kind = w.mul(self._table_entry("class", k), CODES_PER_CLASS)
            for body in w.switch(w.add(kind, code), cases):
                _LinkBlock(self, body, walk.direction, k, column).write()

    def _parent(self, k: str) -> tuple[str, str]:
        """The parent of a link, and whether it has one."""
        parent = self._table_entry("parent", k)
        return parent, self.w.compare("sge", parent, 0)

    def _relation_code(self, k: str, c: str, walk: ColumnSweep) -> str:
        """The number of what link k is to another link c."""
        w = self.w
        if walk.is_ancestor_path:
            return str(RELATIONS.index(ABOVE))
        enter_k, enter_c = self._table_entry("enter", k), self._table_entry("enter", c)
        leave_k, leave_c = self._table_entry("leave", k), self._table_entry("leave", c)
        code = w.select(w.compare("slt", k, c), BEFORE_CODE, AFTER_CODE)
        for relation, (a, b, end) in {
            ABOVE: (enter_k, enter_c, leave_k),
            BELOW: (enter_c, enter_k, leave_c),
        }.items():
            inside = w.compare("slt", b, end)
            inside = w(f"and i1 {inside}, {w.compare('slt', a, b)}")
            code = w.select(inside, RELATIONS.index(relation), code)
        return code


_FIRST_CHILD_PREFIX = "begun "


@dataclass
class _LinkBlock:
    """Writes what is done at a link, and for a column of a matrix."""

    loops: _LoopEmitter
    body: BasicBlock
    direction: Direction
    k: str
    column: str = ""
    addresses: dict[str, str] = field(default_factory=dict)
    known: dict[int, str] = field(default_factory=dict)

    @property
    def w(self) -> FunctionBuilder:
        return self.loops.w

    def _base(self, space: str, base: str) -> str:
        """Address of the first entry of this link in a space."""
        key = f"{space}.{base}"
        if key not in self.addresses:
            self.addresses[key] = self._resolve_base(space, base)
        return self.addresses[key]

    def _resolve_base(self, space: str, base: str) -> str:
        w, loops = self.w, self.loops
        if space == "table":
            return w.gep("@table", loops._table_entry("row", self.k))
        if space.startswith(_FIRST_CHILD_PREFIX):
            # What a sum over children begins with: zeros, or what is there.
            flag = loops._table_entry(f"begins_{self.direction.value}", self.k)
            first = w.compare("ne", flag, 0)
            there = self._base(space.removeprefix(_FIRST_CHILD_PREFIX), base)
            return w.select(first, "@zeros", there, "ptr")
        if space in ("work", "forward"):
            index, size, start = self.k, loops.program.slots, loops.links_base
            if base == "parent":
                index = loops._table_entry("parent", self.k)
            if space == "forward":
                index, size = (
                    loops._table_entry(f"hand_{self.direction.value}", index),
                    loops.program.forward_slots,
                )
                start = loops.forward_base
            return w.slot_address(w.add(w.mul(index, size), start))
        return w.slot_address(w.add(self._start(base), loops.bases[space]))

    def _start(self, base: str) -> str:
        """Where the part of this link begins."""
        w, links = self.w, self.loops.program.links
        if base == "ground":
            return "0"
        if base == "plane":
            return w.mul(self.k, 4)
        if base in ("body", "frame"):
            own = w.mul(self.k, 6)
            return own if base == "body" else w(f"sub i64 {own}, {6 * (len(links) - links.frames)}")
        return self.loops._table_entry(f"{base}_start", self.k)

    def _matrix_base(self, store: Store) -> str:
        """Address of the first entry of this link in a column of a matrix."""
        w, loops = self.w, self.loops
        key = f"{store.base}.{store.transposed}"
        if key not in self.addresses:
            row, column = self._start(store.base), self.column
            row, column = (column, row) if store.transposed else (row, column)
            entry = w.add(w.mul(row, self._row_width), column)
            self.addresses[key] = w.slot_address(w.add(entry, loops.bases[f"={store.space}"]))
        return self.addresses[key]

    @property
    def _row_width(self) -> int:
        """From an entry of a matrix to the one below it."""
        columns = self.loops.program.column_loop
        assert columns is not None
        return columns.row_width if self.loops.tiles is None else POLICY.tile_columns

    def _is_in_matrix(self, store: Store) -> bool:
        return bool(self.column) and store.space not in ("work", "forward")

    def _address(self, space: str, index: int, base: str) -> str:
        return self.w.gep(self._base(space, base), index, self.w.lanes.type)

    def _resolve_bases(self, live: Sequence[int]) -> None:
        """Addresses before all else: LLVM without optimisation is quick only after the last one."""
        for _, place in self.body.graph.loads(live):
            self._base(place.space, place.base)
        for store in self.body.stores:
            if self._is_in_matrix(store):
                self._matrix_base(store)
                continue
            for space in _stored_spaces(store):
                self._base(space, store.base)

    def write(self) -> None:
        w, graph = self.w, self.body.graph
        names, live = dict(self.known), self.body.live_nodes
        pairs: dict[int, tuple[str, str]] = {}
        self._resolve_bases(live)
        for number in live:
            node = graph.nodes[number]
            if number in names:
                continue
            if node[0] == "load":
                names[number] = self._load(node[1])
            elif node[0] in ("sin", "cos"):
                if node[1] not in pairs:
                    (pairs[node[1]],) = emit_sincos_any_angle(w, [names[node[1]]])
                names[number] = pairs[node[1]][0 if node[0] == "sin" else 1]
            else:
                names[number] = emit_node(w, graph, number, names)
        for store in self.body.stores:
            self._store(store, names)

    def _load(self, place: Place) -> str:
        w = self.w
        if place.space == TABLE:
            pointer = w.gep(self._base(TABLE, "link"), place.entry)
            return w.splat(w.load(w.lanes.real, pointer, w.lanes.bits // 8))
        return w.load_vector(self._address(place.space, place.entry, place.base))

    def _store(self, store: Store, names: dict[int, str]) -> None:
        w, value = self.w, store.value
        known = names[value.id] if isinstance(value, Value) else w.constant(value)
        if self._is_in_matrix(store):
            step = 1 if store.transposed else self._row_width
            before = pointer = w.gep(self._matrix_base(store), store.index * step, w.lanes.type)
        else:
            pointer, *started = (
                self._address(space, store.index, store.base) for space in _stored_spaces(store)
            )
            before = started[0] if started else pointer
        if store.add:
            known = w.binary("fadd", w.load_vector(before), known)
        self._put(known, pointer)

    def _put(self, value: str, pointer: str) -> None:
        """Store a number."""
        self.w.store_vector(value, pointer)


class _LaneBlock(_LinkBlock):
    """What is done at a link for some of the columns that are in the lanes."""

    def _store(self, store: Store, names: dict[int, str]) -> None:
        lanes, w, value = self.loops.lane_columns, self.w, store.value
        if not self._is_in_matrix(store):
            super()._store(store, names)
            return
        assert lanes is not None
        known = names[value.id] if isinstance(value, Value) else w.constant(value)
        lanes.store_entries(known, w.add(self._start(store.base), store.index), store.transposed)

    def _matrix_base(self, store: Store) -> str:
        return ""  # known when it is stored

    def _put(self, value: str, pointer: str) -> None:
        lanes = self.loops.lane_columns
        assert lanes is not None
        before = self.w.load_vector(pointer)
        self.w.store_vector(self.w.select_lanes(lanes.mask, value, before), pointer)


class _PassingColumn(_LinkBlock):
    """What is done at a link for one of the columns that pass it side by side."""

    def load_shared(self) -> None:
        """Read what is the same for all columns, before the loop over them."""
        for number, place in self.body.loads:
            if not self._is_carried(place.space, place.entry):
                self.known[number] = self._load(place)

    def _is_carried(self, space: str, slot: int) -> bool:
        assert self.loops.beside is not None
        return space == WORK and slot in self.loops.beside.carried

    def _address(self, space: str, index: int, base: str) -> str:
        if not self._is_carried(space, index):
            return super()._address(space, index, base)
        w, loops = self.w, self.loops
        assert loops.beside is not None
        carried = loops.beside.carried
        if "carried" not in self.addresses:
            start = w.add(w.mul(self.column, len(carried)), loops.carried_base)
            self.addresses["carried"] = w.slot_address(start)
        return w.gep(self.addresses["carried"], carried[index], w.lanes.type)

    def _resolve_bases(self, live: Sequence[int]) -> None:
        """Addresses are known, or depend on the column."""


def _stored_spaces(store: Store) -> Iterator[str]:
    """The space that a store writes; and what a sum over children begins with, if it may begin."""
    kept = store.space in ("work", "forward")
    yield store.space if kept else f"={store.space}"
    if store.add and store.first_child_stores:
        yield f"{_FIRST_CHILD_PREFIX}{store.space}"
