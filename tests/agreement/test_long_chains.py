# SPDX-License-Identifier: BSD-3-Clause
"""A planar chain of 10 000 links: runs, and agrees with sums that know nothing of sweeps."""

from dataclasses import dataclass

import numpy as np
import pytest

import phistar

LINKS = 10_000


@dataclass(frozen=True)
class Chain:
    """The robot, a state, and the angles and horizontal places of its rods."""

    robot: phistar.Robot
    q: np.ndarray
    v: np.ndarray

    @property
    def angles(self) -> np.ndarray:
        """Angle of each rod from straight down, about y."""
        return np.cumsum(self.q)


@pytest.fixture(scope="module")
def chain() -> Chain:
    """A chain that hangs in gentle bends."""
    rng = np.random.default_rng(0)
    robot = phistar.robots.chain(LINKS)
    return Chain(robot, *rng.normal(scale=0.05, size=(2, LINKS)))


def test_inverse_dynamics(chain: Chain) -> None:
    """At rest each joint holds the moment of the weights beyond it; relative 1e-11."""
    robot, zeros = chain.robot, np.zeros(LINKS)
    step = -np.sin(chain.angles)
    centres = np.cumsum(step) - step / 2
    joints = np.cumsum(step) - step
    weights = np.arange(LINKS, 0, -1.0)
    beyond = np.cumsum(centres[::-1])[::-1] - weights * joints
    assert robot.links["link1"].mass == 1.0
    expected = -9.81 * beyond
    ours = robot.inverse_dynamics(chain.q, zeros, zeros)
    assert np.abs(ours - expected).max() <= 1e-11 * np.abs(expected).max()


def test_mass_matrix_times(chain: Chain) -> None:
    """v·𝓜v is twice the kinetic energy of rods that turn and move; relative 1e-11."""
    rod = chain.robot.links["link1"]
    speed = np.cumsum(chain.v)
    across, along = np.sin(chain.angles), np.cos(chain.angles)
    ends = np.stack([-along * speed, across * speed])
    centres = np.cumsum(ends, axis=1) - ends / 2
    twice = (centres**2).sum() * rod.mass + rod.inertia[1, 1] * (speed**2).sum()
    ours = chain.v @ (chain.robot.operators(chain.q).M @ chain.v)
    assert ours == pytest.approx(twice, rel=1e-11)


def test_forward_dynamics(chain: Chain) -> None:
    """Inverse dynamics takes the accelerations back to the torques, up to rounding of the bias.

    Each of 10 000 links adds its rounding: the bound is n eps relative to the bias force.
    """
    robot = chain.robot
    tau = np.random.default_rng(1).normal(size=LINKS)
    vdot = robot.forward_dynamics(chain.q, chain.v, tau)
    size = np.abs(robot.bias_force(chain.q, chain.v)).max()
    assert (
        np.abs(robot.inverse_dynamics(chain.q, chain.v, vdot) - tau).max() <= LINKS * 2.2e-16 * size
    )
