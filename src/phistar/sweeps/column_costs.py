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
from functools import lru_cache

from phistar.model.model import Model
from phistar.sweeps.costs import FORCE_SHIFT, NOTHING, Cost, Place, node_cost, places
from phistar.sweeps.ir import Node, Type
from phistar.sweeps.requests import Part
from phistar.sweeps.support import Blocks, Support

_FREE = frozenset({"rec", "leaf", "scatter", "zero", "rigid", "join"})


def column_cost(
    support: Support,
    model: Model,
    rows: Blocks,
    columns: Blocks,
    asked: Sequence[tuple[Part, Mapping[int, int]]],
) -> Cost:
    """The cost of a request for one sample.

    Args:
        support: What is computed where.
        model: The robot.
        rows, columns: Blocks of the matrix.
        asked: For each part of the program and each row of blocks, the columns asked for.
    """
    tally = _Tally(support, places(model), columns)
    total = sum((tally.statement(stream, k) for stream, k in support.order()), NOTHING)
    return total + tally.assembly(rows, asked)


class _Tally:
    """Costs of statements, with what is known of each column: unit vector, joint axis, or any."""

    def __init__(self, support: Support, where: Sequence[Place], columns: Blocks) -> None:
        self.support = support
        self.program = support.program
        self.where = where
        self.width = lru_cache(maxsize=None)(columns.width)
        self.unit: dict[tuple[int, int], int] = {}
        self.axes: dict[tuple[int, int], int] = {}

    def statement(self, stream: int, k: int) -> Cost:
        """The cost of a stream at a link."""
        support, node = self.support, self.program.nodes[stream]
        if not support.needed[stream][k] or not support.present[stream][k]:
            return NOTHING
        if stream in support.columned:
            return self._columned(stream, node, k, support.needed[stream][k])
        if node.op in _FREE:
            return NOTHING
        absent = {o for o in node.operands if not any(self._present(node, o, k))}
        return node_cost(self.program, node, self.where[k], absent)

    def _present(self, node: Node, operand: int, k: int) -> list[int]:
        return [self.support.present[operand][link] for link in self.support.near(node, k)]

    def _columned(self, stream: int, node: Node, k: int, chosen: int) -> Cost:
        if node.op in _FREE:
            self._inherit(stream, node, k, chosen)
            return NOTHING
        if node.op == "sum":
            return self._sum(stream, node, k, chosen)
        if node.op in ("shin", "shout"):
            return self._shift(node, k, chosen)
        operand = next(o for o in node.operands if o in self.support.columned)
        unit, axes = self._known(operand, k, chosen)
        if node.op == "Ht":
            self.axes[stream, k] = unit
        place = self.where[k]
        each = node_cost(self.program, node, place, set())
        total = each * self.width(chosen & ~unit & ~axes)
        if node.op == "Dsolve" and place.size > 1:
            total += each * self.width(unit)
        if node.op != "inertia":
            return total + each * self.width(axes)
        if axes and self.program.nodes[node.operands[0]].op != "rigid":
            total += place.picked * 6
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

    def _sum(self, stream: int, node: Node, k: int, chosen: int) -> Cost:
        held = [chosen & self.support.present[o][k] for o in node.operands]
        once = twice = 0
        for own in held:
            once, twice = once | own, twice | (once & own)
        unit = axes = 0
        for factor, operand, own in zip(node.data, node.operands, held, strict=True):
            if abs(factor) == 1:
                known = self._known(operand, k, own & ~twice)
                unit, axes = unit | known[0], axes | known[1]
        self.unit[stream, k], self.axes[stream, k] = unit, axes
        size = self.where[k].size if node.type is Type.JOINT else 6
        scaled = sum(
            self.width(own) for c, own in zip(node.data, held, strict=True) if abs(c) != Fraction(1)
        )
        added = sum(self.width(own) for own in held) - self.width(once)
        return Cost(size * scaled, size * added)

    def _shift(self, node: Node, k: int, chosen: int) -> Cost:
        (operand,) = node.operands
        total, once, moved = NOTHING, 0, 0
        for link in self.support.near(node, k):
            own = chosen & self.support.present[operand][link]
            unit, _ = self._known(operand, link, own)
            total += FORCE_SHIFT * self.width(own & ~unit)
            once, moved = once | own, moved + self.width(own)
        return total + Cost(0, 6 * (moved - self.width(once)))

    def assembly(self, rows: Blocks, asked: Sequence[tuple[Part, Mapping[int, int]]]) -> Cost:
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
        return Cost(0, added)
