# SPDX-License-Identifier: BSD-3-Clause
"""``phistar doctor``: it names what is there, and it notices what is not."""

import os
import shutil
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from phistar.cli import doctor, main


def test_everything_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Versions of all that phistar needs, the processor, the cache, a verdict."""
    assert main(["doctor"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for package in ("phistar", "numpy", "scipy", "llvmlite", "lxml", "rich"):
        assert f"{package} {version(package)}" in out
    for word in ("python", "processor", "SIMD", "cores", "cache", "mjcf", "examples"):
        assert f" {word} " in out
    assert out.endswith("All is well.")


def test_requirements_come_from_the_metadata() -> None:
    """Packages and extras are those that pyproject.toml declares."""
    needed, extras = doctor.requirements()
    assert {"numpy", "scipy", "lxml", "llvmlite", "rich"} <= set(needed)
    assert extras["mjcf"] == ["mujoco"]
    assert set(doctor.EXTRAS) <= set(extras)


def test_missing_package_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A package that phistar needs and that is absent makes the verdict."""
    monkeypatch.setattr(doctor, "requirements", lambda: (["no-such-package"], {}))
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out.endswith("Not well: no-such-package is missing.\n")


def test_files_that_vanish_are_not_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other processes write code into the cache and drop it while files are counted."""
    (tmp_path / "kept").write_bytes(b"code")
    walk = [(str(tmp_path), [], ["kept", "gone.unfinished"])]
    monkeypatch.setenv("PHISTAR_CACHE", str(tmp_path))
    monkeypatch.setattr(os, "walk", lambda folder: iter(walk))
    assert main(["doctor"]) == 0
    assert "1 file, 0.0 MB" in capsys.readouterr().out


def test_wrong_kinematics_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flange a nanometre off fails the self-check."""
    off = np.add(doctor.CHECK_FLANGE, (0.0, 1e-9, 0.0))
    monkeypatch.setattr(doctor, "CHECK_FLANGE", tuple(off))
    assert main(["doctor"]) == 1
    assert "1e-09 m off" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::phistar.errors.CacheWarning")
def test_unwritable_cache_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file where the cache folder should be makes the verdict; a full one is measured."""
    monkeypatch.delenv("PHISTAR_CACHE", raising=False)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: tmp_path / "phistar")
    (tmp_path / "phistar").mkdir()
    (tmp_path / "phistar" / "kernel.o").write_bytes(bytes(2_500_000))
    assert main(["doctor"]) == 0
    assert "1 file, 2.5 MB, writable" in " ".join(capsys.readouterr().out.split())
    shutil.rmtree(tmp_path / "phistar")
    (tmp_path / "phistar").write_text("in the way")
    assert main(["doctor"]) == 1
    assert "cannot be written" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::phistar.errors.CacheWarning")
def test_the_cache_is_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder that PHISTAR_CACHE names, or none."""
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PHISTAR_CACHE", str(tmp_path / "file" / "kernels"))
    assert main(["doctor"]) == 1
    assert "file/kernels cannot be written" in " ".join(capsys.readouterr().out.split())
    monkeypatch.setenv("PHISTAR_CACHE", "off")
    assert main(["doctor"]) == 0
    assert " cache off " in " ".join(capsys.readouterr().out.split())


def test_stored_flange_is_the_manufacturers() -> None:
    """The number of the self-check is the product of the published Denavit-Hartenberg matrices."""
    a = (0.0, 0.0, 0.0, 0.0825, -0.0825, 0.0, 0.088, 0.0)
    d = (0.333, 0.0, 0.316, 0.0, 0.384, 0.0, 0.0, 0.107)
    alpha = np.array([0, -1, 1, 1, -1, 1, 1, 0]) * np.pi / 2
    placed = np.eye(4)
    for length, offset, twist, angle in zip(a, d, alpha, (*doctor.CHECK_Q, 0.0), strict=True):
        c, s, ca, sa = np.cos(angle), np.sin(angle), np.cos(twist), np.sin(twist)
        placed = placed @ [
            [c, -s, 0.0, length],
            [s * ca, c * ca, -sa, -offset * sa],
            [s * sa, c * sa, ca, offset * ca],
            [0.0, 0.0, 0.0, 1.0],
        ]
    np.testing.assert_allclose(placed[:3, 3], doctor.CHECK_FLANGE, rtol=1e-14)
