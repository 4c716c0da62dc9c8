# SPDX-License-Identifier: BSD-3-Clause
"""Bundled robots by name, and robots made by rule."""

import math

import numpy as np
import pytest

from phistar import Robot, load, robots
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model import Model, generators
from phistar.model.configuration import neutral
from phistar.model.numpy_kinematics import center_of_mass, frame_pose, link_poses

PROMISED = {
    "cartpole",
    "delta",
    "double_pendulum",
    "four_bar",
    "humanoid",
    "humanoid_ankles",
    "panda",
    "panda_hand",
    "quadruped",
    "ur5",
}


def depth_of(model: Model, link: str) -> int:
    """Number of joints between a link and the root."""
    above = {joint.child: joint.parent for joint in model.joints.values()}
    depth = 0
    while link in above:
        link, depth = above[link], depth + 1
    return depth


def test_names() -> None:
    """Every promised robot is there under its name, and every name has a file."""
    assert set(robots.names()) == PROMISED
    assert list(robots.names()) == sorted(robots.names())
    assert all(robots.path(name).is_file() for name in robots.names())


def test_unknown_names_list_close_ones() -> None:
    """A slip of the pen is answered with the name that was meant."""
    with pytest.raises(UnknownNameError, match="'quadruped'"):
        robots.path("quadroped")
    with pytest.raises(UnknownNameError):
        robots.floats("../panda")


def test_legged_robots_float() -> None:
    """Robots that stand on their feet have a free base by default, the others do not."""
    legged = {"quadruped", "humanoid", "humanoid_ankles"}
    assert {name for name in robots.names() if robots.floats(name)} == legged


@pytest.mark.parametrize("n", [1, 2, 7, 50])
def test_chain_hangs_straight_down(n: int) -> None:
    """n rods of length l end n l below the base, with their centre of mass half way."""
    model = generators.chain(n, length=0.5, mass=2.0)
    assert (model.nq, len(model.bodies), model.total_mass) == (n, n, 2.0 * n)
    q = np.zeros(n)
    last = frame_pose(model, q, f"link{n}") @ [0, 0, -0.5, 1]
    np.testing.assert_allclose(last[:3], [0, 0, -0.5 * n], atol=1e-13)
    np.testing.assert_allclose(center_of_mass(model, q), [0, 0, -0.25 * n], atol=1e-13)


def test_chain_folds_like_a_ruler() -> None:
    """With every joint at a right angle the links of a planar chain close a square after four."""
    model = generators.chain(5)
    q = np.full(5, math.pi / 2)
    np.testing.assert_allclose(frame_pose(model, q, "link5")[:3, 3], 0, atol=1e-15)


def test_chain_axes_repeat() -> None:
    """The letters of axes are the joints' axes in turn, over and over."""
    model = generators.chain(5, axes="zyx")
    axes = [joint.joint_kind.axis for joint in model.joints.values()]
    x, y, z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    assert axes == [z, y, x, z, y]


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "helical"])
def test_kinds(kind: str) -> None:
    """Any kind with one axis will do."""
    model = generators.chain(3, kind=kind)
    assert {joint.kind for joint in model.joints.values()} == {kind}


def test_rods_are_solid_cylinders() -> None:
    """Mass, centre and moments of a rod are those of a cylinder, and it is drawn as one."""
    link = generators.chain(1, length=2.0, mass=3.0, radius=0.1).link("link1")
    side = 3.0 * (3 * 0.1**2 + 2.0**2) / 12
    np.testing.assert_allclose(np.diag(link.inertia), [side, side, 3.0 * 0.1**2 / 2], rtol=1e-15)
    assert link.com.tolist() == [0.0, 0.0, -1.0]
    (shape,) = link.visuals
    assert (shape.kind, shape.size) == ("cylinder", (0.1, 2.0))
    assert shape.pose[:3, 3].tolist() == link.com.tolist()


def test_floating_chain_is_free() -> None:
    """On a free base the root is a rod too, so that nothing is without mass."""
    model = generators.chain(4, floating_base=True)
    assert (model.nq, model.nv, model.total_mass) == (11, 10, 5.0)
    np.testing.assert_allclose(center_of_mass(model, neutral(model)), [0, 0, -2.5], atol=1e-15)
    assert model.problems == ()


@pytest.mark.parametrize(("depth", "branching"), [(1, 1), (4, 1), (3, 2), (2, 5)])
def test_tree_counts(depth: int, branching: int) -> None:
    """A tree has branching + ... + branching^depth joints, and as many at each depth."""
    model = generators.tree(depth, branching)
    counts = [branching**level for level in range(1, depth + 1)]
    assert model.nq == sum(counts)
    depths = [depth_of(model, link) for link in model.link_names]
    assert [depths.count(level) for level in range(1, depth + 1)] == counts


def test_tree_names_tell_the_path() -> None:
    """link2_1 hangs on link2 by joint2_1."""
    model = generators.tree(2, 2)
    assert model.joint("joint2_1").parent == "link2"
    assert model.joint("joint2_1").child == "link2_1"


def test_tree_spreads_evenly() -> None:
    """Rods of one generation lean out by the spread, evenly round about: their mean points down."""
    spread = 0.4
    model = generators.tree(1, 5, spread=spread)
    poses = link_poses(model, np.zeros(5))
    tips = np.array([(poses[f"link{k}"] @ [0, 0, -1, 1])[:3] for k in range(1, 6)])
    np.testing.assert_allclose(tips[:, 2], -math.cos(spread), rtol=1e-15)
    np.testing.assert_allclose(tips.mean(axis=0)[:2], 0, atol=1e-15)
    assert len({tuple(tip.round(6)) for tip in tips}) == 5


def test_tree_of_one_branch_without_spread_is_a_chain() -> None:
    """The two generators agree where they overlap."""
    tree, chain = generators.tree(4, 1, spread=0.0, axes="xy"), generators.chain(4, axes="xy")
    q = np.array([0.3, -0.4, 0.5, 0.6])
    np.testing.assert_allclose(
        frame_pose(tree, q, "link1_1_1_1"), frame_pose(chain, q, "link4"), atol=1e-15
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: generators.chain(0), "n must be a whole number"),
        (lambda: generators.chain(2.5), "n must be a whole number"),
        (lambda: generators.chain(True), "n must be a whole number"),
        (lambda: generators.chain(2, axes=""), "letters x, y and z"),
        (lambda: generators.chain(2, axes="xw"), "'xw'"),
        (lambda: generators.chain(2, kind="spherical"), "'spherical'"),
        (lambda: generators.chain(2, mass=0.0), "mass must be positive"),
        (lambda: generators.chain(2, length=math.inf), "length must be positive"),
        (lambda: generators.chain(2, radius=-1.0), "radius must be positive"),
        (lambda: generators.tree(0), "depth must be a whole number"),
        (lambda: generators.tree(2, 0), "branching must be a whole number"),
    ],
)
def test_bad_arguments_are_refused(call: object, words: str) -> None:
    """Numbers that make no robot are errors that name the argument."""
    with pytest.raises(ArgumentError, match=words):
        call()


def test_generators_make_robots_for_users() -> None:
    """phistar.robots wraps the generators: same arguments, a Robot comes out."""
    robot = robots.chain(4, axes="xy")
    assert isinstance(robot, Robot)
    assert robot.model == generators.chain(4, axes="xy")
    assert robots.tree(2, 3).nv == 12
    assert "serial chain" in (robots.chain.__doc__ or "")
    assert load(generators.chain(4, axes="xy"), gravity=(0, 0, 0)).gravity.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_home_is_inside_the_limits(name: str) -> None:
    """Every bundled robot rests where its joints may be."""
    robot = load(name)
    assert (robot.home >= robot.lower_limits).all()
    assert (robot.home <= robot.upper_limits).all()


@pytest.mark.parametrize(
    ("name", "feet", "radius"),
    [
        ("quadruped", ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"), 0.0125),
        ("humanoid", ("left_sole", "right_sole"), 0.0),
        ("humanoid_ankles", ("left_sole", "right_sole"), 0.0),
    ],
)
def test_legged_robots_stand_at_home(name: str, feet: tuple[str, ...], radius: float) -> None:
    """Feet touch z = 0 and the centre of mass is above them; nothing else reaches the ground."""
    robot = load(name)
    poses = robot.link_poses(robot.home)
    places = np.array([poses[foot][:3, 3] for foot in feet])
    np.testing.assert_allclose(places[:, 2], radius, atol=1e-9)
    center = robot.center_of_mass(robot.home)
    # Across, between the feet; along, over the soles, which reach 0.1 m and more forward.
    assert places[:, 1].min() < center[1] < places[:, 1].max()
    assert places[:, 0].min() - 0.01 < center[0] < places[:, 0].max() + 0.01
    assert min(pose[2, 3] for link, pose in poses.items() if link not in feet) > radius


@pytest.mark.parametrize("name", ["humanoid", "humanoid_ankles"])
def test_soles_are_shapes_to_stand_on(name: str) -> None:
    """The box of each foot has its lower face on z = 0, and the centre of mass is above one."""
    robot = load(name)
    center = robot.center_of_mass(robot.home)
    for side in ("left", "right"):
        (box,) = robot.links[f"{side}_foot"].collisions
        place = robot.frame_pose(robot.home, f"{side}_foot") @ box.pose
        assert box.kind == "box"
        assert place[2, 3] - box.size[2] / 2 == pytest.approx(0.0, abs=1e-9)
        assert abs(center[0] - place[0, 3]) < box.size[0] / 2


@pytest.mark.parametrize(("name", "tip"), [("panda", "panda_link8"), ("ur5", "tool0")])
def test_arms_are_ready_at_home(name: str, tip: str) -> None:
    """The tool points down, the arm is far from singular and has room in all joints."""
    robot = load(name)
    assert robot.frame_pose(robot.home, tip)[2, 2] == pytest.approx(-1.0, abs=1e-6)
    assert np.linalg.svd(robot.jacobian(robot.home, tip), compute_uv=False)[-1] > 0.05
    room = np.minimum(robot.home - robot.lower_limits, robot.upper_limits - robot.home)
    assert room.min() > 0.3
