# SPDX-License-Identifier: BSD-3-Clause
"""Exported files: they compile, check themselves, and never replace what is not theirs."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phistar.backends.c import (
    ExportedProgram,
    RobotInfo,
    package_files,
    random_inputs,
    write_package,
)
from phistar.errors import ArgumentError

STRICT = "-std=c99 -O2 -Wall -Wextra -Werror -pedantic"


def _exported(make: Callable[..., Any], robot: str, *wanted: tuple[str, str]) -> tuple[Any, Any]:
    programs = []
    for name, shape in wanted:
        model, program = make(robot, name, shape)
        inputs = random_inputs(model, program.signature)
        programs.append(ExportedProgram(name, program, inputs, "v̇ = ν - K* α", "Some Paper, (7)"))
    return programs, RobotInfo.of(model)


def _compile(directory: Path, compiler: str) -> Path:
    sources = sorted(map(str, directory.glob("*.c")))
    command = [compiler, *STRICT.split(), "-o", "selftest", *sources, "-lm"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return directory / "selftest"


def _run(binary: Path) -> tuple[int, str]:
    done = subprocess.run([str(binary)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


BOTH = (("inverse_dynamics", "straight"), ("forward_dynamics", "rolled"))


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("robot", ["panda", "quadruped", "humanoid", "every kind"])
def test_self_test_passes(
    make: Callable[..., Any], compiler: str, tmp_path: Path, robot: str, real: str
) -> None:
    """The embedded numbers come out, to 1e-12 in double precision."""
    write_package(*_exported(make, robot, *BOTH), tmp_path, real=real)
    code, text = _run(_compile(tmp_path, compiler))
    assert code == 0, text
    errors = [float(x) for x in re.findall(r"error ([^,]+),", text)]
    allowed = [float(x) for x in re.findall(r"allowed ([^:]+):", text)]
    assert len(errors) == 2
    assert all(error <= limit for error, limit in zip(errors, allowed, strict=True))
    assert max(allowed) == 1e-12 if real == "double" else 1e-6 < max(allowed) < 0.1


def test_self_test_with_a_workspace(
    make: Callable[..., Any], compiler: str, tmp_path: Path
) -> None:
    """A function that wants its workspace from the caller gets it; chains of 30 and 300 links."""
    for robot in ("chain30", "chain300"):
        write_package(*_exported(make, robot, ("forward_dynamics", "rolled")), tmp_path / robot)
        code, text = _run(_compile(tmp_path / robot, compiler))
        assert code == 0, text
    assert "_WORK" not in next((tmp_path / "chain30").glob("*.h")).read_text(encoding="utf-8")
    assert "_WORK" in next((tmp_path / "chain300").glob("*.h")).read_text(encoding="utf-8")


def test_self_test_notices(make: Callable[..., Any], compiler: str, tmp_path: Path) -> None:
    """A changed constant and a result that is no number both fail."""
    files = write_package(*_exported(make, "panda", ("inverse_dynamics", "straight")), tmp_path)
    file = next(f for f in files if f.name.endswith("_inverse_dynamics.c"))
    text = file.read_text(encoding="utf-8")
    for old, new in (
        (" * 9.81;", " * 9.82;"),
        ("tau[0] = ", "tau[0] = sqrt(-1.0 - v[0] * v[0]) + "),
    ):
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")
        code, said = _run(_compile(tmp_path, compiler))
        assert code != 0
        assert "FAILED" in said


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make on this machine")
def test_makefile(make: Callable[..., Any], compiler: str, tmp_path: Path) -> None:
    """make test and make shared work with strict warnings, and make clean leaves what was there."""
    write_package(*_exported(make, "panda", *BOTH), tmp_path)
    before = {*tmp_path.iterdir()}
    flags = [f"CC={compiler}", f"CFLAGS={STRICT}"]
    for target in ("test", "shared"):
        subprocess.run(
            ["make", *flags, target], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL
        )
    assert list(tmp_path.glob("*.so"))
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert {*tmp_path.iterdir()} == before


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler on this machine")
def test_header_is_fine_in_cpp(make: Callable[..., Any], tmp_path: Path) -> None:
    """C++ reads the header, twice, without a warning."""
    programs, robot = _exported(make, "chain100", ("forward_dynamics", "rolled"))
    header = write_package(programs, robot, tmp_path)[0].name
    text = f'#include "{header}"\n#include "{header}"\n'
    command = ["c++", "-x", "c++", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-"]
    subprocess.run(command, cwd=tmp_path, input=text, text=True, check=True)


@pytest.mark.parametrize("name", ["*/ #error", "größe 机", "", "int", "R", "-->", "$(shell x) #%"])
def test_hostile_robot_names(
    make: Callable[..., Any], compiler: str, tmp_path: Path, name: str
) -> None:
    """Any name gives files that compile and pass; names that clash are told apart."""
    (one,), robot = _exported(make, "double_pendulum", ("inverse_dynamics", "straight"))
    programs = [
        ExportedProgram(label, one.program, one.inputs, name, name, [name])
        for label in (name, "a b", "a-b", "NQ", "h")
    ]
    info = RobotInfo(name, robot.nq, robot.nv, robot.joints, robot.links, robot.gravity)
    files = write_package(programs, info, tmp_path)
    assert len({file.name.lower() for file in files}) == len(programs) + 4
    code, text = _run(_compile(tmp_path, compiler))
    assert code == 0, text
    if shutil.which("make"):
        subprocess.run(["make", "test"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)


def test_same_files_every_time(make: Callable[..., Any]) -> None:
    """Two exports of one program are equal to the byte."""
    first, second = (package_files(*_exported(make, "panda", *BOTH)) for _ in range(2))
    assert first == second


def test_replaces_its_own_files(make: Callable[..., Any], tmp_path: Path) -> None:
    """An export over an older one needs no leave."""
    write_package(*_exported(make, "panda", ("inverse_dynamics", "straight")), tmp_path)
    files = write_package(*_exported(make, "panda", *BOTH), tmp_path)
    assert "forward_dynamics" in files[0].read_text(encoding="utf-8")


@pytest.mark.parametrize("victim", ["Makefile", "selftest.c", "panda.h", "README.md"])
def test_keeps_the_files_of_others(make: Callable[..., Any], tmp_path: Path, victim: str) -> None:
    """Somebody else's file is named, not replaced, and nothing is written; force replaces it."""
    package = _exported(make, "panda", ("inverse_dynamics", "straight"))
    (tmp_path / victim).write_text("mine\n", encoding="utf-8")
    with pytest.raises(ArgumentError, match=re.escape(victim)) as caught:
        write_package(*package, tmp_path)
    assert "force" in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == [victim]
    assert (tmp_path / victim).read_text(encoding="utf-8") == "mine\n"
    write_package(*package, tmp_path, force=True)
    assert (tmp_path / victim).read_text(encoding="utf-8") != "mine\n"


def test_keeps_changed_files(make: Callable[..., Any], tmp_path: Path) -> None:
    """A file of an earlier export with a line of the user's own is kept."""
    package = _exported(make, "panda", ("inverse_dynamics", "straight"))
    write_package(*package, tmp_path)
    with open(tmp_path / "Makefile", "a", encoding="utf-8") as file:
        file.write("mine: all\n")
    with pytest.raises(ArgumentError, match=r"Makefile.*changed"):
        write_package(*package, tmp_path)


def test_does_not_follow_links(make: Callable[..., Any], tmp_path: Path) -> None:
    """A symbolic link is refused; with force the link is replaced and its target stays."""
    package = _exported(make, "panda", ("inverse_dynamics", "straight"))
    target = tmp_path / "target"
    target.write_text("mine\n", encoding="utf-8")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "Makefile").symlink_to(target)
    with pytest.raises(ArgumentError, match="not a plain file"):
        write_package(*package, tmp_path / "out")
    write_package(*package, tmp_path / "out", force=True)
    assert target.read_text(encoding="utf-8") == "mine\n"
    assert not (tmp_path / "out" / "Makefile").is_symlink()


def test_nothing_to_export(tmp_path: Path) -> None:
    """An empty list is refused."""
    with pytest.raises(ArgumentError, match="nothing to export"):
        write_package([], RobotInfo("robot", 1, 1), tmp_path)


def test_samples_are_proper_configurations(make: Callable[..., Any]) -> None:
    """Embedded quaternions have unit length, but for the last sample, which tries the drift."""
    model, program = make("quadruped", "inverse_dynamics", "rolled")
    q = random_inputs(model, program.signature)["q"]
    lengths = np.linalg.norm(q[:, 3:7], axis=1)
    assert np.allclose(lengths[:-1], 1.0, atol=1e-12)
    assert 1e-7 < lengths[-1] - 1.0 < 1e-6
