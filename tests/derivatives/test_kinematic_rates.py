# SPDX-License-Identifier: BSD-3-Clause
"""Rates of Jacobians, accelerations of frames, gradients of energies: complex steps, Pinocchio."""

import numpy as np
import pinocchio as pin
import pytest

import phistar
from phistar.conventions import swap_spatial
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from tests.derivatives.witness import ROBOTS, TINY, State, along, close, state, steps, times

REFERENCES = {
    "local": pin.LOCAL,
    "world": pin.WORLD,
    "world_aligned": pin.LOCAL_WORLD_ALIGNED,
}


@pytest.fixture(scope="module", params=ROBOTS)
def case(request: pytest.FixtureRequest) -> State:
    """Every joint kind."""
    return state(request.param)


@pytest.mark.parametrize("reference", REFERENCES)
def test_rates(case: State, reference: str) -> None:
    """J̇ and V̇ of every third frame are complex steps of J and V along the motion; 1e-11."""
    robot = case.robot
    later = robot.integrate(case.q, TINY * 1j * case.v)
    faster = case.v + TINY * 1j * case.x
    for frame in robot.frame_names[::3]:
        rate = robot.jacobian_rate(case.q, case.v, frame, reference)
        close(rate, robot.jacobian(later, frame, reference).imag / TINY)
        expected = robot.frame_velocity(later, faster, frame, reference).imag / TINY
        found = robot.frame_acceleration(case.q, case.v, case.x, frame, reference)
        close(found, expected)
        jacobian = robot.jacobian(case.q, frame, reference)
        close(found, times(jacobian, case.x) + times(rate, case.v))


def test_a_frame_at_rest() -> None:
    """What hangs on the ground neither moves nor accelerates."""
    case = state("tree")
    zero = case.robot.frame_acceleration(case.q, case.v, case.x, "link0")
    assert not zero.any()
    assert zero.shape == (2, 6)
    assert not case.robot.jacobian_rate(case.q, case.v, "link0").any()


@pytest.mark.parametrize("name", ["panda", "quadruped"])
def test_pinocchio(name: str, machine_code: None) -> None:
    """J̇ is getFrameJacobianTimeVariation, V̇ the accelerations of frames; relative 1e-9.

    In the axes of the world at the frame's origin V̇ has the classical acceleration; Pinocchio's
    spatial one differs by ω × v. Its free joint's linear part comes first.
    """
    robot = phistar.load(name)
    base = [pin.JointModelFreeFlyer()] if phistar.robots.floats(name) else []
    peer = pin.buildModelFromUrdf(str(phistar.robots.path(name)), *base)
    data, rng = peer.createData(), np.random.default_rng(2)
    convert = phistar.conventions.pinocchio(robot, peer)
    q, (v, x) = robot.random_configuration(rng), rng.normal(size=(2, robot.nv))
    theirs = convert.q_to_peer(q), convert.v_to_peer(q, v)
    pin.forwardKinematics(peer, data, *theirs, convert.vdot_to_peer(q, v, x))
    pin.computeJointJacobiansTimeVariation(peer, data, *theirs)
    pin.updateFramePlacements(peer, data)
    for frame in robot.link_names[1::4]:
        index = peer.getFrameId(frame)
        for reference, kind in REFERENCES.items():
            rate = pin.getFrameJacobianTimeVariation(peer, data, index, kind)
            ours = robot.jacobian_rate(q, v, frame, reference)
            close(ours, convert.jacobian_from_peer(q, rate), 1e-9)
            spatial = pin.getFrameAcceleration(peer, data, index, kind).vector
            classical = pin.getFrameClassicalAcceleration(peer, data, index, kind).vector
            expected = swap_spatial(classical if reference == "world_aligned" else spatial)
            found = robot.frame_acceleration(q, v, x, frame, reference)
            close(found, expected, 1e-9)


def test_energies(case: State) -> None:
    """∂/∂q of the kinetic energy and of gravity's forces are complex steps; relative 1e-11."""
    robot = case.robot
    expected, _ = steps(robot, robot.kinetic_energy, (case.q, case.v))
    close(robot.kinetic_energy_q(case.q, case.v), expected)
    (expected,) = steps(robot, robot.gravity_force, (case.q,))
    close(robot.gravity_force_q(case.q), expected)


def test_gravity_is_a_potential() -> None:
    """For joints with one axis ∂τ/∂q of gravity is a Hessian: symmetric; the gradient is τ."""
    case = state("tree", kinds=["revolute", "prismatic", "helical"])
    stiffness = case.robot.gravity_force_q(case.q)
    close(stiffness, np.swapaxes(stiffness, -1, -2), 1e-12)
    (force,) = steps(case.robot, case.robot.potential_energy, (case.q,))
    close(case.robot.gravity_force(case.q), force)


def test_reduced_mimic_joints() -> None:
    """Followers reduced: the same laws; relative 1e-11."""
    case = state("tree", seed=6, kinds=["revolute", "prismatic", "spherical"], mimic=0.5)
    robot = case.robot
    assert len(robot.joint_names) < sum(j.joint_kind.nv > 0 for j in robot.joints.values())
    frame = robot.link_names[-1]
    close(
        robot.jacobian_rate(case.q, case.v, frame),
        along(robot, lambda q: robot.jacobian(q, frame), (case.q,), (case.v,)),
    )
    close(
        robot.frame_acceleration(case.q, case.v, case.x, frame),
        along(
            robot,
            lambda q, v: robot.frame_velocity(q, v, frame),
            (case.q, case.v),
            (case.v, case.x),
        ),
    )
    test_energies(case)


def test_batches_broadcast() -> None:
    """Axes of q and v broadcast; a batch is its single states; 1e-12."""
    case = state(batch=())
    robot, frame = case.robot, case.robot.link_names[-1]
    q = robot.random_configuration(1, (3, 1))
    v = np.random.default_rng(2).normal(size=(2, robot.nv))
    rate = robot.jacobian_rate(q, v, frame)
    assert rate.shape == (3, 2, 6, robot.nv)
    close(rate[2, 1], robot.jacobian_rate(q[2, 0], v[1], frame), 1e-12)
    moving = robot.frame_acceleration(q, v, case.x, frame)
    close(moving[2, 1], robot.frame_acceleration(q[2, 0], v[1], case.x, frame), 1e-12)
    energy = robot.kinetic_energy_q(q, v)
    close(energy[2, 1], robot.kinetic_energy_q(q[2, 0], v[1]), 1e-12)
    assert robot.gravity_force_q(q).shape == (3, 1, robot.nv, robot.nv)


def test_errors() -> None:
    """Unknown frames and axes, wrong shapes and numbers that are none are named."""
    robot = phistar.load("double_pendulum")
    x, frame = np.zeros(robot.nv), robot.link_names[-1]
    with pytest.raises(UnknownNameError, match="hand"):
        robot.jacobian_rate(x, x, "hand")
    with pytest.raises(UnknownNameError, match="hand"):
        robot.frame_acceleration(x, x, x, "hand")
    with pytest.raises(ArgumentError, match=r"world_aligned.*'up'"):
        robot.frame_acceleration(x, x, x, frame, "up")
    with pytest.raises(ShapeError, match="vdot"):
        robot.frame_acceleration(x, x, np.zeros(3), frame)
    with pytest.raises(ArgumentError, match=r"v\[0\] is nan"):
        robot.kinetic_energy_q(x, x * np.nan)
