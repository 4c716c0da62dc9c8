# SPDX-License-Identifier: BSD-3-Clause
"""The simulator object: joints that rub and stop, resets, sensors, bad samples, refusals."""

import warnings

import numpy as np
import pytest

import phistar
from phistar.backends import base
from phistar.errors import (
    ArgumentError,
    DivergenceError,
    NotFiniteError,
    PenetrationWarning,
    ShapeError,
    TooLargeError,
    UnknownNameError,
)
from phistar.model import ModelBuilder
from phistar.model.components import Coupling
from phistar.sim import Box, HeightField, Plane
from tests.sim.contact_laws import LawfulSteps

GRAVITY = 9.81
DT = 1e-3
PENDULUM = b"""<mujoco><worldbody><body name="arm">
<joint name="hinge" axis="0 1 0" range="{range}" limited="{limited}" frictionloss="{friction}"
 damping="{damping}" stiffness="{stiffness}" springref="20"/>
<inertial mass="1" pos="0.5 0 0" diaginertia="0.01 0.01 0.01"/></body></worldbody></mujoco>"""
MOMENT = 1.0 * GRAVITY * 0.5


def _pendulum(
    *, limits: tuple[float, float] | None = None, friction: float = 0.0, damping: float = 0.0,
    stiffness: float = 0.0,
) -> phistar.Robot:  # fmt: skip
    """A bar that hangs out along x: gravity turns it towards positive angles."""
    low, high = (0.0, 0.0) if limits is None else limits
    text = PENDULUM.decode().format(
        range=f"{low} {high}",
        limited="false" if limits is None else "true",
        friction=friction,
        damping=damping,
        stiffness=stiffness,
    )
    return phistar.load(text.encode())


@pytest.fixture(scope="module")
def ball() -> phistar.Robot:
    """A free ball."""
    body = b'<body name="ball"><freejoint/><geom name="ball" type="sphere" size=".1"/></body>'
    return phistar.load(b"<mujoco><worldbody>" + body + b"</worldbody></mujoco>")


def test_a_pendulum_rests_on_its_stop() -> None:
    """It falls onto the stop, stays there to 1e-9 rad, and the stop carries its moment; 1e-9."""
    robot = _pendulum(limits=(-90.0, 30.0))
    sim = robot.simulator(1, dt=DT)
    sim.reset(q=[0.0])
    worst = 0.0
    for _ in range(20):
        worst = max(worst, float(sim.step(substeps=100).q[0, 0]))
    stop = np.radians(30.0)
    assert abs(sim.q[0, 0] - stop) < 1e-9
    assert worst - stop < 1e-3
    force = -sim.joint_force("hinge")[0]
    assert abs(force - MOMENT * np.cos(stop)) < 1e-9 * MOMENT


def test_dry_friction_sticks_and_slides() -> None:
    """Below the breakaway moment: 1e-6 rad in 10 s; above: the rest accelerates it, 1e-3."""
    stuck = _pendulum(friction=1.05 * MOMENT).simulator(1, dt=4 * DT)
    stuck.reset(q=[0.0])
    assert abs(stuck.step(substeps=2500).q[0, 0]) < 1e-6
    assert abs(stuck.joint_force("hinge")[0] + MOMENT) < 1e-9 * MOMENT
    robot = _pendulum(friction=0.5 * MOMENT)
    sliding = robot.simulator(1, dt=1e-4)
    sliding.reset(q=[0.0])
    v = sliding.step(substeps=100).v[0, 0]
    inertia = robot.mass_matrix(np.zeros(1))[0, 0]
    assert abs(v - 0.5 * MOMENT / inertia * 0.01) < 1e-3 * v


def test_passive_parts_are_chosen() -> None:
    """A stiff, damped spring at any step length; without it the bar falls freely."""
    robot = _pendulum(damping=50.0, stiffness=1e5, limits=(-90.0, 30.0), friction=1e3)
    held = robot.simulator(1, dt=0.02, passive={"springs", "damping"})
    held.reset(q=[0.0])
    held.step(substeps=200)
    rest = np.radians(20.0)
    assert abs(held.q[0, 0] - rest - MOMENT * np.cos(rest) / 1e5) < 1e-6
    free = robot.simulator(1, dt=DT, passive=False, ground=False, scheme="rk4")
    assert free.engine == "machine code"
    free.reset(q=[0.1])
    found = free.step(substeps=10)
    known = robot.simulate([0.1], [0.0], dt=DT, steps=10, scheme="rk4", passive=False)
    np.testing.assert_allclose(found.q[0], known.q[-1], rtol=1e-12)
    for name in ("semi_implicit", "implicit"):  # the same step by its other names
        same = robot.simulator(1, dt=0.02, passive={"springs", "damping"}, scheme=name)
        same.reset(q=[0.0])
        assert (same.step(substeps=200).q == held.q).all()
    with pytest.raises(UnknownNameError, match="springs"):
        robot.simulator(1, dt=DT, passive={"spring"})
    with pytest.raises(ArgumentError, match="semi_implicit"):
        robot.simulator(1, dt=DT, scheme="rk4")


def test_substeps_batches_and_threads_give_the_same_bits(ball: phistar.Robot) -> None:
    """A sample's motion does not depend on who else is in the batch, nor on how it is cut."""
    rng = np.random.default_rng(0)
    q = ball.random_configuration(rng, (9,))
    q[:, 2] = rng.uniform(0.1, 0.3, 9)
    v = rng.normal(size=(9, 6))
    sims = [ball.simulator(9, dt=DT, threads=n) for n in (1, 2)] + [ball.simulator(1, dt=DT)]
    for sim in sims[:2]:
        sim.reset(q=q, v=v)
    sims[2].reset(q=q[4], v=v[4])
    whole = sims[0].step(substeps=40)
    lawful = LawfulSteps(ball, sims[1])
    lawful.take(steps=40)
    lawful.require_laws()
    parts = sims[1].state
    alone = sims[2].step(substeps=40)
    assert (whole.q == parts.q).all()
    assert (whole.v == parts.v).all()
    assert (whole.q[4] == alone.q[0]).all()
    assert (whole.v[4] == alone.v[0]).all()


@pytest.mark.users_code
def test_a_stop_that_one_sample_meets_is_not_felt_by_others() -> None:
    """Stops are solved where a lane needs them: its neighbours keep their bits."""
    robot = _pendulum(limits=(-90.0, 30.0))
    q, v = np.linspace(-0.5, 0.5, 9)[:, None], np.full((9, 1), 0.3)
    sim, alone = robot.simulator(9, dt=DT), robot.simulator(1, dt=DT)
    sim.reset(q=q, v=v)
    alone.reset(q=q[2], v=v[2])
    whole, single = sim.step(substeps=60), alone.step(substeps=60)
    assert sim.joint_force("hinge")[8] < 0.0
    assert sim.joint_force("hinge")[2] == 0.0
    assert (whole.q[2] == single.q[0]).all()
    assert (whole.v[2] == single.v[0]).all()


def test_reset_of_some_samples(ball: phistar.Robot) -> None:
    """By mask or number; others keep their bits; random states depend on seed and sample alone."""
    place = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    sim = ball.simulator(4, dt=DT, seed=3)
    sim.reset(q=place)
    before = sim.step(substeps=7)
    after = sim.reset([1, 3], q=place, spread=0.1)
    assert (after.q[[0, 2]] == before.q[[0, 2]]).all()
    assert (after.v[[0, 2]] == before.v[[0, 2]]).all()
    assert after.time.tolist() == [before.time[0], 0.0, before.time[2], 0.0]
    assert np.abs(after.q[1] - after.q[3]).max() > 1e-3
    again = ball.simulator(4, dt=DT, seed=3)
    again.reset(q=place)
    mask = np.array([False, True, False, False])
    assert (again.reset(mask, q=place, spread=0.1).q[1] == after.q[1]).all()
    with pytest.raises(ShapeError, match="mask"):
        sim.reset(np.ones(3, dtype=bool))
    with pytest.raises(ArgumentError, match="below 4"):
        sim.reset([4])
    with pytest.raises(ShapeError, match="samples that are reset"):
        sim.reset([1], q=np.tile(place, (3, 1)))


def test_a_bad_sample_freezes_alone(ball: phistar.Robot) -> None:
    """NaN in one lane: it keeps its state until a reset, the others have the same bits."""
    place = np.array([0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0])
    tau = np.random.default_rng(1).normal(size=(5, 6))
    sim = ball.simulator(5, dt=DT, on_error="freeze")
    fine = ball.simulator(5, dt=DT)
    for each in (sim, fine):
        each.reset(q=place)
        each.step(tau, substeps=3)
    bad = tau.copy()
    bad[2, 1] = np.nan
    held = sim.q[2]
    sim.step(bad)
    fine.step(tau)
    sim.step(tau, substeps=4)
    fine.step(tau, substeps=4)
    others = [0, 1, 3, 4]
    assert sim.state.frozen.tolist() == [False, False, True, False, False]
    assert (sim.q[2] == held).all()
    assert (sim.q[others] == fine.q[others]).all()
    assert (sim.v[others] == fine.v[others]).all()
    sim.reset([2], q=place)
    sim.step(tau)
    assert not sim.state.frozen.any()
    assert sim.state.time[2] == pytest.approx(DT)
    with pytest.raises(NotFiniteError, match="tau"):
        fine.step(bad)
    with pytest.raises(DivergenceError, match="sample 2"):
        fine.step(np.where(np.isnan(bad), 1e300, tau), substeps=3)


def test_sensors(ball: phistar.Robot) -> None:
    """A ball at rest and one in free flight: poses, velocities, accelerometer, force, energy."""
    sim = ball.simulator(2, dt=DT)
    mass = ball.model.links[-1].mass
    rest = [0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0]
    sim.reset(q=[rest, [0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 1.0]], v=[[0.0] * 6, [0, 0, 0, 1, 0, 0]])
    lawful = LawfulSteps(ball, sim)
    lawful.take(steps=50)
    lawful.require_laws()
    np.testing.assert_allclose(sim.accelerometer("ball")[0], [0, 0, GRAVITY], atol=1e-9)
    np.testing.assert_allclose(sim.accelerometer("ball")[1], np.zeros(3), atol=1e-9)
    force = sim.contact_force("ball")
    np.testing.assert_allclose(force[0], [0.0, 0.0, mass * GRAVITY], rtol=1e-9, atol=1e-9)
    assert not force[1].any()
    assert sim.frame_pose("ball").shape == (2, 4, 4)
    np.testing.assert_allclose(
        sim.frame_velocity("ball")[1, 3:], [1.0, 0.0, -GRAVITY * 0.05], rtol=1e-9, atol=1e-12
    )
    flying = 0.5 * mass * (1.0 + (GRAVITY * 0.05) ** 2) + mass * GRAVITY * sim.q[1, 2]
    assert sim.energy()[1] == pytest.approx(flying, rel=1e-12)
    pushed = ball.simulator(1, dt=DT, ground=False)
    pushed.reset(q=rest)
    pushed.step(forces={"ball": [0, 0, 0, mass, 0, mass * GRAVITY]}, substeps=100)
    np.testing.assert_allclose(pushed.v[0, 3:], [0.1, 0.0, 0.0], rtol=1e-9, atol=1e-12)


def test_robots_in_the_ground_are_warned_of(ball: phistar.Robot) -> None:
    """And pushed out slowly, not shot."""
    sim = ball.simulator(3, dt=DT)
    places = np.tile([0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0], (3, 1))
    places[1, 2] = -0.4
    sim.reset(q=places)
    with pytest.warns(PenetrationWarning, match=r"'ball' of sample 1 is 0\.5 m inside 'ground'"):
        sim.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fastest = max(float(np.abs(sim.step(substeps=10).v).max()) for _ in range(100))
    assert fastest <= 1.0 + 1e-9
    assert sim.contacts.gap[1, 0] > -0.01


def test_what_cannot_be_simulated_is_refused(ball: phistar.Robot) -> None:
    """By name, with the cure."""
    crowd = dict.fromkeys(phistar.robots.chain(200).link_names[1:], 0.01)
    with pytest.raises(ArgumentError, match="fewer shapes"):
        phistar.robots.chain(200).simulator(1, dt=DT, points=crowd)
    with pytest.raises(ArgumentError, match="1000000 pairs that may touch has 3000000 rows"):
        ball.simulator(1, dt=DT, ground=[Plane()] * 1_000_000)
    for wrong in ({"dt": 0.0}, {"dt": DT, "batch": 0}, {"dt": DT, "on_error": "nan"}):
        with pytest.raises(ArgumentError):
            ball.simulator(**wrong)
    with pytest.raises(ArgumentError, match="friction"):
        ball.simulator(1, dt=DT, friction=-1.0)
    with pytest.raises(ArgumentError, match="restitution"):
        Plane(restitution=2.0)
    with pytest.raises(ArgumentError, match="normal"):
        Plane([0.0, 0.0, 0.0])
    with pytest.raises(ArgumentError, match="positive"):
        Box([1.0, 0.0, 1.0])
    with pytest.raises(ArgumentError, match="heights"):
        HeightField(np.zeros(3), 1.0)
    with pytest.raises(UnknownNameError, match="bal"):
        ball.simulator(1, dt=DT, points=["bal"])
    with pytest.raises(UnknownNameError, match="ball"):
        _ = ball.simulator(1, dt=DT).contacts["bal"]
    with pytest.raises(ArgumentError, match="touches nothing"):
        _ = ball.simulator(1, dt=DT, ground=False).contacts


def test_points_that_cannot_move_along_the_normal() -> None:
    """On the axis of a joint, or in a plane along the ground: no division by nothing."""
    robot = phistar.load("double_pendulum")
    fixed = robot.link_names[-2]
    across = Plane([0.0, 1.0, 0.0], offset=0.5)
    sim = robot.simulator(1, dt=DT, ground=[Plane(), across], points=[fixed, robot.link_names[-1]])
    sim.reset(q=[0.3, 0.4])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PenetrationWarning)
        state = sim.step(substeps=20)
    assert np.isfinite(state.q).all()
    assert np.abs(state.v).max() < 10.0


def test_unused_shapes_are_listed() -> None:
    """Ellipsoids and meshes touch nothing, and that is said; points of frames do."""
    xml = b"""<mujoco><worldbody><geom name="pole" type="cylinder" size=".1 1" pos="3 0 1"/>
    <geom name="floor" type="plane" size="1 1 1"/><body name="can"><freejoint/>
    <geom name="tin" type="ellipsoid" size=".1 .1 .1"/></body></worldbody></mujoco>"""
    robot = phistar.load(xml)
    sim = robot.simulator(1, dt=DT, points={"can": 0.1})
    assert sim.unused_shapes == (
        "pole: nothing touches a cylinder of the world",
        "tin: an ellipsoid touches nothing",
    )
    sim.reset(q=[0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0])
    lawful = LawfulSteps(robot, sim)
    lawful.take(steps=20)
    lawful.require_laws()
    assert sim.contacts.names == ("can",)
    assert abs(sim.q[0, 2] - 0.1) < 1e-9


def test_numpy_takes_the_same_steps(ball: phistar.Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without machine code; relative 1e-9."""
    place = [0.0, 0.0, 0.12, 0.0, 0.0, 0.0, 1.0]
    fast = ball.simulator(1, dt=DT)
    monkeypatch.setattr(base, "_default_name", "numpy")
    slow = ball.simulator(1, dt=DT)
    assert slow.engine == "numpy loop"
    for sim in (fast, slow):
        sim.reset(q=place, v=[0.0, 1.0, 0.0, 0.5, 0.0, 0.0])
    np.testing.assert_allclose(slow.step(substeps=80).v, fast.step(substeps=80).v, atol=1e-9)


def test_control_signals_go_through_the_actuators() -> None:
    """Clamped forces of the state at each step, as joint forces that are worked out by hand."""
    text = PENDULUM.decode().format(
        range="0 0", limited="false", friction=0.0, damping=0.5, stiffness=0.0
    )
    servo = '<actuator><position joint="hinge" kp="20" forcerange="-8 8"/></actuator></mujoco>'
    robot = phistar.load(text.replace("</mujoco>", servo).encode())
    driven, told = robot.simulator(2, dt=DT), robot.simulator(2, dt=DT)
    goals = np.array([[0.1], [2.0]])
    for sim in (driven, told):
        sim.reset(q=[0.3])
    driven.step(ctrl=goals, substeps=50)
    for _ in range(50):
        told.step(np.clip(20.0 * (goals - told.q), -8.0, 8.0))
    assert np.abs(driven.q[:, 0] - 0.3).min() > 1e-3
    assert driven.q == pytest.approx(told.q, rel=1e-12)
    with pytest.raises(ShapeError, match="ctrl"):
        driven.step(ctrl=[1.0, 2.0, 3.0])


def test_more_robots_than_memory_holds() -> None:
    """The error says how much they would take, before anything is made."""
    with pytest.raises(TooLargeError, match=r"10,000,000,000 robots .* take fewer at a time"):
        phistar.load("double_pendulum").simulator(10**10, dt=1e-3)


def test_a_robot_that_touches_nothing_says_so() -> None:
    """Its contacts are an error that names the shapes that are not used, and two ways out."""
    egg = phistar.load(
        b"""<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="egg" pos="0 0 1">
        <freejoint/><geom name="shell" type="ellipsoid" size=".1 .1 .2"/></body></worldbody>
        </mujoco>"""
    )
    sim = egg.simulator(1, dt=1e-3)
    assert sim.unused_shapes == ("shell: an ellipsoid touches nothing",)
    with pytest.raises(ArgumentError, match=r"shell: an ellipsoid .* name frames as points="):
        _ = sim.contacts


def test_a_coupling_has_no_wrench() -> None:
    """The message of ``wrenches`` tells where its multiplier is."""
    builder = ModelBuilder("geared")
    builder.link("ground")
    for name in ("a", "b"):
        builder.link(name, 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1))
        builder.joint(f"{name}_joint", "revolute", "ground", name, axis=(0, 0, 1))
    builder.couple(Coupling("gear", "b_joint", "a_joint", (0.0, 2.0)))
    robot = phistar.load(builder.build())
    sim = robot.simulate([0.1, 0.2], [0.0, 0.0], dt=1e-3, steps=2)
    with pytest.raises(ArgumentError, match=r"'gear' couples joints .*multipliers"):
        sim.wrenches("gear")
