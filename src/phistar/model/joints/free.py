# SPDX-License-Identifier: BSD-3-Clause
"""All six motions: a base that floats."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phistar.arrays import Array
from phistar.model.joints.kind import Columns, JointKind, JointLabels
from phistar.model.joints.number_ops import (
    JointRotation,
    LogOps,
    Ops,
    QuaternionTurn,
    split_entries,
)
from phistar.model.joints.spherical import (
    angular_velocity,
    quaternion_rates,
    rotation_vector_between,
    turned_quaternion,
)
from phistar.spatial import quat_to_rotation, rotation_to_quat
from phistar.spatial.entries import (
    Entries,
    Number,
    cross,
    dot,
    minus,
    plus,
    quaternion_rotate,
    scaled,
)


@dataclass(frozen=True)
class Free(JointKind):
    """All six motions; q = [x y z, qx qy qz qw], v = [angular; linear] velocity in child axes."""

    name: ClassVar[str] = "free"
    q_units: ClassVar[tuple[str, ...]] = ("m", "m", "m", "", "", "", "")
    v_units: ClassVar[tuple[str, ...]] = ("rad/s", "rad/s", "rad/s", "m/s", "m/s", "m/s")
    coordinate_names: ClassVar[tuple[str, ...]] = ("x", "y", "z", "quaternion x", "y", "z", "w")
    quaternion: ClassVar[int | None] = 3

    def columns(self) -> Columns:
        return tuple(((i, 1.0),) for i in range(6))

    def placement(self, q: Entries, ops: Ops) -> tuple[JointRotation, Entries]:
        place = q[0], q[1], q[2]
        return (QuaternionTurn([q[i] for i in range(3, 7)]),), place

    def bracket(self, a: Entries, b: Entries) -> list[Number]:
        linear = minus(cross(a[:3], b[3:]), cross(b[:3], a[3:]))
        return [*cross(a[:3], b[:3]), *linear]

    def step(self, q: Entries, u: Entries, ops: Ops) -> list[Number]:
        w, v = u[:3], u[3:]
        arc = ops.arc(dot(w, w))
        turn = cross(w, v)
        # The second factor loses digits at small angles, as many as the square of w makes up for.
        shift = plus(v, scaled(arc.versine_ratio, turn))
        shift = plus(shift, scaled(arc.sine_defect, cross(w, turn)))
        place = plus(q[:3], quaternion_rotate(q[3:], shift))
        return [*place, *turned_quaternion(q[3:], w, ops)]

    def step_between(self, q0: Entries, q1: Entries, ops: LogOps) -> list[Number]:
        back = [-q0[3], -q0[4], -q0[5], q0[6]]
        shift = quaternion_rotate(back, minus(q1[:3], q0[:3]))
        w = rotation_vector_between(q0[3:], q1[3:], ops)
        turn = cross(w, shift)
        linear = plus(
            minus(shift, scaled(0.5, turn)), scaled(ops.cotangent_defect(dot(w, w)), cross(w, turn))
        )
        return [*w, *linear]

    def coordinate_rates(self, q: Entries, v: Entries, ops: Ops) -> list[Number]:
        return [*quaternion_rotate(q[3:], v[3:]), *quaternion_rates(q[3:], v[:3])]

    def velocity(self, q: Entries, rates: Entries, ops: Ops) -> list[Number]:
        turn = scaled(1.0 / ops.sqrt(dot(q[3:], q[3:])), q[3:])
        back = [-turn[0], -turn[1], -turn[2], turn[3]]
        return [*angular_velocity(q[3:], rates[3:]), *quaternion_rotate(back, rates[:3])]

    def displacement(self, q0: Entries, q1: Entries, ops: LogOps) -> list[Number]:
        """The rotation, and the straight way of the origin: not the screw between the two."""
        back = [-q1[3], -q1[4], -q1[5], q1[6]]
        shift = quaternion_rotate(back, minus(q1[:3], q0[:3]))
        return [*rotation_vector_between(q0[3:], q1[3:], ops), *shift]

    @property
    def labels(self) -> JointLabels:
        moving = "angular rad/s, linear m/s; moving axes"
        return super().labels._replace(velocity_units=moving, force_units="moment N m, force N")

    def velocity_in_pinocchio(self, q: Array) -> Array:
        """[linear; angular] of [angular; linear]."""
        swapped = np.roll(np.eye(6, dtype=q.dtype), 3, axis=0)
        return np.broadcast_to(swapped, (*q.shape[:-1], 6, 6))

    def velocity_in_mujoco(self, q: Array) -> Array:
        """[linear in world axes; angular in body axes] of [angular; linear]."""
        result = np.zeros((*q.shape[:-1], 6, 6), dtype=q.dtype)
        result[..., :3, 3:] = quat_to_rotation(q[..., 3:])
        result[..., 3:, :3] = np.eye(3)
        return result

    def mujoco_bias_velocity(self, q: Array, v: Array) -> Array | None:
        """R (angular x linear): MuJoCo's linear axes are fixed."""
        turned = np.stack(cross(split_entries(v[..., :3]), split_entries(v[..., 3:])), axis=-1)
        world = (quat_to_rotation(q[..., 3:]) @ turned[..., None])[..., 0]
        return np.concatenate([world, np.zeros_like(world)], axis=-1)


def free_configuration(placement: Array) -> Array:
    """Free-joint coordinates [x y z, qx qy qz qw] of a pose (..., 4, 4) -> (..., 7)."""
    quat = rotation_to_quat(placement[..., :3, :3])
    return np.concatenate([placement[..., :3, 3], quat], axis=-1)
