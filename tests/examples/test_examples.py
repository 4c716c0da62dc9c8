# SPDX-License-Identifier: BSD-3-Clause
"""The examples run from start to end, here in longer steps, and say what they promise."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.helpers import ROOT

DRAWS = importlib.util.find_spec("matplotlib") is not None
COARSE = {
    "cart_pole": {"DT": 0.05, "STEPS": 48},
    "identify_ur5": {
        "DT": 0.005,
        "SECONDS": 10.0,
        "SEARCH": {"period": 10.0, "harmonics": 5, "starts": 1, "steps": 5, "samples": 40},
    },
    "panda_payload": {"DT": 0.005, "STEPS": 300},
    "panda_reach": {"DT": 0.02, "STEPS": 40},
    "pose_control": {"DT": 0.008, "DURATION": 3.0},
    "two_link_eta": {"DT": 0.02, "STEPS": 150},
    "quadruped_slope": {"SECONDS": 0.5},
}
PLOTS = {
    "cart_pole": {"cart_pole_balance.png", "cart_pole_swing_up.png"},
    "identify_ur5": {"identify_ur5.png", "identify_ur5_forces.png"},
    "panda_payload": {"panda_payload.png"},
    "panda_reach": {"panda_reach.png", "panda_tracking.png"},
    "pose_control": {"ur5_pose_control.png", "panda_pose_control.png"},
    "two_link_eta": {"two_link_eta.png"},
    "quadruped_slope": {"quadruped_slope.png"},
}


def load(name: str) -> ModuleType:
    """An example as a module, in coarse steps."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for key, value in COARSE[name].items():
        assert hasattr(module, key)
        setattr(module, key, value)
    return module


def run(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What an example prints; with plots where matplotlib is installed."""
    load(name).main(["--out", str(folder), *([] if DRAWS else ["--no-plots"])])
    drawn = {path.name for path in folder.glob("*.png") if path.stat().st_size > 10_000}
    assert drawn == (PLOTS[name] if DRAWS else set())
    return capsys.readouterr().out


def number(pattern: str, text: str) -> float:
    """The number that a pattern captures."""
    match = re.search(pattern, text)
    assert match is not None, f"{pattern} in\n{text}"
    return float(match.group(1))


def test_cart_pole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """LQR balances, iLQR converges, feedback beats the same forces alone a hundredfold."""
    shown = run("cart_pole", tmp_path, capsys)
    assert number(r"from 0.3 rad: largest error after 6 s is (\S+)", shown) < 0.01
    assert "converged after" in shown
    closed = number(r"(\S+) with TV-LQR", shown)
    opened = number(r"(\S+) without", shown)
    assert opened > 100 * closed


def test_panda_reach(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All starts end within 2 mm of the goal; feedback keeps the arm on it where torques do not."""
    shown = run("panda_reach", tmp_path, capsys)
    assert shown.count(": converged after") == 4
    ends = [float(x) for x in re.findall(r"the hand ends (\S+) mm", shown)]
    assert len(ends) == 4
    assert max(ends) < 2.0
    assert number(r"with TV-LQR: .* first, (\S+) rad at last", shown) < 1e-3
    assert number(r"same torques alone: .* first, (\S+) rad at last", shown) > 1.0


def test_pose_control(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every start reaches the pose with a function that never rises; failures are named."""
    shown = run("pose_control", tmp_path, capsys)
    starts = re.findall(r"^\[\d\] .*$", shown, re.MULTILINE)
    assert len(starts) == 4 + 4 + 2
    for line in [*starts[:8], starts[9]]:
        assert "] reached; " in line
        assert "never rising" in line
    assert "stalled at a singular pose" in starts[8]
    assert shown.count("pose (8.2): reached") == 2
    assert shown.count("operational space: reached") == 2
    alone = re.findall(r"gravity left alone: (stalled by gravity|moving).*, rising by", shown)
    assert alone[0] == "stalled by gravity"
    assert len(alone) == 2


def test_two_link_eta(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A blow on the shoulder leaves ζ of the elbow; η keeps its length, its forces their power."""
    shown = run("two_link_eta", tmp_path, capsys)
    blow = re.search(
        r"on the shoulder: v jumps by \(\S+, (\S+)\) rad/s, ζ by \(\S+, (\S+)\)", shown
    )
    assert blow is not None
    assert abs(float(blow.group(1))) > 1.0
    assert float(blow.group(2)) == 0.0
    assert "at the shoulder: τ = (0.488, 0.000) N m" in shown
    assert number(r"squares of η drifts by (\S+) in", shown) < 1e-3
    assert number(r"their power (\S+) W", shown) < 1e-12
    assert number(r"work of ε differ by (\S+),", shown) < 1e-2


def test_quadruped_slope(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It stands below the cone and slides beyond it."""
    shown = run("quadruped_slope", tmp_path, capsys)
    assert abs(number(r"10 degrees, below the cone: (\S+) m", shown)) < 0.02
    assert number(r"35 degrees, beyond the cone: (\S+) m", shown) > 0.1


def test_panda_payload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All places are reached; a law that knows the payload is fifty times closer."""
    shown = run("panda_payload", tmp_path, capsys)
    assert "3 of 3 samples reached" in shown
    known = number(r"law knows the payload: off by (\S+) mm", shown)
    assert known < 1.5
    assert number(r"law does not: off by (\S+) mm", shown) > 50 * known


def test_identify_ur5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Friction is found, unseen forces are predicted to the noise, the robot is possible."""
    shown = run("identify_ur5", tmp_path, capsys)
    assert "physically possible: True" in shown
    assert number(r"elbow_joint +damping +\S+ N m s/rad, friction +(\S+) N m", shown) == (
        pytest.approx(1.5, abs=0.15)
    )
    assert number(r"error over noise: \S+ to (\S+)", shown) < 1.1
