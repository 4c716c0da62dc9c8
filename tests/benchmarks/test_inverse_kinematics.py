# SPDX-License-Identifier: BSD-3-Clause
"""The loop over Pinocchio of the benchmark takes the same steps as inverse kinematics."""

import numpy as np
import pytest

import phistar
from benchmarks import inverse_kinematics as bench


def test_the_loop_ends_in_the_same_places() -> None:
    """Configurations agree to 1e-6 and so does the number of steps, from one start."""
    pytest.importorskip("pinocchio")
    robot = phistar.load(bench.ROBOT)
    goals = robot.frame_pose(robot.random_configuration(3, (24,)), bench.FRAME)
    found = robot.inverse_kinematics({bench.FRAME: goals}, robot.home, restarts=0)
    loop = bench.pinocchio_loop(robot.home, robot.lower_limits, robot.upper_limits)
    theirs = [loop(goal) for goal in goals]
    same = np.abs(np.array([q for q, _ in theirs]) - found.q).max(axis=1) <= bench.SAME
    assert same.mean() >= bench.LEAST_AGREEMENT
    steps = np.array([count for _, count in theirs])
    assert (np.abs(steps - found.iterations)[same & found.success] <= 1).all()
