# SPDX-License-Identifier: BSD-3-Clause
"""Poses, Jacobians and velocities of random robots of every joint kind.

Witnesses: products of the joints' own transforms along the tree, finite differences and complex
steps of poses, sums over links.
"""

import numpy as np
import pytest

from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.model import GROUND_NAME, Model, ModelBuilder
from phistar.model.configuration import integrate, random_configuration, to_mapping
from phistar.model.numpy_kinematics import (
    body_poses,
    body_velocities,
    center_of_mass,
    frame_pose,
    frame_velocity,
    jacobian,
    link_poses,
)
from phistar.model.random import TOPOLOGIES, random_model
from phistar.spatial import motion_transform, pose, pose_inverse, unskew

REFERENCES = ("local", "world", "world_aligned")
RICH = {"fixed": 0.3, "mimic": 0.3, "anchors": 0.4, "frames": 4}

each_reference = pytest.mark.parametrize("reference", REFERENCES)
each_topology = pytest.mark.parametrize("topology", TOPOLOGIES)


def draw(
    topology: str = "tree", seed: int = 0, n: int = 12
) -> tuple[Model, np.ndarray, np.ndarray]:
    """A random robot with a configuration and a velocity."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, n, topology=topology, **RICH)
    return model, random_configuration(model, rng), rng.normal(size=model.nv)


def own_coordinates(model: Model, name: str, q: np.ndarray) -> np.ndarray:
    """Coordinates of one joint, its mimic law and reference applied by hand."""
    joint = model.joints[name]
    if joint.joint_kind.nv == 0:
        return np.zeros(0)
    if joint.mimic is None:
        return q[joint.q_slice] - joint.reference if joint.reference else q[joint.q_slice]
    leader = model.joints[joint.mimic.joint]
    shown = own_coordinates(model, leader.name, q) + leader.reference
    return joint.mimic.multiplier * shown + joint.mimic.offset - joint.reference


def poses_by_hand(model: Model, q: np.ndarray) -> dict[str, np.ndarray]:
    """World poses of the links from the joints as the file has them, without bodies."""
    poses = {GROUND_NAME: np.eye(4)}
    carried = {joint.child for joint in model.joints.values()}
    poses |= {link.name: np.eye(4) for link in model.links if link.name not in carried}
    for joint in model.joints.values():
        moved = joint.joint_kind.transform(own_coordinates(model, joint.name, q))
        poses[joint.child] = poses[joint.parent] @ joint.origin @ moved @ joint.child_pose
    return poses


def twist_by_differences(model: Model, q: np.ndarray, v: np.ndarray, frame: str) -> np.ndarray:
    """Velocity [angular; linear] of a frame's origin in world axes, by central differences."""
    h = 1e-6
    ahead = frame_pose(model, integrate(model, q, h * v), frame)
    behind = frame_pose(model, integrate(model, q, -h * v), frame)
    rate = (ahead - behind) / (2 * h)
    turn = frame_pose(model, q, frame)[:3, :3]
    return np.concatenate([unskew(rate[:3, :3] @ turn.T), rate[:3, 3]])


@each_topology
def test_poses_follow_the_joints(topology: str) -> None:
    """Every link is where the product of the joint transforms puts it, to 1e-13."""
    model, q, _ = draw(topology)
    expected = poses_by_hand(model, q)
    poses = link_poses(model, q)
    assert list(poses) == list(model.link_names)
    for name, found in poses.items():
        np.testing.assert_allclose(found, expected[name], atol=1e-13)
        np.testing.assert_allclose(frame_pose(model, q, name), found, atol=1e-13)


def test_extra_frames_sit_on_their_links() -> None:
    """A frame's pose is that of its link times its own."""
    model, q, _ = draw(seed=1)
    extra = [frame for frame in model.frames.values() if frame.name.startswith("frame")]
    assert len(extra) == 4
    for frame in extra:
        expected = frame_pose(model, q, frame.link) @ frame.pose
        np.testing.assert_allclose(frame_pose(model, q, frame.name), expected, atol=1e-13)


@each_topology
@pytest.mark.parametrize("seed", range(2))
def test_jacobian_is_the_derivative_of_the_pose(topology: str, seed: int) -> None:
    """J v is the finite difference of every frame's pose, to 1e-7 (h = 1e-6)."""
    model, q, v = draw(topology, seed)
    for frame in model.frame_names:
        twist = jacobian(model, q, frame, "world_aligned") @ v
        np.testing.assert_allclose(twist, twist_by_differences(model, q, v, frame), atol=1e-7)


def test_jacobian_by_complex_step() -> None:
    """Poses are analytic in q: a complex step gives J v to 1e-12, no truncation error."""
    model, q, v = draw(seed=3)
    moved = integrate(model, q + 0j, 1e-30j * v)
    for frame in model.frame_names:
        rate = frame_pose(model, moved, frame).imag / 1e-30
        turn = frame_pose(model, q, frame)[:3, :3]
        twist = np.concatenate([unskew(rate[:3, :3] @ turn.T), rate[:3, 3]])
        np.testing.assert_allclose(jacobian(model, q, frame) @ v, twist, atol=1e-12)


def test_references_are_related_by_transforms() -> None:
    """local, world and world_aligned are one velocity in three frames, to 1e-13."""
    model, q, _ = draw(seed=4)
    for frame in model.frame_names:
        place = frame_pose(model, q, frame)
        local = jacobian(model, q, frame, "local")
        world = motion_transform(place) @ local
        np.testing.assert_allclose(jacobian(model, q, frame, "world"), world, atol=1e-13)
        to_origin = motion_transform(pose_inverse(pose(translation=place[:3, 3])))
        aligned = to_origin @ world
        np.testing.assert_allclose(jacobian(model, q, frame, "world_aligned"), aligned, atol=1e-13)


def test_world_aligned_is_the_default() -> None:
    """Without a word about the reference, velocities are those of the origin in world axes."""
    model, q, v = draw(seed=5)
    frame = model.frame_names[-1]
    np.testing.assert_array_equal(
        jacobian(model, q, frame), jacobian(model, q, frame, "world_aligned")
    )
    np.testing.assert_array_equal(
        frame_velocity(model, q, v, frame), frame_velocity(model, q, v, frame, "world_aligned")
    )


@each_topology
@each_reference
def test_frame_velocity_is_jacobian_times_velocity(topology: str, reference: str) -> None:
    """The recursion outward and the Jacobian give the same velocity, to 1e-12."""
    model, q, v = draw(topology, 6)
    for frame in model.frame_names:
        expected = jacobian(model, q, frame, reference) @ v
        found = frame_velocity(model, q, v, frame, reference)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_body_velocities_are_those_of_their_frames() -> None:
    """Each link's velocity is its body's, shifted to the link's frame, to 1e-12."""
    model, q, v = draw(seed=7)
    velocities = body_velocities(model, q, v)
    assert velocities.shape == (len(model.bodies), 6)
    for name in model.link_names:
        frame = model.frames[name]
        if frame.body < 0:
            continue
        shifted = motion_transform(pose_inverse(frame.body_pose)) @ velocities[frame.body]
        np.testing.assert_allclose(shifted, frame_velocity(model, q, v, name, "local"), atol=1e-12)


@each_topology
def test_center_of_mass_is_the_weighted_mean(topology: str) -> None:
    """Σ m c / Σ m over the links one by one, with or without those at rest, to 1e-13."""
    model, q, _ = draw(topology, 8)
    poses = link_poses(model, q)
    moment = sum(link.mass * (poses[link.name] @ [*link.com, 1.0])[:3] for link in model.links)
    np.testing.assert_allclose(center_of_mass(model, q), moment / model.total_mass, atol=1e-13)
    moving = [link for link in model.links if model.frames[link.name].body >= 0]
    moment = sum(link.mass * (poses[link.name] @ [*link.com, 1.0])[:3] for link in moving)
    mean = moment / sum(link.mass for link in moving)
    np.testing.assert_allclose(center_of_mass(model, q, fixed=False), mean, atol=1e-13)


def test_no_mass_no_center() -> None:
    """A robot without mass has no centre of mass; the error says so instead of NaN."""
    builder = ModelBuilder("ghost")
    builder.link("a")
    with pytest.raises(ArgumentError, match="'ghost' has no mass"):
        center_of_mass(builder.build(), [])


@each_topology
def test_batches_equal_their_members(topology: str) -> None:
    """Leading axes give what a loop over them gives, to 1e-13; q and v broadcast."""
    rng = np.random.default_rng(9)
    model, _, _ = draw(topology, 9)
    q = random_configuration(model, rng, (3, 2))
    v = rng.normal(size=(2, model.nv))
    frame = model.frame_names[-1]
    batch = {
        "pose": frame_pose(model, q, frame),
        "link": link_poses(model, q)[model.link_names[-1]],
        "bodies": body_poses(model, q),
        "jacobian": jacobian(model, q, frame, "local"),
        "velocity": frame_velocity(model, q, v, frame),
        "com": center_of_mass(model, q),
    }
    assert batch["velocity"].shape == (3, 2, 6)
    for i, k in np.ndindex(3, 2):
        one = {
            "pose": frame_pose(model, q[i, k], frame),
            "link": link_poses(model, q[i, k])[model.link_names[-1]],
            "bodies": body_poses(model, q[i, k]),
            "jacobian": jacobian(model, q[i, k], frame, "local"),
            "velocity": frame_velocity(model, q[i, k], v[k], frame),
            "com": center_of_mass(model, q[i, k]),
        }
        for name, value in one.items():
            np.testing.assert_allclose(batch[name][i, k], value, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_dtype_is_kept(dtype: type) -> None:
    """Results have the dtype of the coordinates, also for frames at rest."""
    model, q, v = draw(seed=10)
    q, v = q.astype(dtype), v.astype(dtype)
    for frame in (model.link_names[0], model.link_names[-1]):
        assert frame_pose(model, q, frame).dtype == dtype
        assert jacobian(model, q, frame).dtype == dtype
        assert frame_velocity(model, q, v, frame).dtype == dtype
        assert link_poses(model, q)[frame].dtype == dtype
    assert center_of_mass(model, q).dtype == dtype


def test_single_precision_is_close() -> None:
    """float32 coordinates lose digits, not sense: poses agree to 1e-5."""
    model, q, _ = draw(seed=11)
    for name, found in link_poses(model, q.astype(np.float32)).items():
        np.testing.assert_allclose(found, frame_pose(model, q, name), atol=1e-5)


def test_dicts_are_welcome() -> None:
    """Coordinates by joint name give the same results as arrays."""
    model, q, v = draw(seed=12)
    frame = model.frame_names[-1]
    q_by_name, v_by_name = to_mapping(model, q, "q"), to_mapping(model, v, "v")
    np.testing.assert_array_equal(
        frame_velocity(model, q_by_name, v_by_name, frame), frame_velocity(model, q, v, frame)
    )
    np.testing.assert_array_equal(jacobian(model, q_by_name, frame), jacobian(model, q, frame))


def test_results_can_be_changed() -> None:
    """What is returned is the caller's: writing into it spoils nothing."""
    model, q, _ = draw(seed=13)
    ground = next(name for name in model.link_names if model.frames[name].body < 0)
    for name in (ground, model.link_names[-1]):
        before = frame_pose(model, q, name)
        frame_pose(model, q, name)[:] = 0.0
        link_poses(model, q)[name][:] = 0.0
        np.testing.assert_array_equal(frame_pose(model, q, name), before)


def test_bad_arguments_are_explained() -> None:
    """Unknown frames, unknown references and wrong shapes name what is possible."""
    model, q, v = draw(seed=14)
    with pytest.raises(UnknownNameError, match="link1"):
        frame_pose(model, q, "lnik1")
    with pytest.raises(ArgumentError, match="'local', 'world', 'world_aligned'"):
        jacobian(model, q, "link1", "body")
    with pytest.raises(ShapeError, match="v has shape"):
        frame_velocity(model, q, v[:-1], "link1")
    with pytest.raises(ShapeError, match="q has shape"):
        link_poses(model, q[:-1])


def test_planar_two_link_arm() -> None:
    """Textbook 2R arm: tip at l1 c1 + l2 c12, l1 s1 + l2 s12, with its 2x2 Jacobian, to 1e-15."""
    l1, l2, q1, q2 = 0.7, 0.4, 0.3, -1.1
    builder = ModelBuilder("2R")
    builder.link("base")
    builder.link("upper", 1.0, inertia=(1, 1, 1))
    builder.link("lower", 1.0, inertia=(1, 1, 1))
    builder.joint("shoulder", "revolute", "base", "upper", axis=(0, 0, 1))
    builder.joint("elbow", "revolute", "upper", "lower", xyz=(l1, 0, 0), axis=(0, 0, 1))
    builder.frame("tip", "lower", xyz=(l2, 0, 0))
    model = builder.build()
    s1, c1, s12, c12 = np.sin(q1), np.cos(q1), np.sin(q1 + q2), np.cos(q1 + q2)
    tip = frame_pose(model, [q1, q2], "tip")[:2, 3]
    np.testing.assert_allclose(tip, [l1 * c1 + l2 * c12, l1 * s1 + l2 * s12], rtol=1e-14)
    expected = [[-l1 * s1 - l2 * s12, -l2 * s12], [l1 * c1 + l2 * c12, l2 * c12]]
    np.testing.assert_allclose(jacobian(model, [q1, q2], "tip")[3:5], expected, rtol=1e-14)
