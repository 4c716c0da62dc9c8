# SPDX-License-Identifier: BSD-3-Clause
"""Trajectories, roll-outs, and feedback along them."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import phistar
from phistar.control import Trajectory, feedforward, minimum_jerk, rollout, tv_lqr, work
from phistar.control.tv_lqr import riccati
from phistar.errors import ArgumentError, ShapeError

READY = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
AWAY = np.array([0.5, 0.25, -0.25, 0.3, 0.15, 0.2, -0.35])
STIFF = np.r_[np.full(7, 1e3), np.full(7, 10.0)]


@pytest.fixture(scope="module")
def arm() -> phistar.Robot:
    """The Panda."""
    return phistar.load("panda")


@pytest.fixture(scope="module")
def plan(arm: phistar.Robot) -> tuple[Trajectory, np.ndarray]:
    """A smooth motion of the Panda over 0.8 s, and its accelerations."""
    return minimum_jerk(arm, READY, READY + AWAY, 0.8, 80)


def disturbed(plan: Trajectory, count: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Starts beside a plan's, and velocities."""
    rng = np.random.default_rng(4)
    shape = (count, 7)
    return plan.q[0] + rng.normal(scale=0.03, size=shape), rng.normal(scale=0.03, size=shape)


def test_tracking_keeps_a_disturbed_arm(
    arm: phistar.Robot, plan: tuple[Trajectory, np.ndarray]
) -> None:
    """With feedback the error falls to a fiftieth of the first; without it grows tenfold."""
    nominal, _ = plan
    tracker = tv_lqr(arm, nominal, STIFF, 0.01)
    q, v = disturbed(nominal)
    closed = rollout(arm, q, v, tracker, nominal.dt, nominal.steps)
    opened = rollout(arm, q, v, lambda k, *_: nominal.tau[k], nominal.dt, nominal.steps)
    first = np.abs(tracker.errors(closed)[0]).max()
    assert np.abs(tracker.errors(closed)[-1, :, :7]).max() < 0.02 * first
    assert np.abs(tracker.errors(opened)[-1, :, :7]).max() > 10 * first


def test_a_batch_is_its_members(arm: phistar.Robot, plan: tuple[Trajectory, np.ndarray]) -> None:
    """Gains of a batch of trajectories are those of each alone, and so are the motions, to 1e-9."""
    nominal, _ = plan
    short = Trajectory(nominal.t[:21], nominal.q[:21], nominal.v[:21], nominal.tau[:20])
    shift = np.array([[0.0], [0.2]]) * np.ones(7)
    both = Trajectory(
        short.t,
        short.q[:, None] + shift,
        np.repeat(short.v[:, None], 2, axis=1),
        np.repeat(short.tau[:, None], 2, axis=1),
    )
    batch = tv_lqr(arm, both, STIFF, 0.01)
    for i in range(2):
        alone = Trajectory(both.t, both.q[:, i], both.v[:, i], both.tau[:, i])
        single = tv_lqr(arm, alone, STIFF, 0.01)
        scale = np.abs(single.S).max()
        np.testing.assert_allclose(batch.K[:, i], single.K, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(batch.S[:, i], single.S, atol=1e-9 * scale)
        force = batch(3, both.q[4], both.v[4])
        np.testing.assert_allclose(force[i], single(3, both.q[4, i], both.v[4, i]), rtol=1e-9)


def test_gains_minimise_the_linear_cost() -> None:
    """The Riccati recursion finds the minimum that least squares over all forces finds."""
    rng = np.random.default_rng(0)
    steps, n, m = 6, 4, 2
    A, B = rng.normal(size=(steps, n, n)), rng.normal(size=(steps, n, m))
    Q, R, end = np.diag([1.0, 2, 3, 4]), np.diag([0.5, 1.5]), np.diag([5.0, 1, 1, 2])
    K, S = riccati(A, B, Q, R, end)
    x0 = rng.normal(size=n)
    # Every state as a constant plus a matrix times all forces; then least squares.
    const, way, rows, rest = x0, np.zeros((n, steps * m)), [], []
    for k in range(steps):
        rows.append(np.sqrt(Q) @ way)
        rest.append(np.sqrt(Q) @ const)
        const, way = A[k] @ const, A[k] @ way
        way[:, k * m : (k + 1) * m] += B[k]
    rows += [np.sqrt(end) @ way, np.kron(np.eye(steps), np.sqrt(R))]
    rest += [np.sqrt(end) @ const, np.zeros(steps * m)]
    forces, cost, *_ = np.linalg.lstsq(np.vstack(rows), -np.concatenate(rest), rcond=None)
    assert x0 @ S[0] @ x0 == pytest.approx(cost[0], rel=1e-10)
    np.testing.assert_allclose(-K[0] @ x0, forces[:m], rtol=1e-9)


def test_value_falls_along_a_tracked_motion(
    arm: phistar.Robot, plan: tuple[Trajectory, np.ndarray]
) -> None:
    """e·S[k] e never rises from knot to knot, and its first value is the cost spent, to 5 %."""
    nominal = rollout(arm, READY, np.zeros(7), lambda k, *_: plan[0].tau[k], 0.01, 80)
    tracker = tv_lqr(arm, nominal, STIFF, 0.01)
    assert tracker.defect < 1e-12
    start = nominal.q[0] + 0.01 * np.array([1.0, -1, 1, -1, 1, -1, 1])
    motion = rollout(arm, start, nominal.v[0], tracker, nominal.dt, nominal.steps)
    errors = tracker.errors(motion)
    value = np.einsum("ki,kij,kj->k", errors, tracker.S, errors)
    assert (np.diff(value) <= 1e-12 * value[0]).all()
    pushes = motion.tau - nominal.tau
    spent = nominal.dt * ((errors[:-1] ** 2 * STIFF).sum() + 0.01 * (pushes**2).sum())
    spent += (errors[-1] ** 2 * STIFF).sum()
    assert spent == pytest.approx(value[0], rel=0.05)


def test_feedforward_makes_errors_decay_as_asked(
    arm: phistar.Robot, plan: tuple[Trajectory, np.ndarray]
) -> None:
    """Small errors obey δq'' = -k_p δq - k_d δq' at every joint, within 3 % for these steps."""
    nominal, vdot = minimum_jerk(arm, READY, READY + AWAY, 0.4, 400)
    policy = feedforward(arm, nominal, vdot, stiffness=100.0)
    offset = 1e-3 * np.array([1.0, -1, 0.5, 1, -0.5, 1, -1])
    moved = rollout(arm, nominal.q[0] + offset, nominal.v[0], policy, nominal.dt, nominal.steps)
    base = rollout(arm, nominal.q[0], nominal.v[0], policy, nominal.dt, nominal.steps)
    w, t = 10.0, nominal.t[:, None]
    expected = offset * (1 + w * t) * np.exp(-w * t)
    np.testing.assert_allclose(moved.q - base.q, expected, atol=0.03 * 1e-3)


def test_feedforward_follows_the_plan(
    arm: phistar.Robot, plan: tuple[Trajectory, np.ndarray]
) -> None:
    """Disturbed, it ends near the plan; its feed-forward is inverse dynamics."""
    nominal, vdot = plan
    policy = feedforward(arm, nominal, vdot, stiffness=200.0)
    expected = arm.inverse_dynamics(nominal.q[:-1], nominal.v[:-1], vdot[:-1])
    np.testing.assert_allclose(policy.trajectory.tau, expected, rtol=1e-10, atol=1e-10)
    motion = rollout(arm, *disturbed(nominal), policy, nominal.dt, nominal.steps)
    errors = np.abs(policy.errors(motion)[..., :7]).max(axis=(1, 2))
    assert errors[-1] < 0.05 * errors[0]


def test_minimum_jerk_is_a_motion(arm: phistar.Robot, plan: tuple[Trajectory, np.ndarray]) -> None:
    """From rest to rest, and v and v̇ are derivatives of q and v (central differences, 1e-3)."""
    nominal, vdot = plan
    np.testing.assert_allclose(nominal.q[-1], READY + AWAY, rtol=1e-12)
    assert np.abs(nominal.v[[0, -1]]).max() == 0
    for x, rate in ((nominal.q, nominal.v), (nominal.v, vdot)):
        slope = (x[2:] - x[:-2]) / (2 * nominal.dt)
        np.testing.assert_allclose(slope, rate[1:-1], atol=1e-3 * np.abs(rate).max() + 3e-3)


def test_minimum_jerk_of_a_free_body() -> None:
    """A free joint goes along its screw: v is what difference gives a second."""
    dog = phistar.load("quadruped")
    goal = dog.integrate(dog.neutral(), 0.3 * np.ones(dog.nv))
    motion, _ = minimum_jerk(dog, dog.neutral(), goal, 1.0, 50)
    steps = dog.difference(motion.q[:-2], motion.q[2:]) / (2 * motion.dt)
    np.testing.assert_allclose(steps, motion.v[1:-1], atol=2e-3)


def test_rollout_converges_to_the_motion() -> None:
    """Halving the steps halves the distance to SciPy's solution; so does energy minus work."""
    arm = phistar.load("double_pendulum")
    q, v, tau = np.array([0.5, -0.3]), np.array([0.2, 0.4]), np.array([0.3, -0.1])

    def slope(_: float, x: np.ndarray) -> np.ndarray:
        return np.r_[x[2:], arm.forward_dynamics(x[:2], x[2:], tau)]

    exact = solve_ivp(slope, (0, 0.5), np.r_[q, v], rtol=1e-10, atol=1e-12).y[:2, -1]
    gaps, leaks = [], []
    for steps in (100, 200):
        motion = rollout(arm, q, v, lambda *_: tau, 0.5 / steps, steps)
        gaps.append(np.abs(motion.q[-1] - exact).max())
        energy, done = work(arm, motion)
        leaks.append(np.abs(energy - done).max())
    assert gaps[0] / gaps[1] == pytest.approx(2.0, rel=0.1)
    assert leaks[0] / leaks[1] > 1.8
    assert leaks[0] < 0.02


def test_limits_are_kept(arm: phistar.Robot, plan: tuple[Trajectory, np.ndarray]) -> None:
    """Forces are clipped to those of the robot's file, or to given ones."""
    nominal, _ = plan
    efforts = np.array([arm.joints[name].limits.effort[0] for name in arm.joint_names])
    tracker = tv_lqr(arm, nominal, STIFF, 1e-4, limits="robot")
    far = nominal.q[0] + 0.5
    tau = tracker(0, far, nominal.v[0])
    assert (np.abs(tau) <= efforts).all()
    assert (np.abs(tau) == efforts).any()
    narrow = tv_lqr(arm, nominal, STIFF, 1e-4, limits=[np.full(7, -1.0), np.full(7, 2.0)])
    tau = narrow(0, far, nominal.v[0])
    assert (tau >= -1).all()
    assert (tau <= 2).all()


def test_linearize_along(arm: phistar.Robot, plan: tuple[Trajectory, np.ndarray]) -> None:
    """A trajectory in one call is its knots one by one; a last knot without forces is left out."""
    nominal, _ = plan
    whole = arm.linearize_along(nominal)
    assert whole.A.shape == (80, 14, 14)
    same = arm.linearize_along(nominal.q, nominal.v, nominal.tau)
    np.testing.assert_array_equal(whole.A, same.A)
    at = arm.linearize(nominal.q[33], nominal.v[33], nominal.tau[33])
    np.testing.assert_allclose(whole.A[33], at.A, rtol=1e-9, atol=1e-9)
    with pytest.raises(ShapeError, match="tau has 79 rows"):
        arm.linearize_along(nominal.q, nominal.v, nominal.tau[:-1])
    with pytest.raises(ArgumentError, match="three arrays"):
        arm.linearize_along(nominal.q)
    with pytest.raises(ArgumentError, match="pass it alone"):
        arm.linearize_along(nominal, nominal.v)
    with pytest.raises(ShapeError, match="a motion needs"):
        arm.linearize_along(nominal.q[0], nominal.v[0], nominal.tau[0])


def test_difference_q_follows_steps() -> None:
    """The derivative of difference(q0, q1) along steps of q1, by central differences to 1e-7."""
    robot = phistar.Robot(phistar.random_model(np.random.default_rng(5), 6))
    rng = np.random.default_rng(6)
    q0 = robot.random_configuration(rng)
    q1 = robot.integrate(q0, rng.uniform(-1, 1, robot.nv))
    h = 1e-6
    ahead, behind = (
        robot.difference(q0, robot.integrate(q1, s * h * np.eye(robot.nv))) for s in (1, -1)
    )
    slopes = ((ahead - behind) / (2 * h)).T
    np.testing.assert_allclose(robot.difference_q(q0, q1), slopes, atol=1e-7)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"t": [0.0, 0.2, 0.1]}, "does not increase"),
        ({"t": [0.0]}, "t has shape"),
        ({"tau": np.zeros((3, 2))}, "tau has shape"),
        ({"q": np.full((3, 2), np.nan)}, "q of the trajectory is not finite"),
        ({"v": np.zeros(3)}, "v has shape"),
    ],
)
def test_trajectories_are_checked(change: dict[str, object], match: str) -> None:
    """Arrays that do not make a trajectory are named."""
    good = {"t": [0, 0.1, 0.2], "q": np.zeros((3, 2)), "v": np.zeros((3, 2))}
    with pytest.raises((ArgumentError, ShapeError), match=match):
        Trajectory(**{**good, "tau": np.zeros((2, 2)), **change})


def test_wrong_use_is_refused(arm: phistar.Robot, plan: tuple[Trajectory, np.ndarray]) -> None:
    """Uneven steps, steps outside, motions that run away, gains and limits that make no sense."""
    nominal, vdot = plan
    bent = Trajectory(nominal.t**2, nominal.q, nominal.v, nominal.tau)
    with pytest.raises(ArgumentError, match="sample it evenly"):
        tv_lqr(arm, bent)
    tracker = tv_lqr(arm, nominal)
    with pytest.raises(ArgumentError, match="step 80 is not"):
        tracker(80, nominal.q[0], nominal.v[0])
    with pytest.raises(ArgumentError, match="diverges"):
        rollout(arm, READY, np.zeros(7), lambda _, q, v: 1e4 * v + 1e3, 0.1, 50)
    with pytest.raises(ShapeError, match=r"policy\(k, q, v\) has shape \(3,\)"):
        rollout(arm, READY, np.zeros(7), lambda *_: np.zeros(3), 0.1, 5)
    with pytest.raises(ArgumentError, match="stiffness is"):
        feedforward(arm, nominal, vdot, stiffness=-1.0)
    with pytest.raises(ShapeError, match="vdot has shape"):
        feedforward(arm, nominal, vdot[:5])
    with pytest.raises(ArgumentError, match="limits is 'file'"):
        tv_lqr(arm, nominal, limits="file")
    with pytest.raises(ShapeError, match="limits has shape"):
        tv_lqr(arm, nominal, limits=[1.0, 2.0])
    with pytest.raises(ArgumentError, match="no room"):
        tv_lqr(arm, nominal, limits=0.0)
    for steps, dt in ((0, 0.1), (5, 0.0)):
        with pytest.raises(ArgumentError):
            rollout(arm, READY, np.zeros(7), lambda k, q, v: v, dt, steps)
        with pytest.raises(ArgumentError):
            minimum_jerk(arm, READY, READY, dt, steps)


@pytest.mark.parametrize("closed", [False, True])
def test_springs_and_damping_are_tracked(closed: bool) -> None:
    """``passive=`` of plans and trackers: the joint forces of a plan keep a damped robot on it,
    without the switch it stays behind; a tree and a linkage."""
    text = phistar.robots.path("four_bar" if closed else "double_pendulum").read_text()
    rubbed = text.replace("</joint>", '<dynamics damping="0.8"/></joint>')
    robot = phistar.load(rubbed.encode())
    assert (robot.limits.damping == 0.8).all()
    start = robot.assemble(robot.home) if closed else robot.home
    goal = start + 0.3
    if closed:
        free = robot.minimal(start)
        goal = robot.assemble(start + 0.2, fixed=free.independent)
    motion, vdot = minimum_jerk(robot, start, goal, 0.3, 150, passive=True)
    lossless, _ = minimum_jerk(robot, start, goal, 0.3, 150)
    assert np.abs(motion.tau - lossless.tau).max() > 0.1
    for make in (
        lambda plan, passive: tv_lqr(robot, plan, 100.0, 1.0, passive=passive),
        lambda plan, passive: feedforward(robot, plan, vdot, passive=passive),
    ):
        known = make(motion, True)
        how = {"dt": motion.dt, "steps": motion.steps, "passive": {"damping"}}
        with_it = rollout(robot, start, np.zeros(robot.nv), known, **how)
        without = rollout(robot, start, np.zeros(robot.nv), make(lossless, False), **how)
        error = np.abs(robot.difference(motion.q, with_it.q)).max()
        assert error < 2e-3
        assert np.abs(robot.difference(motion.q, without.q)).max() > 5 * error
    assert tv_lqr(robot, motion, passive=True).defect < 0.1 * tv_lqr(robot, motion).defect
