# SPDX-License-Identifier: BSD-3-Clause
"""Simulated logs for identification: a true robot, a random motion within limits, sensors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

import phistar
from phistar.arrays import Array
from phistar.ident import FourierSeries
from phistar.ident.excitation import MotionLimits, random_series


def true_robot(robot: phistar.Robot, rng: np.random.Generator) -> phistar.Robot:
    """A robot near another one: other masses, friction, rotors."""
    spread = np.repeat(rng.uniform(0.8, 1.2, size=len(robot.model.bodies)), 10)
    effort = np.where(np.isfinite(robot.limits.effort), robot.limits.effort, 10.0)
    return robot.with_parameters(robot.parameters * spread).with_joint_physics(
        damping=effort * rng.uniform(0.005, 0.02, size=robot.nv),
        friction=effort * rng.uniform(0.005, 0.02, size=robot.nv),
        armature=effort * rng.uniform(0.001, 0.004, size=robot.nv),
    )


def random_motion(
    robot: phistar.Robot, rng: np.random.Generator, harmonics: int = 5, period: float = 10.0
) -> FourierSeries:
    """A random periodic motion, as large as position and velocity limits allow."""
    return random_series(robot, rng, harmonics, period, MotionLimits.of(robot, 0.9))


def torque_noise(robot: phistar.Robot) -> Array:
    """(nv,) standard deviations: half a percent of the effort limits."""
    return 0.005 * np.where(np.isfinite(robot.limits.effort), robot.limits.effort, 10.0)


def quantised(x: Array, step: ArrayLike) -> Array:
    """Numbers rounded to whole steps."""
    return np.round(x / step) * step
