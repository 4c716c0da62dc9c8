# SPDX-License-Identifier: BSD-3-Clause
"""The streams of a program at one link, or at all links of a class, as scalars.

What does not depend on the shape of the program is here: given vectors, sums, local operations.
Where the values of other links come from is left to the two kinds of tracers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from phistar.errors import LoweringError
from phistar.jobs import checkpoint
from phistar.scalar.graph import Scalar
from phistar.scalar.linear.inertias import ZeroInertia
from phistar.scalar.linear.vectors import Matrix, Vector, cross, plus, times, transposed, zeros
from phistar.scalar.trace import link_operations
from phistar.scalar.trace.link_operations import LinkValue, PlacedLink, as_matrix, as_vector
from phistar.sweeps.ir import Direction, Node, StreamProgram, Type
from phistar.sweeps.op_values import GroundState

EXTERNAL_FORCE = "f_ext"
"""Name of the external forces on links."""

LinkForce = Callable[[int], Vector]
"""Number of a link -> the external force on it, in its axes."""


@dataclass(frozen=True)
class BodyFrame:
    """A frame on a body: its rotation and offset in the body's frame."""

    body: int
    rotation: Matrix
    offset: Vector

    def force_to_body(self, f: Vector) -> Vector:
        """A force in the frame, in the body's frame."""
        force = times(self.rotation, f[3:])
        return [*plus(times(self.rotation, f[:3]), cross(self.offset, force)), *force]

    def motion_to_frame(self, x: Vector) -> Vector:
        """A motion in the body's frame, in the frame."""
        turned = transposed(self.rotation)
        moved = plus(x[3:], cross(x[:3], self.offset))
        return [*times(turned, x[:3]), *times(turned, moved)]


@dataclass(frozen=True)
class UnitVector:
    """A vector that is one in one entry and zero elsewhere.

    Attributes:
        name: Of the vector.
        input_entry: Where it is one.
        is_zero: Whether a stream is zero at a link because of that; None where nobody knows.
    """

    name: str
    entry: int
    is_zero: Callable[[int, int], bool] | None = None


@dataclass(frozen=True)
class TraceContext:
    """What all links have in common.

    Attributes:
        program: The streams.
        gravity: Acceleration of free fall in the world.
        ground: The robot as a whole.
        omitted_inputs: Inputs that are nothing but zeros.
        unit_vector: A vector of zeros and one, if there is one: a column of a matrix is being
            traced.
        body_frames: The frames that such a vector may be about.
        link_force: The external force on a link, in its axes, where it is made of others; None: it
            is an input.
        added: What is added to joint vectors that are inputs, by name.
        joint_places: Where each entry of a joint vector that is given stands in the user's own, and
            what it is multiplied by; none: it is given as it is.
    """

    program: StreamProgram
    gravity: Sequence[float]
    ground: GroundState
    omitted_inputs: Set[str] = frozenset()
    unit_vector: UnitVector | None = None
    body_frames: tuple[BodyFrame, ...] = ()
    link_force: LinkForce | None = None
    added: Mapping[str, Sequence[Scalar]] = field(default_factory=dict)
    joint_places: tuple[tuple[int, float], ...] = ()


class LinkTracer(ABC):
    """Values of streams at one place."""

    def __init__(
        self, setting: TraceContext, place: PlacedLink, root: bool, number: int, v: int
    ) -> None:
        """Args:
        context: What all links have in common.
        placed: The link with its transform.
        is_root: Whether its parent is the ground.
        number: Which link it is, or one of the class.
        v: Its first entry in joint vectors.
        """
        self.context = setting
        unit = setting.unit_vector
        self._is_zero = None if unit is None else unit.is_zero
        self.number = number
        self.program = setting.program
        self.placed = place
        self.is_root = root
        self.v = v
        self.values: dict[int, LinkValue] = {}
        self._common: dict[int, LinkValue] = self.values
        self._own: Set[int] = frozenset()

    def share_values(self, common: dict[int, LinkValue], own: Set[int]) -> None:
        """Keep the values of all streams but some where other tracers of this link find them."""
        self._common, self._own = common, own

    def value(self, stream: int) -> LinkValue:
        """The value of a stream here."""
        values = self.values if stream in self._own else self._common
        if stream not in values:
            values[stream] = self._value(stream)
        return values[stream]

    def _value(self, stream: int) -> LinkValue:
        checkpoint()
        node = self.program.nodes[stream]
        if self._is_zero is not None and self._is_zero(stream, self.number):
            return self._zero(node)
        if node.op == "rec":
            return self.value(self.program.definitions[stream])
        if node.spec.shift is Direction.INWARD:
            return self.sum_over_children(stream, node)
        if node.spec.shift is Direction.OUTWARD:
            return self._from_parent(node)
        if node.op in _OWN_VALUES:
            found: LinkValue = getattr(self, _OWN_VALUES[node.op])(node)
            return found
        if node.op == "crm" and self._one_axis(node):
            return zeros()
        if node.op not in link_operations.LINK_OPERATIONS:
            raise _no_scalar_form(node)
        return link_operations.LINK_OPERATIONS[node.op](
            self.placed, *(self.value(o) for o in node.operands)
        )

    def _from_parent(self, node: Node) -> LinkValue:
        if self.is_root:
            return self._zero(node)
        operands = [self.parent_value(o) for o in node.operands]
        return link_operations.LINK_OPERATIONS[node.op](self.placed, *operands)

    def _select(self, node: Node) -> LinkValue:
        """The first operand, or the second where that is nothing for this column."""
        if self._is_zero is None:
            raise _no_scalar_form(node)
        first, second = node.operands
        return self.value(second if self._is_zero(first, self.number) else first)

    def _one_axis(self, node: Node) -> bool:
        """Whether both operands are motions along the only axis of the joint."""
        moves = all(self.program.nodes[o].op == "Ht" for o in node.operands)
        return moves and len(self.placed.link.columns) == 1

    def _sum(self, node: Node) -> LinkValue:
        """Terms in order; of ν - G*l what the joint's own axis gives comes last.

        Then l + H*(ν - G*l) finds it as a number added to what it was taken from.
        """
        total: LinkValue | None = None
        for factor, stream in zip(node.data, node.operands, strict=True):
            operand = self.program.nodes[stream]
            if operand.op == "Gtx" and factor == -1 and total is not None:
                gain, x = (self.value(o) for o in operand.operands)
                parts = link_operations.gain_adjoint_parts(as_matrix(gain), as_vector(x))
                pairs = zip(as_vector(total), parts, strict=True)
                total = [(start - rest) - plain for start, (rest, plain) in pairs]
            else:
                total = link_operations.add_term(total, factor, self.value(stream))
        assert total is not None
        return total

    def _leaf(self, node: Node) -> LinkValue:
        name, size = node.data, len(self.placed.link.columns)
        if name == "gravity" and not self.is_given("gravity"):
            if not self.is_root:
                return zeros()
            upward: Vector = [-g for g in self.context.gravity]
            return [0.0, 0.0, 0.0, *self.placed.rotation.rotate_back(upward)]
        if node.type is Type.JOINT:
            return [self._joint_entry(name, i) for i in range(size)]
        if name in self.context.omitted_inputs:
            return zeros()
        if name == EXTERNAL_FORCE and self.context.link_force is not None:
            return self.context.link_force(self.number)
        x = self._unit_six(name, 6 * self.number)
        x = [self.input_entry(name, i, "body") for i in range(6)] if x is None else x
        return (
            self.placed.force_to_link_frame(x)
            if node.type is Type.FORCE
            else self.placed.motion_to_link_frame(x)
        )

    def _joint_entry(self, name: str, i: int) -> Scalar:
        unit = self.context.unit_vector
        if unit is not None and unit.name == name:
            return 1.0 if unit.entry == self.v + i else 0.0
        if name in self.context.omitted_inputs:
            return 0.0
        entry = self.input_entry(name, i, "v")
        more = self.context.added.get(name)
        return entry if more is None else entry + more[self.v + i]

    def _unit_six(self, name: str, start: int) -> Vector | None:
        """Six entries of the unit vector, if a name is its."""
        unit = self.context.unit_vector
        if unit is None or unit.name != name:
            return None
        return [1.0 if unit.entry == start + i else 0.0 for i in range(6)]

    def _scatter(self, node: Node) -> Vector:
        """Forces on frames come as forces on the links that carry them."""
        if node.data in self.context.omitted_inputs:
            return zeros()
        if self.context.unit_vector is not None and self.context.unit_vector.name == node.data:
            total = zeros()
            for i, seat in enumerate(self.context.body_frames):
                if seat.body == self.number:
                    total = plus(
                        total, seat.force_to_body(self._unit_six(node.data, 6 * i) or total)
                    )
            return self.placed.force_to_link_frame(total)
        return self.placed.force_to_link_frame(
            [self.input_entry(node.data, i, "body") for i in range(6)]
        )

    def _rigid(self, node: Node) -> LinkValue:
        return self.placed.inertia

    def _mass_point(self, node: Node) -> LinkValue:
        return [*self.placed.link.h, self.placed.link.mass]

    def _coordinate(self, node: Node) -> LinkValue:
        """A row of the root's pose; nothing elsewhere."""
        if not self.is_root:
            return zeros(4)
        i = "xyz".index(node.op[-1])
        unit: Vector = [1.0 if i == j else 0.0 for j in range(3)]
        return [*self.placed.rotation.rotate_back(unit), self.placed.offset[i]]

    def _zero(self, node: Node) -> LinkValue:
        if node.type in (Type.INERTIA, Type.TRANSFER):
            return ZeroInertia()
        own = len(self.placed.link.columns)
        return zeros(own if node.type is Type.JOINT else node.type.width)

    def is_given(self, name: str) -> bool:
        """Whether a vector that has a value of its own is given all the same."""
        return name not in self.context.omitted_inputs

    @abstractmethod
    def sum_over_children(self, stream: int, node: Node) -> LinkValue:
        """The sum over the children of a force or an inertia, moved here."""

    @abstractmethod
    def parent_value(self, stream: int) -> LinkValue:
        """The value of a stream at the parent."""

    @abstractmethod
    def input_entry(self, name: str, i: int, base: str) -> Scalar:
        """An entry of this link's own part of an input."""


def _no_scalar_form(node: Node) -> LoweringError:
    return LoweringError(f"the operation {node.op!r} has no scalar form")


_OWN_VALUES = {
    "leaf": "_leaf",
    "scatter": "_scatter",
    "rigid": "_rigid",
    "mass_point": "_mass_point",
    **{f"coordinate_{axis}": "_coordinate" for axis in "xyz"},
    "zero": "_zero",
    "sum": "_sum",
    "select": "_select",
}
"""Methods for operations that are more than a function of their operands."""
