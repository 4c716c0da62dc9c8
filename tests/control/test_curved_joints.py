# SPDX-License-Identifier: BSD-3-Clause
"""Joint laws on joints whose steps are no additions: ball, free and planar ones, and all kinds.

Along a motion δ is the way to the goal. PD pulls by (∂δ/∂q)* k_p δ, so that its Lyapunov function
falls by v*k_d v; computed torque makes δ̈ + k_d δ̇ + k_p δ = 0, whose solution is known.
"""

import numpy as np
import pytest

import phistar
from phistar import control
from phistar.control.joint_laws import JointLaw
from phistar.model.random import random_model

KINDS = ("spherical", "free", "planar", "universal", "cylindrical")
STATES = 1000


def robot_of(kind: str) -> phistar.Robot:
    """A joint of a kind with a hinge beyond it."""
    model = random_model(np.random.default_rng(3), 2, kinds=[kind, "revolute"], topology="serial")
    robot = phistar.Robot(model)
    assert any(robot.joints[name].kind == kind for name in robot.joint_names)
    return robot


def states(robot: phistar.Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A goal, and many states all over the configuration space."""
    rng = np.random.default_rng(7)
    q, v = robot.random_configuration(rng, (STATES,)), rng.normal(size=(STATES, robot.nv))
    return robot.random_configuration(rng), q, v


def rates(law: JointLaw, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rates of V and δ along the closed loop, by central differences."""
    vdot = law.robot.forward_dynamics(q, v, law.forces(q, v))
    h = 1e-6
    ends = [
        (law.robot.integrate(q, s * h * v + h * h / 2 * vdot), v + s * h * vdot) for s in (1, -1)
    ]
    (one, two), (later, before) = ([f(*end) for end in ends] for f in (law.lyapunov, law.error))
    return (one - two) / (2 * h), (later - before) / (2 * h)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gains", ["default", "unequal"])
def test_lyapunov_functions_fall(kind: str, gains: str) -> None:
    """PD: V̇ = -v*k_d v; computed torque: V̇ = -δ̇*k_d δ̇; in 1000 states each, relative 1e-5."""
    robot = robot_of(kind)
    goal, q, v = states(robot)
    rng = np.random.default_rng(1)
    kp, kd = 10.0 ** rng.uniform(0, 2, robot.nv), 10.0 ** rng.uniform(-2, 1, robot.nv)
    chosen = (kp, kd) if gains == "unequal" else ()
    pd = control.pd_gravity(robot, goal, *chosen)
    fall, _ = rates(pd, q, v)
    size = np.abs(pd.lyapunov(q, v))
    assert (np.abs(fall + (pd.damping * v * v).sum(axis=-1)) < 1e-5 * (1 + size)).all()
    ct = control.computed_torque(robot, goal, *chosen)
    fall, speed = rates(ct, q, v)
    size = ct.lyapunov(q, v)
    assert (np.abs(fall + (ct.damping * speed * speed).sum(axis=-1)) < 1e-5 * (1 + size)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_pull_is_minus_the_gradient(kind: str) -> None:
    """The pull of PD is minus the derivative of ½δ*k_p δ along every tangent step; 1e-7."""
    robot = robot_of(kind)
    goal, q, _ = states(robot)
    kp = np.linspace(1.0, 9.0, robot.nv)
    law = control.pd_gravity(robot, goal, kp)
    h = 1e-6 * np.eye(robot.nv)[:, None]

    def energy(place: np.ndarray) -> np.ndarray:
        return (kp * robot.difference(place, goal) ** 2).sum(axis=-1) / 2

    slope = (energy(robot.integrate(q, h)) - energy(robot.integrate(q, -h))).T / 2e-6
    scale = 1.0 + np.abs(slope).max(axis=-1, keepdims=True)
    assert (np.abs(law.pull(q) + slope) < 1e-7 * scale).all()


@pytest.mark.parametrize("kind", ["spherical", "free", "planar"])
def test_computed_torque_decouples(kind: str) -> None:
    """δ(t) is that of critically damped oscillators with their own frequencies, over 1 s; 1e-6."""
    robot = robot_of(kind)
    rng = np.random.default_rng(5)
    goal = robot.random_configuration(rng)
    start = robot.integrate(goal, rng.uniform(-1.0, 1.0, robot.nv))
    v = rng.normal(size=robot.nv)
    omega = np.linspace(1.0, 4.0, robot.nv)
    law = control.computed_torque(robot, goal, omega**2)
    run = control.regulate(law, start, v, duration=1.0, dt=0.0125, every=10)
    ways = [robot.difference(robot.integrate(start, s * 1e-6 * v), goal) for s in (1, -1)]
    first, speed = robot.difference(start, goal), (ways[0] - ways[1]) / 2e-6
    t = run.t[:, None]
    expected = (first + (speed + omega * first) * t) * np.exp(-omega * t)
    np.testing.assert_allclose(law.error(run.q, run.v), expected, atol=1e-6)
    assert run.monotone


def test_pd_does_not_pump() -> None:
    """A ball joint with gains 1, 10, 100 and little damping: V falls all the time (it grew 30x)."""
    robot = robot_of("spherical")
    goal, q, v = states(robot)
    law = control.pd_gravity(robot, goal, [1.0, 10.0, 100.0, 5.0][: robot.nv], 0.05)
    run = control.regulate(law, q[:2], v[:2], duration=0.1, dt=0.001, every=5)
    assert run.monotone.all()
