# SPDX-License-Identifier: BSD-3-Clause
"""Products and outputs of an outlined program that runs on one sample alone, as LLVM text.

Slots of the workspace are single numbers then, those of a matrix one row after the other. So what
is a vector of samples elsewhere is a vector of columns here: a product multiplies numbers of the
left matrix with rows of the right one, and outputs are copied several entries at a time. Sums are
formed in the same order as in ``matrix_products``, and have the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from phistar.backends.llvm.emit.ir_builder import FAST_MATH_FLAGS, FunctionBuilder, Lanes, literal
from phistar.backends.llvm.emit.skeleton import SampleBlock
from phistar.scalar.graph import WORK
from phistar.scalar.program import MatrixProduct, ProductBand, Signature, Store, Unrolled
from phistar.thresholds import POLICY


def with_rows_of_products(program: Unrolled, row_width: int) -> Unrolled:
    """The same program; right factors of products are kept row by row, with zeros that are read.

    Args:
        program: The program.
        row_width: Columns that are worked on at a time, at most.
    """
    places: dict[int, int] = {}
    products, zeros, end = [], [], program.slots
    for product in program.products:
        across, columns = len(product.right_slots), []
        for j, column in enumerate(product.right_slots):
            columns.append({k: end + k * across + j for k in column})
            places |= {slot: columns[-1][k] for k, slot in column.items()}
        for start, count in _powers_of_two(across, row_width):
            group = columns[start : start + count]
            for k in sorted({k for column in group for k in column}):
                first = end + k * across + start
                holes = (j for j, column in enumerate(group) if k not in column)
                zeros += [Store(WORK, first + j, "", 0.0) for j in holes]
        products.append(replace(product, right_slots=columns))
        end += product.inner * across
    stores = [
        replace(store, index=places.get(store.index, store.index)) if store.space == WORK else store
        for store in program.block.stores
    ]
    block = replace(program.block, stores=[*stores, *zeros])
    return replace(program, block=block, products=tuple(products), slots=end)


class OneSampleEpilogue:
    """Writes products and outputs."""

    def __init__(
        self,
        block: SampleBlock,
        program: Unrolled,
        slots: Mapping[str, Mapping[int, int]],
        sums: int,
    ) -> None:
        """Args:
        block: Where the text goes.
        program: By ``with_rows_of_products``.
        slots: For each output, the slots of its entries.
        sums: The first of ``sum_slots`` slots.
        """
        self.block = block
        self.w = block.w
        self.program = program
        self.slots = slots
        self.sums = sums

    def write(self) -> None:
        """All of it."""
        products = {product.output: product for product in self.program.products}
        for name in self.program.signature.outputs:
            if name in products:
                self._multiply(products[name])
            else:
                self._copy(name, self.slots[name])

    def _copy(self, name: str, slots: Mapping[int, int]) -> None:
        """An output from its slots."""
        w, sums = self.w, _PartialSums(self.block)
        (output,) = self.block.rows[f"={name}"]
        for entry, slot, count in _copied_together(slots, w.lanes.row_width):
            vectors = _RowVectors(w, count)
            value = vectors.load(w.slot_address(slot))
            vectors.store(value, w.gep(output, entry))
            sums.add(vectors, value)
        sums.check_finite()

    def _multiply(self, product: MatrixProduct) -> None:
        """Minus a product to its output: a loop over a few rows at a time.

        The last round overlaps the one before if the number of rows does not fit.
        """
        w, across = self.w, len(product.right_slots)
        groups = [
            (start, _RowVectors(w, count))
            for start, count in _powers_of_two(across, w.lanes.row_width)
        ]
        (output,) = self.block.rows[f"={product.output}"]
        for start, vectors in groups:
            vectors.store(vectors.zero, w.slot_address(self.sums + start))
        for band in product.all_bands:
            wanted = {j for j, _ in product.columns_of(band)}
            kept = [x for x in groups if not wanted.isdisjoint(range(x[0], x[0] + x[1].count))]
            self._multiply_band(product, band, kept)
        for start, vectors in groups:
            total = vectors.load(w.slot_address(self.sums + start))
            vectors.check_finite(self.block, total)
        for entry, slot in product.known.items():
            value = w.load_slot(slot)
            w.store(w.lanes.real, value, w.gep(output, entry), w.lanes.bits // 8)
            self.block.accumulate_finite_check(value)
        size = w.lanes.bits // 8
        for entry, other in product.mirrored.items():
            value = w.load(w.lanes.real, w.gep(output, other), size)
            w.store(w.lanes.real, value, w.gep(output, entry), size)

    def _multiply_band(
        self,
        product: MatrixProduct,
        band: ProductBand,
        groups: Sequence[tuple[int, _RowVectors]],
    ) -> None:
        """The rows of a band in groups of columns, to the output and the sums."""
        w, across, count = self.w, len(product.right_slots), len(band.rows)
        rows = min(POLICY.product_rows_per_round, count)
        last = count - rows
        (output,) = self.block.rows[f"={product.output}"]
        with w.loop(0, count, rows, stem="rows") as (i, _):
            first = w.select(w.compare("slt", i, last), i, last)
            found = self._rows(product, band, first, rows, groups)
            top = w.add(first, band.rows[0])
            for (start, vectors), values in zip(groups, found, strict=True):
                place = w.slot_address(self.sums + start)
                total = vectors.load(place)
                for r, value in enumerate(values):
                    begin = w.mul(w.add(top, r), across)
                    vectors.store(value, w.gep(output, w.add(begin, start)))
                    total = vectors.binary("fadd", total, value)
                vectors.store(total, place)

    def _rows(
        self,
        product: MatrixProduct,
        band: ProductBand,
        first: str,
        rows: int,
        groups: Sequence[tuple[int, _RowVectors]],
    ) -> list[list[str]]:
        """Minus the products in some rows of a band, for each group of columns."""
        w, inner = self.w, len(band.inner)
        begin = w.add(w.mul(first, inner), band.left_slot)
        sums = [[vectors.zero] * rows for _, vectors in groups]
        for at, k in enumerate(band.inner):
            given = {j: column[k] for j, column in enumerate(product.right_slots) if k in column}
            left = [w.load_slot(w.add(begin, r * inner + at)) for r in range(rows)]
            for (start, vectors), found in zip(groups, sums, strict=True):
                known = given.keys() & set(range(start, start + vectors.count))
                if not known:
                    continue
                j = min(known)
                right = vectors.load(w.slot_address(given[j] - j + start))
                for r, x in enumerate(left):
                    term = vectors.binary("fmul", vectors.splat(x), right)
                    found[r] = vectors.binary("fsub", found[r], term)
        return sums


def check_inputs(block: SampleBlock, signature: Signature) -> None:
    """Have the block's sum become NaN unless all inputs are finite."""
    w = block.w
    for name, size in signature.inputs.items():
        sums = _PartialSums(block)
        for start, count in _powers_of_two(size, w.lanes.row_width):
            vectors = _RowVectors(w, count)
            value = vectors.load(w.gep(block.rows[name][0], start))
            # Zero times a number: sums of large numbers are not to overflow.
            sums.add(vectors, vectors.binary("fmul", value, vectors.zero))
        sums.check_finite()


class _PartialSums:
    """Sums of vectors of each length; several, so that additions need not wait for each other."""

    def __init__(self, block: SampleBlock) -> None:
        self._block = block
        self._sums: dict[int, list[str]] = {}

    def add(self, vectors: _RowVectors, value: str) -> None:
        """One more."""
        partial = self._sums.setdefault(vectors.count, [])
        if len(partial) == POLICY.partial_sums_alone:
            value = vectors.binary("fadd", partial.pop(0), value)
        partial.append(value)

    def check_finite(self) -> None:
        """Have the block's sum become NaN unless all are finite."""
        for count, (first, *rest) in self._sums.items():
            vectors = _RowVectors(self._block.w, count)
            for value in rest:
                first = vectors.binary("fadd", first, value)
            vectors.check_finite(self._block, first)


def sum_slots(program: Unrolled) -> int:
    """Slots for the sums that show whether products are finite."""
    return max((len(product.right_slots) for product in program.products), default=0)


def _copied_together(slots: Mapping[int, int], width: int) -> Iterator[tuple[int, int, int]]:
    """Entry, slot and number of entries that stand side by side in slots, too."""
    entry, size = 0, len(slots)
    while entry < size:
        run = 1
        while entry + run < size and slots[entry + run] == slots[entry] + run:
            run += 1
        for start, count in _powers_of_two(run, width):
            yield entry + start, slots[entry] + start, count
        entry += run


def _powers_of_two(size: int, most: int) -> Iterator[tuple[int, int]]:
    """Start and number of parts of a row: powers of two, none larger than so many."""
    start = 0
    while start < size:
        count = min(most, 1 << (size - start).bit_length() - 1)
        yield start, count
        start += count


class _RowVectors:
    """Some numbers of a row, a power of two, as vectors.

    Attributes:
        count: How many.
        zero: A vector of zeros.
    """

    def __init__(self, w: FunctionBuilder, count: int) -> None:
        self.w = w
        self.count = count
        self._lanes = Lanes(count, w.lanes.real)
        self.zero = self._lanes.repeated(w.lanes.real, literal(0.0, w.lanes.real))

    def load(self, place: str) -> str:
        """Numbers from an address."""
        return self.w.load(self._lanes.type, place, self._lanes.bits // 8)

    def store(self, value: str, place: str) -> None:
        """Numbers to an address."""
        self.w.store(self._lanes.type, value, place, self._lanes.bits // 8)

    def binary(self, op: str, a: str, b: str) -> str:
        """Arithmetic on two vectors."""
        return self.w(f"{op} {FAST_MATH_FLAGS} {self._lanes.type} {a}, {b}")

    def splat(self, x: str) -> str:
        """The same number everywhere."""
        if self.count == 1:
            return x
        t, real = self._lanes.type, self._lanes.real
        one = self.w(f"insertelement {t} poison, {real} {x}, i32 0")
        mask = f"<{self.count} x i32> zeroinitializer"
        return self.w(f"shufflevector {t} {one}, {t} poison, {mask}")

    def check_finite(self, block: SampleBlock, value: str) -> None:
        """Have the block's sum become NaN unless all numbers are finite."""
        if self.count == 1:
            block.accumulate_finite_check(value)
            return
        t = self._lanes.type
        for i in range(self.count):
            block.accumulate_finite_check(self.w(f"extractelement {t} {value}, i32 {i}"))
