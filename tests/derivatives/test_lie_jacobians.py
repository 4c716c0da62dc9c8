# SPDX-License-Identifier: BSD-3-Clause
"""Tangent steps: carried along, bent and transported, against steps of the robot itself."""

import numpy as np
import pytest
import scipy.linalg

from phistar.derivatives.lie_jacobians import expm_and_phi1, right_jacobian, step_adjoint, transport
from tests.derivatives.witness import ROBOTS, State, close, state, times

TINY = 1e-6


@pytest.fixture(scope="module", params=ROBOTS)
def case(request: pytest.FixtureRequest) -> State:
    """Every joint kind."""
    return state(request.param)


def test_carried(case: State) -> None:
    """Two robots a step δ apart that both step by x are Ad(exp(-x)) δ apart; 1e-8."""
    robot, q, x, delta = case.robot, case.q, case.v, case.dq
    end = robot.integrate(q, x)
    other = [robot.integrate(robot.integrate(q, s * TINY * delta), x) for s in (1, -1)]
    ahead, behind = (robot.difference(end, each) for each in other)
    close(times(step_adjoint(robot.model, x), delta), (ahead - behind) / (2 * TINY), 1e-8)


def test_bent(case: State) -> None:
    """The end of a step x moves by J(x) δ as x moves by δ; 1e-8."""
    robot, q, x, delta = case.robot, case.q, case.v, case.dq
    end = robot.integrate(q, x)
    ahead, behind = (
        robot.difference(end, robot.integrate(q, x + s * TINY * delta)) for s in (1, -1)
    )
    close(times(right_jacobian(robot.model, x), delta), (ahead - behind) / (2 * TINY), 1e-8)


def test_transport(case: State) -> None:
    """Two flows with velocities v and v + δv: d(δq)/dt = transport δq + δv; 1e-6.

    Steps of rotations are differences of differences: 1e-4 apart over 1e-4 of time.
    """
    robot, q, v, delta, dv = case.robot, case.q, case.v, case.dq, case.dv
    eps = dt = 1e-4
    apart = []
    for sign in (1, -1):
        there = []
        for side in (1, -1):
            start = robot.integrate(q, side * eps * delta)
            later = robot.integrate(start, sign * dt * (v + side * eps * dv))
            there.append(robot.difference(robot.integrate(q, sign * dt * v), later))
        apart.append((there[0] - there[1]) / (2 * eps))
    rate = (apart[0] - apart[1]) / (2 * dt)
    close(times(transport(robot.model, v), delta) + dv, rate, 1e-6)


def test_flat_joints_need_nothing() -> None:
    """Joints with one axis, cylindrical and universal ones add their coordinates."""
    kinds = ["revolute", "prismatic", "helical", "cylindrical", "universal", "translation"]
    robot, v = (found := state(kinds=kinds)).robot, found.v
    one = np.broadcast_to(np.eye(robot.nv), (2, robot.nv, robot.nv))
    assert not transport(robot.model, v).any()
    assert np.array_equal(step_adjoint(robot.model, v), one)
    assert np.array_equal(right_jacobian(robot.model, v), one)


@pytest.mark.parametrize("size", [0.0, 0.1, 3.0, 100.0])
def test_exponential(size: float) -> None:
    """exp(a), and the mean of exp(s a) over s from 0 to 1, beside SciPy; relative 1e-11."""
    a = size * np.random.default_rng(1).normal(size=(3, 5, 5)) / 5
    a[0] = a[0] - a[0].T
    whole, mean = expm_and_phi1(a)
    for each, ours, average in zip(a, whole, mean, strict=True):
        close(ours, scipy.linalg.expm(each))
        block = np.zeros((10, 10))
        block[:5, :5], block[:5, 5:] = each, np.eye(5)
        close(average, scipy.linalg.expm(block)[:5, 5:])
