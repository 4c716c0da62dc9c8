# SPDX-License-Identifier: BSD-3-Clause
"""The command ``phistar simulate``."""

import csv
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.cli import main


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
    assert head == ["t", *(f"{x}.{j}" for x in "qv" for j in robot.joint_names), "energy"]
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
        (["--out", "run.txt"], 2, ".csv or .npz"),
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
