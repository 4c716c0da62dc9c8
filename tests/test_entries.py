# SPDX-License-Identifier: BSD-3-Clause
"""Entries to machine code: a warm call is few Python frames away from it."""

import gc
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.errors import ArgumentError
from phistar.model.model_cache import entries
from tests.helpers import patch_policy

MAX_FRAMES = 3
"""The method, the entry, and memory for the results of a batch."""

FRAME, TIP = "upper_arm_link", "tool0"
CALLS: dict[str, Callable[..., Any]] = {
    "inverse_dynamics": lambda r, q, v, x: r.inverse_dynamics(q, v, x),
    "forward_dynamics": lambda r, q, v, x: r.forward_dynamics(q, v, x),
    "bias_force": lambda r, q, v, x: r.bias_force(q, v),
    "gravity_force": lambda r, q, v, x: r.gravity_force(q),
    "mass_matrix": lambda r, q, v, x: r.mass_matrix(q),
    "mass_matrix_inverse": lambda r, q, v, x: r.mass_matrix_inverse(q),
    "coriolis_matrix": lambda r, q, v, x: r.coriolis_matrix(q, v),
    "frame_pose": lambda r, q, v, x: r.frame_pose(q, FRAME),
    "link_poses": lambda r, q, v, x: r.link_poses(q),
    "jacobian": lambda r, q, v, x: r.jacobian(q, FRAME),
    "frame_velocity": lambda r, q, v, x: r.frame_velocity(q, v, FRAME),
    "center_of_mass": lambda r, q, v, x: r.center_of_mass(q),
    "momentum": lambda r, q, v, x: r.momentum(q, v),
    "kinetic_energy": lambda r, q, v, x: r.kinetic_energy(q, v),
    "potential_energy": lambda r, q, v, x: r.potential_energy(q),
    "integrate": lambda r, q, v, x: r.integrate(q, v),
    "difference": lambda r, q, v, x: r.difference(q, q),
    "jacobian_rate": lambda r, q, v, x: r.jacobian_rate(q, v, FRAME),
    "frame_acceleration": lambda r, q, v, x: r.frame_acceleration(q, v, x, FRAME, "local"),
    "regressor": lambda r, q, v, x: r.regressor(q, v, x),
    "log_determinant": lambda r, q, v, x: r.log_determinant(q),
    "operational_inertia": lambda r, q, v, x: r.operational_inertia(q, [TIP]),
    "operational_inertia, damped": lambda r, q, v, x: r.operational_inertia(q, [TIP], damping=0.1),
    "step": lambda r, q, v, x: r.step(q, v, x, 1e-3, passive=False),
    "step rk4": lambda r, q, v, x: r.step(q, v, x, 1e-3, "rk4", passive=False),
    "discretize": lambda r, q, v, x: r.discretize(q, v, x, 1e-3),
    "linearize": lambda r, q, v, x: r.linearize(q, v, x),
    "linearize_inverse": lambda r, q, v, x: r.linearize_inverse(q, v, x),
    "jvp": lambda r, q, v, x: r.jvp("forward_dynamics", q, v, x, dq=v),
    "vjp": lambda r, q, v, x: r.vjp("inverse_dynamics", q, v, x, x),
}

PUSHED: dict[str, Callable[..., Any]] = {
    "inverse_dynamics": lambda r, q, v, x, **k: r.inverse_dynamics(q, v, x, **k),
    "forward_dynamics": lambda r, q, v, x, **k: r.forward_dynamics(q, v, x, **k),
    "linearize": lambda r, q, v, x, **k: r.linearize(q, v, x, **k),
    "linearize_inverse": lambda r, q, v, x, **k: r.linearize_inverse(q, v, x, **k),
    "jvp": lambda r, q, v, x, **k: r.jvp("forward_dynamics", q, v, x, dq=v, **k),
    "vjp": lambda r, q, v, x, **k: r.vjp("inverse_dynamics", q, v, x, x, **k),
}


@pytest.fixture(scope="module")
def robot() -> phistar.Robot:
    """One robot for all, so that programs are compiled once."""
    return phistar.load("ur5")


def frames(call: Callable[..., Any], *arguments: Any, **named: Any) -> int:
    """Python functions that a call runs, the function of ``CALLS`` not counted."""
    count = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    # The collector has callbacks, of hypothesis for instance, and runs finalizers of others.
    gc.disable()
    sys.setprofile(profile)
    try:
        call(*arguments, **named)
    finally:
        sys.setprofile(None)
        gc.enable()
    return count - 1


@pytest.mark.parametrize("batch", [(), (40,), (3000,)])
@pytest.mark.parametrize("name", CALLS)
def test_frames_of_a_warm_call(
    name: str, batch: tuple[int, ...], robot: phistar.Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Single samples and batches with plain arrays go straight to machine code."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    patch_policy(monkeypatch, min_nanoseconds_per_thread=1e12)  # threads take the general path
    rng = np.random.default_rng(4)
    q = robot.random_configuration(rng, batch)
    v, x = rng.normal(size=(2, *batch, robot.nv))
    call = CALLS[name]
    for _ in range(2):
        call(robot, q, v, x)
    assert frames(call, robot, q, v, x) <= MAX_FRAMES


class _Asking:
    """A robot whose methods are called with more arguments."""

    def __init__(self, robot: phistar.Robot, **named: Any) -> None:
        self._robot, self._named = robot, named

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(getattr(self._robot, name), **self._named)


@pytest.mark.parametrize("name", CALLS)
def test_wrong_wishes_are_refused_by_warm_methods(name: str, robot: phistar.Robot) -> None:
    """What to do with bad samples is looked at where there are none, too."""
    q = robot.random_configuration(np.random.default_rng(4))
    v, x = np.random.default_rng(4).normal(size=(2, robot.nv))
    call = CALLS[name]
    wanted = call(robot, q, v, x)
    with pytest.raises(ArgumentError, match="on_error is 'skip', expected 'raise' or 'nan'"):
        call(_Asking(robot, on_error="skip"), q, v, x)
    for wish in ("nan", "".join(["ra", "ise"])):
        assert repr(call(_Asking(robot, on_error=wish), q, v, x)) == repr(wanted)


@pytest.mark.parametrize("reference", ["local", "world", "world_aligned"])
@pytest.mark.parametrize("batch", [(), (3000,)])
@pytest.mark.parametrize("name", PUSHED)
def test_frames_of_a_warm_call_with_forces(
    name: str,
    batch: tuple[int, ...],
    reference: str,
    robot: phistar.Robot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So do calls with wrenches on frames, in any order, one for each sample or for all."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    patch_policy(monkeypatch, min_nanoseconds_per_thread=1e12)  # threads take the general path
    rng = np.random.default_rng(5)
    q = robot.random_configuration(rng, batch)
    v, x = rng.normal(size=(2, *batch, robot.nv))
    forces = {name: rng.normal(size=(*batch, 6)) for name in (FRAME, "tool0", "wrist_2_link")}
    call = PUSHED[name]
    for _ in range(2):
        call(robot, q, v, x, forces=forces, reference=reference)
    turned = dict(reversed(forces.items()))
    shared = {name: wrench.reshape(-1, 6)[0] for name, wrench in forces.items()}
    for given in (forces, turned, shared):
        named = {"forces": given, "reference": reference}
        assert frames(call, robot, q, v, x, **named) <= MAX_FRAMES


def test_entries_belong_to_the_robot() -> None:
    """Loading makes none, another robot has its own, and none hashes the model."""
    one, other = phistar.load("double_pendulum"), phistar.load("double_pendulum")
    assert entries(one.model) == {}
    assert "fingerprint" not in vars(one.model)
    one.gravity_force(np.zeros(2))
    assert set(entries(one.model)) == {"gravity_force"}
    assert entries(other.model) == {}
