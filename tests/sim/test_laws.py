# SPDX-License-Identifier: BSD-3-Clause
"""Motions that are known: closed forms, reference problems, and what must be kept."""

import json

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipk

import phistar
from phistar.errors import ArgumentError
from phistar.model.builder import ModelBuilder
from tests.helpers import SHARED

REFERENCE = SHARED / "reference-problems" / "reference.json"
needs_reference = pytest.mark.skipif(
    not REFERENCE.is_file(), reason="needs the reference problems in ../shared"
)


@pytest.fixture(autouse=True)
def _straight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Diagonal rates need parts of matrices, which are compiled as straight lines or not at all."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")


def pendulum(links: int) -> phistar.Robot:
    """Point masses of 1 kg on massless bars of 1 m, hinged about y; zero hangs straight down."""
    b = ModelBuilder("pendulum")
    b.link("base")
    parent = "base"
    for k in range(links):
        b.link(f"bar{k}", 1.0, (0.0, 0.0, -1.0))
        xyz = (0.0, 0.0, -1.0 if k else 0.0)
        b.joint(f"hinge{k}", "revolute", parent, f"bar{k}", axis=(0.0, 1.0, 0.0), xyz=xyz)
        parent = f"bar{k}"
    return phistar.Robot(b.build())


def body(inertia: tuple[float, float, float]) -> phistar.Robot:
    """A free body of 1 kg without gravity."""
    b = ModelBuilder("body", gravity=(0.0, 0.0, 0.0))
    b.link("body", 1.0, (0.0, 0.0, 0.0), inertia)
    b.joint("free", "free", "(ground)", "body")
    return phistar.Robot(b.build())


def ball() -> phistar.Robot:
    """A link on a ball joint, and one on a hinge beyond."""
    b = ModelBuilder("ball")
    b.link("base")
    b.link("one", 1.0, (0.1, 0.0, -0.3), (0.03, 0.02, 0.01))
    b.link("two", 1.0, (0.0, 0.1, -0.2), (0.02, 0.03, 0.01))
    b.joint("ball", "spherical", "base", "one")
    b.joint("hinge", "revolute", "one", "two", axis=(0.0, 1.0, 0.0), xyz=(0.0, 0.0, -0.5))
    return phistar.Robot(b.build())


def problem(name: str) -> dict:
    """A reference problem."""
    found: dict = json.loads(REFERENCE.read_text())[name]
    return found


def test_period_of_a_pendulum() -> None:
    """A pendulum let go at 90 degrees is back after 4 K(1/2) / sqrt(g/l), to 1e-9 rad."""
    period = 4.0 * float(ellipk(0.5)) / np.sqrt(9.81)
    assert abs(period - 2.3678419475762373) < 1e-12
    sim = pendulum(1).simulate([np.pi / 2], [0.0], duration=period, dt=period / 2000, passive=False)
    assert abs(sim.q[-1, 0] - np.pi / 2) < 1e-9
    assert abs(sim.q[1000, 0] + np.pi / 2) < 1e-9


@needs_reference
def test_simple_pendulum_of_the_benchmark() -> None:
    """IFToMM A01: positions over 10 s within the 1e-9 that its setting asks for."""
    given = problem("A01")
    sim = pendulum(1).simulate([np.pi / 2], [0.0], dt=1e-3, duration=10.0, every=100, passive=False)
    count = len(given["t"])
    assert np.abs(-np.sin(sim.q[:count, 0]) - given["x"]).max() < 1e-9
    assert np.abs(-np.cos(sim.q[:count, 0]) - given["y"]).max() < 1e-9


@needs_reference
def test_double_pendulum_of_the_benchmark() -> None:
    """Angles over the first 2 s agree with the reference to 1e-8, by adaptive steps."""
    given = problem("double_pendulum")
    start = [np.pi / 2, 0.0]
    sim = pendulum(2).simulate(
        start, [0.0, 0.0], scheme="dopri5", duration=2.0, tolerance=1e-11, passive=False
    )
    times = np.array([t for t in given["t"] if t <= 2.0])
    q, _ = sim(times)
    assert np.abs(q[:, 0] - given["theta1"][: len(times)]).max() < 1e-8
    assert np.abs(q.sum(axis=1) - given["theta2"][: len(times)]).max() < 1e-8


def test_double_pendulum_of_the_textbook() -> None:
    """The bundled one follows SciPy's DOP853 on its own equations of motion over 1 s, to 1e-9."""
    robot = phistar.load("double_pendulum")
    start, speed = np.array([1.2, -0.7]), np.array([0.5, 1.0])

    def rates(_: float, x: np.ndarray) -> np.ndarray:
        # Solved with the mass matrix: another program than the one that is stepped.
        push = -robot.bias_force(x[:2], x[2:])
        return np.concatenate([x[2:], np.linalg.solve(robot.mass_matrix(x[:2]), push)])

    found = solve_ivp(
        rates, (0, 1), np.r_[start, speed], method="DOP853", rtol=1e-12, atol=1e-12
    ).y[:, -1]
    for variables in ("v", "zeta"):
        sim = robot.simulate(
            start, speed, dt=2.5e-4, duration=1.0, every=4000, variables=variables, passive=False
        )
        assert sim.engine == "machine code"
        assert np.abs(np.r_[sim.q[-1], sim.v[-1]] - found).max() < 1e-9


def test_torque_free_body() -> None:
    """Rates and attitude of an axisymmetric body over 10 s, 4 periods and more, to 1e-8.

    The body turns about its axis with (I - J) / I wz while the axis goes round the momentum h with
    |h| / I; the anchor asks for (1 + 256 periods t / T) 1e-3.
    """
    i, j, w0 = 0.05, 0.02, np.array([2.0, -4.0, 6.0])
    sim = body((i, i, j)).simulate(
        [0, 0, 0, 0, 0, 0, 1], [*w0, 0, 0, 0], dt=1e-3, duration=10.0, every=100, passive=False
    )
    s = (i - j) / i * w0[2]
    c, n = np.cos(s * sim.t), np.sin(s * sim.t)
    rates = np.stack([c * w0[0] + n * w0[1], c * w0[1] - n * w0[0], np.full_like(c, w0[2])], -1)
    assert np.abs(sim.v[:, :3] - rates).max() < 1e-8
    h = np.array([i, i, j]) * w0
    first = _quaternion(h / np.linalg.norm(h), np.linalg.norm(h) / i * sim.t)
    second = _quaternion(np.array([0.0, 0.0, 1.0]), s * sim.t)
    expected = _product(first, second)
    same = np.abs((sim.q[:, 3:] * expected).sum(axis=-1))
    assert np.abs(same - 1.0).max() < 1e-8


def _quaternion(axis: np.ndarray, angle: np.ndarray) -> np.ndarray:
    return np.concatenate([np.sin(angle / 2)[:, None] * axis, np.cos(angle / 2)[:, None]], axis=1)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    vector = a[:, 3:] * b[:, :3] + b[:, 3:] * a[:, :3] + np.cross(a[:, :3], b[:, :3])
    return np.concatenate([vector, (a[:, 3] * b[:, 3] - (a[:, :3] * b[:, :3]).sum(1))[:, None]], 1)


def test_energy_drift_follows_the_order() -> None:
    """Over 500 steps of a chain with ball and slide, drift of rk4 < midpoint < Euler (#12)."""
    b = ModelBuilder("chain")
    b.link("base")
    parent = "base"
    for k, kind in enumerate(("revolute", "prismatic", "spherical", "revolute")):
        b.link(f"l{k}", 1.0, (0.0, 0.1, -0.2), (0.02, 0.03, 0.01))
        b.joint(f"j{k}", kind, parent, f"l{k}", xyz=(0.0, 0.0, -0.4 if k else 0.0))
        parent = f"l{k}"
    robot = phistar.Robot(b.build())
    rng = np.random.default_rng(2)
    q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
    drift = {
        name: robot.simulate(q, v, dt=2e-3, steps=500, scheme=name, passive=False)
        .drift()
        .relative_energy
        for name in ("rk4", "midpoint", "euler")
    }
    assert drift["rk4"] < 1e-3 * drift["midpoint"] < 1e-3 * drift["euler"]


@pytest.mark.parametrize("scheme", ["rk4", "implicit_midpoint"])
def test_a_tumbling_body_gains_no_energy(scheme: str) -> None:
    """500 steps about the unstable axis: energy within 1e-9, angular momentum within 5 % (#13)."""
    robot = body((0.1, 0.2, 0.3))
    v = [0.1, 4.0, 0.1, 0.3, 0.2, 0.1]
    steps = 500 if scheme == "rk4" else 60
    sim = robot.simulate(
        [0, 0, 0, 0, 0, 0, 1], v, dt=5e-3, steps=steps, scheme=scheme, passive=False
    )
    energy = sim.energy()
    assert (energy < energy[0] * (1 + 1e-9)).all()
    assert energy[-1] > energy[0] * (1 - 1e-9)
    assert sim.drift().relative_momentum[0] < 0.05


def test_a_spinning_body_gains_no_energy() -> None:
    """A long body spun fast stays below 1.01 of its energy (#14), where Euler steps gain more."""
    robot = body((0.01, 0.4, 0.4))
    v = [30.0, 0.5, 0.5, 0.0, 0.0, 0.0]
    start = [0, 0, 0, 0, 0, 0, 1]
    sim = robot.simulate(start, v, dt=1e-3, steps=500, every=100, passive=False)
    assert (sim.energy() < (1 + 1e-9) * sim.energy()[0]).all()
    other = robot.simulate(
        start, v, dt=1e-3, steps=500, every=100, scheme="semi_implicit", passive=False
    )
    assert other.energy()[-1] > 1.01 * other.energy()[0]


def test_momentum_of_a_falling_quadruped() -> None:
    """Without gravity joint forces leave momentum alone: rk4 keeps it to 1e-9."""
    robot = phistar.load("quadruped").with_gravity((0.0, 0.0, 0.0))
    rng = np.random.default_rng(8)
    q = robot.random_configuration(rng, (3,))
    v = rng.normal(size=(3, robot.nv))
    tau = 0.02 * rng.normal(size=robot.nv)
    tau[robot.joints["root_joint"].v_slice] = 0.0
    sim = robot.simulate(q, v, tau=tau, dt=5e-4, duration=0.25, every=50, passive=False)
    assert max(sim.drift().relative_momentum) < 1e-9
    done = (sim.energy()[-1] - sim.energy()[0]).min()
    assert abs(done) > 1e-3, "the joint forces do work, so energy is another matter"
    assert "momentum" in str(sim.drift())


@pytest.mark.parametrize("name", ["double_pendulum", "ball"])
def test_implicit_midpoint_keeps_energy(name: str) -> None:
    """Energy stays within 1e-13 of its scale at any step, with gravity; rk4 does not."""
    robot = ball() if name == "ball" else phistar.load(name)
    rng = np.random.default_rng(1)
    q, v = robot.random_configuration(rng, (2,)), rng.normal(size=(2, robot.nv))
    kept = robot.simulate(q, v, dt=1e-2, steps=25, scheme="implicit_midpoint", passive=False)
    assert kept.variables == "eta"
    assert kept.drift().relative_energy < 1e-13
    other = robot.simulate(q, v, dt=1e-2, steps=25, passive=False)
    assert other.drift().relative_energy > 1e-10


def test_implicit_midpoint_counts_the_work_of_forces() -> None:
    """Energy gained is h Σ v_m*τ, to 1e-12: η_m is the mean of η, and carries v_m."""
    robot = phistar.load("double_pendulum")
    tau = np.array([3.0, -1.0])
    sim = robot.simulate([0.3, 0.4], [1.0, 0.5], tau=tau, dt=1e-2, steps=20,
                         scheme="implicit_midpoint", passive=False)  # fmt: skip
    moved = robot.difference(sim.q[0], sim.q[-1])
    # For hinges h Σ v_m is the way that was made.
    assert (
        abs(sim.energy()[-1] - sim.energy()[0] - tau @ moved) < 1e-12 * np.abs(sim.energy()).max()
    )


def test_implicit_midpoint_is_of_second_order() -> None:
    """Against adaptive steps at 1e-11, half the step has a quarter of the error, within 5 %."""
    robot = body((0.1, 0.2, 0.3))
    q, v = np.r_[np.zeros(6), 1.0], [0.3, 2.0, 0.1, 0.3, 0.2, 0.1]
    true = robot.simulate(q, v, scheme="dopri5", duration=0.5, tolerance=1e-11, passive=False)
    errors = []
    for steps in (10, 20):
        sim = robot.simulate(
            q, v, dt=0.5 / steps, steps=steps, scheme="implicit_midpoint", passive=False
        )
        errors.append(np.abs(robot.difference(true.q[-1], sim.q[-1])).max())
    assert abs(errors[0] / errors[1] - 4.0) < 0.2


def test_implicit_midpoint_refuses() -> None:
    """Other variables, and steps that are too long to be solved for, are refused with a cure."""
    robot = phistar.load("double_pendulum")
    with pytest.raises(ArgumentError, match="conserves energy in η only"):
        robot.simulate(
            [0, 0],
            [0, 0],
            dt=1e-2,
            steps=1,
            scheme="implicit_midpoint",
            variables="v",
            passive=False,
        )
    with pytest.raises(ArgumentError, match="use shorter steps"):
        robot.simulate([1, 1], [9, 9], dt=1.0, steps=1, scheme="implicit_midpoint", passive=False)


@pytest.mark.parametrize("variables", ["zeta", "eta"])
def test_other_variables_converge_to_the_same_motion(variables: str) -> None:
    """Runge-Kutta in (q, ζ) and (q, η) is of fourth order, within 0.35, towards the same end."""
    robot = ball()
    rng = np.random.default_rng(4)
    q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
    true = robot.simulate(q, v, scheme="dopri5", duration=0.4, tolerance=1e-12, passive=False)
    errors = []
    for steps in (20, 40):
        sim = robot.simulate(q, v, dt=0.4 / steps, steps=steps, variables=variables, passive=False)
        assert sim.variables == variables
        assert (sim.engine == "machine code") == (variables == "zeta")
        way = robot.difference(true.q[-1], sim.q[-1])
        errors.append(np.linalg.norm(way) + np.linalg.norm(sim.v[-1] - true.v[-1]))
    assert abs(np.log2(errors[0] / errors[1]) - 4.0) < 0.35, errors


def test_adaptive_steps_meet_their_tolerance() -> None:
    """Errors at the end and in between stay within 100 tolerances, and fall with them."""
    robot = body((0.1, 0.2, 0.3))
    q, v = np.r_[np.zeros(6), 1.0], [0.1, 4.0, 0.1, 0.3, 0.2, 0.1]
    fine = robot.simulate(q, v, dt=1e-3, steps=2000, every=10, passive=False)
    for tolerance in (1e-6, 1e-9):
        sim = robot.simulate(
            q, v, scheme="dopri5", duration=2.0, tolerance=tolerance, passive=False
        )
        assert sim.steps == len(sim.t) - 1
        assert sim.t[-1] == 2.0
        some_q, some_v = sim(fine.t)
        assert np.abs(robot.difference(fine.q, some_q)).max() < 100 * tolerance
        assert np.abs(some_v - fine.v).max() < 100 * tolerance * np.abs(fine.v).max()
    coarse = robot.simulate(q, v, scheme="dopri5", duration=2.0, tolerance=1e-3, passive=False)
    assert coarse.steps < sim.steps / 3
    even = robot.simulate(
        q, v, scheme="dopri5", dt=0.1, duration=2.0, every=2, tolerance=1e-9, passive=False
    )
    assert np.allclose(even.t, 0.2 * np.arange(11), rtol=1e-15)
    assert np.abs(even.v - fine.v[::20]).max() < 1e-6


def test_adaptive_steps_take_batches() -> None:
    """A batch takes common steps; each sample is within tolerance of what it does alone."""
    robot = phistar.load("double_pendulum")
    q = np.array([[0.1, 0.2], [2.0, -1.0], [0.0, 0.0]])
    many = robot.simulate(
        q, [0.5, 0.0], scheme="dopri5", duration=0.5, tolerance=1e-10, passive=False
    )
    alone = robot.simulate(
        q[0], [0.5, 0.0], scheme="dopri5", duration=0.5, tolerance=1e-10, passive=False
    )
    assert many.q.shape == (len(many.t), 3, 2)
    assert np.abs(many.q[-1, 0] - alone.q[-1]).max() < 1e-8
    assert alone.steps <= many.steps


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "without dt pass a duration"),
        ({"duration": 1.0, "steps": 3}, "and no steps"),
        ({"duration": 1.0, "tolerance": 0.0}, "tolerance is 0.0"),
        ({"duration": 1.0, "tau_steps": np.zeros((3, 2))}, "no tau_steps"),
        ({"duration": 1.0, "scheme": "rk4"}, "dt is missing"),
    ],
)
def test_adaptive_arguments_are_refused(arguments: dict, message: str) -> None:
    """What does not fit is named."""
    robot = phistar.load("double_pendulum")
    with pytest.raises(ArgumentError, match=message):
        robot.simulate([0, 0], [0, 0], **{"scheme": "dopri5", **arguments}, passive=False)


@pytest.mark.parametrize("dt", [1e-4, 5e-3])
def test_implicit_midpoint_starts_from_rest(dt: float) -> None:
    """Where η is small energy is known to rounding only; steps converge all the same.

    Energy is kept to 1e-12 of the weight times a metre.
    """
    robot = phistar.load("double_pendulum")
    q = robot.random_configuration(1, (40,))
    v = np.repeat([0.0, 1e-3], 20)[:, None] * np.random.default_rng(0).normal(size=(40, robot.nv))
    sim = robot.simulate(q, v, dt=dt, steps=40, scheme="implicit_midpoint", passive=False)
    energy = sim.energy()
    weight = 9.81 * robot.total_mass
    assert np.abs(energy - energy[0]).max() < 1e-12 * weight
