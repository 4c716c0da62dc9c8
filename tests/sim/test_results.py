# SPDX-License-Identifier: BSD-3-Clause
"""Results of simulations: states in between, what is kept, lost samples, sizes, precision."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import phistar
from phistar import memory_limits
from phistar.errors import (
    ArgumentError,
    DivergenceError,
    InterpolationError,
    ShapeError,
    TooLargeError,
)
from phistar.model.builder import ModelBuilder
from phistar.model.random import random_model


def body(kind: str, gravity: float = 0.0) -> phistar.Robot:
    """A link of 1 kg on a joint of a kind that hangs on the ground."""
    b = ModelBuilder("body", gravity=(0.0, 0.0, -gravity))
    b.link("body", 1.0, (0.0, 0.0, 0.0), (0.02, 0.02, 0.02))
    b.joint("joint", kind, "(ground)", "body")
    return phistar.Robot(b.build())


def welded() -> phistar.Robot:
    """A robot without joints that move."""
    b = ModelBuilder("post")
    b.link("base")
    b.link("post", 1.0, (0.0, 0.0, 0.0), (0.02, 0.02, 0.02))
    b.joint("weld", "fixed", "base", "post")
    return phistar.Robot(b.build())


def spin(robot: phistar.Robot, rate: float) -> np.ndarray:
    """A velocity that turns the body about z."""
    v = np.zeros(robot.nv)
    v[-1 if robot.nv == 3 else 2] = rate
    return v


@pytest.fixture(scope="module")
def pendulum() -> phistar.Robot:
    """Two hinges."""
    return phistar.load("double_pendulum")


# -- states in between


@pytest.mark.parametrize("kind", ["planar", "spherical", "free"])
def test_fast_turns_between_knots_are_refused(kind: str) -> None:
    """4 rad from knot to knot: an error with joint, interval and cure; knots are fine."""
    robot = body(kind)
    sim = robot.simulate(
        robot.neutral(), spin(robot, 40.0), dt=1e-3, steps=300, every=100, passive=False
    )
    said = r"'joint' .* between 0\.1 and 0\.2 s.*every="
    with pytest.raises(InterpolationError, match=said) as error:
        sim(0.15)
    assert error.value.joint == "joint"
    assert error.value.interval == pytest.approx((0.1, 0.2))
    q, v = sim(sim.t)
    assert np.array_equal(q, sim.q)
    assert np.array_equal(v, sim.v)
    close = robot.simulate(
        robot.neutral(), spin(robot, 40.0), dt=1e-3, steps=300, every=50, passive=False
    )
    q, v = close(0.075)  # 2 rad from knot to knot
    assert np.abs(v - sim.v[0]).max() < 1e-9
    turned = robot.integrate(robot.neutral(), 0.075 * spin(robot, 40.0))
    assert np.abs(robot.difference(turned, q)).max() < 1e-9


@pytest.mark.parametrize("scheme", ["rk4", "dopri5"])
def test_knots_are_met_to_the_bit(scheme: str) -> None:
    """At its knots ``sim(t)`` is ``sim.q`` and ``sim.v``, for steps of any kind."""
    robot = body("free", gravity=9.81)
    rng = np.random.default_rng(0)
    q, v = robot.random_configuration(rng, (2,)), rng.normal(size=(2, 6))
    length = {"dt": 0.02, "steps": 5} if scheme == "rk4" else {"duration": 0.1}
    sim = robot.simulate(q, v, scheme=scheme, **length, passive=False)
    places, rates = sim(sim.t)
    assert np.array_equal(places, sim.q)
    assert np.array_equal(rates, sim.v)
    one, _ = sim(sim.t[2])
    assert np.array_equal(one, sim.q[2])


def test_in_between_of_large_turns() -> None:
    """A tumbling body with knots 1 rad apart: the middle follows fine steps, v within 2 %."""
    b = ModelBuilder("body", gravity=(0.0, 0.0, 0.0))
    b.link("body", 1.0, (0.0, 0.0, 0.0), (0.01, 0.02, 0.025))
    b.joint("joint", "spherical", "(ground)", "body")
    robot = phistar.Robot(b.build())
    fine = robot.simulate(
        robot.neutral(), [3.0, 6.0, 2.0], dt=1e-3, steps=200, every=10, passive=False
    )
    sim = robot.simulate(
        robot.neutral(), [3.0, 6.0, 2.0], dt=1e-3, steps=200, every=100, passive=False
    )
    q, v = sim(fine.t)
    assert np.abs(robot.difference(fine.q, q)).max() < 5e-3
    assert np.abs(v - fine.v).max() < 0.02 * np.abs(fine.v).max()


# -- what is kept


def test_drift_reports_what_is_kept(pendulum: phistar.Robot) -> None:
    """Momentum is told where nothing outside acts on it, energy where no force does work."""
    fixed = pendulum.simulate([0.1, 0.2], [0.0, 0.5], dt=1e-3, steps=50, passive=False).drift()
    assert set(fixed.relative) == {"energy"}
    assert fixed.relative["energy"] == fixed.relative_energy < 1e-10
    assert "momentum" not in str(fixed)
    driven = pendulum.simulate(
        [0.1, 0.2], [0.0, 0.5], tau=[1.0, 0.0], dt=1e-3, steps=50, passive=False
    ).drift()
    assert set(driven.relative) == set()
    assert "nothing" in str(driven)
    free = (
        body("free")
        .simulate(np.r_[np.zeros(6), 1.0], np.ones(6), dt=1e-3, steps=50, passive=False)
        .drift()
    )
    assert set(free.relative) == {"energy", "angular momentum", "linear momentum"}
    assert max(free.relative.values()) < 1e-10


def test_drift_of_a_fall_without_turning() -> None:
    """Its angular momentum is rounding, and so is its drift: a robot at rest, then falling."""
    robot = phistar.load("quadruped")
    sim = robot.simulate(robot.home, np.zeros(robot.nv), dt=1e-3, steps=200, passive=False)
    drifts = sim.drift().relative
    assert len(drifts) == 3
    assert max(drifts.values()) < 1e-11
    turned = replace(sim, v=sim.v + 1e-3 * np.arange(len(sim.t))[:, None] * np.eye(18)[2])
    assert turned.drift().relative["angular momentum about gravity"] > 1e-6


def test_drift_of_a_falling_body() -> None:
    """With gravity along z: linear momentum across it and angular momentum about it are kept."""
    robot = body("free", gravity=9.81)
    q, v = np.r_[0.3, -0.2, 1.0, 0.0, 0.0, 0.0, 1.0], np.array([1.0, 2.0, 3.0, 0.5, -0.4, 0.2])
    drift = robot.simulate(q, v, dt=1e-3, steps=100, passive=False).drift()
    assert max(drift.relative.values()) < 1e-9
    assert max(drift.relative_momentum) > 0.1, "not all of it is kept"
    assert "angular momentum about gravity" in str(drift)
    pushed = robot.simulate(
        q, v, dt=1e-3, steps=5, forces={"body": np.ones(6)}, passive=False
    ).drift()
    assert set(pushed.relative) == set()
    held = robot.simulate(q, v, tau=np.ones(6), dt=1e-3, steps=5, passive=False).drift()
    assert set(held.relative) == set()


# -- lost samples


def lost_start(robot: phistar.Robot) -> tuple[np.ndarray, np.ndarray]:
    """Five states, the fourth of which leaves the range of numbers at once."""
    rng = np.random.default_rng(1)
    q, v = robot.random_configuration(rng, (5,)), rng.normal(size=(5, robot.nv))
    v[3] = 1e155
    return q, v


@pytest.mark.parametrize(
    "how",
    [
        {"dt": 1e-3, "steps": 20},
        {"dt": 1e-3, "steps": 20, "every": 5},
        {"dt": 1e-3, "steps": 20, "variables": "eta"},
        {"dt": 1e-3, "steps": 4, "scheme": "implicit_midpoint"},
        {"duration": 0.02, "scheme": "dopri5"},
        {"dt": 1e-3, "steps": 20, "forces": "tip"},
    ],
    ids=lambda how: " ".join(str(x) for x in how.values()),
)
def test_lost_samples_leave_the_others_alone(pendulum: phistar.Robot, how: dict) -> None:
    """on_error="nan": the lost one is NaN from its knot on, the others move as they do alone."""
    if "forces" in how:
        how = how | {"forces": {pendulum.link_names[-1]: np.zeros(6)}}
    q, v = lost_start(pendulum)
    sim = pendulum.simulate(q, v, on_error="nan", **how, passive=False)
    assert sim.ok.tolist() == [True, True, True, False, True]
    assert sim.diverged[3] >= 1
    assert (np.delete(sim.diverged, 3) == -1).all()
    at = sim.diverged[3]
    assert np.isnan(sim.q[at:, 3]).all()
    assert np.isnan(sim.v[at:, 3]).all()
    assert np.isfinite(sim.q[:at]).all()
    others = pendulum.simulate(q[[0, 1, 2, 4]], v[[0, 1, 2, 4]], **how, passive=False)
    np.testing.assert_allclose(sim.q[-1, [0, 1, 2, 4]], others.q[-1], rtol=1e-7, atol=1e-9)
    assert np.isnan(sim.energy()[at:, 3]).all()
    assert np.isfinite(sim.energy()[:, 4]).all()
    assert sim.drift().relative_energy < 1e-6
    assert "1 of 5" in repr(sim)
    assert "1 of 5" in str(sim.drift())
    with pytest.raises(DivergenceError, match=r"sample \[3\]") as error:
        pendulum.simulate(q, v, **how, passive=False)
    assert error.value.sample == (3,)


def test_lost_samples_in_between(pendulum: phistar.Robot) -> None:
    """``sim(t)`` of a lost sample is NaN, of the others what it is without it."""
    q, v = lost_start(pendulum)
    sim = pendulum.simulate(q, v, dt=1e-3, steps=4, on_error="nan", passive=False)
    places, _ = sim([0.0015, 0.0035])
    assert np.isnan(places[:, 3]).all()
    other = pendulum.simulate(q[4], v[4], dt=1e-3, steps=4, passive=False)([0.0015, 0.0035])[0]
    assert np.abs(places[:, 4] - other).max() < 1e-12


def test_starts_without_numbers(pendulum: phistar.Robot) -> None:
    """on_error="nan": a start or force that is not finite is lost from the beginning."""
    q, v, tau = np.zeros((2, 3, 2)), np.zeros((2, 3, 2)), np.zeros((3, 2))
    q[1, 0, 1] = np.nan
    tau[2, 0] = np.inf
    sim = pendulum.simulate(q, v, tau=tau, dt=1e-3, steps=3, on_error="nan", passive=False)
    assert sim.ok.tolist() == [[True, True, False], [False, True, False]]
    assert sim.diverged.tolist() == [[-1, -1, 0], [0, -1, 0]]
    assert np.isnan(sim.q[:, 1, 0]).all()
    assert np.isfinite(sim.q[:, sim.ok]).all()
    pushes = np.zeros((3, 3, 2))
    pushes[1, 2, 0] = np.nan
    sim = pendulum.simulate(
        v[0], v[0], tau_steps=pushes, dt=1e-3, steps=3, on_error="nan", passive=False
    )
    assert sim.ok.tolist() == [True, True, False]
    with pytest.raises(ArgumentError, match="q is not finite"):
        pendulum.simulate(q, v, dt=1e-3, steps=3, passive=False)
    with pytest.raises(ArgumentError, match="on_error is 'skip', expected 'raise' or 'nan'"):
        pendulum.simulate(q, v, dt=1e-3, steps=3, on_error="skip", passive=False)


def wrist() -> phistar.Robot:
    """Three hinges z, y, z at a point, only the last with mass: singular where it is neutral."""
    b = ModelBuilder("wrist")
    parent = "base"
    b.link("base")
    for k, axis in enumerate(((0, 0, 1), (0, 1, 0), (0, 0, 1))):
        mass = (1.0, (0.1, 0.0, 0.2), (0.02, 0.02, 0.02)) if k == 2 else ()
        b.link(f"l{k}", *mass)
        b.joint(f"j{k}", "revolute", parent, f"l{k}", axis=axis)
        parent = f"l{k}"
    return phistar.Robot(b.build())


@pytest.mark.parametrize("how", [{}, {"variables": "eta"}, {"scheme": "dopri5"}], ids=str)
def test_singular_configurations_and_quaternions(how: dict) -> None:
    """on_error="nan": a start where a joint moves no inertia is lost, the others move on."""
    robot = wrist()
    q = np.array([[0.1, 0.7, 0.3], [0.0, 0.0, 0.0], [0.2, -0.9, 0.1]])
    tip = {"l2": np.ones(6)} if "scheme" not in how else None
    length = {"dt": 1e-3, "steps": 3} if "scheme" not in how else {"duration": 3e-3}
    sim = robot.simulate(q, np.zeros(3), forces=tip, on_error="nan", **length, **how, passive=False)
    assert sim.ok.tolist() == [True, False, True]
    free = body("free")
    q = np.stack([free.neutral(), 2.0 * free.neutral()])
    sim = free.simulate(q, np.ones(6), dt=1e-3, steps=2, on_error="nan", passive=False)
    assert sim.diverged.tolist() == [-1, 0]
    assert np.isfinite(sim.q[:, 0]).all()


def test_divergence_of_mimic_robots_is_the_motions() -> None:
    """A robot stepped by NumPy that runs away is told as a motion, not as an argument."""
    hand = phistar.load("panda_hand")
    with pytest.raises(DivergenceError, match="motion of robot 'panda_hand' diverges: not finite"):
        hand.simulate(hand.home, np.full(hand.nv, 1e200), dt=1.0, steps=5, passive=False)


# -- arguments and sizes


def test_a_robot_without_joints() -> None:
    """It stands still, alone and in batches, by steps of every kind."""
    robot = welded()
    for how in ({"dt": 0.1, "steps": 2}, {"duration": 0.2, "scheme": "dopri5"}):
        sim = robot.simulate([], [], **how, passive=False)
        assert sim.q.shape == (len(sim.t), 0)
        assert sim.t[-1] == pytest.approx(0.2)
        many = robot.simulate(np.zeros((4, 0)), [], **how, passive=False)
        assert many.v.shape == (len(many.t), 4, 0)


def test_results_that_do_not_fit_are_refused(
    pendulum: phistar.Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1e12 states are refused before anything is done, with their size and ``every=``."""
    with pytest.raises(TooLargeError, match=r"1,000,000,000,001 states .* TB.*every=\d+") as error:
        pendulum.simulate([0, 0], [0, 0], duration=1e9, dt=1e-3, passive=False)
    assert error.value.needed > error.value.available
    assert 10**12 % error.value.every == 0
    monkeypatch.setattr(memory_limits, "available_bytes", lambda: 1 << 20)
    monkeypatch.setattr(memory_limits, "UNCHECKED_BYTES", 1 << 10)
    with pytest.raises(TooLargeError, match="every=10"):
        pendulum.simulate([0, 0], [0, 0], dt=1e-3, steps=100_000, passive=False)
    kept = pendulum.simulate([0, 0], [0, 0], dt=1e-3, steps=1000, every=10, passive=False)
    assert len(kept.t) == 101


def test_memory_is_known() -> None:
    """Free memory is a sensible number of bytes."""
    assert 1 << 20 < memory_limits.available_bytes() < 1 << 50


def test_functions_are_sent_to_rollout(pendulum: phistar.Robot) -> None:
    """A law for ``tau`` is refused with the name of what runs laws."""

    def law(k: int, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return -v

    bad: list[Callable] = [law, lambda q, v: -v]
    for name in ("tau", "tau_steps"):
        for function in bad:
            with pytest.raises(ArgumentError, match=r"control\.rollout"):
                pendulum.simulate(
                    [0, 0], [0, 0], dt=1e-3, steps=1, **{name: function}, passive=False
                )


def test_wrenches_of_each_sample(pendulum: phistar.Robot) -> None:
    """forces={frame: (3, 6)}: each sample moves under its own, as it does alone; 1e-12."""
    rng = np.random.default_rng(2)
    q, v, f = rng.normal(size=(3, 2)), rng.normal(size=(3, 2)), rng.normal(size=(3, 6))
    tip = pendulum.link_names[-1]
    for how in ({"dt": 1e-3, "steps": 5}, {"duration": 0.01, "scheme": "dopri5"}):
        sim = pendulum.simulate(q, v, forces={tip: f}, **how, passive=False)
        for k in range(3):
            alone = pendulum.simulate(q[k], v[k], forces={tip: f[k]}, **how, passive=False)
            np.testing.assert_allclose(sim.q[-1, k], alone.q[-1], rtol=1e-9)
    grid = pendulum.simulate(q[0], v[0], forces={tip: f}, dt=1e-3, steps=2, passive=False)
    assert grid.q.shape == (3, 3, 2)
    with pytest.raises(ArgumentError, match=r"forces\['" + tip):
        pendulum.simulate(q, v, forces={tip: np.zeros((4, 6))}, dt=1e-3, steps=2, passive=False)
    with pytest.raises(ShapeError, match=r"forces\['" + tip):
        pendulum.simulate(q, v, forces={tip: np.zeros(3)}, dt=1e-3, steps=2, passive=False)


def test_single_precision_stays(pendulum: phistar.Robot) -> None:
    """float32 states give float32 results, whatever takes the steps; t stays float64."""
    q, v = np.array([0.1, 0.2], np.float32), np.array([0.3, -0.1], np.float32)
    for how in ({"dt": 1e-3, "steps": 20}, {"duration": 0.02, "scheme": "dopri5"}):
        sim = pendulum.simulate(q, v, **how, passive=False)
        assert [x.dtype for x in (sim.q, sim.v, sim.tau)] == [np.float32] * 3
        assert sim.t.dtype == np.float64
        assert [x.dtype for x in sim(0.005)] == [np.float32] * 2
        double = pendulum.simulate(q.astype(float), v.astype(float), **how, passive=False)
        np.testing.assert_allclose(sim.q, double.q, rtol=1e-5)
    assert np.array_equal(sim.q, double.q.astype(np.float32)), "NumPy steps in double precision"
    assert (
        pendulum.simulate(q, v.astype(float), dt=1e-3, steps=2, passive=False).q.dtype == np.float64
    )


@pytest.mark.parametrize("variables", ["v", "zeta"])
@pytest.mark.parametrize("scheme", ["euler", "semi_implicit", "midpoint", "rk4"])
@pytest.mark.parametrize("name", ["panda", "quadruped", "tree"])
def test_single_precision_steps(name: str, scheme: str, variables: str) -> None:
    """Steps in float32 stay within 1e-4 of those in float64; joint forces change at each step."""
    if name == "tree":
        kinds = ["planar", "spherical", "revolute"]
        robot = phistar.Robot(
            random_model(np.random.default_rng(2), 4, kinds=kinds, floating_base=True)
        )
    else:
        robot = phistar.load(name)
    rng, steps = np.random.default_rng(21), 10
    q = robot.random_configuration(rng, (13,)).astype(np.float32)
    v = (0.3 * rng.normal(size=(13, robot.nv))).astype(np.float32)
    tau = rng.normal(size=(steps, 13, robot.nv)).astype(np.float32)
    how = {"dt": 1e-3, "steps": steps, "every": 2, "scheme": scheme, "variables": variables}
    single = robot.simulate(q, v, tau_steps=tau, **how, passive=False)
    double = robot.simulate(
        q.astype(float), v.astype(float), tau_steps=tau.astype(float), **how, passive=False
    )
    assert single.engine == double.engine == "machine code"
    assert single.q.dtype == single.v.dtype == np.float32
    assert not np.array_equal(single.v, double.v.astype(np.float32)), "these are double steps"
    for found, known in ((single.q, double.q), (single.v, double.v)):
        np.testing.assert_allclose(found, known, rtol=0, atol=1e-4 * np.abs(known).max())
