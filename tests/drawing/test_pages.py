# SPDX-License-Identifier: BSD-3-Clause
"""Pages for a browser and figures: what they hold, and that they need nothing else."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.errors import ArgumentError, UnknownNameError

MEGABYTE = 1e6


def _data(page: Path) -> dict:
    text = page.read_text("utf-8")
    return json.loads(re.search(r"const DATA = (.*);</script>", text)[1])


def _array(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<f4")


def test_a_page_holds_the_poses_of_the_motion(tmp_path: Path) -> None:
    """Positions and rotations of all bodies are those of the robot at the shown times."""
    robot = phistar.load("panda")
    start = np.stack([robot.random_configuration(seed) for seed in range(3)])
    sim = robot.simulate(start, np.zeros(7), dt=1e-3, steps=100)
    data = _data(robot.save_html(tmp_path / "panda.html", sim, fps=50.0))
    times = _array(data["times"])
    poses = _array(data["poses"]).reshape(len(times), 3, 7, 7)
    assert times == pytest.approx(np.linspace(0.0, 0.1, 6), abs=1e-6)
    knots = np.round(times / 1e-3).astype(int)
    for body, link in enumerate(x.link for x in robot.model.bodies):
        expected = robot.frame_pose(sim.q[knots], link)
        seen = robot.model.frames[link].body_pose
        expected = expected @ np.linalg.inv(seen)
        assert poses[:, :, body, :3] == pytest.approx(expected[..., :3, 3], abs=1e-6)
        x, y, z, w = np.moveaxis(poses[:, :, body, 3:].astype(float), -1, 0)
        assert 2 * (x * y + z * w) == pytest.approx(expected[..., 1, 0], abs=1e-6)


def test_pages_ask_for_nothing_and_are_small(tmp_path: Path) -> None:
    """No address, no other file; ten seconds of a humanoid of primitives below 3 MB."""
    robot = phistar.load("humanoid")
    sim = robot.simulate(robot.home, np.zeros(robot.nv), dt=2e-3, duration=10.0, every=10)
    page = robot.save_html(tmp_path / "humanoid.html", sim)
    text = page.read_text("utf-8")
    assert not re.search(r"https?:|//[a-z]+\.|<link[^>]+href=\"(?!data:)|src=|import ", text)
    assert "default-src 'none'" in text
    assert page.stat().st_size < 3 * MEGABYTE


def test_names_cannot_leave_their_place(tmp_path: Path) -> None:
    """A robot's name is text of the page, never a part of its program."""
    builder = phistar.model.builder.ModelBuilder("</script><script>alert(1)</script>")
    builder.link("a", mass=1.0, inertia=np.eye(3))
    builder.link("</script>", mass=1.0, inertia=np.eye(3))
    builder.joint("j", "revolute", "a", "</script>", axis=(0, 0, 1))
    page = phistar.Robot(builder.build()).save_html(tmp_path / "page.html")
    text = page.read_text("utf-8")
    assert text.count("<script>") == text.count("</script>") == 2


def test_lost_samples_are_left_out(tmp_path: Path) -> None:
    """What is not finite has no pose; the others have."""
    robot = phistar.load("double_pendulum")
    start = np.array([[0.1, 0.2], [np.nan, 0.0]])
    sim = robot.simulate(start, np.zeros(2), dt=1e-2, steps=4, on_error="nan")
    data = _data(robot.save_html(tmp_path / "page.html", sim))
    poses = _array(data["poses"]).reshape(-1, 2, 2, 7)
    assert np.isfinite(poses[:, 0]).all()
    assert np.isnan(poses[:, 1]).all()


def test_wrong_motions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another robot, too many pictures, no rate."""
    panda, arm = phistar.load("panda"), phistar.load("ur5")
    sim = arm.simulate(arm.home, np.zeros(6), dt=1e-2, steps=3)
    with pytest.raises(ArgumentError, match=r"the motion is of 'ur5.*expected one of 'panda'"):
        panda.save_html(tmp_path / "page.html", sim)
    with pytest.raises(ArgumentError, match="fps is 0"):
        arm.save_html(tmp_path / "page.html", sim, fps=0.0)
    with pytest.raises(ArgumentError, match="expected one configuration or a Simulation"):
        arm.save_html(tmp_path / "page.html", np.zeros((2, 6)))
    monkeypatch.setattr(phistar.drawing.drawing_mixin, "MOST_NUMBERS", 10)
    with pytest.raises(ArgumentError, match="a smaller fps= keeps fewer"):
        arm.save_html(tmp_path / "page.html", sim)
    assert not list(tmp_path.iterdir())


def test_pictures_of_poses_and_motions(tmp_path: Path) -> None:
    """Files are written; another pose gives another picture; unknown frames are named."""
    robot = phistar.load("double_pendulum")
    files = [tmp_path / name for name in ("a.png", "b.png", "c.png")]
    robot.plot(robot.neutral(), files[0], frames=[robot.link_names[-1]])
    robot.plot([1.0, 0.5], files[1])
    sim = robot.simulate([[1.0, 0.0], [1.1, 0.0]], [0.0, 0.0], dt=1e-2, steps=10)
    figure = sim.plot(files[2])
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)
    assert files[0].read_bytes() != files[1].read_bytes()
    assert [axes.get_ylabel() for axes in figure.axes][-1] == "energy gained [J]"
    with pytest.raises(UnknownNameError, match="hand"):
        robot.plot(frames=["hand"])
    with pytest.raises(ArgumentError, match="expected one configuration"):
        robot.plot(np.zeros((3, 2)))


def test_coordinates_are_drawn_by_unit(tmp_path: Path) -> None:
    """Metres, quaternions and angles have panels of their own; every curve is in a legend."""
    robot = phistar.load("humanoid")
    sim = robot.simulate(robot.home, np.zeros(robot.nv), dt=1e-3, steps=3)
    *coordinates, speed, _ = sim.plot(tmp_path / "a.png").axes
    assert [x.get_ylabel() for x in coordinates] == ["q [m]", "quaternions", "q [rad]"]
    assert speed.get_ylabel() == "|v| [m/s, rad/s]"
    for axes in coordinates:
        strokes = [(x.get_color(), x.get_linestyle()) for x in axes.get_legend().get_lines()]
        assert len(set(strokes)) == len(strokes) == len(axes.get_lines()) > 2
