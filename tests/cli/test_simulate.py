# SPDX-License-Identifier: BSD-3-Clause
"""The command ``phistar simulate``."""

import csv
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.cli import main
from phistar.loaders.urdf.urdf_writer import export_urdf
from phistar.model import ModelBuilder
from phistar.spatial import pose


def test_tells_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """States in both kinds of file are those of ``robot.simulate``; steps and drift are told."""
    arguments = [
        "simulate",
        "double_pendulum",
        "--seconds",
        "0.1",
        "--q",
        "0.5,-1",
        "--every",
        "10",
    ]
    for suffix in ("csv", "npz"):
        assert main([*arguments, "--out", str(tmp_path / f"run.{suffix}")]) == 0
    out = capsys.readouterr().out
    assert "100 steps of rk4" in out
    assert "machine code" in out
    assert "drift over 0.1 s" in out
    robot = phistar.load("double_pendulum")
    sim = robot.simulate([0.5, -1.0], [0.0, 0.0], dt=1e-3, duration=0.1, every=10)
    with np.load(tmp_path / "run.npz") as kept:
        assert np.array_equal(kept["q"], sim.q)
        assert np.array_equal(kept["v"], sim.v)
    with open(tmp_path / "run.csv", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    columns = [f"{x}.{j}" for x in ("q", "v", "tau") for j in robot.joint_names]
    assert head == ["t", *columns, "energy"]
    assert np.array_equal(np.array(rows, dtype=float)[:, 1:3], sim.q)


def test_schemes_and_starts(capsys: pytest.CaptureFixture[str]) -> None:
    """Schemes with and without steps of their own run from a random start."""
    for scheme in ("dopri5", "semi_implicit"):
        arguments = ["cartpole", "--seconds", "0.05", "--seed", "3", "--scheme", scheme]
        assert main(["simulate", *arguments]) == 0
        assert f"of {scheme}" in capsys.readouterr().out


def test_plot(tmp_path: Path) -> None:
    """The plot is a picture."""
    pytest.importorskip("matplotlib")
    path = tmp_path / "energy.png"
    assert main(["simulate", "cartpole", "--seconds", "0.05", "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--scheme", "rk5"], 2, "rk4"),
        (["--q", "1,2,3"], 2, "3 numbers, expected 2"),
        (["--q", "one"], 2, "expected numbers"),
        (["--out", "run.txt"], 2, ".csv, .npz or .mcap"),
        (["--dt", "0.3"], 2, "whole number"),
        (["--dt", "-1"], 2, "dt is -1.0"),
    ],
)
def test_mistakes(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    """What is not understood is named, with the cure."""
    assert main(["simulate", "cartpole", *arguments]) == code
    assert words in capsys.readouterr().err


def test_loops_stay_closed(capsys: pytest.CaptureFixture[str]) -> None:
    """The start is on the loops or put there; error, energy and events are told."""
    assert main(["simulate", "four_bar", "--seconds", "0.05"]) == 0
    out = capsys.readouterr().out
    assert "four_bar: the start is on its 1 loop" in out
    assert float(out.split("open by at most ")[1].split()[0]) < 1e-11
    assert float(out.split("s: energy ")[1].split()[0]) < 1e-8
    assert "no passage near a singular configuration" in out
    moved = ["--q", "0.3,0,0", "--v", "1,0,0", "--seconds", "0.02"]
    assert main(["simulate", "four_bar", *moved]) == 0
    out = capsys.readouterr().out
    assert "assembled the start, where loop 'coupler_closure' was open by 0.169" in out
    assert "velocities of the start projected onto the loops" in out
    assert float(out.split("open by at most ")[1].split()[0]) < 1e-11


def test_states_on_loops_are_those_of_python(tmp_path: Path) -> None:
    """The same motion as ``robot.simulate`` from the assembled start."""
    file = tmp_path / "run.npz"
    options = ["--q", "0.3,0,0", "--seconds", "0.02", "--dt", "0.002", "--out", str(file)]
    assert main(["simulate", "four_bar", *options]) == 0
    robot = phistar.load("four_bar")
    q = robot.assemble([0.3, 0.0, 0.0])
    sim = robot.simulate(q, np.zeros(3), dt=0.002, steps=10)
    with np.load(file) as kept:
        np.testing.assert_allclose(kept["q"], sim.q, rtol=1e-12, atol=1e-13)


def parallelogram() -> ModelBuilder:
    """Two cranks of 0.5 m, 1 m apart and level at q = 0, where the bar on them lies flat, too."""
    builder = ModelBuilder("parallelogram")
    builder.link("base")
    for name in ("left", "bar", "right"):
        builder.link(name, 1.0, com=(0.2, 0, 0), inertia=(0.01, 0.02, 0.02))
    end = pose(translation=(0.5, 0, 0))
    axis = (0, 1, 0)
    builder.joint("a", "continuous", "base", "left", axis=axis)
    builder.joint("b", "continuous", "left", "bar", axis=axis, origin=end)
    place = pose(translation=(1.0, 0, 0))
    builder.joint("c", "continuous", "base", "right", axis=axis, origin=place)
    poses = {"predecessor_pose": end, "successor_pose": place}
    builder.loop("pin", "spherical", "right", "bar", **poses)
    return builder


def test_singular_passages_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A parallelogram that lies flat after 0.02 s could fold there: one event, with the motion."""
    file = tmp_path / "flat.urdf"
    file.write_text(export_urdf(parallelogram().build()), encoding="utf-8")
    start = ["--q=-0.0405,0.0405,-0.0405", "--v", "2,-2,2", "--seconds", "0.04"]
    assert main(["simulate", str(file), *start]) == 0
    out = capsys.readouterr().out
    (event,) = [line for line in out.splitlines() if "near a singular configuration" in line]
    assert "possible too" in event
    assert 0.015 <= float(event.split("t = ")[1].split()[0]) <= 0.025


def test_tree_leaves_loops_open(capsys: pytest.CaptureFixture[str]) -> None:
    """As asked for; nothing is said of loops then."""
    assert main(["simulate", "four_bar", "--tree", "--seconds", "0.05"]) == 0
    out = capsys.readouterr().out
    assert "loop" not in out
    assert "by machine code" in out


def test_loops_that_cannot_be_closed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Loop and gap are named, and nothing is simulated."""
    text = phistar.robots.path("four_bar").read_text(encoding="utf-8")
    far = tmp_path / "far.urdf"
    far.write_text(text.replace('xyz="0.7 0 0"', 'xyz="1.7 0 0"'), encoding="utf-8")
    assert main(["simulate", str(far)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "coupler_closure" in err
    assert "is open by 0.6 m" in err
    assert main(["simulate", "four_bar", "--scheme", "implicit_midpoint"]) == 2
    assert "does not know loops" in capsys.readouterr().err


def test_commands_for_trees_refuse_loops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Algorithms of trees have no loops, and say how to go without them."""
    arguments = ["export", "four_bar", "forward_dynamics_1", "--out", str(tmp_path)]
    assert main(arguments) == 1
    err = capsys.readouterr().err
    assert "1 loop ('coupler_closure'), and this takes trees only" in err
    assert "--tree" in err
    assert main([*arguments, "--tree"]) == 0
