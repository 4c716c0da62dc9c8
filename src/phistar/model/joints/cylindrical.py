# SPDX-License-Identifier: BSD-3-Clause
"""Rotation about an axis and sliding along it, each on its own."""

from dataclasses import dataclass
from typing import ClassVar

from phistar.model.joints.kind import ABOUT_Z, ALONG_Z, AxisKind, Columns
from phistar.model.joints.number_ops import JointRotation, Ops, Turn
from phistar.spatial.entries import Entries


@dataclass(frozen=True)
class Cylindrical(AxisKind):
    """Rotation about and sliding along the same ``axis``; q = (angle, displacement)."""

    name: ClassVar[str] = "cylindrical"
    q_units: ClassVar[tuple[str, ...]] = ("rad", "m")
    coordinate_names: ClassVar[tuple[str, ...]] = ("angle", "displacement")

    def columns(self) -> Columns:
        return ((ABOUT_Z, 1.0),), ((ALONG_Z, 1.0),)

    def placement(self, q: Entries, ops: Ops) -> tuple[JointRotation, Entries]:
        return (Turn(2, q[0]),), (0.0, 0.0, q[1])
