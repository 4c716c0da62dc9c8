# SPDX-License-Identifier: BSD-3-Clause
"""The user's object: loading by name, path and bytes; arrays, dicts, batches; helpful errors."""

from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.errors import (
    ArgumentError,
    ModelError,
    PhistarError,
    RobotNotFoundError,
    ShapeError,
    SingularHingeWarning,
    UnknownNameError,
)

PENDULUM = b"""<robot name="pendulum"><link name="base"/><link name="rod"><inertial>
<origin xyz="0 0 -0.5"/><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0"
iyz="0"/></inertial></link><joint name="pivot" type="continuous"><parent link="base"/>
<child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""


@pytest.fixture(scope="module")
def panda() -> phistar.Robot:
    """The bundled arm."""
    return phistar.load("panda")


def test_every_bundled_robot_loads_by_name_without_a_warning() -> None:
    """What we ship is clean: no warning (they are errors here), nor singular hinges."""
    wanted = "double_pendulum cartpole ur5 panda panda_hand quadruped humanoid four_bar delta"
    assert set(wanted.split()) <= set(phistar.robots.names())
    for name in phistar.robots.names():
        robot = phistar.load(name)
        assert robot.name == name
        assert robot.singular_hinges == ()
        assert robot.load_report.errors == []


def test_shapes_of_the_bundled_robots() -> None:
    """Sizes that users rely on: mimic reduced, floating bases, loops kept."""
    assert (phistar.load("panda").nq, phistar.load("panda").nv) == (7, 7)
    hand = phistar.load("panda_hand")
    assert hand.nv == 8
    assert hand.joints["panda_finger_joint2"].mimic is not None
    assert phistar.load("panda_hand", mimic="independent").nv == 9
    quadruped = phistar.load("quadruped")
    assert (quadruped.nq, quadruped.nv) == (19, 18)
    assert quadruped.joints["root_joint"].kind == "free"
    assert phistar.load("quadruped", floating_base=False).nv == 12
    assert len(phistar.load("humanoid").joint_names) > 30
    (loop,) = phistar.load("four_bar").loops
    assert loop.kind == "revolute"


def test_loads_from_path_string_and_bytes(tmp_path: Path) -> None:
    """One robot, whatever form its description has."""
    file = tmp_path / "pendulum.urdf"
    file.write_bytes(PENDULUM)
    models = [phistar.load(d).model for d in (file, str(file), PENDULUM)]
    assert models[0] == models[1] == models[2]


def test_names_orders_and_slices(panda: phistar.Robot) -> None:
    """Joints know their place in q and v, their limits and their neighbours."""
    assert panda.joint_names[0] == "panda_joint1"
    joint = panda.joints["panda_joint4"]
    assert (joint.kind, joint.parent, joint.child) == ("revolute", "panda_link3", "panda_link4")
    assert (joint.q_slice, joint.v_slice) == (slice(3, 4), slice(3, 4))
    assert joint.limits.upper[0] < 0 < panda.upper_limits[0]
    assert "panda_link8" in panda.link_names
    assert panda.frames["panda_link8"].body == 6


def test_reorder_follows_the_driver(panda: phistar.Robot) -> None:
    """Coordinates in another order describe the same motion."""
    names = list(reversed(panda.joint_names))
    other = panda.reorder(names)
    assert other.joint_names == tuple(names)
    q = panda.random_configuration(1, 3)
    assert np.array_equal(
        panda.frame_pose(q, "panda_link8"), other.frame_pose(q[:, ::-1], "panda_link8")
    )
    assert phistar.load("panda", joint_order=names).model == other.model
    with pytest.raises(ModelError, match="missing"):
        panda.reorder(names[1:])
    with pytest.raises(UnknownNameError, match="panda_joint1"):
        panda.reorder([*names[1:], "panda_joint_1"])


def test_dicts_in_and_out(panda: phistar.Robot) -> None:
    """A dict sets joints by name, the others stay neutral; dicts come back by name."""
    q = panda.configuration({"panda_joint2": 0.5, "panda_joint4": [-1.0, -2.0]})
    assert q.shape == (2, 7)
    assert q[:, 1].tolist() == [0.5, 0.5]
    assert q[:, 3].tolist() == [-1.0, -2.0]
    assert panda.configuration_dict(q)["panda_joint4"].tolist() == [-1.0, -2.0]
    pose = panda.frame_pose({"panda_joint2": 0.5}, "panda_link8")
    assert np.array_equal(pose, panda.frame_pose([0, 0.5, 0, 0, 0, 0, 0], "panda_link8"))
    quadruped = phistar.load("quadruped")
    base = quadruped.tangent_dict(np.arange(18.0))["root_joint"]
    assert base.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 3), (0,)])
def test_leading_axes_are_kept(panda: phistar.Robot, shape: tuple[int, ...]) -> None:
    """Every answer has the batch axes of its question, the empty batch included."""
    q = panda.random_configuration(0, shape)
    v = np.ones((*shape, 7))
    assert panda.frame_pose(q, "panda_link8").shape == (*shape, 4, 4)
    assert panda.jacobian(q, "panda_link8").shape == (*shape, 6, 7)
    assert panda.frame_velocity(q, v, "panda_link8").shape == (*shape, 6)
    assert panda.center_of_mass(q).shape == (*shape, 3)
    assert panda.integrate(q, v).shape == (*shape, 7)
    assert panda.difference(q, q).shape == (*shape, 7)
    assert panda.link_poses(q)["panda_link3"].shape == (*shape, 4, 4)


def test_shape_errors_name_everything(panda: phistar.Robot) -> None:
    """Argument, given and expected shape, robot and joint names are in the message."""
    with pytest.raises(ShapeError) as caught:
        panda.frame_pose(np.zeros(6), "panda_link8")
    text = str(caught.value)
    for word in ("q has shape (6,)", "'panda'", "(..., 7)", "panda_joint1"):
        assert word in text
    assert caught.value.given == (6,)
    with pytest.raises(ShapeError, match="v has shape"):
        panda.frame_velocity(np.zeros(7), np.zeros((3, 8)), "panda_link8")
    with pytest.raises(ArgumentError, match="not an array of numbers"):
        panda.frame_pose(["a"] * 7, "panda_link8")
    with pytest.raises(ShapeError, match=r"q\['panda_joint2'\].*broadcast with \(2,\)"):
        panda.configuration({"panda_joint1": [1.0, 2.0], "panda_joint2": [1.0, 2.0, 3.0]})
    with pytest.raises(ShapeError, match=r"dv has shape \(2, 7\).*broadcast with \(3,\)"):
        panda.integrate(np.zeros((3, 7)), np.zeros((2, 7)))
    with pytest.raises(ShapeError, match="free joint 'root_joint'"):
        phistar.load("quadruped").configuration({"root_joint": [0.0, 0.0, 1.0]})


def test_unknown_names_suggest_the_right_one(panda: phistar.Robot) -> None:
    """A misspelt name is answered with the closest ones."""
    with pytest.raises(UnknownNameError, match="panda_link8"):
        panda.frame_pose(panda.neutral(), "panda_lnk8")
    with pytest.raises(UnknownNameError, match="panda_joint3"):
        panda.joints["panda_jont3"]
    with pytest.raises(UnknownNameError, match="panda_joint3"):
        panda.configuration({"panda_jont3": 1.0})
    with pytest.raises(UnknownNameError, match="Did you mean 'panda_hand'"):
        phistar.load("panda_hand").frame_pose(np.zeros(8), "hand")
    with pytest.raises(ArgumentError, match="world_aligned"):
        panda.jacobian(panda.neutral(), "panda_link8", "wrld")
    with pytest.raises(ArgumentError, match="follows 'panda_finger_joint1'"):
        phistar.load("panda_hand").configuration({"panda_finger_joint2": 0.01})


def test_missing_robots_are_file_errors() -> None:
    """An unknown name or path is a FileNotFoundError that lists what there is."""
    with pytest.raises(RobotNotFoundError, match="did you mean panda"):
        phistar.load("pnda")
    with pytest.raises(FileNotFoundError, match=r"nowhere/arm\.urdf"):
        phistar.load("nowhere/arm.urdf")
    with pytest.raises(ArgumentError, match="int"):
        phistar.load(3)  # type: ignore[arg-type]


def test_singular_hinge_warns_at_load() -> None:
    """A massless leaf is a warning with a category at load, and kinematics goes on."""
    massless = PENDULUM.replace(b'<mass value="1"/>', b'<mass value="0"/>')
    massless = massless.replace(b'"0.1"', b'"0"').replace(b'"0.01"', b'"0"')
    with pytest.warns(phistar.errors.PhistarWarning) as caught:
        robot = phistar.load(massless)
    assert any(
        issubclass(w.category, SingularHingeWarning) and "pivot" in str(w.message) for w in caught
    )
    assert robot.frame_pose([0.3], "rod").shape == (4, 4)


def test_gravity_is_settable() -> None:
    """Gravity is part of the robot and changed by making another robot."""
    moon = phistar.load("panda", gravity=(0, 0, -1.62))
    assert moon.gravity.tolist() == [0, 0, -1.62]
    assert phistar.load("panda").with_gravity((0, 0, -1.62)).model == moon.model
    assert phistar.load("panda").gravity.tolist() == [0, 0, -9.81]


def test_models_are_immutable(panda: phistar.Robot) -> None:
    """Nothing a user is handed can change the robot."""
    with pytest.raises(AttributeError):
        panda.model.name = "other"  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        panda.gravity[2] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        panda.model.bodies[0].placement[0, 0] = 2.0
    with pytest.raises(TypeError):
        panda.joints["panda_joint1"] = None  # type: ignore[index]


def test_load_report_accounts_for_the_file() -> None:
    """What was read, defaulted and ignored is listed with file and line."""
    extra = PENDULUM.replace(b"</robot>", b'<gazebo reference="rod"><mu>1</mu></gazebo></robot>')
    report = phistar.load(extra).load_report
    assert report.read["links"] == 2
    assert any("gazebo" in entry.what for entry in report.ignored)
    assert any("base" in entry.what for entry in report.defaulted)
    assert "<bytes>" in str(report)


def test_every_error_has_one_root() -> None:
    """All errors derive from PhistarError and from the built-in a user would catch."""
    found = [e for e in vars(phistar.errors).values() if isinstance(e, type)]
    errors = [e for e in found if issubclass(e, Exception) and not issubclass(e, Warning)]
    assert len(errors) > 5
    for error in errors:
        assert issubclass(error, PhistarError)


def test_a_half_open_doctype_costs_no_time() -> None:
    """Looking for the root element is linear in the file, whatever stands before it."""
    for junk in (b"<!DOCTYPE" + b" " * 1_000_000, b"<!--" + b"-" * 1_000_000, b"<?" * 500_000):
        with pytest.raises(ModelError):
            phistar.load(junk)
