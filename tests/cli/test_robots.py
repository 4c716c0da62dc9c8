# SPDX-License-Identifier: BSD-3-Clause
"""``phistar robots``: what is bundled, as it loads."""

import re

import pytest

import phistar
from phistar.cli import main
from phistar.cli.robots import mass_sources


def test_every_bundled_robot_has_a_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each row holds the numbers of the robot that ``load`` gives."""
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["robots"]) == 0
    out = capsys.readouterr().out
    for name in phistar.robots.names():
        robot = phistar.load(name)
        row = next(line for line in out.splitlines() if line.startswith(f"{name} "))
        _, _, nq, nv, mass, base = re.split(r"\s{2,}", row.strip())[:6]
        assert (int(nq), int(nv)) == (robot.nq, robot.nv)
        assert float(mass) == pytest.approx(robot.total_mass, rel=1e-3)
        assert (base == "free") == ("root_joint" in robot.joint_names)


def test_every_bundled_robot_names_its_source() -> None:
    """The table of sources beside the files covers all robots, and names people or firms."""
    sources = mass_sources()
    assert set(sources) == set(phistar.robots.names())
    assert sources["humanoid"] == "de Leva, 1996"
    assert sources["cartpole"] == "Barto, Sutton, Anderson, 1983"
