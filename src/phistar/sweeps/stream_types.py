# SPDX-License-Identifier: BSD-3-Clause
"""What streams hold, which way sweeps go, and the types that an operation takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property


class Type(Enum):
    """What a stream holds at each link; ``(INERTIA, MOTION) >> FORCE`` is a signature."""

    MOTION = "motion (6)"
    FORCE = "force (6)"
    JOINT = "joint vector (d)"
    INERTIA = "inertia (6x6, symmetric)"
    BLOCK = "joint block (6xd)"
    FACTOR = "joint inertia (dxd), factored"
    ANGULAR_ACCELERATION_MATRIX = "angular acceleration matrix (3x3)"
    TRANSFER = "force or motion per motion (6x6)"
    NUMBER = "number (1)"
    TOTAL = "number of the whole robot (1)"
    GROUND_FORCE = "force on the ground (6)"
    WORLD_MOTION = "motion in the world (6)"
    POINT = "weighted point (4)"
    PLANE = "affine function of place (4)"
    GROUND_POINT = "weighted point of the world (4)"
    PLACE = "place in the world (3)"

    @cached_property
    def at_ground(self) -> bool:
        """Whether there is one value for the robot, at the ground, and none at the links."""
        return self in GROUND_COMPONENTS

    @property
    def width(self) -> int:
        """How many numbers a value at a link has, of types that have as many at all links."""
        return _WIDTHS.get(self, 6)

    @property
    def output_axes(self) -> int:
        """Axes of an output for one sample: links and components, components, or none."""
        if self is Type.TOTAL:
            return 0
        return 1 if self is Type.JOINT or self.at_ground else 2

    def __rshift__(self, result: Type) -> OpSignature:
        return OpSignature((self,), result)

    def __rrshift__(self, operands: tuple[Type, ...]) -> OpSignature:
        return OpSignature(operands, self)


_WIDTHS = {Type.NUMBER: 1, Type.POINT: 4, Type.PLANE: 4}
GROUND_COMPONENTS = {Type.TOTAL: 1, Type.GROUND_FORCE: 6, Type.GROUND_POINT: 4, Type.PLACE: 3}
"""How many numbers a value at the ground has, by type."""


@dataclass(frozen=True)
class OpSignature:
    """Types of the operands of an operation, and of its result."""

    operands: tuple[Type, ...]
    result: Type

    def __str__(self) -> str:
        operands = ", ".join(each.name for each in self.operands)
        return f"({operands}) >> {self.result.name}"


class Direction(Enum):
    """The way a sweep visits the links."""

    INWARD = "inward"
    OUTWARD = "outward"
