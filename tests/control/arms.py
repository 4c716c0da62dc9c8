# SPDX-License-Identifier: BSD-3-Clause
"""Robots and places for tests of control laws."""

import numpy as np

import phistar
from phistar.model.builder import ModelBuilder

TIPS = {"ur5": "tool0", "panda": "panda_link8"}
READY = {
    "ur5": np.array([0.0, -1.2, 1.5, -0.8, 1.0, 0.3]),
    "panda": np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8]),
}
AWAY = 0.4 * np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0])


def planar() -> phistar.Robot:
    """Three links of 1 m in a plane, gravity across it."""
    builder = ModelBuilder("planar", gravity=(0.0, 0.0, -9.81))
    builder.link("base")
    parent, place = "base", (0.0, 0.0, 0.0)
    for k in range(3):
        name = f"link{k}"
        builder.link(name, 1.0, (0.5, 0.0, 0.0), (0.01, 0.05, 0.05))
        builder.joint(f"joint{k}", "revolute", parent, name, axis=(0, 0, 1), xyz=place)
        parent, place = name, (1.0, 0.0, 0.0)
    builder.frame("tip", parent, xyz=place)
    return phistar.load(builder.build())


def goal(name: str) -> np.ndarray:
    """A configuration beside READY."""
    return READY[name] + AWAY[: len(READY[name])]


def goal_pose(robot: phistar.Robot) -> np.ndarray:
    """The pose of the tip there."""
    return robot.frame_pose(goal(robot.name), TIPS[robot.name])


def starts(name: str, count: int = 3) -> np.ndarray:
    """Configurations around READY."""
    ready = READY[name]
    return ready + np.random.default_rng(0).normal(scale=0.2, size=(count, len(ready)))
