# SPDX-License-Identifier: BSD-3-Clause
"""A recording: what a log file has, joint by joint, before a robot is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from phistar.arrays import Array

TIMES = ("t", "time", "timestamp", "stamp")
"""Names that times may have [s]."""
FIELDS: Mapping[str, tuple[str, ...]] = {
    "position": ("q", "position", "pos"),
    "velocity": ("v", "velocity", "vel", "qd"),
    "effort": ("tau", "effort", "torque"),
}
"""Names of what is recorded: ``q.elbow``, ``position.elbow``; or arrays ``q``, ``position``."""


@dataclass(frozen=True, eq=False)
class Recording:
    """What a file has.

    Attributes:
        source: The file.
        t: (N,) times [s], as recorded.
        joints: Names.
        position, velocity, effort: (N, joints), NaN where something is missing.
        notes: What was not used, in sentences.
    """

    source: str
    t: Array
    joints: tuple[str, ...]
    position: Array
    velocity: Array
    effort: Array
    notes: tuple[str, ...] = ()


def shown(names: list[str] | tuple[str, ...], most: int = 6) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
