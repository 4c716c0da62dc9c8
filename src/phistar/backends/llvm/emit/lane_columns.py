# SPDX-License-Identifier: BSD-3-Clause
"""Columns of a matrix side by side in the lanes of one sample, as LLVM text.

All lanes of a kernel repeat the sample if it is the only one. So what does not depend on a column
is done as ever, and walks are done for as many columns at a time as there are lanes. At a link
those columns to which it is the same are taken together; what others keep there stays as it is.
Entries go straight to the result, which is that of one sample and has few bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from phistar.backends.llvm.emit.ir_builder import Lanes, Operand
from phistar.backends.llvm.emit.relation_codes import (
    AFTER_CODE,
    AT_CODE,
    BEFORE_CODE,
    CODES_PER_CLASS,
)
from phistar.backends.llvm.emit.skeleton import SampleBlock
from phistar.scalar.graph import FORWARD, WORK
from phistar.scalar.program import Looped
from phistar.scalar.robot.link_relations import ABOVE, BELOW, RELATIONS, AncestorRelations


def _has_sums(program: Looped) -> bool:
    """Whether some entry is the sum of what two columns write."""
    assert program.column_loop is not None
    walks = (body for walk in program.column_loop.sweeps for body in walk.blocks.values())
    stores = (store for body in walks for store in body.stores)
    return any(store.add for store in stores if store.space not in (WORK, FORWARD))


def lane_tables(program: Looped, width: int) -> dict[str, Sequence[int]]:
    """What is known of each column; the last one is repeated until the lanes are full."""
    columns = program.column_loop
    assert columns is not None
    padding = -len(columns.link) % width
    links = [*columns.link, *[columns.link[-1]] * padding]
    kinship = AncestorRelations(program.links.parent)
    return {
        "lane_link": links,
        "lane_here": [AT_CODE + entry for entry in (*columns.entry, *[0] * padding)],
        "lane_enter": [kinship.enter[c] for c in links],
        "lane_leave": [kinship.leave[c] for c in links],
    }


def lane_declarations(lanes: Lanes) -> str:
    """Intrinsics that are called."""
    reals, flags, suffix = lanes.type, lanes.type_of("i1"), lanes.suffix
    pointers, many = lanes.type_of("ptr"), f"{suffix}.v{lanes.width}p0"
    return "\n".join(
        [
            "declare i64 @llvm.cttz.i64(i64, i1)",
            f"declare {reals} @llvm.masked.load.{suffix}.p0(ptr, i32, {flags}, {reals})",
            f"declare {reals} @llvm.masked.gather.{many}({pointers}, i32, {flags}, {reals})",
            f"declare void @llvm.masked.store.{suffix}.p0({reals}, ptr, i32, {flags})",
            f"declare void @llvm.masked.scatter.{many}({reals}, {pointers}, i32, {flags})",
        ]
    )


class LaneColumns:
    """Writes groups of columns.

    Where two columns add to an entry, which of them is the first does not matter: the result begins
    with zeros, and all add.

    Attributes:
        first, last: Links at which the first and the last column of the group begin.
        mask: The lanes that are worked on.
    """

    def __init__(self, block: SampleBlock, program: Looped) -> None:
        """Args:
        block: The sample, and where instructions go.
        program: The matrix.
        """
        assert program.column_loop is not None
        self.block = block
        self.w = block.w
        self.count = len(program.column_loop.link)
        self.row_width = program.column_loop.row_width
        self._adds = _has_sums(program)
        self._begins_with_zeros = self._adds or program.column_loop.zero_fill
        ((name, self.size),) = program.signature.outputs.items()
        self.output = block.rows[f"={name}"][0]
        self.first = self.last = self.mask = ""

    def fill_with_zeros(self) -> None:
        """The result begins with zeros, if it must."""
        if not self._begins_with_zeros:
            return
        w = self.w
        whole = self.size - self.size % w.lanes.width
        if whole:
            with w.loop(0, whole, w.lanes.width, stem="fill") as (i, _):
                w.store(w.lanes.type, w.constant(0.0), w.gep(self.output, i), w.lanes.bits // 8)
        for entry in range(whole, self.size):
            w.store(w.lanes.real, "0.0", w.gep(self.output, entry), w.lanes.bits // 8)

    def check_finite(self) -> None:
        """Check all of the result."""
        w, block = self.w, self.block
        whole = self.size - self.size % w.lanes.width
        if whole:
            with block.loop(whole, w.lanes.width, "entry") as i:
                value = w.load(w.lanes.type, w.gep(self.output, i), w.lanes.bits // 8)
                block.accumulate_finite_check(value)
        for entry in range(whole, self.size):
            one = w.load(w.lanes.real, w.gep(self.output, entry), w.lanes.bits // 8)
            block.accumulate_finite_check(w.splat(one))

    @contextmanager
    def groups(self) -> Iterator[None]:
        """A loop over groups of columns."""
        w, width = self.w, self.w.lanes.width
        with w.loop(0, self.count, width, stem="columns") as (column, _):
            self._column = column
            lane = self._constants(range(width))
            left = self._splat(w(f"sub i64 {self.count}, {column}"))
            self._used = self._compare("slt", lane, left)
            self._links, self._here, self._enter, self._leave = (
                self._load(name, column)
                for name in ("lane_link", "lane_here", "lane_enter", "lane_leave")
            )
            self.first = self._element(self._links, "0")
            self.last = self._element(self._links, str(width - 1))
            yield
            w.start_block()

    @contextmanager
    def cases(self, k: str, kind: str, enter: str, leave: str) -> Iterator[str]:
        """A loop over what a link is to columns of the group: the code of each, see ``mask``.

        Args:
            k: The link.
            kind: Its class.
            enter, leave: Its numbers in ``AncestorRelations``.
        """
        w, width = self.w, self.w.lanes.width
        codes = self._codes(*map(self._splat, (k, kind, enter, leave)))

        def others(left: str) -> tuple[str, str]:
            done = self._bits(self.mask)
            rest = w(f"and i64 {left}, {w(f'xor i64 {done}, -1')}")
            return rest, w.compare("ne", rest, 0)

        with w.repeat(self._bits(self._used), others, stem="lanes") as (left, _):
            lane = w(f"call i64 @llvm.cttz.i64(i64 {left}, i1 true)")
            code = self._element(codes, lane)
            same = self._compare("eq", codes, self._splat(code))
            self.mask = w(f"and <{width} x i1> {same}, {self._used}")
            yield code

    def _codes(self, k: str, kind: str, enter: str, leave: str) -> str:
        code = self._select(
            self._compare("slt", k, self._links),
            self._same(BEFORE_CODE),
            self._same(AFTER_CODE),
        )
        for relation, (a, b, end) in {
            ABOVE: (enter, self._enter, leave),
            BELOW: (self._enter, enter, self._leave),
        }.items():
            after, inside = self._compare("slt", a, b), self._compare("slt", b, end)
            inside = self.w(f"and {self.w.lanes.type_of('i1')} {after}, {inside}")
            code = self._select(inside, self._same(RELATIONS.index(relation)), code)
        code = self._select(self._compare("eq", k, self._links), self._here, code)
        kinds = self.w(f"mul {self._integers} {kind}, {self._same(CODES_PER_CLASS)}")
        return self.w(f"add {self._integers} {kinds}, {code}")

    def store_entries(self, value: str, row: str, transposed: bool) -> None:
        """Put an entry of each column of ``mask`` into a row, or into a column of the result."""
        w, lanes = self.w, self.w.lanes
        reals, suffix = lanes.type, lanes.suffix
        if transposed:
            first = w.gep(self.output, w.add(w.mul(self._column, self.row_width), row))
            steps = self._constants(self.row_width * i for i in range(lanes.width))
            many = w(f"getelementptr {lanes.real}, ptr {first}, {self._integers} {steps}")
            place, suffix = f"{lanes.type_of('ptr')} {many}", f"{suffix}.v{lanes.width}p0"
            load, store = "gather", "scatter"
        else:
            one = w.gep(self.output, w.add(w.mul(row, self.row_width), self._column))
            place, suffix = f"ptr {one}", f"{suffix}.p0"
            load, store = "load", "store"
        rest = f"i32 {lanes.bits // 8}, {lanes.type_of('i1')} {self.mask}"
        if self._adds:
            before = w(
                f"call {reals} @llvm.masked.{load}.{suffix}({place}, {rest}, "
                f"{reals} zeroinitializer)"
            )
            value = w.binary("fadd", before, value)
        w.emit(f"call void @llvm.masked.{store}.{suffix}({reals} {value}, {place}, {rest})")

    # -- vectors of integers

    @property
    def _integers(self) -> str:
        return self.w.lanes.type_of("i64")

    def _same(self, number: int) -> str:
        return self.w.lanes.repeated("i64", number)

    def _constants(self, numbers: Iterator[int] | range) -> str:
        return "<" + ", ".join(f"i64 {number}" for number in numbers) + ">"

    def _splat(self, number: Operand) -> str:
        t = self._integers
        one = self.w(f"insertelement {t} poison, i64 {number}, i32 0")
        mask = f"<{self.w.lanes.width} x i32> zeroinitializer"
        return self.w(f"shufflevector {t} {one}, {t} poison, {mask}")

    def _element(self, vector: str, lane: str) -> str:
        return self.w(f"extractelement {self._integers} {vector}, i64 {lane}")

    def _load(self, table: str, start: str) -> str:
        return self.w.load(self._integers, self.w.gep(f"@{table}", start, "i64"), 8)

    def _compare(self, predicate: str, a: str, b: str) -> str:
        return self.w(f"icmp {predicate} {self._integers} {a}, {b}")

    def _select(self, condition: str, a: str, b: str) -> str:
        t = self._integers
        return self.w(f"select {self.w.lanes.type_of('i1')} {condition}, {t} {a}, {t} {b}")

    def _bits(self, mask: str) -> str:
        width = self.w.lanes.width
        return self.w(
            f"zext i{width} {self.w(f'bitcast <{width} x i1> {mask} to i{width}')} to i64"
        )
