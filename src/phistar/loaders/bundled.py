# SPDX-License-Identifier: BSD-3-Clause
"""The robots that come with phistar: their files by name."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from phistar.errors import UnknownNameError

_DATA = Path(str(files("phistar") / "robots" / "data"))
_SUFFIX = ".urdf"

_FLOATING_ROBOTS = frozenset({"quadruped", "humanoid", "humanoid_ankles"})
"""Legged robots: their base is free by default."""


def names() -> tuple[str, ...]:
    """Names of the bundled robots, sorted."""
    found = [name for name in os.listdir(_DATA) if name.endswith(_SUFFIX)]
    return tuple(sorted([name.removesuffix(_SUFFIX) for name in found]))


def path(name: str) -> Path:
    """The file of a bundled robot.

    Raises:
        UnknownNameError: No such robot.
    """
    known = names()
    if name not in known:
        raise UnknownNameError("bundled robot", name, known)
    return _DATA / f"{name}{_SUFFIX}"


def floats(name: str) -> bool:
    """Whether a bundled robot has a free base by default.

    Raises:
        UnknownNameError: No such robot.
    """
    path(name)
    return name in _FLOATING_ROBOTS


__all__ = ["floats", "names", "path"]
