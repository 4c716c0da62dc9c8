# SPDX-License-Identifier: BSD-3-Clause
"""Quadrupeds of the benchmark stand where MuJoCo's do."""

import numpy as np
import pytest

import phistar
from benchmarks import contacts


def test_mujoco_stands_at_the_same_place() -> None:
    """The base after 50 steps, rigid ground against MuJoCo's: 1 mm, before anything is timed."""
    pytest.importorskip("mujoco")
    robot = phistar.load(contacts.ROBOT)
    start, tau = contacts.standing(robot)
    v = 0.02 * np.random.default_rng(1).normal(size=(2, robot.nv))
    q = np.tile(start, (2, 1))
    sim = robot.simulator(2, dt=contacts.DT)
    sim.reset(q=q, v=v)
    ours = sim.step(tau, substeps=contacts.PEER_STEPS).q[:, :3]
    theirs = contacts.rolled(robot, q, v, tau, limits=True)()[0][:, -1, 1:4]
    assert np.abs(ours - theirs).max() < 1e-3
    assert sim.contacts.touching.sum() >= 6
