# SPDX-License-Identifier: BSD-3-Clause
"""Motion in the plane normal to an axis."""

from dataclasses import dataclass
from typing import ClassVar

from phistar.model.joints.kind import ABOUT_Z, AxisKind, Columns
from phistar.model.joints.number_ops import JointRotation, LogOps, Ops, Turn
from phistar.spatial.entries import Entries, Number


@dataclass(frozen=True)
class Planar(AxisKind):
    """Motion in the plane normal to ``axis``; q = (x, y, angle), v = (vx, vy, w) in child axes.

    The in-plane x and y directions are those of the joint frame turned by the smallest rotation
    that takes z to ``axis`` (so they are the joint frame's own x and y for the axis z).
    """

    name: ClassVar[str] = "planar"
    q_units: ClassVar[tuple[str, ...]] = ("m", "m", "rad")
    coordinate_names: ClassVar[tuple[str, ...]] = ("x", "y", "angle")
    pinocchio_angle: ClassVar[int | None] = 2

    def columns(self) -> Columns:
        return ((3, 1.0),), ((4, 1.0),), ((ABOUT_Z, 1.0),)

    def placement(self, q: Entries, ops: Ops) -> tuple[JointRotation, Entries]:
        return (Turn(2, q[2]),), (q[0], q[1], 0.0)

    def bracket(self, a: Entries, b: Entries) -> list[Number]:
        return [b[2] * a[1] - a[2] * b[1], a[2] * b[0] - b[2] * a[0], 0.0]

    def step(self, q: Entries, u: Entries, ops: Ops) -> list[Number]:
        turn = u[2]
        arc = ops.arc(turn * turn)
        ahead = arc.sine_ratio
        aside = turn * arc.versine_ratio
        x, y = ahead * u[0] - aside * u[1], aside * u[0] + ahead * u[1]
        c, s = ops.cos_sin(q[2])
        return [q[0] + (c * x - s * y), q[1] + (s * x + c * y), q[2] + turn]

    def step_between(self, q0: Entries, q1: Entries, ops: LogOps) -> list[Number]:
        c, s = ops.cos_sin(q0[2])
        dx, dy, turn = q1[0] - q0[0], q1[1] - q0[1], ops.wrapped(q1[2] - q0[2])
        x, y = c * dx + s * dy, c * dy - s * dx
        square, half = turn * turn, 0.5 * turn
        ahead = 1.0 - square * ops.cotangent_defect(square)
        return [ahead * x + half * y, ahead * y - half * x, turn]

    def coordinate_rates(self, q: Entries, v: Entries, ops: Ops) -> list[Number]:
        c, s = ops.cos_sin(q[2])
        return [c * v[0] - s * v[1], s * v[0] + c * v[1], v[2]]

    def velocity(self, q: Entries, rates: Entries, ops: Ops) -> list[Number]:
        c, s = ops.cos_sin(q[2])
        return [c * rates[0] + s * rates[1], c * rates[1] - s * rates[0], rates[2]]

    def displacement(self, q0: Entries, q1: Entries, ops: LogOps) -> list[Number]:
        """The angle, and the straight way of the origin: not the arc between the two."""
        c, s = ops.cos_sin(q1[2])
        dx, dy = q1[0] - q0[0], q1[1] - q0[1]
        return [c * dx + s * dy, c * dy - s * dx, ops.wrapped(q1[2] - q0[2])]
