# SPDX-License-Identifier: BSD-3-Clause
"""Joints that swing, rub and stop in time: against closed forms, MuJoCo and the exact solution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.joint_physics.implicit import implicit_acceleration, implicit_numbers
from phistar.model import ModelBuilder
from phistar.sim import run
from phistar.sim.row_stepper import RowStepper
from tests.helpers import SHARED, needs_shared
from tools.joint_physics import TOLERANCE, Agreement, compare, compared

SCHEMES = ("semi_implicit", "implicit", "midpoint", "rk4")
SLOPE = 0.3


def slider(**joint: Any) -> phistar.Robot:
    """A block of 1 kg that slides down a slope of 0.3 rad."""
    builder = ModelBuilder("slider")
    builder.link("ground")
    builder.link("block", 1.0, inertia=(1, 1, 1))
    axis = (math.cos(SLOPE), 0.0, -math.sin(SLOPE))
    builder.joint("rail", "prismatic", "ground", "block", axis=axis, **joint)
    return phistar.load(builder.build())


def arm(**joint: Any) -> phistar.Robot:
    """Three links whose joints have what is said."""
    builder = ModelBuilder("arm")
    builder.link("base")
    for k, parent in enumerate(("base", "link0", "link1")):
        builder.link(f"link{k}", 1.0 / (k + 1), com=(0, 0, -0.2), inertia=(0.02, 0.02, 0.01))
        axis = ((0, 1, 0), (1, 0, 0), (0, 1, 0))[k]
        xyz = (0, 0, -0.4 if k else 0)
        builder.joint(f"j{k}", "revolute", parent, f"link{k}", axis=axis, xyz=xyz, **joint)
    return phistar.load(builder.build())


@pytest.mark.parametrize("scheme", [*SCHEMES, "euler"])
def test_stick_sticks_and_slip_slips(scheme: str) -> None:
    """Below the cone nothing moves in 10 s; above it the block slides as it should, then stops."""
    robot = slider(friction=3.0)
    weight = 9.81 * math.sin(SLOPE)
    still = robot.simulate([0.0], [0.0], dt=1e-3, duration=10.0, every=1000, scheme=scheme)
    assert np.abs(still.q).max() < 1e-12
    # Upward: gravity and friction pull back until it stands, and it stays there.
    thrown = robot.simulate([0.0], [-1.0], dt=1e-3, duration=1.0, scheme=scheme)
    order = 1e-3 if scheme in ("semi_implicit", "implicit", "euler") else 2e-6
    assert abs(thrown.q.min() + 0.5 / (weight + 3.0)) < order
    assert np.ptp(thrown.q[-500:]) == 0.0
    fast = slider(friction=1.0).simulate([0.0], [0.0], dt=1e-3, duration=1.0, scheme=scheme)
    assert abs(fast.q[-1, 0] - 0.5 * (weight - 1.0)) < order


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_joint_leaves_its_range(scheme: str) -> None:
    """By rounding at most, in machine code as in NumPy; started outside, it goes no farther."""
    robot = slider(lower=-1.0, upper=1.0)
    sim = robot.simulate([[0.0], [0.5], [-0.9]], [[9.0], [0.0], [-3.0]], dt=1e-3, duration=2.0,
                         scheme=scheme)  # fmt: skip
    assert sim.passive == ("limits",)
    assert sim.engine == "machine code"
    assert sim.q.max() <= 1.0
    assert sim.q.min() >= -1.0
    assert np.abs(sim.q[-1] - 1.0).max() < 1e-12
    assert np.abs(sim.v[-1]).max() < 1e-12
    outside = robot.simulate([1.2], [0.5], dt=1e-3, duration=1.0, scheme=scheme)
    assert outside.q.max() <= 1.2 + 1e-12
    back = robot.simulate([1.2], [-4.0], dt=1e-3, duration=0.2, scheme=scheme)
    assert back.q[-1, 0] < 1.0


@pytest.mark.parametrize("scheme", ["implicit", "rk4"])
def test_each_part_acts_alone(scheme: str) -> None:
    """Chosen friction does not stop at limits, and chosen limits do not rub."""
    robot = slider(friction=1.0, damping=0.2, lower=-1.0, upper=0.1)
    weight, how = 9.81 * math.sin(SLOPE), {"dt": 1e-3, "duration": 1.0, "scheme": scheme}
    rubs = robot.simulate([0.0], [0.0], passive={"friction"}, **how)
    assert rubs.passive == ("friction",)
    assert abs(rubs.q[-1, 0] - 0.5 * (weight - 1.0)) < 1e-3
    stops = robot.simulate([0.0], [0.0], passive={"limits"}, **how)
    assert abs(stops.q[200, 0] - min(0.1, 0.5 * weight * 0.04)) < 1e-3
    assert stops.q[-1, 0] == 0.1
    damped = robot.simulate([0.0], [0.0], passive="damping", **how)
    assert abs(damped.v[-1, 0] - weight / 0.2 * (1 - math.exp(-0.2))) < 2e-3
    rigid = robot.simulate([0.0], [0.0], passive=False, **how)
    assert abs(rigid.v[-1, 0] - weight) < 1e-9


def exact(monkeypatch: pytest.MonkeyPatch, robot: phistar.Robot, *state: Array, **how: Any) -> Any:
    """The same simulation with friction and limits by the active-set method."""

    with monkeypatch.context() as patch:
        patch.setattr(run, "make_row_stepper", RowStepper)
        return robot.simulate(*state, **how)


@pytest.mark.parametrize("scheme", ["implicit", "rk4"])
@pytest.mark.parametrize(
    "joint",
    [
        {"friction": 0.4, "damping": 0.05, "lower": -0.6, "upper": 0.6},
        {"lower": -0.3, "upper": 0.5, "stiffness": 3.0, "spring_reference": 0.2, "damping": 0.1},
    ],
)
def test_machine_code_finds_the_exact_forces(
    monkeypatch: pytest.MonkeyPatch, scheme: str, joint: dict[str, float]
) -> None:
    """Gauss-Seidel on Δ and active sets lead to the same motion; samples keep their bits."""
    robot = arm(**joint)
    rng = np.random.default_rng(2)
    q, v = rng.uniform(-0.25, 0.25, (5, 3)), 3.0 * rng.normal(size=(5, 3))
    how = {"dt": 1e-3, "duration": 0.25, "scheme": scheme}
    sim = robot.simulate(q, v, **how)
    assert sim.engine == "machine code"
    other = exact(monkeypatch, robot, q, v, **how)
    assert other.engine == "numpy loop"
    assert np.abs(sim.q - other.q).max() < 1e-9
    alone = robot.simulate(q[3], v[3], **how)
    assert np.array_equal(alone.q, sim.q[:, 3])
    one = robot.step(q, v, np.zeros((5, 3)), 1e-3, scheme)
    assert np.abs(one[0] - sim.q[1]).max() < 1e-12
    assert np.abs(one[1] - sim.v[1]).max() < 1e-9


def test_laws_of_friction_and_limits_hold_at_every_step() -> None:
    """|λ| <= F, against the motion, and limits push inward: from the change of momentum."""
    friction, bound, h = 0.4, 0.5, 1e-3
    robot = arm(friction=friction, lower=-bound, upper=bound)
    q, v = np.array([0.1, -0.2, 0.3]), np.array([2.0, -4.0, 3.0])
    sim = robot.simulate(q, v, dt=h, duration=1.0, scheme="semi_implicit")
    rate = np.diff(sim.v, axis=0) / h
    force = robot.inverse_dynamics(sim.q[:-1], sim.v[:-1], rate)
    later, at = sim.v[1:], sim.q[1:]
    inside = np.abs(at) < bound - 1e-9
    assert (np.abs(force)[inside] <= friction * (1 + 1e-6)).all()
    moving = inside & (np.abs(later) > 1e-9)
    assert moving.any()
    assert np.abs(force + friction * np.sign(later))[moving].max() < 1e-6
    # At a limit the force is that of friction, or pushes back inside.
    assert (force[at > bound - 1e-9] <= friction * (1 + 1e-6)).all()
    assert (force[at < -bound + 1e-9] >= -friction * (1 + 1e-6)).all()
    energy = sim.energy()
    assert np.diff(energy).max() < 1e-6 * np.ptp(energy)


def test_implicit_springs_and_dampers_are_heavier_joints() -> None:
    """By dense matrices; stiff joints stay stable where explicit ones diverge."""
    robot = arm(damping=50.0, stiffness=2e4, spring_reference=0.1)
    rng = np.random.default_rng(0)
    q, v, tau = (rng.normal(size=(30, 3)) for _ in range(3))
    h, parts = 0.01, ("springs", "damping")
    added, K = implicit_numbers(robot.model, parts, h)
    assert np.allclose(added, h * 50.0 + h * h * 2e4)
    force = tau + robot.passive_force(q, v) - h * K * v - robot.inverse_dynamics(q, v, 0 * v)
    dense = np.linalg.solve(robot.mass_matrix(q) + np.diag(added), force[..., None])[..., 0]
    found = implicit_acceleration(robot.model, q, v, tau, h, parts)
    compiled = robot.compile("implicit_dynamics")(q, v=v, tau=tau, dt=np.full((30, 1), h))
    lengths = implicit_acceleration(robot.model, q, v, tau, np.full((30, 1), h), parts)
    for other in (found, compiled, lengths):
        assert np.abs(other - dense).max() < 1e-11 * np.abs(dense).max()
    sim = robot.simulate(q[:4], v[:4], dt=h, duration=2.0)
    assert sim.scheme == "implicit"
    assert sim.engine == "machine code"
    assert np.abs(sim.v[-1]).max() < 1e-3
    assert np.abs(sim.q[-1] - 0.1).max() < 0.01


def test_auto_schemes() -> None:
    """Explicit unless joints are stiff; of steps semi-implicit unless there are springs."""
    soft, stiff = arm(damping=1e-3), arm(damping=30.0)
    start = (np.zeros(3), np.ones(3))
    assert arm().simulate(*start, dt=1e-3, steps=3).scheme == "rk4"
    assert soft.simulate(*start, dt=1e-3, steps=3).scheme == "rk4"
    assert stiff.simulate(*start, dt=1e-3, steps=3).scheme == "implicit"
    assert stiff.simulate(*start, dt=1e-3, steps=3, passive=False).scheme == "rk4"
    tau = np.zeros(3)
    for robot, scheme in ((arm(), "semi_implicit"), (soft, "implicit")):
        found, told = robot.step(*start, tau, 1e-3), robot.step(*start, tau, 1e-3, scheme)
        assert np.array_equal(found[1], told[1])


def test_robots_without_such_data_are_not_touched() -> None:
    """The same bits with and without the switch."""
    robot = arm()
    q, v = np.full((4, 3), 0.2), np.ones((4, 3))
    for scheme in ("rk4", "semi_implicit", "implicit", "euler"):
        a, b = (
            robot.simulate(q, v, dt=1e-3, steps=20, scheme=scheme, passive=p) for p in (True, False)
        )
        assert np.array_equal(a.q, b.q)
        assert a.passive == b.passive == ()
    inside = arm(lower=-3.0, upper=3.0)
    a, b = (inside.simulate(q, v, dt=1e-3, steps=20, passive=p) for p in (True, False))
    assert np.array_equal(a.q, b.q)
    assert a.passive == ("limits",)


def test_what_cannot_be_is_refused_with_the_way_out() -> None:
    """Schemes without fixed steps and friction; loops and implicit damping; unknown words."""
    robot = slider(friction=1.0, damping=0.1)
    for scheme in ("dopri5", "implicit_midpoint"):
        with pytest.raises(ArgumentError, match=r"passive=\{'springs', 'damping'\}"):
            robot.simulate([0.0], [0.0], dt=0.1, duration=1.0, scheme=scheme)
        sim = robot.simulate([0.0], [1.0], dt=0.1, duration=1.0, scheme=scheme, passive={"damping"})
        decay = 0.1
        weight = 9.81 * math.sin(SLOPE)
        final = weight / decay + (1.0 - weight / decay) * math.exp(-decay)
        assert abs(sim.v[-1, 0] - final) < 1e-4
    short = slider(lower=-1.0, upper=1.0)
    inside = short.simulate([0.0], [0.0], dt=0.1, duration=0.5, scheme="dopri5")
    assert inside.passive == ("limits",)
    with pytest.raises(ArgumentError, match=r"joint 'rail' .* goes beyond its limit"):
        short.simulate([0.0], [0.0], dt=0.1, duration=1.0, scheme="dopri5")
    with pytest.raises(ArgumentError, match="steps v only"):
        robot.simulate([0.0], [0.0], dt=0.1, steps=1, scheme="implicit", variables="zeta")
    with pytest.raises(phistar.errors.UnknownNameError):
        robot.simulate([0.0], [0.0], dt=0.1, steps=1, passive={"rubber"})


def test_bad_samples_keep_the_others() -> None:
    """NaN in one lane: nothing lost, the others the same bits."""
    robot = arm(friction=0.1, lower=-0.5, upper=0.5)
    q, v = np.full((6, 3), 0.1), np.ones((6, 3))
    whole = robot.simulate(q, v, dt=1e-3, steps=100, scheme="implicit")
    v[2] = np.nan
    some = robot.simulate(q, v, dt=1e-3, steps=100, scheme="implicit", on_error="nan")
    assert some.ok.tolist() == [True, True, False, True, True, True]
    assert np.array_equal(np.delete(some.q, 2, 1), np.delete(whole.q, 2, 1))


@pytest.mark.parametrize("scheme", ["semi_implicit", "implicit"])
def test_wrenches_of_samples_stay_with_them_at_limits(scheme: str) -> None:
    """Where some samples of a batch come to a limit, and each has a wrench of its own, steps and
    motions are those of the samples alone, to the bit."""
    robot = slider(damping=0.1, lower=-1.0, upper=0.01)
    v = np.array([[[0.0], [9.0]], [[1.0], [-1.0]]])
    q, push = np.zeros((2, 2, 1)), {"block": np.arange(24.0).reshape(2, 2, 6)}
    ahead = robot.step(q, v, 0 * v, 1e-2, scheme, forces=push)
    sim = robot.simulate(q, v, dt=1e-2, steps=2, scheme=scheme, forces=push)
    assert (ahead[0] == 0.01).sum() == 2
    for i in np.ndindex(2, 2):
        own = {"block": push["block"][i]}
        alone = robot.step(q[i], v[i], 0 * v[i], 1e-2, scheme, forces=own)
        assert np.array_equal(ahead[0][i], alone[0])
        assert np.array_equal(ahead[1][i], alone[1])
        motion = robot.simulate(q[i], v[i], dt=1e-2, steps=2, scheme=scheme, forces=own)
        assert np.array_equal(sim.v[:, *i], motion.v)


def test_loops_rub_and_stop_too() -> None:
    """A four-bar with friction stands; with a limit it stops there; loops stay closed."""
    text = phistar.robots.path("four_bar").read_text()
    robot = phistar.load(text.encode())
    q = robot.assemble(robot.home)
    sim = robot.simulate(q, np.zeros(robot.nv), dt=1e-3, duration=0.2, passive=False)
    assert abs(sim.q[-1, 0] - q[0]) > 1e-3
    with_friction = text.replace("</joint>", '<dynamics damping="0.0" friction="1e3"/></joint>')
    stuck = phistar.load(with_friction.encode())
    still = stuck.simulate(q, np.zeros(stuck.nv), dt=1e-3, duration=0.05)
    assert still.passive[-1] in ("friction", "limits")
    assert np.abs(still.q - q).max() < 1e-9


def test_a_springy_ball_and_hinge_swing_as_in_mujoco() -> None:
    """One second by rk4 and by implicit steps, 1e-6."""
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><worldbody><body><joint name="h" axis="0 1 0" stiffness="9" springref="20"
 damping="0.4"/><inertial mass="1" pos="0 0 -.5" diaginertia=".1 .1 .01"/><body pos="0 0 -1">
<joint name="s" type="slide" axis="0 0 1" stiffness="40" damping="0.6"/>
<inertial mass="1" pos="0.1 0 -.5" diaginertia=".1 .2 .15"/><body><joint type="ball" damping="0.2"/>
<inertial mass="1" pos="0.1 0 -.5" diaginertia=".1 .2 .15"/></body></body></body></worldbody>
</mujoco>"""
    found = compare(phistar.load(text.encode()), mujoco.MjModel.from_xml_string(text))
    assert found.rk4 is not None
    assert found.rk4 < TOLERANCE
    assert found.implicit is not None
    assert found.implicit < TOLERANCE


@needs_shared
@pytest.mark.parametrize(
    "file",
    [
        "arm/mujoco_menagerie__franka_fr3__fr3.xml",
        "quadruped/dm_control__dm_control__third_party__ant__ant.xml",
        "quadruped/mujoco_menagerie__unitree_a1__a1.xml",
    ],
)
def test_reference_robots_swing_as_in_mujoco(file: str) -> None:
    """One second, 1e-6; ``python -m tools.joint_physics`` has all of them."""
    pytest.importorskip("mujoco")
    found = compared(SHARED / "robots" / file)
    assert isinstance(found, Agreement), found
    assert found.rk4 is not None
    assert found.rk4 < TOLERANCE
    assert found.implicit is None or found.implicit < TOLERANCE


@pytest.mark.parametrize("scheme", ["semi_implicit", "rk4"])
def test_a_pendulum_that_hits_its_limits_gains_no_energy(scheme: str) -> None:
    """It swings to and fro between stops, which take energy and never give any."""
    robot = arm(lower=-0.4, upper=0.4)
    start = np.array([0.3, -0.2, 0.1]), np.array([3.0, -2.0, 4.0])
    sim = robot.simulate(*start, dt=1e-3, duration=2.0, scheme=scheme)
    assert np.abs(sim.q).max() <= 0.4
    energy = sim.energy()
    slack = {"semi_implicit": 2e-3, "rk4": 1e-6}[scheme] * np.ptp(energy)
    assert (energy - np.minimum.accumulate(energy)).max() <= slack
    assert energy[0] - energy[-1] > 0.3 * np.ptp(energy)
    many = robot.simulator(1, dt=1e-3)
    many.reset(q=start[0], v=start[1])
    worst = max(float(np.abs(many.step(substeps=5).q).max()) for _ in range(200))
    assert worst - 0.4 < 1e-3
