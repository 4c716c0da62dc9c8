# SPDX-License-Identifier: BSD-3-Clause
"""Columns of a large matrix in blocks that stay in the caches, turned out when a block is full.

Walks give a matrix column by column, and results have it row by row. A whole matrix of all lanes is
larger than the caches from some hundred rows on; every entry would be fetched twice and go back
twice. So where each column writes its own entries and no others, just a few columns are kept, as
many as lie in a line of the caches.
"""

from __future__ import annotations

from collections.abc import Callable

from phistar.backends.llvm.frame import Block
from phistar.scalar.program import Rolled

WIDTH = 8
"""Columns of a block, a power of two."""
LEAST = 64
"""Rows from which on it is done."""

Vector = Callable[[str | int], str]
"""The address of a vector of the workspace."""
Count = Callable[[str, str, str, bool, Callable[[str, str], None]], None]
"""Writes a loop over numbers."""


def blocked(program: Rolled) -> bool:
    """Whether the columns of a matrix are kept in blocks."""
    columns = program.columns
    if columns is None or columns.fill or rows_of(program) < LEAST:
        return False
    walks = (body for walk in columns.walks for body in walk.bodies.values())
    entries = [store for body in walks for store in body.stores if store.space != "work"]
    return not any(store.turned or store.add for store in entries)


def rows_of(program: Rolled) -> int:
    """Rows of the matrix."""
    assert program.columns is not None
    (size,) = program.signature.outputs.values()
    return size // program.columns.across


def kept(program: Rolled) -> int:
    """Vectors of the workspace for outputs."""
    if blocked(program):
        return rows_of(program) * WIDTH
    return sum(program.signature.outputs.values())


class Turner:
    """Writes how blocks of columns become rows of the result.

    Args:
        block: Samples, and where instructions go.
        program: The matrix.
        base: Where the block of columns begins in the workspace.
        vector, count: How the workspace is addressed and loops are written.
    """

    def __init__(
        self, block: Block, program: Rolled, base: int, vector: Vector, count: Count
    ) -> None:
        assert program.columns is not None
        self.block = block
        self.w = block.w
        self.base = base
        self.vector = vector
        self.count = count
        self.across = program.columns.across
        self.rows = rows_of(program)
        (self.name,) = program.signature.outputs

    def within(self, column: str) -> str:
        """The place of a column in its block."""
        return self.w(f"and i64 {column}, {WIDTH - 1}")

    def when_full(self, column: str, tail: str) -> None:
        """Turn out the block that ends with a column, if one does; ends in a jump to a label."""
        w = self.w
        full, place = w.label("full"), self.within(column)
        ends = w(f"icmp eq i64 {place}, {WIDTH - 1}")
        w.do(f"br i1 {ends}, label %{full}, label %{tail}")
        w.block(full)
        self.block.move(full)
        self._turn(w(f"sub i64 {column}, {WIDTH - 1}"), WIDTH)
        w.do(f"br label %{tail}")

    def rest(self) -> None:
        """Turn out the columns after the last full block."""
        left = self.across % WIDTH
        if left:
            self._turn(str(self.across - left), left)

    def _turn(self, first: str, columns: int) -> None:
        """So many columns of all rows, the first of which has this number."""
        w = self.w
        t, align = w.lanes.type, w.lanes.bytes

        def visit(row: str, tail: str) -> None:
            here = w(f"add i64 {w(f'mul i64 {row}, {WIDTH}')}, {self.base}")
            there = w(f"add i64 {w(f'mul i64 {row}, {self.across}')}, {first}")
            start = 0
            while start < columns:
                size = min(w.lanes.width, 1 << (columns - start).bit_length() - 1)
                places = (w(f"add i64 {here}, {start + i}") for i in range(size))
                values = [w.load(t, self.vector(place), align) for place in places]
                self.block.scatter_some(f"={self.name}", w(f"add i64 {there}, {start}"), values)
                start += size
            w.do(f"br label %{tail}")

        self.count("row", "0", str(self.rows - 1), True, visit)
