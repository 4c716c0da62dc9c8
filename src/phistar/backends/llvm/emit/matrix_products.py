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
        together = self._together(rows)
        last = rows - together
        with w.loop(0, rows, together, stem="rows") as (i, _):
            first = w.select(w.compare("slt", i, last), i, last)
            for columns in groups:
                self._rows(first, columns, together)

    def _rows(self, i: str, columns: range, together: int) -> None:
        """A few rows from the i-th, in some columns."""
        w, product = self.w, self.product
        read = sorted({k for j in columns for k in product.right_slots[j]})
        start = w.add(w.mul(i, product.inner), product.left_slot)
        sums = [[w.constant(0.0)] * len(columns) for _ in range(together)]
        for k in read:
            left = [w.load_slot(w.add(start, r * product.inner + k)) for r in range(together)]
            for c, j in enumerate(columns):
                if k in product.right_slots[j]:
                    x = w.load_slot(product.right_slots[j][k])
                    for r in range(together):
                        sums[r][c] = w.binary("fsub", sums[r][c], w.binary("fmul", left[r], x))
        across = len(product.right_slots)
        first = w.add(w.mul(i, across), self.result + columns.start)
        for r in range(together):
            for c, value in enumerate(sums[r]):
                w.store_slot(w.add(first, r * across + c), value)

    @staticmethod
    def _together(rows: int) -> int:
        """Rows at a time."""
        return min(POLICY.product_rows_per_round, rows)
