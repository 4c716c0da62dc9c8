# SPDX-License-Identifier: BSD-3-Clause
"""Products of matrices of numbers that a line kept, as LLVM text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from phistar.backends.llvm.frame import Block
from phistar.scalar.program import Product

ROWS = 2
"""Rows at a time: sums that wait for each other would leave half of the arithmetic units idle."""
NEAR = 8192
"""Bytes of the columns of a loop, which with a few rows stay in the nearest cache."""


class ProductText:
    """A product: for some columns after the other, a loop over a few rows at a time.

    Rows that are zero in all of a few columns are left out. The result goes to the workspace, rows
    one after the other.
    """

    def __init__(self, block: Block, product: Product, result: int) -> None:
        """Args:
        block: Where the text goes.
        product: The product.
        result: The slot of its first entry.
        """
        self.block = block
        self.w = block.w
        self.product = product
        self.result = result
        self.together = min(ROWS, product.rows)

    def write(self) -> None:
        """All columns."""
        for groups in self._near():
            self._loop(groups)

    def _near(self) -> Iterator[list[range]]:
        """Groups of columns, as many for a loop as stay in the cache."""
        width, across = self.w.lanes.width, len(self.product.right)
        found: list[range] = []
        size = 0
        for start in range(0, across, width):
            group = range(start, min(start + width, across))
            more = self.w.lanes.bytes * sum(len(self.product.right[j]) for j in group)
            if found and size + more > NEAR:
                yield found
                found, size = [], 0
            found.append(group)
            size += more
        if found:
            yield found

    def _loop(self, groups: Sequence[range]) -> None:
        """All rows; the last ones reach back if their number is odd."""
        w, rows = self.w, self.product.rows
        head, after = w.label("rows"), w.label("rowsend")
        w.do(f"br label %{head}")
        w.block(head)
        i, more = f"%i.{head}", f"%n.{head}"
        w.do(f"{i} = phi i64 [0, %{self.block.label}], [{more}, %{head}]")
        last = rows - self.together
        inside = w(f"icmp slt i64 {i}, {last}")
        first = w(f"select i1 {inside}, i64 {i}, i64 {last}")
        for columns in groups:
            self._rows(first, columns)
        w.do(f"{more} = add i64 {i}, {self.together}")
        again = w(f"icmp slt i64 {more}, {rows}")
        w.do(f"br i1 {again}, label %{head}, label %{after}")
        w.block(after)
        self.block.move(after)

    def _rows(self, i: str, columns: range) -> None:
        """A few rows from the i-th, in some columns."""
        w, product, lanes = self.w, self.product, self.w.lanes
        read = sorted({k for j in columns for k in product.right[j]})
        start = w(f"add i64 {w(f'mul i64 {i}, {product.rows}')}, {product.left}")
        sums = [[w.constant(0.0)] * len(columns) for _ in range(self.together)]
        for k in read:
            left = [self._load(w(f"add i64 {start}, {r * product.rows + k}")) for r in self._each]
            for c, j in enumerate(columns):
                if k in product.right[j]:
                    x = self._load(product.right[j][k])
                    for r in self._each:
                        sums[r][c] = w.real("fsub", sums[r][c], w.real("fmul", left[r], x))
        across = len(product.right)
        first = w(f"add i64 {w(f'mul i64 {i}, {across}')}, {self.result + columns.start}")
        for r in self._each:
            for c, value in enumerate(sums[r]):
                place = w.at("%work", w(f"add i64 {first}, {r * across + c}"), lanes.type)
                w.store(lanes.type, value, place, lanes.bytes)

    @property
    def _each(self) -> range:
        return range(self.together)

    def _load(self, slot: int | str) -> str:
        lanes = self.w.lanes
        return self.w.load(lanes.type, self.w.at("%work", slot, lanes.type), lanes.bytes)
