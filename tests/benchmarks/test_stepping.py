# SPDX-License-Identifier: BSD-3-Clause
"""The simulation of the benchmark agrees with MuJoCo's."""

import numpy as np
import pytest

import phistar
from benchmarks import stepping


def test_mujoco_takes_the_same_steps() -> None:
    """States after 50 steps of Runge-Kutta 4 agree to 1e-12, before anything is timed."""
    pytest.importorskip("mujoco")
    robot = phistar.load(stepping.ROBOT)
    rng = np.random.default_rng(1)
    q, v = robot.random_configuration(rng, (3,)), 0.3 * rng.normal(size=(3, robot.nv))
    theirs, converted = stepping.rolled(q, v)
    ours = robot.simulate(q, v, dt=stepping.DT, steps=stepping.PEER_STEPS)
    found = converted(theirs())
    assert np.abs(found[..., : robot.nq] - ours.q[1:]).max() < 1e-12
    assert np.abs(found[..., robot.nq :] - ours.v[1:]).max() < 1e-12 * np.abs(ours.v).max()
