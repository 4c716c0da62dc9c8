# SPDX-License-Identifier: BSD-3-Clause
"""Steps of time and their derivatives: differences through the robot's own steps."""

import numpy as np
import pytest
import scipy.linalg

import phistar
from phistar.derivatives.discrete import DISCRETIZATION_SCHEMES, STAGED_METHODS
from phistar.errors import ArgumentError, ShapeError, SingularHingeError, UnknownNameError
from tests.derivatives.witness import ROBOTS, State, close, state

DT = 0.02
Pair = tuple[np.ndarray, np.ndarray]


def _step(robot: phistar.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray, method: str) -> Pair:
    """A step, written by hand."""
    later = v + DT * robot.forward_dynamics(q, v, tau)
    return robot.integrate(q, DT * (later if method == "semi_implicit" else v)), later


@pytest.fixture(scope="module", params=ROBOTS)
def case(request: pytest.FixtureRequest) -> State:
    """Free, spherical, planar joints and all others; fast enough that rotations are not flat."""
    found = state(request.param)
    return State(found.robot, found.q, 5 * found.v, found.x, found.dq, found.dv, found.dx, found.w)


@pytest.mark.parametrize("method", DISCRETIZATION_SCHEMES)
def test_the_step(case: State, method: str) -> None:
    """q and v at the end are those of the scheme; relative 1e-12."""
    found = case.robot.discretize(case.q, case.v, case.x, DT, method=method)
    q, v = _step(case.robot, case.q, case.v, case.x, method)
    close(found.q, q, 1e-12)
    close(found.v, v, 1e-12)


@pytest.mark.parametrize("method", DISCRETIZATION_SCHEMES)
def test_derivatives(case: State, method: str) -> None:
    """A and B are central differences of the step, in tangent steps at both ends; 1e-6."""
    robot, n, h = case.robot, case.robot.nv, 1e-5
    found = robot.discretize(case.q, case.v, case.x, DT, method=method)
    units = h * np.eye(3 * n)[:, None, :]
    ends = []
    for sign in (1, -1):
        dq, dv, dx = (sign * units[..., k * n : k * n + n] for k in range(3))
        moved = robot.integrate(case.q[None], dq), case.v + dv, case.x + dx
        q, v = _step(robot, *moved, method)
        ends.append(np.concatenate([robot.difference(found.q[None], q), v], axis=-1))
    expected = np.moveaxis((ends[0] - ends[1]) / (2 * h), 0, -1)
    close(found.A, expected[..., : 2 * n], 1e-6)
    close(found.B, expected[..., 2 * n :], 1e-6)


@pytest.mark.parametrize("method", STAGED_METHODS)
def test_steps_of_several_stages(case: State, method: str) -> None:
    """The step is that of ``step``, 1e-12; its derivatives are differences through it, 1e-6."""
    robot, n, h = case.robot, case.robot.nv, 1e-5
    found = robot.discretize(case.q, case.v, case.x, DT, method=method)
    q, v = robot.step(case.q, case.v, case.x, DT, method, passive=False)
    close(found.q, q, 1e-12)
    close(found.v, v, 1e-12)
    units = h * np.eye(3 * n)[:, None, :]
    ends = []
    for sign in (1, -1):
        dq, dv, dx = (sign * units[..., k * n : k * n + n] for k in range(3))
        moved = robot.integrate(case.q[None], dq), case.v + dv, case.x + dx
        q, v = robot.step(*moved, DT, method, passive=False)
        ends.append(np.concatenate([robot.difference(found.q[None], q), v], axis=-1))
    expected = np.moveaxis((ends[0] - ends[1]) / (2 * h), 0, -1)
    close(found.A, expected[..., : 2 * n], 1e-6)
    close(found.B, expected[..., 2 * n :], 1e-6)


def test_steps_of_several_stages_take_all_keywords() -> None:
    """Wrenches on frames and springs push at every stage; 1e-6. Single precision stays, bad samples
    become NaN, and robots with loops say what they have."""
    robot = phistar.load("panda").with_joint_physics(damping=0.3, stiffness=2.0)
    rng = np.random.default_rng(0)
    q, v, tau = (rng.normal(size=(3, robot.nv)) for _ in range(3))
    push = {"panda_link7": rng.normal(size=6)}

    def ahead(x: np.ndarray) -> np.ndarray:
        later = robot.step(
            *np.split(x, 3, axis=-1), DT, "rk4", forces=push, passive={"springs", "damping"}
        )
        return np.concatenate(later, axis=-1)

    found = robot.discretize(q, v, tau, DT, method="rk4", forces=push, passive=True)
    x, h = np.concatenate([q, v, tau], axis=-1), 1e-5
    close(np.concatenate([found.q, found.v], axis=-1), ahead(x), 1e-12)
    steps = h * np.eye(x.shape[-1])[:, None, :]
    expected = np.moveaxis((ahead(x + steps) - ahead(x - steps)) / (2 * h), 0, -1)
    close(np.concatenate([found.A, found.B], axis=-1), expected, 1e-6)
    single = robot.discretize(*(a.astype(np.float32) for a in (q, v, tau)), DT, method="rk4")
    assert {x.dtype for x in vars(single).values()} == {np.dtype(np.float32)}
    v[1] = np.nan
    kept = robot.discretize(q, v, tau, DT, method="rk4", forces=push, passive=True, on_error="nan")
    assert np.isnan(kept.A[1]).all()
    assert np.array_equal(kept.A[::2], found.A[::2])
    with pytest.raises(UnknownNameError, match="rk4"):
        robot.discretize(q, v, tau, DT, method="rk5")
    bars = phistar.load("four_bar")
    with pytest.raises(UnknownNameError, match="semi_implicit"):
        bars.discretize(bars.neutral(), np.zeros(3), np.zeros(3), DT, method="rk4")


def test_short_steps_are_the_continuous_system(case: State) -> None:
    """(A - 1)/dt tends to the continuous A, and B/dt to B, as dt vanishes; 1e-4."""
    dt = 1e-7
    continuous = case.robot.linearize(case.q, case.v, case.x)
    for method in DISCRETIZATION_SCHEMES:
        found = case.robot.discretize(case.q, case.v, case.x, dt, method=method)
        close((found.A - np.eye(2 * case.robot.nv)) / dt, continuous.A, 1e-4)
        close(found.B / dt, continuous.B, 1e-4)


def test_held(case: State) -> None:
    """``held`` is the exponential of [[A, B], [0, 0]] dt, as SciPy has it; relative 1e-11."""
    linear = case.robot.linearize(case.q, case.v / 5, case.x)
    n = case.robot.nv
    whole = np.zeros((2, 3 * n, 3 * n))
    whole[:, : 2 * n, : 2 * n], whole[:, : 2 * n, 2 * n :] = linear.A, linear.B
    for dt in (0.02, 0.5):
        expected = np.stack([scipy.linalg.expm(each * dt) for each in whole])
        a, b = linear.held(dt)
        close(a, expected[:, : 2 * n, : 2 * n])
        close(b, expected[:, : 2 * n, 2 * n :])


@pytest.mark.parametrize("method", DISCRETIZATION_SCHEMES)
def test_batches_broadcast(method: str) -> None:
    """Axes of q, v, tau and of forces broadcast; a batch is its single steps; 1e-12."""
    case = state(batch=())
    robot = case.robot
    q = robot.random_configuration(1, (3, 1))
    v = np.random.default_rng(2).normal(size=(2, robot.nv))
    name = robot.link_names[-1]
    wrench = np.random.default_rng(4).normal(size=(4, 1, 1, 6))
    found = robot.discretize(q, v, case.x, DT, method=method, forces={name: wrench})
    one = robot.discretize(q[2, 0], v[1], case.x, DT, method=method, forces={name: wrench[3, 0, 0]})
    assert found.A.shape == (4, 3, 2, 2 * robot.nv, 2 * robot.nv)
    for field in ("q", "v", "A", "B"):
        close(getattr(found, field)[3, 2, 1], getattr(one, field), 1e-12)


def test_errors() -> None:
    """Unknown schemes, times that are none and shapes that do not fit are named."""
    robot = phistar.load("double_pendulum")
    x = np.zeros(robot.nv)
    with pytest.raises(UnknownNameError, match=r"leapfrog.*semi_implicit"):
        robot.discretize(x, x, x, 0.1, method="leapfrog")
    for dt in (0.0, -0.1, np.nan, np.inf):
        with pytest.raises(ArgumentError, match="dt is"):
            robot.discretize(x, x, x, dt)
    with pytest.raises(ShapeError, match="tau"):
        robot.discretize(x, x, np.zeros(3), 0.1)
    with pytest.raises(ArgumentError, match=r"v\[0\] is nan"):
        robot.discretize(x, x * np.nan, x, 0.1)
    builder = phistar.ModelBuilder("loose")
    builder.link("base")
    builder.link("tip")
    builder.joint("hinge", "revolute", "base", "tip")
    with pytest.raises(SingularHingeError, match="hinge"):
        phistar.Robot(builder.build()).discretize([0.0], [0.0], [0.0], 0.1)
