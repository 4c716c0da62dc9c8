# SPDX-License-Identifier: BSD-3-Clause
"""Rotation about an axis, any number of turns."""

from dataclasses import dataclass
from typing import ClassVar

from phistar.model.joints.kind import JointKind
from phistar.model.joints.revolute import Revolute


@dataclass(frozen=True)
class Continuous(Revolute):
    """A revolute joint without limits; q is one angle, any number of turns."""

    name: ClassVar[str] = "continuous"
    unlimited: ClassVar[bool] = True
    pinocchio_angle: ClassVar[int | None] = 0

    def canonical(self) -> JointKind:
        """That of a revolute joint: they share code."""
        return Revolute()
