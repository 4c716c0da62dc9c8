# SPDX-License-Identifier: BSD-3-Clause
"""A long unrolled program, perhaps with products of matrices after it, as LLVM text.

Each part of the program is a function: several short ones compile in a fraction of the time of a
long one. Values that have a slot are loaded again instead of being kept in registers for long,
which would take another store and as many loads. Results stay in the workspace until all are there;
then the epilogue stores them to the outputs. Where one sample runs alone, what is a loop over rows
of matrices works on several columns at a time (``one_sample``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from phistar.backends.llvm.emit.banded_products import BandedProductEmitter
from phistar.backends.llvm.emit.epilogue import Epilogue, run_tables, slot_tables
from phistar.backends.llvm.emit.ir_builder import FunctionBuilder, Lanes
from phistar.backends.llvm.emit.matrix_products import ProductEmitter
from phistar.backends.llvm.emit.one_sample import (
    OneSampleEpilogue,
    sum_slots,
    with_rows_of_products,
)
from phistar.backends.llvm.emit.outline_slots import Outline, OutlinedPart, plan_outline
from phistar.backends.llvm.emit.skeleton import (
    KernelArguments,
    SampleBlock,
    emit_fence,
    emit_finite_test,
    sample_loop,
    streamed_outputs,
    wrap_module,
)
from phistar.backends.llvm.emit.unrolled_module import (
    NodeEmitter,
    RowLoopEmitter,
    fused_products,
)
from phistar.backends.policy import CACHE_LINE_BYTES
from phistar.jobs import checkpoint
from phistar.scalar.graph import operands
from phistar.scalar.program import RowLoop, Unrolled
from phistar.thresholds import POLICY

_PART_ARGUMENTS = "ptr noalias %args, ptr noalias %work, i64 %sample, i64 %last"


class OutlinedModule:
    """The module of a long program.

    Attributes:
        workspace_vectors: Vectors of workspace that it needs.
    """

    def __init__(self, program: Unrolled, lanes: Lanes) -> None:
        self.program = program
        if lanes.width == 1:
            self.program = with_rows_of_products(program, lanes.row_width)
        self.lanes = lanes
        self.plan: Outline = plan_outline(self.program, POLICY.nodes_per_function)
        self.sums = self.plan.slots
        sums = max(1, sum_slots(self.program)) if lanes.width == 1 else 1
        self.workspace_vectors = self.plan.slots + sums
        self.kept_zeros = self._kept_zeros()

    def _kept_zeros(self) -> dict[str, list[int]]:
        """Of outputs that keep the zeros that they had, entries that are zero for every state.

        Where a vector of lanes is a part of a line, part of a line could be left as it was, and
        what bypasses the caches would write the rest of it slowly.
        """
        if not self.program.keeps_zeros or self.lanes.bytes != CACHE_LINE_BYTES:
            return {}
        known = self.plan.constants
        found = {
            name: [entry for entry, slot in slots.items() if known.get(slot) == 0.0]
            for name, slots in self.plan.output_slots.items()
            if name in streamed_outputs(self.program.signature)
        }
        return {name: entries for name, entries in found.items() if entries}

    def text(self) -> str:
        """The text."""
        parts = (self._part_text(i, part) for i, part in enumerate(self.plan.parts) if i)
        alone = self.lanes.width == 1
        before = [
            *(() if alone else slot_tables(self.plan.output_slots, self.lanes)),
            *run_tables(self.kept_zeros, self.program.signature.outputs, self.lanes),
            self._first_part(),
            *parts,
            *(self._rows_text(i, each) for i, each in enumerate(self.program.row_loops)),
            *(self._one_sample_epilogue() if alone else self._epilogue()),
        ]
        w, given = FunctionBuilder(self.lanes), "ptr %args, ptr %work"
        with sample_loop(w) as (sample, status):
            first = w(f"call i64 @part0({given}, i64 {sample}, i64 %last)")
            for i in range(1, len(self.plan.parts)):
                w.emit(f"call void @part{i}(ptr %work)")
            for i in range(len(self.program.row_loops)):
                w.emit(f"call void @rows{i}(ptr %work)")
            last = w(f"call i64 @end({given}, i64 {sample}, i64 %last)")
            status[0] = w(f"or i64 {status[0]}, {w(f'or i64 {first}, {last}')}")
        emit_fence(w)
        return wrap_module(w, status[0], "\n".join(before))

    def _first_part(self) -> str:
        """The part that reads the inputs; its result is that of the kernel."""
        w = FunctionBuilder(self.lanes)
        block = SampleBlock(w, KernelArguments(w, self.program.signature).rows("%sample"))
        _PartEmitter(block, self.program, self.plan.parts[0]).emit_first(self.plan.constants)
        return _checked_function("@part0", block)

    def _part_text(self, i: int, part: OutlinedPart) -> str:
        checkpoint()
        w = FunctionBuilder(self.lanes)
        _PartEmitter(SampleBlock(w, {}), self.program, part).write()
        w.emit("ret void")
        return w.function_text(f"internal void @part{i}(ptr noalias %work) nounwind #0")

    def _rows_text(self, i: int, repeat: RowLoop) -> str:
        checkpoint()
        w = FunctionBuilder(self.lanes)
        RowLoopEmitter(SampleBlock(w, {}), repeat, self.plan.row_slots).write()
        w.emit("ret void")
        return w.function_text(f"internal void @rows{i}(ptr noalias %work) nounwind #0")

    def _epilogue(self) -> list[str]:
        """Products and outputs."""
        w, signature = FunctionBuilder(self.lanes), self.program.signature
        arrays = KernelArguments(w, signature)
        block = SampleBlock(w, arrays.rows("%sample"))
        w.store_slot(self.sums, w.constant(0.0))
        moves = Epilogue(block, signature, arrays, self.sums, self.kept_zeros)
        products = {product.output: product for product in self.program.products}
        for name in signature.outputs:
            if name not in products:
                moves.store_output(name)
        tables: list[str] = []
        for name, product in products.items():
            if product.bands:
                banded = BandedProductEmitter(w, product, self.plan.product_slot)
                tables += banded.tables()
                banded.write()
            else:
                ProductEmitter(w, product, self.plan.product_slot).write()
            moves.store_output(name)
        block.accumulate_finite_check(w.load_slot(self.sums))
        return [*tables, _checked_function("@end", block)]

    def _one_sample_epilogue(self) -> list[str]:
        """The same where one sample runs alone."""
        w = FunctionBuilder(self.lanes)
        block = SampleBlock(w, KernelArguments(w, self.program.signature).rows("%sample"))
        OneSampleEpilogue(block, self.program, self.plan.output_slots, self.sums).write()
        return [_checked_function("@end", block)]


def _checked_function(name: str, block: SampleBlock) -> str:
    """A function that returns 0 if all numbers that it read were finite, else 1."""
    block.w.emit(f"ret i64 {block.w.select(emit_finite_test(block), 0, 1)}")
    return block.w.function_text(f"internal i64 {name}({_PART_ARGUMENTS}) nounwind #0")


class _PartEmitter(NodeEmitter):
    """One part."""

    def __init__(self, block: SampleBlock, program: Unrolled, part: OutlinedPart) -> None:
        super().__init__(block, program)
        self.part = part
        self.slots = {**part.live_in, **{n: slots[0] for n, slots in part.live_out.items()}}
        self.last_use: dict[int, int] = {}
        kept = (number for number, slots in part.live_out.items() for _ in slots)
        self.fused = fused_products(self.graph, part.nodes, kept)
        self.done_later = set(self.fused.values())

    def emit_first(self, constants: Mapping[int, float]) -> None:
        """The first part: constants, inputs and angles."""
        for slot, x in constants.items():
            self.w.store_slot(slot, self.w.constant(x))
        self.load_inputs()
        self.emit_angles(self.part.nodes)
        for number in self.part.nodes:
            if number not in self.names and number not in self.done_later:
                self.emit_node_of(number)
            for slot in self.part.live_out.get(number, ()):
                self.w.store_slot(slot, self.names[number])

    def write(self) -> None:
        """Another part."""
        for at, number in enumerate(self.part.nodes):
            if number in self.done_later:
                continue
            for operand in self._needed(number):
                self._load_operand(operand, at)
            self.emit_node_of(number)
            self.last_use[number] = at
            for slot in self.part.live_out.get(number, ()):
                self.w.store_slot(slot, self.names[number])

    def _needed(self, number: int) -> Iterator[int]:
        """What a node uses, in place of a product that it takes in its operands."""
        product = self.fused.get(number)
        for operand in operands(self.graph.nodes[number]):
            yield from operands(self.graph.nodes[product]) if operand == product else (operand,)

    def _load_operand(self, number: int, at: int) -> None:
        """Make an operand known."""
        slot = self.slots.get(number)
        if (
            slot is not None
            and at - self.last_use.get(number, -POLICY.reload_distance_nodes)
            >= POLICY.reload_distance_nodes
        ):
            self.names[number] = self.w.load_slot(slot)
        elif number not in self.names:
            self.emit_node_of(number)
        self.last_use[number] = at
