# SPDX-License-Identifier: BSD-3-Clause
"""Which columns of which streams a matrix request needs, found from the tree alone.

A matrix is an operator applied to unit columns, one block of columns per link (or frame). A stream
then holds columns at each link, and most are zero: inward sums reach the ancestors of a column's
source, outward ones the links beyond. ``ColumnSupport`` follows the columns forward from their
sources and backward from the wanted blocks; what is on both ways is computed, nothing else. These
are the
walks along ancestor paths: a column inward from its source, a block outward from where branches
meet.

Sets of column blocks are bits of an integer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from phistar.algebra.spaces import JOINT, TASK_FORCE, TASK_MOTION, Space
from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.sweeps.ir import Direction, Node, StreamProgram
from phistar.sweeps.ops import Support
from phistar.sweeps.schedule import Schedule

UNIT_SET = 1
"""The set of a stream without columns."""


@dataclass(frozen=True)
class BlockPartition:
    """How a space falls into blocks on a robot: by joints, by links or by frames.

    Attributes:
        sizes: Size of each block.
        links: The link that holds each block; ``GROUND`` for frames that rest.
    """

    sizes: tuple[int, ...]
    links: tuple[int, ...]

    @classmethod
    def of(cls, space: Space, model: Model, frames: tuple[str, ...]) -> BlockPartition:
        """The blocks of a space."""
        if space in (TASK_FORCE, TASK_MOTION):
            links = tuple(model.frame(name).body for name in frames)
            return cls((6,) * len(links), links)
        sizes = tuple(b.joint_kind.nv if space is JOINT else 6 for b in model.bodies)
        return cls(sizes, tuple(range(len(sizes))))

    @property
    def all(self) -> int:
        """The set of all blocks."""
        return (1 << len(self.sizes)) - 1

    @cached_property
    def _blocks_by_size(self) -> tuple[tuple[int, int], ...]:
        """Sizes that blocks have, each with the bits of its blocks."""
        bits: dict[int, int] = {}
        for block, size in enumerate(self.sizes):
            bits[size] = bits.get(size, 0) | 1 << block
        return tuple(bits.items())

    def width(self, chosen: int) -> int:
        """Number of columns of a set of blocks."""
        return sum(size * (chosen & own).bit_count() for size, own in self._blocks_by_size)

    def sources(self, chosen: int) -> dict[int, int]:
        """The chosen blocks that each link holds."""
        held: dict[int, int] = {}
        for block in set_bits(chosen):
            held[self.links[block]] = held.get(self.links[block], 0) | 1 << block
        return held


def set_bits(chosen: int) -> Iterator[int]:
    """The elements of a set, in order."""
    while chosen:
        lowest = chosen & -chosen
        yield lowest.bit_length() - 1
        chosen ^= lowest


def bit_set(blocks: Iterable[int]) -> int:
    """The set of some blocks."""
    return sum(1 << block for block in set(blocks))


class ColumnSupport:
    """The columns of each stream at each link.

    Attributes:
        column_streams: Streams that hold columns; the others hold one value, whatever is asked.
        present: For each stream, the columns at each link that may be other than zero.
        needed: For each stream, those of them that are computed.
    """

    def __init__(
        self,
        schedule: Schedule,
        model: Model,
        argument: str,
        sources: Mapping[int, int],
        wanted: Mapping[tuple[int, int], int],
    ) -> None:
        """Follow columns through a program.

        Args:
            schedule: The program.
            model: The robot.
            argument: Name of the leaf that holds the unit columns.
            sources: For each link, the columns that start there.
            wanted: For each (stream, link) asked for, the columns.
        """
        self.schedule = schedule
        self.program: StreamProgram = schedule.program
        self.parents = [body.parent for body in model.bodies]
        self.children: list[list[int]] = [[] for _ in model.bodies]
        for body in model.bodies:
            if body.parent != GROUND:
                self.children[body.parent].append(body.index)
        self.rotors = [any(body.armature) for body in model.bodies]
        self.column_streams = dependents(self.program, argument)
        count = len(self.parents)
        self.present = {stream: [0] * count for stream in self.program.live()}
        self.needed = {stream: [0] * count for stream in self.program.live()}
        self._forward(argument, sources)
        self._backward(wanted)

    def execution_order(self) -> Iterator[tuple[int, int]]:
        """(stream, link) in the order of execution, given streams left out."""
        links = range(len(self.parents))
        for each in self.schedule.sweeps:
            for k in links if each.direction is Direction.OUTWARD else reversed(links):
                for stream in each.streams:
                    yield stream, k

    def source_links(self, node: Node, k: int) -> list[int]:
        """The links whose values a statement at link k reads."""
        if node.spec.shift is None:
            return [k]
        if node.spec.shift is Direction.INWARD:
            return self.children[k]
        return [self.parents[k]] if self.parents[k] != GROUND else []

    def _forward(self, argument: str, sources: Mapping[int, int]) -> None:
        for stream, row in self.present.items():
            node = self.program.nodes[stream]
            if stream in self.column_streams and node.spec.is_input and node.data == argument:
                for k, chosen in sources.items():
                    if k != GROUND:
                        row[k] = chosen
            elif node.op == "leaf" and node.data == "gravity":
                row[:] = [int(parent == GROUND) for parent in self.parents]
            elif node.spec.is_given and node.op != "zero":
                row[:] = [UNIT_SET] * len(row)
        for stream, k in self.execution_order():
            self.present[stream][k] = self._reached(stream, k)

    def _reached(self, stream: int, k: int) -> int:
        node = self.program.nodes[stream]
        if node.spec.support is Support.EVERYWHERE:
            return UNIT_SET
        if node.spec.needs_rotors and not self.rotors[k]:
            return 0
        operands = self.program.operands(stream)
        if node.spec.support is Support.UNION:
            total = 0
            for operand in operands:
                for link in self.source_links(node, k):
                    total |= self.present[operand][link]
            return total
        held = [self.present[operand][k] for operand in operands]
        if not all(held):
            return 0
        return next(
            (h for o, h in zip(operands, held, strict=True) if o in self.column_streams), UNIT_SET
        )

    def _backward(self, wanted: Mapping[tuple[int, int], int]) -> None:
        for (stream, k), chosen in wanted.items():
            self.needed[stream][k] |= chosen
        for stream, k in reversed(list(self.execution_order())):
            asked = self.needed[stream][k]
            if stream in self.column_streams:
                asked &= self.present[stream][k]
                self.needed[stream][k] = asked
            if asked:
                self._ask(stream, k, asked)
        for stream in self.column_streams:
            row = zip(self.needed[stream], self.present[stream], strict=True)
            self.needed[stream] = [asked & there for asked, there in row]

    def _ask(self, stream: int, k: int, asked: int) -> None:
        node = self.program.nodes[stream]
        for position, operand in enumerate(self.program.operands(stream)):
            for link in self.source_links(node, k):
                if operand not in self.column_streams:
                    self.needed[operand][link] = UNIT_SET
                elif node.op == "select" and position == 1:
                    first = self.present[node.operands[0]][link]
                    self.needed[operand][link] |= asked & ~first
                else:
                    self.needed[operand][link] |= asked


def dependents(program: StreamProgram, argument: str) -> frozenset[int]:
    """Streams that depend on a leaf."""
    users: dict[int, list[int]] = {}
    found: list[int] = []
    for stream in program.live():
        node = program.nodes[stream]
        if node.spec.is_input and node.data == argument:
            found.append(stream)
        for operand in program.operands(stream):
            users.setdefault(operand, []).append(stream)
    seen = set(found)
    while found:
        for user in users.get(found.pop(), ()):
            if user not in seen:
                seen.add(user)
                found.append(user)
    return frozenset(seen)
