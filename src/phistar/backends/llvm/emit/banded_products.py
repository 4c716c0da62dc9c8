# SPDX-License-Identifier: BSD-3-Clause
"""Products of matrices in the workspace of which many blocks are zero, as LLVM text.

A product is a list of tiles, a few rows by a few columns, whose sums stay in registers; tables say
which numbers each of them reads. So the code is a loop for each size of tiles, whatever the robot:
a line for each block would be longer than the caches of instructions, and run for a few rows only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from phistar.backends.llvm.emit.ir_builder import FunctionBuilder, Lanes
from phistar.scalar.program import MatrixProduct, ProductBand
from phistar.thresholds import POLICY


@dataclass(frozen=True)
class ColumnRun:
    """Columns side by side in which the same rows on the right are not zero.

    Attributes:
        columns: The columns.
        slots: For each of these rows the slot of its number in the first column; those in the
            others follow it.
    """

    columns: range
    slots: Sequence[tuple[int, int]]


def column_runs(product: MatrixProduct, most: int) -> list[ColumnRun]:
    """All columns of a product, as few runs of at most so many."""
    runs: list[ColumnRun] = []
    for j, column in enumerate(product.right_slots):
        slots = sorted(column.items())
        if runs:
            start, known = runs[-1].columns.start, runs[-1].slots
            if [(k, slot + j - start) for k, slot in known] == slots:
                runs[-1] = ColumnRun(range(start, j + 1), known)
                continue
        runs.append(ColumnRun(range(j, j + 1), slots))
    return [part for run in runs for part in _even_parts(run, most)]


def _even_parts(run: ColumnRun, most: int) -> Iterator[ColumnRun]:
    start, count = run.columns.start, len(run.columns)
    parts = -(-count // most)
    for n in range(parts):
        a, b = n * count // parts, (n + 1) * count // parts
        slots = [(k, slot + a) for k, slot in run.slots]
        yield ColumnRun(range(start + a, start + b), slots)


@dataclass(frozen=True)
class Tile:
    """A few rows of a band in a run of columns.

    Attributes:
        pairs: Slots: of a number of the first row on the left, and of that on the right which it is
            multiplied with in the first column.
        row, column: The first entry.
        inner: Slots from a row on the left to the next.
    """

    pairs: Sequence[tuple[int, int]]
    row: int
    column: int
    inner: int


def tiles_of(product: MatrixProduct, lanes: Lanes) -> dict[tuple[int, int], list[Tile]]:
    """The tiles of a product, by their numbers of rows and columns."""
    share = 1 if lanes.bytes >= POLICY.wide_vector_bytes else 2
    registers, most = POLICY.wide_vector_registers // share, POLICY.max_tile_columns // share
    found: dict[tuple[int, int], list[Tile]] = {}
    runs = column_runs(product, most)
    for band in product.bands:
        for run in runs:
            if not _is_mirrored(product, band, run):
                # Sums, a column of numbers on the left, and one number on the right.
                fit = (registers - 1) // (len(run.columns) + 1)
                rows, tiles = _tiles(band, run, fit)
                found.setdefault((rows, len(run.columns)), []).extend(tiles)
    return found


def _is_mirrored(product: MatrixProduct, band: ProductBand, run: ColumnRun) -> bool:
    across = len(product.right_slots)
    entries = (i * across + j for i in band.rows for j in run.columns)
    return all(entry in product.mirrored for entry in entries)


def _tiles(band: ProductBand, run: ColumnRun, most: int) -> tuple[int, list[Tile]]:
    """Rows of a tile, and tiles; the last one overlaps the one before if need be."""
    count = len(band.rows)
    rounds = -(-count // most)
    rows = -(-count // rounds)
    inner, places = len(band.inner), {k: at for at, k in enumerate(band.inner)}
    starts = [min(n * rows, count - rows) for n in range(rounds)]
    tiles = [
        Tile(
            [
                (band.left_slot + start * inner + places[k], slot)
                for k, slot in run.slots
                if k in places
            ],
            band.rows[start],
            run.columns.start,
            inner,
        )
        for start in starts
    ]
    return rows, tiles


class BandedProductEmitter:
    """A product of bands; its result goes to the workspace, rows one after the other."""

    def __init__(self, w: FunctionBuilder, product: MatrixProduct, result: int) -> None:
        """Args:
        w: Where the text goes.
        product: The product.
        result: The slot of its first entry.
        """
        for band in product.bands:
            assert list(band.rows) == list(range(band.rows[0], band.rows[-1] + 1))
        self.w = w
        self.product = product
        self.result = result
        self.tiles = tiles_of(product, w.lanes)

    def tables(self) -> list[str]:
        """Constants: of each tile where its pairs begin and end, its row on the left, and its first
        entry; and all pairs."""
        found = []
        across = len(self.product.right_slots)
        for shape, tiles in self.tiles.items():
            pairs: list[int] = []
            heads: list[int] = []
            for tile in tiles:
                first = len(pairs)
                pairs += [x for pair in tile.pairs for x in pair]
                entry = self.result + tile.row * across + tile.column
                heads += [first, len(pairs), tile.inner, entry]
            found += [_constant(self._name(shape, "tiles"), heads)]
            found += [_constant(self._name(shape, "pairs"), pairs or [0])]
        return found

    def write(self) -> None:
        """All tiles."""
        for shape, tiles in self.tiles.items():
            self._write(shape, len(tiles), not all(tile.pairs for tile in tiles))

    def _write(self, shape: tuple[int, int], count: int, some_empty: bool) -> None:
        w, (rows, columns) = self.w, shape
        heads, pairs = self._name(shape, "tiles"), self._name(shape, "pairs")
        zeros = [w.constant(0.0)] * (rows * columns)
        with w.loop(0, 4 * count, 4, stem="tile") as (at, _):
            start, stop, inner, entry = (self._number(heads, w.add(at, k)) for k in range(4))
            below = [w.mul(inner, r) for r in range(rows)]
            with w.loop(start, stop, 2, zeros, maybe_empty=some_empty, stem="pair") as (e, sums):
                first = self._number(pairs, e)
                left = [w.load_slot(w.add(first, each)) for each in below]
                slot = self._number(pairs, w.add(e, 1))
                for c in range(columns):
                    x = w.load_slot(w.add(slot, c))
                    for r, y in enumerate(left):
                        n = r * columns + c
                        sums[n] = w.binary("fsub", sums[n], w.binary("fmul", y, x))
            across = len(self.product.right_slots)
            for n, value in enumerate(sums):
                r, c = divmod(n, columns)
                w.store_slot(w.add(entry, r * across + c), value)

    def _number(self, table: str, at: str) -> str:
        """An entry of a table."""
        return self.w(f"zext i32 {self.w.load('i32', self.w.gep(table, at, 'i32'), 4)} to i64")

    def _name(self, shape: tuple[int, int], what: str) -> str:
        rows, columns = shape
        return f"@{what}.{self.product.output}.{rows}.{columns}"


def _constant(name: str, numbers: Sequence[int]) -> str:
    values = ", ".join(f"i32 {x}" for x in numbers)
    return f"{name} = private constant [{len(numbers)} x i32] [{values}]"
