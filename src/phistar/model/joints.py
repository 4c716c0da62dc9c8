# SPDX-License-Identifier: BSD-3-Clause
"""Joint kinds: what a joint lets its child do. One class a kind, all answering the same questions.

A kind knows its transform X_J(q), its joint map H* (columns span the relative motion, constant in
the child's axes) and how to step, compare and draw configurations. Kinds whose H* is not constant
(universal) are compounds: ``parts`` lists the simple joints that realise them, with massless links
in between. A new class with a ``name`` is all that is needed to add a kind.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.errors import ArgumentError, UnknownNameError
from phistar.spatial import (
    exp_se2,
    exp_se3,
    log_se2,
    log_se3,
    pose,
    quat_conjugate,
    quat_exp,
    quat_log,
    quat_multiply,
    quat_normalize,
    quat_to_rotation,
    random_quaternion,
    rotation_about,
    rotation_between,
    rotation_to_quat,
)

Array = NDArray[Any]
Axis = tuple[float, float, float]

JOINT_KINDS: dict[str, type[JointKind]] = {}
"""Every joint kind by name; filled as the classes below are defined."""


@dataclass(frozen=True)
class JointKind(ABC):
    """What all joint kinds can do. Arrays may have leading batch axes; the last axis is q or v."""

    name: ClassVar[str]
    nq: ClassVar[int]
    nv: ClassVar[int]
    q_units: ClassVar[tuple[str, ...]]
    v_units: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            JOINT_KINDS[cls.name] = cls

    @property
    def parts(self) -> tuple[JointKind, ...]:
        """The simple joints that realise this one, from the parent outward."""
        return (self,)

    @property
    def is_euclidean(self) -> bool:
        """Whether stepping a configuration is plain addition."""
        return True

    @classmethod
    def random_kind(cls, rng: np.random.Generator) -> JointKind:
        """A kind of this class with random parameters."""
        return cls()

    @abstractmethod
    def transform(self, q: Array) -> Array:
        """Pose of the child side in the parent side, (..., nq) -> (..., 4, 4)."""

    @abstractmethod
    def motion_map(self) -> Array:
        """H*: (6, nv) relative spatial velocity per unit v, child axes, [angular; linear]."""

    def neutral(self) -> Array:
        """The configuration at which the transform is the identity, (nq,)."""
        return np.zeros(self.nq)

    def integrate(self, q: Array, dv: Array) -> Array:
        """Configuration reached from q along the tangent dv: X_J(q) exp(H* dv)."""
        return q + dv

    def difference(self, q0: Array, q1: Array) -> Array:
        """Tangent dv with integrate(q0, dv) = q1; the shortest one on rotations."""
        return q1 - q0

    def normalize(self, q: Array) -> Array:
        """q with unit quaternions; other coordinates unchanged."""
        return q

    def random(
        self, rng: np.random.Generator, lower: Array, upper: Array, shape: tuple[int, ...]
    ) -> Array:
        """Random configurations (*shape, nq), uniform inside the limits.

        Unlimited angles are drawn from [-pi, pi), unlimited lengths from [-1, 1) m; a joint
        limited on one side only is drawn from the same width beside its limit.
        """
        width = np.where(np.array(self.q_units) == "rad", math.pi, 1.0)
        low, high = _finite_range(lower, upper, width)
        return rng.uniform(low, high, (*shape, self.nq))


_NO_LIMIT = 1e9
"""Files write "no limit" as a large number; nothing is drawn from out there [rad or m]."""


def _finite_range(lower: Array, upper: Array, width: Array) -> tuple[Array, Array]:
    below, above = np.abs(lower) < _NO_LIMIT, np.abs(upper) < _NO_LIMIT
    low = np.where(below, lower, np.where(above, upper - width, -width))
    high = np.where(above, upper, np.where(below, lower + width, width))
    return low, high


def unit_axis(axis: ArrayLike) -> Axis:
    """``axis`` as a unit 3-vector; an axis that is unit to rounding is kept bit for bit."""
    a = np.asarray(axis, dtype=float)
    if a.shape != (3,) or not np.all(np.isfinite(a)):
        raise ArgumentError(f"an axis needs 3 finite numbers, got {axis!r}")
    length = math.hypot(*a)
    if length < 1e-12:
        raise ArgumentError(f"an axis must not be zero, got {axis!r}")
    if abs(length - 1.0) > 1e-15:
        a = a / length
    return (float(a[0]), float(a[1]), float(a[2]))


def _random_axis(rng: np.random.Generator) -> Axis:
    return unit_axis(rng.normal(size=3))


@dataclass(frozen=True)
class Fixed(JointKind):
    """No motion: the child is merged into its parent's body, its frame survives."""

    name: ClassVar[str] = "fixed"
    nq: ClassVar[int] = 0
    nv: ClassVar[int] = 0
    q_units: ClassVar[tuple[str, ...]] = ()
    v_units: ClassVar[tuple[str, ...]] = ()

    def transform(self, q: Array) -> Array:
        return np.broadcast_to(np.eye(4, dtype=q.dtype), (*q.shape[:-1], 4, 4))

    def motion_map(self) -> Array:
        return np.zeros((6, 0))


@dataclass(frozen=True)
class _OneAxis(JointKind):
    """Shared by the kinds that have one axis, a unit vector in the joint frame."""

    axis: Axis = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis))

    @classmethod
    def random_kind(cls, rng: np.random.Generator) -> JointKind:
        return cls(_random_axis(rng))

    def _axis_like(self, q: Array) -> Array:
        """The axis in the precision of q."""
        return np.asarray(self.axis, dtype=np.result_type(q, np.float32))


@dataclass(frozen=True)
class Revolute(_OneAxis):
    """Rotation about ``axis``; q is the angle."""

    name: ClassVar[str] = "revolute"
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    q_units: ClassVar[tuple[str, ...]] = ("rad",)
    v_units: ClassVar[tuple[str, ...]] = ("rad/s",)

    def transform(self, q: Array) -> Array:
        return pose(rotation_about(self._axis_like(q), q[..., 0]))

    def motion_map(self) -> Array:
        return np.array([[*self.axis, 0.0, 0.0, 0.0]]).T


@dataclass(frozen=True)
class Continuous(Revolute):
    """A revolute joint without limits; q is one angle, any number of turns."""

    name: ClassVar[str] = "continuous"


@dataclass(frozen=True)
class Prismatic(_OneAxis):
    """Sliding along ``axis``; q is the displacement."""

    name: ClassVar[str] = "prismatic"
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    q_units: ClassVar[tuple[str, ...]] = ("m",)
    v_units: ClassVar[tuple[str, ...]] = ("m/s",)

    def transform(self, q: Array) -> Array:
        return pose(translation=q * self._axis_like(q))

    def motion_map(self) -> Array:
        return np.array([[0.0, 0.0, 0.0, *self.axis]]).T


@dataclass(frozen=True)
class Helical(_OneAxis):
    """Screw about ``axis``: turning by q advances by ``pitch * q`` (pitch in m/rad)."""

    pitch: float = 0.01
    name: ClassVar[str] = "helical"
    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    q_units: ClassVar[tuple[str, ...]] = ("rad",)
    v_units: ClassVar[tuple[str, ...]] = ("rad/s",)

    @classmethod
    def random_kind(cls, rng: np.random.Generator) -> JointKind:
        return cls(_random_axis(rng), float(rng.uniform(-0.3, 0.3)))

    def transform(self, q: Array) -> Array:
        axis = self._axis_like(q)
        return pose(rotation_about(axis, q[..., 0]), self.pitch * q * axis)

    def motion_map(self) -> Array:
        axis = np.asarray(self.axis)
        return np.concatenate([axis, self.pitch * axis])[:, None]


@dataclass(frozen=True)
class Cylindrical(_OneAxis):
    """Rotation about and sliding along the same ``axis``; q = (angle, displacement)."""

    name: ClassVar[str] = "cylindrical"
    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    q_units: ClassVar[tuple[str, ...]] = ("rad", "m")
    v_units: ClassVar[tuple[str, ...]] = ("rad/s", "m/s")

    def transform(self, q: Array) -> Array:
        axis = self._axis_like(q)
        return pose(rotation_about(axis, q[..., 0]), q[..., 1:2] * axis)

    def motion_map(self) -> Array:
        h = np.zeros((6, 2))
        h[:3, 0] = self.axis
        h[3:, 1] = self.axis
        return h


@dataclass(frozen=True)
class Universal(_OneAxis):
    """Two revolute joints in a row about ``axis``, then ``axis2``; q = (angle 1, angle 2)."""

    axis2: Axis = (1.0, 0.0, 0.0)
    name: ClassVar[str] = "universal"
    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    q_units: ClassVar[tuple[str, ...]] = ("rad", "rad")
    v_units: ClassVar[tuple[str, ...]] = ("rad/s", "rad/s")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "axis2", unit_axis(self.axis2))
        if abs(float(np.dot(self.axis, self.axis2))) > 1.0 - 1e-9:
            raise ArgumentError(
                f"the two axes of a universal joint must differ, got {self.axis} and {self.axis2}"
            )

    @classmethod
    def random_kind(cls, rng: np.random.Generator) -> JointKind:
        first = _random_axis(rng)
        return cls(first, unit_axis(np.cross(first, _random_axis(rng))))

    @property
    def parts(self) -> tuple[JointKind, ...]:
        return (Revolute(self.axis), Revolute(self.axis2))

    def transform(self, q: Array) -> Array:
        first, second = self.parts
        return np.asarray(first.transform(q[..., :1]) @ second.transform(q[..., 1:]))

    def motion_map(self) -> Array:
        raise ArgumentError(
            "the joint map of a universal joint is not constant in the child's axes; use its parts"
        )


@dataclass(frozen=True)
class Planar(_OneAxis):
    """Motion in the plane normal to ``axis``; q = (x, y, angle), v = (vx, vy, w) in child axes.

    The in-plane x and y directions are those of the joint frame turned by the smallest rotation
    that takes z to ``axis`` (so they are the joint frame's own x and y for the axis z).
    """

    name: ClassVar[str] = "planar"
    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3
    q_units: ClassVar[tuple[str, ...]] = ("m", "m", "rad")
    v_units: ClassVar[tuple[str, ...]] = ("m/s", "m/s", "rad/s")

    @property
    def is_euclidean(self) -> bool:
        return False

    def _basis(self) -> Array:
        return np.asarray(rotation_between((0.0, 0.0, 1.0), self.axis))

    def transform(self, q: Array) -> Array:
        axis = self._axis_like(q)
        in_plane = q[..., :2] @ self._basis()[:, :2].T.astype(axis.dtype)
        return pose(rotation_about(axis, q[..., 2]), in_plane)

    def motion_map(self) -> Array:
        h = np.zeros((6, 3))
        h[3:, :2] = self._basis()[:, :2]
        h[:3, 2] = self.axis
        return h

    def integrate(self, q: Array, dv: Array) -> Array:
        step = exp_se2(dv)
        c, s = np.cos(q[..., 2]), np.sin(q[..., 2])
        x = q[..., 0] + c * step[..., 0] - s * step[..., 1]
        y = q[..., 1] + s * step[..., 0] + c * step[..., 1]
        return np.stack([x, y, q[..., 2] + dv[..., 2]], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        c, s = np.cos(q0[..., 2]), np.sin(q0[..., 2])
        d = q1 - q0
        x, y = c * d[..., 0] + s * d[..., 1], -s * d[..., 0] + c * d[..., 1]
        return log_se2(np.stack([x, y, d[..., 2]], axis=-1))


@dataclass(frozen=True)
class Spherical(JointKind):
    """Free rotation about a point; q is a unit quaternion xyzw, v the angular velocity in child
    axes."""

    name: ClassVar[str] = "spherical"
    nq: ClassVar[int] = 4
    nv: ClassVar[int] = 3
    q_units: ClassVar[tuple[str, ...]] = ("", "", "", "")
    v_units: ClassVar[tuple[str, ...]] = ("rad/s", "rad/s", "rad/s")

    @property
    def is_euclidean(self) -> bool:
        return False

    def transform(self, q: Array) -> Array:
        return pose(quat_to_rotation(q))

    def motion_map(self) -> Array:
        return np.eye(6)[:, :3]

    def neutral(self) -> Array:
        return np.array([0.0, 0.0, 0.0, 1.0])

    def integrate(self, q: Array, dv: Array) -> Array:
        return quat_normalize(quat_multiply(q, quat_exp(dv)))

    def difference(self, q0: Array, q1: Array) -> Array:
        return quat_log(quat_multiply(quat_conjugate(q0), q1))

    def normalize(self, q: Array) -> Array:
        return quat_normalize(q)

    def random(
        self, rng: np.random.Generator, lower: Array, upper: Array, shape: tuple[int, ...]
    ) -> Array:
        return random_quaternion(rng, shape)


@dataclass(frozen=True)
class Translation(JointKind):
    """Free sliding in three directions without rotation; q = (x, y, z)."""

    name: ClassVar[str] = "translation"
    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3
    q_units: ClassVar[tuple[str, ...]] = ("m", "m", "m")
    v_units: ClassVar[tuple[str, ...]] = ("m/s", "m/s", "m/s")

    def transform(self, q: Array) -> Array:
        return pose(translation=q)

    def motion_map(self) -> Array:
        return np.eye(6)[:, 3:]


@dataclass(frozen=True)
class Free(JointKind):
    """All six motions; q = [x y z, qx qy qz qw], v = [angular; linear] velocity in child axes."""

    name: ClassVar[str] = "free"
    nq: ClassVar[int] = 7
    nv: ClassVar[int] = 6
    q_units: ClassVar[tuple[str, ...]] = ("m", "m", "m", "", "", "", "")
    v_units: ClassVar[tuple[str, ...]] = ("rad/s", "rad/s", "rad/s", "m/s", "m/s", "m/s")

    @property
    def is_euclidean(self) -> bool:
        return False

    def transform(self, q: Array) -> Array:
        return pose(quat_to_rotation(q[..., 3:]), q[..., :3])

    def motion_map(self) -> Array:
        return np.eye(6)

    def neutral(self) -> Array:
        return np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])

    def integrate(self, q: Array, dv: Array) -> Array:
        step = exp_se3(dv)
        rotation = quat_to_rotation(q[..., 3:])
        position = q[..., :3] + (rotation @ step[..., :3, 3:])[..., 0]
        quat = quat_normalize(quat_multiply(q[..., 3:], quat_exp(dv[..., :3])))
        return np.concatenate([position, quat], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        relative = quat_multiply(quat_conjugate(q0[..., 3:]), q1[..., 3:])
        rotation = quat_to_rotation(q0[..., 3:])
        offset = (np.swapaxes(rotation, -1, -2) @ (q1[..., :3] - q0[..., :3])[..., None])[..., 0]
        return log_se3(pose(quat_to_rotation(relative), offset))

    def normalize(self, q: Array) -> Array:
        return np.concatenate([q[..., :3], quat_normalize(q[..., 3:])], axis=-1)

    def random(
        self, rng: np.random.Generator, lower: Array, upper: Array, shape: tuple[int, ...]
    ) -> Array:
        low, high = _finite_range(lower[:3], upper[:3], np.ones(3))
        position = rng.uniform(low, high, (*shape, 3))
        return np.concatenate([position, random_quaternion(rng, shape)], axis=-1)


def free_configuration(placement: Array) -> Array:
    """Free-joint coordinates [x y z, qx qy qz qw] of a pose (..., 4, 4) -> (..., 7)."""
    quat = rotation_to_quat(placement[..., :3, :3])
    return np.concatenate([placement[..., :3, 3], quat], axis=-1)


def make_kind(
    name: str,
    axis: Sequence[float] | None = None,
    *,
    pitch: float | None = None,
    axis2: Sequence[float] | None = None,
) -> JointKind:
    """A joint kind by name.

    Args:
        name: One of ``JOINT_KINDS``.
        axis: Axis in the joint frame; kinds without an axis refuse it. Default z.
        pitch: Advance per radian of a helical joint [m/rad].
        axis2: Second axis of a universal joint.

    Raises:
        UnknownNameError: No such kind.
        ArgumentError: A parameter that this kind does not have, or a bad axis.
    """
    if name not in JOINT_KINDS:
        raise UnknownNameError("joint kind", name, JOINT_KINDS)
    cls = JOINT_KINDS[name]
    given = {"axis": axis, "pitch": pitch, "axis2": axis2}
    parameters = {k: v for k, v in given.items() if v is not None}
    unknown = [k for k in parameters if k not in cls.__dataclass_fields__]
    if unknown:
        raise ArgumentError(f"a {name} joint has no {' or '.join(unknown)}")
    return cls(**parameters)


__all__ = [
    "JOINT_KINDS",
    "Continuous",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "JointKind",
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
    "Translation",
    "Universal",
    "free_configuration",
    "make_kind",
    "unit_axis",
]
