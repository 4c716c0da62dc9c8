# SPDX-License-Identifier: BSD-3-Clause
"""``phistar cache``: it shows what is kept and deletes it."""

from pathlib import Path

import pytest

import phistar
from phistar.backends.llvm.run import kernel_cache
from phistar.cli import main
from phistar.compile import kernel
from phistar.compile.pipeline import BuildTarget
from phistar.model.target_rows import TargetRows
from phistar.scalar.trace.unilateral_rows import Ball, ContactRow, HalfSpace, StepRows


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHISTAR_CACHE", str(tmp_path))
    monkeypatch.delenv("PHISTAR_CACHE_SIZE", raising=False)
    monkeypatch.setenv("COLUMNS", "200")


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command prints, with single spaces."""
    assert main(["cache", *arguments]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_show_and_clear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names, sizes, folder and versions before; nothing after."""
    assert "No kernels." in shown(capsys)
    kernel_cache.save(
        kernel_cache.cache_key("1"), bytes(1_500_000), {"name": "panda\x1b[1m one", "cpu": "zen9"}
    )
    kernel_cache.save(kernel_cache.cache_key("2"), bytes(500_000), {})
    (tmp_path / "kernels" / f"x{kernel_cache.SUFFIX}").write_bytes(b"damaged")
    out = shown(capsys)
    for part in (
        "panda\\x1b[1m one zen9 1500.",
        "just now",
        kernel_cache.cache_key("2")[:12],
        "(damaged)",
    ):
        assert part in out
    assert f"folder {tmp_path / 'kernels'} size 2.0 of 256 MB versions llvmlite" in out
    assert shown(capsys, "clear") == f"3 kernels deleted, 2.0 MB, from {tmp_path / 'kernels'}"
    assert "No kernels." in shown(capsys)


def _title(name: str, *choices: object) -> str:
    """What the kernel of a quantity of the quadruped is called."""
    model = phistar.load("quadruped").model
    program = kernel(name).on(model, BuildTarget("llvm", choices=choices))
    assert program is not None
    return program.title


def test_names_of_kernels_are_words() -> None:
    """The quantity as users ask for it and what they chose, never how it is kept."""
    assert _title("forward_dynamics") == "quadruped: forward_dynamics"
    assert _title("linearize") == "quadruped: linearize"
    assert _title("mass_matrix") == "quadruped: mass_matrix"
    assert _title("jacobian", "FL_FOOT", "local") == "quadruped: jacobian, FL_FOOT, local"
    rows = StepRows((), (ContactRow(Ball(3, (0.0,) * 3, 0.1), HalfSpace(), 0.8, 0.0),))
    assert _title("unilateral_step", rows) == (
        "quadruped: unilateral_step, rows of 0 joints and 1 contact"
    )
    targets = (TargetRows("pose", "FL_FOOT"), TargetRows("posture"))
    assert _title("inverse_kinematics_step", (), targets, (), True) == (
        "quadruped: inverse_kinematics_step, pose of FL_FOOT, posture, limited"
    )
    assert len(_title("inverse_kinematics_step", (), targets * 9, (), True)) < 100


def test_long_names_are_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A robot may have a long name: a kernel is two lines all the same."""
    monkeypatch.setenv("COLUMNS", "80")
    name = f"{'quadruped ' * 300}: contact_points"
    kernel_cache.save(kernel_cache.cache_key("1"), b"code", {"name": name, "cpu": "zen9"})
    assert main(["cache"]) == 0
    out = capsys.readouterr().out
    assert "quadruped" in out
    assert len(out.splitlines()) < 10


def test_switched_off(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so."""
    monkeypatch.setenv("PHISTAR_CACHE", "off")
    for action in ("show", "clear"):
        assert "switched off" in shown(capsys, action)


def test_other_actions_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A mistyped action deletes nothing."""
    kernel_cache.save(kernel_cache.cache_key("1"), b"code", {})
    assert main(["cache", "clean"]) == 2
    assert len(kernel_cache.entries()) == 1
