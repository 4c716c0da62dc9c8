# SPDX-License-Identifier: BSD-3-Clause
"""Regulators, trackers and optimised motions of robots with loops."""

import numpy as np
import pytest

from phistar import control
from phistar.arrays import Array
from phistar.control.backward import costates, gradient
from phistar.control.ilqr import _TrajectorySolver
from phistar.control.line_search import TrajectoryBatch
from phistar.control.loop_states import holding_force, loop_states
from phistar.control.loop_steps import reduced_steps
from phistar.errors import (
    ArgumentError,
    EquilibriumError,
    LoopError,
    LoopOpenError,
    StabilityError,
)
from phistar.robot import Robot
from tests.control.mechanisms import BUNDLED, FIVE, beside, gap, mechanism, moved, velocity

DRIVEN = ("fourbar_crank_rocker", "fivebar", "quadruped_stand", "gripper_mimic", BUNDLED)
"""Mechanisms whose motors drive every motion."""
WEIGHTS = {"gripper_mimic": 1e4, "quadruped_stand": 3.0}
"""Of forces, so that no mode is too fast for steps of some milliseconds."""


def regulator(name: str, dt: float | None = None) -> control.Regulator:
    """With the mechanism's own motors."""
    robot, motors, q = mechanism(name)
    return control.lqr(robot, q, Q=30.0, R=WEIGHTS.get(name, 0.1), actuated=motors, dt=dt)


@pytest.mark.parametrize("name", DRIVEN)
def test_the_closed_loop_of_independent_coordinates_decays(name: str) -> None:
    """2 n eigenvalues, all decaying; they are those of the reduced pair of ``linearize``."""
    robot, _, q = mechanism(name)
    found = regulator(name)
    n = robot.mobility(q).degrees_of_freedom
    assert found.eigenvalues.shape == (2 * n,)
    assert (found.eigenvalues.real < 0).all()
    pair = robot.linearize(q, np.zeros(robot.nv), found.tau).reduced()
    assert np.array_equal(pair.entries, found.independent)
    gains = found.K[:, [*pair.entries, *(robot.nv + pair.entries)]]
    rest = np.delete(found.K, [*pair.entries, *(robot.nv + pair.entries)], axis=1)
    assert not rest.any()
    closed = np.linalg.eigvals(pair.A - pair.B[:, found.actuation.columns] @ gains)
    assert np.allclose(np.sort(closed.real), np.sort(found.eigenvalues.real), rtol=1e-6)
    undriven = np.setdiff1d(np.arange(robot.nv), found.actuation.columns)
    assert not found.tau[undriven].any()


@pytest.mark.parametrize("name", ["fourbar_crank_rocker", "fivebar", BUNDLED])
def test_the_reduced_pair_agrees_with_differences(name: str) -> None:
    """Decay of the closed loop from differences of accelerations between states on the loops."""
    robot, _, q = mechanism(name)
    found = regulator(name)
    entries, still = found.independent, np.zeros(robot.nv)
    n, h = len(found.independent), 1e-5
    A = np.zeros((2 * n, 2 * n))
    for i, unit in enumerate(np.eye(2 * n)):
        pair = [moved(robot, q, still, entries, sign * h * unit) for sign in (1, -1)]
        (v1, a1), (v2, a2) = ((v, robot.forward_dynamics(x, v, found(x, v))) for x, v in pair)
        A[:, i] = np.concatenate([(v1 - v2)[entries], (a1 - a2)[entries]]) / (2 * h)
    expected = np.sort_complex(np.linalg.eigvals(A))
    assert np.allclose(np.sort_complex(found.eigenvalues), expected, rtol=1e-5)


@pytest.mark.parametrize("name", DRIVEN)
def test_a_regulator_in_steps_brings_a_mechanism_back(name: str) -> None:
    """From beside the equilibrium, on the loops all the time, to a hundredth of the error."""
    robot, _, q = mechanism(name)
    dt, steps = 0.01, 500
    found = regulator(name, dt)
    assert (np.abs(found.eigenvalues) < 1).all()
    start = beside(robot, q, 0.05)
    motion = control.rollout(
        robot, start, np.zeros(robot.nv), lambda k, q, v: found(q, v), dt, steps
    )
    errors = np.abs(found.error(motion.q, motion.v)).max(axis=-1)
    assert errors[-1] < 0.01 * errors[0]
    assert gap(robot, motion.q) < 1e-12


def test_a_continuous_regulator_is_the_limit_of_short_steps() -> None:
    """Gains of steps of 1e-4 s are within 1 % of the continuous ones: poles reach 160/s."""
    short, exact = regulator("fivebar", 1e-4), regulator("fivebar")
    assert np.abs(short.K - exact.K).max() < 1e-2 * np.abs(exact.K).max()
    rates = np.log(short.eigenvalues.astype(complex)) / 1e-4
    assert np.allclose(np.sort(rates.real)[-2:], np.sort(exact.eigenvalues.real)[-2:], rtol=1e-2)


def test_weights_of_all_coordinates_count_along_the_loops() -> None:
    """Q of (δq, δv) is P*QP of independent errors, which may be given itself."""
    robot, motors, q = mechanism("fivebar")
    free = robot.minimal(q)
    weights = np.linspace(1.0, 5.0, 2 * robot.nv)
    whole = control.lqr(robot, q, Q=weights, R=0.1, actuated=motors)
    P = np.kron(np.eye(2), free.X)
    reduced = control.lqr(robot, q, Q=P.T @ np.diag(weights) @ P, R=0.1, actuated=motors)
    assert np.allclose(whole.K, reduced.K, rtol=1e-9, atol=1e-12)
    diagonal = control.lqr(robot, q, Q=np.ones(4), R=0.1, actuated=motors)
    matrix = control.lqr(robot, q, Q=np.eye(4), R=0.1, actuated=motors)
    assert np.array_equal(diagonal.K, matrix.K)


def test_cost_to_go_is_that_of_the_return() -> None:
    """e·S e against the integral of the cost along the motion, within 2 %."""
    robot, motors, q = mechanism("fivebar")
    dt = 0.002
    found = control.lqr(robot, q, Q=30.0, R=0.1, actuated=motors, dt=dt)
    start = beside(robot, q, 0.002)
    motion = control.rollout(
        robot, start, np.zeros(robot.nv), lambda k, q, v: found(q, v), dt, 3000
    )
    errors = found.error(motion.q, motion.v)
    u = found.actuation.pick(motion.tau - found.tau)
    paid = dt * (30.0 * (errors[:-1] ** 2).sum() + 0.1 * (u**2).sum())
    assert np.isclose(errors[0] @ found.S @ errors[0], paid, rtol=0.02)


def test_motions_that_motors_do_not_reach_are_named() -> None:
    """Rods of a delta robot spin whatever its arms do; with motors everywhere they do not."""
    robot, motors, q = mechanism("delta_ball")
    with pytest.raises(StabilityError, match="rod"):
        control.lqr(robot, q, actuated=motors)
    found = control.lqr(robot, q, R=0.01)
    assert found.eigenvalues.shape == (18,)
    assert (found.eigenvalues.real < 0).all()


def test_states_that_cannot_be_held_are_refused() -> None:
    """Off the loops, and where the motors are too few for gravity."""
    robot, motors, q = mechanism("fivebar")
    with pytest.raises(LoopOpenError):
        control.lqr(robot, q + 0.1, actuated=motors)
    with pytest.raises(EquilibriumError, match="j_a"):
        control.lqr(robot, q, actuated=motors[:1])


def step_derivatives(name: str, dt: float) -> tuple[Array, Array, Array, Array]:
    """A and B of a step, and the same by central differences between states on the loops."""
    robot, _, q = mechanism(name)
    v, tau = velocity(robot, q), robot.gravity_force(q) / 2
    start, ahead = loop_states(robot, q, v), robot.step(q, v, tau, dt, passive=False)
    end = loop_states(robot, *ahead)
    found = reduced_steps(robot, q, v, tau, dt, start, end.entries)
    n, nv, h = len(start.entries), robot.nv, 1e-5
    push = 1e-3 * dt / np.abs(found.B).max()
    states = [
        moved(robot, q, v, start.entries, sign * h * unit)
        for sign in (1, -1)
        for unit in np.eye(2 * n)
    ]
    states += 2 * nv * [(q, v)]
    forces = np.tile(tau, (4 * n + 2 * nv, 1))
    forces[4 * n :] += push * np.concatenate([np.eye(nv), -np.eye(nv)])
    # All in one call, so that all take the same way, by machine code or not.
    x, w = robot.step(
        *(np.array(each) for each in zip(*states, strict=True)), forces, dt, passive=False
    )
    picked = np.concatenate([robot.difference(ahead[0], x), w - ahead[1]], axis=-1) @ end.pick.T
    A = (picked[: 2 * n] - picked[2 * n : 4 * n]).T / (2 * h)
    B = (picked[4 * n : 4 * n + nv] - picked[4 * n + nv :]).T / (2 * push)
    return found.A, A, found.B, B


@pytest.mark.parametrize("dt", [0.002, 0.01])
@pytest.mark.parametrize("name", [*FIVE, "two_arms", "stewart_leg", "bricard", BUNDLED])
def test_derivatives_of_projected_steps_agree_with_differences(name: str, dt: float) -> None:
    """In independent coordinates at both ends, relative to the largest entry.

    NumPy projects v in another metric than machine code; here either may take the steps.
    """
    found_A, A, found_B, B = step_derivatives(name, dt)
    tolerance = {0.002: 1e-6, 0.01: 5e-5}[dt]
    assert np.abs(found_A - A).max() < tolerance * np.abs(A).max()
    assert np.abs(found_B - B).max() < tolerance * np.abs(B).max()


@pytest.mark.parametrize("name", ["fivebar", "quadruped_stand"])
def test_tv_lqr_tracks_a_motion_on_the_loops(name: str) -> None:
    """The error shrinks, and e·S[0] e is the cost of the tracking within 2 %."""
    robot, motors, q = mechanism(name)
    dt, steps = 0.005, 60
    hold = robot.constrained_inverse_dynamics(
        q, np.zeros(robot.nv), np.zeros(robot.nv), actuated=motors
    ).tau
    nominal = control.rollout(
        robot, q, np.zeros(robot.nv), lambda k, q, v: (1 + 0.02 * np.sin(0.1 * k)) * hold, dt, steps
    )
    R = WEIGHTS.get(name, 0.1)
    tracker = control.tv_lqr(robot, nominal, Q=30.0, R=R, actuated=motors)
    assert tracker.defect < 1e-9
    start = beside(robot, q, 0.002)
    motion = control.rollout(robot, start, np.zeros(robot.nv), tracker, dt, steps)
    errors = tracker.errors(motion)
    assert np.abs(errors[-1]).max() < 0.8 * np.abs(errors[0]).max()
    u = tracker.actuation.pick(motion.tau - nominal.tau)
    paid = (
        dt * (30.0 * (errors[:-1] ** 2).sum() + R * (u**2).sum()) + 30.0 * errors[-1] @ errors[-1]
    )
    assert np.isclose(errors[0] @ tracker.S[0] @ errors[0], paid, rtol=0.02)
    assert gap(robot, motion.q) < 1e-12


def test_tv_lqr_of_a_batch_is_that_of_each() -> None:
    """Two motions with independent coordinates of their own."""
    robot, motors, q = mechanism("fourbar_crank_rocker")
    starts = np.stack([q, robot.assemble(q + np.eye(3)[0], fixed=["j_crank"])])

    def limp(k: int, q: Array, v: Array) -> Array:
        return np.zeros(robot.nv)

    still = np.zeros_like(starts)
    both = control.rollout(robot, starts, still, limp, 0.005, 20)
    tracker = control.tv_lqr(robot, both, actuated=motors)
    for i in range(2):
        alone = control.Trajectory(both.t, both.q[:, i], both.v[:, i], both.tau[:, i])
        assert np.allclose(control.tv_lqr(robot, alone, actuated=motors).K, tracker.K[:, i])


def cost_gradient(
    cost: control.QuadraticCost, robot: Robot, q: Array, v: Array, u: Array, dt: float
) -> Array:
    """The gradient (N, nu) that iLQR works with."""
    spread = cost.actuation.spread
    motion = control.rollout(robot, q, v, lambda k, q, v: spread(u[k]), dt, len(u))
    batch = TrajectoryBatch(motion.q[:, None], motion.v[:, None], u[:, None], np.zeros(1))
    solver = _TrajectorySolver(cost, batch, dt, (np.full(u.shape[1], -np.inf),) * 2, False, 1e-8)
    at = solver._linear(batch)
    return np.asarray(gradient(at, costates(at))[:, 0])


@pytest.mark.parametrize("name", [*FIVE, BUNDLED])
def test_the_gradient_of_the_cost_agrees_with_differences(name: str) -> None:
    """Total cost along changes of the controls, each of which is feasible: relative 1e-5."""
    robot, motors, q = mechanism(name)
    dt, steps, ways = 0.002, 15, 3
    rng = np.random.default_rng(0)
    goal = beside(robot, q, 0.1)
    cost = control.QuadraticCost(robot, goal, Q=10.0, R=1e-3, Q_final=100.0, actuated=motors)
    hold, v = holding_force(cost.actuation, q), velocity(robot, q, 0.5)
    u = cost.actuation.pick(hold) * (1 + 0.2 * rng.normal(size=(steps, cost.actuation.size)))
    slope = cost_gradient(cost, robot, q, v, u, dt)
    way = rng.normal(size=(steps, ways, u.shape[1]))
    h = 1e-2 * np.abs(u).max()
    signs = np.array([1.0, -1.0, 2.0, -2.0])[:, None, None]
    forces = u[:, None, None] + h * signs * way[:, None]
    start = np.broadcast_to(q, (4, ways, robot.nq))
    spread = cost.actuation.spread
    motion = control.rollout(robot, start, v, lambda k, q, v: spread(forces[k]), dt, steps)
    value = cost.value(motion.q, motion.v, forces, dt)
    change = (8 * (value[0] - value[1]) - (value[2] - value[3])) / (12 * h)
    assert np.allclose((slope[:, None] * way).sum(axis=(0, 2)), change, rtol=1e-5)


@pytest.mark.parametrize("name", ["fivebar", "quadruped_stand", "delta_ball", "gripper_mimic"])
def test_ilqr_finds_motions_on_the_loops(name: str) -> None:
    """It converges, the cost falls, the gradient vanishes, and its feedback replays the motion."""
    robot, motors, q = mechanism(name)
    start, still, dt, steps = beside(robot, q, 0.05), np.zeros(robot.nv), 0.01, 15
    cost = control.QuadraticCost(robot, q, Q=10.0, R=0.01, Q_final=100.0, actuated=motors)
    found = control.ilqr(cost, start, dt=dt, steps=steps)
    assert found.converged
    assert found.cost < 0.9 * found.history[0]
    assert gap(robot, found.trajectory.q) < 1e-12
    first = cost_gradient(
        cost, robot, start, still, np.broadcast_to(cost.goal_u, (steps, len(cost.goal_u))), dt
    )
    assert found.gradient < 1e-3 * np.abs(first).max()
    again = control.rollout(robot, start, still, found.feedback, dt, steps)
    assert np.abs(again.q - found.trajectory.q).max() < 1e-10
    undriven = np.setdiff1d(np.arange(robot.nv), cost.actuation.columns)
    assert not found.trajectory.tau[:, undriven].any()


def test_ilqr_of_a_batch_with_bounds() -> None:
    """Two starts at once, forces within bounds that are met."""
    robot, motors, q = mechanism(BUNDLED)
    starts = np.stack([beside(robot, q, 0.2), beside(robot, q, 0.2, seed=3)])
    cost = control.QuadraticCost(robot, q, Q=100.0, R=1e-3, actuated=motors)
    free = control.ilqr(cost, starts, dt=0.01, steps=40)
    bound = 0.9 * float(np.abs(free.trajectory.tau).max())
    found = control.ilqr(cost, starts, dt=0.01, steps=40, limits=bound)
    assert found.converged.all()
    assert np.isclose(np.abs(found.trajectory.tau).max(), bound)
    # The start that the bound does not touch ends elsewhere within the solver's tolerance.
    assert (found.cost >= (1 - 1e-6) * free.cost).all()
    assert found.cost[1] > (1 + 1e-4) * free.cost[1]


def test_second_derivatives_through_loops_are_refused() -> None:
    """DDP says that it cannot, and what can."""
    robot, motors, q = mechanism(BUNDLED)
    cost = control.QuadraticCost(robot, q, actuated=motors)
    with pytest.raises(LoopError, match="second_order off"):
        control.ilqr(cost, q, dt=0.01, steps=5, second_order=True)
    with pytest.raises(LoopOpenError):
        control.ilqr(cost, q + 0.1, dt=0.01, steps=5)


def test_ilqr_says_which_first_guess_runs_away() -> None:
    """Alone and in a batch; a start off the loops is named even if forces are given."""
    robot, motors, q = mechanism(BUNDLED)
    cost = control.QuadraticCost(robot, q, actuated=motors)
    wild = np.full((20, robot.nv), 1e5)
    with pytest.raises(ArgumentError, match="runs away from start 0"):
        control.ilqr(cost, q, dt=0.05, steps=20, tau=wild)
    both = np.stack([np.zeros_like(wild), wild], axis=1)
    with pytest.raises(ArgumentError, match="runs away from start 1"):
        control.ilqr(cost, np.stack([q, q]), dt=0.05, steps=20, tau=both)
    with pytest.raises(LoopOpenError):
        control.ilqr(cost, q + 0.1, dt=0.05, steps=20, tau=wild)
