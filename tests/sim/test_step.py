# SPDX-License-Identifier: BSD-3-Clause
"""``robot.step``: one step of ``simulate``, however it is computed."""

from typing import Any

import numpy as np
import pytest

import phistar
from phistar import control
from phistar.errors import NotFiniteError, UnknownNameError
from phistar.model.random import random_model
from phistar.sim import step as steps
from phistar.sim.schemes import SCHEMES
from tests.helpers import patch_policy

DT = 2e-3


@pytest.fixture(autouse=True)
def _compile_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHISTAR_TIER", "wait")


def robot_of(name: str) -> phistar.Robot:
    """A bundled robot, or a random one with joints of every curved kind."""
    if name != "curved":
        return phistar.load(name)
    kinds = ["spherical", "planar", "revolute"]
    model = random_model(np.random.default_rng(2), 4, kinds=kinds, floating_base=True, armature=0.2)
    return phistar.Robot(model)


def state(robot: phistar.Robot, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """A random one."""
    rng = np.random.default_rng(7)
    return robot.random_configuration(rng, shape), *rng.normal(size=(2, *shape, robot.nv))


def assert_close(found: Any, known: Any, bound: float) -> None:
    """Relative to the largest number."""
    for x, y in zip(found, known, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=bound * max(1.0, np.abs(y).max()))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["ur5", "quadruped", "panda_hand", "curved"])
def test_a_step_of_simulate(name: str, scheme: str) -> None:
    """Single samples and batches, of robots with mimic joints too: 1e-14, velocities 1e-13."""
    robot = robot_of(name)
    q, v, tau = state(robot, (5,))
    sim = robot.simulate(q, v, tau=tau, dt=DT, steps=1, scheme=scheme, passive=False)
    for _ in range(2):
        found = robot.step(q, v, tau, DT, scheme, passive=False)
        assert_close(found[:1], (sim.q[1],), 1e-14)
        assert_close(found[1:], (sim.v[1],), 1e-13)
    one = robot.step(q[3], v[3], tau[3], DT, scheme, passive=False)
    assert_close(one, (found[0][3], found[1][3]), 1e-13)


@pytest.mark.parametrize("reference", ["local", "world", "world_aligned"])
@pytest.mark.parametrize("scheme", ["semi_implicit", "rk4"])
def test_forces(scheme: str, reference: str) -> None:
    """Wrenches are held during the step, as in ``simulate``."""
    robot = phistar.load("quadruped")
    q, v, tau = state(robot, (3,))
    forces = {"FL_FOOT": np.random.default_rng(8).normal(size=(3, 6))}
    given = {"forces": forces, "reference": reference}
    sim = robot.simulate(q, v, tau=tau, dt=DT, steps=1, scheme=scheme, **given, passive=False)
    found = robot.step(q, v, tau, DT, scheme, **given, passive=False)
    assert_close(found, (sim.q[1], sim.v[1]), 1e-13)
    without = robot.step(q, v, tau, DT, scheme, passive=False)
    assert np.abs(found[1] - without[1]).max() > 1e-6
    with pytest.raises(UnknownNameError):
        robot.step(q, v, tau, DT, forces={"FL_HAND": np.zeros(6)}, passive=False)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["ur5", "curved"])
def test_steps_too_long_for_a_program(
    name: str, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are composed of compiled dynamics and compiled steps of q, to the same result."""
    q, v, tau = state(robot_of(name), (3,))
    known = robot_of(name).step(q, v, tau, DT, scheme, passive=False)
    patch_policy(monkeypatch, max_step_link_streams_unrolled=0)
    # Another gravity and back: a robot for which nothing was decided yet.
    robot = robot_of(name).with_gravity((0.0, 0.0, -9.8100000001))
    robot.forward_dynamics(q, v, tau)
    robot.integrate(q, v)
    composed = steps._by_entries
    used = []

    def spy(*arguments: Any) -> Any:
        used.append(composed(*arguments))
        return used[-1]

    monkeypatch.setattr(steps, "_by_entries", spy)
    assert_close(robot.step(q, v, tau, DT, scheme, passive=False), known, 1e-10)
    assert used[0] is not None
    broken = np.where(np.arange(robot.nv) == 1, np.nan, v)
    with pytest.raises(NotFiniteError, match="v is not finite"):
        robot.step(q, broken, tau, DT, scheme, passive=False)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_complex_steps(scheme: str) -> None:
    """Derivatives by complex steps of joint forces are those by central differences."""
    robot = robot_of("curved")
    q, v, tau = state(robot, ())
    way = np.random.default_rng(9).normal(size=robot.nv)
    imaginary = 1e-30
    q_next, v_next = robot.step(q, v, tau + 1j * imaginary * way, DT, scheme, passive=False)
    h = 1e-3
    ahead, behind = (
        robot.step(q, v, tau + s * h * way, DT, scheme, passive=False)[1] for s in (1, -1)
    )
    known = (ahead - behind) / (2 * h)
    np.testing.assert_allclose(
        v_next.imag / imaginary, known, rtol=0, atol=1e-7 * np.abs(known).max()
    )
    assert q_next.dtype == np.complex128


@pytest.mark.parametrize("scheme", SCHEMES)
def test_batches_that_broadcast(scheme: str) -> None:
    """Joint forces of many samples from one state give as many states, mimic joints or not."""
    for name in ("ur5", "panda_hand"):
        robot = phistar.load(name)
        q, v, tau = state(robot, (4,))
        found = robot.step(q[0], v[0], tau, DT, scheme, passive=False)
        assert [x.shape for x in found] == [(4, robot.nq), (4, robot.nv)]
        assert_close(
            [x[2] for x in found], robot.step(q[0], v[0], tau[2], DT, scheme, passive=False), 1e-13
        )


def test_steps_that_overflow() -> None:
    """Numbers that leave their range are an error, or NaN for that sample."""
    robot = phistar.load("ur5")
    q, v, tau = state(robot, (2,))
    v[1] = 1e200
    with pytest.raises(NotFiniteError):
        robot.step(q, v, tau, DT, passive=False)
    found = robot.step(q, v, tau, DT, on_error="nan", passive=False)
    assert np.isnan(found[0][1]).all()
    assert np.isnan(found[1][1]).all()
    assert_close([x[0] for x in found], robot.step(q[0], v[0], tau[0], DT, passive=False), 1e-13)


@pytest.mark.parametrize("name", ["quadruped", "panda_hand"])
def test_rollouts_are_made_of_steps(name: str) -> None:
    """A policy in Python between compiled steps; as by dynamics and ``integrate``, 1e-11."""
    robot = robot_of(name)
    q, v, _ = state(robot, ())
    motion = control.rollout(robot, q, v, lambda k, q, v: -0.5 * v, DT, 5)
    for k in range(5):
        assert_close(
            robot.step(motion.q[k], motion.v[k], motion.tau[k], DT, passive=False),
            (motion.q[k + 1], motion.v[k + 1]),
            1e-14,
        )
        v = v + DT * robot.forward_dynamics(q, v, -0.5 * v)
        q = robot.integrate(q, DT * v)
    assert_close((motion.q[-1], motion.v[-1]), (q, v), 1e-11)


def test_a_step_of_no_samples() -> None:
    """Empty batches come back empty, with friction, limits, mimic joints or without."""
    robots = [phistar.load(name) for name in ("double_pendulum", "panda_hand")]
    robots[0] = robots[0].with_joint_physics(friction=[0.1, 0.1])
    for robot in robots:
        q, v = np.zeros((2, 0, robot.nq)), np.zeros((2, 0, robot.nv))
        ahead = robot.step(q, v, v, 1e-3)
        assert [x.shape for x in ahead] == [q.shape, v.shape]
        at = robot.discretize(q, v, v, 1e-3)
        assert at.A.shape == (2, 0, 2 * robot.nv, 2 * robot.nv)
        assert robot.constrained_inverse_dynamics(q, v, v).effort.shape[:-1] == (2, 0)
