# SPDX-License-Identifier: BSD-3-Clause
"""What a file says about its joints stands in the report: used by simulate, or by nothing."""

from pathlib import Path

import pytest

import phistar
from phistar.cli import main
from phistar.model import ModelBuilder

URDF = b"""<robot name="arm"><link name="base"/>
<link name="a"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="a"/>
<limit lower="-2" upper="2" effort="30" velocity="4"/><dynamics damping="0.5" friction="0.1"/>
</joint></robot>"""

MJCF = b"""<mujoco><worldbody><body name="a">
<joint name="j" type="hinge" axis="0 1 0" stiffness="50" springref="30" damping="1" frictionloss="2"
 range="-60 60" limited="true"/>
<inertial mass="1" pos="0 0 -.5" diaginertia=".1 .1 .01"/>
<body name="b"><joint name="ball" type="ball" range="0 45" limited="true"/>
<inertial mass="1" pos="0 0 -.5" diaginertia=".1 .1 .01"/></body></body></worldbody></mujoco>"""


def test_urdf_limits_and_friction_are_listed_joint_by_joint() -> None:
    """Each with joint, property, value, unit and line; the section has its own title."""
    report = phistar.load(URDF).load_report
    assert [(e.where, e.what, e.note) for e in report.simulated] == [
        ("<bytes>:4", 'joint "j": range', "-2 .. 2 rad"),
        ("<bytes>:4", 'joint "j": damping', "0.5 N m s/rad"),
        ("<bytes>:4", 'joint "j": friction', "0.1 N m"),
    ]
    assert [(e.where, e.what, e.note) for e in report.unused] == [
        ("<bytes>:4", 'joint "j": speed limit', "4 rad/s"),
        ("<bytes>:4", 'joint "j": effort limit', "30 N m"),
    ]
    assert "\nused by simulate: 3\n" in str(report)
    assert "\nnot used by dynamics: 2\n" in str(report)


def test_mjcf_springs_are_listed_with_their_rest() -> None:
    """Stiffness with the place of rest [rad]; a ball's range, which is not kept, is ignored."""
    pytest.importorskip("mujoco")
    report = phistar.load(MJCF).load_report
    told = {entry.what: entry.note for entry in report.simulated}
    assert told == {
        'joint "j": range': "-1.0472 .. 1.0472 rad",
        'joint "j": damping': "1 N m s/rad",
        'joint "j": friction': "2 N m",
        'joint "j": stiffness': "50 N m/rad, at rest at 0.523599 rad",
    }
    (ball,) = [entry for entry in report.ignored if "ball" in entry.what]
    assert (ball.what, ball.note) == (
        'joint "ball": range',
        "0.785398 rad of the total angle; such a limit is not supported",
    )


def test_robots_made_in_python_have_the_list_too() -> None:
    """Units follow the joint's kind; joints that say nothing have no line."""
    builder = ModelBuilder("cart")
    builder.link("rail")
    builder.link("cart", 1.0, inertia=(1, 1, 1))
    builder.link("body", 1.0, inertia=(1, 1, 1))
    builder.joint("slide", "prismatic", "rail", "cart", axis=(1, 0, 0), damping=3.0, stiffness=2.0)
    builder.joint("pin", "continuous", "cart", "body", axis=(0, 1, 0), armature=0.1)
    used = phistar.load(builder.build()).load_report.simulated
    assert [(entry.what, entry.note) for entry in used] == [
        ('joint "slide": damping', "3 N s/m"),
        ('joint "slide": stiffness', "2 N/m, at rest at 0 m"),
    ]


def test_check_report_prints_the_section(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``phistar check --report`` has it, with the counts in the singular where there is one."""
    file = tmp_path / "arm.urdf"
    file.write_bytes(URDF)
    assert main(["check", "--report", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  used by simulate: 3" in lines
    assert "  not used by dynamics: 2" in lines
    assert f'    {file}:4: joint "j": damping: 0.5 N m s/rad' in lines
    assert any(line.startswith("  read: ") and "1 joint" in line.split(", ") for line in lines)


def test_loops_are_used_unless_switched_off() -> None:
    """Closed ones with their rows among what is used, the others among what is not."""
    text = phistar.robots.path("four_bar").read_bytes()
    report = phistar.load(text).load_report
    assert [(entry.what, entry.note) for entry in report.closed] == [
        ('loop "coupler_closure" (revolute, "rocker" to "coupler")', "kept closed, 5 rows")
    ]
    assert report.closed[0] in report.sections()["used"]
    assert not any("loop" in entry.what for entry in report.unused)
    off = text.replace(b'closure" type="revolute"', b'closure" type="revolute" active="false"')
    assert off != text
    report = phistar.load(off).load_report
    assert report.closed == []
    assert [entry.note for entry in report.unused if "loop" in entry.what] == [
        "switched off by the file"
    ]
    assert phistar.load(text).tree.load_report.closed == []


def test_commands_for_trees_refuse_loops_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They name the loop and --tree, with which they run."""
    out = tmp_path / "c"
    arguments = ["export", "four_bar", "forward_dynamics_1", "--out", str(out)]
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert "coupler_closure" in error
    assert "--tree" in error
    assert main([*arguments, "--tree"]) == 0
    assert out.exists()


def test_shapes_without_contacts_are_listed_by_kind() -> None:
    """Meshes and ellipsoids that move, spheres of the world; edits count again."""
    pytest.importorskip("mujoco")
    text = b"""<mujoco><worldbody><geom type="plane" size="1 1 1"/>
    <geom name="knob" type="sphere" size=".1"/>
    <body name="a"><freejoint/><geom name="egg" type="ellipsoid" size=".1 .1 .2"/>
    <body name="b"><joint name="j"/><geom name="can" type="cylinder" size=".1 .2"/>
    <geom name="pea" type="ellipsoid" size=".1 .1 .1"/></body></body></worldbody></mujoco>"""
    robot = phistar.load(text)
    told = [entry for entry in robot.load_report.unused if "shape" in entry.what]
    assert [(entry.where, entry.what, entry.note) for entry in told] == [
        (
            "",
            "1 collision shape of kind sphere (knob)",
            "no contacts in robot.simulator, where plane, box are touched in the world",
        ),
        (
            "",
            "2 collision shapes of kind ellipsoid (egg, pea)",
            "no contacts in robot.simulator, where sphere, capsule, cylinder, box touch",
        ),
    ]
    assert [str(entry) for entry in robot.without("b").load_report.unused][1].startswith(
        "1 collision shape of kind ellipsoid (egg)"
    )
    assert robot.simulator(1, dt=1e-3).unused_shapes == (
        "knob: nothing touches a sphere of the world",
        "egg: an ellipsoid touches nothing",
        "pea: an ellipsoid touches nothing",
    )
