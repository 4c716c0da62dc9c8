# SPDX-License-Identifier: BSD-3-Clause
"""MJCF documents become the robots that MuJoCo makes of them."""

import math
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from phistar.errors import ArgumentError, MissingExtraError, ModelError
from phistar.loaders.load_report import LoadReport
from phistar.loaders.mjcf.mjcf_reader import read_mjcf
from phistar.loaders.robot_source import Source
from phistar.model.components import Coupling, LoopJoint
from phistar.model.model import Model
from phistar.model.numpy_kinematics import jacobian, link_poses
from phistar.spatial import inertia_parameters, quat_to_rotation, transform_inertia

TOLERANCE = 1e-12
INERTIAL = '<inertial pos="0.1 0.2 0.3" mass="2" fullinertia="0.3 0.4 0.5 0.02 0.03 0.01"/>'


def document(worldbody: str, rest: str = "", head: str = "") -> str:
    """A document with the given bodies, and other sections before and after them."""
    return f'<mujoco model="t">{head}<worldbody>{worldbody}</worldbody>{rest}</mujoco>'


def body(inside: str, attributes: str = 'name="a"') -> str:
    """A body with an inertia of full rank."""
    return f"<body {attributes}>{inside}{INERTIAL}</body>"


def read(text: str, **options: object) -> tuple[Model, LoadReport]:
    """Our reading of a document."""
    return read_mjcf(Source(text.encode(), "t.xml"), **options)  # type: ignore[arg-type]


def random_state(model: mujoco.MjModel, seed: int) -> tuple[mujoco.MjData, NDArray[np.float64]]:
    """MuJoCo's data at a random configuration, and that configuration in our convention."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    data.qpos[:] = rng.normal(size=model.nq)
    mujoco.mj_normalizeQuat(model, data.qpos)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    return data, ours(model, data.qpos)


def ours(model: mujoco.MjModel, qpos: NDArray[np.float64]) -> NDArray[np.float64]:
    """MuJoCo's configuration with quaternions turned from wxyz to xyzw."""
    q = np.array(qpos)
    for kind, start in zip(model.jnt_type, model.jnt_qposadr, strict=True):
        at = {0: start + 3, 1: start}.get(int(kind))
        if at is not None:
            q[at : at + 4] = np.roll(qpos[at : at + 4], -1)
    return q


def velocity_matrix(model: mujoco.MjModel, data: mujoco.MjData) -> NDArray[np.float64]:
    """S with v(MuJoCo) = S v(ours): a free joint has its linear velocity first, in world axes."""
    matrix = np.eye(model.nv)
    for joint, kind in enumerate(model.jnt_type):
        if kind == 0:
            at = int(model.jnt_dofadr[joint])
            block = np.zeros((6, 6))
            block[:3, 3:] = data.xmat[model.jnt_bodyid[joint]].reshape(3, 3)
            block[3:, :3] = np.eye(3)
            matrix[at : at + 6, at : at + 6] = block
    return matrix


def compare(text: str, seed: int = 0) -> tuple[Model, mujoco.MjModel]:
    """Sizes, orders, poses, Jacobians and inertias of all bodies agree with MuJoCo's."""
    model, _ = read(text)
    peer = mujoco.MjModel.from_xml_string(text)
    assert (model.nq, model.nv) == (peer.nq, peer.nv)
    assert len(model.link_names) == peer.nbody
    assert [model.joints[n].q_slice.start for n in model.joint_names] == list(peer.jnt_qposadr)
    data, q = random_state(peer, seed)
    poses = link_poses(model, q)
    turn = velocity_matrix(peer, data)
    for index, name in enumerate(model.link_names):
        pose = poses[name]
        np.testing.assert_allclose(pose[:3, 3], data.xpos[index], atol=TOLERANCE)
        np.testing.assert_allclose(pose[:3, :3].ravel(), data.xmat[index], atol=TOLERANCE)
        linear, angular = np.zeros((2, 3, peer.nv))
        mujoco.mj_jacBody(peer, data, linear, angular, index)
        expected = np.concatenate([angular, linear]) @ turn
        np.testing.assert_allclose(jacobian(model, q, name), expected, atol=TOLERANCE)
        np.testing.assert_allclose(
            world_inertia(model, name, pose), peer_inertia(peer, data, index), atol=TOLERANCE
        )
    return model, peer


def world_inertia(model: Model, name: str, pose: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ten inertia parameters of a link about the world's origin."""
    link = model.link(name)
    own = inertia_parameters(link.mass, link.com, link.inertia)
    return np.asarray(transform_inertia(pose, own))


def peer_inertia(peer: mujoco.MjModel, data: mujoco.MjData, index: int) -> NDArray[np.float64]:
    """The same from MuJoCo's inertial frame (ximat, xipos) and principal moments."""
    axes = data.ximat[index].reshape(3, 3)
    inertia = axes @ np.diag(peer.body_inertia[index]) @ axes.T
    return np.asarray(inertia_parameters(peer.body_mass[index], data.xipos[index], inertia))


KINDS = {
    "hinge": '<joint type="hinge" axis="1 2 3" pos="0.1 -0.2 0.3"/>',
    "slide": '<joint type="slide" axis="1 -2 3" pos="0.1 -0.2 0.3"/>',
    "ball": '<joint type="ball" pos="0.1 -0.2 0.3"/>',
    "free": "<freejoint/>",
    "hinge with ref": '<joint type="hinge" axis="1 2 3" pos="0.1 -0.2 0.3" ref="40"/>',
    "slide with ref": '<joint type="slide" axis="1 2 3" ref="0.7"/>',
    "three hinges": '<joint axis="1 0 0" pos="0 0 1"/><joint axis="0 1 0"/><joint pos="1 1 0"/>',
    "slides and ball": '<joint type="slide"/><joint type="slide" axis="1 0 0"/>'
    '<joint type="ball" pos="0.3 0 0"/>',
}


@pytest.mark.parametrize("kind", KINDS)
def test_joint_moves_as_in_mujoco(kind: str) -> None:
    """A body on each kind of joint, with a joint above and one below, is where MuJoCo puts it."""
    tip = body('<joint axis="0 1 1"/>', 'name="tip" pos="0.4 0.5 0.6" quat="1 2 3 4"')
    text = body(KINDS[kind] + tip, 'name="a" pos="1 2 3" euler="10 20 30"')
    if kind != "free":
        text = body(f'<joint axis="1 1 0" pos="0 0 0.2"/>{text}', 'name="base" pos="0 0 1"')
    compare(document(text))


def test_order_and_forest() -> None:
    """Several trees, welded and mocap bodies keep MuJoCo's order of bodies and joints."""
    text = document(
        body("<freejoint name='f1'/>" + body("<joint name='h1'/>", "name='a1'"), "name='a'")
        + body(body("<joint name='h2' type='ball'/>", "name='c' pos='0 1 0'"), "name='b'")
        + "<body name='m' mocap='true' pos='1 1 1'><geom size='0.1'/></body>"
        + body("<joint name='s' type='slide'/><joint name='h3'/>", "name='d'")
        + body("<freejoint name='f2'/>", "name='e'")
    )
    model, peer = compare(text)
    assert model.link_names == ("world", "a", "a1", "b", "c", "m", "d", "e")
    assert model.joint_names == tuple(peer.joint(i).name for i in range(peer.njnt))
    assert model.joints["b_fixed"].kind == "fixed"
    assert [link.name for link in model.links if link.virtual] == ["d/s"]


def test_frames_and_defaults_are_resolved() -> None:
    """<frame>, default classes, fromto and angles in degrees are MuJoCo's business and come out
    right."""
    head = '<default><joint axis="0 1 0" damping="3"/><default class="x"><geom density="500"/>'
    head += "</default></default>"
    inner = (
        '<joint name="j"/><geom class="x" type="capsule" fromto="0 0 0 0.3 0.2 0.1" size="0.05"/>'
    )
    frame = (
        f'<frame pos="1 0 0" euler="0 90 0"><body name="a" childclass="x">{inner}</body></frame>'
    )
    model, peer = compare(document(frame, head=head))
    assert model.joints["j"].joint_kind.motion_map()[:3, 0].tolist() == [0.0, 1.0, 0.0]
    assert model.joints["j"].drive.damping == (3.0,)
    assert model.link("a").mass == peer.body_mass[1]


def test_replicate_makes_named_copies() -> None:
    """<replicate> within the limit gives MuJoCo's copies and names."""
    copied = body("<freejoint/>", 'name="r"')
    text = document(f'<replicate count="3" offset="1 0 0">{copied}</replicate>')
    model, peer = compare(text)
    assert model.link_names[1:] == tuple(peer.body(i).name for i in range(1, 4))


def test_limits() -> None:
    """Limits are MuJoCo's; an unlimited hinge is continuous, a ball's limit is reported."""
    joints = (
        '<joint name="h" range="-30 60"/><joint name="u" axis="0 1 0"/>'
        '<joint name="s" type="slide" range="-0.1 0.2" actuatorfrcrange="-3 4"/>'
    )
    ball = body('<joint name="b" type="ball" range="0 45"/>', 'name="c"')
    model, report = read(document(body(joints + ball)))
    hinge, slide = model.joints["h"].limits, model.joints["s"].limits
    np.testing.assert_allclose((*hinge.lower, *hinge.upper), (-math.pi / 6, math.pi / 3))
    assert (slide.lower, slide.upper, slide.effort) == ((-0.1,), (0.2,), (4.0,))
    assert [model.joints[n].kind for n in "husb"] == [
        "revolute",
        "continuous",
        "prismatic",
        "spherical",
    ]
    assert model.joints["u"].limits.upper == (math.inf,)
    assert model.joints["b"].limits.upper == (math.inf,) * 4
    assert any('joint "b": range' in entry.what for entry in report.ignored)


def test_drive_of_a_hinge() -> None:
    """Armature, damping, friction and spring of a joint are kept, with its rest position."""
    text = body(
        '<joint name="j" armature="0.1" damping="2" frictionloss="3" stiffness="4" springref="90"/>'
    )
    model, _ = read(document(text))
    drive = model.joints["j"].drive
    assert (drive.armature, drive.damping, drive.friction) == ((0.1,), (2.0,), (3.0,))
    assert drive.stiffness == (4.0,)
    np.testing.assert_allclose(drive.spring_reference, math.pi / 2)


def test_actuator_armature_adds_to_the_mass_matrix() -> None:
    """What actuators add to a joint's inertia and damping is gear^2 times their own."""
    actuators = (
        '<actuator><motor joint="j" gear="3" armature="0.5" damping="2"/>'
        '<motor joint="j" gear="2" armature="0.1" damping="1"/></actuator>'
    )
    text = document(body('<joint name="j" armature="0.2" damping="0.3"/>'), actuators)
    model, _ = read(text)
    peer = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(peer)
    data.qvel[:] = 1.0
    mujoco.mj_forward(peer, data)
    mass = np.zeros((1, 1))
    mujoco.mj_fullM(peer, data, mass)
    bare = mujoco.MjModel.from_xml_string(document(body("<joint/>")))
    rigid = mujoco.MjData(bare)
    mujoco.mj_forward(bare, rigid)
    alone = np.zeros((1, 1))
    mujoco.mj_fullM(bare, rigid, alone)
    np.testing.assert_allclose(model.joints["j"].drive.armature, (mass - alone)[0], rtol=1e-12)
    np.testing.assert_allclose(model.joints["j"].drive.damping, -data.qfrc_passive, rtol=1e-12)


def test_free_joint_drive_is_angular_first() -> None:
    """A free joint's numbers per velocity come in our order, its spring rest with quaternion
    xyzw."""
    text = body(
        '<joint name="f" type="free" armature="0.5"/>', 'name="a" pos="1 2 3" euler="0 0 90"'
    )
    model, _ = read(document(text))
    drive = model.joints["f"].drive
    assert drive.armature == (0.5,) * 6
    half = math.sqrt(0.5)
    np.testing.assert_allclose(drive.spring_reference, [1, 2, 3, 0, 0, half, half], atol=1e-15)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("", [0, 0, -9.81]),
        ('<option gravity="1 2 3"/>', [1, 2, 3]),
        ('<option gravity="1 2 3"><flag gravity="disable"/></option>', [0, 0, 0]),
    ],
)
def test_gravity(head: str, expected: list[float]) -> None:
    """Gravity is the file's, and none where a flag switches it off, which is said."""
    model, report = read(document(body("<joint/>"), head=head))
    assert model.gravity.tolist() == expected
    assert any(p.code == "gravity-off" for p in report.problems) == ("flag" in head)
    assert read(document("", head=head), gravity=(0, 0, -1))[0].gravity.tolist() == [0, 0, -1]


def test_flags_switch_passive_forces_off() -> None:
    """Springs, damping and friction that a flag disables are zero, as in MuJoCo."""
    head = '<option><flag spring="disable" damper="disable" frictionloss="disable"/></option>'
    joint = '<joint name="j" stiffness="1" damping="2" frictionloss="3"/>'
    model, report = read(document(body(joint), head=head))
    drive = model.joints["j"].drive
    assert (drive.stiffness, drive.damping, drive.friction) == ((0.0,), (0.0,), (0.0,))
    assert sum("switched off" in entry.note for entry in report.used) == 3


def test_keyframes_and_home() -> None:
    """Keyframes become configurations in our order; qpos0 is "home"."""
    bodies = body('<freejoint/><body pos="0 0 1"><joint type="ball"/><geom size="1"/></body>')
    bodies += body('<joint ref="90"/>', 'name="h"')
    keys = '<keyframe><key name="k" qpos="1 2 3 0 1 0 0 0 0 2 0 5"/><key/></keyframe>'
    model, peer = compare(document(bodies, keys))
    assert set(model.configurations) == {"home", "k", "key_1"}
    assert model.configurations["k"].tolist() == [1, 2, 3, 1, 0, 0, 0, 0, 1, 0, 0, 5]
    np.testing.assert_array_equal(model.configurations["home"], ours(peer, peer.qpos0))
    np.testing.assert_array_equal(model.configurations["key_1"], model.configurations["home"])


def test_keyframe_named_home_wins() -> None:
    """A keyframe called "home" keeps its name, and qpos0 is called so."""
    keys = '<keyframe><key name="home" qpos="0.5"/></keyframe>'
    model, _ = read(document(body("<joint/>"), keys))
    assert model.configurations["home"].tolist() == [0.5]
    assert model.configurations["qpos0"].tolist() == [0.0]


def test_sites_are_frames() -> None:
    """A site is a frame where MuJoCo has it; one with a body's name is called site:NAME."""
    sites = '<site name="tip" pos="1 2 3" quat="1 1 0 0"/><site name="a"/><site/>'
    text = document(body(f"<joint/>{sites}"))
    model, report = read(text)
    peer = mujoco.MjModel.from_xml_string(text)
    data, q = random_state(peer, 1)
    assert model.frame_names == ("world", "a", "tip", "site:a", "site_2")
    frame = model.frame("tip")
    pose = link_poses(model, q)["a"] @ frame.pose
    np.testing.assert_allclose(pose[:3, 3], data.site_xpos[0], atol=TOLERANCE)
    np.testing.assert_allclose(pose[:3, :3].ravel(), data.site_xmat[0], atol=TOLERANCE)
    assert any("site:a" in entry.note for entry in report.used)


def test_unnamed_parts_get_stable_unique_names() -> None:
    """Names are made from MuJoCo's ids and avoid those the file gives."""
    text = document(body("<joint/>" + body('<joint name="joint_0"/>', ""), 'name="body_2"'))
    model, report = read(text)
    assert model.link_names == ("world", "body_2", "body_2_")
    assert model.joint_names == ("joint_0_", "joint_0")
    assert [entry.what for entry in report.defaulted if "unnamed" in entry.what] == [
        "unnamed body 2",
        "unnamed joint 0",
    ]


def equality_gap(peer: mujoco.MjModel, data: mujoco.MjData, index: int) -> float:
    """Largest violation of one equality constraint as MuJoCo computes it."""
    mujoco.mj_fwdPosition(peer, data)
    rows = data.efc_id[: data.nefc] == index
    return float(np.abs(data.efc_pos[: data.nefc][rows]).max())


LOOPS = {
    "connect": '<connect name="c" body1="a" body2="b" anchor="0.1 0.2 0.3"/>',
    "connect to the world": '<connect name="c" body1="b" anchor="0.1 0.2 0.3"/>',
    "weld": '<weld name="c" body1="a" body2="b" anchor="0.2 0.1 0"/>',
    "weld with relpose": '<weld name="c" body1="a" body2="b" relpose="1 2 3 1 1 0 0"/>',
    "sites": '<connect name="c" site1="sa" site2="sb"/>',
    "weld of sites": '<weld name="c" site1="sa" site2="sb"/>',
}


@pytest.mark.parametrize("kind", LOOPS)
def test_loop_frames_meet_where_mujoco_is_satisfied(kind: str) -> None:
    """The two frames of a loop coincide exactly when MuJoCo's constraint is satisfied."""
    bodies = body(
        '<freejoint/><site name="sa" pos="0 1 0" quat="1 2 0 0"/>', 'name="a" pos="1 0 0"'
    )
    bodies += body(
        '<freejoint/><site name="sb" pos="1 0 0"/>', 'name="b" pos="0 2 0" euler="9 8 7"'
    )
    text = document(bodies, f"<equality>{LOOPS[kind]}</equality>")
    model, _ = read(text)
    (loop,) = model.loops
    assert isinstance(loop, LoopJoint)
    assert loop.kind == ("weld" if "weld" in kind else "spherical")
    peer = mujoco.MjModel.from_xml_string(text)
    data, q = random_state(peer, 2)
    if loop.successor == "world":
        meet = loop.successor_pose @ np.linalg.inv(loop.predecessor_pose)
        moved = model.link_names.index(loop.predecessor)
    else:
        first = link_poses(model, q)[loop.predecessor]
        meet = first @ loop.predecessor_pose @ np.linalg.inv(loop.successor_pose)
        moved = model.link_names.index(loop.successor)
    assert equality_gap(peer, data, 0) > 0.1
    start = int(peer.jnt_qposadr[peer.body_jntadr[moved]])
    data.qpos[start : start + 3] = meet[:3, 3]
    mujoco.mju_mat2Quat(
        data.qpos[start + 3 : start + 7], np.ascontiguousarray(meet[:3, :3]).ravel()
    )
    assert equality_gap(peer, data, 0) < 1e-12


def test_joint_equality_is_a_coupling() -> None:
    """A joint constraint keeps its polynomial and the references of both joints."""
    bodies = body('<joint name="x" ref="90"/>') + body(
        '<joint name="y" type="slide" ref="0.5"/>', ""
    )
    equality = (
        '<equality><joint name="c" joint1="y" joint2="x" polycoef="1 2 3 4 5"/>'
        '<joint joint1="x" polycoef="0.3 0 0 0 0" active="false"/></equality>'
    )
    text = document(bodies, equality)
    model, _ = read(text)
    law, hold = model.loops
    assert isinstance(law, Coupling)
    assert isinstance(hold, Coupling)
    assert (law.name, law.joint, law.source) == ("c", "y", "x")
    assert (hold.source, hold.coefficients, hold.active) == ("", (0.3,), False)
    peer = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(peer)
    data.qpos[0] = 0.9
    powers = (0.9 - law.references[1]) ** np.arange(5)
    data.qpos[1] = law.references[0] + powers @ np.array(law.coefficients)
    assert equality_gap(peer, data, 0) < 1e-12
    np.testing.assert_allclose(law.references, (0.5, math.pi / 2))


def test_flags_switch_loops_off() -> None:
    """Constraints that a flag disables are kept but not active; unknown kinds are warned of."""
    tendons = '<tendon><fixed name="t"><joint joint="x" coef="1"/></fixed></tendon>'
    equality = '<equality><connect body1="a" anchor="0 0 0"/><tendon tendon1="t"/></equality>'
    head = '<option><flag equality="disable"/></option>'
    model, report = read(document(body('<joint name="x"/>'), tendons + equality, head))
    assert [loop.active for loop in model.loops] == [False]
    assert [p.code for p in report.warnings] == ["equality-kind"]


def test_geoms_are_shapes() -> None:
    """Primitives keep size, place and colour; groups and contact flags sort them."""
    geoms = (
        '<geom name="box" type="box" size="0.1 0.2 0.3" pos="1 2 3" rgba="1 0 0 1"/>'
        '<geom name="seen" type="capsule" size="0.1 0.2" contype="0" conaffinity="0"/>'
        '<geom name="felt" type="sphere" size="0.1" group="3" material="m" friction="0.4"/>'
        '<geom name="lost" size="0.1" group="4" contype="0" conaffinity="0"/>'
    )
    head = '<asset><material name="m" rgba="0 1 0 1"/></asset>'
    model, report = read(document(body(f"<joint/>{geoms}"), head=head))
    link = model.link("a")
    assert [shape.name for shape in link.visuals] == ["box", "seen"]
    assert [shape.name for shape in link.collisions] == ["box", "felt"]
    box, seen = link.visuals
    assert box.size == pytest.approx((0.2, 0.4, 0.6))
    assert box.pose[:3, 3].tolist() == [1, 2, 3]
    assert box.rgba == (1, 0, 0, 1)
    assert seen.size == pytest.approx((0.1, 0.4))
    assert link.collisions[1].rgba == (0, 1, 0, 1)
    assert [shape.friction for shape in link.collisions] == [1.0, 0.4]
    assert any(entry.what == "1 geoms" for entry in report.ignored)


def test_floating_base() -> None:
    """The only body welded to the world gets a free joint, and configurations its place."""
    text = document(body(body("<joint name='j'/>", "name='b'"), 'name="a" pos="1 2 3"'))
    model, _ = read(text, floating_base=True)
    assert model.joint_names == ("root_joint", "j")
    assert model.configurations["home"].tolist() == [1, 2, 3, 0, 0, 0, 1, 0]
    fixed, _ = read(text)
    moved = link_poses(model, model.configurations["home"])["b"]
    np.testing.assert_allclose(moved, link_poses(fixed, np.zeros(1))["b"], atol=TOLERANCE)


@pytest.mark.parametrize("bodies", ["", body("<freejoint/>"), body("") + body("", "name='b'")])
def test_floating_base_needs_one_welded_body(bodies: str) -> None:
    """Where there is none or more than one, the error says what is there."""
    with pytest.raises(ArgumentError, match="exactly one body"):
        read(document(bodies), floating_base=True)


def test_report_says_what_matters_is_ignored() -> None:
    """What MuJoCo's dynamics has and a rigid-body model has not is warned of, by name."""
    head = '<option density="1.2" viscosity="0.1" timestep="0.01"/>'
    bodies = body(
        '<joint name="j" damping="1 2" margin="0.1"/><camera/><light/>', 'name="a" gravcomp="1"'
    )
    rest = (
        '<tendon><fixed name="t" armature="0.1" stiffness="3"><joint joint="j" coef="1"/></fixed>'
        '</tendon><actuator><motor joint="j"/></actuator><sensor><jointpos joint="j"/></sensor>'
    )
    _, report = read(document(bodies, rest, head))
    codes = {"tendon-armature", "tendon-forces", "gravcomp", "fluid", "nonlinear-joint"}
    assert {p.code for p in report.warnings} == codes
    ignored = " ".join(entry.what for entry in report.ignored)
    assert "1 actuator" in {entry.what for entry in report.used}
    for word in ("sensor: jointpos", "camera", "light", "option: timestep"):
        assert word in ignored
    assert report.format == "mjcf"
    assert report.read["joint"] == 2


def test_computed_inertia_is_reported() -> None:
    """An inertia that MuJoCo computes from geoms is listed as defaulted."""
    text = document('<body name="a"><joint/><geom size="0.1"/></body>')
    _, report = read(text)
    (entry,) = [e for e in report.defaulted if "inertia" in e.what]
    assert entry.what == 'inertia of body "a"'
    assert entry.where == "t.xml:1"


def test_places_are_file_and_line() -> None:
    """Links and joints know the line they come from."""
    model, _ = read(document("\n\n" + body('\n<joint name="j"/>')))
    assert model.link("a").where == "t.xml:3"
    assert model.joints["j"].where == "t.xml:4"


def test_mujoco_stays_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A document of which MuJoCo warns leaves no output and no log file, and its settings as they
    were."""
    monkeypatch.chdir(tmp_path)
    before = mujoco.MjLogConfig.get()
    with pytest.raises(ModelError, match="armature") as caught:
        read(document(body('<joint name="j" armature="-5"/>')))
    assert 'joint "j"' in str(caught.value)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []
    after = mujoco.MjLogConfig.get()
    assert (after.logto_console, after.logto_file) == (before.logto_console, before.logto_file)


def test_mujoco_warnings_are_reported() -> None:
    """A warning of MuJoCo's compiler is a warning of the report."""
    flex = '<flexcomp name="f" type="grid" count="2 2 1" spacing="1 1 1" radius="0.1" mass="1"/>'
    model, report = read(document(flex))
    assert {"mujoco", "flex"} <= {p.code for p in report.warnings}
    assert model.nv == 12


def test_errors_fill_the_report() -> None:
    """The report holds the problems that were raised, so that a checker can list them."""
    report = LoadReport("t.xml", "unknown")
    bad = body('<joint name="j" pos="nan 0 0"/>') + body('<joint axis="inf 0 0"/>', 'name="b"')
    with pytest.raises(ModelError) as caught:
        read(document(bad), report=report)
    assert tuple(report.errors) == caught.value.problems
    assert len(report.errors) == 2


def test_without_mujoco(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without MuJoCo the error names the extra to install."""
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtraError, match=r"phistar\[mjcf\]") as caught:
        read(document(""))
    assert caught.value.extra == "mjcf"


def test_infinite_ranges_are_no_limits() -> None:
    """An infinite range is MuJoCo's way to leave one side open."""
    model, _ = read(document(body('<joint name="j" type="slide" range="0 inf"/>')))
    limits = model.joints["j"].limits
    assert (limits.lower, limits.upper) == ((0.0,), (math.inf,))


def test_nonunit_quaternions_are_normalised() -> None:
    """A body's quaternion of length 2 is the rotation it points to."""
    model, _ = read(document(body("<joint/>", 'name="a" quat="0 0 0 2"')))
    pose = link_poses(model, np.zeros(1))["a"]
    np.testing.assert_allclose(pose[:3, :3], quat_to_rotation(np.array([0.0, 0, 1, 0])), atol=1e-15)
