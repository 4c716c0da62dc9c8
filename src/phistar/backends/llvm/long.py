# SPDX-License-Identifier: BSD-3-Clause
"""A long straight line, perhaps with products of matrices after it, as LLVM text.

Each part of the line is a function: several short ones compile in a fraction of the time of a long
one. Numbers that have a slot are read there again instead of being held for long, which would
take another store and as many loads. What the line gives stays in the workspace until it is done;
then loops move it to the outputs.
"""

from __future__ import annotations

from collections.abc import Mapping

from phistar.backends.llvm.frame import Arrays, Block, as_module, is_finite
from phistar.backends.llvm.moves import Moves, tables
from phistar.backends.llvm.parts import Part, Plan, plan
from phistar.backends.llvm.products import ProductText
from phistar.backends.llvm.straight import Line, arithmetic
from phistar.backends.llvm.writer import Lanes, Writer
from phistar.scalar.graph import operands
from phistar.scalar.program import Straight

SHORT = 5000
"""Nodes and results up to which a line is not cut."""
FEW = 200
"""Results up to which it is not cut either: there is little to move, and it takes the same time."""
PART = 2000
"""Nodes of a part."""
FAR = 40
"""Nodes after which a number is read again."""

_ARGUMENTS = "ptr noalias %args, ptr noalias %work, i64 %sample, i64 %last"


def is_long(program: Straight) -> bool:
    """Whether a line is to be cut; one that has products after it always is."""
    if program.repeats:
        return False
    results = sum(program.signature.outputs.values())
    many = results > FEW and results + len(program.body.live) > SHORT
    return many or bool(program.products)


class LongLine:
    """The module of a long line.

    Attributes:
        room: Vectors of workspace that it needs.
    """

    def __init__(self, program: Straight, lanes: Lanes) -> None:
        self.program = program
        self.lanes = lanes
        self.plan: Plan = plan(program, PART)
        self.room = self.plan.slots

    def text(self) -> str:
        """The text."""
        parts = (self._part(i, part) for i, part in enumerate(self.plan.parts) if i)
        before = [*tables(self.plan.places, self.lanes), self._first(), *parts, self._end()]
        return as_module(self.lanes, "\n".join(before), self._kernel())

    def _first(self) -> str:
        """The part that reads the inputs; its result is that of the kernel."""
        w = Writer(self.lanes)
        w.block("block")
        block = Block(w, Arrays(w, self.program.signature).rows(), "block")
        _PartText(block, self.program, self.plan.parts[0]).write_first(self.plan.constants)
        w.do(f"%status = select i1 {is_finite(block)}, i64 0, i64 1")
        w.do("ret i64 %status")
        return _function(f"i64 @part0({_ARGUMENTS})", w)

    def _part(self, i: int, part: Part) -> str:
        w = Writer(self.lanes)
        w.block("block")
        _PartText(Block(w, {}, "block"), self.program, part).write()
        w.do("ret void")
        return _function(f"void @part{i}(ptr noalias %work)", w)

    def _end(self) -> str:
        """Products and outputs."""
        w, signature = Writer(self.lanes), self.program.signature
        w.block("block")
        arrays = Arrays(w, signature)
        block = Block(w, arrays.rows(), "block")
        moves = Moves(block, signature, arrays)
        products = {product.output: product for product in self.program.products}
        for name in signature.outputs:
            if name not in products:
                moves.move(name)
        for name, product in products.items():
            ProductText(block, product, self.plan.result).write()
            moves.move(name)
        w.do("ret void")
        return _function(f"void @end({_ARGUMENTS})", w)

    def _kernel(self) -> list[str]:
        """The loop over blocks."""
        w, given = Writer(self.lanes), "ptr %args, ptr %work, i64 %sample, i64 %last"
        w.block("entry")
        some = w("icmp slt i64 %first, %last")
        w.do(f"br i1 {some}, label %block, label %exit")
        w.block("block")
        w.do("%sample = phi i64 [%first, %entry], [%next, %block]")
        w.do("%before = phi i64 [0, %entry], [%status, %block]")
        found = w(f"call i64 @part0({given})")
        for i in range(1, len(self.plan.parts)):
            w.do(f"call void @part{i}(ptr %work)")
        w.do(f"call void @end({given})")
        w.do(f"%status = or i64 %before, {found}")
        w.do(f"%next = add i64 %sample, {self.lanes.width}")
        w.do("%more = icmp slt i64 %next, %last")
        w.do("br i1 %more, label %block, label %exit")
        w.block("exit")
        w.do("%result = phi i64 [0, %entry], [%status, %block]")
        # What went past the caches must be there before anything that comes later.
        w.do("fence seq_cst")
        return w.lines


def _function(head: str, w: Writer) -> str:
    return "\n".join([f"define internal {head} nounwind #0 {{", *w.lines, "}"])


class _PartText(Line):
    """One part."""

    def __init__(self, block: Block, program: Straight, part: Part) -> None:
        super().__init__(block, program)
        self.part = part
        self.slots = {**part.reads, **{n: slots[0] for n, slots in part.keeps.items()}}
        self.touched: dict[int, int] = {}

    def write_first(self, constants: Mapping[int, float]) -> None:
        """The first part: constants, inputs and angles."""
        for slot, x in constants.items():
            self._keep(slot, self.w.constant(x))
        self.load_all()
        self.angles(self.part.nodes)
        for number in self.part.nodes:
            if number not in self.names:
                self.node(number)
            for slot in self.part.keeps.get(number, ()):
                self._keep(slot, self.names[number])

    def write(self) -> None:
        """Another part."""
        for at, number in enumerate(self.part.nodes):
            for operand in operands(self.graph.nodes[number]):
                self._find(operand, at)
            self.names[number] = arithmetic(self.w, self.graph, number, self.names)
            self.touched[number] = at
            for slot in self.part.keeps.get(number, ()):
                self._keep(slot, self.names[number])

    def _find(self, number: int, at: int) -> None:
        """Make an operand known."""
        lanes, slot = self.w.lanes, self.slots.get(number)
        if slot is not None and at - self.touched.get(number, -FAR) >= FAR:
            place = self.w.at("%work", slot, lanes.type)
            self.names[number] = self.w.load(lanes.type, place, lanes.bytes)
        elif number not in self.names:
            self.node(number)
        self.touched[number] = at

    def _keep(self, slot: int, value: str) -> None:
        lanes = self.w.lanes
        self.w.store(lanes.type, value, self.w.at("%work", slot, lanes.type), lanes.bytes)
