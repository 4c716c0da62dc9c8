# SPDX-License-Identifier: BSD-3-Clause
"""Algorithm 8.1 as printed: two sweeps a step, and an error of the first order."""

import numpy as np
import pytest

import phistar
from phistar.algorithms.diagonal_dynamics import LAGGED_STEP
from phistar.compile import compile_outputs
from phistar.diagonal import lagged_start, lagged_step
from phistar.errors import ArgumentError
from phistar.model.random import random_model
from phistar.sweeps.ir import Direction
from tests.diagonal.witness import close

TIME = 0.2
ROBOTS = {
    "serial": {"topology": "serial", "kinds": ["revolute"]},
    "free base": {"topology": "tree", "floating_base": True, "armature": 0.3},
}


def _robot(name: str) -> tuple[phistar.Robot, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    robot = phistar.Robot(random_model(rng, 3, **ROBOTS[name]))
    return robot, robot.random_configuration(rng), *rng.normal(size=(2, robot.nv))


def _exact(robot: phistar.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Where (q, v) goes: steps of the fourth order, each in the tangent space of its start."""
    count = 40
    dt = TIME / count

    def slope(dq: np.ndarray, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        there = robot.integrate(q, dq)
        ahead, behind = (
            robot.difference(q, robot.integrate(there, step * rate)) for step in (1e-6, -1e-6)
        )
        return (ahead - behind) / 2e-6, robot.forward_dynamics(there, rate, tau)

    for _ in range(count):
        none = np.zeros(robot.nv)
        a = slope(none, v)
        b = slope(dt / 2 * a[0], v + dt / 2 * a[1])
        c = slope(dt / 2 * b[0], v + dt / 2 * b[1])
        d = slope(dt * c[0], v + dt * c[1])
        moved, faster = (
            dt / 6 * (w + 2 * x + 2 * y + z) for w, x, y, z in zip(a, b, c, d, strict=True)
        )
        q, v = robot.integrate(q, moved), v + faster
    return q


@pytest.mark.parametrize("name", ROBOTS)
def test_first_order(name: str) -> None:
    """Half the step, half the error: with gravity, and for joints with several axes."""
    robot, q, v, tau = _robot(name)
    end = _exact(robot, q, v, tau)
    errors = []
    for count in (25, 50, 100):
        state = lagged_start(robot, q, v)
        for _ in range(count):
            state = lagged_step(robot, state, tau, TIME / count)
        errors.append(np.abs(robot.difference(state.q, end)).max())
    ratios = np.array(errors[:-1]) / errors[1:]
    assert ((ratios > 1.8) & (ratios < 2.2)).all(), errors


@pytest.mark.parametrize("name", ROBOTS)
def test_nothing_lags_at_the_start(name: str) -> None:
    """The first step has the exact ζ̇; relative 1e-12. Velocities belong to ζ at the start."""
    robot, q, v, tau = _robot(name)
    start = lagged_start(robot, q, v)
    close(start.zeta, robot.diagonalize(q, v).zeta, 1e-13)
    first = lagged_step(robot, start, tau, 0.01)
    exact = robot.diagonal_forward_dynamics(q, start.zeta, tau)
    close((first.zeta - start.zeta) / 0.01, exact.zeta_dot, 1e-12)
    close(first.v, robot.diagonalize(q).from_zeta(first.zeta), 1e-12)
    close(first.q, robot.integrate(q, 0.01 * first.v), 1e-13)


def test_two_sweeps() -> None:
    """One sweep inward, one outward: what the paper counts."""
    sweeps = compile_outputs("lagged_step", tuple(LAGGED_STEP.items())).schedule.sweeps
    assert [p.direction for p in sweeps] == [Direction.INWARD, Direction.OUTWARD]


def test_batches() -> None:
    """Several states step at once."""
    robot, q, v, tau = _robot("free base")
    many = lagged_start(robot, np.stack([q, q]), np.stack([v, 2 * v]))
    one = lagged_start(robot, q, 2 * v)
    for _ in range(2):
        many, one = (lagged_step(robot, s, tau, 0.01) for s in (many, one))
    close(many.q[1], one.q, 1e-13)
    close(many.V[1], one.V, 1e-12)


@pytest.mark.parametrize("dt", [0.0, -0.1, float("nan")])
def test_time_goes_on(dt: float) -> None:
    """A step has a length."""
    robot, q, v, tau = _robot("serial")
    with pytest.raises(ArgumentError, match="positive time"):
        lagged_step(robot, lagged_start(robot, q, v), tau, dt)
