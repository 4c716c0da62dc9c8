# SPDX-License-Identifier: BSD-3-Clause
"""Edited robots against Pinocchio's tools, robots built by hand and laws of mechanics."""

import math
import pickle
import warnings
from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pinocchio as pin
import pytest

import phistar
from phistar import ModelBuilder, Robot, load
from phistar.arrays import Array
from phistar.errors import ArgumentError, ModelError, ShapeError, UnknownNameError
from phistar.model import Mimic, Model, make_pose
from phistar.model.components import Coupling
from phistar.model.editing.parts import Parts
from phistar.spatial import inertia_matrix, motion_transform

TOLERANCE = 1e-11
"""Relative to the largest number of a result."""


def close(ours: Array, theirs: Array, tolerance: float = TOLERANCE) -> bool:
    """Whether two arrays agree, relative to the largest number."""
    return bool(np.abs(ours - theirs).max() <= tolerance * max(np.abs(theirs).max(), 1e-300))


def peer_of(robot: Robot) -> pin.Model:
    """Pinocchio's model of a robot with a fixed base, from its URDF text."""
    return pin.buildModelFromXML(robot.to_urdf())


def state(robot: Robot, seed: int = 0) -> tuple[Array, Array, Array]:
    """A random state of motion."""
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng)
    return q, rng.normal(size=robot.nv), rng.normal(size=robot.nv)


@pytest.fixture(scope="module")
def panda() -> Robot:
    """Seven joints in a row."""
    return load("panda")


@pytest.fixture(scope="module")
def gripper() -> Robot:
    """A panda's hand: the second finger follows the first."""
    return load("panda_hand")


EDITS: dict[str, Callable[[Robot], Robot]] = {
    "with_payload": lambda r: r.with_payload(r.link_names[-1], 1.5, (0.1, 0, 0.2), (0.01,) * 3),
    "with_frame": lambda r: r.with_frame("probe", r.link_names[-1], make_pose((0.1, 0, 0))),
    "with_parameters": lambda r: r.with_parameters(1.5 * r.parameters),
    "lock": lambda r: r.lock({r.joint_names[-1]: 0.02}),
    "attach": lambda r: r.attach(load("double_pendulum"), r.link_names[-1], prefix="tool_"),
    "without": lambda r: r.without(r.link_names[-1]),
    "with_limits": lambda r: r.with_limits(velocity=1.25, lower={r.joint_names[-1]: -0.5}),
    "with_joint_physics": lambda r: r.with_joint_physics(
        damping=0.5, friction={r.joint_names[-1]: 0.25}, armature={r.joint_names[-1]: 0.125}
    ),
    "scaled": lambda r: r.scaled(2.0),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("name", ["panda", "quadruped"])
def test_a_new_robot_that_can_be_stored(edit: str, name: str) -> None:
    """The old robot stays; the new one says what it is, is pickled and written as URDF."""
    robot = load(name)
    before = robot.model.fingerprint, str(robot.load_report)
    made = EDITS[edit](robot)
    assert (robot.model.fingerprint, str(robot.load_report)) == before
    assert made.model.fingerprint != robot.model.fingerprint
    assert made.load_report.edited[-1].note.endswith(edit) or edit in str(made.load_report)
    assert "edited: 1" in str(made.load_report)
    assert pickle.loads(pickle.dumps(made)).model == made.model
    assert load(made.to_urdf().encode()).model == made.model
    assert set(robot.model.joints) <= set(made.model.joints) or edit == "without"


def test_payload_is_pinocchios(panda: Robot) -> None:
    """Inverse dynamics with a load on a turned frame; Pinocchio adds it to the joint's body."""
    seat = make_pose((0.05, -0.02, 0.1), (0.3, -0.2, 0.5))
    com, inertia = np.array([0.03, 0.01, 0.06]), np.diag([0.02, 0.03, 0.015])
    loaded = panda.with_frame("seat", "panda_link7", seat).with_payload("seat", 2.5, com, inertia)
    assert loaded.nv == panda.nv
    assert "payload" in loaded.link_names
    peer = peer_of(panda)
    body = pin.Inertia(2.5, com, inertia)
    frame = peer.frames[peer.getFrameId("panda_link7")]
    peer.appendBodyToJoint(frame.parentJoint, body, frame.placement * pin.SE3(seat))
    q, v, vdot = state(panda)
    theirs = pin.rnea(peer, peer.createData(), q, v, vdot)
    assert close(loaded.inverse_dynamics(q, v, vdot), theirs)
    assert loaded.without("payload").inverse_dynamics(q, v, vdot) == pytest.approx(
        panda.inverse_dynamics(q, v, vdot), rel=1e-13
    )


def test_payloads_are_numbered_and_quiet(panda: Robot) -> None:
    """Several point masses, no warning; their weight is what gravity adds to the joints."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = panda.with_payload("panda_link7", 1.0).with_payload("panda_link7", 2.0)
    assert {"payload", "payload_2"} <= set(loaded.link_names)
    q = panda.home
    weight = -panda.jacobian(q, "panda_link7").T @ np.array([0, 0, 0, 0, 0, -3.0 * 9.81])
    added = loaded.gravity_force(q) - panda.gravity_force(q)
    assert np.abs(added - weight).max() <= 1e-12 * np.abs(weight).max()


@pytest.mark.parametrize(
    ("bad", "error", "text"),
    [
        (lambda r: r.with_payload("panda_link7", -1.0), ArgumentError, "payload.*-1 kg"),
        (lambda r: r.with_payload("panda_link7", math.nan), ArgumentError, "finite"),
        (lambda r: r.with_payload("panda_link77", 1.0), UnknownNameError, "panda_link7"),
        (lambda r: r.with_payload("panda_link7", 1, inertia=(-1, 1, 1)), ModelError, "payload"),
        (lambda r: r.with_payload("panda_link7", 1, (1, 2)), ArgumentError, "com of link"),
        (lambda r: r.with_payload("panda_link7", 1, name="panda_link1"), ArgumentError, "already"),
        (lambda r: r.with_frame("panda_link1", "panda_link7"), ArgumentError, "already"),
        (lambda r: r.with_frame("x", "panda_link7", 2 * np.eye(4)), ArgumentError, "rotation"),
        (lambda r: r.with_parameters(np.ones(9)), ShapeError, "parameters"),
        (lambda r: r.with_parameters(-r.parameters), ArgumentError, "panda_link1"),
        (lambda r: r.with_parameters(math.nan * r.parameters), ArgumentError, "panda_link1"),
        (lambda r: r.lock({"panda_joint77": 0}), UnknownNameError, "panda_joint7"),
        (lambda r: r.lock({"panda_joint7": [[0.1], [0.2]]}), ArgumentError, "one value"),
        (lambda r: r.lock(["panda_joint7"]), ArgumentError, "dict"),
        (lambda r: r.lock({"panda_joint7": 0}).lock({"panda_joint7": 0}), ArgumentError, "fixed"),
        (lambda r: r.attach(r, "panda_link7"), ArgumentError, "prefix"),
        (lambda r: r.attach("panda", "panda_link7", prefix="b_"), ArgumentError, "str"),
        (lambda r: r.without("panda_link0"), ArgumentError, "nothing"),
        (lambda r: r.without("panda_lnk0"), UnknownNameError, "panda_link0"),
        (lambda r: r.with_limits(lower={"panda_joint1": 9}), ArgumentError, "above"),
        (lambda r: r.with_limits(effort={"panda_joint1": -1}), ArgumentError, "panda_joint1"),
        (lambda r: r.with_limits(velocity=[1, 2]), ShapeError, "velocity"),
        (
            lambda r: r.with_joint_physics(damping=-1),
            ArgumentError,
            "damping.*panda_joint1",
        ),
        (lambda r: r.with_joint_physics(stiffness=math.inf), ArgumentError, "0 means none"),
        (lambda r: r.with_joint_physics(friction=[1, 2]), ShapeError, "friction"),
        (lambda r: r.with_joint_physics(armature={"joint1": 1}), UnknownNameError, "panda_joint1"),
        (lambda r: r.with_limits(upper={"panda_joint1": [1, 2]}), ShapeError, "panda_joint1"),
        (lambda r: r.scaled(0.0), ArgumentError, "above 0"),
        (lambda r: r.scaled(1.0, -2.0), ArgumentError, "mass"),
    ],
)
def test_what_cannot_be_is_refused(
    panda: Robot, bad: Callable[[Robot], Robot], error: type[Exception], text: str
) -> None:
    """Errors name the thing, its value and what was expected."""
    with pytest.raises(error, match=text):
        bad(panda)


def test_frames_on_frames(panda: Robot) -> None:
    """A frame in a frame is where both poses lead."""
    first, second = make_pose((0.1, 0, 0), (0, 0.4, 0)), make_pose((0, 0.2, 0), (0.1, 0, 0))
    made = panda.with_frame("a", "panda_link7", first).with_frame("b", "a", second)
    q = state(panda)[0]
    expected = panda.frame_pose(q, "panda_link7") @ first @ second
    assert np.abs(made.frame_pose(q, "b") - expected).max() <= 1e-13


@pytest.mark.parametrize("name", ["panda_hand", "quadruped", "cartpole"])
def test_parameters_go_round(name: str) -> None:
    """The regressor times new parameters is inverse dynamics of the robot that has them."""
    robot = load(name)
    rng = np.random.default_rng(1)
    factors = rng.uniform(0.5, 2.0, size=(len(robot.model.bodies), 1))
    wanted = (robot.parameters.reshape(-1, 10) * factors).ravel()
    made = robot.with_parameters(wanted)
    assert close(made.parameters, wanted, 1e-13)
    q, v, vdot = state(robot)
    rotors = robot.inverse_dynamics(q, v, vdot) - robot.regressor(q, v, vdot) @ robot.parameters
    expected = robot.regressor(q, v, vdot) @ wanted + rotors
    assert close(made.inverse_dynamics(q, v, vdot), expected)
    assert robot.with_parameters(robot.parameters).model == robot.model


def test_parameters_of_massless_links_between_axes() -> None:
    """A universal joint has a link that carries nothing."""
    builder = ModelBuilder()
    builder.link("base")
    builder.link("arm", 1.0, (0, 0, 0.1), (0.1, 0.1, 0.1))
    builder.joint("u", "universal", "base", "arm", axis=(1, 0, 0), axis2=(0, 1, 0))
    robot = load(builder.build())
    wanted = robot.parameters
    assert close(robot.with_parameters(wanted * 2.0).parameters, 2.0 * wanted)
    wanted[0] = 1.0
    with pytest.raises(ArgumentError, match="massless"):
        robot.with_parameters(wanted)


def test_locking_is_pinocchios_reduced_model(panda: Robot) -> None:
    """Forward and inverse dynamics, and the named configurations without the coordinates."""
    at = {"panda_joint2": 0.4, "panda_joint5": -0.7, "panda_joint7": 0.2}
    made = panda.lock(at)
    assert made.joint_names == tuple(n for n in panda.joint_names if n not in at)
    peer = peer_of(panda)
    full = np.zeros(peer.nq)
    for name, value in at.items():
        full[peer.joints[peer.getJointId(name)].idx_q] = value
    reduced = pin.buildReducedModel(peer, [peer.getJointId(name) for name in at], full)
    q, v, vdot = state(made)
    data = reduced.createData()
    assert close(made.inverse_dynamics(q, v, vdot), pin.rnea(reduced, data, q, v, vdot))
    assert close(made.forward_dynamics(q, v, vdot), pin.aba(reduced, data, q, v, vdot), 1e-9)
    whole = {**made.configuration_dict(q), **at}
    for link in panda.link_names:
        gap = made.frame_pose(q, link) - panda.frame_pose(whole, link)
        assert np.abs(gap).max() <= 1e-13, link


def test_locked_free_base_and_mimics(gripper: Robot) -> None:
    """A free base is locked at a pose, followers with their leaders and not alone."""
    dog = load("quadruped")
    base = [0.1, 0.2, 0.5, 0.0, 0.6, 0.0, 0.8]
    made = dog.lock({"root_joint": base})
    q = made.random_configuration(2)
    whole = np.concatenate([base, q])
    foot = dog.link_names[-1]
    assert np.abs(made.frame_pose(q, foot) - dog.frame_pose(whole, foot)).max() <= 1e-13
    assert close(made.mass_matrix(q), dog.mass_matrix(whole)[6:, 6:])
    follower = next(j for j in gripper.model.joints.values() if j.mimic)
    assert follower.mimic is not None
    leader = follower.mimic.joint
    closed = gripper.lock({leader: 0.01})
    assert closed.nq == gripper.nq - 1
    q = closed.random_configuration(3)
    whole = {**closed.configuration_dict(q), leader: 0.01}
    gap = closed.frame_pose(q, follower.child) - gripper.frame_pose(whole, follower.child)
    assert np.abs(gap).max() <= 1e-13
    with pytest.raises(ArgumentError, match=leader):
        gripper.lock({follower.name: 0.01})


def coupled_arm() -> Robot:
    """Three joints, the second follows the first quadratically."""
    builder = ModelBuilder("coupled")
    builder.link("l0")
    for k in (1, 2, 3):
        builder.link(f"l{k}", 1.0, (0, 0, 0.2), (0.02, 0.02, 0.01))
        builder.joint(f"j{k}", "revolute", f"l{k - 1}", f"l{k}", xyz=(0, 0, 0.4), axis=(0, 1, 0))
    builder.couple(Coupling("link", "j2", "j1", (0.1, 2.0, 0.5)))
    return load(builder.build())


def test_couplings_of_locked_joints() -> None:
    """A locked source holds its joint; a locked follower is refused, unless both fit."""
    arm = coupled_arm()
    held = arm.lock({"j1": 0.2})
    value = 0.1 + 2.0 * 0.2 + 0.5 * 0.04
    assert np.abs(np.asarray(held.loop_error([value, 0.3]))).max() <= 1e-15
    assert np.abs(np.asarray(held.loop_error([value + 0.1, 0.3]))).max() >= 0.05
    assert arm.lock({"j1": 0.2, "j2": value}).loops == ()
    with pytest.raises(ArgumentError, match="lock 'j1' instead"):
        arm.lock({"j2": value})
    with pytest.raises(ArgumentError, match="open by"):
        arm.lock({"j1": 0.2, "j2": 0.0})


def test_loops_of_a_locked_mechanism() -> None:
    """A four-bar whose crank is locked does not move any more; its loop stays."""
    robot = load("four_bar")
    q = robot.assemble(robot.home)
    joint = robot.joint_names[0]
    held = robot.lock({joint: float(q[0])})
    assert len(held.loops) == len(robot.loops)
    assert np.abs(np.asarray(held.loop_error(q[1:]))).max() <= 1e-9
    assert robot.mobility(q).degrees_of_freedom == 1
    assert held.mobility(q[1:]).degrees_of_freedom == 0


def test_attached_robot_is_pinocchios_appended_model(panda: Robot) -> None:
    """An arm on the hand: coordinates are those of both, dynamics Pinocchio's."""
    tool = load("ur5")
    seat = make_pose((0.0, 0.05, 0.1), (0.2, 0.1, 0.0))
    made = panda.attach(tool, "panda_link7", seat, prefix="tool_")
    names = (*panda.joint_names, *(f"tool_{name}" for name in tool.joint_names))
    assert made.joint_names == names
    peer, added = peer_of(panda), peer_of(tool)
    frame = peer.getFrameId("panda_link7")
    for k in range(1, added.njoints):
        added.names[k] = f"tool_{added.names[k]}"
    for each in added.frames:
        each.name = f"tool_{each.name}"
    joined = pin.appendModel(peer, added, frame, pin.SE3(seat))
    q, v, vdot = state(made)
    data = joined.createData()
    assert close(made.inverse_dynamics(q, v, vdot), pin.rnea(joined, data, q, v, vdot))
    assert close(made.forward_dynamics(q, v, vdot), pin.aba(joined, data, q, v, vdot), 1e-9)


def test_attached_in_the_middle_and_configurations() -> None:
    """What is attached inside a tree still comes last; configurations of a name are joined."""
    base, tool = load("quadruped"), load("panda_hand")
    made = base.attach(tool, "base_link", make_pose((0.1, 0, 0.05)), prefix="arm_")
    assert made.joint_names == (*base.joint_names, *(f"arm_{n}" for n in tool.joint_names))
    q, other = base.random_configuration(1), tool.random_configuration(2)
    both = np.concatenate([q, other])
    foot, hand = base.link_names[-1], tool.link_names[-1]
    assert np.abs(made.frame_pose(both, foot) - base.frame_pose(q, foot)).max() <= 1e-13
    seat = base.frame_pose(q, "base_link") @ make_pose((0.1, 0, 0.05))
    expected = seat @ tool.frame_pose(other, hand)
    assert np.abs(made.frame_pose(both, f"arm_{hand}") - expected).max() <= 1e-13
    assert np.array_equal(made.home, np.concatenate([base.home, tool.home]))


def test_robots_stand_beside_each_other() -> None:
    """On ``"world"``: each where its pose says, of URDF (no such frame) and MJCF (a link of that
    name); the mass matrix is that of both, apart."""
    body = b"""<mujoco><worldbody><body name="arm" pos="0 0 1"><joint name="hinge" axis="0 1 0"/>
    <geom type="box" size=".1 .1 .2"/></body></worldbody></mujoco>"""
    seat = make_pose((0.5, -0.2, 0.1), rpy=(0.0, 0.0, 0.4))
    for first in (load(body), load("double_pendulum"), load("quadruped")):
        for second in (load(body), load("double_pendulum"), load("quadruped")):
            made = first.attach(second, "world", seat, prefix="b_")
            q, p = first.random_configuration(1), second.random_configuration(2)
            both, frame = np.r_[q, p], second.link_names[-1]
            there = made.frame_pose(both, f"b_{frame}")
            assert close(there, seat @ second.frame_pose(p, frame))
            M = made.mass_matrix(both)
            assert close(M[: first.nv, : first.nv], first.mass_matrix(q))
            assert close(M[first.nv :, first.nv :], second.mass_matrix(p))
            assert not M[: first.nv, first.nv :].any()


def test_attached_loops_keep_closing() -> None:
    """A four-bar on the hand of an arm: its ground is the hand, its loop error is the same."""
    bar, arm = load("four_bar"), load("ur5")
    made = arm.attach(bar, arm.link_names[-1], make_pose((0, 0, 0.1)), prefix="bar_")
    q = bar.random_configuration(3)
    both = np.concatenate([arm.random_configuration(4), q])
    gap = np.asarray(made.loop_error(both)) - np.asarray(bar.loop_error(q))
    assert np.abs(gap).max() <= 1e-12


def test_removal_takes_subtrees_and_is_exact(panda: Robot) -> None:
    """A robot without a hand is the robot that was built without it."""
    made = panda.without("panda_link6")
    assert made.joint_names == panda.joint_names[:5]
    q, v, vdot = state(made)
    builder = ModelBuilder()
    model = panda.model
    kept = [link for link in model.links if link.name in made.link_names]
    builder.links += kept
    builder.joints += [j for j in model.joints.values() if j.child in made.link_names]
    other = load(builder.build())
    assert close(made.inverse_dynamics(q, v, vdot), other.inverse_dynamics(q, v, vdot), 1e-14)


def test_removal_respects_loops_and_mimics(gripper: Robot) -> None:
    """What connects to what stays is named; a loop that goes as a whole goes."""
    bar = load("four_bar")
    with pytest.raises(ArgumentError, match=bar.loops[0].name):
        bar.without(bar.link_names[-1])
    arm = load("ur5")
    made = arm.attach(bar, arm.link_names[-1], prefix="bar_")
    assert made.without("bar_" + bar.link_names[0]).loops == ()
    follower = next(j for j in gripper.model.joints.values() if j.mimic)
    assert follower.mimic is not None
    leader = gripper.joints[follower.mimic.joint]
    with pytest.raises(ArgumentError, match=follower.name):
        gripper.without(leader.child)
    assert follower.name not in gripper.without(follower.child).model.joints


def test_limits(panda: Robot) -> None:
    """By name, by array, by one number; what is not named stays."""
    made = panda.with_limits(lower={"panda_joint1": -0.5}, velocity=np.arange(1.0, 8.0), effort=50)
    assert made.lower_limits[0] == -0.5
    assert np.array_equal(made.lower_limits[1:], panda.lower_limits[1:])
    assert made.joints["panda_joint3"].limits.velocity == (3.0,)
    assert made.joints["panda_joint3"].limits.effort == (50.0,)
    free = panda.with_limits(lower=-math.inf, upper=math.inf)
    assert not np.isfinite(free.lower_limits).any()


SCALED = ["panda", "quadruped", "cartpole", "panda_hand"]


@pytest.mark.parametrize("name", SCALED)
def test_scaled_robot_moves_alike(name: str) -> None:
    """Froude: at the same place, slower by √l, under moments times m l it accelerates by 1/l."""
    length, mass = 2.5, 4.0
    robot = load(name)
    made = robot.scaled(length, mass)
    kinds = [robot.joints[joint].joint_kind for joint in robot.joint_names]
    in_q = np.concatenate([[length if u == "m" else 1.0 for u in k.q_units] for k in kinds])
    in_v = np.concatenate([[length if u == "m/s" else 1.0 for u in k.v_units] for k in kinds])
    q, v, vdot = state(robot)
    forces = robot.inverse_dynamics(q, v, vdot)
    ours = made.inverse_dynamics(q * in_q, v * in_v / math.sqrt(length), vdot * in_v / length)
    assert close(ours, forces * mass * length / in_v)
    limits = [(robot.lower_limits, made.lower_limits), (robot.upper_limits, made.upper_limits)]
    for old, new in limits:
        finite = np.isfinite(old)
        assert np.allclose(new[finite], (old * in_q)[finite], rtol=1e-14, atol=0)
    assert made.total_mass == pytest.approx(mass * robot.total_mass, rel=1e-13)
    again = made.scaled(1 / length, 1 / mass)
    assert close(again.mass_matrix(q), robot.mass_matrix(q), 1e-13)


def test_scaled_couplings_loops_mimics_and_drives() -> None:
    """What is scaled keeps its loops closed and its springs, rotors and dampers in proportion."""
    builder = ModelBuilder()
    builder.link("l0")
    builder.link("l1", 1.0, (0, 0, 0.2), (0.02, 0.02, 0.01))
    builder.link("l2", 1.0, (0, 0, 0.2), (0.02, 0.02, 0.01))
    drive = {"rotor_inertia": 0.01, "gear_ratio": 3.0, "damping": 0.5, "stiffness": 7.0}
    builder.joint("turn", "revolute", "l0", "l1", axis=(0, 1, 0), **drive)
    builder.joint("slide", "prismatic", "l1", "l2", axis=(1, 0, 0), **drive)
    builder.couple(Coupling("gear", "slide", "turn", (0.1, 0.3)))
    robot = load(builder.build()).tree
    made = robot.scaled(2.0, 3.0)
    turn, slide = made.joints["turn"].drive, made.joints["slide"].drive
    assert turn.reflected_inertia == pytest.approx((0.09 * 12.0,))
    assert slide.reflected_inertia == pytest.approx((0.09 * 3.0,))
    assert (turn.stiffness, slide.stiffness) == (pytest.approx((42.0,)), pytest.approx((10.5,)))
    time = math.sqrt(2.0)
    assert turn.damping == pytest.approx((0.5 * 6.0 * time,))
    assert slide.damping == pytest.approx((0.5 * 1.5 * time,))
    looped = load(builder.build()).scaled(2.0)
    assert np.abs(np.asarray(looped.loop_error([0.2, 2.0 * 0.16]))).max() <= 1e-15
    bar = load("four_bar")
    closed = bar.assemble(bar.home)
    assert np.abs(np.asarray(bar.scaled(3.0).loop_error(closed))).max() <= 1e-8


def test_mixed_mimics_are_scaled() -> None:
    """A slide that follows a turn goes further on a larger robot."""
    builder = ModelBuilder()
    builder.link("l0")
    builder.link("l1", 1.0, (0, 0, 0.2), (0.02, 0.02, 0.01))
    builder.link("l2", 1.0, (0, 0, 0.2), (0.02, 0.02, 0.01))
    builder.joint("turn", "revolute", "l0", "l1", axis=(0, 1, 0))
    builder.joint("slide", "prismatic", "l0", "l2", axis=(1, 0, 0), mimic=Mimic("turn", 0.5, 0.1))
    robot = load(builder.build())
    ours, theirs = (r.frame_pose([0.4], "l2")[0, 3] for r in (robot.scaled(3.0), robot))
    assert ours == pytest.approx(3.0 * theirs, rel=1e-15)


def test_edits_of_edits_are_all_said(panda: Robot) -> None:
    """The report lists every edit in order, and says what the file said."""
    made = panda.with_payload("panda_link7", 1.0).lock({"panda_joint7": 0.1}).scaled(1.5)
    assert [entry.what for entry in made.load_report.edited] == [
        "link 'payload'",
        "locked joints",
        "size",
    ]
    assert made.load_report.read == panda.load_report.read
    assert "panda_joint7 = 0.1" in str(made.load_report)


def test_lumped_inertia_of_welded_links(panda: Robot) -> None:
    """The links of a body that changed count with its first; others keep theirs."""
    loaded = panda.with_payload("panda_link7", 1.0, (0, 0, 0.1), (0.01, 0.01, 0.01))
    rows = loaded.parameters.reshape(-1, 10).copy()
    rows[6] *= 1.1
    made = loaded.with_parameters(rows)
    assert made.links["payload"].mass == 0.0
    assert "payload" in made.load_report.edited[-1].note
    assert made.links["panda_link3"].mass == loaded.links["panda_link3"].mass
    # Kinetic energy is half v* M v of the body's own inertia, whatever link has it.
    q, v, _ = state(panda)
    twist = panda.frame_velocity(q, v, "panda_link7", "local")
    body = made.model.frames["panda_link7"].body_pose
    moved = motion_transform(body) @ twist
    extra = 0.5 * moved @ inertia_matrix(rows[6] - loaded.parameters.reshape(-1, 10)[6]) @ moved
    assert made.kinetic_energy(q, v) - loaded.kinetic_energy(q, v) == pytest.approx(extra, rel=1e-9)


def test_new_doubts_are_warned_of(panda: Robot) -> None:
    """Parameters that no solid has are said once, in the warning and in the report."""
    rows = panda.parameters.reshape(-1, 10).copy()
    rows[6, 4:] = [0.01, 0, 0, 0.01, 0, 0.2]
    rows[6, 1:4] = 0.0
    with pytest.warns(phistar.errors.InertiaWarning, match="panda_link7"):
        made = panda.with_parameters(rows)
    assert any("panda_link7" in str(p) for p in made.load_report.warnings)


def test_parts_are_all_of_a_model() -> None:
    """A field that a model gets must be a part, or edits would drop it."""
    made_again = {"bodies", "joint_names", "problems"}
    parts = {each.name for each in fields(Parts)} - {"order"}
    assert parts == {each.name for each in fields(Model)} - made_again


def driven_arm() -> Robot:
    """A turn and a slide with a motor, servos, and a tendon over both."""
    builder = ModelBuilder("driven")
    builder.link("l0")
    for k, kind in ((1, "revolute"), (2, "prismatic")):
        builder.link(f"l{k}", 1.0, (0, 0, 0.2), (0.02, 0.02, 0.01))
        builder.joint(f"j{k}", kind, f"l{k - 1}", f"l{k}", axis=(0, 1, 0))
    builder.actuator("motor", "j1", gear=2.0, forcerange=(-3.0, 3.0))
    builder.actuator("servo", "j2", gain=(5.0, 0, 0), bias=(0, -5.0, -0.4))
    builder.actuator("speed", "j1", gain=(0.7, 0, 0), bias=(0, 0, -0.7))
    builder.actuator("tendon", ("j1", "j2"), gear=(0.5, 2.0), gain=(1, 0.2, 0.1), bias=(1, 2, 3))
    return load(builder.build())


def joint_forces(robot: Robot, q: Array, v: Array, ctrl: dict[str, float]) -> dict[str, float]:
    """Forces of all actuators on the joints, by the law as it is written."""
    at, moving = robot.configuration_dict(q), robot.tangent_dict(v)
    total = dict.fromkeys(robot.joint_names, 0.0)
    for each in robot.model.actuators:
        rows = list(zip(each.joints, each.gear, strict=True))
        length = sum(gear * float(at[joint]) for joint, gear in rows)
        rate = sum(gear * float(moving[joint]) for joint, gear in rows)
        gain, bias = (x[0] + x[1] * length + x[2] * rate for x in (each.gain, each.bias))
        force = float(np.clip(gain * ctrl[each.name] + bias, *each.forcerange))
        for joint, gear in rows:
            total[joint] += gear * force
    return total


CONTROL = {"motor": 0.4, "servo": 0.3, "speed": -0.6, "tendon": 1.2}


def test_actuators_of_locked_joints() -> None:
    """The joint that is left feels the same; an actuator of the locked one alone is gone."""
    arm = driven_arm()
    held = arm.lock({"j1": 0.3})
    assert [each.name for each in held.model.actuators] == ["servo", "tendon"]
    ours = joint_forces(held, [0.2], [0.5], CONTROL)
    theirs = joint_forces(arm, [0.3, 0.2], [0.0, 0.5], CONTROL)
    assert ours["j2"] == pytest.approx(theirs["j2"], rel=1e-14)


def test_actuators_go_with_their_joints() -> None:
    """Whole actuators go or stay; attached ones are renamed."""
    arm = driven_arm()
    with pytest.raises(ArgumentError, match="'tendon'"):
        arm.without("l2")
    both = load("panda").attach(arm, "panda_link8", prefix="tool_")
    assert [each.name for each in both.model.actuators] == [f"tool_{name}" for name in CONTROL]
    assert both.model.actuators[3].joints == ("tool_j1", "tool_j2")
    assert both.without("tool_l0").model.actuators == ()
    assert load(both.to_urdf().encode()).model == both.model


def test_actuators_of_a_scaled_robot() -> None:
    """Forces grow as those that move it alike: times m l on turns, times m on slides."""
    length, mass = 2.0, 3.0
    arm = driven_arm()
    made = arm.scaled(length, mass)
    root = math.sqrt(length)
    q, v = np.array([0.3, 0.2]), np.array([-0.4, 0.5])
    slower = {**CONTROL, "speed": CONTROL["speed"] / root}
    stretch = np.array([1.0, length])
    ours = joint_forces(made, q * stretch, v * stretch / root, slower)
    theirs = joint_forces(arm, q, v, CONTROL)
    # Of the tendon's gain the part per rate is taken along, too.
    assert ours["j1"] == pytest.approx(theirs["j1"] * mass * length, rel=1e-13)
    assert ours["j2"] == pytest.approx(theirs["j2"] * mass, rel=1e-13)
    assert [each.kind for each in made.model.actuators] == [x.kind for x in arm.model.actuators]
