# SPDX-License-Identifier: BSD-3-Clause
"""Free sliding in three directions without rotation."""

from dataclasses import dataclass
from typing import ClassVar

from phistar.model.joints.kind import Columns, JointKind
from phistar.model.joints.number_ops import JointRotation, Ops
from phistar.spatial.entries import Entries


@dataclass(frozen=True)
class Translation(JointKind):
    """Free sliding in three directions without rotation; q = (x, y, z)."""

    name: ClassVar[str] = "translation"
    q_units: ClassVar[tuple[str, ...]] = ("m", "m", "m")
    coordinate_names: ClassVar[tuple[str, ...]] = ("x", "y", "z")

    def columns(self) -> Columns:
        return tuple(((i, 1.0),) for i in range(3, 6))

    def placement(self, q: Entries, ops: Ops) -> tuple[JointRotation, Entries]:
        return (), (q[0], q[1], q[2])
