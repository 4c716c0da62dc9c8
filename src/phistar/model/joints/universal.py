# SPDX-License-Identifier: BSD-3-Clause
"""Two revolute joints in a row."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phistar.errors import ArgumentError
from phistar.model.joints.kind import (
    Axis,
    AxisKind,
    CompoundKind,
    JointKind,
    JointLabels,
    random_axis,
    unit_axis,
)
from phistar.model.joints.revolute import Revolute


@dataclass(frozen=True)
class Universal(CompoundKind, AxisKind):
    """Two revolute joints in a row about ``axis``, then ``axis2``; q = (angle 1, angle 2)."""

    axis2: Axis = (1.0, 0.0, 0.0)
    name: ClassVar[str] = "universal"
    q_units: ClassVar[tuple[str, ...]] = ("rad", "rad")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "axis2", unit_axis(self.axis2))
        if abs(float(np.dot(self.axis, self.axis2))) > 1.0 - 1e-9:
            raise ArgumentError(
                f"the two axes of a universal joint must differ, got {self.axis} and {self.axis2}"
            )

    @classmethod
    def random_kind(cls, rng: np.random.Generator) -> JointKind:
        first = random_axis(rng)
        return cls(first, unit_axis(np.cross(first, random_axis(rng))))

    @property
    def parts(self) -> tuple[JointKind, ...]:
        return (Revolute(self.axis), Revolute(self.axis2))

    @property
    def labels(self) -> JointLabels:
        return super().labels._replace(coordinates="two angles")
