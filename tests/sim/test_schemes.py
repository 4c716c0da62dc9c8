# SPDX-License-Identifier: BSD-3-Clause
"""Schemes with a fixed step: their orders on all joints, machine code, batches, arguments."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import phistar
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.sim.numpy_stepper import NumpyStepper
from phistar.sim.schemes import SCHEMES
from phistar.sim.stepper import SteppingOptions, StepSpan
from phistar.sim.variables import variable
from phistar.spatial import quat_to_rotation
from tests.helpers import patch_policy

KINDS = ("free", "spherical", "planar", "universal", "helical")


def coordinate_rates(model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """dq/dt of plain coordinates, written out joint by joint: the witness of steps by exp."""
    rate = np.empty(model.nq)
    for name in model.joint_names:
        joint = model.joints[name]
        p, w = q[joint.q_slice], v[joint.v_slice]
        if joint.joint_kind.name == "planar":
            c, s = np.cos(p[2]), np.sin(p[2])
            rate[joint.q_slice] = c * w[0] - s * w[1], s * w[0] + c * w[1], w[2]
        elif joint.joint_kind.name in ("free", "spherical"):
            x, y, z, s = p[-4:]
            turn = np.array([[s, -z, y], [z, s, -x], [-y, x, s], [-x, -y, -z]]) @ w[:3] / 2
            moved = quat_to_rotation(p[-4:]) @ w[3:] if len(p) == 7 else []
            rate[joint.q_slice] = np.concatenate([moved, turn])
        else:
            rate[joint.q_slice] = w
    return rate


def reference(
    robot: phistar.Robot, q: np.ndarray, v: np.ndarray, tau: np.ndarray, end: float
) -> tuple[np.ndarray, np.ndarray]:
    """The state at the end, by SciPy on plain coordinates."""

    def rates(_: float, state: np.ndarray) -> np.ndarray:
        place = robot.normalize(state[: robot.nq])
        speed = state[robot.nq :]
        there = coordinate_rates(robot.model, place, speed)
        return np.concatenate([there, robot.forward_dynamics(place, speed, tau)])

    start = np.concatenate([q, v])
    found = solve_ivp(rates, (0.0, end), start, method="DOP853", rtol=1e-12, atol=1e-12)
    state = found.y[:, -1]
    return robot.normalize(state[: robot.nq]), state[robot.nq :]


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest) -> tuple:
    """A robot of two joints of a kind and a hinge, a state, and where it is after 0.4 s."""
    rng = np.random.default_rng(5)
    kinds = [request.param, request.param, "revolute"]
    model = random_model(rng, 3, kinds=kinds[::2], topology="serial")
    robot = phistar.Robot(model)
    q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
    tau = rng.normal(size=robot.nv)
    return robot, q, v, tau, reference(robot, q, v, tau, 0.4)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_order(case: tuple, scheme: str) -> None:
    """Halving the step divides the error by 2 to the order, within 0.35 of it."""
    robot, q, v, tau, (q_end, v_end) = case
    errors = []
    for steps in (80, 160):
        sim = robot.simulate(
            q, v, tau=tau, dt=0.4 / steps, steps=steps, scheme=scheme, passive=False
        )
        assert sim.engine == "machine code"
        way = robot.difference(q_end, sim.q[-1])
        errors.append(np.linalg.norm(way) + np.linalg.norm(sim.v[-1] - v_end))
    order = np.log2(errors[0] / errors[1])
    assert abs(order - SCHEMES[scheme].order) < 0.35, (scheme, order, errors)


def test_machine_code_takes_the_steps_of_the_loop(case: tuple) -> None:
    """Compiled steps of every scheme are those of NumPy, with forces of each step, to 1e-11."""
    robot, q, v, _, _ = case
    rng = np.random.default_rng(1)
    speeds = v + rng.normal(scale=0.1, size=(5, robot.nv))
    push = rng.normal(size=(6, 5, robot.nv))
    places = np.broadcast_to(q, (5, robot.nq))
    for name, scheme in SCHEMES.items():
        sim = robot.simulate(
            q, speeds, tau_steps=push, dt=1e-2, steps=6, scheme=name, every=2, passive=False
        )
        loop = NumpyStepper(robot.model, variable("v", robot.model), SteppingOptions(scheme))
        qs, vs = np.empty((3, 5, robot.nq)), np.empty((3, 5, robot.nv))
        assert loop.run(StepSpan.of_batch((places, speeds), push, 1e-2, 6, 2, (qs, vs)))
        assert np.abs(sim.q[1:] - qs).max() < 1e-11
        assert np.abs(sim.v[1:] - vs).max() < 1e-11 * np.abs(vs).max()


def test_quaternions_stay_unit(case: tuple) -> None:
    """After 200 steps quaternions have length one to 1e-14, and tiny motions do no harm."""
    robot, q, v, _, _ = case
    for speed in (v, 1e-9 * v, 0.0 * v):
        sim = robot.simulate(
            q, speed, dt=2e-3, steps=200, scheme="semi_implicit", every=50, passive=False
        )
        assert np.isfinite(sim.q).all()
        assert np.abs(sim.q - robot.normalize(sim.q)).max() < 1e-14


@pytest.fixture(scope="module")
def quadruped() -> phistar.Robot:
    """A robot with a free base and twelve hinges."""
    return phistar.load("quadruped")


def states(robot: phistar.Robot, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Random states."""
    rng = np.random.default_rng(3)
    return robot.random_configuration(rng, shape), rng.normal(size=(*shape, robot.nv))


def test_bits_do_not_depend_on_threads_or_batch(quadruped: phistar.Robot) -> None:
    """131 samples give the same bits with 1, 2 and 5 threads, and each what it gives alone."""
    q, v = states(quadruped, (131,))
    runs = [quadruped.simulate(q, v, dt=1e-3, steps=4, threads=n, passive=False) for n in (1, 2, 5)]
    for other in runs[1:]:
        assert np.array_equal(other.q, runs[0].q)
        assert np.array_equal(other.v, runs[0].v)
    for k in (0, 64, 130):
        alone = quadruped.simulate(q[k], v[k], dt=1e-3, steps=4, passive=False)
        assert np.array_equal(alone.q, runs[0].q[:, k])


def test_pieces_and_thinning_change_nothing(
    quadruped: phistar.Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps taken in pieces, and keeping each third state, give the same bits."""
    q, v = states(quadruped, (3,))
    whole = quadruped.simulate(q, v, dt=1e-3, steps=12, passive=False)
    patch_policy(monkeypatch, simulation_piece_nanoseconds=1.0)
    pieces = quadruped.simulate(q, v, dt=1e-3, steps=12, every=3, passive=False)
    assert np.array_equal(pieces.t, whole.t[::3])
    assert np.array_equal(pieces.q, whole.q[::3])
    assert np.array_equal(pieces.v, whole.v[::3])


def test_batch_axes_broadcast(quadruped: phistar.Robot) -> None:
    """States (2, 1) and forces of each step (3,) make a batch (2, 3) of its members."""
    q, v = states(quadruped, (2, 1))
    push = np.random.default_rng(0).normal(size=(4, 3, quadruped.nv))
    sim = quadruped.simulate(q, v, tau_steps=push, dt=1e-3, steps=4, passive=False)
    assert sim.q.shape == (5, 2, 3, quadruped.nq)
    assert sim.tau.shape == (4, 2, 3, quadruped.nv)
    one = quadruped.simulate(
        q[1, 0], v[1, 0], tau_steps=push[:, 2], dt=1e-3, steps=4, passive=False
    )
    assert np.array_equal(one.q, sim.q[:, 1, 2])


def test_other_orders_of_coordinates(quadruped: phistar.Robot) -> None:
    """A robot with its joints in another order moves the same way, to 1e-12."""
    names = quadruped.joint_names[::-1]
    other = quadruped.reorder(names)
    q, v = states(quadruped, ())
    q_other = other.configuration(quadruped.configuration_dict(q))
    v_other = other.tangent(quadruped.tangent_dict(v))
    one = quadruped.simulate(q, v, dt=1e-3, steps=5, passive=False)
    two = other.simulate(q_other, v_other, dt=1e-3, steps=5, passive=False)
    assert two.engine == "machine code"
    back = other.tangent_dict(two.v[-1])
    assert np.abs(quadruped.tangent(back) - one.v[-1]).max() < 1e-12 * np.abs(one.v).max()


def test_mimic_joints_are_stepped_over_nodes() -> None:
    """Robots with reduced mimic joints: machine code, with forces on frames a NumPy loop."""
    hand = phistar.load("panda_hand")
    v = np.full(hand.nv, 0.1)
    nothing = {hand.link_names[-1]: np.zeros(6)}
    for forces, engine in ((None, "machine code"), (nothing, "numpy loop")):
        sim = hand.simulate(
            hand.home, v, dt=1e-3, steps=2, scheme="semi_implicit", forces=forces, passive=False
        )
        assert sim.engine == engine
        step = np.linalg.solve(hand.mass_matrix(hand.home), -hand.bias_force(hand.home, v))
        assert np.allclose(sim.v[1], 0.1 + 1e-3 * step, rtol=0, atol=1e-12 * np.abs(step).max())
        q = hand.integrate(hand.home, 1e-3 * sim.v[1])
        assert np.allclose(sim.q[1], q, rtol=0, atol=1e-14)


def test_forces_on_frames(quadruped: phistar.Robot) -> None:
    """A force that carries the weight at the centre of mass keeps linear momentum, to 1e-9."""
    q, _ = states(quadruped, ())
    weight = -quadruped.total_mass * quadruped.gravity
    base = quadruped.link_names[0]
    sim = quadruped.simulate(
        q,
        np.zeros(quadruped.nv),
        dt=1e-3,
        steps=5,
        forces={base: np.r_[0, 0, 0, weight]},
        passive=False,
    )
    assert sim.engine == "numpy loop"
    assert np.abs(sim.momentum()[..., 3:]).max() < 1e-9
    assert np.abs(sim.v[-1]).max() > 1e-3


def test_in_between(quadruped: phistar.Robot) -> None:
    """States between knots are those of half the steps: q to fourth, v to third order."""
    q, v = states(quadruped, (2,))
    coarse = quadruped.simulate(q, 0.3 * v, dt=4e-3, steps=4, passive=False)
    fine = quadruped.simulate(q, 0.3 * v, dt=2e-3, steps=8, passive=False)
    q_mid, v_mid = coarse(fine.t[1::2])
    way = quadruped.difference(fine.q[1::2], q_mid)
    assert np.abs(way).max() < 1e-6
    assert np.abs(v_mid - fine.v[1::2]).max() < 1e-3
    at, _ = coarse(coarse.t[2])
    assert np.abs(quadruped.difference(coarse.q[2], at)).max() < 1e-12
    with pytest.raises(ArgumentError, match=r"from 0 to 0\.016 s"):
        coarse(0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dt": 0.0, "steps": 1}, "dt is 0.0"),
        ({"dt": 1e-3}, "neither of steps and duration"),
        ({"dt": 1e-3, "steps": 1, "duration": 1.0}, "both of steps and duration"),
        ({"dt": 0.3, "duration": 1.0}, "3.33333333 steps of 0.3 s.*dt=0.25"),
        ({"dt": 1e-3, "steps": 0}, "steps is 0"),
        ({"dt": 1e-3, "steps": 10, "every": 3}, "divisor of the number of steps, 10"),
        ({"dt": 1e-3, "steps": 2, "tau": [0, np.nan]}, "tau is not finite"),
        ({"dt": 1e-3, "steps": 2, "tau": [0, 0], "tau_steps": np.zeros((2, 2))}, "both tau"),
        ({"dt": 1e-3, "steps": 2, "tau_steps": np.zeros((2, 3, 2))}, "do not broadcast"),
        ({"dt": 1e-3, "steps": 2, "threads": 0}, "threads is 0"),
    ],
)
def test_arguments_are_refused(arguments: dict, message: str) -> None:
    """What does not fit is named, with its value."""
    robot = phistar.load("cartpole")
    with pytest.raises(ArgumentError, match=message):
        robot.simulate(np.zeros((2, 2)), [0.0, 0.0], **arguments, passive=False)


def test_names_and_shapes_are_refused() -> None:
    """Unknown schemes and variables are named with those that exist."""
    robot = phistar.load("cartpole")
    with pytest.raises(UnknownNameError, match=r"rk5.*rk4"):
        robot.simulate([0, 0], [0, 0], dt=1e-3, steps=1, scheme="rk5", passive=False)
    with pytest.raises(UnknownNameError, match="momentum"):
        robot.simulate([0, 0], [0, 0], dt=1e-3, steps=1, variables="momentum", passive=False)
    with pytest.raises(ShapeError, match=r"one for each step"):
        robot.simulate([0, 0], [0, 0], dt=1e-3, steps=2, tau_steps=np.zeros((3, 2)), passive=False)


def test_divergence_is_told() -> None:
    """A motion that leaves the range of numbers names the sample and the time."""
    robot = phistar.load("double_pendulum")
    v = [[0.0, 0.0], [1e155, -1e155]]
    with pytest.raises(ArgumentError, match=r"sample \[1\], diverges: not finite at 0.1 s"):
        robot.simulate(robot.home, v, dt=0.1, steps=3, passive=False)


def test_a_bar_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """``progress=True`` writes to stderr, where results are not."""
    robot = phistar.load("double_pendulum")
    robot.simulate(robot.home, [0.0, 0.0], dt=1e-3, steps=3, progress=True, passive=False)
    out, err = capsys.readouterr()
    assert out == ""
    assert "3/3" in err
