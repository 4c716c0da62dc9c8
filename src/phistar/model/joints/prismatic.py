# SPDX-License-Identifier: BSD-3-Clause
"""Sliding along an axis."""

from dataclasses import dataclass
from typing import ClassVar

from phistar.model.joints.kind import ALONG_Z, AxisKind, Columns
from phistar.model.joints.number_ops import JointRotation, Ops
from phistar.spatial.entries import Entries


@dataclass(frozen=True)
class Prismatic(AxisKind):
    """Sliding along ``axis``; q is the displacement."""

    name: ClassVar[str] = "prismatic"
    q_units: ClassVar[tuple[str, ...]] = ("m",)
    coordinate_names: ClassVar[tuple[str, ...]] = ("displacement",)

    def columns(self) -> Columns:
        return (((ALONG_Z, 1.0),),)

    def placement(self, q: Entries, ops: Ops) -> tuple[JointRotation, Entries]:
        return (), (0.0, 0.0, q[0])
