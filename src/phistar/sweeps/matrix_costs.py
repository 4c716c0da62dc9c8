# SPDX-License-Identifier: BSD-3-Clause
"""What a matrix request costs on a robot, counted operation by operation and column by column.

The rules of ``sweeps.costs`` for every column that ``support`` holds. Besides: an operation on a
unit column only picks a column of its operator (not so D⁻¹ of more than one row), an inertia times
joint axes is taken like P H*, a link's own inertia times its joint axes is a constant, and columns
of different links are added only where they meet. Placing blocks into the result is not counted,
adding one to another is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from phistar.model.model import Model
from phistar.sweeps.column_support import BlockPartition, ColumnSupport
from phistar.sweeps.costs import node_cost
from phistar.sweeps.ir import Node, Type
from phistar.sweeps.matrix_requests import MatrixTerm
from phistar.sweeps.op_costs import NO_OPERATIONS, LinkType, OperationCount, link_types


def matrix_cost(
    support: ColumnSupport,
    model: Model,
    rows: BlockPartition,
    columns: BlockPartition,
    asked: Sequence[tuple[MatrixTerm, Mapping[int, int]]],
) -> OperationCount:
    """The cost of a request for one sample.

    Args:
        support: What is computed where.
        model: The robot.
        rows, columns: Blocks of the matrix.
        asked: For each part of the program and each row of blocks, the columns asked for.
    """
    tally = _MatrixCounter(support, link_types(model), columns)
    costs = (tally.statement(stream, k) for stream, k in support.execution_order())
    total = sum((cost for cost in costs if cost is not NO_OPERATIONS), NO_OPERATIONS)
    return total + tally.addition_cost(rows, asked)


class _MatrixCounter:
    """Costs of statements, with what is known of each column: unit vector, joint axis, or any."""

    def __init__(
        self, support: ColumnSupport, where: Sequence[LinkType], columns: BlockPartition
    ) -> None:
        self.support = support
        self.program = support.program
        self.link_types = where
        numbers = {place: i for i, place in enumerate(where)}
        self.type_numbers = [numbers[place] for place in where]
        self.costs: dict[tuple[int, int, frozenset[int]], OperationCount] = {}
        self.scaled: dict[int, list[bool]] = {}
        self.width = columns.width
        self.unit: dict[tuple[int, int], int] = {}
        self.axes: dict[tuple[int, int], int] = {}

    def statement(self, stream: int, k: int) -> OperationCount:
        """The cost of a stream at a link."""
        support, node = self.support, self.program.nodes[stream]
        if not support.needed[stream][k] or not support.present[stream][k]:
            return NO_OPERATIONS
        if stream in support.column_streams:
            return self._columned(stream, node, k, support.needed[stream][k])
        if node.spec.is_free:
            return NO_OPERATIONS
        absent = frozenset(o for o in node.operands if not any(self._present(node, o, k)))
        return self._cost(stream, node, k, absent)

    def _cost(
        self, stream: int, node: Node, k: int, absent: frozenset[int] = frozenset()
    ) -> OperationCount:
        """``node_cost``, worked out once for links of a type."""
        key = (stream, self.type_numbers[k], absent)
        if key not in self.costs:
            self.costs[key] = node_cost(self.program, node, self.link_types[k], absent)
        return self.costs[key]

    def _present(self, node: Node, operand: int, k: int) -> list[int]:
        return [self.support.present[operand][link] for link in self.support.source_links(node, k)]

    def _columned(self, stream: int, node: Node, k: int, chosen: int) -> OperationCount:
        if node.spec.is_free:
            self._inherit(stream, node, k, chosen)
            return NO_OPERATIONS
        if node.op == "sum":
            return self._sum(stream, node, k, chosen)
        if node.spec.shift is not None:
            return self._shift(node, k, chosen)
        operand = next(o for o in node.operands if o in self.support.column_streams)
        unit, axes = self._known(operand, k, chosen)
        if node.op == "Ht":
            self.axes[stream, k] = unit
        place = self.link_types[k]
        each = self._cost(stream, node, k)
        total = each * self.width(chosen & ~unit & ~axes)
        if node.op == "Dsolve" and place.size > 1:
            total += each * self.width(unit)
        if node.op != "inertia":
            return total + each * self.width(axes)
        if axes and self.program.nodes[node.operands[0]].op != "rigid":
            total += place.projection_cost * 6
        return total

    def _known(self, stream: int, k: int, chosen: int) -> tuple[int, int]:
        """The chosen columns that are unit vectors, and those that are joint axes."""
        node = self.program.nodes[stream]
        if node.op == "leaf":
            return chosen, 0
        return self.unit.get((stream, k), 0) & chosen, self.axes.get((stream, k), 0) & chosen

    def _inherit(self, stream: int, node: Node, k: int, chosen: int) -> None:
        if node.op == "rec":
            self.unit[stream, k], self.axes[stream, k] = self._known(
                self.program.definitions[stream], k, chosen
            )

    def _sum(self, stream: int, node: Node, k: int, chosen: int) -> OperationCount:
        held = [chosen & self.support.present[o][k] for o in node.operands]
        once = twice = 0
        for own in held:
            once, twice = once | own, twice | (once & own)
        if stream not in self.scaled:
            self.scaled[stream] = [abs(factor) != Fraction(1) for factor in node.data]
        scales = self.scaled[stream]
        unit = axes = 0
        for scale, operand, own in zip(scales, node.operands, held, strict=True):
            if not scale:
                known = self._known(operand, k, own & ~twice)
                unit, axes = unit | known[0], axes | known[1]
        self.unit[stream, k], self.axes[stream, k] = unit, axes
        size = self.link_types[k].size if node.type is Type.JOINT else 6
        scaled = sum(self.width(own) for scale, own in zip(scales, held, strict=True) if scale)
        added = sum(self.width(own) for own in held) - self.width(once)
        return OperationCount(size * scaled, size * added)

    def _shift(self, node: Node, k: int, chosen: int) -> OperationCount:
        (operand,) = node.operands
        each = node.spec.count(self.link_types[k], self.program.nodes[operand])
        total, once, moved = NO_OPERATIONS, 0, 0
        for link in self.support.source_links(node, k):
            own = chosen & self.support.present[operand][link]
            unit, _ = self._known(operand, link, own)
            total += each * self.width(own & ~unit)
            once, moved = once | own, moved + self.width(own)
        return total + OperationCount(0, 6 * (moved - self.width(once)))

    def addition_cost(
        self, rows: BlockPartition, asked: Sequence[tuple[MatrixTerm, Mapping[int, int]]]
    ) -> OperationCount:
        """Additions of blocks that more than one part gives."""
        seen: dict[int, int] = {}
        added = 0
        for part, wanted in asked:
            for row, chosen in wanted.items():
                link = rows.links[row]
                own = chosen & self.support.needed[part.stream][link] if link >= 0 else 0
                if part.kind == "mirror":
                    added += rows.sizes[row] * self.width(own & (1 << row))
                added += rows.sizes[row] * self.width(own & seen.get(row, 0))
                seen[row] = seen.get(row, 0) | own
        return OperationCount(0, added)
