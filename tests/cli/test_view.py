# SPDX-License-Identifier: BSD-3-Clause
"""``phistar view``, ``report`` and bad input: one clear line each, before a server is started."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.cli import main

ARM = """<robot name="arm"><link name="base"/><link name="tip"><inertial><origin xyz="0 0 0.5"/>
<mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial>
<visual><geometry><mesh filename="package://arm/lost.stl"/></geometry></visual>
<visual><geometry><mesh filename="large.stl"/></geometry></visual></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="tip"/><axis xyz="0 1 0"/>
</joint></robot>"""


@pytest.fixture(scope="module")
def lost_motion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A motion with NaN in it."""
    robot = phistar.load("double_pendulum")
    sim = robot.simulate([0.1, 0.2], [0.0, 0.0], dt=1e-2, steps=5)
    q = sim.q.copy()
    q[3:] = np.nan
    path = tmp_path_factory.mktemp("motions") / "lost.csv"
    return dataclasses.replace(sim, q=q).save(path)


@pytest.mark.parametrize("command", ["view", "report"])
@pytest.mark.parametrize(
    ("robot", "said"),
    [
        ("double_pendulum", "the motion has numbers that are not finite, from 0.03 s on"),
        ("panda", "is a motion of another robot than 'panda'; it has ['q.shoulder', 'q.elbow'"),
    ],
)
def test_wrong_motions(
    command: str, robot: str, said: str, lost_motion: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """NaN, and one of another robot."""
    arguments = {"view": ["--no-open", "--trajectory"], "report": ["--no-timings"]}[command]
    assert main([command, robot, *arguments, str(lost_motion)]) in (1, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize("name", ["q", "v"])
def test_a_number_that_is_lost_between_two_pictures(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One NaN, at a time that no picture shows: energies and ranges would be wrong."""
    robot = phistar.load("double_pendulum")
    sim = robot.simulate([0.1, 0.2], [0.0, 0.0], dt=1e-3, steps=200)
    path = sim.save(tmp_path / "motion.npz")
    held = dict(np.load(path))
    held[name][5, 1] = np.nan
    np.savez(path, **held)
    arguments = ["report", "double_pendulum", str(path), "--no-timings"]
    assert main([*arguments, "--out", str(tmp_path / "page.html")]) in (1, 2)
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "not finite, from 0.005 s on" in err


def test_wrong_options(lost_motion: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ports that are none, and options that exclude each other."""
    for arguments, said in (
        (["--port", "70000"], "port is 70000, expected a number from 0 to 65535"),
        (["--ground", "--trajectory", str(lost_motion)], "--trajectory has no place"),
    ):
        assert main(["view", "double_pendulum", "--no-open", *arguments]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert said in err


@pytest.mark.filterwarnings("default")
def test_meshes_that_cannot_be_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing one and one of 500 MB: one line names both and the option; boxes are drawn."""
    (tmp_path / "arm.urdf").write_text(ARM)
    with (tmp_path / "large.stl").open("wb") as file:
        file.truncate(500_000_000)
    page = tmp_path / "page.html"
    command = ["report", str(tmp_path / "arm.urdf"), "--no-timings", "--out", str(page)]
    assert main(command) == 0
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.startswith("phistar: warning: robot 'arm': mesh 'package://arm/lost.stl' is not")
    assert "--meshes names others" in err
    assert "mesh 'large.stl' has 500 MB, more than 100; make it coarser" in err
    assert page.is_file()
