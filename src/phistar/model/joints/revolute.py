# SPDX-License-Identifier: BSD-3-Clause
"""Rotation about an axis."""

from dataclasses import dataclass
from typing import ClassVar

from phistar.model.joints.kind import ABOUT_Z, AxisKind, Columns
from phistar.model.joints.number_ops import JointRotation, Ops, Turn
from phistar.spatial.entries import Entries


@dataclass(frozen=True)
class Revolute(AxisKind):
    """Rotation about ``axis``; q is the angle."""

    name: ClassVar[str] = "revolute"
    q_units: ClassVar[tuple[str, ...]] = ("rad",)
    coordinate_names: ClassVar[tuple[str, ...]] = ("angle",)

    def columns(self) -> Columns:
        return (((ABOUT_Z, 1.0),),)

    def placement(self, q: Entries, ops: Ops) -> tuple[JointRotation, Entries]:
        return (Turn(2, q[0]),), (0.0, 0.0, 0.0)
