# SPDX-License-Identifier: BSD-3-Clause
"""The streams of a program at the ground: sums over links, and what is made of them there."""

from __future__ import annotations

from collections.abc import Callable

from phistar.errors import LoweringError
from phistar.scalar.linear.vectors import Vector, plus, scaled, zeros
from phistar.sweeps.ir import Node, StreamProgram, Type

GROUND_SIZES = {Type.TOTAL: 1, Type.GROUND_FORCE: 6}
"""How many numbers a value at the ground has, by type."""


class GroundTracer:
    """Values at the ground; linear functions of what links add to the sums."""

    def __init__(self, program: StreamProgram, reduce: Callable[[int, Node], Vector]) -> None:
        """Args:
        program: The streams.
        reduce: What links add to a sum, given its stream and statement.
        """
        self.program = program
        self.reduce = reduce

    def value(self, stream: int) -> Vector:
        """The value of a stream."""
        node = self.program.nodes[stream]
        if node.spec.reduction is not None:
            return self.reduce(stream, node)
        if node.op == "zero":
            return zeros(GROUND_SIZES[node.type])
        if node.op != "sum":
            raise LoweringError(f"the operation {node.op!r} has no scalar form at the ground")
        total = zeros(GROUND_SIZES[node.type])
        for factor, operand in zip(node.data, node.operands, strict=True):
            total = plus(total, scaled(float(factor), self.value(operand)))
        return total
