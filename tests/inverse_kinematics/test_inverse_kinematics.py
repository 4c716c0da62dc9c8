# SPDX-License-Identifier: BSD-3-Clause
"""Inverse kinematics: found poses are looked at by forward kinematics and by Pinocchio."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import phistar
from phistar.arrays import Array
from phistar.errors import (
    ArgumentError,
    LoopError,
    NotFiniteError,
    ShapeError,
    UnknownNameError,
)
from phistar.inverse_kinematics import (
    Axis,
    CenterOfMass,
    Orientation,
    Pose,
    Position,
    Posture,
)
from phistar.inverse_kinematics.step_row import take_step
from phistar.model import ModelBuilder
from phistar.model.random import random_model
from phistar.model.target_rows import TargetRows
from phistar.robot import Robot
from phistar.spatial import exp_so3, log_so3

ARM = "panda_link8"
READY = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code from the first sample on."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")


@pytest.fixture(scope="module")
def panda() -> Robot:
    """Seven joints in a row."""
    return phistar.load("panda")


def reachable(robot: Robot, frame: str, count: int, seed: int = 0) -> Array:
    """Poses of random configurations inside the limits."""
    return robot.frame_pose(robot.random_configuration(seed, (count,)), frame)


def distances(found: Array, wanted: Array) -> Array:
    """Larger of distance and angle between poses; SciPy-free and not our error function."""
    gap = np.linalg.norm(found[..., :3, 3] - wanted[..., :3, 3], axis=-1)
    relative = np.swapaxes(found[..., :3, :3], -1, -2) @ wanted[..., :3, :3]
    # |R - 1| is 2√2 sin(θ/2): exact for small angles, unlike the arc cosine of the trace.
    chord = np.linalg.norm(relative - np.eye(3), axis=(-1, -2)) / (2 * np.sqrt(2))
    return np.maximum(gap, 2 * np.arcsin(np.minimum(chord, 1.0)))


def inside(robot: Robot, q: Array) -> bool:
    """Whether all coordinates are in their limits, exactly."""
    return bool(((q >= robot.lower_limits) & (q <= robot.upper_limits)).all())


@pytest.mark.parametrize(
    ("name", "frame", "start"),
    [("panda", ARM, READY), ("ur5", "", None), ("panda_hand", "panda_hand", None)],
)
def test_reachable_poses_are_reached(name: str, frame: str, start: Array | None) -> None:
    """At least 99 % of random poses, to 1e-8, inside the limits; Pinocchio agrees."""
    robot = phistar.load(name)
    frame = frame or robot.link_names[-1]
    wanted = reachable(robot, frame, 300)
    found = robot.inverse_kinematics({frame: wanted}, start)
    assert found.success.mean() >= 0.99
    assert inside(robot, found.q)
    peer = pin.buildModelFromUrdf(str(phistar.robots.path(name)))
    data, index = peer.createData(), peer.getFrameId(frame)
    convert = phistar.conventions.pinocchio(robot, peer) if peer.nq != robot.nq else None
    poses = []
    for q in found.q:
        theirs = q if convert is None else convert.q_to_peer(q)
        pin.framesForwardKinematics(peer, data, theirs)
        poses.append(data.oMf[index].homogeneous.copy())
    gaps = distances(np.array(poses), wanted)
    assert gaps[found.success].max() <= 2e-8
    assert (gaps[~found.success] > 1e-8).all()
    assert (found.residuals[frame][found.success] <= 1e-8).all()
    assert set(found.reasons[found.success]) == {"reached"}


def test_out_of_reach_is_no_error(panda: Robot) -> None:
    """The best place is given, with what is left and a reason; others are reached."""
    wanted = reachable(panda, ARM, 4)
    wanted[2, :3, 3] = [3.0, 0.0, 0.5]
    found = panda.inverse_kinematics({ARM: wanted}, READY)
    assert found.success.tolist() == [True, True, False, True]
    assert "out of reach" in found.reasons[2]
    assert "1: out of reach" in str(found)
    assert "3 of 4 samples" in str(found)
    assert not found
    assert inside(panda, found.q)
    assert found.residuals[ARM][2] > 1.0
    # Stretched towards the goal: near the least distance that the arm can have.
    place = panda.frame_pose(found.q[2], ARM)[:3, 3]
    assert np.linalg.norm(place - wanted[2, :3, 3]) <= 2.4


def test_same_bits_alone_and_in_a_batch(panda: Robot) -> None:
    """A sample does not notice the others: their goals, their failures, their NaN."""
    wanted = reachable(panda, ARM, 40, 3)
    wanted[7, :3, 3] = [5.0, 0.0, 0.0]
    found = panda.inverse_kinematics({ARM: wanted}, READY, restarts=4)
    for k in (0, 7, 39):
        alone = panda.inverse_kinematics({ARM: wanted[k]}, READY, restarts=4)
        assert np.array_equal(alone.q, found.q[k])
        assert alone.iterations == found.iterations[k]
        assert alone.success.shape == ()
        assert isinstance(alone.reasons, str)
    spoilt = wanted.copy()
    spoilt[5] = np.nan
    start = np.tile(READY, (40, 1))
    start[9, 3] = np.inf
    with pytest.raises(NotFiniteError, match="sample \\[5\\]"):
        panda.inverse_kinematics({ARM: spoilt}, READY)
    partly = panda.inverse_kinematics({ARM: spoilt}, start, restarts=4, on_error="nan")
    rest = np.setdiff1d(np.arange(40), [5, 9])
    assert np.array_equal(partly.q[rest], found.q[rest])
    assert np.isnan(partly.q[[5, 9]]).all()
    assert not partly.success[[5, 9]].any()
    assert "not a number" in partly.reasons[5]


def test_batches_broadcast_and_start_outside(panda: Robot) -> None:
    """Goals (2, 1), starts (3,): all pairs; a start outside the limits is put on them."""
    wanted = reachable(panda, ARM, 2, 5)[:, None]
    start = np.tile(READY, (3, 1)) + np.array([[0.0], [0.1], [9.0]])
    found = panda.inverse_kinematics({ARM: wanted}, start)
    assert found.q.shape == (2, 3, 7)
    assert found.errors[ARM].shape == (2, 3, 6)
    assert found.success.all()
    assert inside(panda, found.q)
    assert pickle.loads(pickle.dumps(found)).success.all()
    free = panda.inverse_kinematics({ARM: wanted}, start, limits=False)
    assert free.success.all()


def test_the_seed_decides(panda: Robot) -> None:
    """The same call gives the same bits; another seed other ones where it starts again."""
    wanted = reachable(panda, ARM, 64, 8)
    first, again, other = (
        panda.inverse_kinematics({ARM: wanted}, READY, seed=seed) for seed in (0, 0, 1)
    )
    assert np.array_equal(first.q, again.q)
    changed = (first.q != other.q).any(axis=1)
    assert changed.any()
    assert not changed[first.starts == 1].any()


MU = 1e-3


def errors_at(robot: Robot, rows: TargetRows, goal: Array, q: Array) -> tuple[Array, Array]:
    """Errors (m, rows) and the step (m, nv) of the program, with little damping."""
    key = ("inverse_kinematics_step", (), (rows,), (), False)
    groups = 2 if rows.kind == "pose" else 1
    q = np.atleast_2d(q)
    goals = np.repeat(goal[None], len(q), axis=0)
    ones = np.ones((len(q), groups))
    found = take_step(robot.model, key, q, goals, ones, np.full((len(q), 1), MU))
    return found["errors"], robot.difference(q, found["q_next"])


KINDS = {
    "pose": lambda T, c: T[:3].ravel(),
    "position": lambda T, c: T[:3, 3],
    "orientation": lambda T, c: T[:3, :3].ravel(),
    "axis": lambda T, c: T[:3, 2],
    "center_of_mass": lambda T, c: c,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["panda", "forest"])
def test_error_jacobians_are_differences(kind: str, name: str, panda: Robot) -> None:
    """The step solves (A*A + λ) δ = A*e with A = -∂e/∂q from central differences; 1e-6."""
    rng = np.random.default_rng(11)
    forest = Robot(random_model(rng, 6, topology="forest", mimic=0.3, anchors=0.4))
    robot = panda if name == "panda" else forest
    frame = ARM if name == "panda" else robot.link_names[-1]
    q, other = robot.random_configuration(rng, (2,))
    goal = KINDS[kind](robot.frame_pose(other, frame), robot.center_of_mass(other))
    point = {"axis": (0.0, 0.0, 1.0), "position": (0.1, 0.2, -0.1)}.get(kind, (0.0, 0.0, 0.0))
    rows = TargetRows(kind, "" if kind == "center_of_mass" else frame, 0, point)
    if kind == "position":
        goal = goal + np.array([0.3, 0.1, 0.2])
    e, step = errors_at(robot, rows, goal, q)
    h = 1e-6
    tangents = h * np.eye(robot.nv)
    ahead, _ = errors_at(robot, rows, goal, robot.integrate(q, tangents))
    back, _ = errors_at(robot, rows, goal, robot.integrate(q, -tangents))
    A = -(ahead - back).T / (2 * h)
    damping = MU * (e[0] @ e[0]) / 2 + 1e-11
    left, right = A.T @ A @ step[0] + damping * step[0], A.T @ e[0]
    assert np.abs(left - right).max() <= 1e-6 * max(np.abs(right).max(), 1e-3)


def test_rotation_error_is_the_logarithm(panda: Robot) -> None:
    """Small, large and nearly half turns, against the logarithm of matrices; 1e-9."""
    R = panda.frame_pose(READY, ARM)[:3, :3]
    axis = np.array([0.6, -0.48, 0.64])
    for angle in (0.0, 1e-9, 1e-4, 0.7, 1.6, 3.0, np.pi - 1e-4):
        goal = exp_so3(angle * axis) @ R
        e, _ = errors_at(panda, TargetRows("orientation", ARM), goal.ravel(), READY)
        assert np.abs(e[0] - log_so3(goal @ R.T)).max() <= 1e-9, angle
        assert np.linalg.norm(e[0]) == pytest.approx(angle, abs=1e-9)


def test_other_targets(panda: Robot) -> None:
    """Position of a point, orientation alone, an axis, the centre of mass, a posture."""
    q = panda.random_configuration(21, (20,))
    T = panda.frame_pose(q, ARM)
    point = np.array([0.0, 0.05, 0.1])
    tip = T[:, :3, 3] + T[:, :3, :3] @ point
    found = panda.inverse_kinematics({ARM: Position(tip, point=point)}, READY)
    ours = panda.frame_pose(found.q, ARM)
    assert found.success.all()
    assert np.abs(ours[:, :3, 3] + ours[:, :3, :3] @ point - tip).max() <= 1e-8
    found = panda.inverse_kinematics({ARM: Orientation(T[:, :3, :3])}, READY)
    assert found.success.all()
    assert np.abs(panda.frame_pose(found.q, ARM)[:, :3, :3] - T[:, :3, :3]).max() <= 2e-8
    up = {"grip": Axis((0, 0, -2.0), axis=(0, 0, 1), frame=ARM), ARM: Position(T[:, :3, 3])}
    found = panda.inverse_kinematics(up, READY)
    down = panda.frame_pose(found.q, ARM)[..., :3, 2]
    assert np.abs(down[found.success] - [0, 0, -1]).max() <= 2e-8
    center = panda.center_of_mass(q)
    found = panda.inverse_kinematics({"balance": CenterOfMass(center)}, READY)
    assert found.success.all()
    assert np.abs(panda.center_of_mass(found.q) - center).max() <= 1e-8
    found = panda.inverse_kinematics({"pose": Posture(q)}, READY)
    assert found.success.all()
    assert np.abs(found.q - q).max() <= 1e-8


def test_weights_shift_the_compromise() -> None:
    """Two positions that exclude each other: a heavier one is missed by less, as least squares."""
    builder = ModelBuilder("slider")
    builder.link("base")
    builder.link("cart", 1.0, (0, 0, 0), (1, 1, 1))
    builder.joint("x", "prismatic", "base", "cart", axis=(1, 0, 0))
    robot = Robot(builder.build())
    for weight in (1.0, 3.0, 9.0):
        targets = {
            "left": Position((-1.0, 0, 0), frame="cart", weight=weight),
            "right": Position((1.0, 0, 0), frame="cart"),
        }
        found = robot.inverse_kinematics(targets, restarts=0)
        assert found.q[0] == pytest.approx((1.0 - weight) / (1.0 + weight), abs=1e-4)
        assert not found.success


def test_priorities(panda: Robot) -> None:
    """A lower task does not disturb the higher one, and does what is left: 1e-6."""
    q = panda.random_configuration(31, (24,))
    place = panda.frame_pose(q, ARM)[:, :3, 3]
    high = {ARM: Position(place)}
    alone = panda.inverse_kinematics(high, READY)
    far = Position((0.0, 0.0, 5.0), frame="panda_link4", priority=1)
    # What is out of reach is approached along the gradient: that takes its steps.
    both = panda.inverse_kinematics(
        {**high, "elbow": far}, alone.q, restarts=0, max_iterations=1000
    )
    assert both.success.all()
    assert both.residuals[ARM].max() <= 1e-6
    # The elbow went up, and no motion that keeps the hand takes it nearer, inside the limits.
    up = panda.frame_pose(both.q, "panda_link4")[:, 2, 3]
    assert (up >= panda.frame_pose(alone.q, "panda_link4")[:, 2, 3] - 1e-6).all()
    for k in range(0, 24, 6):
        J = panda.jacobian(both.q[k], ARM)[3:]
        pull = both.errors["elbow"][k] / both.residuals["elbow"][k]
        lift = pull @ panda.jacobian(both.q[k], "panda_link4")[3:]
        free = ~both.at_limits[k]
        null = np.eye(7)[:, free] @ _null_space(J[:, free])
        slopes = np.abs(lift @ null)
        assert slopes.max(initial=0.0) <= 1e-3, k


def _null_space(J: Array) -> Array:
    _, values, rows = np.linalg.svd(J)
    rank = int((values > 1e-9).sum())
    return rows[rank:].T


def test_posture_in_what_is_left(panda: Robot) -> None:
    """By default a posture comes last: the pose is exact, the elbow near the posture."""
    wanted = reachable(panda, ARM, 30, 41)
    plain = panda.inverse_kinematics({ARM: wanted}, READY)
    found = panda.inverse_kinematics({ARM: wanted, "rest": Posture(READY)}, plain.q, restarts=0)
    good = plain.success
    assert found.success[good].all()
    again = panda.inverse_kinematics({ARM: wanted, "rest": Posture(READY)}, plain.q)
    assert (again.starts[good] == 1).all()
    assert np.array_equal(again.q[good], found.q[good])
    gap, before = (np.linalg.norm(x.q - READY, axis=1)[good] for x in (found, plain))
    assert (gap <= before + 1e-6).all()
    assert gap.mean() < before.mean()


def test_humanoid_hands_and_balance() -> None:
    """Two hands, two feet and the centre of mass of a humanoid at once."""
    robot = phistar.load("humanoid")
    hands = [name for name in robot.frame_names if "hand" in name.lower()][:2]
    feet = [name for name in robot.frame_names if "foot" in name.lower()][:2]
    assert len(hands) == len(feet) == 2
    rng = np.random.default_rng(5)
    home = robot.home
    q = robot.integrate(home, 0.15 * rng.normal(size=(6, robot.nv)))
    q = np.clip(q, robot.lower_limits, robot.upper_limits)
    targets: dict[str, Any] = {name: Pose(robot.frame_pose(q, name)) for name in feet}
    targets |= {name: Position(robot.frame_pose(q, name)[:, :3, 3]) for name in hands}
    targets["balance"] = CenterOfMass(robot.center_of_mass(q))
    found = robot.inverse_kinematics(targets, home, restarts=0)
    assert found.success.all(), found
    for name in feet:
        assert distances(robot.frame_pose(found.q, name), robot.frame_pose(q, name)).max() <= 2e-8
    assert np.abs(robot.center_of_mass(found.q) - robot.center_of_mass(q)).max() <= 2e-8
    assert inside(robot, found.q)


def test_joints_that_stay() -> None:
    """The base of a quadruped stands, a leg reaches; mimic joints move with their leaders."""
    dog = phistar.load("quadruped")
    q = dog.home
    foot = "FL_FOOT"
    aim = dog.frame_pose(dog.integrate(q, 0.2 * np.ones(dog.nv)), foot)[:3, 3]
    aim = dog.frame_pose(q, foot)[:3, 3] + [0.02, 0.0, 0.03]
    found = dog.inverse_kinematics({foot: Position(aim)}, q, fixed=["root_joint"])
    assert found.success
    assert np.array_equal(found.q[:7], q[:7])


def test_limits_of_followers() -> None:
    """A leader stops where its follower would leave its limits."""
    builder = ModelBuilder("gripper")
    builder.link("base")
    for name, upper in (("a", 1.0), ("b", 0.4)):
        builder.link(name, 1.0, (0, 0, 0), (1, 1, 1))
        law = phistar.model.Mimic("ja", 2.0, 0.1) if name == "b" else None
        builder.joint(
            f"j{name}", "prismatic", "base", name, axis=(1, 0, 0), lower=0, upper=upper, mimic=law
        )
    robot = Robot(builder.build())
    found = robot.inverse_kinematics({"a": Position((0.9, 0, 0))}, restarts=2)
    assert found.q[0] == pytest.approx(0.15, abs=1e-15)
    assert not found.success
    assert "limits" in found.reasons
    assert robot.inverse_kinematics({"a": Position((0.9, 0, 0))}, limits=False).success
    narrow = robot.with_limits(lower={"jb": 3.5}, upper={"jb": 4.0})
    with pytest.raises(ArgumentError, match="'ja'"):
        narrow.inverse_kinematics({"a": Position((0.9, 0, 0))})


@pytest.mark.parametrize(
    ("bad", "error", "text"),
    [
        (lambda r: r.inverse_kinematics({"hand": np.eye(4)}), UnknownNameError, "hand"),
        (lambda r: r.inverse_kinematics({}), ArgumentError, "expected a dict"),
        (lambda r: r.inverse_kinematics({ARM: np.zeros(3)}), ShapeError, "Position"),
        (
            lambda r: r.inverse_kinematics({ARM: np.zeros((4, 4))}),
            ArgumentError,
            "rotation is .*orthonormal",
        ),
        (lambda r: r.inverse_kinematics({ARM: Pose(np.eye(3))}), ShapeError, "4, 4"),
        (lambda r: r.inverse_kinematics({ARM: Pose(np.eye(4), weight=0)}), ArgumentError, "weight"),
        (
            lambda r: r.inverse_kinematics({ARM: Pose(np.eye(4), priority=-1)}),
            ArgumentError,
            "priority",
        ),
        (
            lambda r: r.inverse_kinematics({ARM: Axis((0, 0, 1), axis=(0, 0, 0))}),
            ArgumentError,
            "axis",
        ),
        (lambda r: r.inverse_kinematics({ARM: Axis((0, 0, 0))}), NotFiniteError, "direction"),
        (
            lambda r: r.inverse_kinematics({ARM: np.eye(4)}, fixed=["j"]),
            UnknownNameError,
            "joint",
        ),
        (lambda r: r.inverse_kinematics({ARM: np.eye(4)}, tolerance=0), ArgumentError, "tolerance"),
        (lambda r: r.inverse_kinematics({ARM: np.eye(4)}, np.zeros(6)), ShapeError, "q0"),
        (
            lambda r: r.inverse_kinematics({ARM: np.tile(np.eye(4), (2, 1, 1))}, np.zeros((3, 7))),
            ShapeError,
            "batches",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    panda: Robot, bad: Callable[[Robot], object], error: type[Exception], text: str
) -> None:
    """Errors name the target and what was expected."""
    with pytest.raises(error, match=text):
        bad(panda)


def test_loops_are_refused_by_name() -> None:
    """A robot with closed loops says which; its tree has inverse kinematics."""
    bar = phistar.load("four_bar")
    frame = bar.link_names[-1]
    with pytest.raises(LoopError, match=bar.loops[0].name):
        bar.inverse_kinematics({frame: np.eye(4)})
    place = bar.frame_pose(bar.home, frame)[:3, 3]
    assert bar.tree.inverse_kinematics({frame: Position(place)}).success


def test_numpy_backend_finds_the_same(panda: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without machine code the same program runs in NumPy."""
    wanted = reachable(panda, ARM, 6, 51)
    found = panda.inverse_kinematics({ARM: wanted}, READY, restarts=0)
    monkeypatch.setenv("PHISTAR_BACKEND", "numpy")
    other = panda.inverse_kinematics({ARM: wanted}, READY, restarts=0)
    assert np.array_equal(found.success, other.success)
    good = found.success
    assert np.abs(found.q[good] - other.q[good]).max() <= 1e-6
