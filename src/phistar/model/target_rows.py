# SPDX-License-Identifier: BSD-3-Clause
"""What a target of inverse kinematics asks for, as data that programs are made for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TargetRows:
    """One target, without the numbers that change from sample to sample.

    Attributes:
        kind: ``"pose"``, ``"position"``, ``"orientation"``, ``"axis"``, ``"center_of_mass"`` or
            ``"posture"``: rows of ``scalar.trace.target_programs.TARGET_KINDS``.
        frame: Name of the frame; empty where it is about the whole robot.
        priority: 0 is the first.
        vector: Point or axis in the frame.
    """

    kind: str
    frame: str = ""
    priority: int = 0
    vector: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __str__(self) -> str:
        return f"{self.kind} of {self.frame}" if self.frame else self.kind
