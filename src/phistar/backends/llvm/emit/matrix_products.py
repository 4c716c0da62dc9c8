# SPDX-License-Identifier: BSD-3-Clause
"""Products of matrices in the workspace, as LLVM text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from phistar.backends.llvm.emit.ir_builder import FunctionBuilder
from phistar.scalar.program import MatrixProduct
from phistar.thresholds import POLICY


class ProductEmitter:
    """A product: for some columns after the other, a loop over a few rows at a time.

    Rows that are zero in all of a few columns are left out. The result goes to the workspace, rows
    one after the other.
    """

    def __init__(self, w: FunctionBuilder, product: MatrixProduct, result: int) -> None:
        """Args:
        w: Where the text goes.
        product: The product.
        result: The slot of its first entry.
        """
        self.w = w
        self.product = product
        self.result = result
        self.rows_per_round = min(POLICY.product_rows_per_round, product.rows)

    def write(self) -> None:
        """All columns."""
        for groups in self._cached_groups():
            self._loop(groups)

    def _cached_groups(self) -> Iterator[list[range]]:
        """Groups of columns, as many for a loop as stay in the cache."""
        width, across = self.w.lanes.width, len(self.product.right_slots)
        found: list[range] = []
        size = 0
        for start in range(0, across, width):
            group = range(start, min(start + width, across))
            more = self.w.lanes.bytes * sum(len(self.product.right_slots[j]) for j in group)
            if found and size + more > POLICY.product_column_bytes_per_loop:
                yield found
                found, size = [], 0
            found.append(group)
            size += more
        if found:
            yield found

    def _loop(self, groups: Sequence[range]) -> None:
        """All rows; the last round overlaps the one before if their number is odd."""
        w, rows = self.w, self.product.rows
        last = rows - self.rows_per_round
        with w.loop(0, rows, self.rows_per_round, stem="rows") as (i, _):
            first = w.select(w.compare("slt", i, last), i, last)
            for columns in groups:
                self._rows(first, columns)

    def _rows(self, i: str, columns: range) -> None:
        """A few rows from the i-th, in some columns."""
        w, product = self.w, self.product
        read = sorted({k for j in columns for k in product.right_slots[j]})
        start = w.add(w.mul(i, product.inner), product.left_slot)
        sums = [[w.constant(0.0)] * len(columns) for _ in range(self.rows_per_round)]
        for k in read:
            left = [w.load_slot(w.add(start, r * product.inner + k)) for r in self._round_rows]
            for c, j in enumerate(columns):
                if k in product.right_slots[j]:
                    x = w.load_slot(product.right_slots[j][k])
                    for r in self._round_rows:
                        sums[r][c] = w.binary("fsub", sums[r][c], w.binary("fmul", left[r], x))
        across = len(product.right_slots)
        first = w.add(w.mul(i, across), self.result + columns.start)
        for r in self._round_rows:
            for c, value in enumerate(sums[r]):
                w.store_slot(w.add(first, r * across + c), value)

    @property
    def _round_rows(self) -> range:
        return range(self.rows_per_round)
