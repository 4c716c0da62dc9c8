# SPDX-License-Identifier: BSD-3-Clause
"""Nonsense on the command line: one line on standard error, the right code, never a traceback."""

import os
import random
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from phistar import memory_limits
from phistar.cli import COMMANDS, doctor, main
from tests.helpers import ROOT

URDF = """<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


def told(capsys: pytest.CaptureFixture[str], argv: list[str], code: int, words: str = "") -> None:
    """The command ends with a code and one line about it."""
    assert main(argv) == code, argv
    err = capsys.readouterr().err
    assert err.startswith("phistar: "), argv
    assert err.count("\n") == 1, argv
    assert words in err, err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulate", "cartpole", "--plot", "e.xyz"], ".png"),
        (["simulate", "cartpole", "--plot", "picture"], ".png"),
        (["simulate", "cartpole", "--dt", "0.3"], "whole number"),
        (["simulate", "cartpole", "--dt", "nan"], "dt is nan"),
        (["simulate", "cartpole", "--seconds", "-1"], "duration is -1"),
        (["simulate", "cartpole", "--seconds", "inf"], "duration is inf"),
        (["simulate", "cartpole", "--every", "7"], "every is 7"),
        (["simulate", "cartpole", "--q=nan,0"], "q is not finite"),
        (["simulate", "cartpole", "--scheme", "implicit_midpoint", "--variables", "v"], "η only"),
        (["simulate", "cartpole", "--seed", "-1"], "--seed is -1"),
        (["control", "cartpole", "--seed", "-1"], "--seed is -1"),
        (["control", "cartpole", "--damping", "-1"], "damping is -1"),
        (["control", "cartpole", "--duration", "nan"], "duration is nan"),
        (["control", "cartpole", "--dt", "0"], "dt is 0"),
        (["control", "cartpole", "--law", "operational"], "degrees of freedom"),
        (["control", "cartpole", "--start=nan,0"], "--start"),
        (["control", "cartpole", "--frame", "no"], "no frame 'no'"),
        (["convert", "cartpole", "x.txt"], ".urdf"),
        (["explain", "forward_dynamics", "--level", "x"], "invalid choice"),
        (["prove", "x"], "no theorem 'x'"),
        (["where", ""], "''"),
        (["cache", "x"], "invalid choice"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_mistakes_of_the_command_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Values that do not do are named, all with code 2, before anything is computed."""
    told(capsys, arguments, 2, words)


def test_plots_are_refused_before_the_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A picture of an unknown kind, or in no folder, is refused before the robot is loaded."""
    monkeypatch.setattr("phistar.cli.simulate.load_closing", lambda *_: pytest.fail("loaded"))
    told(capsys, ["simulate", "cartpole", "--plot", "e.xyz"], 2, "e.xyz")
    for option, name in (("--plot", "no/such/e.png"), ("--out", "no/such/e.csv")):
        told(capsys, ["simulate", "cartpole", option, name], 2, "no folder 'no/such'")


def test_runs_that_do_not_fit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """1e12 states: their size, and the option that keeps fewer."""
    told(capsys, ["simulate", "cartpole", "--seconds", "1e9"], 2, "--every ")
    monkeypatch.setattr(memory_limits, "available_bytes", lambda: 1 << 20)
    monkeypatch.setattr(memory_limits, "UNCHECKED_BYTES", 1 << 10)
    told(capsys, ["simulate", "cartpole", "--seconds", "100"], 2, "--every 10")


def test_runs_with_many_states_say_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the work: how many states are kept, their size, and the option that keeps fewer."""
    monkeypatch.setattr(memory_limits, "UNCHECKED_BYTES", 1 << 14)
    assert main(["simulate", "cartpole", "--seconds", "1"]) == 0
    line = "phistar: keeping 1,001 states, 32 kB; --every keeps fewer"
    assert capsys.readouterr().err.strip() == line
    assert main(["simulate", "cartpole", "--seconds", "1", "--every", "10"]) == 0
    assert capsys.readouterr().err == ""


def test_files_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing files, folders, empty files and binary ones, for every command that reads a robot."""
    empty, binary = tmp_path / "empty.urdf", tmp_path / "binary.urdf"
    empty.write_bytes(b"")
    binary.write_bytes(bytes(range(256)))
    rest = {"convert": ["-"], "export": ["forward_dynamics", "--out", str(tmp_path / "c")]}
    for command in ("info", "convert", "simulate", "control", "export"):
        for file in (empty, binary, tmp_path):
            told(capsys, [command, str(file), *rest.get(command, [])], 1)
        told(capsys, [command, str(tmp_path / "none.urdf"), *rest.get(command, [])], 2)
        told(capsys, [command, "a\0b.urdf", *rest.get(command, [])], 1)
    for file in (empty, binary, tmp_path, tmp_path / "none.urdf"):
        assert main(["check", str(file)]) == 1
    told(capsys, ["explain", "forward_dynamics", str(empty)], 1)


def test_places_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Outputs that are folders, or below a file: one line."""
    robot = tmp_path / "r.urdf"
    robot.write_text(URDF)
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    short = ["--seconds", "0.01"]
    told(capsys, ["simulate", str(robot), *short, "--out", str(folder)], 2, "is a folder")
    told(capsys, ["simulate", str(robot), *short, "--out", f"{robot}/x.csv"], 2, "no folder")
    told(capsys, ["control", str(robot), "--out", str(folder)], 2, "is a folder")
    told(capsys, ["convert", str(robot), f"{robot}/x.urdf"], 1)
    told(capsys, ["export", str(robot), "forward_dynamics", "--out", str(robot)], 1)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk() -> None:
    """Output that cannot be written ends in one line with code 1, nothing from the interpreter."""
    command = [sys.executable, "-m", "phistar", "--help"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "phistar: No space left on device\n"


def test_random_words(capsys: pytest.CaptureFixture[str]) -> None:
    """200 random command lines end by a code, not by an exception."""
    rng = random.Random(0)
    words = ["cartpole", "--dt", "0", "-1", "nan", "1e-3", "", "-", "--", "--seconds", "0.01", "=",
             "forward_dynamics", "--q", "0,0", "--seed", "1", "--out", "--every", "2", "\x1b[2J",
             "--law", "rate", "--level", "--mimic", "--velocity", "zero", "--duration", "0.01",
             "--limits", "--variables", "v", "--tolerance", "é", "/", "--help"]  # fmt: skip
    slow = ("demo", "cache", "prove", "doctor", "view")  # view waits for Ctrl-C
    commands = [name for name in COMMANDS if name not in slow]
    codes = set()
    for _ in range(200):
        argv = [rng.choice(commands), *rng.choices(words, k=rng.randrange(4))]
        if "--out" in argv:
            continue
        codes.add(main(argv))
    capsys.readouterr()
    assert codes <= {0, 1, 2}
    assert {0, 2} <= codes


@pytest.mark.parametrize(
    "argv",
    [["info", "humanoid"], ["robots"], ["explain"], ["doctor"]],
    ids=" ".join,
)  # fmt: skip
def test_eighty_columns(
    argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What people read fits 80 columns where nobody says how wide it is."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_: os.terminal_size((80, 24)))
    assert main(argv) == 0
    lines = capsys.readouterr().out.splitlines()
    wide = [line for line in lines if len(line) > 80]
    assert wide == []


def test_extras_exist() -> None:
    """What doctor advertises and what can be installed does something."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert set(doctor.EXTRAS) <= set(extras)
    assert set(doctor.EXTRAS) == {
        "mjcf",
        "xacro",
        "examples",
        "viewer",
        "logs",
        "jax",
        "torch",
        "casadi",
        "gym",
        "dask",
    }
