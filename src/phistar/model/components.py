# SPDX-License-Identifier: BSD-3-Clause
"""Components of a model: links, joints, frames, loops and shapes. Plain immutable data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.fast_init import fast_init, shared_default
from phistar.model.joints import Axis, JointKind

GROUND = -1
"""Body index of the ground: links welded to the world belong to it."""


def frozen(values: ArrayLike, shape: tuple[int, ...], name: str = "an array") -> Array:
    """A read-only float64 copy of ``values`` with the given shape; frozen arrays are shared.

    Args:
        values: The user's array.
        shape: Required shape.
        name: Name of the array in messages.

    Raises:
        ArgumentError: Wrong shape, or no numbers.
    """
    if isinstance(values, np.ndarray) and _is_frozen(values) and values.shape == shape:
        return values
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        shown = repr(values)
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        raise ArgumentError(f"{name} is {shown}, expected numbers of shape {shape}") from None
    if array.shape != shape:
        given = f"{array.item():g}" if array.ndim == 0 else f"of shape {array.shape}"
        raise ArgumentError(f"{name} is {given}, expected numbers of shape {shape}")
    array.flags.writeable = False
    return array


def _is_frozen(array: Array) -> bool:
    """Whether nothing can change an array: it is read-only and no view of another one."""
    return not array.flags.writeable and array.base is None and array.dtype == np.float64


IDENTITY = frozen(np.eye(4), (4, 4))
ZERO3 = frozen(np.zeros(3), (3,))
ZERO33 = frozen(np.zeros((3, 3)), (3, 3))


def _constant(array: Array) -> Array:
    """A dataclass field that defaults to one shared read-only array."""
    return shared_default(array, repr=False)


class _NamedPart:
    """Keeps arrays read-only in copies, e.g. by pickle."""

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                state[name] = frozen(value, value.shape)
        vars(self).update(state)


@dataclass(frozen=True, eq=False)
class Shape(_NamedPart):
    """A visual or collision shape, fixed to a link.

    Attributes:
        kind: ``"box"``, ``"cylinder"``, ``"capsule"``, ``"sphere"``, ``"ellipsoid"``, ``"plane"``
            or ``"mesh"``.
        size: box: full edge lengths; cylinder, capsule: (radius, length along z); sphere:
            (radius,); ellipsoid: half axes; mesh: scale. [m]
        pose: (4, 4) pose in the link frame.
        rgba: Colour with components in [0, 1].
        mesh: File name of a mesh as the robot file spells it; never opened by the loaders.
        friction: Coulomb's coefficient of a collision shape; None where the file does not say.
        contype, conaffinity: Bits of a collision shape, as in MuJoCo: two shapes of robots touch if
            one's contype and the other's conaffinity share one.
    """

    kind: str
    size: tuple[float, ...] = ()
    pose: Array = _constant(IDENTITY)
    rgba: tuple[float, float, float, float] | None = None
    mesh: str = ""
    name: str = ""
    friction: float | None = None
    contype: int = 1
    conaffinity: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", tuple(map(float, self.size)))
        object.__setattr__(self, "pose", frozen(self.pose, (4, 4)))


@fast_init
@dataclass(frozen=True, eq=False)
class Link(_NamedPart):
    """A rigid link as its file describes it.

    Attributes:
        name: Unique name.
        mass: [kg].
        com: (3,) centre of mass in the link frame [m].
        inertia: (3, 3) rotational inertia about the centre of mass, link axes [kg m^2].
        visuals, collisions: Shapes.
        excluded: Names of links that it does not touch.
        virtual: True for massless links that only realise a joint and are in no file.
        where: ``file:line`` it was read from.
    """

    name: str
    mass: float = 0.0
    com: Array = _constant(ZERO3)
    inertia: Array = _constant(ZERO33)
    visuals: tuple[Shape, ...] = field(default=(), repr=False)
    collisions: tuple[Shape, ...] = field(default=(), repr=False)
    virtual: bool = False
    where: str = field(default="", repr=False)
    excluded: tuple[str, ...] = field(default=(), repr=False)


@fast_init
@dataclass(frozen=True)
class Limits:
    """Limits of a joint, one number per coordinate; infinite where there is none.

    Attributes:
        lower, upper: Configuration limits, length nq [rad or m]; infinite for quaternions.
        velocity: Largest speed, length nv [rad/s or m/s].
        effort: Largest generalised force, length nv [N m or N].
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    velocity: tuple[float, ...]
    effort: tuple[float, ...]

    @classmethod
    def unlimited(cls, kind: JointKind) -> Limits:
        """No limits at all."""
        inf = math.inf
        return cls((-inf,) * kind.nq, (inf,) * kind.nq, (inf,) * kind.nv, (inf,) * kind.nv)


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: q = multiplier * q(joint) + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Drive:
    """Contribution of a joint's drive and bearing to the dynamics, one number per v.

    Attributes:
        armature: Inertia added to the diagonal of the mass matrix [kg m^2 or kg], constant in the
            axes of v. The momentum of joints with several axes rotates with them, so that the same
            armature along all axes of a free or planar joint resists acceleration in space.
        rotor_inertia: Inertia of the motor's rotor about its own axis [kg m^2].
        gear_ratio: Rotor turns per joint turn; the rotor adds rotor_inertia * gear_ratio^2.
        damping: Viscous damping [N m s/rad or N s/m].
        friction: Dry friction [N m or N].
        stiffness: Spring stiffness [N m/rad or N/m].
        spring_reference: Configuration at which the spring is at rest, length nq.
    """

    armature: tuple[float, ...]
    rotor_inertia: tuple[float, ...]
    gear_ratio: tuple[float, ...]
    damping: tuple[float, ...]
    friction: tuple[float, ...]
    stiffness: tuple[float, ...]
    spring_reference: tuple[float, ...]

    @property
    def reflected_inertia(self) -> tuple[float, ...]:
        """Armature plus rotor inertia times the gear ratio squared, one number per v."""
        if not any(self.rotor_inertia):
            return self.armature
        rows = zip(self.armature, self.rotor_inertia, self.gear_ratio, strict=True)
        return tuple(a + r * g * g for a, r, g in rows)

    @classmethod
    def passive_free(cls, kind: JointKind) -> Drive:
        """No armature, damping, friction or spring."""
        zero, one = (0.0,) * kind.nv, (1.0,) * kind.nv
        spring_rest = tuple(float(x) for x in kind.neutral())
        return cls(zero, zero, one, zero, zero, zero, spring_rest)


@fast_init
@dataclass(frozen=True, eq=False)
class Joint(_NamedPart):
    """A joint between two links.

    Attributes:
        name: Unique name.
        joint_kind: Its kind, with its axes.
        parent, child: Link names.
        origin: (4, 4) pose of the joint frame in the parent link's frame.
        child_pose: (4, 4) pose of the child link's frame in the joint's moved frame (identity in
            URDF; MJCF anchors its joints away from the body frame).
        reference: Configuration of zero displacement in the file's coordinates, length nq; the
            joint transform is X_J(q - reference). Zero except for MJCF's ``ref``.
        q_slice, v_slice: Its coordinates in q and v. A mimic joint has those of the joint it
            follows; a fixed joint empty ones.
        mimic: Set if it follows another joint and is reduced.
        bodies: Indices of the bodies that realise it, from the parent outward (none if fixed).
    """

    name: str
    joint_kind: JointKind
    parent: str
    child: str
    origin: Array = _constant(IDENTITY)
    child_pose: Array = _constant(IDENTITY)
    reference: float = 0.0
    limits: Limits = field(default=Limits((), (), (), ()), repr=False)
    drive: Drive = field(default=Drive((), (), (), (), (), (), ()), repr=False)
    mimic: Mimic | None = None
    q_slice: slice = shared_default(slice(0, 0))
    v_slice: slice = shared_default(slice(0, 0))
    bodies: tuple[int, ...] = ()
    where: str = field(default="", repr=False)

    def placed(self, q_slice: slice, v_slice: slice, bodies: tuple[int, ...]) -> Joint:
        """The same joint with its coordinates and bodies; cheaper than ``replace``."""
        joint = object.__new__(Joint)
        joint.__dict__.update(self.__dict__, q_slice=q_slice, v_slice=v_slice, bodies=bodies)
        return joint

    @property
    def kind(self) -> str:
        """Name of the joint kind, e.g. ``"revolute"``."""
        return self.joint_kind.name

    @property
    def nq(self) -> int:
        """Number of configuration coordinates it owns (0 for fixed and mimic joints)."""
        return 0 if self.mimic else self.joint_kind.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates it owns (0 for fixed and mimic joints)."""
        return 0 if self.mimic else self.joint_kind.nv


@fast_init
@dataclass(frozen=True, eq=False)
class Frame(_NamedPart):
    """A named frame fixed to a link; every link is one.

    Attributes:
        link: Name of the link it is fixed to.
        pose: (4, 4) pose in that link's frame.
        body: Index of the moving body that carries it, or ``GROUND``.
        body_pose: (4, 4) pose in that body's frame.
    """

    name: str
    link: str
    pose: Array = _constant(IDENTITY)
    body: int = GROUND
    body_pose: Array = _constant(IDENTITY)


@dataclass(frozen=True, eq=False)
class LoopJoint(_NamedPart):
    """A joint that closes a loop between a frame of one link and a frame of another.

    Attributes:
        kind: Relative motion that remains free: none (``"weld"``), or a joint kind about ``axis``
            (``"spherical"`` is MJCF's ``connect``: two points stay together); ``"distance"``: two
            points keep a distance; ``"rolling"``, ``"rolling_disc"``: see ``model.loop_kinds``.
        predecessor, successor: Link names; ``"world"`` is the ground.
        predecessor_pose, successor_pose: (4, 4) poses of the two frames in those links.
        axis: Axis in the predecessor frame.
        active: False if the file declares it switched off.
        size: Distance of the two points, or radius of what rolls [m].
    """

    name: str
    kind: str
    predecessor: str
    successor: str
    predecessor_pose: Array = _constant(IDENTITY)
    successor_pose: Array = _constant(IDENTITY)
    axis: Axis = (0.0, 0.0, 1.0)
    active: bool = True
    where: str = field(default="", repr=False)
    size: float = 0.0


@dataclass(frozen=True)
class Coupling:
    """A polynomial coupling of two joint coordinates: y - y0 = sum_i c_i (x - x0)^i.

    Attributes:
        joint: The dependent joint's name (y).
        source: The other joint's name (x), or empty: y is held at y0 + c_0.
        coefficients: c_0, c_1, ...
        references: (y0, x0).
        active: False if the file declares it switched off.
    """

    name: str
    joint: str
    source: str
    coefficients: tuple[float, ...]
    references: tuple[float, float] = (0.0, 0.0)
    active: bool = True
    where: str = field(default="", repr=False)


Loop = LoopJoint | Coupling


@fast_init
@dataclass(frozen=True, eq=False)
class Body(_NamedPart):
    """A moving rigid body of the algorithms, with the simple joint that moves it.

    Fixed joints are merged into bodies and compound joints are split, so a model has as many
    bodies as simple moving joints. The body frame is the joint's moved frame.

    Attributes:
        index, parent: Position in ``Model.bodies`` and that of its parent (``GROUND`` = none).
        joint: Name of the joint it realises.
        link: Name of the first link it carries.
        joint_kind: Simple kind with constant joint map.
        placement: (4, 4) pose of the joint frame in the parent body's frame.
        q_slice, v_slice: Coordinates it moves with (those of the leader if it mimics).
        scale, offset: Joint displacement = scale * q[q_slice] + offset (scale 1 unless it mimics).
        inertia: (10,) inertia parameters about the body frame's origin, all its links together.
        armature: Reflected rotor inertia per v of this body, before ``scale``.
    """

    index: int
    parent: int
    joint: str
    link: str
    joint_kind: JointKind
    placement: Array = field(repr=False)
    q_slice: slice
    v_slice: slice
    scale: float
    offset: float
    inertia: Array = field(repr=False)
    armature: tuple[float, ...] = ()

    def transform(self, q: Array) -> Array:
        """Pose of the body frame in its parent body's frame, (..., nq) -> (..., 4, 4)."""
        coordinates = q[..., self.q_slice]
        if self.scale != 1.0 or self.offset != 0.0:
            coordinates = self.scale * coordinates + self.offset
        relative = self.joint_kind.transform(coordinates)
        return np.asarray(self.placement.astype(relative.dtype, copy=False) @ relative)

    def motion_map(self) -> Array:
        """H*: (6, nv of this joint) body velocity per unit of the coordinates v[v_slice]."""
        return self.scale * self.joint_kind.motion_map()
