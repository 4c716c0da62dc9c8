# SPDX-License-Identifier: BSD-3-Clause
"""The streams of a program at one link, or at all links of a class, as scalars.

What does not depend on the shape of the program is here: given vectors, sums, local operations.
Where the values of other links come from is left to the two kinds of tracers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from phistar.errors import LoweringError
from phistar.scalar import emit
from phistar.scalar.emit import Place
from phistar.scalar.graph import Scalar
from phistar.scalar.inertia import Nothing, carried, conveyed
from phistar.scalar.vectors import Matrix, Vector, cross, plus, times, transposed
from phistar.sweeps.ir import Node, Program, Type


@dataclass(frozen=True)
class Seat:
    """A frame on a body: its rotation and offset in the body's frame."""

    body: int
    rotation: Matrix
    offset: Vector

    def force(self, f: Vector) -> Vector:
        """A force in the frame, in the body's frame."""
        force = times(self.rotation, f[3:])
        return [*plus(times(self.rotation, f[:3]), cross(self.offset, force)), *force]

    def motion(self, x: Vector) -> Vector:
        """A motion in the body's frame, in the frame."""
        turned = transposed(self.rotation)
        moved = plus(x[3:], cross(x[:3], self.offset))
        return [*times(turned, x[:3]), *times(turned, moved)]


@dataclass(frozen=True)
class Unit:
    """A vector that is one in one entry and zero elsewhere.

    Attributes:
        name: Of the vector.
        entry: Where it is one.
        misses: Whether a stream is zero at a link because of that; None where nobody knows.
    """

    name: str
    entry: int
    misses: Callable[[int, int], bool] | None = None


@dataclass(frozen=True)
class Setting:
    """What all links have in common.

    Attributes:
        program: The streams.
        gravity: Acceleration of free fall in the world.
        absent: Inputs that are nothing but zeros.
        unit: A vector of zeros and one, if there is one: a column of a matrix is being traced.
        seats: The frames that such a vector may be about.
    """

    program: Program
    gravity: Sequence[float]
    absent: Set[str] = frozenset()
    unit: Unit | None = None
    seats: tuple[Seat, ...] = ()


class LinkTracer(ABC):
    """Values of streams at one place."""

    def __init__(self, setting: Setting, place: Place, root: bool, number: int, v: int) -> None:
        """Args:
        setting: What all links have in common.
        place: The link with its transform.
        root: Whether its parent is the ground.
        number: Which link it is, or one of the class.
        v: Its first entry in joint vectors.
        """
        self.setting = setting
        self.number = number
        self.program = setting.program
        self.place = place
        self.root = root
        self.v = v
        self.values: dict[int, Any] = {}
        self._common: dict[int, Any] = self.values
        self._own: Set[int] = frozenset()

    def share(self, common: dict[int, Any], own: Set[int]) -> None:
        """Keep the values of all streams but some where other tracers of this link find them."""
        self._common, self._own = common, own

    def value(self, stream: int) -> Any:
        """The value of a stream here."""
        values = self.values if stream in self._own else self._common
        if stream not in values:
            values[stream] = self._value(stream)
        return values[stream]

    def _value(self, stream: int) -> Any:
        node = self.program.nodes[stream]
        misses = None if self.setting.unit is None else self.setting.unit.misses
        if misses is not None and misses(stream, self.number):
            return self._zero(node)
        if node.op == "rec":
            return self.value(self.program.definitions[stream])
        if node.op in ("shin", "cong"):
            return self.of_children(stream, node)
        if node.op in ("shout", "shout_turning"):
            if self.root:
                return [0.0] * 6
            operands = [self.of_parent(o) for o in node.operands]
            move = self.place.outward if node.op == "shout" else self.place.outward_turning
            return move(*operands)
        if node.op == "outcong":
            operand = Nothing() if self.root else self.of_parent(node.operands[0])
            return carried(operand, self.place.rotation, self.place.offset)
        if node.op == "outsim":
            operand = Nothing() if self.root else self.of_parent(node.operands[0])
            return conveyed(operand, self.place.rotation, self.place.offset)
        if node.op == "join" and misses is not None:
            first, second = node.operands
            return self.value(second if misses(first, self.number) else first)
        if node.op == "sum":
            return self._sum(node)
        if node.op in _GIVEN:
            return _GIVEN[node.op](self, node)
        if node.op == "crm" and self._one_axis(node):
            return [0.0] * 6
        if node.op not in emit.LOCAL:
            raise LoweringError(f"the operation {node.op!r} has no scalar form")
        return emit.LOCAL[node.op](self.place, *(self.value(o) for o in node.operands))

    def _one_axis(self, node: Node) -> bool:
        """Whether both operands are motions along the only axis of the joint."""
        moves = all(self.program.nodes[o].op == "Ht" for o in node.operands)
        return moves and len(self.place.link.columns) == 1

    def _sum(self, node: Node) -> Any:
        """Terms in order; of ν - G*l what the joint's own axis gives comes last.

        Then l + H*(ν - G*l) finds it as a number added to what it was taken from.
        """
        total: Any = None
        for factor, stream in zip(node.data, node.operands, strict=True):
            operand = self.program.nodes[stream]
            if operand.op == "Gtx" and factor == -1 and total is not None:
                parts = emit.gain_adjoint_parts(*(self.value(o) for o in operand.operands))
                pairs = zip(total, parts, strict=True)
                total = [(start - rest) - plain for start, (rest, plain) in pairs]
            else:
                total = emit.with_term(total, factor, self.value(stream))
        return total

    def _leaf(self, node: Node) -> Any:
        name, size = node.data, len(self.place.link.columns)
        if name == "gravity" and not self.given("gravity"):
            if not self.root:
                return [0.0] * 6
            upward: Vector = [-g for g in self.setting.gravity]
            return [0.0, 0.0, 0.0, *self.place.rotation.turn_back(upward)]
        if node.type is Type.JOINT:
            return [self._joint_entry(name, i) for i in range(size)]
        if name in self.setting.absent:
            return [0.0] * 6
        x = self._unit_six(name, 6 * self.number)
        x = [self.entry(name, i, "body") for i in range(6)] if x is None else x
        return self.place.seat_force(x) if node.type is Type.FORCE else self.place.seat_motion(x)

    def _joint_entry(self, name: str, i: int) -> Scalar:
        unit = self.setting.unit
        if unit is not None and unit.name == name:
            return 1.0 if unit.entry == self.v + i else 0.0
        return 0.0 if name in self.setting.absent else self.entry(name, i, "v")

    def _unit_six(self, name: str, start: int) -> Vector | None:
        """Six entries of the unit vector, if a name is its."""
        unit = self.setting.unit
        if unit is None or unit.name != name:
            return None
        return [1.0 if unit.entry == start + i else 0.0 for i in range(6)]

    def _scatter(self, node: Node) -> Any:
        """Forces on frames come as forces on the links that carry them."""
        if node.data in self.setting.absent:
            return [0.0] * 6
        if self.setting.unit is not None and self.setting.unit.name == node.data:
            total: Vector = [0.0] * 6
            for i, seat in enumerate(self.setting.seats):
                if seat.body == self.number:
                    total = plus(total, seat.force(self._unit_six(node.data, 6 * i) or total))
            return self.place.seat_force(total)
        return self.place.seat_force([self.entry(node.data, i, "body") for i in range(6)])

    def _rigid(self, node: Node) -> Any:
        return self.place.inertia

    def _zero(self, node: Node) -> Any:
        if node.type in (Type.INERTIA, Type.TRANSFER):
            return Nothing()
        return [0.0] * (len(self.place.link.columns) if node.type is Type.JOINT else 6)

    def given(self, name: str) -> bool:
        """Whether a vector that has a value of its own is given all the same."""
        return name not in self.setting.absent

    @abstractmethod
    def of_children(self, stream: int, node: Node) -> Any:
        """The sum over the children of a force or an inertia, moved here."""

    @abstractmethod
    def of_parent(self, stream: int) -> Any:
        """The value of a stream at the parent."""

    @abstractmethod
    def entry(self, name: str, i: int, base: str) -> Scalar:
        """An entry of this link's own part of an input."""


_GIVEN = {
    "leaf": LinkTracer._leaf,
    "scatter": LinkTracer._scatter,
    "rigid": LinkTracer._rigid,
    "zero": LinkTracer._zero,
}
