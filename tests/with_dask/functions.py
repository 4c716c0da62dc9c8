# SPDX-License-Identifier: BSD-3-Clause
"""Functions of a robot that workers import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from phistar import Robot
from phistar.arrays import Array


def power(robot: Robot, q: Array, v: Array, vdot: Array) -> dict[str, Array]:
    """Power (rows,) of the joints and whether it is positive (rows,)."""
    found = (robot.inverse_dynamics(q, v, vdot) * v).sum(axis=-1)
    return {"power": found, "drives": found > 0.0}


def dies_once(robot: Robot, *, q: Array, v: Array, vdot: Array, marker: str) -> Array:
    """Joint forces; the first process that gets many rows is killed."""
    if len(q) > 10 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return robot.inverse_dynamics(q, v, vdot)


def slow(robot: Robot, *, q: Array, v: Array, vdot: Array) -> Array:
    """Joint forces after a while."""
    time.sleep(0.2)
    return robot.inverse_dynamics(q, v, vdot)


def mass_scaled(robot: Robot, scale: Array) -> Array:
    """(rows,) torque of the second joint at rest, all masses multiplied: a parameter study."""
    q = robot.neutral() + 0.3
    heavy = [robot.with_parameters(robot.parameters * s[0]).gravity_force(q)[1] for s in scale]
    return np.array(heavy)


def raises(robot: Robot, *, q: Array, v: Array, vdot: Array) -> Array:
    """Joint forces; an error that no package has where a velocity is above 3."""
    if (v > 3.0).any():
        raise KeyError("too fast")
    return robot.inverse_dynamics(q, v, vdot)


def first_of_each(robot: Robot, *, q: Array, mass: Array) -> Array:
    """(rows, 2) of grids of configurations (rows, k, nq), and a number for each."""
    assert (q.ndim, mass.ndim) == (3, 1)
    return np.stack([q[:, 0, 0], mass], axis=-1)


def wrong_shape(robot: Robot, *, q: Array, v: Array, vdot: Array) -> Array:
    """Joint forces; a row too few where a velocity is above 3."""
    found = robot.inverse_dynamics(q, v, vdot)
    return found[1:] if (v > 3.0).any() else found
