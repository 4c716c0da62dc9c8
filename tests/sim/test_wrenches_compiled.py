# SPDX-License-Identifier: BSD-3-Clause
"""Simulations with forces on frames: machine code, against steps of forward dynamics by hand."""

from __future__ import annotations

import numpy as np
import pytest

import phistar
from phistar.sim.compiled_stepper import CompiledStepper
from phistar.sim.numpy_stepper import NumpyStepper

DT = 2e-3


@pytest.fixture(scope="module")
def robot() -> phistar.Robot:
    """A small robot with a free joint."""
    rng = np.random.default_rng(5)
    kinds = ["revolute", "prismatic"]
    return phistar.Robot(phistar.random_model(rng, 3, kinds=kinds, floating_base=True))


@pytest.fixture(autouse=True)
def _wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Straight lines at once."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")


def start(
    robot: phistar.Robot, samples: int
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """States, and wrenches on two frames: one for each sample, one for all."""
    rng = np.random.default_rng(1)
    q = robot.random_configuration(rng, samples)
    v = 0.3 * rng.normal(size=(samples, robot.nv))
    first, last = robot.link_names[0], robot.link_names[-1]
    return q, v, {first: rng.normal(size=(samples, 6)), last: rng.normal(size=6)}


@pytest.mark.parametrize("reference", ["local", "world", "world_aligned"])
def test_steps_by_hand(robot: phistar.Robot, reference: str) -> None:
    """Semi-implicit steps are those of forward dynamics and integrate, to 1e-11."""
    q, v, forces = start(robot, 5)
    options = {"forces": forces, "reference": reference}
    found = robot.simulate(
        q, v, dt=DT, steps=20, scheme="semi_implicit", progress=False, **options, passive=False
    )
    assert found.engine == CompiledStepper.engine
    tau = np.zeros_like(v)
    for step in range(20):
        v = v + DT * robot.forward_dynamics(q, v, tau, **options)
        q = robot.integrate(q, DT * v)
        np.testing.assert_allclose(found.q[step + 1], q, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(found.v[step + 1], v, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_against_numpy(robot: phistar.Robot, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """All stages of rk4, for one sample too; float32 stays float32."""
    for samples in (1, 9):
        q, v, forces = start(robot, samples)
        q, v = q.astype(dtype), v.astype(dtype)
        forces = {name: wrench.astype(dtype) for name, wrench in forces.items()}
        options = {"dt": DT, "steps": 12, "every": 3, "progress": False, "forces": forces}
        found = robot.simulate(q, v, **options, passive=False)
        assert found.engine == CompiledStepper.engine
        assert found.q.dtype == dtype
        with monkeypatch.context() as patch:
            patch.setattr("phistar.sim.smooth_stepper.make_compiled_stepper", lambda *_: None)
            expected = robot.simulate(q, v, **options, passive=False)
        assert expected.engine == NumpyStepper.engine
        tolerance = 1e-11 if dtype is np.float64 else 2e-4
        np.testing.assert_allclose(found.q, expected.q, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(found.v, expected.v, rtol=tolerance, atol=tolerance)


def test_forces_matter_and_the_ground_does_not(robot: phistar.Robot) -> None:
    """Without wrenches the motion is another one; those on the ground do nothing."""
    q, v, forces = start(robot, 2)
    options = {"dt": DT, "steps": 10, "progress": False}
    free, pushed = (
        robot.simulate(q, v, **options, passive=False),
        robot.simulate(q, v, forces=forces, **options, passive=False),
    )
    assert np.abs(free.v[-1] - pushed.v[-1]).max() > 1e-4
    assert pushed.external


def test_loops_step_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that loops over links does not read wrenches on frames: NumPy steps, and is right."""
    monkeypatch.setenv("PHISTAR_TIER", "rolled")
    robot = phistar.robots.chain(4)
    forces = {robot.link_names[-1]: np.array([0.0, 0.0, 0.0, 1.0, 2.0, 3.0])}
    q, v = robot.neutral() + 0.2, np.zeros(4)
    looped = robot.simulate(q, v, dt=DT, steps=5, forces=forces, progress=False, passive=False)
    assert looped.engine == NumpyStepper.engine
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    straight = phistar.robots.chain(4).simulate(
        q, v, dt=DT, steps=5, forces=forces, progress=False, passive=False
    )
    np.testing.assert_allclose(looped.q, straight.q, rtol=1e-11, atol=1e-11)
