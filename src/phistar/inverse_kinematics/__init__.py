# SPDX-License-Identifier: BSD-3-Clause
"""Inverse kinematics: configurations in which frames, axes or the centre of mass are where wanted.

``robot.inverse_kinematics({"hand": T})`` for poses; other targets are the classes below.
"""

from phistar.inverse_kinematics.solution import InverseKinematics
from phistar.inverse_kinematics.targets import (
    Axis,
    CenterOfMass,
    Orientation,
    Pose,
    Position,
    Posture,
    Target,
)

__all__ = [
    "Axis",
    "CenterOfMass",
    "InverseKinematics",
    "Orientation",
    "Pose",
    "Position",
    "Posture",
    "Target",
]
