# SPDX-License-Identifier: BSD-3-Clause
"""Reports: what is on the page is what the robot says, and the page asks for nothing."""

import re
from pathlib import Path

import numpy as np
import pytest
from lxml import etree

import phistar
from phistar.cli import main
from phistar.errors import ArgumentError
from phistar.report import figures_of_speed, report_html, write_report
from phistar.report.model_card import tree_text


def _tables(page: str) -> dict[str, list[list[str]]]:
    """Rows of each table by the text of its first head."""
    root = etree.fromstring(page, etree.HTMLParser())
    found = {}
    for table in root.iter("table"):
        head = "".join(table.xpath(".//th[1]//text()"))
        body = table.xpath(".//tbody/tr")
        rows = [["".join(td.itertext()).replace("\u00a0", " ") for td in row] for row in body]
        found.setdefault(head, []).extend(rows)
    return found


@pytest.fixture(scope="module")
def page() -> str:
    """A report of a robot and a motion that leaves its limits."""
    robot = phistar.load("panda")
    sim = robot.simulate(robot.home, np.full(7, 20.0), dt=1e-3, duration=0.2, passive=False)
    return report_html(robot, sim, timings=False)


def test_a_report_says_what_the_robot_says(page: str) -> None:
    """Limits, masses, exact counts, and joints that went too far or too fast."""
    robot = phistar.load("panda")
    tables = _tables(page)
    first = ["panda_joint1", "revolute", "-2.897 … 2.897 rad", "2.175 rad/s", "87 N m"]
    assert first in tables["joint"]
    masses = {row[0]: float(row[1]) for row in tables["link"]}
    assert sum(masses.values()) == pytest.approx(robot.total_mass, rel=1e-4)
    cost = robot.compile("inverse_dynamics").cost
    row = ["inverse_dynamics", f"{cost.multiplications}", f"{cost.additions}", ""]
    assert row in tables["program"]
    assert tables["program"][-1][-1] == f"{69 * 49 + 1554 * 7 - 480}"
    assert any(row[-1] == "no: position and speed" for row in tables["joint"])


def test_a_robot_with_loops_says_what_is_counted() -> None:
    """Operations on the loops; joint rates are not called degrees of freedom."""
    robot = phistar.load("four_bar")
    text = report_html(robot, timings=False)
    cost = robot.compile("forward_dynamics").cost
    row = ["forward_dynamics", f"{cost.multiplications}", f"{cost.additions}"]
    assert row in _tables(text)["program"]
    assert "keep the loops closed" in text
    assert "3 moving bodies, 3 joint rates, 1 loop" in text


def test_energies_of_a_motion() -> None:
    """What a falling pendulum gains in kinetic energy it loses in height."""
    robot = phistar.load("double_pendulum")
    sim = robot.simulate([1.0, 0.5], [0.0, 0.0], dt=1e-3, steps=500, passive=False)
    rows = {row[0]: row[1:] for row in _tables(report_html(robot, sim, timings=False))[""]}
    kinetic, potential, total = (
        [float(x.removesuffix(" J")) for x in rows[name]]
        for name in ("kinetic", "potential", "total")
    )
    assert kinetic[0] == 0.0
    assert kinetic[2] == kinetic[1]
    assert kinetic[1] == pytest.approx(robot.kinetic_energy(sim.q[-1], sim.v[-1]), rel=1e-5)
    assert potential[0] == pytest.approx(robot.potential_energy(sim.q[0]), rel=1e-5)
    assert potential[2] == pytest.approx(-kinetic[2], rel=1e-5)
    assert abs(total[2]) < 1e-6 * kinetic[2]


def test_a_report_is_one_file(page: str) -> None:
    """Nothing in it names another place, but what XML calls its vocabularies."""
    outside = [
        x for x in re.findall(r"(?:src|href)=\"([^\"]{0,40})", page) if not x.startswith("data:")
    ]
    assert outside == []
    assert len(page) < 3e6


def test_problems_come_with_their_cures() -> None:
    """What loading warned of is on the page."""
    builder = phistar.model.builder.ModelBuilder("arm")
    builder.link("base", mass=1.0, inertia=np.eye(3))
    builder.link("tip", mass=1.0, inertia=np.diag([1.0, 1.0, 5.0]))
    builder.joint("hinge", "revolute", "base", "tip", axis=(0, 0, 1))
    robot = phistar.Robot(builder.build())
    problem = robot.model.problems[0]
    rows = _tables(report_html(robot, timings=False))["severity"]
    cells = [cell for row in rows for cell in row]
    assert problem.what in cells
    assert problem.cure in cells


def test_the_tree_has_every_link_below_its_parent() -> None:
    """One line per link, two spaces deeper than the parent's."""
    robot = phistar.load("quadruped")
    lines = tree_text(robot).splitlines()
    depth = {line.split()[0]: len(line) - len(line.lstrip()) for line in lines}
    for joint in robot.joints.values():
        assert depth[joint.child] == depth[joint.parent] + 2


def test_timings_are_made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every program has two times; how long they take is a number of the module."""
    monkeypatch.setattr(figures_of_speed, "TIMED_SECONDS", 0.0005)
    monkeypatch.setattr(figures_of_speed, "BATCH", 8)
    rows = _tables(figures_of_speed.times_table(phistar.load("double_pendulum")))["program"]
    assert [row[0] for row in rows] == list(figures_of_speed.ARGUMENTS)
    times = [cell.split() for row in rows for cell in row[1:]]
    assert all(unit in ("ns", "µs", "ms") and 0.0 < float(x) < 1000.0 for x, unit in times)


def test_units_of_times() -> None:
    """Three digits and a unit that keeps them before the exponent."""
    pairs = {2.54e-8: "25.4 ns", 9.996e-7: "1 µs", 3.389e-5: "33.9 µs", 0.0125: "12.5 ms"}
    assert {x: figures_of_speed.duration_text(x) for x in pairs} == pairs
    assert figures_of_speed.duration_text(2.0) == "2000 ms"


def test_printed_counts_are_of_robots_that_papers_count() -> None:
    """Without branches; for others there is no column, and the page says why."""
    arm = figures_of_speed.operations_table(phistar.load("panda"))
    dog = figures_of_speed.operations_table(phistar.load("quadruped"))
    assert "in print" in arm
    assert len(_tables(dog)["program"][0]) == 3
    assert "revolute joints in a row" in dog


def test_noise_is_zero_among_ranges() -> None:
    """Of a robot that only falls the joints do not move, whatever is left of rounding."""
    robot = phistar.load("quadruped")
    sim = robot.simulate(robot.home, np.zeros(robot.nv), dt=1e-3, steps=50, passive=False)
    rows = [
        row for row in _tables(report_html(robot, sim, timings=False))["joint"] if len(row) == 5
    ]
    fastest = {row[3] for row in rows if row[-1] == "yes"}
    assert fastest == {"0 rad/s"}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Writes the page; other suffixes and motions of other robots are one line."""
    robot = phistar.load("double_pendulum")
    sim = robot.simulate([0.1, 0.2], [0.0, 0.0], dt=1e-2, steps=5)
    motion, out = str(sim.save(tmp_path / "motion.npz")), str(tmp_path / "page.html")
    assert main(["report", "double_pendulum", motion, "--out", out, "--no-timings"]) == 0
    assert "The motion" in Path(out).read_text("utf-8")
    assert main(["report", "panda", motion, "--out", out, "--no-timings"]) == 1
    assert "another robot than 'panda'" in capsys.readouterr().err
    assert main(["report", "panda", "--out", "page.pdf"]) == 2
    assert "ends in .html" in capsys.readouterr().err
    with pytest.raises(ArgumentError, match="expected one of 'panda'"):
        write_report(phistar.load("panda"), out, sim)
