# SPDX-License-Identifier: BSD-3-Clause
"""Optimised motions: exact gradients, minima, goals reached from several starts, and reports."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import lsq_linear

import phistar
from phistar.control import (
    Expansion,
    FrameGoal,
    QuadraticCost,
    Solution,
    ilqr,
    lqr,
    rollout,
    tv_lqr,
)
from phistar.control.actuation import Actuation
from phistar.control.backward import LinearizedSteps, costates, gradient
from phistar.control.box_qp import solve_box_qp
from phistar.control.dynamics_hessian import dynamics_hessian_times_costate
from phistar.errors import ArgumentError, ConvergenceWarning, ShapeError, UnknownNameError

READY = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
AWAY = np.array([0.5, 0.25, -0.25, 0.3, 0.15, 0.2, -0.35])
HAND = "panda_link8"


@pytest.fixture(scope="module")
def cart() -> phistar.Robot:
    """The cart-pole, pole upright at q = 0."""
    return phistar.load("cartpole")


@pytest.fixture(scope="module")
def arm() -> phistar.Robot:
    """The Panda."""
    return phistar.load("panda")


@pytest.fixture(scope="module")
def body() -> phistar.Robot:
    """A free body with a hinged arm, without gravity."""
    build = phistar.ModelBuilder("body", gravity=(0, 0, 0))
    build.link("hull", mass=2.0, inertia=np.diag([0.3, 0.2, 0.4]))
    build.link("arm", mass=0.5, com=(0.2, 0, 0), inertia=np.diag([0.01, 0.02, 0.02]))
    build.joint("elbow", "revolute", "hull", "arm", axis=(0, 0, 1))
    return phistar.Robot(build.build(floating_base=True))


def swing_up(cart: phistar.Robot) -> QuadraticCost:
    """Stand up, cheaply."""
    weights = [0.1, 0.1, 0.01, 0.01]
    return QuadraticCost(cart, cart.neutral(), weights, 0.01, Q_final=100.0, actuated=["slider"])


def reaching(arm: phistar.Robot) -> QuadraticCost:
    """Bring the hand to a pose and come to rest."""
    pose = arm.frame_pose(READY + AWAY, HAND)
    return QuadraticCost(
        arm,
        READY,
        Q=np.r_[np.full(7, 1e-3), np.full(7, 1e-2)],
        R=1e-3,
        Q_final=np.r_[np.full(7, 1e-3), np.full(7, 10.0)],
        frames=[FrameGoal(HAND, pose, weight=[1.0, 5, 9, 2, 3, 4], final=1e3)],
    )


def turning(body: phistar.Robot) -> QuadraticCost:
    """Turn a free body and its arm, and follow a moving goal with a point of the arm."""
    goal = body.integrate(body.neutral(), [1.0, -0.8, 0.6, 0.3, 0.2, -0.1, 0.5])
    hand = FrameGoal("arm", [0.3, 0.1, 0.2], weight=[1.0, 2.0, 3.0])
    return QuadraticCost(body, goal, 1.0, 0.1, Q_final=20.0, v=np.full(7, 0.1), frames=[hand])


def along(cost: QuadraticCost, q: np.ndarray, u: np.ndarray, dt: float) -> float:
    """The cost of forces u (N, nu) from rest at q, by a roll-out."""
    act = cost.actuation
    motion = rollout(
        act.robot, q, np.zeros(act.robot.nv), lambda k, *_: act.spread(u[k]), dt, len(u)
    )
    return float(cost.value(motion.q, motion.v, u, dt))


def slopes(cost: QuadraticCost, q: np.ndarray, u: np.ndarray, dt: float) -> np.ndarray:
    """The gradient (N, nu) by costates."""
    act = cost.actuation
    motion = rollout(
        act.robot, q, np.zeros(act.robot.nv), lambda k, *_: act.spread(u[k]), dt, len(u)
    )
    step = act.robot.discretize(motion.q[:-1, None], motion.v[:-1, None], motion.tau[:, None], dt)
    expansion = cost.expansion(motion.q[:, None], motion.v[:, None], u[:, None], dt)
    wide = np.full(act.size, np.inf)
    at = LinearizedSteps(step.A, step.B[..., act.columns], u[:, None], -wide, wide, expansion)
    return gradient(at, costates(at))[:, 0]


@pytest.mark.parametrize(
    ("robot", "make"), [("cart", swing_up), ("arm", reaching), ("body", turning)]
)
def test_gradient_is_exact(
    robot: str,
    make: Callable[[phistar.Robot], QuadraticCost],
    request: pytest.FixtureRequest,
) -> None:
    """Costates give the derivative of the whole roll-out: central differences agree to 1e-6."""
    model: phistar.Robot = request.getfixturevalue(robot)
    cost, rng, steps, dt = make(model), np.random.default_rng(3), 8, 0.05
    q = model.integrate(model.neutral(), rng.uniform(-0.5, 0.5, model.nv))
    u = rng.normal(size=(steps, cost.actuation.size))
    found = slopes(cost, q, u, dt)
    for k, j in ((0, 0), (3, cost.actuation.size - 1), (7, 0)):
        h = 1e-5 * np.eye(steps * u.shape[1])[k * u.shape[1] + j].reshape(u.shape)
        slope = (along(cost, q, u + h, dt) - along(cost, q, u - h, dt)) / 2e-5
        assert found[k, j] == pytest.approx(slope, rel=1e-6, abs=1e-7 * np.abs(found).max())


@pytest.mark.parametrize("far", [1e-5, 0.4, 1.2])
def test_frame_errors_follow_steps(arm: phistar.Robot, far: float) -> None:
    """The derivative of a frame's error, small and large: central differences agree to 1e-6."""
    rng = np.random.default_rng(2)
    q = READY + far * rng.normal(size=7)
    goal = FrameGoal(HAND, arm.frame_pose(READY, HAND))
    h = 1e-6
    ahead, behind = (goal.error(arm, q + s * h * np.eye(7)) for s in (1, -1))
    found = goal.derivative(arm, q, goal.error(arm, q))
    np.testing.assert_allclose(found, (ahead - behind).T / (2 * h), atol=1e-6)


def test_gauss_newton_matrix_of_a_square(arm: phistar.Robot) -> None:
    """With zero error the second derivative of the cost is the Gauss-Newton one (differences)."""
    pose = arm.frame_pose(READY, HAND)
    cost = QuadraticCost(arm, READY, 1.0, 1.0, frames=[FrameGoal(HAND, pose, weight=3.0)])
    v, u = np.zeros((2, 7)), np.tile(arm.gravity_force(READY), (1, 1))
    xx = cost.expansion(np.tile(READY, (2, 1)), v, u, 0.1).xx[0]
    h = 1e-4

    def value(step: np.ndarray) -> float:
        return float(cost.value(np.array([READY + step, READY]), v, u, 0.1))

    for i in (0, 3, 6):
        e = h * np.eye(7)[i]
        second = (value(e) - 2 * value(0 * e) + value(-e)) / h**2
        assert xx[i, i] == pytest.approx(second, rel=1e-4)


def test_second_derivatives_of_steps() -> None:
    """Weighed second derivatives are differences of the weighed first ones, to 1e-6."""
    arm = phistar.robots.chain(3)
    act = Actuation.of(arm, arm.joint_names[1:])
    rng, dt = np.random.default_rng(5), 0.05
    q, v = rng.normal(size=(2, 1, 3)), rng.normal(size=(2, 1, 3))
    u, costate = rng.normal(size=(1, 1, 2)), rng.normal(size=(2, 1, 6))
    found = dynamics_hessian_times_costate(act, q, v, u, costate, dt)[0, 0]

    def weighed(x: np.ndarray) -> np.ndarray:
        step = arm.discretize(q[0, 0] + x[:3], v[0, 0] + x[3:6], act.spread(u[0, 0] + x[6:]), dt)
        return np.r_[step.A.T @ costate[1, 0], step.B[:, act.columns].T @ costate[1, 0]]

    h = 1e-5
    rows = [(weighed(h * e) - weighed(-h * e)) / (2 * h) for e in np.eye(8)]
    np.testing.assert_allclose(found, rows, atol=1e-6 * np.abs(found).max())


def test_bounded_minima_are_those_of_scipy() -> None:
    """Forty quadratic programs with bounds at once, each as SciPy solves it, to 1e-9."""
    rng = np.random.default_rng(0)
    root, g = rng.normal(size=(40, 5, 5)), 3 * rng.normal(size=(40, 5))
    H = np.swapaxes(root, -1, -2) @ root + 0.1 * np.eye(5)
    lower, upper = -rng.uniform(0.1, 1, (40, 5)), rng.uniform(0.1, 1, (40, 5))
    x, free = solve_box_qp(H, g, lower, upper)
    for i in range(40):
        square = np.linalg.cholesky(H[i]).T
        expected = lsq_linear(
            square, -np.linalg.solve(square.T, g[i]), (lower[i], upper[i]), method="bvls", tol=1e-14
        ).x
        np.testing.assert_allclose(x[i], expected, atol=1e-9)
    held = (x == lower) | (x == upper)
    assert (free == ~held).mean() > 0.95
    assert held.any(axis=1).sum() > 20


def test_linear_problems_take_one_step() -> None:
    """A cart without gravity and pole is linear: one full step, and the cost is Riccati's."""
    build = phistar.ModelBuilder("cart")
    build.link("ground")
    build.link("cart", mass=2.0)
    build.joint("rail", "prismatic", "ground", "cart", axis=(1, 0, 0))
    cart = phistar.Robot(build.build())
    cost = QuadraticCost(cart, [0.0], [1.0, 0.1], 0.01, Q_final=[10.0, 1.0])
    found = ilqr(cost, [1.0], [0.5], dt=0.05, steps=30)
    assert found.iterations <= 2
    tracker = tv_lqr(cart, found.trajectory, [1.0, 0.1], 0.01, Q_final=[10.0, 1.0])
    x = np.array([1.0, 0.5])
    assert found.cost == pytest.approx(0.5 * x @ tracker.S[0] @ x, rel=1e-10)
    np.testing.assert_allclose(found.feedback.K, tracker.K, rtol=1e-8)


def test_swing_up_from_several_starts(cart: phistar.Robot) -> None:
    """Hanging, swinging and half-way starts all end upright; cost never rises; LQR takes over."""
    starts = np.array([[0.0, np.pi], [0.5, np.pi - 0.3], [0.0, 2.0]])
    found = ilqr(swing_up(cart), starts, dt=0.05, steps=48, limits=10.0)
    assert found.converged.all(), found
    assert np.abs(found.trajectory.q[-1]).max() < 0.02
    assert np.abs(found.trajectory.v[-1]).max() < 0.1
    assert np.abs(found.trajectory.tau).max() <= 10.0
    assert (found.trajectory.tau[..., 1] == 0).all()
    assert (np.diff(found.history, axis=0) <= 0).all()
    np.testing.assert_array_equal(found.history[-1], found.cost)
    hold = lqr(cart, cart.neutral(), 1.0, 1.0, actuated=["slider"], dt=0.05)
    end = found.trajectory
    after = rollout(cart, end.q[-1], end.v[-1], lambda _, q, v: hold(q, v), 0.05, 300)
    assert np.abs(after.q[-1]).max() < 1e-2


@pytest.fixture(scope="module")
def standing(cart: phistar.Robot) -> Solution:
    """A pole that stands up from 2 rad, by DDP to 1e-12."""
    options = {"dt": 0.05, "steps": 40, "tolerance": 1e-12}
    return ilqr(swing_up(cart), [0.0, 2.0], second_order=True, **options)


def test_it_is_a_minimum(cart: phistar.Robot, standing: Solution) -> None:
    """At the end no force has a slope (by differences of roll-outs), and every push costs more."""
    cost, found = swing_up(cart), standing
    u, start, dt = found.trajectory.tau[:, :1], np.array([0.0, 2.0]), 0.05
    best = along(cost, start, u, dt)
    assert best == pytest.approx(float(found.cost), rel=1e-12)
    rng = np.random.default_rng(1)
    for _ in range(5):
        way = rng.normal(size=u.shape)
        ahead, behind = (along(cost, start, u + s * 1e-4 * way, dt) for s in (1, -1))
        assert abs(ahead - behind) / 2e-4 < 1e-5 * best
        assert min(ahead, behind) > best
    assert found.gradient < 1e-6


def test_second_derivatives_shorten_the_tail(cart: phistar.Robot, standing: Solution) -> None:
    """DDP ends at the same cost as iLQR in fewer iterations."""
    first = ilqr(swing_up(cart), [0.0, 2.0], dt=0.05, steps=40, tolerance=1e-12)
    assert standing.cost == pytest.approx(float(first.cost), rel=1e-9)
    assert standing.iterations < first.iterations


def test_reach_from_several_starts(arm: phistar.Robot) -> None:
    """From each start the hand ends within 2 mm and 2 mrad, within the motors' torques."""
    rng = np.random.default_rng(1)
    starts = READY + rng.normal(scale=0.1, size=(3, 7))
    found = ilqr(reaching(arm), starts, dt=0.04, steps=20, limits="robot")
    assert found.converged.all(), found
    pose, wanted = (arm.frame_pose(q, HAND) for q in (found.trajectory.q[-1], READY + AWAY))
    assert np.abs(pose[..., :3, 3] - wanted[:3, 3]).max() < 2e-3
    assert np.abs(pose[..., :3, :3] - wanted[:3, :3]).max() < 2e-3
    efforts = np.array([arm.joints[name].limits.effort[0] for name in arm.joint_names])
    assert (np.abs(found.trajectory.tau) <= efforts).all()
    assert (np.diff(found.history, axis=0) <= 0).all()


def test_a_batch_is_its_members(arm: phistar.Robot) -> None:
    """Starts solved together give what each gives alone: iterations, cost, forces (1e-6)."""
    starts = READY + np.array([[[0.1], [-0.1]]]) * np.ones(7)
    both = ilqr(reaching(arm), starts, dt=0.05, steps=10)
    assert both.cost.shape == (1, 2)
    assert both.trajectory.q.shape == (11, 1, 2, 7)
    again = ilqr(reaching(arm), starts, dt=0.05, steps=10, tau=both.trajectory.tau)
    assert (again.iterations <= 2).all()
    np.testing.assert_allclose(again.cost, both.cost, rtol=1e-6)
    for i in range(2):
        alone = ilqr(reaching(arm), starts[0, i], dt=0.05, steps=10)
        assert alone.cost.shape == ()
        assert alone.iterations == both.iterations[0, i]
        assert both.cost[0, i] == pytest.approx(float(alone.cost), rel=1e-9)
        scale = np.abs(alone.trajectory.tau).max()
        np.testing.assert_allclose(
            both.trajectory.tau[:, 0, i], alone.trajectory.tau, atol=1e-6 * scale
        )


def test_a_free_body_turns(body: phistar.Robot) -> None:
    """A free base is steered through large rotations; its feedback tracks a disturbed start."""
    goal = body.integrate(body.neutral(), [1.0, -0.8, 0.6, 0.3, 0.2, -0.1, 0.5])
    cost = QuadraticCost(body, goal, 0.1, 0.01, Q_final=100.0)
    found = ilqr(cost, body.neutral(), dt=0.05, steps=20)
    assert found.converged
    assert np.abs(body.difference(goal, found.trajectory.q[-1])).max() < 0.02
    aside = body.integrate(body.neutral(), np.full(7, 0.1))
    motion = rollout(body, aside, np.zeros(7), found.feedback, 0.05, 20)
    assert np.abs(body.difference(goal, motion.q[-1])).max() < 0.03


def test_goals_that_move(cart: phistar.Robot) -> None:
    """A goal for each knot is followed: with cheap forces the cart is where it should be."""
    t = 0.05 * np.arange(41)
    goal = np.stack([0.2 * np.sin(2 * t), np.zeros(41)], axis=-1)
    speed = np.stack([0.4 * np.cos(2 * t), np.zeros(41)], axis=-1)
    cost = QuadraticCost(cart, goal, [100.0, 100, 1, 1], 1e-6, v=speed)
    found = ilqr(cost, [0.0, 0.0], [0.4, 0.0], dt=0.05, steps=40)
    assert np.abs(found.trajectory.q[:, 0] - goal[:, 0]).max() < 5e-3


def test_what_does_not_converge_says_so(cart: phistar.Robot) -> None:
    """Too few iterations: a warning with the report, converged is False, and the reason is kept."""
    with pytest.warns(ConvergenceWarning, match="iterations used up after 2 iterations"):
        found = ilqr(swing_up(cart), [0.0, np.pi], dt=0.05, steps=30, max_iterations=2)
    assert not found.converged
    assert str(found.reason) == "iterations used up"
    assert len(found.history) == 3


class Misled(QuadraticCost):
    """A cost of one's own, whose gradient points the wrong way."""

    def expansion(self, q: np.ndarray, v: np.ndarray, u: np.ndarray, dt: float) -> Expansion:
        """The expansion with the signs of its gradients changed."""
        right = super().expansion(q, v, u, dt)
        return Expansion(-right.x, right.xx, -right.u, right.uu)


def test_what_cannot_go_on_says_so(cart: phistar.Robot) -> None:
    """Where no step lowers the cost, however short, the iteration ends and tells."""
    cost = Misled(cart, cart.neutral(), actuated=["slider"])
    with pytest.warns(ConvergenceWarning, match="no step lowers the cost"):
        found = ilqr(cost, [0.3, 0.1], dt=0.05, steps=10)
    assert not found.converged
    assert found.iterations < 30
    assert (found.history == found.history[0]).all()


def test_progress_is_shown(cart: phistar.Robot, capsys: pytest.CaptureFixture[str]) -> None:
    """A bar with iterations, cost and gradient on request; nothing otherwise; and a report."""
    options = {"dt": 0.05, "steps": 10}
    ilqr(swing_up(cart), [0.0, 0.1], **options)
    assert capsys.readouterr().out == ""
    found = ilqr(swing_up(cart), [0.0, 0.1], progress=True, **options)
    shown = capsys.readouterr().out
    assert "iLQR" in shown
    assert "gradient" in shown
    assert f"converged after {found.iterations} iterations, cost" in str(found)


def test_nothing_to_do(cart: phistar.Robot) -> None:
    """At the goal already: converged at once, at no cost."""
    found = ilqr(swing_up(cart), [0.0, 0.0], dt=0.05, steps=10)
    assert found.converged
    assert found.iterations == 1
    assert found.cost == 0


def test_wrong_arguments(cart: phistar.Robot, arm: phistar.Robot, body: phistar.Robot) -> None:
    """Messages name the argument, what was given and what was expected."""
    cost, good = swing_up(cart), {"dt": 0.05, "steps": 5}
    with pytest.raises(ArgumentError, match="dt is 0"):
        ilqr(cost, [0, 0], dt=0, steps=5)
    with pytest.raises(ArgumentError, match="steps is 0"):
        ilqr(cost, [0, 0], dt=0.1, steps=0)
    with pytest.raises(ArgumentError, match="max_iterations is 0"):
        ilqr(cost, [0, 0], max_iterations=0, **good)
    with pytest.raises(ShapeError, match=r"tau has shape \(4, 2\)"):
        ilqr(cost, [0, 0], tau=np.zeros((4, 2)), **good)
    with pytest.raises(ArgumentError, match="have more"):
        ilqr(QuadraticCost(body, body.neutral()), body.neutral(), second_order=True, **good)
    with pytest.raises(UnknownNameError, match="panda_link8"):
        QuadraticCost(arm, READY, frames=[FrameGoal("panda_link", np.zeros(3))])
    with pytest.raises(ShapeError, match="target has shape"):
        FrameGoal(HAND, np.zeros(4))
    with pytest.raises(ShapeError, match="weight has shape"):
        FrameGoal(HAND, np.zeros(3), weight=np.ones(6))
    moving = QuadraticCost(cart, np.zeros((4, 2)), actuated=["slider"])
    with pytest.raises(ArgumentError, match=r"a goal has shape"):
        ilqr(moving, [0, 0], **good)
    wild = np.full((5, 2), 1e12)
    with pytest.raises(ArgumentError, match="runs away from start 0"):
        ilqr(cost, [0, 0], tau=wild, **good)
