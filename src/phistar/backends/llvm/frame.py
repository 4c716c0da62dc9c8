# SPDX-License-Identifier: BSD-3-Clause
"""The frame of every kernel: a loop over blocks of samples, one lane a sample.

    int64 kernel(int64 args[], void *work, int64 first, int64 last)

The result is 0, or 1 if an input was not finite. ``args`` holds the address and the sample stride
(in elements) of each input, then of each output, then whether large outputs go past the caches;
entries of a sample stand side by side. Lanes beyond the last sample repeat it: they read and write
the same numbers, so nothing is touched out of bounds.

Outputs that are larger than the caches need not be read into them before they are written: where
the caller says so, the results of a block are first put together in the workspace and then copied
line by line, past the caches. Then samples must follow each other without gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


LARGE = 64
"""Numbers of an output from which on it may go past the caches."""
HUGE = 1 << 14
"""Numbers beyond which a block of it would not stay in the caches until it is copied."""


def large_outputs(signature: Signature) -> dict[str, int]:
    """Outputs that may go past the caches, and their sizes."""
    return {name: size for name, size in signature.outputs.items() if LARGE <= size <= HUGE}


def staging(signature: Signature) -> int:
    """Vectors of the workspace in which a block's large outputs are put together."""
    return sum(large_outputs(signature).values())


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
    room: int,
    constants: str = "",
    tune: str = "",
) -> str:
    """The text of a module with one kernel.

    Args:
        signature: Its arrays.
        lanes: Samples side by side.
        body: Writes the work on one block of samples.
        room: Vectors of the workspace that it uses.
        constants: Global definitions that the body refers to.
        tune: LLVM's name of the processor whose timing the code is arranged for, if it is not that
            of the processor that it is made for.
    """
    w = Writer(lanes)
    w.block("entry")
    arrays = Arrays(w, signature)
    some = w("icmp slt i64 %first, %last")
    w.do(f"br i1 {some}, label %block, label %exit")
    w.block("block")
    w.do("%sample = phi i64 [%first, %entry], [%next, %blockend]")
    w.do("%before = phi i64 [0, %entry], [%status, %blockend]")
    rows = arrays.rows()
    copies = _Copies(w, signature, room, arrays.past)
    copies.divert(rows)
    block = Block(w, rows, "block")
    body(block)
    w.do(f"%status = select i1 {is_finite(block)}, i64 %before, i64 1")
    copies.write(arrays.base)
    w.block("blockend")
    w.do(f"%next = add i64 %sample, {lanes.width}")
    w.do("%more = icmp slt i64 %next, %last")
    w.do("br i1 %more, label %block, label %exit")
    w.block("exit")
    w.do("%result = phi i64 [0, %entry], [%status, %blockend]")
    copies.finish()
    return as_module(lanes, constants, w.lines, tune)


def as_module(lanes: Lanes, before: str, kernel: Sequence[str], tune: str = "") -> str:
    """The text of a module.

    Args:
        lanes: Samples side by side.
        before: Definitions that the kernel refers to.
        kernel: Its lines up to the return of ``%result``.
        tune: As for ``module``.
    """
    arguments = "ptr noalias %args, ptr noalias %work, i64 %first, i64 %last"
    head = f"define i64 @kernel({arguments}) nounwind #0 {{"
    wide = lanes.bytes * 8
    known = {"prefer-vector-width": f"{wide}", "min-legal-vector-width": f"{wide}"}
    known |= {"tune-cpu": tune} if tune else {}
    listed = " ".join(f'"{name}"="{value}"' for name, value in known.items())
    attributes = f"attributes #0 = {{ {listed} }}"
    parts = [
        before,
        head,
        *kernel,
        "  ret i64 %result",
        "}",
        far_sincos(lanes),
        declarations(lanes),
    ]
    return "\n".join([*parts, attributes, "!0 = !{i32 1}", ""])


def is_finite(block: Block) -> str:
    """Whether all numbers that a block read were finite."""
    w, lanes = block.w, block.w.lanes
    sums = w(f"fcmp ord {lanes.type} {block.finite}, {block.finite}")
    return w(f"call i1 @llvm.vector.reduce.and.v{lanes.width}i1(<{lanes.width} x i1> {sums})")


class Arrays:
    """What ``%args`` holds.

    Attributes:
        base: Addresses, by name of input or ``=`` and name of output.
        past: Whether large outputs go past the caches.
    """

    def __init__(self, w: Writer, signature: Signature) -> None:
        self.w = w
        self.base: dict[str, str] = {}
        self._stride: dict[str, str] = {}
        names = [*signature.inputs, *(f"={name}" for name in signature.outputs)]
        for i, name in enumerate(names):
            self.base[name] = w.load("ptr", w.at("%args", 2 * i, "i64"), 8)
            self._stride[name] = w.load("i64", w.at("%args", 2 * i + 1, "i64"), 8)
        self.past = w.load("i64", w.at("%args", 2 * len(names), "i64"), 8)
        self._final = w("sub i64 %last, 1")

    def rows(self) -> dict[str, list[str]]:
        """Addresses of the rows of the lanes of a block that begins with ``%sample``."""
        w = self.w
        rows: dict[str, list[str]] = {name: [] for name in self.base}
        for i in range(w.lanes.width):
            index = w(f"add i64 %sample, {i}") if i else "%sample"
            if i:
                inside = w(f"icmp slt i64 {index}, %last")
                index = w(f"select i1 {inside}, i64 {index}, i64 {self._final}")
            for name, base in self.base.items():
                rows[name].append(w.at(base, w(f"mul i64 {index}, {self._stride[name]}")))
        return rows


class _Copies:
    """Large outputs of a block, put together in the workspace and copied past the caches."""

    def __init__(self, w: Writer, signature: Signature, room: int, past: str) -> None:
        self.w = w
        self.past = past
        self.starts: dict[str, int] = {}
        self.sizes = large_outputs(signature)
        for name, size in self.sizes.items():
            self.starts[name] = room
            room += size
        self.diverted = ""

    def divert(self, rows: dict[str, list[str]]) -> None:
        """Let full blocks write to the workspace if the caller wants that."""
        if not self.sizes:
            return
        w, width = self.w, self.w.lanes.width
        wanted = w(f"icmp ne i64 {self.past}, 0")
        full = w(f"icmp sle i64 {w(f'add i64 %sample, {width}')}, %last")
        self.diverted = w(f"and i1 {wanted}, {full}")
        for name, size in self.sizes.items():
            for i, row in enumerate(rows[f"={name}"]):
                here = w.at("%work", self.starts[name] * width + i * size)
                rows[f"={name}"][i] = w(f"select i1 {self.diverted}, ptr {here}, ptr {row}")

    def write(self, base: dict[str, str]) -> None:
        """Copy what was diverted; ends in a jump to ``blockend``."""
        w, lanes = self.w, self.w.lanes
        if not self.sizes:
            w.do("br label %blockend")
            return
        label = w.label("copy")
        w.do(f"br i1 {self.diverted}, label %{label}, label %blockend")
        for name, size in self.sizes.items():
            w.block(label)
            there = w.at(base[f"={name}"], w(f"mul i64 %sample, {size}"))
            loop, label = w.label("line"), w.label("copy")
            before = w.label("start")
            w.do(f"br label %{before}")
            w.block(before)
            w.do(f"br label %{loop}")
            w.block(loop)
            i, more = f"%i.{loop}", f"%n.{loop}"
            w.do(f"{i} = phi i64 [0, %{before}], [{more}, %{loop}]")
            place = w(f"add i64 {i}, {self.starts[name]}")
            line = w.load(lanes.type, w.at("%work", place, lanes.type), lanes.bytes)
            target = w.at(there, i, lanes.type)
            w.do(f"store {lanes.type} {line}, ptr {target}, align {lanes.bytes}, !nontemporal !0")
            w.do(f"{more} = add i64 {i}, 1")
            again = w(f"icmp slt i64 {more}, {size}")
            w.do(f"br i1 {again}, label %{loop}, label %{label}")
        w.block(label)
        w.do("br label %blockend")

    def finish(self) -> None:
        """What went past the caches must be there before anything that comes later."""
        if self.sizes:
            self.w.do("fence seq_cst")
