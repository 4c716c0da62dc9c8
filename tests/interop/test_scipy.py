# SPDX-License-Identifier: BSD-3-Clause
"""Right-hand sides for SciPy: motions of the robot, Jacobians with respect to the numbers of y."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import check_grad, minimize

import phistar
from phistar import Robot
from phistar.errors import ArgumentError, LoopError, ShapeError
from phistar.interop import scipy as ps
from phistar.interop.tangent_maps import rate_map, tangent_map
from phistar.model.configuration import quaternion_starts
from phistar.model.random import random_model

KINDS = ("cartpole", "panda_hand", "quadruped", "spherical", "planar")


def robot_of(kind: str) -> Robot:
    """A bundled robot, or one with joints of a kind."""
    if kind not in ("spherical", "planar"):
        return phistar.load(kind)
    return Robot(random_model(np.random.default_rng(2), 3, kinds=[kind, "revolute"]))


def state(robot: Robot, seed: int = 0) -> np.ndarray:
    """A random y."""
    rng = np.random.default_rng(seed)
    return np.concatenate([robot.random_configuration(rng), rng.normal(size=robot.nv)])


def differences(f: Any, y: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central differences, number by number."""
    units = step * np.eye(y.size)
    return np.stack([(f(y + e) - f(y - e)) / (2 * step) for e in units], axis=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_tangent_maps_against_steps(kind: str) -> None:
    """G is the rate of a step, T undoes it, and T does not see lengths of quaternions."""
    robot = robot_of(kind)
    rng = np.random.default_rng(1)
    q, v = robot.random_configuration(rng, 4), rng.normal(size=(4, robot.nv))
    steps = [robot.integrate(q, sign * 1e-6 * v) for sign in (1, -1)]
    rates = (rate_map(robot.model, q) @ v[..., None])[..., 0]
    np.testing.assert_allclose(rates, (steps[0] - steps[1]) / 2e-6, atol=1e-8)
    both = tangent_map(robot.model, q) @ rate_map(robot.model, q)
    np.testing.assert_allclose(both, np.broadcast_to(np.eye(robot.nv), both.shape), atol=1e-12)


@pytest.mark.parametrize("law", ["none", "held", "function", "function with derivatives"])
@pytest.mark.parametrize("kind", KINDS)
def test_jacobian(kind: str, law: str) -> None:
    """Against differences in each number, quaternions of another length too."""
    robot = robot_of(kind)
    rng = np.random.default_rng(3)
    gains = rng.normal(size=(robot.nv, robot.nq + robot.nv))
    tangents = tangent_map

    def feedback(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return gains @ np.concatenate([np.sin(q), v])

    def feedback_y(t: float, y: np.ndarray) -> np.ndarray:
        q = robot.normalize(y[: robot.nq])
        unit = rate_map(robot.model, y[: robot.nq]) @ tangents(robot.model, y[: robot.nq])
        rows = gains[:, : robot.nq] * np.cos(q) @ unit
        return np.hstack([rows, gains[:, robot.nq :]])

    options: dict[str, Any] = {
        "none": {},
        "held": {"tau": gains[:, 0]},
        "function": {"tau": feedback},
        "function with derivatives": {"tau": feedback, "tau_y": feedback_y},
    }[law]
    ode = ps.ode(robot, **options)
    y = state(robot)
    for _, start in quaternion_starts(robot.model):
        y[start : start + 4] *= 1.3
    found, expected = ode.jac(0.0, y), differences(lambda x: ode(0.0, x), y)
    assert np.abs(found - expected).max() < 2e-7 * np.abs(expected).max()


def test_columns() -> None:
    """``vectorized=True``: columns are states."""
    robot = phistar.load("quadruped")
    ode = ps.ode(robot, tau=lambda t, q, v: -0.1 * v)
    many = np.stack([state(robot, seed) for seed in range(3)], axis=1)
    found = ode(0.0, many)
    np.testing.assert_allclose(found, np.stack([ode(0.0, y) for y in many.T], axis=1), atol=1e-12)


@pytest.mark.parametrize("method", ["DOP853", "Radau"])
def test_solve_ivp_keeps_energy(method: str) -> None:
    """A swinging quadruped in the air: energy and lengths of quaternions stay."""
    robot = phistar.load("quadruped").with_gravity([0.0, 0.0, 0.0])
    ode = ps.ode(robot)
    start = ode.y0(v=0.5 * state(robot)[robot.nq :])
    options = {"jac": ode.jac} if method == "Radau" else {}
    found = solve_ivp(ode, (0.0, 0.2), start, method=method, rtol=1e-9, atol=1e-10, **options)
    assert found.success
    q, v = ode.state(found.y)
    energy = robot.kinetic_energy(q, v)
    np.testing.assert_allclose(energy, energy[0], rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found.y[3:7], axis=0), 1.0, atol=1e-7)


def test_stiff_solver_needs_fewer_calls_with_the_jacobian() -> None:
    """It is used: differences would call the right-hand side for each number."""
    robot = phistar.load("cartpole")
    ode = ps.ode(robot, tau=lambda t, q, v: -50.0 * v, tau_y=lambda t, y: -50.0 * np.eye(2, 4, 2))
    start = ode.y0(q=[0.0, 0.3], v=[0.5, 0.5])
    calls, ends = [], []
    for jac in (ode.jac, None):
        count = 0

        def counted(t: float, y: np.ndarray) -> np.ndarray:
            nonlocal count
            count += 1
            return ode(t, y)

        found = solve_ivp(counted, (0.0, 0.5), start, method="BDF", jac=jac, rtol=1e-6)
        calls.append(count)
        ends.append(found.y[:, -1])
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-4)
    assert calls[0] < calls[1]


def test_minimize_a_cost_of_configurations() -> None:
    """A hand to a place, over the numbers of q, by gradients along tangent steps."""
    robot = phistar.load("quadruped")
    goal = robot.frame_pose(robot.home, "FL_FOOT")[:3, 3] + [0.05, 0.0, 0.05]

    def far(q: np.ndarray) -> tuple[float, np.ndarray]:
        away = robot.frame_pose(q, "FL_FOOT")[:3, 3] - goal
        return 0.5 * away @ away, robot.jacobian(q, "FL_FOOT")[3:].T @ away

    cost = ps.cost(robot, far)
    start = robot.home.copy()
    start[3:7] *= 1.2
    assert check_grad(lambda q: cost(q)[0], lambda q: cost(q)[1], start) < 1e-6
    found = minimize(cost, start, jac=True, method="BFGS")
    assert found.fun < 1e-10


def test_loops_are_refused() -> None:
    """A solver would leave them."""
    with pytest.raises(LoopError, match=r"robot\.simulate"):
        ps.ode(phistar.load("four_bar"))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda robot: ps.ode(robot, tau=np.zeros(3)), ShapeError, "tau"),
        (lambda robot: ps.ode(robot, tau_y=lambda t, y: y), ArgumentError, "no function of t"),
        (lambda robot: ps.ode(robot)(0.0, np.zeros(3)), ShapeError, r"\(4,\) = \(nq \+ nv,\)"),
        (lambda robot: ps.ode(robot, tau=lambda *_: 1.0)(0.0, np.zeros(4)), ShapeError, "tau"),
        (lambda robot: ps.ode(robot).jac(0.0, np.zeros((4, 2))), ShapeError, "jac"),
        (lambda robot: ps.cost(robot, lambda q: (0.0, q[:1]))(np.zeros(2)), ShapeError, "gradient"),
    ],
)
def test_wrong_use(call: Any, kind: type[Exception], text: str) -> None:
    """One clear error each."""
    with pytest.raises(kind, match=text):
        call(phistar.load("cartpole"))
