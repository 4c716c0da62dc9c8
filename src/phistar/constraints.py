# SPDX-License-Identifier: BSD-3-Clause
"""Constraints made in Python: for good by ``robot.with_loops(...)``, or for a call.

    robot.with_loops(Point("left_foot"), Point("right_foot"), q=q)      # pinned where they are at q
    robot.forward_dynamics(q, v, tau, constraints=[Weld("tool", "table")])

Each connects a frame, the *successor*, with another one or with the world, the *predecessor*.
``at`` says where: a point (3,) or a pose (4, 4) in the other frame; without it the constraint holds
the frame where it is at the configuration ``q`` of the call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.components import Coupling, Loop, LoopJoint
from phistar.model.joints import Axis
from phistar.model.kinematic_loops import WORLD
from phistar.model.model import Model
from phistar.model.numpy_kinematics import frame_pose
from phistar.spatial import pose, pose_inverse, pose_product

_Z: Axis = (0.0, 0.0, 1.0)

POSE_TOLERANCE = 1e-6
"""How far the numbers of a pose may be from those of a rotation."""


class Constraint(ABC):
    """A constraint between frames or joints, by name."""

    @abstractmethod
    def on(self, model: Model, q: Array | None = None) -> Loop:
        """The loop that it is on a robot.

        Args:
            model: The robot.
            q: (nq,), where the frames are held if the constraint does not say.

        Raises:
            UnknownNameError: There is no such frame or joint.
            ArgumentError: A configuration is needed.
        """

    def anywhere(self, model: Model) -> tuple[Loop, bool]:
        """The same for one call, and whether it holds frames wherever they are.

        Rows of points, hinges and welds do not depend on the place at which a frame is held.
        """
        return self.on(model), False


@dataclass(frozen=True)
class _BetweenFrames(Constraint):
    frame: str
    other: str = WORLD
    at: tuple[float, ...] | ArrayLike | None = None
    name: str = ""

    def _ends(self, model: Model, q: Array | None) -> tuple[str, Array, str, Array]:
        """Link and pose of the predecessor, and of the successor."""
        link, place = _seat(model, self.frame)
        base, base_place = _seat(model, self.other)
        if self.at is None:
            if q is None:
                raise ArgumentError(
                    f"{type(self).__name__}({self.frame!r}) holds the frame where it is, so a "
                    "configuration is needed: with_loops(..., q=q), or say at="
                )
            held = pose_product(
                pose_inverse(_world(model, q, self.other)), _world(model, q, self.frame)
            )
        else:
            given = _finite(self.at, f"at of {type(self).__name__}({self.frame!r})")
            if given.shape == (3,):
                held = pose(translation=given)
            elif given.shape == (4, 4):
                held = _rigid(given, f"at of {type(self).__name__}({self.frame!r})")
            else:
                raise ArgumentError(
                    f"at of {type(self).__name__}({self.frame!r}) has shape {given.shape}, "
                    "expected a point (3,) or a pose (4, 4)"
                )
        return base, pose_product(base_place, held), link, place

    def anywhere(self, model: Model) -> tuple[Loop, bool]:
        """See ``Constraint``."""
        if self.at is None and type(self) in (Point, Weld, Hinge):
            return replace(self, at=(0.0, 0.0, 0.0)).on(model), True
        return self.on(model), False

    def _label(self, kind: str) -> str:
        return self.name or f"{kind} of {self.frame}"

    def _joint(
        self, model: Model, q: Array | None, kind: str, axis: Axis = _Z, size: float = 0.0
    ) -> LoopJoint:
        base, base_pose, link, place = self._ends(model, q)
        return LoopJoint(
            self._label(kind), kind, base, link, base_pose, place, _unit(axis), True, "", size
        )


@dataclass(frozen=True)
class Point(_BetweenFrames):
    """The origin of a frame stays at a point of another frame."""

    def on(self, model: Model, q: Array | None = None) -> Loop:
        """See ``Constraint``."""
        return self._joint(model, q, "spherical")


@dataclass(frozen=True)
class Weld(_BetweenFrames):
    """A frame stays where it is in another frame, in position and orientation."""

    def on(self, model: Model, q: Array | None = None) -> Loop:
        """See ``Constraint``."""
        return self._joint(model, q, "weld")


@dataclass(frozen=True)
class Hinge(_BetweenFrames):
    """A frame only turns about ``axis``, given in its own axes."""

    axis: Axis = _Z

    def on(self, model: Model, q: Array | None = None) -> Loop:
        """See ``Constraint``."""
        return self._joint(model, q, "revolute", self.axis)


@dataclass(frozen=True)
class Distance(_BetweenFrames):
    """The origin of a frame keeps its distance ``length`` [m] from a point of another frame.

    ``at`` is that point, the other frame's origin by default; without ``length`` the distance is
    the one at the configuration of the call.
    """

    length: float | None = None

    def anywhere(self, model: Model) -> tuple[Loop, bool]:
        """See ``Constraint``; rows do not depend on the length that is kept."""
        if self.length is None:
            return replace(self, length=1.0).on(model), True
        return self.on(model), False

    def on(self, model: Model, q: Array | None = None) -> Loop:
        """See ``Constraint``."""
        point = Point(self.frame, self.other, (0.0, 0.0, 0.0) if self.at is None else self.at)
        base, base_pose, link, place = point._ends(model, q)
        length = self.length
        if length is None:
            if q is None:
                raise ArgumentError(
                    f"Distance({self.frame!r}) keeps the distance at a configuration: "
                    "with_loops(..., q=q), or say length="
                )
            first = pose_product(_world(model, q, base), base_pose)
            second = pose_product(_world(model, q, link), place)
            gap = second[:3, 3] - first[:3, 3]
            length = float(np.sqrt(gap @ gap))
        if not length > 0.0:
            raise ArgumentError(f"length of {self._label('distance')} is {length}, expected > 0")
        label = self._label("distance")
        return LoopJoint(label, "distance", base, link, base_pose, place, _Z, True, "", length)


@dataclass(frozen=True)
class Rolling(_BetweenFrames):
    """A sphere around a frame rolls on a plane without slipping; with ``axis`` a thin disc.

    The plane is z = 0 of the other frame, or of the pose ``at`` in it. Only the height is a
    condition on the configuration.

    Attributes:
        radius: [m].
        axis: Of the disc, in the axes of ``frame``; None: a sphere.
    """

    radius: float = 0.0
    axis: Axis | None = None

    def on(self, model: Model, q: Array | None = None) -> Loop:
        """See ``Constraint``."""
        if not self.radius > 0.0:
            raise ArgumentError(
                f"radius of {self._label('rolling')} is {self.radius}, expected > 0"
            )
        plane = np.eye(4) if self.at is None else self.at
        kind = "rolling" if self.axis is None else "rolling_disc"
        seated = Point(self.frame, self.other, plane, self._label("rolling"))
        return seated._joint(model, q, kind, self.axis or _Z, self.radius)


@dataclass(frozen=True)
class Gear(Constraint):
    """A joint follows another: joint = offset + ratio · source, or a polynomial of it.

    Attributes:
        joint, source: Names of joints with one coordinate.
        ratio: Turns of the joint per turn of the source.
        offset: [rad or m].
        coefficients: c₀, c₁, …, instead of ratio and offset.
    """

    joint: str
    source: str
    ratio: float = 1.0
    offset: float = 0.0
    coefficients: tuple[float, ...] | None = None
    name: str = ""

    def on(self, model: Model, q: Array | None = None) -> Loop:
        """See ``Constraint``."""
        for joint in (self.joint, self.source):
            if joint not in model.joints:
                raise UnknownNameError("joint", joint, model.joints, model.name)
            if model.joints[joint].joint_kind.nv != 1:
                raise ArgumentError(
                    f"joint '{joint}' of a gear is {model.joints[joint].kind}, expected a joint "
                    "with one coordinate"
                )
        if self.joint == self.source:
            raise ArgumentError(f"a gear ties joint '{self.joint}' to itself, expected two joints")
        label = self.name or f"gear {self.joint} {self.source}"
        given = self.coefficients or (self.offset, self.ratio)
        coefficients = _finite(given, f"what '{label}' multiplies with")
        return Coupling(label, self.joint, self.source, tuple(coefficients.tolist()))


@dataclass(frozen=True)
class Prescribed(Constraint):
    """A joint or frame moves as it is told.

    By ``constraints=[...]`` of ``simulate``: for its whole time, by ``motion``, or from the start
    on with ``velocity`` and ``acceleration`` (of frames: a constant velocity). Of
    ``forward_dynamics``, ``constrained_dynamics`` and ``project``: at the instant of the call. The
    multiplier is the force of the drive. Motion in time has no place in a robot, so ``with_loops``
    refuses it.

    Attributes:
        what: Name of a joint with one coordinate, or of a frame.
        velocity: Of the joint; of a frame (6,) [angular; linear] in its own axes at its origin.
        acceleration: Of the joint; of a frame (6,), the rate of those numbers.
        position: Where the joint, or the frame (4, 4) in the world, is at the instant of a call;
            None: wherever it is.
        motion: For a simulation ``f``, with ``f(t)`` the position (number or pose), velocity and
            acceleration at time t [s] from the start; or three arrays of them, an entry for each
            end of a step. Velocities and accelerations have to be the rates of positions.
    """

    what: str
    velocity: float | tuple[float, ...] = 0.0
    acceleration: float | tuple[float, ...] = 0.0
    name: str = ""
    position: float | ArrayLike | None = None
    motion: (
        Callable[[float], tuple[ArrayLike, ArrayLike, ArrayLike]]
        | tuple[ArrayLike, ArrayLike, ArrayLike]
        | None
    ) = None

    def on(self, model: Model, q: Array | None = None) -> Loop:
        """Refused, see there."""
        raise ArgumentError(
            f"Prescribed({self.what!r}) is a motion in time: pass it for a call, "
            "simulate(..., constraints=[...]) or forward_dynamics(..., constraints=[...])"
        )

    def anywhere(self, model: Model) -> tuple[Loop, bool]:
        """See ``Constraint``."""
        label = self.name or f"drive of {self.what}"
        if self.what not in model.joints:
            seated = Weld(self.what, at=(0.0, 0.0, 0.0), name=label).on(model)
            assert isinstance(seated, LoopJoint)
            return seated, True
        if model.joints[self.what].joint_kind.nv != 1:
            raise ArgumentError(
                f"Prescribed({self.what!r}) is a {model.joints[self.what].kind} joint, expected a "
                "joint with one coordinate or a frame"
            )
        return Coupling(label, self.what, "", (0.0,)), True

    def at_rest(self) -> Prescribed:
        """The same without a motion: what robots with it have in common."""
        return Prescribed(self.what, name=self.name)

    def at(self, t: float) -> Prescribed:
        """The same at an instant [s] of a motion that is a function of time, for a call then."""
        if not callable(self.motion):
            raise ArgumentError(f"motion of Prescribed({self.what!r}) is no function of time")
        position, velocity, acceleration = self.motion(t)
        rates = [np.atleast_1d(np.asarray(x, float)) for x in (velocity, acceleration)]
        first, second = (tuple(x.tolist()) for x in rates)
        return Prescribed(self.what, first, second, self.name, position)

    def place(self, model: Model) -> Array | None:
        """The position () or the pose (4, 4) at the instant of a call, None if that is free."""
        if self.position is None:
            return None
        place = _finite(self.position, f"position of Prescribed({self.what!r})")
        if place.shape != (() if self.what in model.joints else (4, 4)):
            raise ArgumentError(
                f"position of Prescribed({self.what!r}) has shape {place.shape}, expected a number "
                "for a joint, a pose (4, 4) for a frame"
            )
        return _rigid(place, f"position of Prescribed({self.what!r})") if place.ndim else place

    def drive(self, model: Model) -> tuple[Array, Array]:
        """Velocity and acceleration of its rows at the instant of a call, (1,) or (6,)."""
        if self.motion is not None:
            raise ArgumentError(
                f"Prescribed({self.what!r}) is a motion in time, and the call is about an instant; "
                "pass it to simulate, or say when: .at(t)"
            )
        size = 1 if self.what in model.joints else 6
        velocity, acceleration = (
            self._rates(name, x, size)
            for name, x in (("velocity", self.velocity), ("acceleration", self.acceleration))
        )
        return velocity, acceleration

    def _rates(self, name: str, given: float | tuple[float, ...], size: int) -> Array:
        told = f"{name} of Prescribed({self.what!r})"
        rates = np.atleast_1d(_finite(given, told))
        if rates.shape == (1,) and not rates.any():
            return np.zeros(size)  # at rest, which is the default
        if rates.shape != (size,):
            expected = "one number for a joint" if size == 1 else "6 numbers for a frame"
            raise ArgumentError(f"{told} is {given!r}, expected {expected}")
        return rates


def _finite(given: ArrayLike, what: str) -> Array:
    """An array of finite numbers."""
    try:
        found = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{what} is {given!r}, expected numbers") from None
    if not np.isfinite(found).all():
        raise ArgumentError(f"{what} is not finite: {found.tolist()}")
    return found


def _rigid(place: Array, what: str) -> Array:
    """A pose (4, 4): a rotation, a place, and the last row of one."""
    R = place[:3, :3]
    turns = np.abs(R.T @ R - np.eye(3)).max() < POSE_TOLERANCE and np.linalg.det(R) > 0.0
    if not turns or np.abs(place[3] - [0.0, 0.0, 0.0, 1.0]).max() > POSE_TOLERANCE:
        raise ArgumentError(
            f"{what} is no pose: its rotation has to be orthonormal with determinant 1, its last "
            "row 0 0 0 1"
        )
    return place


def _unit(axis: Axis) -> Axis:
    a = np.asarray(axis, dtype=float)
    length = float(np.sqrt(a @ a)) if a.shape == (3,) else 0.0
    if not length > 0.0:
        raise ArgumentError(f"axis is {axis}, expected three numbers that are not all zero")
    return tuple((a / length).tolist())


def _seat(model: Model, frame: str) -> tuple[str, Array]:
    """The link that carries a frame, and the frame's pose in it."""
    if frame == WORLD and frame not in model.frames:
        return WORLD, np.eye(4)
    found = model.frame(frame)
    carrier = model.frames[found.link]
    return found.link, pose_product(pose_inverse(carrier.body_pose), found.body_pose)


def _world(model: Model, q: Array, frame: str) -> Array:
    if frame == WORLD and frame not in model.frames:
        return np.eye(4)
    return frame_pose(model, q, frame)


def holds_its_place(constraint: Constraint, model: Model) -> bool:
    """Whether it holds a frame wherever that is, by rows that do not depend on the place."""
    kinds = Point | Weld | Hinge | Distance
    return isinstance(constraint, kinds) and constraint.anywhere(model)[1]


def require_constraints(given: Sequence[Constraint]) -> None:
    """Raise unless these are constraints, one after the other."""
    if isinstance(given, str | Constraint) or not isinstance(given, Sequence):
        raise ArgumentError(
            f"constraints is {given!r}, expected a list of constraints of phistar.constraints, "
            'such as constraints=[Point("foot")]'
        )
    for each in given:
        if not isinstance(each, Constraint):
            raise ArgumentError(
                f"constraints has {each!r} in it, expected constraints of phistar.constraints, "
                'such as Point("foot")'
            )
