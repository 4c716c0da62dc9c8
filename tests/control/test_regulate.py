# SPDX-License-Identifier: BSD-3-Clause
"""Robots under laws: closed forms, poses that are reached, and failures that are reported."""

import numpy as np
import pytest
from scipy.integrate import simpson

import phistar
from phistar import control
from phistar.control import PoseControl
from phistar.errors import ArgumentError
from phistar.model.builder import ModelBuilder
from phistar.model.random import random_model
from tests.control.arms import READY, TIPS, goal, goal_pose, planar, starts


@pytest.fixture(scope="module")
def arm() -> phistar.Robot:
    """The UR5."""
    return phistar.load("ur5")


# -- Control 8.1


def test_kinetic_energy_decays_exactly() -> None:
    """K = K(0) exp(-2ct) without gravity, for c a number; relative 1e-8 at all times."""
    robot = planar().with_gravity((0, 0, 0))
    law = control.rate_feedback(robot, 0.8)
    run = control.regulate(law, [0.1, 0.2, -0.7], [1.0, -2.0, 3.0], duration=1.0, dt=0.0025)
    assert run.t[-1] == pytest.approx(1.0)
    np.testing.assert_allclose(run.kinetic / run.kinetic[0], np.exp(-1.6 * run.t), rtol=1e-8)
    assert run.monotone
    assert (run.lyapunov == run.kinetic).all()


def test_order_on_joints_with_several_axes() -> None:
    """The same on a tumbling tree with free and spherical joints; the error is of fourth order."""
    rng = np.random.default_rng(7)
    kinds = ["spherical", "planar", "revolute"]
    robot = phistar.Robot(random_model(rng, 3, kinds=kinds, floating_base=True, gravity=(0, 0, 0)))
    q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
    law = control.rate_feedback(robot, 1.0)
    errors, ends = [], []
    for dt in (0.02, 0.01, 0.005):
        run = control.regulate(law, q, v, duration=0.4, dt=dt)
        errors.append(abs(run.kinetic[-1] / run.kinetic[0] - np.exp(-0.8)))
        ends.append(run.q[-1])
    assert errors[2] < 1e-6
    assert 11 < errors[0] / errors[1] < 25
    shifts = [np.abs(robot.difference(ends[k], ends[k + 1])).max() for k in range(2)]
    assert 11 < shifts[0] / shifts[1] < 25


def test_gravity_needs_compensation() -> None:
    """Rate feedback stops a pendulum where it is; uncompensated, it falls and says so."""
    robot = phistar.load("double_pendulum")
    q, v = [1.2, 0.4], [0.5, -0.5]
    held = control.regulate(control.rate_feedback(robot, 3.0), q, v, duration=3.0, dt=0.01)
    assert held.reached
    assert np.abs(held.q[-1] - q).max() < 0.3
    law = control.rate_feedback(robot, 3.0, gravity=False)
    fallen = control.regulate(law, q, v, duration=3.0, dt=0.01)
    assert not fallen.monotone
    assert "rising" in str(fallen)


# -- Control 8.2


@pytest.mark.parametrize("name", TIPS)
def test_poses_are_reached(name: str) -> None:
    """UR5 and Panda reach a pose from all starts; the Lyapunov function never rises."""
    robot = phistar.load(name)
    law = control.pose_control(robot, TIPS[name], goal_pose(robot))
    run = control.regulate(law, starts(name), duration=2.4, dt=0.005)
    assert run.monotone.all()
    assert run.reached.all()
    assert (run.error[0] > 0.3).all()
    assert (run.error[-1] < 1e-4).all()
    apart = robot.frame_pose(run.q[-1], TIPS[name]) - goal_pose(robot)
    assert np.abs(apart).max() < 5e-4
    assert "reached" in run.describe(1)


def test_damping_for_each_diagonal_rate(arm: phistar.Robot) -> None:
    """A diagonal c₁ keeps the Lyapunov function falling and reaches the pose."""
    c = [8.0, 6.0, 10.0, 7.0, 9.0, 5.0]
    law = control.pose_control(arm, "tool0", goal_pose(arm), c)
    run = control.regulate(law, READY["ur5"], duration=1.2, dt=0.01)
    assert run.monotone
    assert run.error[-1] < 0.02 * run.error[0]


class Printed(PoseControl):
    """The sign of the paper's (8.6)."""

    def pull(self, q: np.ndarray) -> np.ndarray:
        """Away from the goal."""
        return -super().pull(q)


def test_printed_sign_drives_away(arm: phistar.Robot) -> None:
    """With the printed sign the error and the Lyapunov function grow."""
    right = control.pose_control(arm, "tool0", goal_pose(arm))
    law = Printed(**vars(right))
    run = control.regulate(law, READY["ur5"], duration=1.0, dt=0.005)
    assert run.error[-1] > 2 * run.error[0]
    assert not run.monotone
    assert not run.reached


def test_gravity_uncompensated_stalls(arm: phistar.Robot) -> None:
    """Without compensation the arm comes to rest beside the goal, and the record says why.

    There the pull holds gravity, relative 1e-2 for what is left of the motion.
    """
    law = control.pose_control(arm, "tool0", goal_pose(arm), gravity=False)
    run = control.regulate(law, READY["ur5"], duration=5.0, dt=0.005)
    assert run.outcome == "stalled by gravity, which is not compensated"
    assert run.error[-1] > 0.1
    assert not run.reached
    weight = arm.gravity_force(run.q[-1])
    assert np.abs(law.pull(run.q[-1]) - weight).max() < 1e-2 * np.abs(weight).max()
    assert "gravity" in str(run)


def test_stretched_arm_stays_and_is_reported() -> None:
    """Stretched, the goal on its own ray, J_Y*e = 0: it stays; 0.01 rad beside it converges."""
    robot = planar()
    target = np.eye(4)
    target[0, 3] = 1.5
    law = control.pose_control(robot, "tip", target, 3.0, 20.0, length=1.0)
    beside = [[0.0, 0.0, 0.0], [0.01, 0.0, 0.0], [0.01, -0.01, 0.01]]
    run = control.regulate(law, beside, duration=10.0, dt=0.01)
    assert list(run.outcome) == ["stalled at a singular pose", "reached", "reached"]
    assert run.error[-1, 0] == pytest.approx(1.5, rel=1e-12)
    assert run.error[-1, 1:].max() < 1e-5
    assert run.singular_value[-1, 0] < 1e-12
    assert run.singular_value[-1, 1:].min() > 0.1
    assert run.monotone.all()
    assert "no joint force acts on the error" in run.describe(0)


# -- the others


def test_computed_torque_is_linear(arm: phistar.Robot) -> None:
    """Every joint's error is (1 + ωt)exp(-ωt) of the first; 1e-8 of it."""
    law = control.computed_torque(arm, goal("ur5"), 16.0)
    run = control.regulate(law, starts("ur5", 2), duration=1.0, dt=0.005)
    share = ((1 + 4 * run.t) * np.exp(-4 * run.t))[:, None, None]
    offset = goal("ur5") - run.q
    np.testing.assert_allclose(offset, share * offset[0], atol=1e-7 * np.abs(offset[0]).max())
    assert run.monotone.all()


def test_operational_space_is_linear(arm: phistar.Robot) -> None:
    """The frame goes straight: position and rotation vector are (1 + ωt)exp(-ωt) of the first."""
    law = control.operational_space(arm, "tool0", goal_pose(arm), 16.0)
    run = control.regulate(law, READY["ur5"], duration=1.0, dt=0.005)
    share = ((1 + 4 * run.t) * np.exp(-4 * run.t))[:, None]
    error = law.error(run.q, run.v)
    np.testing.assert_allclose(error, share * error[0], atol=1e-6 * np.abs(error[0]).max())
    assert run.monotone
    assert run.singular_value.min() > 0.01


def test_pd_with_gravity(arm: phistar.Robot) -> None:
    """It reaches the goal and its function falls; gains by default follow the inertias."""
    run = control.regulate(
        control.pd_gravity(arm, goal("ur5")), READY["ur5"], duration=4.0, dt=0.005
    )
    assert run.monotone
    assert run.reached
    assert np.isnan(run.singular_value).all()


# -- limits, batches, arguments


def test_limits_are_met(arm: phistar.Robot) -> None:
    """The UR5 with weak motors: within their limits, which are reported, and it arrives."""
    limits = [50.0, 120.0, 50.0, 9.0, 9.0, 9.0]
    law = control.pose_control(arm, "tool0", goal_pose(arm), limits=limits)
    run = control.regulate(law, starts("ur5", 2), duration=3.0, dt=0.005)
    assert (np.abs(run.tau) <= limits).all()
    assert run.saturated.any(axis=(0, 2)).all()
    assert run.reached.all()
    assert "limits of forces met" in run.describe(0)


def test_limits_that_stop_a_robot() -> None:
    """A motor that can just hold a pendulum cannot lift it: the record says that limits do it."""
    builder = ModelBuilder("pendulum")
    builder.link("base")
    builder.link("rod", 1.0, (1.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder.joint("hinge", "revolute", "base", "rod", axis=(0, -1, 0))
    robot = phistar.load(builder.build())
    q = np.array([-0.5])
    weight = robot.gravity_force(q)
    law = control.pd_gravity(robot, [0.5], limits=weight)
    run = control.regulate(law, q, duration=0.5, dt=0.01)
    assert run.outcome == "stalled at the limits of forces"
    np.testing.assert_array_equal(run.tau, np.broadcast_to(weight, run.tau.shape))


def test_a_batch_is_its_members(arm: phistar.Robot) -> None:
    """Starts and goals are stepped together as they are alone; 1e-9."""
    q = starts("ur5", 2)
    goals = arm.frame_pose(q[::-1] + 0.1, "tool0")
    both = control.regulate(
        control.pose_control(arm, "tool0", goals), q, duration=0.1, dt=0.005, every=4
    )
    assert both.q.shape == (6, 2, 6)
    for k in range(2):
        law = control.pose_control(arm, "tool0", goals[k])
        alone = control.regulate(law, q[k], duration=0.1, dt=0.005)
        np.testing.assert_allclose(both.q[:, k], alone.q[::4], rtol=1e-9)
        np.testing.assert_allclose(both.lyapunov[:, k], alone.lyapunov[::4], rtol=1e-9)
        np.testing.assert_allclose(both.tau[:, k], alone.tau[::4], rtol=1e-7, atol=1e-9)


def test_goals_alone_make_a_batch() -> None:
    """One start and many goals are many motions."""
    robot = planar()
    goals = robot.frame_pose([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], "tip")
    run = control.regulate(control.pose_control(robot, "tip", goals), [0.1] * 3, duration=0.1)
    assert run.outcome.shape == (2,)


def test_energies() -> None:
    """Work of the forces along the motion is the energy gained; relative 1e-7."""
    robot = planar().with_gravity((0.0, -9.81, 0.0))
    law = control.pose_control(
        robot, "tip", robot.frame_pose([0.5, 0.5, 0.5], "tip"), 1.0, 10.0, gravity=False
    )
    run = control.regulate(law, [0.1, 0.2, -0.7], [1.0, 0.5, 0.0], duration=0.5, dt=0.002)
    power = (run.tau * run.v).sum(axis=-1)
    done = simpson(power, x=run.t)
    gained = (run.kinetic + run.potential)[-1] - (run.kinetic + run.potential)[0]
    assert done == pytest.approx(gained, rel=1e-7)


def test_mistakes() -> None:
    """Times and steps that are none, and motions that run away, are named."""
    robot = planar()
    law = control.rate_feedback(robot, 1.0)
    with pytest.raises(ArgumentError, match="duration is 0"):
        control.regulate(law, np.zeros(3), duration=0)
    with pytest.raises(ArgumentError, match="dt is nan"):
        control.regulate(law, np.zeros(3), duration=1, dt=np.nan)
    with pytest.raises(ArgumentError, match="every is 0"):
        control.regulate(law, np.zeros(3), duration=1, every=0)
    stiff = control.pd_gravity(robot, np.zeros(3), 1e6, 1e6)
    with pytest.raises(ArgumentError, match=r"'planar' diverges: not finite after \S+ s"):
        control.regulate(stiff, np.ones(3), duration=10, dt=0.05)


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    """A bar is shown on request."""
    law = control.rate_feedback(planar(), 1.0)
    control.regulate(law, np.zeros(3), duration=0.1, dt=0.01, progress=True)
    assert "10/10" in capsys.readouterr().out
