# SPDX-License-Identifier: BSD-3-Clause
"""The streams of a program at the ground: sums over links, and what is made of them there."""

from __future__ import annotations

from collections.abc import Callable

from phistar.errors import LoweringError
from phistar.scalar.linear.vectors import Vector, plus, scaled, zeros
from phistar.scalar.trace.link_operations import LINK_OPERATIONS, as_vector
from phistar.sweeps.ir import Node, StreamProgram
from phistar.sweeps.op_values import GroundState
from phistar.sweeps.stream_types import GROUND_COMPONENTS


class GroundTracer:
    """Values at the ground, each an affine function of what links add to the sums."""

    def __init__(
        self,
        program: StreamProgram,
        ground: GroundState,
        reduce: Callable[[int, Node], Vector],
        with_constants: bool = True,
    ) -> None:
        """Args:
        program: The streams.
        ground: The robot.
        reduce: What links add to a sum, given its stream and statement.
        with_constants: Whether what is given at the ground counts, too.
        """
        self.program = program
        self.ground = ground
        self.reduce = reduce
        self.with_constants = with_constants

    def value(self, stream: int) -> Vector:
        """The value of a stream."""
        node = self.program.nodes[stream]
        if node.spec.reduction is not None:
            return self.reduce(stream, node)
        if node.op == "ground_point" and self.with_constants:
            return [float(x) for x in self.ground.point]
        if node.op in ("zero", "ground_point"):
            return zeros(GROUND_COMPONENTS[node.type])
        if node.op == "sum":
            total = zeros(GROUND_COMPONENTS[node.type])
            for factor, operand in zip(node.data, node.operands, strict=True):
                total = plus(total, scaled(float(factor), self.value(operand)))
            return total
        if node.op not in LINK_OPERATIONS:
            raise LoweringError(f"the operation {node.op!r} has no scalar form at the ground")
        operands = (self.value(operand) for operand in node.operands)
        return as_vector(LINK_OPERATIONS[node.op](self.ground, *operands))
