# SPDX-License-Identifier: BSD-3-Clause
"""Kinematics of ``Robot``: machine code says what ``model.kinematics`` says, or leaves it to it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phistar
from phistar import kinematics
from phistar.backends import base
from phistar.backends.to_llvm import MachineCode
from phistar.compile import evaluate
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.model import ModelBuilder, numpy_kinematics
from phistar.model.model_cache import entries
from phistar.model.random import random_model
from phistar.robot import Robot
from phistar.thresholds import POLICY

REFERENCES = ("local", "world", "world_aligned")
NAMES = ("frame_pose", "link_poses", "jacobian", "frame_velocity", "center_of_mass")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is compiled at once, and nothing else may answer."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    for name in NAMES:
        monkeypatch.setattr(kinematics.numpy_kinematics, name, _refuse)


def _refuse(*args: object, **options: object) -> None:
    raise AssertionError("NumPy was asked")


WITNESS = {name: getattr(numpy_kinematics, name) for name in NAMES}


def _robots() -> dict[str, Robot]:
    rng = np.random.default_rng(40)
    rich: dict[str, Any] = {"fixed": 0.3, "mimic": 0.4, "anchors": 0.4, "frames": 3}
    return {
        "panda_hand": phistar.load("panda_hand"),
        "quadruped": phistar.load("quadruped"),
        "forest": Robot(random_model(rng, 7, topology="forest", **rich)),
    }


ROBOTS = _robots()
each_robot = pytest.mark.parametrize("name", ROBOTS)


def frame_of(robot: Robot) -> str:
    """The frame at the end of the longest path."""
    model = robot.model
    return max(model.frame_names, key=lambda name: len(model.ancestors(model.frame(name).body)))


def calls(robot: Robot, q: Any, v: Any) -> dict[str, tuple[Any, Any]]:
    """Each method beside its witness."""
    frame, model = frame_of(robot), robot.model
    found: dict[str, tuple[Any, Any]] = {
        "pose": (robot.frame_pose(q, frame), WITNESS["frame_pose"](model, q, frame))
    }
    for reference in REFERENCES:
        found[f"jacobian {reference}"] = (
            robot.jacobian(q, frame, reference),
            WITNESS["jacobian"](model, q, frame, reference),
        )
        found[f"velocity {reference}"] = (
            robot.frame_velocity(q, v, frame, reference),
            WITNESS["frame_velocity"](model, q, v, frame, reference),
        )
    for fixed in (True, False):
        found[f"center {fixed}"] = (
            robot.center_of_mass(q, fixed=fixed),
            WITNESS["center_of_mass"](model, q, fixed=fixed),
        )
    ours, known = robot.link_poses(q), WITNESS["link_poses"](model, q)
    assert list(ours) == list(known)
    found |= {f"link {name}": (ours[name], known[name]) for name in known}
    return found


def agree(results: dict[str, tuple[Any, Any]], tolerance: float) -> None:
    """Same shapes and dtypes; numbers equal to a tolerance relative to the largest."""
    for name, (ours, known) in results.items():
        assert ours.shape == known.shape, name
        assert ours.dtype == known.dtype, name
        scale = max(np.abs(known).max(initial=0.0), 1.0)
        np.testing.assert_allclose(ours, known, rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.usefixtures("compiled")
@each_robot
def test_machine_code_agrees(name: str) -> None:
    """Single samples, batches of several axes and empty ones, to 1e-13; float32 to 3e-6."""
    robot = ROBOTS[name]
    rng = np.random.default_rng(1)
    for shape in ((), (1,), (5,), (3, 2), (0,), (2, 0, 3)):
        q, v = robot.random_configuration(rng, shape), rng.normal(size=(*shape, robot.nv))
        agree(calls(robot, q, v), 1e-13)
    q, v = robot.random_configuration(rng, (3,)), rng.normal(size=(3, robot.nv))
    agree(calls(robot, q.astype(np.float32), v.astype(np.float32)), 3e-6)


@pytest.mark.usefixtures("compiled")
@each_robot
def test_single_samples_take_the_quick_way(name: str) -> None:
    """After the first call each method runs its lean function, with the same bits as before."""
    robot = ROBOTS[name]
    q, v = robot.random_configuration(3), np.random.default_rng(3).normal(size=robot.nv)
    first, table = calls(robot, q, v), entries(robot.model)
    frame = frame_of(robot)
    counts: dict[Any, int] = {("frame_pose", frame): 0, ("link_poses",): 0}
    counts |= {("center_of_mass", fixed): 0 for fixed in (True, False)}
    for reference in REFERENCES:
        counts |= {("jacobian", frame, reference): 0, ("frame_velocity", frame, reference): 0}

    def counting(key: Any) -> Callable[..., Any]:
        known = table[key]
        assert known is not None

        def entry(*arrays: Any) -> Any:
            result = known(*arrays)
            counts[key] += result is not None
            return result

        return entry

    robot._entries = {key: counting(key) for key in counts}
    second = calls(robot, q, v)
    robot._entries = table
    assert set(counts.values()) == {1}
    for key, (ours, _) in second.items():
        np.testing.assert_array_equal(ours, first[key][0])
        assert ours.flags.writeable


@pytest.mark.usefixtures("compiled")
def test_out_of_the_ordinary_arrays() -> None:
    """Lists, integers, dicts, strides, Fortran order, byte order, read-only: all the same."""
    robot = ROBOTS["panda_hand"]
    frame, rng = frame_of(robot), np.random.default_rng(4)
    q, v = robot.random_configuration(rng, (6,)), rng.normal(size=(6, robot.nv))
    expected = robot.frame_velocity(q, v, frame)
    frozen = q.copy()
    frozen.flags.writeable = False
    wide = np.zeros((12, 3 * robot.nq))
    wide[::2, ::3] = q
    for given in (q.tolist(), np.asfortranarray(q), q.astype(">f8"), frozen, wide[::2, ::3]):
        np.testing.assert_array_equal(robot.frame_velocity(given, v, frame), expected)
    whole = np.arange(robot.nq)
    np.testing.assert_array_equal(robot.jacobian(whole, frame), robot.jacobian(whole * 1.0, frame))
    named = robot.configuration_dict(q)
    np.testing.assert_array_equal(robot.jacobian(named, frame), robot.jacobian(q, frame))
    np.testing.assert_array_equal(
        robot.frame_velocity(named, robot.tangent_dict(v), frame), expected
    )


@pytest.mark.usefixtures("compiled")
def test_batches_broadcast() -> None:
    """q (3, 1, nq) and v (2, nv) give (3, 2, 6); one q serves many v and the other way round."""
    robot = ROBOTS["quadruped"]
    frame, rng = frame_of(robot), np.random.default_rng(5)
    for left, right in (((3, 1), (2,)), ((), (4,)), ((4,), ()), ((1,), (4,)), ((2, 2), (1, 2))):
        q, v = robot.random_configuration(rng, left), rng.normal(size=(*right, robot.nv))
        ours = robot.frame_velocity(q, v, frame)
        agree({"v": (ours, WITNESS["frame_velocity"](robot.model, q, v, frame))}, 1e-13)


@pytest.mark.parametrize("tier", ["auto", "wait"])
def test_rest_is_left_to_numpy(monkeypatch: pytest.MonkeyPatch, tier: str) -> None:
    """Complex numbers, long doubles, frames at rest: NumPy's bits."""
    monkeypatch.setenv("PHISTAR_TIER", tier)
    robot = ROBOTS["panda_hand"]
    model, frame, rng = robot.model, frame_of(robot), np.random.default_rng(6)
    q = robot.random_configuration(rng, (3,))
    for given in (q + 0.1j, q.astype(np.longdouble)):
        np.testing.assert_array_equal(
            robot.jacobian(given, frame), WITNESS["jacobian"](model, given, frame)
        )
        ours, known = robot.center_of_mass(given), WITNESS["center_of_mass"](model, given)
        np.testing.assert_array_equal(ours, known)
        assert ours.dtype == known.dtype
    ground = next(n for n in model.frame_names if model.frame(n).body < 0)
    np.testing.assert_array_equal(
        robot.frame_pose(q, ground), WITNESS["frame_pose"](model, q, ground)
    )
    assert not robot.jacobian(q, ground).any()


def test_other_backends_do_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """With PHISTAR_BACKEND=numpy no program is made."""
    monkeypatch.setattr(base, "_default_name", "numpy")
    monkeypatch.setattr(evaluate, "kernel", _refuse)
    robot = phistar.load("ur5")
    q, v = robot.random_configuration(0, (200,)), np.zeros(robot.nv)
    for ours, known in calls(robot, q, v).values():
        np.testing.assert_array_equal(ours, known)


def test_first_samples_are_not_worth_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program is compiled when it has been asked for WARM samples, or for a batch that large."""
    monkeypatch.delenv("PHISTAR_TIER", raising=False)
    robot = phistar.load("double_pendulum").with_gravity((0.0, 0.0, -1.25))
    frame, key = frame_of(robot), ("frame_pose", frame_of(robot))
    q = robot.random_configuration(1, (2 * POLICY.samples_before_compile,))
    known = WITNESS["frame_pose"](robot.model, q, frame)
    table = entries(robot.model)
    for i in range(POLICY.samples_before_compile - 1):
        np.testing.assert_array_equal(robot.frame_pose(q[i], frame), known[i])
    assert key not in table
    np.testing.assert_allclose(
        robot.frame_pose(q[POLICY.samples_before_compile], frame),
        known[POLICY.samples_before_compile],
        atol=1e-15,
    )
    assert key in table
    expected = WITNESS["jacobian"](robot.model, q, frame)
    np.testing.assert_allclose(robot.jacobian(q, frame), expected, atol=1e-15)
    assert ("jacobian", frame, "world_aligned") in table


def test_long_programs_are_made_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a longer path NumPy gives the first results while a thread compiles; then code does."""
    monkeypatch.delenv("PHISTAR_TIER", raising=False)
    robot = phistar.robots.chain(POLICY.max_path_links_at_once + 2)
    frame = robot.link_names[-1]
    q = robot.random_configuration(2, (2 * POLICY.samples_before_compile,))
    known = WITNESS["frame_pose"](robot.model, q, frame)
    np.testing.assert_allclose(robot.frame_pose(q, frame), known, atol=1e-13 * 20)
    program = evaluate.traced_executable(robot.model, ("frame_pose", frame))
    assert isinstance(program, MachineCode)
    program.tiers().wait_for_final()
    for name in NAMES:
        monkeypatch.setattr(kinematics.numpy_kinematics, name, _refuse)
    np.testing.assert_allclose(robot.frame_pose(q, frame), known, atol=1e-13 * 20)


def test_long_robots_by_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poses of all links and the centre of mass of a long robot are loops; to 1e-12 of its length.

    NumPy's functions are not asked, but for what loops do not know: numbers that are not finite.
    """
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    size = POLICY.max_path_links_unrolled + 50
    rng = np.random.default_rng(8)
    robot = Robot(random_model(rng, size, topology="forest", fixed=0.2, mimic=0.2, anchors=0.2))
    q, bound = robot.random_configuration(rng, (3,)), 1e-12 * size
    poses = WITNESS["link_poses"](robot.model, q)
    known = {
        fixed: WITNESS["center_of_mass"](robot.model, q, fixed=fixed) for fixed in (True, False)
    }
    assert np.abs(known[True] - known[False]).max() > 1e-3
    broken = q.copy()
    broken[1] = np.nan
    with pytest.raises(ArgumentError):
        robot.link_poses(broken)
    for name in NAMES:
        monkeypatch.setattr(kinematics.numpy_kinematics, name, _refuse)
    found = robot.link_poses(q)
    assert list(found) == list(poses)
    for name, pose in poses.items():
        np.testing.assert_allclose(found[name], pose, rtol=0, atol=bound)
    for fixed, center in known.items():
        np.testing.assert_allclose(robot.center_of_mass(q, fixed=fixed), center, rtol=0, atol=bound)
    single = robot.center_of_mass(q[0].astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, known[True][0], rtol=0, atol=1e-5 * size)


def test_very_large_robots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond LARGEST links on the path, or MOST_POSES links, there is no program."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    robot = phistar.robots.chain(POLICY.max_path_links_unrolled + 1)
    first, last = robot.link_names[1], robot.link_names[-1]
    assert evaluate.traced_executable(robot.model, ("frame_pose", last)) is None
    assert evaluate.traced_executable(robot.model, ("link_poses",)) is None
    assert evaluate.traced_executable(robot.model, ("center_of_mass", True)) is None
    assert evaluate.traced_executable(robot.model, ("frame_pose", first)) is not None
    q = robot.random_configuration(3)
    np.testing.assert_array_equal(
        robot.frame_pose(q, last), WITNESS["frame_pose"](robot.model, q, last)
    )


Call = Callable[[Robot, Any, Any, str], Any]
FAULTS: dict[str, tuple[Call, type[Exception]]] = {
    "frame": (lambda r, q, v, f: r.frame_pose(q, f + "x"), UnknownNameError),
    "frame of a Jacobian": (lambda r, q, v, f: r.jacobian(q, f + "x"), UnknownNameError),
    "no name": (lambda r, q, v, f: r.frame_pose(q, [f]), UnknownNameError),
    "reference": (lambda r, q, v, f: r.jacobian(q, f, "body"), ArgumentError),
    "no reference": (lambda r, q, v, f: r.frame_velocity(q, v, f, ["local"]), ArgumentError),
    "shape of q": (lambda r, q, v, f: r.center_of_mass(q[:-1]), ShapeError),
    "shape of all": (lambda r, q, v, f: r.link_poses(q[:-1]), ShapeError),
    "shape of v": (lambda r, q, v, f: r.frame_velocity(q, v[1:], f), ShapeError),
    "batch": (
        lambda r, q, v, f: r.frame_velocity(np.stack([q] * 2), np.stack([v] * 3), f),
        ShapeError,
    ),
    "text": (lambda r, q, v, f: r.frame_pose(["a"] * r.nq, f), ArgumentError),
    "joint": (lambda r, q, v, f: r.frame_pose({"nobody": 1.0}, f), UnknownNameError),
}


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named_as_before(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same exception with the same message as without machine code, also on the quick way."""
    call, kind = FAULTS[fault]
    robot = ROBOTS["panda_hand"]
    frame = frame_of(robot)
    q, v = robot.random_configuration(7), np.zeros(robot.nv)
    robot.frame_pose(q, frame)
    with pytest.raises(kind) as ours:
        call(robot, q, v, frame)
    for name in NAMES:
        monkeypatch.setattr(numpy_kinematics, name, WITNESS[name])
    monkeypatch.setattr(robot, "_entries", {})
    with pytest.raises(kind) as known:
        call(robot, q, v, frame)
    assert str(ours.value) == str(known.value)


@pytest.mark.usefixtures("compiled")
def test_results_are_the_callers() -> None:
    """Writing into one result changes neither the others nor the next."""
    robot = ROBOTS["panda_hand"]
    for q in (robot.random_configuration(8), robot.random_configuration(8, (4,))):
        before = {name: pose.copy() for name, pose in robot.link_poses(q).items()}
        poses = robot.link_poses(q)
        poses[robot.link_names[-1]][...] = 0.0
        for name in robot.link_names[:-1]:
            np.testing.assert_array_equal(poses[name], before[name])
        last = robot.link_poses(q)[robot.link_names[-1]]
        np.testing.assert_array_equal(last, before[robot.link_names[-1]])


def test_weightless_robots_have_no_center(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without mass that moves there is no program, and without any mass there is an error."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    builder = ModelBuilder("ghost")
    builder.link("base", 2.0, inertia=(1, 1, 1))
    builder.link("a")
    builder.joint("j", "revolute", "base", "a", axis=(0, 0, 1))
    robot = Robot(builder.build())
    np.testing.assert_array_equal(robot.center_of_mass([0.3]), np.zeros(3))
    with pytest.raises(ArgumentError, match="has no mass"):
        robot.center_of_mass([0.3], fixed=False)


@pytest.mark.usefixtures("compiled")
def test_pinocchio_agrees() -> None:
    """Poses, Jacobians, velocities and the centre of mass of a batch are Pinocchio's, to 1e-12."""
    pin = pytest.importorskip("pinocchio")
    robot = phistar.load("panda")
    theirs = pin.buildModelFromXML(robot.to_urdf())
    data, frame = theirs.createData(), "panda_link8"
    number, rng = theirs.getFrameId(frame), np.random.default_rng(9)
    q, v = robot.random_configuration(rng, (9,)), rng.normal(size=(9, robot.nv))
    kinds = dict(zip(REFERENCES, (pin.LOCAL, pin.WORLD, pin.LOCAL_WORLD_ALIGNED), strict=True))
    pose, center = robot.frame_pose(q, frame), robot.center_of_mass(q, fixed=False)
    close = {"rtol": 0, "atol": 1e-12}
    for i in range(len(q)):
        pin.framesForwardKinematics(theirs, data, q[i])
        np.testing.assert_allclose(pose[i], data.oMf[number].homogeneous, **close)
        np.testing.assert_allclose(center[i], pin.centerOfMass(theirs, data, q[i]), **close)
    for reference, kind in kinds.items():
        jacobian = robot.jacobian(q, frame, reference)
        velocity = robot.frame_velocity(q, v, frame, reference)
        for i in range(len(q)):
            known = np.roll(pin.computeFrameJacobian(theirs, data, q[i], number, kind), 3, axis=0)
            np.testing.assert_allclose(jacobian[i], known, **close)
            np.testing.assert_allclose(velocity[i], known @ v[i], **close)
