# SPDX-License-Identifier: BSD-3-Clause
"""A straight line of short-lived numbers with many results, as functions that share none of them.

LLVM takes more than twice as long for a function of twice as many stores. Each piece writes some of
the results and computes for itself all that these need; what several need is little. Where one
sample runs alone, inputs are checked several entries at a time before the pieces run.
"""

from __future__ import annotations

from collections.abc import Iterator

from phistar.backends.llvm.emit.ir_builder import FunctionBuilder, Lanes
from phistar.backends.llvm.emit.one_sample import check_inputs
from phistar.backends.llvm.emit.skeleton import (
    KernelArguments,
    SampleBlock,
    StagedStores,
    emit_fence,
    emit_finite_test,
    sample_loop,
    wrap_module,
)
from phistar.backends.llvm.emit.unrolled_module import UnrolledEmitter
from phistar.jobs import checkpoint
from phistar.scalar.program import BasicBlock, Unrolled
from phistar.thresholds import POLICY

_ARGUMENTS = "ptr noalias %args, ptr noalias %work, i64 %sample, i64 %last"


def pieces_module(program: Unrolled, lanes: Lanes) -> str:
    """The module of such a line."""
    size = POLICY.stores_per_piece_alone if lanes.width == 1 else POLICY.stores_per_piece
    texts = [_piece_text(i, each, lanes) for i, each in enumerate(_pieces(program, size))]
    w = FunctionBuilder(lanes)
    arrays = KernelArguments(w, program.signature)
    with sample_loop(w) as (sample, status):
        copies = StagedStores(w, program.signature, program.slots, arrays, sample)
        rows = arrays.rows(sample)
        copies.redirect_rows(rows)
        block = SampleBlock(w, rows)
        if lanes.width == 1:
            check_inputs(block, program.signature)
        for i in range(len(texts)):
            given = f"ptr %args, ptr %work, i64 {sample}, i64 %last"
            block.accumulate_finite_check(w(f"call {lanes.type} @piece{i}({given})"))
        status[0] = w.select(emit_finite_test(block), status[0], 1)
        copies.emit_copies()
    if copies.sizes:
        emit_fence(w)
    return wrap_module(w, status[0], "\n".join(texts))


def _pieces(program: Unrolled, size: int) -> Iterator[Unrolled]:
    """Lines for so many of the results each, in their order; constants come last."""
    block = program.block
    known = [store for store in block.stores if isinstance(store.value, float)]
    moving = [store for store in block.stores if not isinstance(store.value, float)]
    for stores in (moving, known):
        for first in range(0, len(stores), size):
            part = BasicBlock(block.graph, stores[first : first + size])
            yield Unrolled(program.signature, part, short_lived=True)


def _piece_text(number: int, piece: Unrolled, lanes: Lanes) -> str:
    """A function that gives a vector of zeros if all that it read and wrote was finite."""
    checkpoint()
    w = FunctionBuilder(lanes)
    arguments = KernelArguments(w, piece.signature)
    rows = arguments.rows("%sample")
    StagedStores(w, piece.signature, piece.slots, arguments, "%sample").redirect_rows(rows)
    block = SampleBlock(w, rows, check_inputs=lanes.width > 1)
    UnrolledEmitter(block, piece).write()
    w.emit(f"ret {lanes.type} {block.finite_sum}")
    return w.function_text(
        f"internal {lanes.type} @piece{number}({_ARGUMENTS}) noinline nounwind #0"
    )
