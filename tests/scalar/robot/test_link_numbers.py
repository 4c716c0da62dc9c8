# SPDX-License-Identifier: BSD-3-Clause
"""Links in frames of our own choice: the same robot, exactly, unless snapping is asked for."""

import numpy as np
import pytest

import phistar
from phistar.algebra.dense import Dense
from phistar.algebra.symbols import mass_matrix
from phistar.algorithms.programs import PROGRAMS
from phistar.compile import kernel
from phistar.model import Model
from phistar.model.builder import ModelBuilder
from phistar.model.components import GROUND
from phistar.model.configuration import random_configuration
from phistar.model.joints import JOINT_KINDS
from phistar.model.numpy_kinematics import body_poses
from phistar.model.random import random_model
from phistar.scalar.interpret import run
from phistar.scalar.lower import LoweringOptions, to_unrolled
from phistar.scalar.robot.joint_transforms import joint_transform
from phistar.scalar.robot.link_numbers import (
    FlatLayout,
    LinkNumbers,
    build_link_numbers,
    flat_table,
    frame_as_link,
)
from phistar.scalar.robot.link_scalars import link_scalars
from phistar.scalar.robot.rounding import ROUNDING_TOLERANCE
from phistar.spatial import force_transform, inertia_matrix

ABSENT = frozenset({"f_ext", "gravity"})
MOVING = tuple(kind for kind in JOINT_KINDS if kind != "fixed")


def pose(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """A 4x4 matrix."""
    result = np.eye(4)
    result[:3, :3], result[:3, 3] = R, p
    return result


def poses_of(links: list[LinkNumbers], q: np.ndarray) -> np.ndarray:
    """Poses of the model's bodies, by way of our own frames."""
    ours: list[np.ndarray] = []
    for link in links:
        rotation, offset = joint_transform(link_scalars(link), lambda i, k=link.q: float(q[k + i]))  # type: ignore[misc]
        columns = [rotation.rotate([float(i == j) for i in range(3)]) for j in range(3)]
        here = pose(np.array(columns, float).T, np.array(offset, float))
        ours.append(here if link.parent == GROUND else ours[link.parent] @ here)
    seats = [np.linalg.inv(pose(link.body_placement.R, link.body_placement.p)) for link in links]
    return np.array([a @ b for a, b in zip(ours, seats, strict=True)])


@pytest.mark.parametrize("frames", ["file", "normal", "square"])
@pytest.mark.parametrize("kind", MOVING)
def test_every_joint_kind_moves_as_the_model_says(kind: str, frames: str) -> None:
    """Poses of all bodies; 1e-14 of the largest entry."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        model = random_model(rng, 4, kinds=[kind], anchors=0.5)
        q = random_configuration(model, rng)
        expected = body_poses(model, q)
        got = poses_of(build_link_numbers(model, frames), q)
        assert np.abs(got - expected).max() <= 2e-14 * np.abs(expected).max()


@pytest.mark.parametrize("frames", ["file", "normal", "square"])
def test_followers_move_with_their_leaders(frames: str) -> None:
    """Mimic joints: scale and offset of the leader's coordinate."""
    model = random_model(
        np.random.default_rng(3), 8, kinds=["revolute", "prismatic"], mimic=0.6, anchors=0.5
    )
    assert any(body.scale != 1 for body in model.bodies)
    q = random_configuration(model, np.random.default_rng(4))
    expected = body_poses(model, q)
    got = poses_of(build_link_numbers(model, frames), q)
    assert np.abs(got - expected).max() <= 2e-14 * np.abs(expected).max()


def matrix_of(link: LinkNumbers) -> np.ndarray:
    """The 6x6 inertia in the model's body frame."""
    x, y, z = link.h
    H = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    here = np.block([[link.J, H], [H.T, link.mass * np.eye(3)]])
    seat = force_transform(pose(link.body_placement.R, link.body_placement.p))
    return np.asarray(seat @ here @ seat.T)


@pytest.mark.parametrize("frames", ["file", "normal", "square"])
def test_inertias_are_the_models(frames: str) -> None:
    """Without regrouping each link has its own inertia, seen from another frame."""
    model = random_model(np.random.default_rng(5), 11)
    for link, body in zip(build_link_numbers(model, frames), model.bodies, strict=True):
        expected = inertia_matrix(body.inertia)
        error = np.abs(matrix_of(link) - expected).max()
        assert error <= 1e-13 * max(np.abs(expected).max(), np.abs(link.J).max())


@pytest.mark.parametrize("frames", ["file", "normal", "square"])
def test_axes_are_z(frames: str) -> None:
    """Joints about or along an axis have it as z; normal frames are a turn about z, one about x."""
    model = random_model(
        np.random.default_rng(6), 9, kinds=["revolute", "prismatic", "cylindrical", "helical"]
    )
    for link in build_link_numbers(model, frames):
        assert {axis for column in link.columns for axis, _ in column} <= {2, 5}
        np.testing.assert_allclose(link.placement.R @ link.placement.R.T, np.eye(3), atol=1e-14)
        if frames == "normal" and link.kind != "prismatic":
            assert link.placement.R[2, 0] == 0.0


def _dynamics(
    model: Model, options: LoweringOptions, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mass matrix and bias of scalar programs."""
    times = to_unrolled(kernel("mass_matrix_times").schedule, model, ABSENT, options=options)
    unit = np.eye(times.signature.inputs["vdot"])
    rows = {"q": np.broadcast_to(q, (len(unit), len(q))), "vdot": unit}
    bias = to_unrolled(kernel("bias_force").schedule, model, ABSENT, options=options)
    rate = np.linspace(-1, 1, len(unit))
    return run(times, rows)["tau"].T, run(bias, {"q": q[None], "v": rate[None]})["tau"][0]


@pytest.mark.parametrize("frames", ["file", "normal", "square"])
@pytest.mark.parametrize("regroup", [False, True])
def test_dynamics_are_the_models(frames: str, regroup: bool, models: dict[str, Model]) -> None:
    """Mass matrix and bias against dense operators; 1e-11."""
    for robot in ("mixed tree", "forest", "free base", "arms"):
        model = models[robot]
        q = random_configuration(model, np.random.default_rng(8))
        matrix, bias = _dynamics(model, LoweringOptions(frames=frames, regroup=regroup), q)
        rate = np.linspace(-1, 1, len(bias))
        still = np.zeros(6 * len(model.bodies))
        dense = Dense(model, q, vectors={"v": rate, "f_ext": still})
        known, force = dense(mass_matrix), dense(PROGRAMS["bias_force"]["tau"])
        assert np.abs(matrix - known).max() <= 1e-11 * np.abs(known).max()
        assert np.abs(bias - force).max() <= 1e-11 * np.abs(force).max()


@pytest.mark.parametrize("regroup", ["line", "flat"])
def test_regrouping_leaves_what_the_joint_feels(regroup: str) -> None:
    """Revolute links keep no mass, no h_z and no J_yy or E_zz; all mass is at the robot's base."""
    model = phistar.load("quadruped").model
    links = build_link_numbers(model, regroup=regroup)
    for link in links:
        if link.kind == "revolute":
            assert link.mass == 0.0
            assert link.h[2] == 0.0
            assert (link.J[1, 1] if regroup == "line" else link.E[2]) == 0.0
            second = np.trace(link.J) / 2 - np.diag(link.J)
            np.testing.assert_allclose(link.E, second, atol=1e-14 * np.abs(link.J).max())
    total = sum(float(inertia_matrix(body.inertia)[5, 5]) for body in model.bodies)
    assert links[0].kind == "free"
    assert links[0].mass == pytest.approx(total, rel=1e-14)
    tip = next(k for k in reversed(range(len(links))) if links[k].kind == "revolute")
    locked = build_link_numbers(model, regroup=regroup, locked=frozenset({tip}))
    assert locked[tip].mass > 0.0


# -- snapping


@pytest.mark.parametrize("name", ["panda", "quadruped", "humanoid", "ur5"])
@pytest.mark.parametrize("regroup", [False, True])
def test_the_default_only_removes_rounding(name: str, regroup: bool) -> None:
    """Numbers change by some 1e-15 of the link's largest, or not at all."""
    model = phistar.load(name).model
    for exact, link in zip(
        build_link_numbers(model, regroup=regroup, snap=0.0),
        build_link_numbers(model, regroup=regroup),
        strict=True,
    ):
        assert np.abs(exact.placement.R - link.placement.R).max() <= ROUNDING_TOLERANCE
        assert np.abs(exact.placement.p - link.placement.p).max() <= ROUNDING_TOLERANCE
        assert abs(exact.angle_offset - link.angle_offset) <= ROUNDING_TOLERANCE
        assert exact.mass == link.mass
        assert np.abs(exact.h - link.h).max() <= ROUNDING_TOLERANCE * 100
        assert np.abs(exact.J - link.J).max() <= ROUNDING_TOLERANCE * 100


def crooked(tilt: float) -> Model:
    """Two links; the second one's axis is off the first one's by a tiny angle."""
    builder = ModelBuilder("crooked")
    builder.link("base")
    for name, com in (("one", (0.1, 0.2, 0.3)), ("two", (0.2, -0.1, 0.1))):
        builder.link(name, mass=1.0, com=com, inertia=(0.1, 0.12, 0.13))
    builder.joint("a", "revolute", "base", "one", axis=(0, 0, 1))
    builder.joint(
        "b", "revolute", "one", "two", xyz=(0.3, 0.0, tilt), rpy=(tilt, 0.0, 0.0), axis=(0, 0, 1)
    )
    return builder.build()


def test_small_numbers_of_the_user_are_kept() -> None:
    """An axis that is 1e-12 off, and an offset of 1e-12 m, are not rounding."""
    (_, exact), (_, snapped) = (
        build_link_numbers(crooked(1e-12), "file", snap=s) for s in (ROUNDING_TOLERANCE, 1e-10)
    )
    assert exact.placement.R[2, 1] == pytest.approx(1e-12, rel=1e-3)
    assert exact.placement.p[2] == 1e-12
    assert snapped.placement.R[2, 1] == 0.0
    assert snapped.placement.p[2] == 0.0


@pytest.mark.parametrize("tilt", [1e-12, 3e-11])
def test_snapping_changes_as_much_as_it_says(tilt: float) -> None:
    """With snap=1e-10 results move by about that, without by rounding."""
    model, straight = crooked(tilt), crooked(0.0)
    q = np.array([0.4, -0.3])
    (exact, force), (near, close) = (
        _dynamics(model, LoweringOptions(snap=s), q) for s in (ROUNDING_TOLERANCE, 1e-10)
    )
    snapped, held = _dynamics(straight, LoweringOptions(), q)
    assert 0.0 < np.abs(exact - near).max() + np.abs(force - close).max() <= 10 * 1e-10
    np.testing.assert_allclose(near, snapped, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(close, held, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("regroup", [False, True])
@pytest.mark.parametrize(("mass", "length"), [(1e-9, 1e-4), (1e-3, 1e-2), (1e3, 30.0)])
def test_robots_of_any_size(mass: float, length: float, regroup: bool) -> None:
    """Rounding is measured by the robot's own numbers: a double pendulum of any size is one.

    Scaled by mass and length, its mass matrix is that of the one with a kilogram and a metre.
    """

    def pendulum(m: float, l: float) -> Model:  # noqa: E741
        builder = ModelBuilder("pendulum")
        builder.link("base")
        for name in ("upper", "lower"):
            inertia = np.array((0.1, 0.2, 0.3)) * m * l**2
            builder.link(name, mass=m, com=(l, 0.3 * l, 0), inertia=inertia)
        builder.joint("a", "revolute", "base", "upper", axis=(0, 1, 0))
        builder.joint("b", "revolute", "upper", "lower", xyz=(l, 0, 0), axis=(0, 1, 0))
        return builder.build()

    q = np.array([0.3, 0.2])
    options = LoweringOptions(regroup=regroup)
    matrix, _ = _dynamics(pendulum(mass, length), options, q)
    one, _ = _dynamics(pendulum(1.0, 1.0), options, q)
    np.testing.assert_allclose(matrix / (mass * length**2), one, rtol=1e-13)


@pytest.mark.parametrize("kind", ["revolute", "helical", "free"])
def test_flat_numbers_stand_where_the_layout_says(kind: str) -> None:
    """Made one by one or for all links at once; as scalars they come back by their names."""
    model = random_model(np.random.default_rng(3), 3, kinds=[kind], armature=0.5)
    links = build_link_numbers(model)
    for link, row in zip(links, flat_table(links).tolist(), strict=True):
        assert row == link.flat_numbers
        scalars, flat = link_scalars(link), link.flat_numbers
        for name in ("p", "mass", "h", "E", "scale", "offset", "angle_offset"):
            found = np.array(flat[getattr(FlatLayout, name)])
            owner = link.placement if name == "p" else link
            assert (found == getattr(owner, name)).all()
            assert (found == getattr(scalars, name)).all()
        assert flat[FlatLayout.R] == link.placement.R.ravel().tolist()
        assert (np.array(scalars.body_rotation) == link.body_placement.R).all()
        assert (np.array(scalars.body_offset) == link.body_placement.p).all()
        assert scalars.armature == list(link.armature)
        assert scalars.min_pivots == list(link.min_pivots)


def test_rows_of_several_lengths_end_in_nan() -> None:
    """Links of several kinds and a frame: each row begins with the link's own numbers."""
    kinds = ["free", "helical", "revolute", "spherical", "prismatic"]
    model = random_model(np.random.default_rng(5), 12, kinds=kinds, armature=0.5)
    links = build_link_numbers(model, locked=frozenset({4}))
    links.append(frame_as_link(len(links), 3, links[7].body_placement))
    for link, row in zip(links, flat_table(links), strict=True):
        size = len(link.flat_numbers)
        assert row[:size].tolist() == link.flat_numbers
        assert np.isnan(row[size:]).all()
    assert len({len(link.flat_numbers) for link in links}) > 3
    assert (links[-1].placement.R == links[7].body_placement.R).all()
    np.testing.assert_array_equal(links[-1].body_placement.R, np.eye(3))
