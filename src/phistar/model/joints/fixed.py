# SPDX-License-Identifier: BSD-3-Clause
"""No motion: the child is merged into its parent's body, its frame survives."""

from dataclasses import dataclass
from typing import ClassVar

from phistar.model.joints.kind import Columns, JointKind
from phistar.model.joints.number_ops import JointRotation, Ops
from phistar.spatial.entries import Entries


@dataclass(frozen=True)
class Fixed(JointKind):
    """No motion: the child is merged into its parent's body, its frame survives."""

    name: ClassVar[str] = "fixed"
    q_units: ClassVar[tuple[str, ...]] = ()

    def columns(self) -> Columns:
        return ()

    def placement(self, q: Entries, ops: Ops) -> tuple[JointRotation, Entries]:
        return (), (0.0, 0.0, 0.0)
