# SPDX-License-Identifier: BSD-3-Clause
"""Mechanisms with loops for tests of control."""

import json
import warnings
from functools import cache

import numpy as np
import pytest

import phistar
from phistar.arrays import Array
from phistar.robot import Robot
from tests.helpers import SHARED

FOLDER = SHARED / "loops"
BUNDLED = "four_bar"
FIVE = ("fourbar_crank_rocker", "fivebar", "delta_ball", "quadruped_stand", "gripper_mimic")


@cache
def mechanism(name: str) -> tuple[Robot, tuple[str, ...], Array]:
    """A robot, its joints with motors, and a configuration on its loops; or the test is skipped."""
    if name == BUNDLED:
        robot = _loaded(name)
        motors = ("crank_joint",)
        return robot, motors, robot.assemble(np.array([0.7, 0.0, 0.0]), fixed=motors)
    if not FOLDER.is_dir():
        pytest.skip("needs the mechanisms in ../shared/loops (or where PHISTAR_SHARED says)")
    (path,) = (path for kind in ("xml", "urdf") for path in FOLDER.glob(f"{name}.{kind}"))
    robot = _loaded(str(path))
    told = json.loads((FOLDER / f"{name}.json").read_text())
    with np.load(FOLDER / f"{name}.npz") as samples:
        return robot, tuple(told["actuated"]), robot.assemble(samples["q"][1])


def _loaded(description: str) -> Robot:
    """A robot whose doubts are no matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return phistar.load(description)


def beside(robot: Robot, q: Array, size: float, seed: int = 0) -> Array:
    """Another configuration on the loops, nearby."""
    step = size * np.random.default_rng(seed).normal(size=robot.nv)
    return robot.assemble(robot.integrate(q, step))


def velocity(robot: Robot, q: Array, size: float = 1.0, seed: int = 1) -> Array:
    """A velocity that keeps the loops, its largest entry of this size."""
    v = robot.project(q, np.random.default_rng(seed).normal(size=robot.nv))[1]
    return np.asarray(v * size / np.abs(v).max())


def gap(robot: Robot, q: Array) -> float:
    """Largest error of the loops."""
    return float(np.abs(robot.loop_error(q).values).max())


def moved(robot: Robot, q: Array, v: Array, entries: Array, change: Array) -> tuple[Array, Array]:
    """The state on the loops whose independent coordinates differ by ``change`` (2 n,)."""
    n = len(entries)
    rest = np.setdiff1d(np.arange(robot.nv), entries)
    step = np.zeros(robot.nv)
    step[entries] = change[:n]
    for _ in range(8):
        at = robot.integrate(q, step)
        missed = robot.loop_error(at).values
        step[rest] -= np.linalg.pinv(robot.loop_jacobian(at).values[:, rest], rcond=1e-8) @ missed
    at = robot.integrate(q, step)
    rows = robot.loop_jacobian(at).values
    speed = np.array(v)
    speed[entries] += change[n:]
    speed[rest] = -np.linalg.pinv(rows[:, rest], rcond=1e-8) @ rows[:, entries] @ speed[entries]
    return at, speed
