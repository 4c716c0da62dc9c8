# SPDX-License-Identifier: BSD-3-Clause
"""Whole-body quantities: machine code and sweeps against Pinocchio, momentum and differences."""

import warnings
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import phistar
from phistar import whole_body
from phistar.arrays import Array
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model import ModelBuilder
from phistar.model.random import random_model
from phistar.robot import Robot
from tests.helpers import SHARED, needs_shared

NAMES = (
    "center_of_mass_jacobian",
    "center_of_mass_jacobian_rate",
    "centroidal_momentum_matrix",
    "centroidal_momentum_matrix_rate",
)
FILES = (
    "arm/dex_urdf__robots__arms__iiwa14__iiwa14.urdf",
    "quadruped/example_robot_data__robots__go2_description__urdf__go2.urdf",
    "humanoid/unitree_ros__robots__h1_description__urdf__h1.urdf",
)


def results(robot: Robot, q: Array, v: Array) -> dict[str, Array]:
    """All four, the Jacobians of the links that move alone."""
    return {
        "center_of_mass_jacobian": robot.center_of_mass_jacobian(q, fixed=False),
        "center_of_mass_jacobian_rate": robot.center_of_mass_jacobian_rate(q, v, fixed=False),
        "centroidal_momentum_matrix": robot.centroidal_momentum_matrix(q),
        "centroidal_momentum_matrix_rate": robot.centroidal_momentum_matrix_rate(q, v),
    }


def by_sweeps(robot: Robot, q: Array, v: Array, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same without machine code of their own: operators and their rates."""
    with monkeypatch.context() as patch:
        patch.setattr(whole_body, "run_traced", lambda *_: None)
        patch.setattr(robot, "_entries", {})
        return results(robot, q, v)


def close(ours: Array, theirs: Array, tolerance: float) -> bool:
    """Relative to the largest number."""
    assert ours.shape == theirs.shape
    return bool(np.abs(ours - theirs).max() <= tolerance * max(np.abs(theirs).max(), 1e-12))


def state(robot: Robot, *shape: int) -> tuple[Array, Array]:
    """Random configurations and velocities."""
    rng = np.random.default_rng(7)
    return robot.random_configuration(rng, shape), rng.normal(size=(*shape, robot.nv))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code from the first sample on."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")


def against_pinocchio(robot: Robot, peer: pin.Model) -> None:
    """All four at a random state; relative 1e-10."""
    convert = phistar.conventions.pinocchio(robot, peer)
    q, v = state(robot)
    data = peer.createData()
    theirs, speed = convert.q_to_peer(q), convert.v_to_peer(q, v)
    S = convert.velocity_matrix(q)  # constant on free bases and angles
    found = {
        "center_of_mass_jacobian": pin.jacobianCenterOfMass(peer, data, theirs).copy() @ S,
        "centroidal_momentum_matrix": convert.jacobian_from_peer(q, pin.ccrba(
            peer, data, theirs, speed
        ).copy()),
    }  # fmt: skip
    rate = pin.dccrba(peer, data, theirs, speed).copy()
    found["centroidal_momentum_matrix_rate"] = convert.jacobian_from_peer(q, rate)
    mass = sum(inertia.mass for inertia in peer.inertias[1:])
    found["center_of_mass_jacobian_rate"] = rate[:3] @ S / mass
    for name, ours in results(robot, q, v).items():
        assert close(ours, found[name], 1e-10), name


@pytest.mark.parametrize("name", ["panda", "quadruped", "humanoid", "ur5", "cartpole"])
def test_bundled_robots_against_pinocchio(name: str) -> None:
    """ccrba, dccrba and jacobianCenterOfMass."""
    robot = phistar.load(name)
    base = [pin.JointModelFreeFlyer()] if phistar.robots.floats(name) else []
    peer = pin.buildModelFromUrdf(str(phistar.robots.path(name)), *base)
    against_pinocchio(robot, peer)


@needs_shared
@pytest.mark.parametrize("path", FILES)
def test_files_against_pinocchio(path: str) -> None:
    """The same on an arm, a quadruped and a humanoid of the reference robots."""
    file = SHARED / "robots" / path
    floats = not path.startswith("arm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = phistar.load(file, floating_base=floats)
    base = [pin.JointModelFreeFlyer()] if floats else []
    against_pinocchio(robot, pin.buildModelFromUrdf(str(file), *base))


def make_robots() -> dict[str, Robot]:
    """Mimic joints, a forest with all joint kinds, welded links on the ground."""
    rng = np.random.default_rng(5)
    rich: dict[str, Any] = {"fixed": 0.3, "mimic": 0.4, "anchors": 0.4, "frames": 3}
    return {
        "panda_hand": phistar.load("panda_hand"),
        "forest": Robot(random_model(rng, 7, topology="forest", **rich)),
    }


ROBOTS = make_robots()


@pytest.mark.parametrize("name", ROBOTS)
def test_momentum_differences_and_sweeps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A v is momentum moved to the centre; rates are differences; sweeps say the same."""
    robot = ROBOTS[name]
    q, v = state(robot, 3)
    found = results(robot, q, v)
    swept = by_sweeps(robot, q, v, monkeypatch)
    for key, ours in found.items():
        assert close(ours, swept[key], 1e-12), key
    momentum = robot.momentum(q, v)
    center = robot.center_of_mass(q, fixed=False)
    momentum[:, :3] -= np.cross(center, momentum[:, 3:])
    moved = (found["centroidal_momentum_matrix"] @ v[..., None])[..., 0]
    assert close(moved, momentum, 1e-12)
    h = 1e-5
    ahead, back = robot.integrate(q, h * v), robot.integrate(q, -h * v)
    fixed = robot.center_of_mass_jacobian(q) @ v[..., None]
    speed = (robot.center_of_mass(ahead) - robot.center_of_mass(back)) / (2 * h)
    assert close(fixed[..., 0], speed, 1e-8)
    for key in NAMES[::2]:
        method = getattr(robot, key)
        rate = (method(ahead) - method(back)) / (2 * h)
        assert close(getattr(robot, f"{key}_rate")(q, v), rate, 1e-8), key


@pytest.mark.parametrize("reference", ["local", "world", "world_aligned"])
def test_bias_acceleration(reference: str) -> None:
    """J̇ v, and with J v̇ the acceleration of the frame; Pinocchio's classical one."""
    robot = phistar.load("quadruped")
    q, v = state(robot, 4)
    vdot = np.random.default_rng(1).normal(size=v.shape)
    frame = "HR_FOOT"
    ours = robot.frame_bias_acceleration(q, v, frame, reference)
    rate = robot.jacobian_rate(q, v, frame, reference)
    assert close(ours, (rate @ v[..., None])[..., 0], 1e-12)
    whole = robot.frame_acceleration(q, v, vdot, frame, reference)
    J = robot.jacobian(q, frame, reference)
    assert close(ours + (J @ vdot[..., None])[..., 0], whole, 1e-12)
    with pytest.raises(UnknownNameError, match="HR_FOOT"):
        robot.frame_bias_acceleration(q, v, "HR_FOT")


def test_bias_acceleration_against_pinocchio() -> None:
    """The point's own acceleration in the world with v̇ = 0."""
    robot = phistar.load("panda")
    peer = pin.buildModelFromUrdf(str(phistar.robots.path("panda")))
    q, v = state(robot)
    data = peer.createData()
    pin.forwardKinematics(peer, data, q, v, np.zeros(7))
    index = peer.getFrameId("panda_link7")
    theirs = pin.getFrameClassicalAcceleration(peer, data, index, pin.LOCAL_WORLD_ALIGNED)
    ours = robot.frame_bias_acceleration(q, v, "panda_link7")
    assert close(ours, np.r_[theirs.angular, theirs.linear], 1e-12)


def test_batches_precision_and_bad_samples() -> None:
    """Any batch axes, float32 stays float32, a bad sample is NaN and the others keep their bits."""
    robot = phistar.load("quadruped")
    q, v = state(robot, 2, 3)
    for name, ours in results(robot, q, v).items():
        assert ours.shape[:2] == (2, 3), name
    single = results(robot, q.astype(np.float32), v.astype(np.float32))
    for name, ours in results(robot, q, v).items():
        assert single[name].dtype == np.float32, name
        assert close(single[name].astype(float), ours, 2e-5), name
    bad = q.copy()
    bad[1, 1, 9] = np.nan
    for name in NAMES:
        more = (v,) if name.endswith("rate") else ()
        good = getattr(robot, name)(q, *more)
        found = getattr(robot, name)(bad, *more, on_error="nan")
        assert np.isnan(found[1, 1]).all(), name
        rest = np.ones((2, 3), bool)
        rest[1, 1] = False
        assert np.array_equal(found[rest], good[rest]), name


def test_long_robots_and_other_numbers() -> None:
    """A chain too long to unroll, and complex numbers: a derivative by a complex step."""
    robot = phistar.robots.chain(150)
    q, v = state(robot)
    momentum = robot.momentum(q, v)
    center = robot.center_of_mass(q, fixed=False)
    momentum[:3] -= np.cross(center, momentum[3:])
    assert close(robot.centroidal_momentum_matrix(q) @ v, momentum, 1e-11)
    arm = phistar.load("panda")
    q, v = state(arm)
    step = arm.centroidal_momentum_matrix(q + 1e-30j * v).imag / 1e-30
    assert close(arm.centroidal_momentum_matrix_rate(q, v), step, 1e-12)


def test_nothing_heavy_moves() -> None:
    """A robot whose mass is on the ground has no centroidal momentum, and says so."""
    builder = ModelBuilder("light")
    builder.link("base", 1.0, inertia=(1, 1, 1))
    builder.link("arm")
    builder.joint("j", "revolute", "base", "arm", axis=(0, 0, 1))
    robot = Robot(builder.build())
    with pytest.raises(ArgumentError, match="light"):
        robot.centroidal_momentum_matrix([0.0])
    with pytest.raises(ArgumentError, match="no mass"):
        robot.center_of_mass_jacobian([0.0], fixed=False)
    assert np.array_equal(robot.center_of_mass_jacobian([0.0]), np.zeros((3, 1)))
