# SPDX-License-Identifier: BSD-3-Clause
"""Joint kinds with an axis: turning about it, sliding along it, moving in the plane across it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from phistar.errors import ArgumentError
from phistar.model.joints.kind import Array, JointKind
from phistar.spatial import exp_se2, log_se2, pose, rotation_about, rotation_between

Axis = tuple[float, float, float]


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
