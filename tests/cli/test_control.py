# SPDX-License-Identifier: BSD-3-Clause
"""The command ``phistar control``."""

from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.cli import main

READY = "--start=0,-1.2,1.5,-0.8,1.0,0.3"
GOAL = "--goal=0.4,-1.6,1.9,-1.2,1.4,-0.1"
BRIEF = ["--duration", "0.1", "--dt", "0.01"]


def test_reaches_a_pose_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The pose law on a UR5: a chart, how it ended, and the motion as a table."""
    file = tmp_path / "motion.csv"
    arguments = ["--frame", "tool0", "--duration", "2.4", "--dt", "0.005", "--out", str(file)]
    assert main(["control", "ur5", READY, GOAL, *arguments]) == 0
    shown = capsys.readouterr().out
    assert "Lyapunov function, logarithmic" in shown
    assert "reached; error" in shown
    assert "never rising" in shown
    assert str(file) in shown
    table = np.genfromtxt(file, delimiter=",", names=True, deletechars="", replace_space=" ")
    assert table["t"][-1] == pytest.approx(2.4)
    robot = phistar.load("ur5")
    q = np.stack([table[f"q.{name}"] for name in robot.joint_names], axis=-1)
    goal = robot.frame_pose([0.4, -1.6, 1.9, -1.2, 1.4, -0.1], "tool0")
    assert np.abs(robot.frame_pose(q[-1], "tool0") - goal).max() < 1e-3
    assert (np.diff(table["lyapunov"]) <= 0).all()


@pytest.mark.parametrize("law", ["rate", "computed_torque", "pd_gravity", "operational"])
def test_every_law_runs(law: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every law runs and writes arrays that belong together."""
    file = tmp_path / "motion.npz"
    assert main(["control", "ur5", "--law", law, READY, *BRIEF, "--out", str(file)]) == 0
    assert f"{law} of robot 'ur5', 0.1 s: " in capsys.readouterr().out
    with np.load(file) as arrays:
        assert arrays["q"].shape == arrays["tau"].shape == (11, 6)
        assert arrays["lyapunov"].shape == arrays["t"].shape == (11,)


def test_seeds_and_settings(capsys: pytest.CaptureFixture[str]) -> None:
    """The same seed gives the same lines; gravity can be left uncompensated, limits be kept."""
    arguments = ["control", "double_pendulum", "--law", "pd_gravity", *BRIEF, "--limits"]
    told = []
    for extra in (["--seed", "3"], ["--seed", "3"], ["--seed", "4"], ["--no-gravity-compensation"]):
        assert main([*arguments, *extra]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] != told[2]
    assert told[3] not in told[:3]


def test_free_base_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    """A law drives a free joint too, and the command does not hide it."""
    assert main(["control", "quadruped", "--law", "rate", *BRIEF]) == 0
    assert "joint 'root_joint' is free" in capsys.readouterr().out


def test_loops_stay_closed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Start and goal are assembled, the motion stays on the loops; --tree moves without them."""
    file = tmp_path / "motion.npz"
    arguments = ["control", "four_bar", "--law", "pd_gravity", "--actuated", "crank_joint"]
    arguments += ["--start=0.9,0,0", "--goal=0.7,0,0", *BRIEF, "--out", str(file)]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    for word in ("start", "goal"):
        assert f"assembled the {word}, where loop 'coupler_closure' was open by" in shown
    assert "never rising" in shown
    robot = phistar.load("four_bar")
    with np.load(file) as arrays:
        assert np.abs(np.asarray(robot.loop_error(arrays["q"]))).max() < 1e-12
        assert (arrays["tau"][:, 1:] == 0.0).all()
        law = phistar.control.pd_gravity(
            robot, robot.assemble([0.7, 0.0, 0.0]), actuated=["crank_joint"]
        )
        start = robot.assemble([0.9, 0.0, 0.0])
        expected = phistar.control.regulate(law, start, duration=0.1, dt=0.01)
        np.testing.assert_allclose(arrays["q"], expected.q, rtol=1e-12, atol=1e-13)
    assert main([*arguments, "--tree", "--actuated", "all"]) == 0
    assert "assembled" not in capsys.readouterr().out
    with np.load(file) as arrays:
        assert np.abs(np.asarray(robot.loop_error(arrays["q"]))).max() > 1e-3


def test_motors_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    """The delta's file has motors at its arms, that of the four-bar says nothing of motors."""
    delta = ["control", "delta", "--law", "pd_gravity", "--start", "home", *BRIEF]
    assert main([*delta, "--actuated", "file"]) == 0
    assert "is free" not in capsys.readouterr().out
    assert main([*delta]) == 0
    assert "'platform_joint' is free" in capsys.readouterr().out
    assert main(["control", "four_bar", "--actuated", "file"]) == 2
    assert "says nothing of motors" in capsys.readouterr().err
    assert main(["control", "four_bar", "--actuated", "crank"]) == 2
    assert "crank_joint" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--start", "there"], "--start is 'there', expected random, neutral, home or 6 numbers"),
        (["--start", "near"], "--start is 'near'"),
        (["--goal", "1,2"], "--goal has 2 numbers, expected 6"),
        (["--velocity", "fast"], "--velocity is 'fast', expected random, zero or 6 numbers"),
        (["--law", "rate", "--stiffness", "3"], "law 'rate' has no --stiffness"),
        (["--law", "operational", "--no-gravity-compensation"], "gravity included"),
        (["--frame", "tol0"], "tool0"),
        (["--out", "motion.txt"], "ends in .csv or .npz"),
        (["--law", "fly"], "invalid choice"),
    ],
)
def test_mistakes(arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not understood is named, with what would be."""
    assert main(["control", "ur5", *arguments]) == 2
    assert word in capsys.readouterr().err
