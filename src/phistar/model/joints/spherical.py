# SPDX-License-Identifier: BSD-3-Clause
"""Free rotation about a point."""

from dataclasses import dataclass
from typing import ClassVar

from phistar.model.joints.kind import Columns, JointKind
from phistar.model.joints.number_ops import JointRotation, LogOps, Ops, QuaternionTurn
from phistar.spatial.entries import Entries, Number, cross, dot, quaternion_product, scaled


@dataclass(frozen=True)
class Spherical(JointKind):
    """Free rotation about a point; q is a unit quaternion xyzw, v the angular velocity in child
    axes."""

    name: ClassVar[str] = "spherical"
    q_units: ClassVar[tuple[str, ...]] = ("", "", "", "")
    v_units: ClassVar[tuple[str, ...]] = ("rad/s", "rad/s", "rad/s")
    coordinate_names: ClassVar[tuple[str, ...]] = ("quaternion x", "y", "z", "w")
    quaternion: ClassVar[int | None] = 0

    def columns(self) -> Columns:
        return tuple(((i, 1.0),) for i in range(3))

    def placement(self, q: Entries, ops: Ops) -> tuple[JointRotation, Entries]:
        return (QuaternionTurn([q[i] for i in range(4)]),), (0.0, 0.0, 0.0)

    def bracket(self, a: Entries, b: Entries) -> list[Number]:
        return cross(a, b)

    def step(self, q: Entries, u: Entries, ops: Ops) -> list[Number]:
        return turned_quaternion(q, u, ops)

    def step_between(self, q0: Entries, q1: Entries, ops: LogOps) -> list[Number]:
        return rotation_vector_between(q0, q1, ops)

    def coordinate_rates(self, q: Entries, v: Entries, ops: Ops) -> list[Number]:
        return quaternion_rates(q, v)

    def velocity(self, q: Entries, rates: Entries, ops: Ops) -> list[Number]:
        return angular_velocity(q, rates)


def quaternion_rates(q: Entries, w: Entries) -> list[Number]:
    """How a quaternion xyzw changes as its axes turn with w, in the moving axes: q w / 2."""
    return scaled(0.5, quaternion_product(q, [*w, 0.0]))


def angular_velocity(q: Entries, rates: Entries) -> list[Number]:
    """The angular velocity in moving axes of a quaternion that changes, its length aside."""
    back = quaternion_product([-q[0], -q[1], -q[2], q[3]], rates)
    return scaled(2.0 / dot(q, q), back[:3])


def turned_quaternion(q: Entries, u: Entries, ops: Ops) -> list[Number]:
    """The unit quaternion xyzw of R(q) exp(ũ)."""
    arc = ops.arc(dot(u, u))
    product = quaternion_product(q, [*scaled(arc.half_sine_ratio, u), arc.half_cosine])
    return scaled(1.0 / ops.sqrt(dot(product, product)), product)


def rotation_vector_between(q0: Entries, q1: Entries, ops: LogOps) -> list[Number]:
    """The shortest rotation vector u with R(q0) exp(ũ) = R(q1)."""
    return ops.rotation_vector(quaternion_product([-q0[0], -q0[1], -q0[2], q0[3]], q1))
