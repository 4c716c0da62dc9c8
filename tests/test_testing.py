# SPDX-License-Identifier: BSD-3-Clause
"""``check_derivatives``: sound robots pass, a wrong derivative is found and named."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.backends import base
from phistar.errors import ArgumentError, DerivativeError, UnknownNameError
from phistar.testing import TOLERANCES, check_derivatives

NAMES = {
    f"{part} {function}"
    for part in ("jvp", "vjp", "hvp")
    for function in ("inverse_dynamics", "forward_dynamics")
}
FIRST = {"tau_q", "tau_v", "tau_vdot", "vdot_q", "vdot_v", "vdot_tau"}
SECOND = {f"second, of {name}" for name in ("tau_q", "tau_v", "vdot_q", "vdot_v")}


@pytest.fixture(autouse=True)
def numpy_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled."""
    monkeypatch.setattr(base, "_default_name", "numpy")


def _robot(**options: Any) -> phistar.Robot:
    return phistar.Robot(phistar.random_model(np.random.default_rng(4), 6, **options))


@pytest.mark.parametrize("step", TOLERANCES)
def test_sound_robots_pass(step: str) -> None:
    """Errors of every derivative are small, and there is one for each."""
    report = check_derivatives(_robot(armature=0.5, floating_base=True), step=step)
    assert report.passed
    assert set(report.errors) == FIRST | SECOND | NAMES
    assert 0.0 < max(report.errors.values()) <= TOLERANCES[step] == report.tolerance
    assert report.skipped == ()


def test_machine_code_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What users have passes; 1e-11 for a robot that is well conditioned."""
    monkeypatch.setattr(base, "_default_name", "llvm")
    assert check_derivatives(phistar.load("double_pendulum"), tolerance=1e-11).passed


def test_reduced_mimic_joints_pass() -> None:
    """Followers are no obstacle."""
    assert check_derivatives(_robot(kinds=["revolute"], mimic=0.5)).passed


def test_first_order_only() -> None:
    """Second derivatives may be left out."""
    report = check_derivatives(_robot(), second=False, states=1)
    assert set(report.errors) == FIRST | {name for name in NAMES if "hvp" not in name}


@pytest.mark.parametrize("part", ["tau_q", "tau_v", "tau_vdot"])
def test_a_wrong_matrix_is_named(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One entry that is wrong in its seventh digit is found."""
    robot = _robot()
    right = robot.linearize_inverse

    def wrong(*arguments: Any) -> Any:
        found = right(*arguments)
        matrix = getattr(found, part).copy()
        matrix[..., 0, 0] += 1e-7 * np.abs(matrix).max()
        return replace(found, **{part: matrix})

    monkeypatch.setattr(robot, "linearize_inverse", wrong)
    with pytest.raises(DerivativeError, match=rf"'random'.*1e-09.*{part} by 1\.0e-07") as caught:
        check_derivatives(robot, second=False)
    assert caught.value.errors[part] == pytest.approx(1e-7, rel=1e-2)
    assert check_derivatives(robot, second=False, tolerance=1e-6).errors[part] > 1e-8


def test_a_wrong_product_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products are compared with the dynamics, not with the matrices."""
    robot = _robot()
    right = robot.vjp
    monkeypatch.setattr(
        robot, "vjp", lambda *x: {name: 1.001 * part for name, part in right(*x).items()}
    )
    with pytest.raises(DerivativeError, match="vjp inverse_dynamics") as caught:
        check_derivatives(robot, second=False)
    assert caught.value.errors["jvp inverse_dynamics"] <= 1e-9


def test_the_report_is_readable() -> None:
    """A line a derivative."""
    lines = str(check_derivatives(_robot(), second=False)).splitlines()
    assert lines[0] == "derivatives of 'random' beside complex steps, relative errors:"
    assert lines[1].split()[0] == "tau_q"
    assert float(lines[1].split()[1]) < 1e-9


def test_joints_without_inertia() -> None:
    """Forward dynamics does not exist there: the report says so, the rest is checked."""
    builder = phistar.ModelBuilder("loose")
    builder.link("base")
    builder.link("tip")
    builder.joint("hinge", "revolute", "base", "tip")
    report = check_derivatives(phistar.Robot(builder.build()))
    assert "hinge" in report.skipped[0]
    assert report.skipped[0] in str(report)
    assert "tau_q" in report.errors
    assert "vdot_q" not in report.errors


def test_errors() -> None:
    """Unknown steps and no states are refused."""
    with pytest.raises(UnknownNameError, match=r"forward.*central"):
        check_derivatives(_robot(), step="forward")
    with pytest.raises(ArgumentError, match="states is 0"):
        check_derivatives(_robot(), states=0)
