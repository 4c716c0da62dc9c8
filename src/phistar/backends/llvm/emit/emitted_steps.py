# SPDX-License-Identifier: BSD-3-Clause
"""LLVM text that calls kernels one after the other, step after step: a trajectory in one call.

    int64 kernel(int64 plan[], void *work, int64 first, int64 last)

has the form of a kernel, so that batches are cut for threads in the same way. One block of samples
after the other is taken through all steps, so that what passes between kernels stays in the caches.
The buffers of a block lie in the workspace, one row per sample.

The plan is a list of numbers: steps; steps from one result to the next; samples of a block; then
number and first index of each of four tables, and the place of the kernels' own workspace in ours.

    arguments   value, whether it is a place in the workspace    one for each entry of ``args`` of
                                                                 each kernel, at
                                                                 ``ARGUMENTS_OFFSET_BYTES`` in ours
    calls       address of the kernel, place of its ``args``
    inputs      address, sample stride, step stride, size, place of the buffer
    results     the same

Strides count numbers of the kernels' precision, places bytes. Inputs are read at every step, those
whose step stride is zero once. Nothing here knows a robot or a scheme.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from phistar.backends.llvm.emit.ir_builder import FunctionBuilder, Lanes, Operand

HEADER_WORDS = 12
"""Numbers of the plan before its tables."""

ARGUMENTS_OFFSET_BYTES = 64
"""Bytes of the workspace before the arguments of the kernels."""

BUFFER_ROW_WORDS = 5
"""Numbers of a row of the tables of inputs and results."""


_MEMCPY = "@llvm.memcpy.p0.p0.i64"


def stepper_module(real: str = "double") -> str:
    """The module for kernels of a precision, ``"double"`` or ``"float"``."""
    declared = f"declare void {_MEMCPY}(ptr, ptr, i64, i1)"
    return "\n".join(["", _copy_function(real), "", declared, "", _kernel_function(), ""])


def _address(w: FunctionBuilder, start: str, index: Operand, kind: str = "i64") -> str:
    return w(f"getelementptr {kind}, ptr {start}, i64 {index}")


def _word(w: FunctionBuilder, pointer: str) -> str:
    return w(f"load i64, ptr {pointer}")


def _words(w: FunctionBuilder, start: str, indices: range) -> list[str]:
    return [_word(w, _address(w, start, i)) for i in indices]


def _copy_function(real: str) -> str:
    """``@move(row, work, time, sample, rows, out)``: so many rows of an input or a result.

    Of an input that is the same for all samples, its sample stride zero, one row is enough.
    """
    w = FunctionBuilder(Lanes(1, real))
    base = _word(w, "%row")
    across, step, size, place = _words(w, "%row", range(1, BUFFER_ROW_WORDS))
    count = w.mul(size, w.lanes.bytes)
    start = w.add(w.mul("%time", step), w.mul("%sample", across))
    outside = _address(w, w(f"inttoptr i64 {base} to ptr"), start, real)
    buffer = _address(w, "%work", place, "i8")
    rows = w.select(w.compare("eq", across, 0), 1, "%rows")
    with w.while_less(0, rows) as (i, _):
        theirs = _address(w, outside, w.mul(i, across), real)
        ours = _address(w, buffer, w.mul(i, size), real)
        to, of = w.select("%out", theirs, ours, "ptr"), w.select("%out", ours, theirs, "ptr")
        w.emit(f"call void {_MEMCPY}(ptr {to}, ptr {of}, i64 {count}, i1 false)")
    w.emit("ret void")
    arguments = "ptr %row, ptr %work, i64 %time, i64 %sample, i64 %rows, i1 %out"
    return w.function_text(f"internal void @move({arguments})")


class _Plan:
    """The head of the plan."""

    def __init__(self, w: FunctionBuilder) -> None:
        words = _words(w, "%plan", range(HEADER_WORDS))
        self.steps, self.steps_per_result, self.block, *tables, self.kernel_workspace = words
        self.arguments, self.calls, self.inputs, self.results = zip(
            tables[::2], tables[1::2], strict=True
        )


@contextmanager
def _table_rows(
    w: FunctionBuilder, table: tuple[str, str], words: int, stem: str
) -> Iterator[tuple[str, str]]:
    """A loop over the rows of a table of the plan: number and address."""
    count, start = table
    with w.while_less(0, count, stem) as (i, _):
        yield i, _address(w, "%plan", w.add(w.mul(i, words), start))
        w.start_block()


def _kernel_function() -> str:
    w = FunctionBuilder(Lanes(1))
    plan = _Plan(w)
    w.emit("store i64 0, ptr %work")
    start = w("ptrtoint ptr %work to i64")
    arguments = _address(w, "%work", ARGUMENTS_OFFSET_BYTES, "i8")
    kernel_workspace = _address(w, "%work", plan.kernel_workspace, "i8")
    with _table_rows(w, plan.arguments, 2, "fill") as (i, row):
        value, is_place = _word(w, row), _word(w, _address(w, row, 1))
        value = w.add(value, w.mul(is_place, start))
        w.emit(f"store i64 {value}, ptr {_address(w, arguments, i)}")
    with w.while_less("%first", "%last", "block") as (sample, samples):
        left = w(f"sub i64 %last, {sample}")
        samples[0] = count = w.select(w.compare("slt", left, plan.block), left, plan.block)
        with w.while_less(0, plan.steps, "step") as (step, _):
            _emit_step(w, plan, kernel_workspace, step, (sample, count))
            w.start_block()
    w.emit(f"ret i64 {_word(w, '%work')}")
    arguments = "ptr %plan, ptr %work, i64 %first, i64 %last"
    return w.function_text(f"i64 @kernel({arguments}) nounwind")


def _emit_step(
    w: FunctionBuilder, plan: _Plan, kernel_workspace: str, step: str, samples: tuple[str, str]
) -> None:
    """A step of a block of samples, given by the first one and their number."""

    def move(row: str, time: str, out: str) -> None:
        sample, count = samples
        given = f"i64 {time}, i64 {sample}, i64 {count}, i1 {out}"
        w.emit(f"call void @move(ptr {row}, ptr %work, {given})")

    with _table_rows(w, plan.inputs, BUFFER_ROW_WORDS, "read") as (_, row):
        changes = w.compare("ne", _word(w, _address(w, row, 2)), 0)
        wanted = w(f"or i1 {changes}, {w.compare('eq', step, 0)}")
        with w.if_(wanted):
            move(row, step, "false")
    with _table_rows(w, plan.calls, 2, "call") as (_, row):
        kernel, place = _word(w, row), _word(w, _address(w, row, 1))
        arguments = _address(w, "%work", place, "i8")
        kernel = w(f"inttoptr i64 {kernel} to ptr")
        given = f"ptr {arguments}, ptr {kernel_workspace}, i64 0, i64 {samples[1]}"
        status = w(f"call i64 {kernel}({given})")
        before = _word(w, "%work")
        w.emit(f"store i64 {w(f'or i64 {before}, {status}')}, ptr %work")
    done, result = w.add(step, 1), w(f"sdiv i64 {step}, {plan.steps_per_result}")
    due = w.compare("eq", w(f"srem i64 {done}, {plan.steps_per_result}"), 0)
    with w.if_(due, stem="save"), _table_rows(w, plan.results, BUFFER_ROW_WORDS, "write") as saved:
        move(saved[1], result, "true")
