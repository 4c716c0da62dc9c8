# SPDX-License-Identifier: BSD-3-Clause
"""Regulators at an equilibrium: the Riccati equation, the nonlinear robot, and what is refused."""

import numpy as np
import pytest
from scipy.linalg import expm, solve_continuous_are, solve_discrete_are

import phistar
from phistar.control import lqr, rollout
from phistar.errors import (
    ArgumentError,
    EquilibriumError,
    ShapeError,
    StabilityError,
    UnknownNameError,
)

MOTOR = ["slider"]
WEIGHTS = np.array([1.0, 10.0, 1.0, 1.0])


@pytest.fixture(scope="module")
def cart() -> phistar.Robot:
    """The cart-pole, pole upright at q = 0."""
    return phistar.load("cartpole")


@pytest.fixture(scope="module")
def body() -> phistar.Robot:
    """A free body with a hinged arm, without gravity."""
    build = phistar.ModelBuilder("body", gravity=(0, 0, 0))
    build.link("hull", mass=2.0, inertia=np.diag([0.3, 0.2, 0.4]))
    build.link("arm", mass=0.5, com=(0.2, 0, 0), inertia=np.diag([0.01, 0.02, 0.02]))
    build.joint("elbow", "revolute", "hull", "arm", axis=(0, 0, 1))
    return phistar.Robot(build.build(floating_base=True))


def cart_pole_by_hand() -> tuple[np.ndarray, np.ndarray]:
    """A and B of the upright cart-pole from its textbook equations: M=1, m=0.1, l=0.5, rod."""
    M, m, length, g = 1.0, 0.1, 0.5, 9.81
    inertia = m * length**2 + m * (2 * length) ** 2 / 12
    mass = np.array([[M + m, m * length], [m * length, inertia]])
    fall = np.array([[0.0, 0.0], [0.0, m * g * length]])
    A = np.zeros((4, 4))
    A[:2, 2:] = np.eye(2)
    A[2:, :2] = np.linalg.solve(mass, fall)
    B = np.zeros((4, 1))
    B[2:, 0] = np.linalg.solve(mass, [1.0, 0.0])
    return A, B


def test_gains_are_those_of_the_textbook_system(cart: phistar.Robot) -> None:
    """K, S and eigenvalues agree with SciPy's on equations written by hand, to 1e-9."""
    A, B = cart_pole_by_hand()
    S = solve_continuous_are(A, B, np.diag(WEIGHTS), [[0.1]])
    K = B.T @ S / 0.1
    found = lqr(cart, cart.neutral(), WEIGHTS, 0.1, actuated=MOTOR)
    np.testing.assert_allclose(found.K, K, rtol=1e-9)
    np.testing.assert_allclose(found.S, S, rtol=1e-9)
    closed = np.sort_complex(np.linalg.eigvals(A - B @ K))
    np.testing.assert_allclose(np.sort_complex(found.eigenvalues), closed, rtol=1e-8)


def test_gains_in_steps_are_those_of_the_stepped_system(cart: phistar.Robot) -> None:
    """With dt the gains solve the discrete equation of v' = v + dt v̇, q' = q + dt v', to 1e-9."""
    A, B = cart_pole_by_hand()
    dt, eye = 0.02, np.eye(4)
    late = eye.copy()
    late[:2, 2:] = dt * np.eye(2)
    kick = eye.copy()
    kick[2:] += dt * A[2:]
    step, push = late @ kick, late @ (dt * B)
    S = solve_discrete_are(step, push, dt * np.diag(WEIGHTS), [[dt * 0.1]])
    K = np.linalg.solve(dt * 0.1 + push.T @ S @ push, push.T @ S @ step)
    found = lqr(cart, cart.neutral(), WEIGHTS, 0.1, actuated=MOTOR, dt=dt)
    np.testing.assert_allclose(found.K, K, rtol=1e-9)
    assert (np.abs(found.eigenvalues) < 1).all()


def test_short_steps_give_the_continuous_gains(cart: phistar.Robot) -> None:
    """Weights are per second: a tenth of dt leaves a tenth of the distance to continuous gains."""
    exact = lqr(cart, cart.neutral(), WEIGHTS, 0.1, actuated=MOTOR).K
    gaps = [
        np.abs(lqr(cart, cart.neutral(), WEIGHTS, 0.1, actuated=MOTOR, dt=dt).K - exact).max()
        for dt in (1e-3, 1e-4)
    ]
    assert gaps[0] / gaps[1] == pytest.approx(10.0, rel=0.05)


def test_the_pole_comes_back(cart: phistar.Robot) -> None:
    """The nonlinear robot converges from tilts up to 0.6 rad, without control it falls."""
    hold = lqr(cart, cart.neutral(), WEIGHTS, 0.1, actuated=MOTOR)
    start = cart.configuration({"hinge": np.array([-0.6, 0.1, 0.6])})
    still = np.zeros((3, 2))
    held = rollout(cart, start, still, lambda _, q, v: hold(q, v), 0.02, 500)
    assert np.abs(hold.error(held.q[-1], held.v[-1])).max() < 1e-3
    assert (held.tau[..., 1] == 0).all()
    free = rollout(cart, start, still, lambda *_: np.zeros(2), 0.02, 100)
    assert (np.abs(free.q[:, :, 1]).max(axis=0) > 1.5).all()


def test_cost_is_what_S_promises(cart: phistar.Robot) -> None:
    """From a small error e the running cost sums to e·S e, to 1e-3."""
    dt = 0.01
    hold = lqr(cart, cart.neutral(), WEIGHTS, 0.1, actuated=MOTOR, dt=dt)
    q, v = np.array([0.01, -0.02]), np.array([0.02, 0.01])
    motion = rollout(cart, q, v, lambda _, q, v: hold(q, v), dt, 1500)
    errors = hold.error(motion.q, motion.v)[:-1]
    spent = dt * ((errors**2 * WEIGHTS).sum() + 0.1 * (motion.tau**2).sum())
    first = hold.error(q, v)
    assert spent == pytest.approx(first @ hold.S @ first, rel=1e-3)


def test_small_errors_follow_the_eigenvalues(cart: phistar.Robot) -> None:
    """A small error of the nonlinear robot decays as exp((A - BK) t) of the textbook system."""
    A, B = cart_pole_by_hand()
    hold = lqr(cart, cart.neutral(), WEIGHTS, 0.1, actuated=MOTOR)
    e = 1e-4 * np.array([1.0, -2.0, 0.5, 1.0])
    motion = rollout(cart, e[:2], e[2:], lambda _, q, v: hold(q, v), 1e-3, 1000)
    expected = expm(A - B @ hold.K) @ e
    found = hold.error(motion.q[-1], motion.v[-1])
    np.testing.assert_allclose(found, expected, atol=0.01 * np.abs(e).max())


def test_an_arm_is_held_against_gravity() -> None:
    """By default the holding forces are those of gravity; batches give what single states give."""
    arm = phistar.load("panda")
    q = np.array([0.3, -0.5, 0.2, -2.0, 0.1, 1.6, 0.8])
    hold = lqr(arm, q, np.r_[np.full(7, 100.0), np.full(7, 1.0)], 0.01, dt=0.005)
    np.testing.assert_allclose(hold(q, np.zeros(7)), arm.gravity_force(q), rtol=1e-12)
    rng = np.random.default_rng(0)
    qs, vs = q + rng.normal(scale=0.2, size=(3, 7)), rng.normal(scale=0.2, size=(3, 7))
    batch = rollout(arm, qs, vs, lambda _, q, v: hold(q, v), 0.005, 300)
    assert np.abs(hold.error(batch.q[-1], batch.v[-1])).max() < 1e-2
    single = rollout(arm, qs[1], vs[1], lambda _, q, v: hold(q, v), 0.005, 300)
    np.testing.assert_allclose(batch.q[:, 1], single.q, atol=1e-9)


def test_a_free_body_turns_back(body: phistar.Robot) -> None:
    """Errors of a free joint are tangent steps: from 2.5 rad about a skew axis it comes to rest."""
    hold = lqr(body, body.neutral(), 1.0, 1.0)
    turn = 2.5 * np.array([0.6, -0.64, 0.48])
    start = body.integrate(body.neutral(), np.r_[turn, 0.3, -0.2, 0.1, 0.4])
    motion = rollout(body, start, np.zeros(7), lambda _, q, v: hold(q, v), 0.02, 800)
    left = body.difference(body.neutral(), motion.q[-1])
    assert np.abs(left).max() < 1e-2
    np.testing.assert_allclose(np.linalg.norm(motion.q[:, 3:7], axis=-1), 1.0, rtol=1e-12)


def test_where_a_robot_does_not_rest(cart: phistar.Robot) -> None:
    """A tilted pole falls: the error holds and prints the acceleration g sin(θ)-wise."""
    with pytest.raises(EquilibriumError, match="hinge") as caught:
        lqr(cart, {"hinge": 0.3}, actuated=MOTOR)
    expected = cart.forward_dynamics({"hinge": 0.3}, np.zeros(2), np.zeros(2))
    np.testing.assert_allclose(caught.value.residual, expected)
    arm = phistar.load("panda")
    with pytest.raises(EquilibriumError):
        lqr(arm, np.full(7, 0.3), tau=np.zeros(7))


def test_motors_that_do_not_reach(cart: phistar.Robot, body: phistar.Robot) -> None:
    """A motor in the hinge cannot move the cart's centre of mass; the elbow cannot move a body."""
    with pytest.raises(StabilityError, match="slider") as caught:
        lqr(cart, cart.neutral(), actuated=["hinge"])
    assert [abs(value) < 1e-6 for value, _ in caught.value.modes] == [True]
    with pytest.raises(StabilityError, match="do not reach"):
        lqr(body, body.neutral(), actuated=["elbow"])


def test_weights_that_do_not_see(cart: phistar.Robot) -> None:
    """Without a weight on the cart's place nothing brings it back; the mode is named."""
    with pytest.raises(StabilityError, match=r"no weight.*\n.*slider"):
        lqr(cart, cart.neutral(), [0, 1, 1, 1], actuated=MOTOR)


@pytest.mark.parametrize(
    ("kind", "match", "options"),
    [
        (ShapeError, r"Q has shape \(3,\).*\(4, 4\)", {"Q": np.ones(3)}),
        (ShapeError, r"R has shape \(2,\)", {"R": np.ones(2)}),
        (ArgumentError, "R is not positive definite", {"R": 0.0}),
        (ArgumentError, "Q is not positive semidefinite", {"Q": [1, 1, 1, -1]}),
        (ArgumentError, "Q is not symmetric", {"Q": np.eye(4) + np.eye(4, k=1)}),
        (ArgumentError, "Q is not finite", {"Q": np.nan}),
        (UnknownNameError, "'slider'", {"actuated": ["slide"]}),
        (ArgumentError, "list of joint names", {"actuated": "slider"}),
        (ArgumentError, "is fixed or follows", {"actuated": ["tip_mount"]}),
        (ArgumentError, "at least one", {"actuated": []}),
        (ShapeError, "tau has shape", {"tau": np.zeros((2, 2))}),
        (ArgumentError, "dt is -1", {"dt": -1}),
    ],
)
def test_wrong_arguments(
    cart: phistar.Robot, kind: type[Exception], match: str, options: dict[str, object]
) -> None:
    """Messages name the argument, what was given and what was expected."""
    with pytest.raises(kind, match=match):
        lqr(cart, cart.neutral(), **{"actuated": MOTOR, **options})


def test_one_place_at_a_time(cart: phistar.Robot) -> None:
    """An equilibrium is one configuration."""
    with pytest.raises(ShapeError, match="q has shape"):
        lqr(cart, np.zeros((3, 2)), actuated=MOTOR)
