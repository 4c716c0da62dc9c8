# SPDX-License-Identifier: BSD-3-Clause
"""The command ``phistar export``."""

import shutil
import subprocess
from pathlib import Path

import pytest

from phistar.cli import main


@pytest.mark.skipif(
    shutil.which("make") is None or shutil.which("cc") is None, reason="needs make and cc"
)
def test_exports_files_that_check_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command writes the files, names them, and their own test passes."""
    out = tmp_path / "new" / "place"
    assert main(["export", "panda", "forward_dynamics", "bias_force", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    for file in out.iterdir():
        assert str(file) in told
    done = subprocess.run(["make", "test"], cwd=out, capture_output=True, text=True, check=True)
    assert done.stdout.count(": ok") == 2
    header = (out / "panda.h").read_text(encoding="utf-8")
    for part in ("void panda_forward_dynamics(", "panda_joint7", "Rodriguez", "K* α"):
        assert part in header


def test_single_precision_and_forces(tmp_path: Path) -> None:
    """Options reach the files."""
    arguments = ["--out", str(tmp_path), "--float", "--forces", "--shape", "rolled"]
    assert main(["export", "quadruped", "inverse_dynamics", *arguments]) == 0
    header = (tmp_path / "quadruped_f32.h").read_text(encoding="utf-8")
    assert "const float f_ext[78]" in header
    source = (tmp_path / "quadruped_f32_inverse_dynamics.c").read_text(encoding="utf-8")
    assert "switch" in source
    assert "sinf(" in source


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["panda", "forward_dynamic"], 2, "forward_dynamics"),
        (["pandda", "forward_dynamics"], 2, "panda"),
        (["panda_hand", "forward_dynamics_1"], 2, "mimic"),
        (["panda", "jacobian"], 2, "--frame"),
        (["panda", "jacobian:panda_link9"], 2, "panda_link8"),
        (["panda", "jacobian", "--frame", "panda_link8", "--reference", "x"], 2, "'local'"),
    ],
)
def test_mistakes(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    word: str,
) -> None:
    """Unknown names suggest others, what a robot cannot be asked for says why; nothing is made."""
    out = tmp_path / "out"
    assert main(["export", *arguments, "--out", str(out)]) == code
    assert word in capsys.readouterr().err
    assert not out.exists()


def test_a_place_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --out nothing is written anywhere."""
    assert main(["export", "panda", "forward_dynamics"]) == 2
    assert "--out" in capsys.readouterr().err


def test_keeps_the_files_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that no export wrote is kept unless --force is given."""
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    arguments = ["export", "panda", "bias_force", "--out", str(tmp_path)]
    assert main(arguments) == 2
    assert "README.md" in capsys.readouterr().err
    assert main([*arguments, "--force"]) == 0


def test_frames_and_matrices(tmp_path: Path) -> None:
    """A frame behind a colon, or named once; --reference, and -o for --out."""
    names = ["mass_matrix", "jacobian:panda_link4", "frame_pose"]
    options = ["--frame", "panda_link7", "--frame", "panda_link8", "--reference", "local"]
    assert main(["export", "panda", *names, *options, "-o", str(tmp_path)]) == 0
    written = {file.stem.removeprefix("panda_") for file in tmp_path.glob("panda_*.c")}
    frames = {"jacobian_panda_link4", "frame_pose_panda_link7", "frame_pose_panda_link8"}
    assert written == {"mass_matrix", *frames}
    text = (tmp_path / "panda_jacobian_panda_link4.c").read_text(encoding="utf-8")
    assert "The frame is 'panda_link4', the reference is local." in text
