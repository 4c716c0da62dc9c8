# SPDX-License-Identifier: BSD-3-Clause
"""A screw: rotation about an axis and sliding along it in proportion."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phistar.model.joints.kind import ABOUT_Z, ALONG_Z, AxisKind, Columns, JointKind, random_axis
from phistar.model.joints.number_ops import JointRotation, Ops, Turn
from phistar.spatial.entries import Entries


@dataclass(frozen=True)
class Helical(AxisKind):
    """Screw about ``axis``: turning by q advances by ``pitch * q`` (pitch in m/rad)."""

    pitch: float = 0.01
    name: ClassVar[str] = "helical"
    q_units: ClassVar[tuple[str, ...]] = ("rad",)
    coordinate_names: ClassVar[tuple[str, ...]] = ("angle",)
    parameters: ClassVar[tuple[str, ...]] = ("pitch",)

    @classmethod
    def random_kind(cls, rng: np.random.Generator) -> JointKind:
        return cls(random_axis(rng), float(rng.uniform(-0.3, 0.3)))

    def columns(self) -> Columns:
        return (((ABOUT_Z, 1.0), (ALONG_Z, self.pitch)),)

    def placement(self, q: Entries, ops: Ops) -> tuple[JointRotation, Entries]:
        return (Turn(2, q[0]),), (0.0, 0.0, self.pitch * q[0])
