# SPDX-License-Identifier: BSD-3-Clause
"""Closed-loop mechanisms of ../shared/loops with their goldens, and a few made here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.arrays import Array
from phistar.model import ModelBuilder
from phistar.robot import Robot
from phistar.spatial import pose
from tests.helpers import SHARED

LOOPS = SHARED / "loops"
NAMES = sorted(path.stem for path in LOOPS.glob("*.json"))
needs_loops = pytest.mark.skipif(
    not NAMES, reason="needs the mechanisms in ../shared/loops (or where PHISTAR_SHARED says)"
)


@dataclass(frozen=True)
class Mechanism:
    """A mechanism with its data: arrays of the README there, and facts."""

    robot: Robot
    golden: dict[str, Array]
    facts: dict[str, Any]

    @property
    def state(self) -> tuple[Array, Array, Array]:
        """Four samples of q, v and tau on the loops."""
        return self.golden["q"], self.golden["v"], self.golden["tau"]


@cache
def mechanism(name: str) -> Mechanism:
    """One of ../shared/loops."""
    facts = json.loads((LOOPS / f"{name}.json").read_text())
    with np.load(LOOPS / f"{name}.npz") as stored:
        golden = {key: stored[key] for key in stored.files}
    return Mechanism(phistar.load(str(LOOPS / facts["file"])), golden, facts)


def error(found: Array, expected: Array) -> float:
    """Largest difference, relative to the largest entry expected."""
    largest = float(np.abs(expected).max(initial=0.0))
    return float(np.abs(np.asarray(found) - expected).max(initial=0.0)) / max(largest, 1e-9)


@cache
def four_bar() -> Robot:
    """The bundled four-bar linkage."""
    return phistar.load("four_bar")


def four_bar_state(seed: int = 0) -> tuple[Array, Array, Array]:
    """A state of it on the loop, at random."""
    robot, rng = four_bar(), np.random.default_rng(seed)
    q = robot.assemble(robot.neutral())
    q, v = robot.project(q, rng.normal(size=robot.nv))
    return q, v, rng.normal(size=robot.nv)


def windows(count: int) -> tuple[Robot, Array, Array]:
    """IFToMM A02: ``count`` four-bar windows of rods of 1 m and 1 kg, upright, B0 moving at 1 m/s.

    Returns:
        The robot, q and v.
    """
    builder = ModelBuilder("windows")
    builder.link("ground")
    for i in range(count + 1):
        builder.link(f"rod{i}", 1.0, (0, 0.5, 0), (1 / 12, 1e-9, 1 / 12))
        builder.joint(f"foot{i}", "revolute", "ground", f"rod{i}", xyz=(i, 0, 0), axis=(0, 0, 1))
    for i in range(count):
        builder.link(f"bar{i}", 1.0, (0.5, 0, 0), (1e-9, 1 / 12, 1 / 12))
        builder.joint(f"top{i}", "revolute", f"rod{i}", f"bar{i}", xyz=(0, 1, 0), axis=(0, 0, 1))
        builder.loop(
            f"pin{i}",
            "revolute",
            f"rod{i + 1}",
            f"bar{i}",
            predecessor_pose=pose(translation=(0, 1, 0)),
            successor_pose=pose(translation=(1, 0, 0)),
        )
    robot = phistar.load(builder.build()).with_gravity((0, -9.81, 0))
    v = robot.tangent({name: -1.0 if name[0] == "f" else 1.0 for name in robot.joint_names})
    return robot, robot.neutral(), v
