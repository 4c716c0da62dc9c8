# SPDX-License-Identifier: BSD-3-Clause
"""Simulators of robots that are no trees: the step of trees in matrices, loops, mimic joints."""

import numpy as np
import pytest

import phistar
from phistar.constraints import Distance
from phistar.errors import ArgumentError, LoopOpenError
from phistar.model import Mimic, ModelBuilder
from phistar.sim import Plane, run
from phistar.sim.contact_stepper import ContactStepper
from phistar.sim.general_stepper import GeneralStepper
from phistar.sim.row_stepper import RowStepper
from tests.sim.contact_laws import LawfulSteps

DT = 1e-3
ARM = b"""<mujoco><worldbody><body name="arm">
<joint name="hinge" axis="0 1 0" range="-90 30" limited="true" frictionloss="0.2" damping=".3"
 stiffness="5" springref="20"/>
<inertial mass="1" pos="0.5 0 0" diaginertia="0.01 0.01 0.01"/>
<body name="hand" pos="1 0 0"><joint type="ball" stiffness="2" damping=".1"/>
<inertial mass=".3" pos="0.2 0 0" diaginertia="0.01 0.02 0.01"/>
<geom name="fist" type="sphere" size=".05"/></body></body></worldbody></mujoco>"""


def test_trees_take_the_same_steps_in_matrices() -> None:
    """Friction, stops, springs (of a ball joint, too), damping, contacts: 1e-10 after 0.6 s."""
    robot = phistar.load(ARM)
    sim = robot.simulator(3, dt=DT, ground=Plane(offset=-0.4))
    sim.reset(v=np.random.default_rng(0).normal(size=(3, 4)))
    assert sim.engine == "machine code"
    other = robot.simulator(3, dt=DT, ground=Plane(offset=-0.4))
    other.reset(v=sim.v)
    other._stepper = GeneralStepper(sim._points, sim._smooth, False)
    touched, tau = np.zeros(3, dtype=bool), np.zeros((3, 4))
    for _ in range(6):
        found, state = sim.step(tau, substeps=100), other.step(tau, substeps=100)
        np.testing.assert_allclose(state.q, found.q, atol=1e-10)
        np.testing.assert_allclose(state.v, found.v, atol=1e-10)
        touched |= sim.contacts.touching[:, 0]
    assert touched.any()
    assert np.abs(sim.joint_force("hinge")).max() > 0.1


def test_springs_are_in_the_energy() -> None:
    """A spring with neither gravity nor damping keeps ½mv² + ½Kx² to first order in the step."""
    text = b"""<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="s" type="slide"
    stiffness="40" springref="0.1"/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/></body>
    </worldbody></mujoco>"""
    robot = phistar.load(text)
    sim = robot.simulator(1, dt=1e-5)
    sim.reset(q=[0.3])
    assert sim.energy()[0] == pytest.approx(0.5 * 40 * 0.2**2, rel=1e-12)
    sim.step(substeps=20000)
    x, v = sim.q[0, 0], sim.v[0, 0]
    assert sim.energy()[0] == pytest.approx(0.5 * v * v + 20 * (x - 0.1) ** 2, rel=1e-12)
    assert sim.energy()[0] == pytest.approx(0.8, rel=1e-2)
    motion = robot.simulate([0.3], [0.0], dt=1e-3, steps=500, scheme="rk4")
    np.testing.assert_allclose(motion.energy(), 0.8, rtol=1e-8)
    rigid = robot.simulate([0.3], [1.0], dt=1e-3, steps=5, scheme="rk4", passive=False)
    np.testing.assert_allclose(rigid.energy(), 0.5, rtol=1e-12)


@pytest.fixture(scope="module")
def rubbing_four_bar() -> phistar.Robot:
    """A four-bar whose joints rub."""
    text = phistar.robots.path("four_bar").read_text()
    rubs = '<dynamics damping="0.0" friction="0.02"/></joint>'
    return phistar.load(text.replace("</joint>", rubs).encode())


def test_loops_rub_as_in_matrices_and_active_sets(
    rubbing_four_bar: phistar.Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machine code, matrices in NumPy and the active-set method of ``simulate``: one motion, 1e-11;
    loops stay closed."""
    robot = rubbing_four_bar
    sim, other = (robot.simulator(2, dt=DT, ground=False) for _ in range(2))
    assert sim.engine == "machine code"
    other._stepper = GeneralStepper(other._points, other._smooth, False)
    assert other.engine == "numpy loop"
    q = robot.assemble(robot.home)
    for each in (sim, other):
        each.step(substeps=40)
    with monkeypatch.context() as patch:
        patch.setattr(run, "make_row_stepper", RowStepper)
        known = robot.simulate(q, np.zeros(robot.nv), dt=DT, steps=40, scheme="semi_implicit")
    assert known.engine == "numpy loop"
    assert np.abs(known.q[-1] - q).max() > 1e-4
    for each in (sim, other):
        np.testing.assert_allclose(each.q, np.tile(known.q[-1], (2, 1)), atol=1e-11)
        np.testing.assert_allclose(each.v, np.tile(known.v[-1], (2, 1)), atol=1e-10)
    assert np.abs(robot.loop_error(sim.q).values).max() < 1e-12
    sim.reset(spread=0.05)
    assert np.abs(robot.loop_error(sim.q).values).max() < 1e-9
    with pytest.raises(ArgumentError, match="closed loops"):
        sim.linearize()
    sim.reset(q=q + np.array([0.2, 0.0, 0.0]))
    with pytest.raises(LoopOpenError, match="assemble"):
        sim.step()
    frozen = robot.simulator(2, dt=DT, ground=False, on_error="freeze")
    frozen.reset([1], q=q + np.array([0.2, 0.0, 0.0]))
    assert frozen.step(substeps=40).frozen.tolist() == [False, True]
    np.testing.assert_allclose(frozen.q[0], known.q[-1], atol=1e-11)


def test_a_step_that_opens_loops_too_far_is_taken_in_numpy() -> None:
    """Long steps of a fast linkage: the compiled projection gives up for one sample, which goes on
    in NumPy; its neighbour keeps the bits it has alone."""
    robot = phistar.load("four_bar")
    q = robot.assemble(robot.home)
    fast = robot.project(q, np.array([40.0, 0.0, 0.0]))[1]
    slow = robot.project(q, np.array([1.0, 0.0, 0.0]))[1]
    how = {"dt": 5 * DT, "points": {"coupler": 0.0}, "ground": Plane(offset=-5.0)}
    both, alone = robot.simulator(2, **how), robot.simulator(1, **how)
    both.reset(q=q, v=np.stack([slow, fast]))
    alone.reset(q=q, v=slow)
    assert both.engine == "machine code"
    taken: list[int] = []
    stepper = both._stepper
    assert isinstance(stepper, ContactStepper)
    in_numpy = stepper._otherwise.run
    stepper._otherwise.run = lambda span: taken.append(len(span.q)) or in_numpy(span)  # type: ignore[method-assign]
    for _ in range(4):
        both.step()
        alone.step()
    assert set(taken) == {1}
    assert (both.q[0] == alone.q[0]).all()
    assert np.abs(robot.loop_error(both.q).values).max() < 1e-9


RUBBING = 'damping="0.01" friction="0.02"'


def _limited_four_bar(physics: str) -> tuple[phistar.Robot, np.ndarray, np.ndarray]:
    """A four-bar whose crank may turn by 0.05 rad, assembled, and velocities of three samples."""
    text = phistar.robots.path("four_bar").read_text()
    robot = phistar.load(text.replace("</joint>", f"<dynamics {physics}/></joint>").encode())
    q = robot.assemble(robot.home)
    crank = robot.joint_names[0]
    robot = robot.with_limits(lower={crank: q[0] - 0.05}, upper={crank: q[0] + 0.05})
    v = robot.project(q, np.array([1.0, 0.0, 0.0]))[1]
    return robot, q, np.stack([v, -0.5 * v, 0.0 * v])


@pytest.mark.parametrize("in_numpy", [False, True])
@pytest.mark.parametrize("physics", ['friction="0.02"', RUBBING, 'damping="0.01"'])
def test_friction_and_limits_of_a_linkage(
    physics: str, in_numpy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A linkage has one way to move, y, so that a step is known: friction of all joints takes what
    it may of y, and the crank stays in its range; each step to 1e-9, loops closed to 1e-12."""
    robot, q, starts = _limited_four_bar(physics)
    if in_numpy:
        monkeypatch.setattr(run, "make_row_stepper", RowStepper)
    sim = robot.simulate(q, starts, dt=DT, steps=150, scheme="semi_implicit")
    assert sim.engine == ("numpy loop" if in_numpy else "machine code")
    at, v = sim.q[:-1].reshape(-1, 3), sim.v[:-1].reshape(-1, 3)
    free = v + DT * robot.forward_dynamics(at, v, np.zeros(3), passive={"damping"})
    motion = np.linalg.svd(robot.loop_jacobian(at))[2][:, -1]
    mass = np.einsum("bi,bij,bj->b", motion, robot.mass_matrix(at), motion)
    y = (motion * free).sum(axis=-1)
    rubbed = DT * (robot.limits.friction * np.abs(motion)).sum(axis=-1) / mass
    slowed = np.sign(y) * np.maximum(np.abs(y) - rubbed, 0.0)
    turned = at[:, 0] - q[0]
    ends = np.stack([np.minimum(-0.05 - turned, 0.0), np.maximum(0.05 - turned, 0.0)])
    way = np.sort(y + (ends / DT - free[:, 0]) / motion[:, 0], axis=0)
    known = free + (np.clip(slowed, *way) - y)[:, None] * motion
    q_known, v_known = robot.project(robot.integrate(at, DT * known), known)
    np.testing.assert_allclose(sim.q[1:].reshape(-1, 3), q_known, atol=1e-9)
    np.testing.assert_allclose(sim.v[1:].reshape(-1, 3), v_known, atol=1e-6)
    # The projection leads beyond the stop by what the step is long, squared.
    assert np.abs(sim.q[:, :, 0] - q[0]).max() == pytest.approx(0.05, abs=2e-6)
    assert np.abs(sim.v[-1, :2]).max() < 1e-9
    assert np.abs(robot.loop_error(sim.q).values).max() < 1e-12


@pytest.mark.parametrize("in_numpy", [False, True])
def test_a_joint_that_loops_hold_rubs_nothing(in_numpy: bool) -> None:
    """The upper rod of a double pendulum is held by a rod to the wall: its friction and stops have
    nothing to do, and the lower one swings as it does on a locked joint; 1e-9 rad in 0.3 s."""
    free = phistar.load("double_pendulum").with_joint_physics(friction=0.05)
    free = free.with_limits(lower=-2.0, upper=2.0)
    q = np.array([0.4, 0.7])
    held = free.with_loops(Distance("lower_rod", at=(1.0, 0.0, 0.2)), q=q)
    sim = held.simulator(2, dt=DT, ground=False)
    known = free.lock({"shoulder": 0.4}).simulator(1, dt=DT, ground=False)
    assert sim.engine == known.engine == "machine code"
    if in_numpy:
        sim._stepper = GeneralStepper(sim._points, sim._smooth, False)
    sim.reset(q=q)
    known.reset(q=q[1:])
    sim.step(substeps=300)
    known.step(substeps=300)
    assert np.abs(known.q - q[1]).max() > 0.1
    np.testing.assert_allclose(sim.q[:, 1], known.q[[0, 0], 0], atol=1e-9)
    np.testing.assert_allclose(sim.q[:, 0], 0.4, atol=1e-9)


def test_rk4_rubs_and_stops_on_loops_in_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages under held forces: the motion of the same in NumPy, 1e-9."""
    robot, q, starts = _limited_four_bar(RUBBING)
    how = {"dt": DT, "steps": 150, "scheme": "rk4"}
    found = robot.simulate(q, starts, **how)
    assert found.engine == "machine code"
    monkeypatch.setattr(run, "make_row_stepper", RowStepper)
    known = robot.simulate(q, starts, **how)
    np.testing.assert_allclose(found.q, known.q, atol=1e-9)


def test_a_linkage_stands_on_the_ground() -> None:
    """A four-bar falls onto a plane and rests there, loops closed: laws at every step; a bad sample
    freezes alone."""
    robot = phistar.load("four_bar")
    q = robot.assemble(robot.home)
    tip = robot.frame_pose(q, "coupler")[2, 3]
    sims = [
        robot.simulator(
            2,
            dt=DT,
            points={"coupler": 0.0},
            ground=Plane(offset=tip - 0.02, friction=0.2),
            friction=0.2,
            on_error="freeze",
        )
        for _ in range(2)
    ]
    bad = np.zeros((2, robot.nv))
    bad[1, 0] = np.nan
    fine, spoilt = sims

    def motions(q: np.ndarray) -> np.ndarray:
        return np.linalg.svd(robot.loop_jacobian(q))[2][:, -1:]

    motion = LawfulSteps(robot, fine, motions)
    for k in range(30):
        motion.take(steps=10)
        spoilt.step(bad if k == 5 else None, substeps=10)
    motion.require_laws(energy_slack=1e-5, solved=1e-2)  # a projection follows each step
    assert spoilt.state.frozen.tolist() == [False, True]
    assert (spoilt.q[0] == fine.q[0]).all()
    c = fine.contacts
    assert c.touching.all()
    assert np.abs(c.gap).max() < 1e-6
    assert (c.tangential_force <= c.friction * c.normal_force * (1 + 1e-9)).all()
    assert np.abs(fine.v).max() < 1e-6
    assert np.abs(robot.loop_error(fine.q).values).max() < 1e-12


def test_mimic_joints_touch_and_stop() -> None:
    """Two fingers on one coordinate: the follower's finger rests on the ground, the force on it
    holds both, by their common lever; and a stop of the leader stops both."""
    builder = ModelBuilder("fingers")
    builder.link("base")
    for name in ("left", "right"):
        builder.link(name, 1.0, inertia=(1e-3, 1e-3, 1e-3))
    builder.joint("lead", "prismatic", "base", "left", axis=(0, 0, 1), lower=-0.5, upper=0.5)
    builder.joint(
        "follow", "prismatic", "base", "right", axis=(0, 0, 1), mimic=Mimic("lead", 2.0, 0.1)
    )
    robot = phistar.load(builder.build())
    assert robot.nv == 1
    sim = robot.simulator(1, dt=DT, points=["right"], ground=Plane(offset=-0.1))
    assert sim.engine == "numpy loop"
    motion = LawfulSteps(robot, sim)
    motion.take(steps=400)
    motion.require_laws()
    # The right finger is at 2 q + 0.1; weights (1 + 2) g do work on q, the ground's force twice.
    assert sim.q[0, 0] == pytest.approx(-0.1, abs=1e-9)
    assert sim.contact_force("right")[0, 2] == pytest.approx(1.5 * 9.81, rel=1e-9)
    stopped = robot.simulator(1, dt=DT, ground=False)
    stopped.step(substeps=600)
    assert stopped.q[0, 0] == pytest.approx(-0.5, abs=1e-9)
    assert stopped.joint_force("lead")[0] == pytest.approx(3 * 9.81, rel=1e-9)
    free = robot.simulator(1, dt=DT, ground=False, passive=False)
    assert free.engine == "machine code"
    # (1 + 4) q̈ = -3 g
    assert free.step(substeps=100).v[0, 0] == pytest.approx(-0.6 * 9.81 * 0.1, rel=1e-9)
