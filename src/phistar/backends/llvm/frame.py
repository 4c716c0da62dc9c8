# SPDX-License-Identifier: BSD-3-Clause
"""The frame of every kernel: a loop over blocks of samples, one lane a sample.

    int64 kernel(int64 args[], void *work, int64 first, int64 last)

The result is 0, or 1 if an input was not finite. ``args`` holds the address and the sample stride
(in elements) of each input, then of each output; entries of a sample stand side by side. Lanes
beyond the last sample repeat it: they read and write the same numbers, so nothing is touched out of
bounds.
"""

from __future__ import annotations

from collections.abc import Callable

from phistar.backends.llvm.sincos import declarations, far_sincos
from phistar.backends.llvm.writer import Lanes, Writer
from phistar.scalar.program import Signature


def pieces(size: int, lanes: Lanes) -> list[tuple[int, int]]:
    """Start and number of the entries of a row that are moved together.

    Squares as far as they go; of a long rest halves, the last of which reaches back, of a short one
    single entries.
    """
    width, half = lanes.width, lanes.width // 2
    rest = size % width
    squares = [(start, width) for start in range(0, size - rest, width)]
    if half > 1 and rest >= half:
        return [*squares, *dict.fromkeys([(size - rest, half), (size - half, half)])]
    return [*squares, *((entry, 1) for entry in range(size - rest, size))]


class Block:
    """One block of samples inside a kernel.

    Attributes:
        w: Where instructions go.
        rows: Addresses of each lane's rows, by name of input or ``=`` and name of output.
        label: Name of the basic block that is being written.
    """

    def __init__(self, w: Writer, rows: dict[str, list[str]], label: str) -> None:
        self.w = w
        self.rows = rows
        self.label = label
        self._sums = {label: w.constant(0.0)}

    @property
    def finite(self) -> str:
        """A vector that is zero as long as all numbers read were finite."""
        return self._sums[self.label]

    def watch(self, value: str) -> None:
        """Add 0 x to the sum: not a number if x is infinite or none."""
        w = self.w
        self._sums[self.label] = w.real("fadd", self.finite, w.real("fmul", value, w.constant(0.0)))

    def move(self, label: str, finite: str | None = None) -> None:
        """Go on in another basic block, with what has become of the sum there."""
        self._sums[label] = self.finite if finite is None else finite
        self.label = label

    def gather(self, name: str, entry: int | str) -> str:
        """One entry of all lanes."""
        w = self.w
        lanes = w.lanes
        value = "poison"
        for i, row in enumerate(self.rows[name]):
            one = w.load(lanes.real, w.at(row, entry), lanes.bits // 8)
            value = w(f"insertelement {lanes.type} {value}, {lanes.real} {one}, i32 {i}")
        self.watch(value)
        return value

    def gather_square(self, name: str, entry: int | str) -> list[str]:
        """As many entries as there are lanes."""
        return self.gather_some(name, entry, self.w.lanes.width)

    def gather_some(self, name: str, entry: int | str, count: int) -> list[str]:
        """Some entries, a power of two: short rows, as many in a vector as there is room for."""
        w = self.w
        if count == 1:
            return [self.gather(name, entry)]
        part = f"<{count} x {w.lanes.real}>"
        short = [w.load(part, w.at(row, entry), w.lanes.bits // 8) for row in self.rows[name]]
        rows = [w.joined(short[i::count], count) for i in range(count)]
        for row in rows:
            self.watch(row)
        return w.transposed(rows)

    def scatter(self, name: str, entry: int | str, value: str) -> None:
        """One entry of all lanes."""
        w = self.w
        lanes = w.lanes
        for i, row in enumerate(self.rows[name]):
            one = w(f"extractelement {lanes.type} {value}, i32 {i}")
            w.store(lanes.real, one, w.at(row, entry), lanes.bits // 8)

    def scatter_some(self, name: str, entry: int | str, values: list[str]) -> None:
        """Some entries, a power of two; a constant is the same in all lanes."""
        w = self.w
        count, width = len(values), w.lanes.width
        if count == 1:
            return self.scatter(name, entry, values[0])
        if all(value.startswith("<") for value in values):
            # Constants: each row is the same vector, made of the first lane of each.
            row = "<" + ", ".join(value[1:].split(",")[0].rstrip(">") for value in values) + ">"
            short = [row] * width
        else:
            rows = w.transposed(values)
            short = [w.part(rows[i % count], i - i % count, count) for i in range(width)]
        part = f"<{count} x {w.lanes.real}>"
        for place, value in zip(self.rows[name], short, strict=True):
            w.store(part, value, w.at(place, entry), w.lanes.bits // 8)


def module(
    signature: Signature,
    lanes: Lanes,
    body: Callable[[Block], None],
    constants: str = "",
) -> str:
    """The text of a module with one kernel.

    Args:
        signature: Its arrays.
        lanes: Samples side by side.
        body: Writes the work on one block of samples.
        constants: Global definitions that the body refers to.
    """
    w = Writer(lanes)
    names = [*signature.inputs, *(f"={name}" for name in signature.outputs)]
    w.block("entry")
    base, stride = {}, {}
    for i, name in enumerate(names):
        base[name] = w.load("ptr", w.at("%args", 2 * i, "i64"), 8)
        stride[name] = w.load("i64", w.at("%args", 2 * i + 1, "i64"), 8)
    final = w("sub i64 %last, 1")
    some = w("icmp slt i64 %first, %last")
    w.do(f"br i1 {some}, label %block, label %exit")
    w.block("block")
    w.do("%sample = phi i64 [%first, %entry], [%next, %blockend]")
    w.do("%before = phi i64 [0, %entry], [%status, %blockend]")
    rows: dict[str, list[str]] = {name: [] for name in names}
    for i in range(lanes.width):
        index = w(f"add i64 %sample, {i}") if i else "%sample"
        if i:
            inside = w(f"icmp slt i64 {index}, %last")
            index = w(f"select i1 {inside}, i64 {index}, i64 {final}")
        for name in names:
            rows[name].append(w.at(base[name], w(f"mul i64 {index}, {stride[name]}")))
    block = Block(w, rows, "block")
    body(block)
    sums = w(f"fcmp ord {lanes.type} {block.finite}, {block.finite}")
    fine = w(f"call i1 @llvm.vector.reduce.and.v{lanes.width}i1(<{lanes.width} x i1> {sums})")
    w.do(f"%status = select i1 {fine}, i64 %before, i64 1")
    w.do("br label %blockend")
    w.block("blockend")
    w.do(f"%next = add i64 %sample, {lanes.width}")
    w.do("%more = icmp slt i64 %next, %last")
    w.do("br i1 %more, label %block, label %exit")
    w.block("exit")
    w.do("%result = phi i64 [0, %entry], [%status, %blockend]")
    arguments = "ptr noalias %args, ptr noalias %work, i64 %first, i64 %last"
    head = f"define i64 @kernel({arguments}) nounwind #0 {{"
    wide = lanes.bytes * 8
    attributes = (
        f'attributes #0 = {{ "prefer-vector-width"="{wide}" "min-legal-vector-width"="{wide}" }}'
    )
    parts = [
        constants,
        head,
        *w.lines,
        "  ret i64 %result",
        "}",
        far_sincos(lanes),
        declarations(lanes),
    ]
    return "\n".join([*parts, attributes, ""])
