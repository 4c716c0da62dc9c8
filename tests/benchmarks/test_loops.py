# SPDX-License-Identifier: BSD-3-Clause
"""Robots with loops of the benchmark: states on the loops, peers that agree."""

import numpy as np
import pytest

import phistar
from benchmarks import loops
from benchmarks.loop_peers import MuJoCoLoops, PinocchioLoops


@pytest.mark.parametrize("name", loops.ROBOTS)
def test_pinocchio_agrees(name: str) -> None:
    """On states that come again beyond the distinct ones, all on the loops."""
    pytest.importorskip("pinocchio")
    robot = loops.robot(name)
    q, v, tau = loops.states(robot, loops.DISTINCT + 3)
    assert len(q) == len(v) == len(tau) == loops.DISTINCT + 3
    assert np.abs(np.asarray(robot.loop_error(q))).max() < 1e-10
    assert np.array_equal(q[-3:], q[:3])
    assert not np.array_equal(q[0], q[1])
    few = q[:2], v[:2], tau[:2]
    peer = PinocchioLoops(robot)
    for quantity, limit in zip(loops.QUANTITIES, (loops.TOLERANCE, loops.ALONG), strict=True):
        assert loops.disagreement(robot, peer, quantity, *few) < limit
    assert loops.operations(robot) > loops.operations(robot.tree) > 1000


def test_mujoco_has_the_same_four_bar() -> None:
    """Its loop is soft: where it is stiff its states are ours to 1e-6, by default they are not."""
    pytest.importorskip("mujoco")
    robot = phistar.load("four_bar")
    q, v, _ = loops._four_bars(robot)
    q, v = q[:3], v[:3]
    ours = np.swapaxes(robot.simulate(q, v, dt=1e-3, steps=30).q[1:], 0, 1)
    for stiff, low, high in ((True, 0.0, 1e-6), (False, 1e-6, 1e-2)):
        peer = MuJoCoLoops(robot, "RK4", 1e-3, stiff)
        found, _ = peer.ours(peer.rollout(peer.starts(q, v), 30))
        assert low <= np.abs(found - ours).max() < high
