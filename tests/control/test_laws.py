# SPDX-License-Identifier: BSD-3-Clause
"""Control laws at single states: their forces, and the rates of their Lyapunov functions."""

import numpy as np
import pytest

import phistar
from phistar import control
from phistar.control import Law
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.model.random import random_model
from tests.control.arms import READY, TIPS, goal, goal_pose, planar, starts

TINY = 1e-30


@pytest.fixture(scope="module")
def arm() -> phistar.Robot:
    """The UR5."""
    return phistar.load("ur5")


def states(robot: phistar.Robot) -> tuple[np.ndarray, np.ndarray]:
    """Random states around READY."""
    q = starts(robot.name, 4)
    return q, np.random.default_rng(1).normal(size=q.shape)


def lyapunov_rate(law: Law, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The rate of a law's Lyapunov function along the motion it makes, by central differences."""
    vdot = law.robot.forward_dynamics(q, v, law.forces(q, v))
    h = 1e-5
    ahead, behind = (
        law.lyapunov(law.robot.integrate(q, s * h * v + h * h / 2 * vdot), v + s * h * vdot)
        for s in (1, -1)
    )
    return (ahead - behind) / (2 * h)


def tip_triangular(robot: phistar.Robot, q: np.ndarray) -> np.ndarray:
    """The upper triangular m with 𝓜 = m m*: unique for joints with one axis."""
    return np.linalg.cholesky(robot.mass_matrix(q)[..., ::-1, ::-1])[..., ::-1, ::-1]


def test_rate_feedback(arm: phistar.Robot) -> None:
    """τ = -m c m*v + g with the triangular factor of 𝓜; for a number c it is -c𝓜v; 1e-11."""
    q, v = states(arm)
    c = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    m = tip_triangular(arm, q)
    eta = np.einsum("zij,zi->zj", m, v)
    found = control.rate_feedback(arm, c, gravity=False).forces(q, v)
    expected = -np.einsum("zij,zj->zi", m, c * eta)
    np.testing.assert_allclose(found, expected, atol=1e-11 * np.abs(expected).max())
    held = control.rate_feedback(arm, c).forces(q, v) - found
    np.testing.assert_allclose(held, arm.gravity_force(q), rtol=1e-9, atol=1e-9)
    found = control.rate_feedback(arm, 2.0, gravity=False).forces(q, v)
    expected = -2.0 * np.einsum("zij,zj->zi", arm.mass_matrix(q), v)
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())
    rate = lyapunov_rate(control.rate_feedback(arm, c), q, v)
    np.testing.assert_allclose(rate, -(c * eta**2).sum(axis=-1), rtol=1e-6)


def test_pull_is_a_gradient(arm: phistar.Robot) -> None:
    """c₂J_Y*e is minus the gradient of ½c₂e*e, by complex steps of the frame; relative 1e-12."""
    q, v = states(arm)
    target = goal_pose(arm)
    law = control.pose_control(arm, "tool0", target, stiffness=70.0, length=0.4)

    def ends(pose: np.ndarray) -> np.ndarray:
        axes = [0.4 * pose[..., :3, k] for k in range(3)]
        return np.concatenate([pose[..., :3, 3], *axes], axis=-1)

    moved = [ends(arm.frame_pose(q + 1j * TINY * e, "tool0")).imag / TINY for e in np.eye(6)]
    error = ends(target) - ends(arm.frame_pose(q, "tool0"))
    np.testing.assert_allclose(law.error(q, v), error, atol=1e-14)
    expected = 70.0 * np.einsum("jzy,zy->zj", np.array(moved), error)
    np.testing.assert_allclose(law.pull(q), expected, atol=1e-12 * np.abs(expected).max())


def test_pose_control_in_diagonal_forces(arm: phistar.Robot) -> None:
    """ε = ℓτ is -c₁η + c₂ℓJ_Y*e, and the function falls at the rate -η*c₁η; 1e-10, 1e-5."""
    q, v = states(arm)
    c = np.array([6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    law = control.pose_control(arm, "tool0", goal_pose(arm), c, 50.0)
    m = tip_triangular(arm, q)
    eta = np.einsum("zij,zi->zj", m, v)
    tau = law.forces(q, v) - arm.gravity_force(q)
    epsilon = np.linalg.solve(m, tau[..., None])[..., 0]
    expected = -c * eta + np.linalg.solve(m, law.pull(q)[..., None])[..., 0]
    np.testing.assert_allclose(epsilon, expected, atol=1e-10 * np.abs(expected).max())
    rate = lyapunov_rate(law, q, v)
    np.testing.assert_allclose(rate, -(c * eta**2).sum(axis=-1), rtol=1e-5)


def test_rates_of_the_others(arm: phistar.Robot) -> None:
    """PD: -v*k_d v; computed torque: -v*k_d v; operational: -k_d V*V; relative 1e-5."""
    q, v = states(arm)
    kd = np.array([6.0, 5.0, 4.0, 0.3, 0.2, 0.1])
    rate = lyapunov_rate(control.pd_gravity(arm, goal("ur5"), 10.0, kd), q, v)
    np.testing.assert_allclose(rate, -(kd * v**2).sum(axis=-1), rtol=1e-5)
    rate = lyapunov_rate(control.computed_torque(arm, goal("ur5"), 30.0, kd), q, v)
    np.testing.assert_allclose(rate, -(kd * v**2).sum(axis=-1), rtol=1e-5)
    law = control.operational_space(arm, "tool0", goal_pose(arm), 30.0, 7.0)
    speed = arm.frame_velocity(q, v, "tool0")
    np.testing.assert_allclose(lyapunov_rate(law, q, v), -7 * (speed**2).sum(axis=-1), rtol=1e-5)


def test_operational_space_commands_the_frame() -> None:
    """The frame accelerates as asked; what it does not feel is damped, -c𝓜v + c J*ΛJv; 1e-9."""
    robot = phistar.load("panda")
    q, v = states(robot)
    tip = TIPS["panda"]
    law = control.operational_space(robot, tip, goal_pose(robot), 30.0, 7.0, inner=2.0)
    vdot = robot.forward_dynamics(q, v, law.forces(q, v))
    found = robot.frame_acceleration(q, v, vdot, tip)
    wanted = 30.0 * law.error(q, v) - 7.0 * robot.frame_velocity(q, v, tip)
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())
    jacobian, mass = robot.jacobian(q, tip), robot.mass_matrix(q)
    for k in range(len(q)):
        still = np.linalg.svd(jacobian[k])[2][6]  # a motion that the frame does not feel
        free = still @ (law.require(q[k], v[k]) - robot.bias_force(q[k], v[k]))
        assert free == pytest.approx(-2.0 * still @ mass[k] @ v[k], rel=1e-8)


def test_pulls_are_forces_at_rest(arm: phistar.Robot) -> None:
    """Every law's pull is its force at rest without gravity; relative 1e-10."""
    q, _ = states(arm)
    for law in (
        control.rate_feedback(arm),
        control.pose_control(arm, "tool0", goal_pose(arm)),
        control.pd_gravity(arm, goal("ur5")),
        control.computed_torque(arm, goal("ur5")),
        control.operational_space(arm, "tool0", goal_pose(arm)),
    ):
        at_rest = law.forces(q, np.zeros(6)) - arm.gravity_force(q)
        np.testing.assert_allclose(law.pull(q), at_rest, atol=1e-10 * np.abs(at_rest).max() + 1e-10)


def test_sight() -> None:
    """|J_Y*e| / (|J_Y||e|): 0 at a stretched arm pulled along itself, by its own matrices else."""
    robot = planar()
    target = np.eye(4)
    target[0, 3] = 1.5
    law = control.pose_control(robot, "tip", target, length=0.7)
    q = np.array([[0.0, 0.0, 0.0], [0.3, -0.5, 0.4]])
    found = law.sight(q, np.zeros(3))
    assert found[0] < 1e-15
    step = 1e-6 * np.eye(3)
    slope = (law.error(q[1] - step, step) - law.error(q[1] + step, step)) / 2e-6
    error = law.error(q[1], q[1])
    expected = np.linalg.norm(slope @ error) / (np.linalg.norm(slope) * np.linalg.norm(error))
    assert found[1] == pytest.approx(expected, rel=1e-8)
    assert law.singular_value(q)[0] < 1e-15
    assert law.singular_value(q)[1] > 0.1


def test_joints_with_several_axes() -> None:
    """Laws of rates and poses work on any joint kind, a damping for each diagonal rate too."""
    robot = phistar.Robot(random_model(np.random.default_rng(2), 4, floating_base=True))
    q = robot.random_configuration(3)
    v = np.random.default_rng(4).normal(size=robot.nv)
    c = np.linspace(1.0, 2.0, robot.nv)
    law = control.pose_control(robot, robot.link_names[-1], np.eye(4), c)
    eta = robot.diagonalize(q, v).eta
    assert lyapunov_rate(law, q, v) == pytest.approx(-(c * eta**2).sum(), rel=1e-5)


def test_limits(arm: phistar.Robot) -> None:
    """Forces stay within the limits, and what was asked for beyond them is marked."""
    q, v = states(arm)
    law = control.pose_control(arm, "tool0", goal_pose(arm), limits=[5.0, 6, 7, 1, 1, 0.1])
    found, asked = law.forces(q, v), law.require(q, v)
    assert (np.abs(found) <= [5.0, 6, 7, 1, 1, 0.1]).all()
    outside = law.saturated(asked)
    assert outside.any()
    assert not outside.all()
    assert (found == asked)[~outside].all()
    assert (found != asked)[outside].all()
    robust = control.rate_feedback(arm, limits="robot")
    assert (robust.upper == [150.0, 150, 150, 28, 28, 28]).all()


def test_laws_are_policies(arm: phistar.Robot) -> None:
    """``rollout`` takes a law; dicts by joint name do as states."""
    law = control.pd_gravity(arm, goal("ur5"))
    motion = control.rollout(arm, READY["ur5"], np.zeros(6), law, 0.005, 200)
    assert np.abs(motion.q[-1] - goal("ur5")).max() < 0.1
    named = dict(zip(arm.joint_names, READY["ur5"], strict=True))
    np.testing.assert_array_equal(law.forces(named, {}), law.forces(READY["ur5"], np.zeros(6)))


def test_mistakes(arm: phistar.Robot) -> None:
    """Gains, goals, frames and robots that do not do are named."""
    pose = np.eye(4)
    with pytest.raises(ArgumentError, match=r"damping is -1.0, expected positive"):
        control.rate_feedback(arm, -1.0)
    with pytest.raises(ShapeError, match="damping"):
        control.rate_feedback(arm, [1.0, 2.0])
    with pytest.raises(UnknownNameError, match="tool0"):
        control.pose_control(arm, "tool", pose)
    with pytest.raises(ShapeError, match="pose"):
        control.pose_control(arm, "tool0", np.eye(3))
    with pytest.raises(ArgumentError, match="not a rigid one"):
        control.pose_control(arm, "tool0", 2 * pose)
    with pytest.raises(ArgumentError, match="stiffness is 0"):
        control.pose_control(arm, "tool0", pose, 1.0, 0.0)
    with pytest.raises(ArgumentError, match="length is -1"):
        control.pose_control(arm, "tool0", pose, length=-1.0)
    with pytest.raises(ArgumentError, match="has 3 degrees of freedom"):
        control.operational_space(planar(), "tip", pose)
    stretched = control.operational_space(arm, "tool0", goal_pose(arm))
    with pytest.raises(ArgumentError, match="'tool0' of robot 'ur5' is at a singular pose"):
        stretched.forces(np.zeros(6), np.zeros(6))
