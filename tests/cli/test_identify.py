# SPDX-License-Identifier: BSD-3-Clause
"""The command ``phistar identify``."""

import errno
import io
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar import whole_files
from phistar.arrays import Array
from phistar.cli import main
from phistar.ident import FourierSeries
from phistar.ident.columns import JOINT_COLUMNS
from phistar.model.joint_physics import passive_numbers

DT = 5e-3


@pytest.fixture(scope="module")
def robot() -> phistar.Robot:
    """As it is bundled."""
    return phistar.load("double_pendulum")


@pytest.fixture(scope="module")
def motion(robot: phistar.Robot) -> dict[str, Array]:
    """Ten seconds of a pendulum with friction and a heavier arm."""
    rng = np.random.default_rng(2)
    heavier = robot.with_parameters(robot.parameters * np.repeat([1.0, 1.3], 10))
    true = heavier.with_joint_physics(damping=[0.3, 0.2], friction=[0.1, 0.05])
    t = DT * np.arange(2000)
    q, v, vdot = FourierSeries(np.zeros(2), rng.normal(size=(2, 10)), 5.0).at(t)
    tau = true.inverse_dynamics(q, v, vdot, passive=True) + 0.01 * rng.normal(size=q.shape)
    return {"t": t, "q": q, "v": v, "tau": tau, "names": np.array(robot.joint_names)}


def test_writes_a_robot_and_a_page(
    motion: dict[str, Array], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The URDF has the friction of the log; all lines have at most 80 columns."""
    log, out, page = (tmp_path / name for name in ("log.npz", "found.urdf", "page.html"))
    np.savez(log, **motion)
    arguments = ["identify", "double_pendulum", str(log), "--springs"]
    assert main([*arguments, "--out", str(out), "--report", str(page)]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.replace(str(tmp_path), "").splitlines())) <= 80
    assert "base parameters from" in text
    assert text.splitlines()[1].split() == ["joint", "noise", *JOINT_COLUMNS]
    assert "[in]         N m N m s/rad       N m       N m    kg m^2   N m/rad\n" in text
    found = phistar.load(out)
    numbers = passive_numbers(found.model)
    assert numbers.damping == pytest.approx([0.3, 0.2], abs=0.01)
    assert numbers.friction == pytest.approx([0.1, 0.05], abs=0.01)
    assert "</html>" in page.read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "found.urdf",
        "log.npz",
        "page.html",
    ]
    assert main(["identify", "double_pendulum", str(log), "--method", "momentum"]) == 0
    assert "base parameters from" in capsys.readouterr().out
    assert main(["identify", "double_pendulum", str(log), "--method", "energy"]) == 0
    text = capsys.readouterr().out
    assert "noise of the energy [J]: " in text
    assert text.splitlines()[2].split() == ["joint", "viscous", "coulomb", "offset", "rotor"]
    assert len(text.splitlines()[5].split()) == 5
    assert main([*arguments, "--out", str(out)]) == 2
    assert "--force overwrites it" in capsys.readouterr().err


def test_a_log_that_does_not_fit(
    motion: dict[str, Array], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exchanged joints are told, and nothing is written unless it is forced."""
    log, out = tmp_path / "log.npz", tmp_path / "found.urdf"
    np.savez(log, **{**motion, "names": motion["names"][::-1]})
    assert main(["identify", "double_pendulum", str(log), "--out", str(out)]) == 1
    said = capsys.readouterr().err
    assert "seem to be exchanged" in said
    assert "nothing is written" in said
    assert not out.exists()
    assert main(["identify", "double_pendulum", str(log), "--out", str(out), "--force"]) == 0
    assert out.exists()


def test_a_bad_log_is_one_line(
    motion: dict[str, Array], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its file and what is wrong, nothing half-written; wrong options too."""
    log, out = tmp_path / "log.npz", tmp_path / "found.urdf"
    np.savez(log, **{**motion, "tau": 0.0 * motion["tau"]})
    for code, text, more in (
        (1, "all joint forces are zero", []),
        (2, "expected none or some of viscous,coulomb,offset", ["--friction", "dry"]),
        (2, "ends in .html", ["--report", "page.pdf"]),
    ):
        command = ["identify", "double_pendulum", str(log), "--out", str(out), *more]
        assert main(command) == code
        said = capsys.readouterr()
        assert text in said.err
        assert said.err.count("\n") == 1
        assert [path.name for path in tmp_path.iterdir()] == ["log.npz"]


def test_both_files_or_neither(motion: dict[str, Array], tmp_path: Path) -> None:
    """A page that cannot be written leaves no robot behind, nor parts of files."""
    log, out, page = tmp_path / "log.npz", tmp_path / "found.urdf", tmp_path / "page.html"
    np.savez(log, **motion)
    page.mkdir()
    command = ["identify", "double_pendulum", str(log), "--out", str(out), "--report", str(page)]
    assert main([*command, "--force"]) != 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.npz", "page.html"]


class _Full(io.StringIO):
    """A file on a disk without space."""

    def write(self, text: str, /) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk(
    motion: dict[str, Array],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The file that could not be written is named, and not a temporary one."""
    log, out = tmp_path / "log.npz", tmp_path / "found.urdf"
    np.savez(log, **motion)
    monkeypatch.setattr(whole_files, "open", lambda *_, **__: _Full(), raising=False)
    assert main(["identify", "double_pendulum", str(log), "--out", str(out)]) == 1
    assert capsys.readouterr().err == f"phistar: {out}: No space left on device\n"
    assert [path.name for path in tmp_path.iterdir()] == ["log.npz"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("log.csv", b"t,q.shoulder,q.elbow\n1,2,3\n1,2\n", "line 3 has 2 cells, and the first 3"),
        ("log.npz", b"", "cannot be read as a .npz log"),
        ("log.csv", b"", "its first line is empty"),
    ],
)
def test_damaged_files(
    name: str, text: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, nothing written."""
    (tmp_path / name).write_bytes(text)
    out = tmp_path / "found.urdf"
    assert main(["identify", "double_pendulum", str(tmp_path / name), "--out", str(out)]) == 1
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1
    assert not out.exists()


def test_complex_numbers_are_no_log(
    motion: dict[str, Array], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Imaginary parts are not dropped."""
    np.savez(tmp_path / "log.npz", **{**motion, "q": motion["q"] + 1j})
    assert main(["identify", "double_pendulum", str(tmp_path / "log.npz")]) == 1
    assert "q has dtype complex128, expected real numbers" in capsys.readouterr().err
