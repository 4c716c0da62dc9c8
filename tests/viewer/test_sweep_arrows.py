# SPDX-License-Identifier: BSD-3-Clause
"""Arrows of the sweep point where the robot's own methods say."""

import numpy as np
import pytest

import phistar
from phistar.viewer.sweep_arrows import LONGEST, SweepArrows
from phistar.viewer.view_state import ViewState

SIZE = 2.0


@pytest.fixture(scope="module")
def work() -> tuple[phistar.Robot, SweepArrows]:
    """A Panda in motion."""
    robot = phistar.load("panda")
    state = ViewState(robot.model, robot.random_configuration(3), np.linspace(-1.0, 1.5, 7))
    return robot, SweepArrows(state, SIZE)


def _last(work: SweepArrows, name: str) -> int:
    return max(k for k, step in enumerate(work.steps) if step.name == name)


def test_velocities(work: tuple[phistar.Robot, SweepArrows]) -> None:
    """V at the last link: angular and linear velocity of its body, lengths by square roots."""
    robot, arrows = work
    q, v = arrows.state.q, arrows.state.v
    links = [body.link for body in robot.model.bodies]
    moved = np.array([robot.frame_velocity(q, v, link, "world_aligned") for link in links])
    linear, angular = arrows.at(_last(arrows, "V"))
    for found, half in ((linear, moved[:, 3:]), (angular, moved[:, :3])):
        speeds = np.linalg.norm(half, axis=1)
        expected = LONGEST * SIZE * half[-1] / np.sqrt(speeds[-1] * speeds.max())
        assert found[-1, 1] - found[-1, 0] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert found[-1, 0] == pytest.approx(robot.frame_pose(q, links[-1])[:3, 3], abs=1e-12)


def test_joint_forces_are_along_joint_axes(work: tuple[phistar.Robot, SweepArrows]) -> None:
    """ε and ν of revolute joints: angular arrows along the axis, of one sign, D being positive."""
    _, arrows = work
    signs: dict[int, set[float]] = {}
    for name in ("ε", "ν"):
        linear, angular = arrows.at(_last(arrows, name))
        assert len(linear) == 0
        assert len(angular) > 3
        for begin, end in angular:
            arrow = (end - begin) / np.linalg.norm(end - begin)
            (body,) = [
                k
                for k, pose in enumerate(arrows.state.poses)
                if np.allclose(pose[:3, 3], begin) and abs(arrow @ pose[:3, 2]) > 1.0 - 1e-9
            ]
            sign = float(np.sign(arrow @ arrows.state.poses[body][:3, 2]))
            signs.setdefault(body, set()).add(sign)
    assert all(len(found) == 1 for found in signs.values())


def test_the_lit_line_is_that_of_the_step(work: tuple[phistar.Robot, SweepArrows]) -> None:
    """Once in the text, with the link and the value."""
    _, arrows = work
    text = arrows.text(_last(arrows, "α"))
    (lit,) = [row for row in text.split("<div") if "background" in row]
    assert "α = " in lit
    assert "panda_link7" in text
