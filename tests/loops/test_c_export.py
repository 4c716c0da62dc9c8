# SPDX-License-Identifier: BSD-3-Clause
"""Dynamics with loops as C: compiled by the system's compiler, against the robot."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.arrays import Array
from phistar.c_export import export_c
from phistar.cli import main
from phistar.errors import ArgumentError, LoopError
from phistar.robot import Robot
from tests.loops.mechanisms import error, four_bar, four_bar_state, mechanism, needs_loops

COMPILER = shutil.which("gcc") or shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs gcc or cc")


def compiled(files: list[Path], folder: Path) -> ctypes.CDLL:
    """The exported sources as a library."""
    assert COMPILER is not None
    sources = [str(f) for f in files if f.suffix == ".c" and f.stem != "selftest"]
    library = folder / "library.so"
    flags = ["-std=c99", "-Wall", "-Werror", "-O1", "-shared", "-fPIC"]
    subprocess.run([COMPILER, *flags, *sources, "-lm", "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def call(library: ctypes.CDLL, name: str, inputs: list[Array], sizes: list[int]) -> list[Array]:
    """A function with its arrays, and what it writes."""
    outputs = [np.zeros(size) for size in sizes]
    pointers = [
        np.ascontiguousarray(x).ctypes.data_as(ctypes.POINTER(ctypes.c_double))
        for x in (*inputs, *outputs)
    ]
    getattr(library, name)(*pointers)
    return outputs


def compare(robot: Robot, folder: Path, states: list[tuple[Array, Array, Array]]) -> None:
    """Forward dynamics of C and of another route."""
    files = export_c(robot.model, ["forward_dynamics"], folder)
    library = compiled(files, folder)
    (name,) = [f.stem for f in files if f.stem.endswith("_forward_dynamics")]
    for q, v, tau in states:
        (found,) = call(library, name, [q, v, tau], [robot.nv])
        assert error(found, robot.forward_dynamics(q, v, tau, method="null")) < 1e-8


@needs_compiler
def test_four_bar_in_c(tmp_path: Path) -> None:
    """Forward dynamics and a step, to 1e-9; NaN off the loop and for a step that does not close."""
    robot = four_bar()
    files = export_c(robot.model, ["forward_dynamics", "step"], tmp_path)
    library = compiled(files, tmp_path)
    for seed in range(4):
        q, v, tau = four_bar_state(seed)
        (vdot,) = call(library, "four_bar_forward_dynamics", [q, v, tau], [3])
        assert error(vdot, robot.forward_dynamics(q, v, tau, method="kkt")) < 1e-9
        ahead = call(library, "four_bar_step", [q, v, tau, np.array([1e-2])], [3, 3])
        for found, expected in zip(ahead, robot.step(q, v, tau, 1e-2), strict=True):
            assert error(found, expected) < 1e-9
    for state in ((q + 0.1, v), (q, v + 1.0)):
        (vdot,) = call(library, "four_bar_forward_dynamics", [*state, tau], [3])
        assert np.isnan(vdot).all()
    ahead = call(library, "four_bar_step", [q, v, np.full(3, 1e6), np.array([0.5])], [3, 3])
    assert np.isnan(ahead[0]).all()


@needs_compiler
@needs_loops
@pytest.mark.parametrize("name", ["bricard", "gear_train", "fivebar"])
def test_mechanisms_in_c(name: str, tmp_path: Path) -> None:
    """Redundant rows, couplings, points."""
    case = mechanism(name)
    compare(case.robot, tmp_path, list(zip(*case.state, strict=True)))


@needs_compiler
@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("precision", [[], ["--float"]])
def test_the_command_writes_files_that_check_themselves(
    precision: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``phistar export`` keeps the loops; the self-test has states on them."""
    programs = ["forward_dynamics", "linearize", "step", "mass_matrix"]
    arguments = ["export", "four_bar", *programs]
    assert main([*arguments, *precision, "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    done = subprocess.run(
        ["make", "test"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.count(": ok") == len(programs)
    (header,) = tmp_path.glob("*.h")
    text = header.read_text(encoding="utf-8")
    assert "keeps its loops closed: 'coupler_closure'" in text
    assert "NaN where a state is not on the loops" in text
    (source,) = tmp_path.glob("selftest.c")
    assert "nan" not in source.read_text(encoding="utf-8").lower()


def test_what_has_no_c(tmp_path: Path) -> None:
    """Other algorithms are those of trees, external forces no input, long steps no program."""
    robot = four_bar()
    with pytest.raises(LoopError, match=r"export of forward_dynamics_1.*robot\.tree"):
        export_c(robot.model, ["forward_dynamics_1"], tmp_path / "a")
    with pytest.raises(ArgumentError, match="no external forces"):
        export_c(robot.model, ["forward_dynamics"], tmp_path / "b", forces=True)
    delta = phistar.load("delta")
    with pytest.raises(ArgumentError, match="step has no program on robot 'delta'"):
        export_c(delta.model, ["step"], tmp_path / "c")
    assert not list(tmp_path.iterdir())
    assert export_c(robot.tree.model, ["linearize"], tmp_path / "d")
