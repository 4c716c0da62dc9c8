# SPDX-License-Identifier: BSD-3-Clause
"""The skeleton of every kernel: a loop over blocks of samples, one sample per lane.

    int64 kernel(int64 args[], void *work, int64 first, int64 last)

The result is 0, or 1 if an input or a result was not finite or a quaternion far from unit.
Quaternions that are unit but for rounding are kept, others are normalized on entry, lane by lane.
``args`` holds the address and the sample stride (in elements) of each input, then of each output,
then how large outputs may be written (``STORE_ANYWHERE`` and so on); entries of a sample are
contiguous.
Lanes beyond the last sample repeat it: they read and write the same numbers, so nothing is touched
out of bounds.

Outputs that are larger than the caches need not be read into them before they are written: where
the caller says so, the results of a block are first collected in the workspace and then copied
line by line with streaming stores. Then samples must follow each other without gaps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from phistar.backends.llvm.emit.ir_builder import (
    FunctionBuilder,
    Lanes,
    Loop,
    in_one_lane,
    is_constant,
)
from phistar.backends.llvm.emit.sincos import fallback_function, math_declarations
from phistar.model.configuration import quaternion_tolerances
from phistar.scalar.program import Signature
from phistar.thresholds import POLICY


def row_tiles(size: int, lanes: Lanes) -> list[tuple[int, int]]:
    """Start and number of the entries of a row that are moved together.

    Whole tiles as far as they go; of a long rest halves, the last of which overlaps the one before,
    of a short one single entries.
    """
    width, half = lanes.width, lanes.width // 2
    rest = size % width
    squares = [(start, width) for start in range(0, size - rest, width)]
    if half > 1 and rest >= half:
        return [*squares, *dict.fromkeys([(size - rest, half), (size - half, half)])]
    return [*squares, *((entry, 1) for entry in range(size - rest, size))]


WORKSPACE_ALIGNMENT_BYTES = 64
"""Of the start of a workspace."""

STORE_ANYWHERE, STORE_ALIGNED, STORE_STREAMING = 0, 1, 2
"""How large outputs may be written: wherever they are; to aligned places, because they begin with
a line of the caches and samples follow each other without gaps; the same, past the caches."""


def streamed_outputs(signature: Signature) -> dict[str, int]:
    """Outputs that may be written with streaming stores, and their sizes."""
    return {
        name: size
        for name, size in signature.outputs.items()
        if POLICY.min_streamed_entries <= size <= POLICY.max_streamed_entries
    }


def staging_vectors(signature: Signature) -> int:
    """Vectors of the workspace in which a block's large outputs are collected."""
    return sum(streamed_outputs(signature).values())


class SampleBlock:
    """One block of samples inside a kernel.

    Attributes:
        w: Where instructions go.
        rows: Addresses of each lane's rows, by name of input or ``=`` and name of output.
        finite_sum: A vector that is zero as long as all numbers read and written were finite.
        check_inputs: Whether what is read counts.
    """

    def __init__(
        self, w: FunctionBuilder, rows: dict[str, list[str]], check_inputs: bool = True
    ) -> None:
        self.w = w
        self.rows = rows
        self.check_inputs = check_inputs
        self._finite_sums = [w.constant(0.0)]

    @property
    def finite_sum(self) -> str:
        """See above; partial sums are added up."""
        first, *rest = self._finite_sums
        for other in rest:
            first = self.w.binary("fadd", first, other)
        self._finite_sums = [first]
        return first

    @finite_sum.setter
    def finite_sum(self, value: str) -> None:
        self._finite_sums = [value]

    @contextmanager
    def loop(self, stop: int, step: int, stem: str) -> Iterator[str]:
        """A loop from 0 in which numbers may be added to the finite sum; its index."""
        with self.w.loop(0, stop, step, [self.finite_sum], stem=stem) as (i, carried):
            (self.finite_sum,) = carried
            yield i
            carried[0] = self.finite_sum

    def accumulate_finite_check(self, value: str) -> None:
        """Add 0 x to the sum, NaN if x is not finite; constants need no check.

        Where one sample runs alone there are few other instructions while an addition waits for
        the one before, so there are several sums.
        """
        if is_constant(value):
            return
        w = self.w
        product = w.binary("fmul", value, w.constant(0.0))
        if w.lanes.width == 1 and len(self._finite_sums) < POLICY.partial_sums_alone:
            self._finite_sums.append(product)
            return
        self._finite_sums.append(w.binary("fadd", self._finite_sums.pop(0), product))

    def normalize_quaternion(self, quaternion: Sequence[str]) -> list[str]:
        """A normalized quaternion; the finite sum becomes NaN where it is far from unit.

        With d = |q|² - 1 the scale 1/√(1 + d) is 1 - d/2 + 3d²/8 to less than a rounding for
        every d that is allowed. Where d is rounding alone the scale is one, and no bit changes.
        """
        w = self.w
        kept, most = quaternion_tolerances(
            np.dtype(np.float64 if w.lanes.real == "double" else np.float32)
        )
        square = w.binary("fmul", quaternion[0], quaternion[0])
        for x in quaternion[1:]:
            square = w.binary("fadd", square, w.binary("fmul", x, x))
        d = w.binary("fsub", square, w.constant(1.0))
        size = w.intrinsic("fabs", d)
        bend = w.binary("fadd", w.binary("fmul", d, w.constant(0.375)), w.constant(-0.5))
        scale = w.binary("fadd", w.binary("fmul", d, bend), w.constant(1.0))
        rounding = w.compare_lanes("ole", size, w.constant(kept))
        scale = w.select_lanes(rounding, w.constant(1.0), scale)
        allowed = w.compare_lanes("ole", size, w.constant(most))
        self.accumulate_finite_check(w.select_lanes(allowed, w.constant(0.0), w.constant(math.nan)))
        return [w.binary("fmul", x, scale) for x in quaternion]

    def gather(self, name: str, entry: int | str) -> str:
        """One entry of all lanes."""
        w = self.w
        lanes = w.lanes
        value = "poison"
        for i, row in enumerate(self.rows[name]):
            one = w.load(lanes.real, w.gep(row, entry), lanes.bits // 8)
            value = w.insert_lane(value, one, i)
        if self.check_inputs:
            self.accumulate_finite_check(value)
        return value

    def common_entry(self, name: str, entry: int) -> str:
        """An entry that is the same for all lanes: that of the first one, not checked."""
        w = self.w
        return w.splat(w.load(w.lanes.real, w.gep(self.rows[name][0], entry), w.lanes.bits // 8))

    def gather_tile(self, name: str, entry: int | str) -> list[str]:
        """As many entries as there are lanes."""
        return self.gather_entries(name, entry, self.w.lanes.width)

    def gather_entries(self, name: str, entry: int | str, count: int) -> list[str]:
        """Some entries, a power of two: short rows, as many in a vector as there is room for."""
        w = self.w
        if count == 1:
            return [self.gather(name, entry)]
        part = f"<{count} x {w.lanes.real}>"
        short = [w.load(part, w.gep(row, entry), w.lanes.bits // 8) for row in self.rows[name]]
        rows = [w.concat(short[i::count], count) for i in range(count)]
        for row in rows:
            self.accumulate_finite_check(row)
        return w.transpose(rows)

    def scatter(self, name: str, entry: int | str, value: str) -> None:
        """One entry of all lanes."""
        w = self.w
        lanes = w.lanes
        for i, row in enumerate(self.rows[name]):
            one = w.extract_lane(value, i)
            w.store(lanes.real, one, w.gep(row, entry), lanes.bits // 8)

    def scatter_entries(self, name: str, entry: int | str, values: list[str]) -> None:
        """Some entries, a power of two; a constant is the same in all lanes."""
        w = self.w
        count, width = len(values), w.lanes.width
        if count == 1:
            return self.scatter(name, entry, values[0])
        if all(map(is_constant, values)):
            # Constants: each row is the same vector, made of the first lane of each.
            row = "<" + ", ".join(map(in_one_lane, values)) + ">"
            short = [row] * width
        else:
            rows = w.transpose(values)
            short = [w.extract_lanes(rows[i % count], i - i % count, count) for i in range(width)]
        part = f"<{count} x {w.lanes.real}>"
        for place, value in zip(self.rows[name], short, strict=True):
            w.store(part, value, w.gep(place, entry), w.lanes.bits // 8)


def add_to_slot(w: FunctionBuilder, slot: int | str, values: Sequence[str]) -> None:
    """Add vectors to one of the workspace, for loops that carry no sum."""
    total = values[0]
    for value in values[1:]:
        total = w.binary("fadd", total, value)
    place = w.slot_address(slot)
    w.store_vector(w.binary("fadd", w.load_vector(place), total), place)


def kernel_module(
    signature: Signature,
    lanes: Lanes,
    body: Callable[[SampleBlock], None],
    workspace_vectors: int,
    constants: str = "",
    tune: str = "",
) -> str:
    """The text of a module with one kernel.

    Args:
        signature: Its arrays.
        lanes: Samples side by side.
        body: Writes the work on one block of samples.
        workspace_vectors: Vectors of the workspace that it uses.
        constants: Global definitions that the body refers to.
        tune: LLVM's name of the processor whose timing the code is arranged for, if it is not that
            of the processor that it is made for.
    """
    w = FunctionBuilder(lanes)
    arrays = KernelArguments(w, signature)
    with sample_loop(w) as (sample, status):
        rows = arrays.rows(sample)
        copies = StagedStores(w, signature, workspace_vectors, arrays, sample)
        copies.redirect_rows(rows)
        block = SampleBlock(w, rows)
        body(block)
        status[0] = w.select(emit_finite_test(block), status[0], 1)
        copies.emit_copies()
    if copies.sizes:
        emit_fence(w)
    return wrap_module(w, status[0], constants, tune)


def sample_loop(w: FunctionBuilder) -> Loop:
    """The loop over the blocks of samples of a kernel: the first sample, and the status."""
    return w.loop("%first", "%last", w.lanes.width, ["0"], "i64", maybe_empty=True, stem="block")


def emit_fence(w: FunctionBuilder) -> None:
    """Streaming stores must be done before anything that comes later."""
    w.emit("fence seq_cst")


def wrap_module(w: FunctionBuilder, status: str, before: str, tune: str = "") -> str:
    """The text of a module.

    Args:
        w: The kernel.
        status: Its result.
        before: Definitions that it refers to.
        tune: As for ``kernel_module``.
    """
    w.emit(f"ret i64 {status}")
    arguments = "ptr noalias %args, ptr noalias %work, i64 %first, i64 %last"
    wide = max(w.lanes.width, w.lanes.row_width) * w.lanes.bits
    known = {"prefer-vector-width": f"{wide}", "min-legal-vector-width": f"{wide}"}
    known |= {"tune-cpu": tune} if tune else {}
    listed = " ".join(f'"{name}"="{value}"' for name, value in known.items())
    parts = [
        before,
        w.function_text(f"i64 @kernel({arguments}) nounwind #0"),
        fallback_function(w.lanes),
        math_declarations(w.lanes),
        f"attributes #0 = {{ {listed} }}",
        "!0 = !{i32 1}",
        "",
    ]
    return "\n".join(parts)


def emit_finite_test(block: SampleBlock) -> str:
    """Whether all numbers that a block checked were finite."""
    w = block.w
    return w.all_lanes(w.compare_lanes("ord", block.finite_sum, block.finite_sum))


class KernelArguments:
    """What ``%args`` holds.

    Attributes:
        base: Addresses, by name of input or ``=`` and name of output.
        stores: How large outputs may be written, one of ``STORE_ANYWHERE`` and so on.
    """

    def __init__(self, w: FunctionBuilder, signature: Signature) -> None:
        self.w = w
        self.base: dict[str, str] = {}
        self._stride: dict[str, str] = {}
        names = [*signature.inputs, *(f"={name}" for name in signature.outputs)]
        for i, name in enumerate(names):
            self.base[name] = w.load("ptr", w.gep("%args", 2 * i, "i64"), 8)
            self._stride[name] = w.load("i64", w.gep("%args", 2 * i + 1, "i64"), 8)
        self.stores = w.load("i64", w.gep("%args", 2 * len(names), "i64"), 8)
        self._last_sample = w("sub i64 %last, 1")

    def rows(self, sample: str) -> dict[str, list[str]]:
        """Addresses of the rows of the lanes of a block that begins with a sample."""
        w = self.w
        rows: dict[str, list[str]] = {name: [] for name in self.base}
        for i in range(w.lanes.width):
            index = w.add(sample, i) if i else sample
            if i:
                index = w.select(w.compare("slt", index, "%last"), index, self._last_sample)
            for name, base in self.base.items():
                rows[name].append(w.gep(base, w.mul(index, self._stride[name])))
        return rows


class StagedStores:
    """Large outputs of a block, collected in the workspace and copied with streaming stores."""

    def __init__(
        self,
        w: FunctionBuilder,
        signature: Signature,
        workspace_vectors: int,
        arrays: KernelArguments,
        sample: str,
    ) -> None:
        self.w = w
        self.arrays = arrays
        self.sample = sample
        self.starts: dict[str, int] = {}
        self.sizes = streamed_outputs(signature)
        for name, size in self.sizes.items():
            self.starts[name] = workspace_vectors
            workspace_vectors += size
        self.is_redirected = ""

    def redirect_rows(self, rows: dict[str, list[str]]) -> None:
        """Let full blocks write to the workspace if the caller wants that."""
        if not self.sizes:
            return
        w, width = self.w, self.w.lanes.width
        wanted = w.compare("eq", self.arrays.stores, STORE_STREAMING)
        full = w.compare("sle", w.add(self.sample, width), "%last")
        self.is_redirected = w(f"and i1 {wanted}, {full}")
        for name, size in self.sizes.items():
            for i, row in enumerate(rows[f"={name}"]):
                here = w.gep("%work", self.starts[name] * width + i * size)
                rows[f"={name}"][i] = w.select(self.is_redirected, here, row, "ptr")

    def emit_copies(self) -> None:
        """Copy what was redirected."""
        w = self.w
        if not self.sizes:
            w.start_block()
            return
        with w.if_(self.is_redirected, stem="copy"):
            for name, size in self.sizes.items():
                there = w.gep(self.arrays.base[f"={name}"], w.mul(self.sample, size))
                w.start_block()
                with w.loop(0, size, stem="line") as (i, _):
                    line = w.load_slot(w.add(i, self.starts[name]))
                    w.stream_vector(line, w.gep(there, i, w.lanes.type))
