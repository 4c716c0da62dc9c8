# SPDX-License-Identifier: BSD-3-Clause
"""What a scheduled program costs on a robot: multiplications, additions and divisions, counted.

Counted as a person would do it: a transform is a rotation and an offset, an inertia is symmetric, a
joint map is used with its zeros and ones, a link's own inertia has ten numbers, gravity no angular
part. What vanishes at roots and tips, or without rotors, is left out; other vectors are dense.
Not counted: making the transforms from q, moving forces on frames (B) to their links, and what is
made of sums at the ground, once for all links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from fractions import Fraction

from phistar.model.model import Model
from phistar.sweeps.ir import Direction, Node, StreamProgram, Type
from phistar.sweeps.op_costs import (
    GRAVITY_COST,
    NO_OPERATIONS,
    LinkType,
    OperationCount,
    link_types,
)
from phistar.sweeps.ops import Reduction, Support
from phistar.sweeps.schedule import Schedule
from phistar.sweeps.stream_types import GROUND_COMPONENTS

RIGID_INERTIA_ENTRIES = 15
"""Entries of a rigid inertia's symmetric 6x6 matrix that are not zero by construction."""


@dataclass(frozen=True)
class CostReport:
    """The cost of a program on a robot.

    Attributes:
        by_link: What it costs at each link, in body order.
        by_operation: For each operation of ``sweeps.ir``: how often it is done, and its cost.
        by_stream: For each stream, its cost at all links together.
    """

    by_link: tuple[OperationCount, ...]
    by_operation: dict[str, tuple[int, OperationCount]]
    by_stream: dict[int, OperationCount]

    @property
    def links(self) -> int:
        """Number of links that move."""
        return len(self.by_link)

    @property
    def total(self) -> OperationCount:
        """The cost of all operations."""
        return sum((cost for _, cost in self.by_operation.values()), NO_OPERATIONS)

    def __repr__(self) -> str:
        return f"<{self.total} at links: {self.links}>"

    def __str__(self) -> str:
        dear = sorted(self.by_operation.items(), key=lambda each: -each[1][1].total)
        width = max((len(op) for op, _ in dear), default=0)
        rows = [f"  {op:<{width}}  {times:>4} x  {cost}" for op, (times, cost) in dear]
        return "\n".join([f"{self.total}, at links: {self.links}", *rows])


def count_operations(schedule: Schedule, model: Model) -> CostReport:
    """Count what a program costs on a robot, for one sample.

    Args:
        schedule: The program.
        model: The robot.
    """
    here = link_types(model)
    by_operation: dict[str, tuple[int, OperationCount]] = {}
    by_stream: dict[int, OperationCount] = {}
    by_place: dict[LinkType, OperationCount] = {}
    for place, times in Counter(here).items():
        by_place[place] = NO_OPERATIONS
        for stream, op, cost in _costs_at_link(schedule, place):
            done, spent = by_operation.get(op, (0, NO_OPERATIONS))
            by_operation[op] = (done + times, spent + cost * times)
            by_stream[stream] = by_stream.get(stream, NO_OPERATIONS) + cost * times
            by_place[place] += cost
    return CostReport(tuple(by_place[place] for place in here), by_operation, by_stream)


def _costs_at_link(
    schedule: Schedule, place: LinkType
) -> Iterator[tuple[int, str, OperationCount]]:
    """Streams at one link that are not nothing, with their operations and costs."""
    program = schedule.program
    streams = [stream for each in schedule.sweeps for stream in each.streams]
    absent = zero_streams(program, streams, place)
    for each in schedule.sweeps:
        for stream in each.streams:
            node = program.nodes[stream]
            if node.type.at_ground and node.spec.reduction is None:
                continue
            if stream not in absent and not node.spec.is_free:
                yield stream, node.op, node_cost(program, node, place, absent)
    for stream in program.live():
        if place.root and _is_gravity(program.nodes[stream]):
            yield stream, "gravity", GRAVITY_COST


def _is_gravity(node: Node) -> bool:
    return node.op == "leaf" and node.data == "gravity"


def zero_streams(
    program: StreamProgram, streams: Iterable[int], place: LinkType, known: Set[int] = frozenset()
) -> set[int]:
    """Streams that are zero at a link by its place; ``streams`` are those computed, in order."""
    absent = {s for s in program.live() if _vanishes(program.nodes[s], place)} | known
    for stream in streams:
        node = program.nodes[stream]
        if node.spec.shift is not None:
            continue
        operands = program.operands(stream)
        if node.spec.support is Support.INTERSECTION:
            gone = any(o in absent for o in operands)
        else:
            gone = node.spec.support is Support.UNION and all(o in absent for o in operands)
        if gone:
            absent.add(stream)
    return absent


def _vanishes(node: Node, place: LinkType) -> bool:
    if node.spec.shift is not None:
        return place.root if node.spec.shift is Direction.OUTWARD else place.children == 0
    spec = node.spec
    if spec.only_at_roots or spec.reduction is Reduction.ROOTS or _is_gravity(node):
        return not place.root
    return node.op == "zero" or (node.spec.needs_rotors and not place.rotor_count)


def node_cost(
    program: StreamProgram, node: Node, place: LinkType, absent: Set[int]
) -> OperationCount:
    """The cost of a statement at a link, with the streams that are zero there."""
    if node.op == "sum":
        return _sum(program, node, place, absent)
    cost = node.spec.count(place, *(program.nodes[o] for o in node.operands))
    if node.spec.shift is not Direction.INWARD:
        return cost
    added = OperationCount(0, stream_size(node.type, place.size))
    return cost * place.children + added * (place.children - 1)


def _sum(program: StreamProgram, node: Node, place: LinkType, absent: Set[int]) -> OperationCount:
    terms = [(c, o) for c, o in zip(node.data, node.operands, strict=True) if o not in absent]
    widths = [_width(program.nodes[o], place) for _, o in terms]
    scaled = sum(w for (c, _), w in zip(terms, widths, strict=True) if abs(c) != Fraction(1))
    return OperationCount(scaled, sum(widths) - max(widths))


def _width(node: Node, place: LinkType) -> int:
    """How many numbers of a stream are not zero by construction."""
    if node.op == "rigid":
        return RIGID_INERTIA_ENTRIES
    return 3 if _is_gravity(node) else stream_size(node.type, place.size)


def stream_size(type: Type, size: int) -> int:
    """How many numbers a stream holds at a link whose joint has ``size`` degrees of freedom."""
    if type is Type.JOINT:
        return size
    if type is Type.BLOCK:
        return 6 * size
    if type is Type.FACTOR:
        return size * (size + 1) // 2
    return _SIZES.get(type, type.width)


_SIZES = {Type.INERTIA: 21, Type.TRANSFER: 18, **GROUND_COMPONENTS}
"""The same for types that hold as many at all links; others have their width."""


__all__ = [
    "NO_OPERATIONS",
    "CostReport",
    "OperationCount",
    "count_operations",
    "node_cost",
    "stream_size",
    "zero_streams",
]
