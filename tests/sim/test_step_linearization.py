# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of steps with contacts and joint physics: differences of the step itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phistar
from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model import Mimic, ModelBuilder
from phistar.sim import Box, HeightField, Plane
from phistar.sim.step_linearization import StepLinearization

DT = 1e-3
BALL = b"""<mujoco><worldbody><body name="ball"><freejoint/>
<geom name="ball" type="sphere" size=".1"/></body></worldbody></mujoco>"""
CRATE = b"""<mujoco><worldbody><body name="box"><freejoint/>
<geom name="crate" type="box" size=".2 .15 .1"/></body></worldbody></mujoco>"""
ARM = """<mujoco><worldbody><body name="arm">
<joint name="hinge" axis="0 1 0" range="-90 30" limited="true" frictionloss="{}" damping=".3"
 stiffness="5" springref="20"/><inertial mass="1" pos="0.5 0 0" diaginertia="0.01 0.01 0.01"/>
<body name="hand" pos="1 0 0"><joint type="ball" stiffness="2" damping=".1"/>
<inertial mass=".3" pos="0.2 0 0" diaginertia="0.01 0.02 0.01"/></body></body></worldbody>
</mujoco>"""

SIZE = 1e-7
"""Steps of the differences; states are rounded, so these are exact to about eps / SIZE."""


def differences(
    robot: phistar.Robot, sim: Any, tau: Array, how: dict[str, Any], steps_ahead: int = 1
) -> Array:
    """[A, B] (2 nv, 3 nv) by central differences of steps of a simulator's only sample."""
    nv, size = robot.nv, SIZE
    many = robot.simulator(6 * nv, dt=sim.dt, **how)
    steps = size * np.repeat(np.eye(3 * nv), 2, axis=0)
    steps[1::2] *= -1.0
    moved, faster, pushed = np.split(steps, 3, axis=1)
    many.reset(q=robot.integrate(np.tile(sim.q, (6 * nv, 1)), moved), v=sim.v + faster)
    many._state.impulses[:] = sim._state.impulses
    many._begun[:] = False
    many.step(tau + pushed, substeps=steps_ahead)
    q, v = many.q, many.v
    way = np.concatenate([robot.difference(q[1::2], q[::2]), v[::2] - v[1::2]], axis=-1)
    return np.asarray(way.T / (2 * size))


def compared(
    robot: phistar.Robot, q: Array, v: Array, warm: int = 0, **how: Any
) -> StepLinearization:
    """The derivatives at a state after some steps, which agree with differences; relative 1e-6."""
    sim, tau = robot.simulator(1, dt=DT, **how), 0.1 * np.ones(robot.nv)
    sim.reset(q=q, v=v)
    sim._begun[:] = False
    if warm:
        sim.step(tau, substeps=warm)
    before = sim.state
    found = sim.linearize(tau)
    assert (sim.q == before.q).all()
    assert (sim.v == before.v).all()
    known = differences(robot, sim, tau, how)
    both = np.concatenate([found.A[0], found.B[0]], axis=-1)
    assert np.abs(both - known)[:, : 2 * robot.nv].max() <= 1e-6 * np.abs(found.A).max()
    rounding = 4 * np.finfo(float).eps * max(np.abs(sim.v).max(), 1.0) / (2 * SIZE)
    allowed = 1e-6 * max(np.abs(found.B).max(), DT) + rounding
    assert np.abs(both - known)[:, 2 * robot.nv :].max() <= allowed
    after = sim.step(tau)
    assert (found.q == after.q).all()
    assert (found.v == after.v).all()
    assert found.smooth.all()
    return found


@pytest.fixture(scope="module")
def ball() -> phistar.Robot:
    """A free ball."""
    return phistar.load(BALL)


def _at(z: float, x: float = 0.0) -> Array:
    return np.array([x, 0.0, z, 0.0, 0.0, 0.0, 1.0])


TERRAIN = HeightField(
    0.05 * np.arange(9) + 0.03 * np.arange(5)[:, None] * np.arange(9), 0.5, (-2.0, -1.0)
)


@pytest.mark.parametrize(
    ("law", "q", "v", "how"),
    [
        ("open", _at(0.3), [1.0, 2.0, 3.0, 0.1, 0.2, 0.3], {}),
        ("stick", _at(0.0999), [0.0, 1.0, 0.0, 0.1, 0.0, 0.0], {}),
        ("slide", _at(0.0999), [0.0, 1.0, 0.0, 1.0, 0.5, -0.3], {"friction": 0.2}),
        ("slide", _at(0.0999), [0.0, 1.0, 0.0, 1.0, 0.5, -0.3], {"friction": 0.0}),
        ("stick", _at(0.0999), [0.0, 1.0, 0.0, 0.3, 0.5, -1.0], {"restitution": 0.6}),
        ("stick", _at(0.56, 0.1), [0.0, 1.0, 0.0, 0.5, 0.0, -0.5], {"ground": TERRAIN}),
        ("stick", _at(0.28, 1.05), [0.0, 1.0, 0.0, -0.5, 0.0, -0.5], {"ground": Box([2, 2, 0.4])}),
    ],
    ids=["open", "stick", "slide", "ice", "bounce", "terrain", "edge of a box"],
)
def test_a_ball(
    ball: phistar.Robot, law: str, q: Array, v: list[float], how: dict[str, Any]
) -> None:
    """In every law, on planes, terrain and edges."""
    found = compared(ball, q, np.array(v), sweeps=200, **how)
    assert found.sets.tolist() == [[law]]
    assert found.names == (f"ball on {getattr(how.get('ground'), 'name', 'ground')}",)


@pytest.mark.parametrize(("friction", "law"), [(0.9, "stick"), (0.3, "slide")])
def test_redundant_rows(friction: float, law: str) -> None:
    """A box on four corners: twelve rows on six coordinates."""
    angle = np.radians(25.0)
    place = 0.0999 * np.array([np.sin(angle), 0.0, np.cos(angle)])
    q = np.r_[place, 0.0, np.sin(angle / 2), 0.0, np.cos(angle / 2)]
    ground = Plane.slope(angle)
    robot = phistar.load(CRATE)
    how = {"ground": ground, "friction": friction, "sweeps": 2000}
    found = compared(robot, q, np.array([0.0, 0.0, 0.0, 0.02, 0.0, 0.0]), warm=15, **how)
    assert found.sets.tolist() == [[law] * 4]


@pytest.mark.parametrize(
    ("law", "friction", "angle", "speed"),
    [("rubs", 0.5, 0.1, 0.3), ("held", 20.0, 0.1, 0.0), ("stop", 0.5, np.radians(30) - 1e-4, 0.5)],
)
def test_joints(law: str, friction: float, angle: float, speed: float) -> None:
    """A hinge that rubs, sticks or stops, with springs and damping, a ball joint's, too."""
    robot = phistar.load(ARM.format(friction).encode())
    q = robot.integrate(robot.neutral(), np.array([angle, 0.1, 0.2, 0.3]))
    found = compared(robot, q, np.array([speed, 0.1, 0.2, -0.3]), ground=False, sweeps=60)
    assert found.sets.tolist() == [[law]]
    assert found.names == ("hinge",)


def test_steps_in_a_row(ball: phistar.Robot) -> None:
    """A ball that slides until it rolls: the chain rule over 60 steps, in which the law changes
    once; relative 1e-6 of differences of all of them."""
    how: dict[str, Any] = {"friction": 0.3, "sweeps": 200}
    sim = ball.simulator(1, dt=DT, **how)
    tau = np.zeros(6)
    sim.reset(q=_at(0.0999), v=[0.0, 0.0, 0.0, 0.4, 0.0, 0.0])
    known = differences(ball, sim, tau, how, steps_ahead=60)
    A, B, laws = np.eye(12), np.zeros((12, 6)), []
    for _ in range(60):
        found = sim.linearize(tau)
        A, B = found.A[0] @ A, found.A[0] @ B + found.B[0]
        laws.append(str(found.sets[0, 0]))
        sim.step(tau)
    assert sorted(set(laws)) == ["slide", "stick"]
    assert laws == sorted(laws)
    assert np.abs(A - known[:, :12]).max() <= 1e-6 * np.abs(A).max()
    assert np.abs(B - known[:, 12:]).max() <= 1e-6 * np.abs(B).max()


def test_four_feet() -> None:
    """A quadruped on its feet, sunk by 0.2 mm, with joints whose stops are idle."""
    robot = phistar.load("quadruped")
    q = robot.neutral()
    q[7:] = np.tile([0.0, 0.7, -1.4], 4)
    q[2] = 0.0123 - robot.frame_pose(q, "FL_FOOT")[2, 3]
    found = compared(robot, q, np.zeros(robot.nv), warm=5, friction=0.8, sweeps=200)
    laws = dict(zip(found.names, found.sets[0].tolist(), strict=True))
    feet = {name: law for name, law in laws.items() if name.endswith(" on ground")}
    assert sorted(set(feet.values())) == ["slide", "stick"]  # it begins to sink down
    assert len(feet) == 4
    assert {law for name, law in laws.items() if name not in feet} == {"free"}


def test_followers_of_mimic_joints() -> None:
    """Two fingers on one coordinate, of which one touches or the leader stops."""
    builder = ModelBuilder("fingers")
    builder.link("base")
    for name in ("left", "right"):
        builder.link(name, 1.0, inertia=(1e-3, 1e-3, 1e-3))
    up = (0, 0, 1)
    drive = {"lower": -0.5, "upper": 0.5, "damping": 0.2, "friction": 0.3}
    builder.joint("lead", "prismatic", "base", "left", axis=up, **drive)
    builder.joint("follow", "prismatic", "base", "right", axis=up, mimic=Mimic("lead", 2.0, 0.1))
    robot = phistar.load(builder.build())
    touching = {"points": ["right"], "ground": Plane(offset=-0.1), "sweeps": 100}
    for q, v, how, sets in (
        (0.0, -1.0, touching, ["rubs", "open"]),
        (-0.101, -1.0, touching, ["rubs", "stick"]),
        (0.49999, 1.0, {"ground": False}, ["stop"]),
    ):
        found = compared(robot, np.array([q]), np.array([v]), **how)
        assert found.sets.tolist() == [sets]


def test_a_cylinder_that_lands() -> None:
    """On its rims, spinning: the nearest points move on them."""
    text = b"""<mujoco><worldbody><body name="can"><freejoint/>
    <geom name="can" type="cylinder" size=".1 .2"/></body></worldbody></mujoco>"""
    robot = phistar.load(text)
    q = np.array([0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0])
    for turn in ([np.radians(89.9), 0.0, 0.0], [0.0, 0.0, 0.3]):
        q = robot.integrate(q, np.array([*turn, 0.0, 0.0, 0.0]))
    down = robot.frame_pose(q, "can")[:3, :3].T @ [0.3, 0.0, -0.1]
    v = np.array([0.0, 0.0, -3.0, *down])
    found = compared(robot, q, v, friction=0.7, sweeps=2000)
    assert sorted(set(found.sets[0].tolist())) == ["open", "slide"]


def test_boundaries_are_told(ball: phistar.Robot) -> None:
    """At rest on the ground, just touching, about to slip: the sample is not smooth, and why."""
    sim = ball.simulator(4, dt=DT, friction=0.5)
    fall = 9.81 * DT
    q = np.stack([_at(0.1), _at(0.1 + 1e-12), _at(0.0999), _at(0.5)])
    v = np.zeros((4, 6))
    v[1, 5] = fall
    sim.reset(q=q, v=v)
    push = np.zeros((4, 6))
    found = sim.linearize(push)
    assert found.smooth.tolist() == [False, False, True, True]
    assert found.kinks[:, 0].tolist()[:2] == ["gap", "force"]
    assert np.isfinite(found.A).all()
    ice = ball.simulator(1, dt=DT, friction=0.0)
    ice.reset(q=_at(0.0999))
    assert ice.linearize().smooth.all()
    with pytest.raises(ArgumentError, match="semi_implicit"):
        ball.simulator(1, dt=DT, ground=False, scheme="rk4").linearize()


def test_without_rows_it_is_discretize() -> None:
    """The semi-implicit step of rigid bodies; relative 1e-12."""
    arm = phistar.load(ARM.format(0).encode())
    sim = arm.simulator(2, dt=DT, ground=False, passive=False)
    v = np.random.default_rng(0).normal(size=(2, arm.nv))
    sim.reset(v=v)
    found, known = sim.linearize(), arm.discretize(sim.q, v, np.zeros(arm.nv), DT)
    np.testing.assert_allclose(found.A, known.A, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.B, known.B, rtol=1e-12, atol=1e-15)


def test_bodies_that_tumble_in_the_air() -> None:
    """Their axes turn in a step, with the centre of mass beside the origin, and one of them carries
    another."""
    off = b"""<mujoco><worldbody><body><freejoint/><geom type="box" size=".2 .15 .1" pos=".1 0 .2"/>
    </body><body><freejoint/><geom type="box" size=".1 .1 .3"/><body pos=".1 0 .3"><joint/>
    <geom type="sphere" size=".1" pos="0 .2 0"/></body></body></worldbody></mujoco>"""
    robot = phistar.load(off)
    v = 3.0 * np.random.default_rng(1).normal(size=robot.nv)
    compared(robot, robot.random_configuration(1), v, ground=False)
