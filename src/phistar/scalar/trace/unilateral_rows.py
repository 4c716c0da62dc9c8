# SPDX-License-Identifier: BSD-3-Clause
"""Rows with one-sided or bounded multipliers, as data: joints that rub and stop, points that touch.

Lengths in metres, angles in radians, forces in newtons or newton metres; places of points and
surfaces in the frame of the model's body that carries them, the world's for the ground.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from phistar.errors import pluralize
from phistar.model.components import GROUND
from phistar.thresholds import POLICY

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class JointRow:
    """A coordinate of a joint that rubs, stops, is damped or has a spring.

    Attributes:
        v: Its entry in the robot's joint vectors.
        q: Its entry in configurations; -1 if velocities are not the rates of one: then it has no
            stops, and its spring rests where the model says.
        lower, upper: Where it stops; infinite if it does not.
        friction: Largest force of dry friction.
        restitution: Fraction of its speed with which it comes back from a stop.
        damping: Viscous, taken at the end of the step.
        stiffness, rest: Of a spring, taken at the end of the step, and where it is slack.
    """

    v: int
    q: int
    lower: float = -math.inf
    upper: float = math.inf
    friction: float = 0.0
    restitution: float = 0.0
    damping: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0

    @property
    def is_bounded(self) -> bool:
        """Whether it has a multiplier: it rubs or stops."""
        return self.friction > 0.0 or math.isfinite(self.lower) or math.isfinite(self.upper)


@dataclass(frozen=True)
class Ball:
    """A sphere on a body, or a point if its radius is zero."""

    body: int
    center: Triple
    radius: float = 0.0


@dataclass(frozen=True)
class Cuboid:
    """A box on a body, or on the ground.

    Attributes:
        body: Its body, or ``GROUND``.
        center: Its middle.
        axes: Its edges' directions, unit vectors.
        half: Half its edges' lengths.
    """

    body: int
    center: Triple
    axes: tuple[Triple, Triple, Triple]
    half: Triple


@dataclass(frozen=True)
class Corner:
    """One of four corners of a box: those of the face that a surface's normal sees.

    On another box it is the point where the edge that begins there comes over the other's face.
    """

    box: Cuboid
    number: int

    @property
    def body(self) -> int:
        """That carries it."""
        return self.box.body


@dataclass(frozen=True)
class Can:
    """A cylinder on a body.

    Attributes:
        body: Its body.
        center: Its middle.
        axes: Its axis and two directions across it, unit vectors.
        radius: Of its rims.
        half: Half its length.
    """

    body: int
    center: Triple
    axes: tuple[Triple, Triple, Triple]
    radius: float
    half: float

    @property
    def rims(self) -> list[Rim]:
        """The points with which it touches."""
        return [Rim(self, number) for number in range(6)]


@dataclass(frozen=True)
class Rim:
    """A point on a rim of a cylinder.

    0 and 1: that of the end that looks at the surface, and of the other, which is nearest to it; 2
    to 5: four of the former, fixed to the cylinder, on which it stands.
    """

    can: Can
    number: int

    @property
    def body(self) -> int:
        """That carries it."""
        return self.can.body


@dataclass(frozen=True)
class Crossing:
    """The edge of a box that crosses an edge of another one; which two, the pair chooses."""

    box: Cuboid

    @property
    def body(self) -> int:
        """That carries it."""
        return self.box.body


@dataclass(frozen=True)
class Rod:
    """A capsule, or a cylinder's side, on a body.

    Attributes:
        body: Its body.
        center: Its middle.
        axis: Its direction, a unit vector.
        half: Half the length of its axis.
        radius: About the axis.
        flat: Whether it ends there: a cylinder touches with its side.
    """

    body: int
    center: Triple
    axis: Triple
    half: float
    radius: float
    flat: bool = False

    @property
    def places(self) -> list[Along]:
        """The points of its axis with which it touches."""
        return [Along(self, number) for number in range(3)]


@dataclass(frozen=True)
class Along:
    """A point on the axis of a rod, with the rod's radius.

    0: that nearest to what is touched; 1 and 2: the ends of the stretch that lies beside it.
    """

    rod: Rod
    number: int

    @property
    def body(self) -> int:
        """That carries it."""
        return self.rod.body


@dataclass(frozen=True)
class HalfSpace:
    """All places x of the world with normal · x <= offset."""

    normal: Triple = (0.0, 0.0, 1.0)
    offset: float = 0.0
    body: int = GROUND


@dataclass(frozen=True)
class GivenPlane:
    """A half space of the world that is an input of the step: four numbers, normal and offset."""

    number: int
    body: int = GROUND


Feature = Ball | Corner | Rim | Crossing | Along | Cuboid
Surface = HalfSpace | GivenPlane | Cuboid | Ball | Rod | Can | Corner


@dataclass(frozen=True)
class ContactRow:
    """A pair that may touch: a normal and two tangential rows.

    Attributes:
        feature: What touches; corners and rims do not touch planes that are inputs. A box touches
            corners.
        surface: What is touched; balls are touched by balls, rods and cylinders by balls and rods.
        friction: Coulomb's coefficient.
        restitution: Fraction of the normal speed that is left after an impact, reversed.
    """

    feature: Feature
    surface: Surface
    friction: float = 1.0
    restitution: float = 0.0


@dataclass(frozen=True)
class StepRows:
    """What acts in a step besides smooth forces.

    Attributes:
        joints: Joints that rub, stop, are damped or have springs.
        contacts: Pairs that may touch.
        sweeps: Rounds of the solver.
        correction: Fraction of a penetration that a step takes back.
    """

    joints: tuple[JointRow, ...] = ()
    contacts: tuple[ContactRow, ...] = ()
    sweeps: int = POLICY.contact_sweeps
    correction: float = POLICY.contact_correction

    def __str__(self) -> str:
        joints, contacts = len(self.joints), len(self.contacts)
        return f"of {pluralize(joints, 'joint')} and {pluralize(contacts, 'contact')}"

    @property
    def bounded(self) -> tuple[JointRow, ...]:
        """Joints that have a multiplier."""
        return tuple(row for row in self.joints if row.is_bounded)

    @property
    def count(self) -> int:
        """Multipliers: one of each joint that rubs or stops, three of each contact."""
        return len(self.bounded) + 3 * len(self.contacts)

    @property
    def given_planes(self) -> int:
        """Planes that are inputs of the step."""
        return sum(isinstance(row.surface, GivenPlane) for row in self.contacts)
