# SPDX-License-Identifier: BSD-3-Clause
"""Bundled robots with loops move as the drawings of their mechanisms say."""

import numpy as np
import pytest

import phistar
from tools import make_delta

WITH_LOOPS = ("delta", "four_bar", "humanoid_ankles")


@pytest.mark.parametrize("name", WITH_LOOPS)
def test_home_is_closed(name: str) -> None:
    """To 1e-12, so that a user can begin at home."""
    robot = phistar.load(name)
    assert np.abs(np.asarray(robot.loop_error(robot.home))).max() < 1e-12


@pytest.mark.parametrize(
    ("name", "freedoms", "rank", "rows"),
    [("delta", 3, 18, 18), ("four_bar", 1, 2, 5), ("humanoid_ankles", 27, 12, 12)],
)
def test_mobility(name: str, freedoms: int, rank: int, rows: int) -> None:
    """As counted by hand: the platform shifts, the crank turns, the body and its 21 joints move."""
    robot = phistar.load(name)
    found = robot.mobility(robot.home)
    assert (found.degrees_of_freedom, found.rank, found.rows) == (freedoms, rank, rows)
    assert not found.singular
    assert found.idle == ()


def arm_angle(place: np.ndarray, k: int) -> float:
    """Of a delta's arm for a place of the platform, in closed form: the rod ends on a circle."""
    angle = 2 * np.pi * k / 3
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    out, aside = turn @ place[:2]
    x = out + make_delta.PLATFORM_RADIUS - make_delta.BASE_RADIUS
    z = place[2]
    # |(l cos t - x, aside, -l sin t - z)| = rod, for the arm's length l.
    length = make_delta.ARM_LENGTH
    right = (x * x + z * z + aside * aside + length**2 - make_delta.ROD_LENGTH**2) / (2 * length)
    return float(np.arctan2(-z, x) - np.arccos(right / np.hypot(x, z)))


@pytest.mark.parametrize("seed", range(4))
def test_delta_has_the_textbook_inverse_kinematics(seed: int) -> None:
    """Arms at a given place of the platform, which does not turn; absolute 1e-10."""
    robot = phistar.load("delta")
    place = np.random.default_rng(seed).uniform([-0.15, -0.15, -0.75], [0.15, 0.15, -0.55])
    pose = [place[0], place[1], place[2] + make_delta.DEPTH, 0, 0, 0, 1]
    q = robot.assemble(robot.configuration({"platform_joint": pose}), fixed=["platform_joint"])
    np.testing.assert_allclose(robot.frame_pose(q, "platform")[:3, 3], place, atol=1e-12)
    expected = [arm_angle(place, k) for k in range(3)]
    np.testing.assert_allclose(q[:3], expected, atol=1e-10)
    assert robot.minimal(q).independent == ("arm1_joint", "arm2_joint", "arm3_joint")


def test_delta_platform_does_not_turn() -> None:
    """Driven by its arms alone it keeps its orientation; absolute 1e-11."""
    robot = phistar.load("delta")
    q = robot.home
    for angles in ([0.3, -0.2, 0.1], [-0.4, 0.5, 0.6]):
        q = robot.minimal(q).expand(np.array(angles))
        np.testing.assert_allclose(robot.frame_pose(q, "platform")[:3, :3], np.eye(3), atol=1e-11)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("angle", [-0.7, 0.3])
def test_ankle_follows_its_cranks(side: str, angle: float) -> None:
    """Both cranks, the rods and the ankle are parallelograms: equal angles; absolute 1e-11."""
    robot = phistar.load("humanoid_ankles")
    cranks = [f"{side}_{which}_crank_joint" for which in ("inner", "outer")]
    held = [*cranks, "root_joint"]
    q = robot.configuration(
        {**robot.configuration_dict(robot.home), **dict.fromkeys(cranks, angle)}
    )
    found = robot.configuration_dict(robot.assemble(q, fixed=held))
    # The axis of flexion points the other way.
    np.testing.assert_allclose(found[f"{side}_ankle_flexion"], -angle, atol=1e-11)
    np.testing.assert_allclose(found[f"{side}_ankle_inversion"], 0.0, atol=1e-11)


def test_cranks_against_each_other_tilt_the_foot() -> None:
    """The outer heel goes down by 50 mm per radian, 40 mm from the middle; rows vanish to 1e-15."""
    robot = phistar.load("humanoid_ankles")
    rates = {
        "left_outer_crank_joint": -1.0,
        "left_inner_crank_joint": 1.0,
        "left_outer_rod_swing": 1.0,
        "left_inner_rod_swing": -1.0,
        "left_ankle_inversion": 0.05 / 0.04,
    }
    rows = np.asarray(robot.loop_jacobian(robot.home))
    np.testing.assert_allclose(rows @ robot.tangent(rates), 0.0, atol=1e-15)
    rates["left_ankle_inversion"] *= -1
    assert np.abs(rows @ robot.tangent(rates)).max() > 0.09
