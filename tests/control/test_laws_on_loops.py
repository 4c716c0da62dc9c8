# SPDX-License-Identifier: BSD-3-Clause
"""Laws, rollouts and reference motions of robots with loops."""

from collections.abc import Callable

import numpy as np
import pytest

import phistar
from phistar import control
from phistar.arrays import Array
from phistar.errors import (
    ArgumentError,
    DivergenceError,
    LoopOpenError,
    LoopVelocityError,
    UnderactuatedError,
)
from phistar.robot import Robot
from tests.control.mechanisms import BUNDLED, FIVE, beside, gap, mechanism, moved, velocity

DRIVEN = ("fourbar_crank_rocker", "fivebar", "quadruped_stand", "gripper_mimic", BUNDLED)
"""Mechanisms whose motors drive every motion."""
FRAMES = {
    "fourbar_crank_rocker": "rocker",
    "fivebar": "c",
    "quadruped_stand": "trunk",
    "gripper_mimic": "bar_l",
    BUNDLED: "crank",
}
"""Links that move."""
Maker = Callable[[Robot, Array, str, tuple[str, ...]], control.Law]
LAWS: dict[str, Maker] = {
    "pd_gravity": lambda r, q, frame, motors: control.pd_gravity(r, q, actuated=motors),
    "computed_torque": lambda r, q, frame, motors: control.computed_torque(r, q, actuated=motors),
    "rate_feedback": lambda r, q, frame, motors: control.rate_feedback(r, 8.0, actuated=motors),
    "pose_control": lambda r, q, frame, motors: control.pose_control(
        r, frame, r.frame_pose(q, frame), actuated=motors
    ),
}


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("name", DRIVEN)
def test_laws_bring_mechanisms_to_their_goals(name: str, kind: str) -> None:
    """On the loops, with motors only where the mechanism has some; Lyapunov functions fall."""
    robot, motors, q = mechanism(name)
    law = LAWS[kind](robot, q, FRAMES[name], motors)
    start = beside(robot, q, 0.05)
    v = velocity(robot, start, 0.3) if kind == "rate_feedback" else np.zeros(robot.nv)
    short = name in ("gripper_mimic", "quadruped_stand")
    found = control.regulate(law, start, v, duration=0.6 if short else 1.2, dt=0.01)
    assert found.error[-1] < (0.45 if short else 0.2) * found.error[0]
    assert found.rise < 1e-6
    assert found.lyapunov[-1] < 0.3 * found.lyapunov[0]
    assert gap(robot, found.q) < 1e-10
    undriven = np.setdiff1d(np.arange(robot.nv), control.Actuation.of(robot, motors).columns)
    assert not found.tau[..., undriven].any()


@pytest.mark.parametrize("kind", ["computed_torque", "rate_feedback", "pose_control"])
@pytest.mark.parametrize("name", DRIVEN)
def test_motors_do_what_forces_at_all_joints_would(name: str, kind: str) -> None:
    """The same accelerations, relative 1e-8."""
    robot, motors, q = mechanism(name)
    law = LAWS[kind](robot, q, FRAMES[name], motors)
    everywhere = LAWS[kind](robot, q, FRAMES[name], tuple(robot.joint_names))
    at = beside(robot, q, 0.05)
    v = velocity(robot, at)
    one, two = (robot.forward_dynamics(at, v, x.forces(at, v)) for x in (law, everywhere))
    assert np.abs(one - two).max() < 1e-8 * np.abs(two).max()


def test_rate_feedback_damps_all_kinetic_energy_alike() -> None:
    """K(t) = K(0) exp(-2ct) on loops, too, which do no work: relative 1e-6."""
    robot, motors, q = mechanism("fivebar")
    law = control.rate_feedback(robot, 2.0, actuated=motors)
    found = control.regulate(law, q, velocity(robot, q), duration=1.0, dt=0.005)
    assert np.allclose(found.kinetic / found.kinetic[0], np.exp(-4.0 * found.t), rtol=1e-6)


@pytest.mark.parametrize("name", ["fivebar", BUNDLED])
def test_independent_coordinates_obey_the_linear_equation(name: str) -> None:
    """δ(t) = (1 + ωt) exp(-ωt) δ(0) for critical damping, ω = 5/s: relative 1e-6."""
    robot, motors, q = mechanism(name)
    law = control.computed_torque(robot, q, 25.0, actuated=motors)
    start = beside(robot, q, 0.05)
    found = control.regulate(law, start, duration=0.5, dt=0.005)
    assert law.free is not None
    step = robot.difference(found.q, q)[:, law.free.entries]
    share = (1 + 5 * found.t) * np.exp(-5 * found.t)
    assert np.abs(step - share[:, None] * step[0]).max() < 1e-6 * np.abs(step[0]).max()


def test_computed_torque_with_a_base_that_turns() -> None:
    """Independent entries of δ on a free joint: δ̈ + k_d δ̇ + k_p δ = 0 by differences, 1e-5."""
    robot, motors, q = mechanism("quadruped_stand")
    law = control.computed_torque(robot, q, 25.0, actuated=motors)
    at = beside(robot, q, 0.05)
    v = velocity(robot, at, 0.5)
    assert law.free is not None
    h = 1e-3
    ends = []
    for sign in (1, -1):
        x, w = at, sign * v
        # Backward in time the velocity turns around, and forces do not.
        tau = law.forces(at, v)
        for _ in range(10):
            x, w = robot.step(x, w, tau, h / 10, scheme="rk4")
        ends.append(robot.difference(x, q)[law.free.entries])
    here = robot.difference(at, q)[law.free.entries]
    rate = (ends[0] - ends[1]) / (2 * h)
    growth = (ends[0] - 2 * here + ends[1]) / h**2
    wanted = -25.0 * here - 10.0 * rate
    assert np.abs(growth - wanted).max() < 1e-4 * np.abs(wanted).max()


@pytest.mark.parametrize("name", ["quadruped_stand", "stewart_leg"])
def test_operational_space_accelerates_a_frame_like_a_free_body(name: str) -> None:
    """a = k_p e - k_d V of the frame under the law's forces at the motors, relative 1e-7."""
    robot, motors, q = mechanism(name)
    at = beside(robot, q, 0.05)
    v = velocity(robot, at, 0.5)
    frame = next(
        link
        for link in robot.link_names
        if np.linalg.matrix_rank(robot.jacobian(at, link) @ robot.minimal(at).X, tol=1e-6) == 6
    )
    law = control.operational_space(robot, frame, robot.frame_pose(q, frame), 25.0, actuated=motors)
    vdot = robot.forward_dynamics(at, v, law.forces(at, v))
    found = robot.frame_acceleration(at, v, vdot, frame)
    wanted = 25.0 * law.error(at, v) - 10.0 * robot.frame_velocity(at, v, frame)
    assert np.abs(found - wanted).max() < 1e-7 * np.abs(wanted).max()


def test_operational_space_says_where_a_pose_is_not_free() -> None:
    """Too few motions of the mechanism, or of the frame."""
    robot, motors, q = mechanism("fivebar")
    with pytest.raises(ArgumentError, match="2 degrees of freedom, and a pose has six"):
        control.operational_space(robot, "c", np.eye(4), actuated=motors)
    robot, _, q = mechanism("delta_ball")
    law = control.operational_space(robot, "plate", robot.frame_pose(q, "plate"))
    with pytest.raises(ArgumentError, match="cannot move in every direction"):
        law.forces(q, np.zeros(robot.nv))


def test_motors_that_do_not_suffice_are_named() -> None:
    """Springs at the arms of a delta robot hold it; a law for its rods needs more motors."""
    robot, motors, q = mechanism("delta_ball")
    start = beside(robot, q, 0.05)
    found = control.regulate(
        control.pd_gravity(robot, q, actuated=motors), start, duration=0.3, dt=0.006
    )
    arms = control.Actuation.of(robot, motors).columns
    step = np.abs(robot.difference(found.q, q)[:, arms]).max(axis=-1)
    assert step[-1] < 0.7 * step[0]
    assert found.rise < 1e-6
    law = control.rate_feedback(robot, actuated=motors)
    with pytest.raises(UnderactuatedError, match="rod"):
        law.forces(q, velocity(robot, q))


def test_laws_of_trees_need_every_motor() -> None:
    """``actuated`` without loops says what can be used instead."""
    robot = phistar.load("double_pendulum")
    with pytest.raises(ArgumentError, match="no loops, so a law needs a motor at every joint"):
        control.rate_feedback(robot, actuated=robot.joint_names[:1])
    law = control.rate_feedback(robot, actuated=robot.joint_names)
    assert law.actuation is None


def test_limits_of_motors_hold() -> None:
    """Bounds (nu,) of the motors; joints without one stay without forces."""
    robot, motors, q = mechanism("fivebar")
    law = control.computed_torque(robot, q, actuated=motors, limits=[0.5, 0.25])
    tau = law.forces(beside(robot, q, 0.2), np.zeros(robot.nv))
    bounds = np.zeros(robot.nv)
    bounds[control.Actuation.of(robot, motors).columns] = 0.5, 0.25
    assert (np.abs(tau) <= bounds).all()
    assert np.abs(tau).max() > 0


def test_regulate_refuses_starts_off_the_loops() -> None:
    """With the loop's name."""
    robot, motors, q = mechanism(BUNDLED)
    law = control.rate_feedback(robot, actuated=motors)
    with pytest.raises(LoopOpenError, match="coupler_closure"):
        control.regulate(law, q + 0.1, duration=0.1)
    with pytest.raises(LoopVelocityError, match="coupler_closure"):
        control.regulate(law, q, np.ones(robot.nv), duration=0.1)


@pytest.mark.parametrize("name", [*FIVE, "stewart_leg", BUNDLED])
def test_minimum_jerk_keeps_the_loops(name: str) -> None:
    """From end to end; v and v̇ are rates by differences, forces give v̇ (relative 1e-9)."""
    robot, motors, q = mechanism(name)
    start = beside(robot, q, 0.1)
    used = robot.joint_names if name == "delta_ball" else motors
    motion, vdot = control.minimum_jerk(robot, start, q, 1.0, 200, actuated=used)
    assert np.abs(robot.difference(motion.q[0], start)).max() < 1e-10
    assert np.abs(robot.difference(motion.q[-1], q)).max() < 1e-10
    assert gap(robot, motion.q) < 1e-12
    assert not motion.v[[0, -1]].any()
    found = robot.forward_dynamics(motion.q[:-1], motion.v[:-1], motion.tau)
    assert np.abs(found - vdot[:-1]).max() < 1e-9 * np.abs(vdot).max()
    h = motion.dt
    rate = robot.difference(motion.q[:-2], motion.q[2:]) / (2 * h)
    assert np.abs(rate - motion.v[1:-1]).max() < 1e-3 * np.abs(motion.v).max()
    growth = (motion.v[2:] - motion.v[:-2]) / (2 * h)
    assert np.abs(growth - vdot[1:-1]).max() < 1e-3 * np.abs(vdot).max()


def test_minimum_jerk_refuses_another_assembly() -> None:
    """The crank is where it should be, the rocker on the other side."""
    robot, _, q = mechanism(BUNDLED)
    other = next(
        found
        for seed in range(20)
        for found in [robot.assemble(_with_crank(robot, q, seed), fixed=["crank_joint"])]
        if np.abs(robot.difference(q, found)).max() > 0.1
    )
    with pytest.raises(ArgumentError, match="another assembly"):
        control.minimum_jerk(robot, q, other, 1.0, 10)


def _with_crank(robot: Robot, q: Array, seed: int) -> Array:
    """A random configuration with the same crank angle."""
    found = robot.random_configuration(seed)
    own = robot.joints["crank_joint"].q_slice
    found[own] = q[own]
    return found


@pytest.mark.parametrize("name", ["fivebar", "quadruped_stand", BUNDLED])
def test_feedforward_makes_errors_linear_on_loops(name: str) -> None:
    """δv̇_R = -k_p δq_R - k_d δv_R by differences of accelerations, relative 1e-5."""
    robot, motors, q = mechanism(name)
    motion, vdot = control.minimum_jerk(robot, beside(robot, q, 0.1), q, 1.0, 20, actuated=motors)
    policy = control.feedforward(robot, motion, vdot, 100.0, 15.0, actuated=motors)
    k, h = 7, 1e-5
    entries = np.flatnonzero(np.abs(policy.K[k]).max(axis=0)[: robot.nv])
    n = len(entries)
    assert n == robot.minimal(motion.q[k]).X.shape[-1]
    for unit in np.eye(2 * n):
        pair = [moved(robot, motion.q[k], motion.v[k], entries, s * h * unit) for s in (1, -1)]
        one, two = (robot.forward_dynamics(x, v, policy(k, x, v)) for x, v in pair)
        found = (one - two)[entries] / (2 * h)
        wanted = -100.0 * unit[:n] - 15.0 * unit[n:]
        assert np.abs(found - wanted).max() < 1e-5 * 100.0


def test_feedforward_tracks_and_work_is_energy() -> None:
    """In steps of 2 ms: errors below 1e-3, energy against work within 1 %; half with half steps."""
    robot, motors, q = mechanism("fivebar")
    start = beside(robot, q, 0.3)
    balance = []
    for steps in (500, 1000):
        motion, vdot = control.minimum_jerk(robot, start, q, 1.0, steps, actuated=motors)
        policy = control.feedforward(robot, motion, vdot, actuated=motors)
        run = control.rollout(robot, start, np.zeros(robot.nv), policy, motion.dt, steps)
        assert np.abs(policy.errors(run)[:, : robot.nv]).max() < 1e-3
        gained, done = control.work(robot, run)
        balance.append(np.abs(gained - done).max() / np.abs(gained).max())
    assert balance[0] < 0.01
    assert balance[1] < 0.6 * balance[0]


def test_feedforward_needs_enough_motors() -> None:
    """The motion that the motors cannot drive is named."""
    robot, motors, q = mechanism("fivebar")
    motion, vdot = control.minimum_jerk(robot, q, q, 1.0, 5)
    with pytest.raises(UnderactuatedError, match="cannot drive"):
        control.feedforward(robot, motion, vdot, actuated=motors[:1])
    tree = phistar.load("double_pendulum")
    still = np.zeros(tree.nv)
    motion, vdot = control.minimum_jerk(tree, still, still, 1.0, 5)
    with pytest.raises(ArgumentError, match="every joint needs a motor"):
        control.feedforward(tree, motion, vdot, actuated=tree.joint_names[:1])


def test_rollout_takes_the_steps_of_the_robot() -> None:
    """Step by step the same state; forces on frames, too; all on the loops."""
    robot, _, q = mechanism(BUNDLED)
    v, still = velocity(robot, q), np.zeros(robot.nv)
    wrench = {"rocker": np.array([0.0, 0.0, 0.0, 1.0, 2.0, 0.0])}
    for forces in (None, wrench):
        run = control.rollout(robot, q, v, lambda k, q, v: still, 0.01, 30, forces=forces)
        at = q, v
        for k in range(30):
            at = robot.step(*at, still, 0.01, forces=forces)
            assert np.allclose(run.q[k + 1], at[0], rtol=0, atol=1e-13)
            assert np.allclose(run.v[k + 1], at[1], rtol=0, atol=1e-12)
        assert gap(robot, run.q) < 1e-12


def test_rollout_of_a_batch_with_bad_samples() -> None:
    """One sample open, one not finite: both reported, the third as if it were alone."""
    robot, _, q = mechanism(BUNDLED)
    starts = np.stack([q, q + 0.1, np.full_like(q, np.nan)])
    still = np.zeros((3, robot.nv))

    def limp(k: int, q: Array, v: Array) -> Array:
        return np.zeros(robot.nv)

    run = control.rollout(robot, starts, still, limp, 0.01, 5, on_error="nan")
    alone = control.rollout(robot, q, still[0], limp, 0.01, 5)
    assert run.ok.tolist() == [True, False, False]
    assert run.diverged is not None
    assert run.diverged.tolist() == [-1, 1, 0]
    assert np.array_equal(run.q[:, 0], alone.q)
    with pytest.raises(LoopOpenError):
        control.rollout(robot, starts[:2], still[:2], limp, 0.01, 5)


def test_rollout_that_runs_away_says_when() -> None:
    """Forces that grow without bounds."""
    robot, _, q = mechanism(BUNDLED)

    def push(k: int, q: Array, v: Array) -> Array:
        return np.full(robot.nv, 10.0 ** min(20 * k, 300))

    with pytest.raises(DivergenceError, match="diverges"):
        control.rollout(robot, q, np.zeros(robot.nv), push, 0.01, 20)
    run = control.rollout(robot, q, np.zeros(robot.nv), push, 0.01, 20, on_error="nan")
    assert not run.ok
    assert run.diverged is not None
    assert 0 < run.diverged < 20
    assert np.isnan(run.q[-1]).all()
