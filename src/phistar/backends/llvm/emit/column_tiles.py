# SPDX-License-Identifier: BSD-3-Clause
"""Columns of a large matrix in tiles that stay in the caches, stored when a tile is full.

Sweeps compute a matrix column by column, and results have it row by row. A whole matrix of all
lanes is larger than the caches from some hundred rows on; every entry would be fetched twice and
written back twice. So where each column writes its own entries and no others, just a few columns
are kept, as many as fit into a cache line.
"""

from __future__ import annotations

from phistar.backends.llvm.emit.skeleton import SampleBlock, add_to_slot
from phistar.scalar.program import Looped
from phistar.thresholds import POLICY


def is_tiled(program: Looped) -> bool:
    """Whether the columns of a matrix are kept in tiles."""
    columns = program.column_loop
    if columns is None or columns.zero_fill or matrix_rows(program) < POLICY.min_rows_tiled:
        return False
    walks = (body for walk in columns.sweeps for body in walk.blocks.values())
    entries = [store for body in walks for store in body.stores if store.space != "work"]
    return not any(store.transposed or store.add for store in entries)


def matrix_rows(program: Looped) -> int:
    """Rows of the matrix."""
    assert program.column_loop is not None
    (size,) = program.signature.outputs.values()
    return size // program.column_loop.row_width


def output_vectors(program: Looped) -> int:
    """Vectors of the workspace for outputs."""
    if is_tiled(program):
        # One more for the sum of all results.
        return matrix_rows(program) * POLICY.tile_columns + 1
    return sum(program.signature.outputs.values())


class ColumnTiles:
    """Writes how tiles of columns become rows of the result.

    Args:
        block: Samples, and where instructions go.
        program: The matrix.
        base: Where the tile begins in the workspace.
    """

    def __init__(self, block: SampleBlock, program: Looped, base: int) -> None:
        assert program.column_loop is not None
        self.block = block
        self.w = block.w
        self.base = base
        self.across = program.column_loop.row_width
        self.rows = matrix_rows(program)
        (self.name,) = program.signature.outputs
        self.sums = base + self.rows * POLICY.tile_columns

    def zero_sums(self) -> None:
        """The sum of all results begins with zero."""
        self.w.store_slot(self.sums, self.w.constant(0.0))

    def check_sums(self) -> None:
        """Check the sum of all results."""
        self.block.accumulate_finite_check(self.w.load_slot(self.sums))

    def column_in_tile(self, column: str) -> str:
        """The place of a column in its tile."""
        return self.w(f"and i64 {column}, {POLICY.tile_columns - 1}")

    def store_if_full(self, column: str) -> None:
        """Store the tile that ends with a column, if one does."""
        w, last = self.w, POLICY.tile_columns - 1
        with w.if_(w.compare("eq", self.column_in_tile(column), last), stem="full"):
            self._store_tile(w(f"sub i64 {column}, {last}"), POLICY.tile_columns)

    def store_remainder(self) -> None:
        """Store the columns after the last full tile."""
        left = self.across % POLICY.tile_columns
        if left:
            self._store_tile(str(self.across - left), left)

    def _store_tile(self, first: str, columns: int) -> None:
        """So many columns of all rows, the first of which has this number."""
        w = self.w
        with w.count(0, self.rows - 1, stem="row") as (row, _):
            here = w.add(w.mul(row, POLICY.tile_columns), self.base)
            there = w.add(w.mul(row, self.across), first)
            start = 0
            while start < columns:
                size = min(w.lanes.width, 1 << (columns - start).bit_length() - 1)
                values = [w.load_slot(w.add(here, start + i)) for i in range(size)]
                add_to_slot(w, self.sums, values)
                self.block.scatter_entries(f"={self.name}", w.add(there, start), values)
                start += size
            w.start_block()
