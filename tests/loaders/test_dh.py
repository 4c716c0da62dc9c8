# SPDX-License-Identifier: BSD-3-Clause
"""Denavit–Hartenberg tables: against closed forms, and against the products of their matrices."""

import math

import numpy as np
import pytest

import phistar
from phistar import robots
from phistar.errors import ArgumentError, ModelError
from phistar.loaders import load_model
from phistar.loaders.dh import DHRow, from_dh
from phistar.model import Model
from phistar.model.numpy_kinematics import frame_pose, jacobian, link_poses

PI = math.pi


def rotation_z(t: float) -> np.ndarray:
    """Turn about z."""
    c, s = math.cos(t), math.sin(t)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def rotation_x(t: float) -> np.ndarray:
    """Turn about x."""
    c, s = math.cos(t), math.sin(t)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def shift(x: float = 0.0, z: float = 0.0) -> np.ndarray:
    """Move along x and z."""
    result = np.eye(4)
    result[0, 3], result[2, 3] = x, z
    return result


def row_matrix(row: DHRow, q: float, convention: str) -> np.ndarray:
    """The matrix of one row, written as the textbooks have it."""
    sliding = row.kind == "prismatic"
    theta = row.theta if sliding else row.theta + row.sign * q
    d = row.d + row.sign * q if sliding else row.d
    along, across = rotation_z(theta) @ shift(z=d), shift(x=row.a) @ rotation_x(row.alpha)
    return along @ across if convention == "standard" else across @ along


def random_table(seed: int, n: int = 6) -> list[DHRow]:
    """Rows of random numbers, every third joint sliding, some backwards."""
    rng = np.random.default_rng(seed)
    return [
        DHRow(
            *rng.uniform(-0.5, 0.5, 1),
            *rng.uniform(-PI, PI, 1),
            *rng.uniform(-0.5, 0.5, 1),
            *rng.uniform(-PI, PI, 1),
            kind="prismatic" if k % 3 == 2 else "revolute",
            sign=-1.0 if k % 4 == 3 else 1.0,
        )
        for k in range(n)
    ]


@pytest.mark.parametrize("convention", ["standard", "modified"])
@pytest.mark.parametrize("seed", range(4))
def test_every_frame_is_the_product_of_its_rows(seed: int, convention: str) -> None:
    """link i stands where the first i matrices of the table put it, to 1e-14."""
    rows = random_table(seed)
    model = from_dh(rows, convention=convention)
    q = np.random.default_rng(seed + 100).uniform(-2, 2, len(rows))
    expected, poses = np.eye(4), link_poses(model, q)
    for number, row in enumerate(rows, start=1):
        expected = expected @ row_matrix(row, q[number - 1], convention)
        np.testing.assert_allclose(poses[f"link{number}"], expected, atol=1e-14)


def test_conventions_differ() -> None:
    """The test above can tell the conventions apart."""
    rows = random_table(0)
    first, second = (from_dh(rows, convention=c) for c in ("standard", "modified"))
    q = np.full(6, 0.3)
    assert np.abs(frame_pose(first, q, "link6") - frame_pose(second, q, "link6")).max() > 0.1


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_planar_two_link_arm(convention: str) -> None:
    """2R arm: tip at (l1 c1 + l2 c12, l1 s1 + l2 s12), whichever way the table is written."""
    l1, l2, q1, q2 = 0.5, 0.3, 0.4, 0.9
    if convention == "standard":
        rows, tip = [(l1, 0, 0, 0), (l2, 0, 0, 0)], "link2"
    else:
        rows, tip = [(0, 0, 0, 0), (l1, 0, 0, 0), DHRow(a=l2, kind="fixed", link="tip")], "tip"
    model = from_dh(rows, convention=convention)
    assert model.nq == 2
    x = l1 * math.cos(q1) + l2 * math.cos(q1 + q2)
    y = l1 * math.sin(q1) + l2 * math.sin(q1 + q2)
    np.testing.assert_allclose(frame_pose(model, [q1, q2], tip)[:3, 3], [x, y, 0], atol=1e-15)
    columns = [[-y, x], [-l2 * math.sin(q1 + q2), l2 * math.cos(q1 + q2)]]
    np.testing.assert_allclose(jacobian(model, [q1, q2], tip)[3:5].T, columns, atol=1e-15)


def test_scara() -> None:
    """A SCARA's tool: x and y of a 2R arm, z goes down with the slide, yaw is the sum of turns."""
    l1, l2, q = 0.35, 0.25, [0.2, -0.7, 0.1, 0.5]
    rows = [
        DHRow(a=l1, d=0.4),
        DHRow(a=l2, alpha=PI),
        DHRow(kind="prismatic"),
        DHRow(d=0.05),
    ]
    tool = frame_pose(from_dh(rows), q, "link4")
    x = l1 * math.cos(q[0]) + l2 * math.cos(q[0] + q[1])
    y = l1 * math.sin(q[0]) + l2 * math.sin(q[0] + q[1])
    np.testing.assert_allclose(tool[:3, 3], [x, y, 0.4 - q[2] - 0.05], atol=1e-15)
    yaw = math.atan2(tool[1, 0], tool[0, 0])
    assert yaw == pytest.approx(q[0] + q[1] - q[3], abs=1e-15)


PANDA = [
    DHRow(0.0, 0.0, 0.333),
    DHRow(0.0, -PI / 2),
    DHRow(0.0, PI / 2, 0.316),
    DHRow(0.0825, PI / 2),
    DHRow(-0.0825, -PI / 2, 0.384),
    DHRow(0.0, PI / 2),
    DHRow(0.088, PI / 2),
    DHRow(d=0.107, kind="fixed", link="flange"),
]
"""Table of the Panda in the manufacturer's interface specification (modified convention)."""


def panda() -> Model:
    """The Panda from its table."""
    return from_dh(PANDA, convention="modified", name="panda")


def test_panda_stretched_out() -> None:
    """At q = 0 the flange is at x = 0.088, z = 0.333 + 0.316 + 0.384 - 0.107, pointing down."""
    flange = frame_pose(panda(), np.zeros(7), "flange")
    np.testing.assert_allclose(flange[:3, 3], [0.088, 0, 0.926], atol=1e-15)
    np.testing.assert_allclose(flange[:3, :3], np.diag([1, -1, -1]), atol=1e-15)


def test_panda_ready() -> None:
    """In the ready pose the flange is at (0.3069, 0, 0.5903) m and points down, worked out by hand.

    The upper arm leans back by π/4, the forearm lies along x (-π/4 + 3π/4 = π/2), the hand points
    down; so each length adds to x and z with 0, ±1 or sin π/4.
    """
    q = [0, -PI / 4, 0, -3 * PI / 4, 0, PI / 2, PI / 4]
    r = math.sqrt(0.5)
    x = (-0.316 + 0.0825) * r + 0.384 + 0.088
    z = 0.333 + (0.316 + 0.0825) * r + 0.0825 - 0.107
    flange = frame_pose(panda(), q, "flange")
    np.testing.assert_allclose(flange[:3, 3], [x, 0, z], atol=1e-15)
    np.testing.assert_allclose(flange[:3, 2], [0, 0, -1], atol=1e-15)
    np.testing.assert_allclose([x, z], [0.3069, 0.5903], atol=5e-5)


def test_panda_agrees_with_the_bundled_file() -> None:
    """The table and the bundled URDF put every link alike, to 1e-14."""
    model, _ = load_model(robots.path("panda"))
    table = panda()
    rng = np.random.default_rng(3)
    names = model.joint_names
    assert len(names) == 7
    for _ in range(5):
        q = rng.uniform(-2, 2, 7)
        for number, joint in enumerate(names, start=1):
            link = model.joints[joint].child
            np.testing.assert_allclose(
                frame_pose(table, q, f"link{number}"), frame_pose(model, q, link), atol=1e-14
            )


PUMA = [
    DHRow(0.0, PI / 2, 0.67),
    DHRow(0.43, 0.0),
    DHRow(0.02, -PI / 2, 0.15),
    DHRow(0.0, PI / 2, 0.43),
    DHRow(0.0, -PI / 2),
    DHRow(),
]
"""A six-axis arm with an offset shoulder and a spherical wrist (lengths of our own)."""


def test_spherical_wrist_does_not_move_with_its_own_joints() -> None:
    """The wrist centre of a Puma-like arm depends on the first three joints only."""
    model = from_dh(PUMA)
    rng = np.random.default_rng(4)
    q = rng.uniform(-2, 2, 6)
    centre = frame_pose(model, q, "link6")[:3, 3]
    q[3:] = rng.uniform(-2, 2, 3)
    np.testing.assert_allclose(frame_pose(model, q, "link6")[:3, 3], centre, atol=1e-15)
    assert np.abs(jacobian(model, q, "link6")[3:, 3:]).max() < 1e-15


def test_base_and_names() -> None:
    """The table may stand anywhere in the world, and links and joints may have names."""
    base = shift(1.0, 2.0) @ rotation_z(0.5)
    rows = [DHRow(a=0.3, joint="shoulder", link="upper"), DHRow(a=0.2)]
    model = from_dh(rows, base=base, name="arm")
    assert model.name == "arm"
    assert model.link_names == ("base", "upper", "link2")
    assert model.joint_names == ("shoulder", "joint2")
    expected = base @ shift(x=0.5)
    np.testing.assert_allclose(frame_pose(model, [0, 0], "link2"), expected, atol=1e-15)
    np.testing.assert_array_equal(frame_pose(model, [0, 0], "base"), base)


def test_the_table_is_reached_by_its_name() -> None:
    """``phistar.from_dh`` and ``phistar.DHRow``; ``load`` makes a robot of the model."""
    robot = phistar.load(phistar.from_dh([phistar.DHRow(a=0.3, mass=1.0, inertia=(1, 1, 1))]))
    assert robot.joint_names == ("joint1",)


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_masses_are_in_the_frames_of_the_table(convention: str) -> None:
    """Mass, centre and inertia are those of the row, in the frame that the row ends in."""
    row = DHRow(0.3, 0.4, 0.5, 0.6, mass=2.0, com=(0.1, 0.2, 0.3), inertia=(0.1, 0.2, 0.25))
    model = from_dh([row, row], convention=convention)
    link = model.link("link2")
    assert (link.mass, link.com.tolist()) == (2.0, [0.1, 0.2, 0.3])
    assert np.array_equal(link.inertia, np.diag([0.1, 0.2, 0.25]))
    assert model.total_mass == 4.0


def test_limits_are_kept() -> None:
    """Limits of a row are those of its joint."""
    row = DHRow(lower=-1.0, upper=2.0, velocity=3.0, effort=4.0)
    limits = from_dh([row]).joint("joint1").limits
    assert limits.lower + limits.upper + limits.velocity + limits.effort == (-1, 2, 3, 4)


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([(1, 2, 3)], {}, "row 1 has 3 numbers"),
        ([(1, 2, 3, 4), (1, 2, 3, math.nan)], {}, "row 2 .* not finite"),
        ([DHRow(kind="spherical")], {}, "'spherical'"),
        ([DHRow(sign=2.0)], {}, "1 or -1"),
        ([(0, 0, 0, 0)], {"convention": "craig"}, "'standard' or 'modified'"),
        ([(0, 0, 0, 0)], {"base": np.diag([2.0, 1, 1, 1])}, "base is not a rigid pose"),
        ([(0, 0, 0, 0)], {"base": np.eye(3)}, "base is of shape"),
    ],
)
def test_bad_tables_are_refused(rows: list, options: dict[str, str], words: str) -> None:
    """What a table cannot say is an error that names the row."""
    with pytest.raises(ArgumentError, match=words):
        from_dh(rows, **options)


def test_names_must_differ() -> None:
    """Two links of the same name are refused as in any other robot."""
    with pytest.raises(ModelError, match="duplicate link"):
        from_dh([DHRow(link="a"), DHRow(link="a")])
