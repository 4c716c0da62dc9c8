# SPDX-License-Identifier: BSD-3-Clause
"""Joint kinds that prefer no direction of space: spherical, translation and free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phistar.model.joints.kind import Array, JointKind, finite_range
from phistar.spatial import (
    exp_se3,
    log_se3,
    pose,
    quat_conjugate,
    quat_exp,
    quat_log,
    quat_multiply,
    quat_normalize,
    quat_to_rotation,
    random_quaternion,
    rotation_to_quat,
)


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
        low, high = finite_range(lower[:3], upper[:3], np.ones(3))
        position = rng.uniform(low, high, (*shape, 3))
        return np.concatenate([position, random_quaternion(rng, shape)], axis=-1)


def free_configuration(placement: Array) -> Array:
    """Free-joint coordinates [x y z, qx qy qz qw] of a pose (..., 4, 4) -> (..., 7)."""
    quat = rotation_to_quat(placement[..., :3, :3])
    return np.concatenate([placement[..., :3, 3], quat], axis=-1)
