# SPDX-License-Identifier: BSD-3-Clause
"""The key of a kernel covers all that decides its code: the robot, the frames, the sources."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.algebra.dense import Dense
from phistar.algorithms.operational_space import compliance
from phistar.backends.llvm.run import key
from tests.helpers import ROOT


def tooled(link: str = "link5", xyz: str = "0 0 0", rpy: str = "0 0 0") -> phistar.Robot:
    """An arm of six joints with a tool that weighs nothing, fixed to a link at a place."""
    parts = ['<robot name="arm"><link name="link-1"/>']
    for i in range(6):
        parts.append(
            f'<link name="link{i}"><inertial><origin xyz="0.1 0.02 {0.1 * i}"/>'
            f'<mass value="{i + 1}"/>'
            '<inertia ixx="0.2" ixy="0.01" ixz="0" iyy="0.3" iyz="0" izz="0.25"/></inertial></link>'
            f'<joint name="joint{i}" type="continuous"><parent link="link{i - 1}"/>'
            f'<child link="link{i}"/><origin xyz="0.3 0 0.1" rpy="0 0 {0.2 * i}"/>'
            f'<axis xyz="{("0 0 1", "0 1 0", "1 0 0")[i % 3]}"/></joint>'
        )
    parts.append(
        f'<link name="tool"/><joint name="mount" type="fixed"><parent link="{link}"/>'
        f'<child link="tool"/><origin xyz="{xyz}" rpy="{rpy}"/></joint></robot>'
    )
    return phistar.load("".join(parts).encode())


def test_frames_elsewhere_are_other_code() -> None:
    """Robots that differ in the place of a frame, its turn or its body, share no matrix.

    Their bodies and names are the same, and so is the folder of the cache.
    """
    places = (("link5", "0 0 0", "0 0 0"), ("link5", "0.5 0 0", "0 0 0"))
    places += (("link5", "0 0 0", "0.3 0 0"), ("link4", "0 0 0", "0 0 0"))
    for link, xyz, rpy in places:
        robot = tooled(link, xyz, rpy)
        q = robot.random_configuration(1)
        dense = Dense(robot.model, q, tasks=("tool",))
        given = robot.function(compliance, frames=("tool",))(q)
        np.testing.assert_allclose(given, dense(compliance), rtol=0, atol=1e-11)
        if link == "link5":
            expected = np.linalg.inv(dense(compliance))
            scale = 1e-9 * np.abs(expected).max()
            np.testing.assert_allclose(robot.operational_inertia(q, ["tool"]), expected, 0, scale)


WEIGHT = "import phistar; print(phistar.load('double_pendulum').gravity_force([0.3, 0.4])[1])"


def weight(source: Path, cache: Path) -> float:
    """The force of gravity on a pendulum's lower joint, by a process with other sources."""
    settings = {"PYTHONPATH": str(source), "PHISTAR_CACHE": str(cache), "PHISTAR_TIER": "rolled"}
    done = subprocess.run(
        [sys.executable, "-c", WEIGHT],
        env={**os.environ, **settings},
        cwd=source,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def test_changed_sources_are_compiled_again(tmp_path: Path) -> None:
    """A formula of ``spatial`` that was changed changes results, though all code was kept before.

    The new version says that all bodies are twice as heavy.
    """
    shutil.copytree(ROOT / "src" / "phistar", tmp_path / "phistar")
    before = weight(tmp_path, tmp_path / "cache")
    inertia = tmp_path / "phistar" / "spatial" / "inertia.py"
    text = inertia.read_text()
    start = text.index("def inertia_matrix")
    changed = text[start:].replace("    return matrix\n", "    return 2 * matrix\n", 1)
    inertia.write_text(text[:start] + changed)
    assert weight(tmp_path, tmp_path / "cache") == pytest.approx(2 * before, rel=1e-14)


@pytest.mark.parametrize(
    "place", ["spatial", "model/joints", "algebra", "algorithms", "backends", "scalar", "."]
)
def test_the_compiler_is_all_sources_that_take_part(place: str, tmp_path: Path) -> None:
    """A changed, a renamed and a new file each make another compiler; others do not."""
    folder = tmp_path / place
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "one.py").write_text("x = 1\n")
    names = [key.source_digest(tmp_path)]
    (folder / "one.py").write_text("x = 2\n")
    names.append(key.source_digest(tmp_path))
    (folder / "one.py").rename(folder / "two.py")
    names.append(key.source_digest(tmp_path))
    (folder / "one.py").write_text("x = 2\n")
    names.append(key.source_digest(tmp_path))
    assert len(set(names)) == len(names)
    (folder / "notes.txt").write_text("nothing\n")
    for unit in key.UNITS_OUTSIDE_KEY:
        (tmp_path / unit).mkdir()
        (tmp_path / unit / "other.py").write_text("y = 1\n")
    assert key.source_digest(tmp_path) == names[-1]


def test_what_takes_no_part_exists() -> None:
    """Units that no key covers are those of today, and decide no number of a compiled program."""
    assert all(
        (ROOT / "src" / "phistar" / unit / "__init__.py").exists() for unit in key.UNITS_OUTSIDE_KEY
    )


def test_version_is_part_of_the_sources() -> None:
    """The number of the version stands in a file that every key covers."""
    text = (ROOT / "src" / "phistar" / "__init__.py").read_text()
    assert f'__version__ = "{phistar.__version__}"' in text
    assert key.compiler_digest() == key.source_digest(Path(phistar.__path__[0]))
