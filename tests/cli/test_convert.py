# SPDX-License-Identifier: BSD-3-Clause
"""``phistar convert``: the robot written is the robot read, and nothing is lost without a word."""

from pathlib import Path

import pytest

import phistar
from phistar.cli import main

PENDULUM = """<mujoco model="pendulum"><option gravity="0 0 -1.62"/><worldbody>
<body name="rod"><joint name="pivot" axis="0 1 0" armature="0.1"/>
<geom type="capsule" size="0.02 0.2" mass="1"/></body></worldbody>
<actuator><motor name="m" joint="pivot" gear="2"/></actuator>
<sensor><jointpos joint="pivot"/></sensor></mujoco>"""


@pytest.mark.parametrize("name", ["panda_hand", "quadruped", "four_bar"])
def test_bundled_robot_round_trips(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file written loads as an equal model: mimic, floating base and loop included."""
    target = tmp_path / "out.urdf"
    assert main(["convert", name, str(target)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].endswith("reads back as the same robot")
    assert phistar.load(target).model == phistar.load(name).model


def test_mjcf_becomes_urdf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """MuJoCo's numbers survive; what URDF has no word for and what was left behind is told."""
    pytest.importorskip("mujoco")
    source, target = tmp_path / "in.xml", tmp_path / "out.urdf"
    source.write_text(PENDULUM)
    assert main(["convert", str(source), str(target)]) == 0
    err = capsys.readouterr().err
    robot = phistar.load(target)
    assert robot.gravity.tolist() == [0.0, 0.0, -1.62]
    assert robot.joints["pivot"].drive.armature == (0.1,)
    assert "plain URDF cannot express: " in err
    assert "gravity (1)" in err
    assert "armatures, rotors, springs (1)" in err
    assert "actuators (1)" in err
    assert robot.actuators.gear.tolist() == [2.0]
    assert "not carried over: " in err


def test_plain_robot_needs_no_dialect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A robot that URDF can express is written without a word of ours."""
    target = tmp_path / "out.urdf"
    assert main(["convert", "double_pendulum", str(target)]) == 0
    assert "plain URDF cannot express" not in capsys.readouterr().err
    assert "<phistar:" not in target.read_text(encoding="utf-8")


def test_existing_file_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is overwritten without --force."""
    target = tmp_path / "out.urdf"
    target.write_text("precious")
    assert main(["convert", "cartpole", str(target)]) == 2
    assert "--force" in capsys.readouterr().err
    assert target.read_text() == "precious"
    assert main(["convert", "cartpole", str(target), "--force"]) == 0
    assert phistar.load(target).name == "cartpole"


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """``-`` writes the file to standard output, and only the file."""
    assert main(["convert", "cartpole", "-"]) == 0
    out, err = capsys.readouterr()
    assert phistar.load(out.encode()).model == phistar.load("cartpole").model
    assert err.count("\n") == 1


def test_options_of_loading(tmp_path: Path) -> None:
    """The floating base is written as a joint."""
    target = tmp_path / "out.urdf"
    assert main(["convert", "panda", str(target), "--floating-base"]) == 0
    assert phistar.load(target).nv == 13


@pytest.mark.parametrize("name", ["out.xml", "out"])
def test_only_urdf_is_written(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another ending is refused before anything is written."""
    target = tmp_path / name
    assert main(["convert", "panda", str(target)]) == 2
    assert "only URDF is written" in capsys.readouterr().err
    assert not target.exists()


def test_target_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing folder is one line."""
    assert main(["convert", "panda", str(tmp_path / "no" / "out.urdf")]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "No such file or directory" in err
