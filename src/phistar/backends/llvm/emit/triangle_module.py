# SPDX-License-Identifier: BSD-3-Clause
"""The triangle of a QR factorization of many rows, as LLVM text.

Rows are taken in by tiles of a few dozen, which stay in the nearest cache: Householder reflections
of the triangle with a tile below it, column by column. A column of a tile is in registers while it
reflects the others. Sums have one order, whatever the processor: eight lanes, two sums of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from phistar.backends.llvm.emit.ir_builder import FunctionBuilder, Lanes

LANES = Lanes(8)
TILE_VECTORS = 8
TILE_ROWS = TILE_VECTORS * LANES.width
"""Rows of a tile."""
ARGUMENTS = ("addresses", "strides", "size", "weight", "weight_stride", "shift", "triangle")
"""What ``kernel`` finds at its first argument, 8 bytes each: addresses of the first number of each
column and (as their distance in bytes) of its next ones, of column weights, of factors with which
columns are added to the last one, and of the triangle, row by row; ``size`` columns in all."""

_HEAD = "i64 @kernel(ptr %args, ptr noalias %work, i64 %first, i64 %last) #0"
_DECLARED = """
declare double @llvm.sqrt.f64(double)
declare double @llvm.copysign.f64(double, double)
declare double @llvm.fmuladd.f64(double, double, double)
declare <8 x double> @llvm.fmuladd.v8f64(<8 x double>, <8 x double>, <8 x double>)
attributes #0 = { "prefer-vector-width"="512" }
"""


def workspace_bytes(size: int) -> int:
    """Of a tile with so many columns, and one for weights."""
    return (size + 1) * TILE_VECTORS * LANES.bytes


def triangle_module() -> str:
    """``i64 kernel(ptr args, ptr work, i64 first, i64 last)``: takes these rows in, gives 0."""
    return _TriangleWriter().text()


class _TriangleWriter:
    def __init__(self) -> None:
        w = self.w = FunctionBuilder(LANES)
        found = [w.load("i64", w.gep("%args", k, "i64"), 8) for k in range(len(ARGUMENTS))]
        self.given = dict(zip(ARGUMENTS, found, strict=True))
        self.size = self.given["size"]
        self.addresses, self.strides, self.shift, self.triangle = (
            w(f"inttoptr i64 {self.given[name]} to ptr")
            for name in ("addresses", "strides", "shift", "triangle")
        )

    def text(self) -> str:
        w = self.w
        with w.loop("%first", "%last", TILE_ROWS, maybe_empty=True, stem="tile") as (start, _):
            left = w(f"sub i64 %last, {start}")
            count = w.select(w.compare("slt", left, TILE_ROWS), left, TILE_ROWS)
            self._gather(start, count)
            self._add_shift()
            self._reflect()
        w.emit("ret i64 0")
        return w.function_text(_HEAD) + _DECLARED

    # -- a tile is read

    def _gather(self, start: str, count: str) -> None:
        """Columns side by side in the workspace, each multiplied by the weights."""
        w = self.w
        weights = self._column(self.size)
        self._copy(self.given["weight"], self.given["weight_stride"], start, count, weights)
        with w.loop(0, self.size, stem="column") as (k, _):
            address = w.load("i64", w.gep(self.addresses, k, "i64"), 8)
            stride = w.load("i64", w.gep(self.strides, k, "i64"), 8)
            column = self._column(k)
            self._copy(address, stride, start, count, column)
            pairs = zip(self._load(column), self._load(weights), strict=True)
            self._store(column, [w.binary("fmul", x, y, "") for x, y in pairs])

    def _copy(self, address: str, stride: str, start: str, count: str, column: str) -> None:
        """Numbers that are apart in memory, side by side; zeros after them."""
        w = self.w
        self._store(column, [w.constant(0.0)] * TILE_VECTORS)
        begin = w.add(address, w.mul(start, stride))
        with w.loop(0, count, stem="row") as (r, _):
            place = w(f"inttoptr i64 {w.add(begin, w.mul(r, stride))} to ptr")
            w.store("double", w.load("double", place, 8), w.gep(column, r), 8)

    def _add_shift(self) -> None:
        """Multiples of the columns, added to the last one."""
        w = self.w
        last = self._column(w.add(self.size, -1))
        with w.loop(0, self.size, carry=self._load(last), stem="shift") as (k, sums):
            factor = w.splat(w.load("double", w.gep(self.shift, k), 8))
            pairs = zip(self._load(self._column(k)), sums, strict=True)
            sums[:] = [w.multiply_add(factor, x, y) for x, y in pairs]
        self._store(last, sums)

    # -- and reflected

    def _reflect(self) -> None:
        """Each column in turn becomes zero; what it was goes to the triangle."""
        w = self.w
        with w.loop(0, self.size, stem="pivot") as (j, _):
            pivot = self._load(self._column(j))
            squares = self._dot(pivot, pivot)
            # Also where it is not a number: that must be seen in the result.
            some = w(f"fcmp une double {squares}, 0.0")
            with w.if_(some, stem="reflection"):
                self._reflection(j, pivot, squares)

    def _reflection(self, j: str, pivot: Sequence[str], squares: str) -> None:
        w = self.w
        row = w.gep(self.triangle, w.mul(j, self.size))
        place = w.gep(row, j)
        alpha = w.load("double", place, 8)
        fused = f"double {alpha}, double {alpha}, double {squares}"
        whole = w(f"call double @llvm.fmuladd.f64({fused})")
        length = w(f"call double @llvm.sqrt.f64(double {whole})")
        other = w(f"fneg double {alpha}")
        beta = w(f"call double @llvm.copysign.f64(double {length}, double {other})")
        head = w(f"fsub double {alpha}, {beta}")
        factor = w(f"fneg double {w(f'fdiv double {head}, {beta}')}")
        scale = w.splat(w(f"fdiv double 1.0, {head}"))
        w.store("double", beta, place, 8)
        v = [w.binary("fmul", x, scale, "") for x in pivot]
        with w.loop(w.add(j, 1), self.size, maybe_empty=True, stem="other") as (k, _):
            column = self._column(k)
            x = self._load(column)
            above = w.gep(row, k)
            r = w.load("double", above, 8)
            along = w(f"fmul double {factor}, {w(f'fadd double {r}, {self._dot(v, x)}')}")
            w.store("double", w(f"fsub double {r}, {along}"), above, 8)
            less = w.splat(w(f"fneg double {along}"))
            self._store(column, [w.multiply_add(less, a, b) for a, b in zip(v, x, strict=True)])

    def _dot(self, a: Sequence[str], b: Sequence[str]) -> str:
        """A product of two columns in registers, added up in one order."""
        w = self.w
        sums = [w.binary("fmul", a[k], b[k], "") for k in range(2)]
        for k in range(2, TILE_VECTORS):
            sums[k % 2] = w.multiply_add(a[k], b[k], sums[k % 2])
        total, size = w.binary("fadd", sums[0], sums[1], ""), LANES.width
        while size > 1:
            half = size // 2
            low = w.shuffle(total, "poison", range(half), size)
            high = w.shuffle(total, "poison", range(half, size), size)
            total = w(f"fadd <{half} x double> {low}, {high}")
            size = half
        return w(f"extractelement <1 x double> {total}, i32 0")

    def _column(self, k: str) -> str:
        return self.w.gep("%work", self.w.mul(k, TILE_ROWS))

    def _load(self, column: str) -> list[str]:
        w = self.w
        return [w.load_vector(w.gep(column, LANES.width * i)) for i in range(TILE_VECTORS)]

    def _store(self, column: str, values: Sequence[str]) -> None:
        for i, value in enumerate(values):
            self.w.store_vector(value, self.w.gep(column, LANES.width * i))
