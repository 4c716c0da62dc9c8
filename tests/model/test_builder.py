# SPDX-License-Identifier: BSD-3-Clause
"""Building a robot part by part: what goes in comes out, and what cannot be is refused."""

import math

import numpy as np
import pytest

from phistar.errors import ArgumentError, ModelError, UnknownNameError
from phistar.model import GROUND_NAME, Coupling, Mimic, ModelBuilder, make_pose
from phistar.model.numpy_kinematics import frame_pose
from phistar.spatial import rotation_about


def pendulum() -> ModelBuilder:
    """Base, arm and a revolute joint about y."""
    builder = ModelBuilder("pendulum")
    builder.link("base")
    builder.link("arm", 2.0, (0, 0, -0.5), (0.1, 0.2, 0.25))
    builder.joint("hinge", "revolute", "base", "arm", axis=(0, 1, 0), xyz=(0, 0, 1))
    return builder


def codes(builder: ModelBuilder, **options: object) -> list[str]:
    """Kinds of the errors that building gives."""
    with pytest.raises(ModelError) as caught:
        builder.build(**options)
    return [problem.code for problem in caught.value.problems]


def test_parts_come_back() -> None:
    """A model holds the numbers it was built from."""
    model = pendulum().build()
    assert (model.name, model.nq, model.nv) == ("pendulum", 1, 1)
    assert model.link_names == ("base", "arm")
    assert model.joint_names == ("hinge",)
    arm, hinge = model.link("arm"), model.joint("hinge")
    assert arm.mass == 2.0
    assert arm.com.tolist() == [0.0, 0.0, -0.5]
    assert np.array_equal(arm.inertia, np.diag([0.1, 0.2, 0.25]))
    assert (hinge.kind, hinge.parent, hinge.child) == ("revolute", "base", "arm")
    assert hinge.limits.upper == (math.inf,)
    assert model.gravity.tolist() == [0.0, 0.0, -9.81]


def test_three_spellings_of_an_inertia() -> None:
    """Three principal moments, six numbers and a matrix say the same."""
    builder = ModelBuilder()
    spellings = [(1.0, 2.0, 2.5), (1.0, 0, 0, 2.0, 0, 2.5), np.diag([1.0, 2.0, 2.5])]
    matrices = [builder.link(str(k), 1.0, inertia=i).inertia for k, i in enumerate(spellings)]
    assert all(np.array_equal(m, matrices[0]) for m in matrices)
    full = builder.link("full", 1.0, inertia=(1, 2, 3, 4, 5, 6)).inertia
    assert full.tolist() == [[1, 2, 3], [2, 4, 5], [3, 5, 6]]


def test_rounding_of_a_turned_inertia_is_evened_out() -> None:
    """R I Rᵀ is symmetric only to rounding; the link's matrix is symmetric to the last bit."""
    turn = rotation_about(np.array([1.0, 2.0, 3.0]) / math.sqrt(14), 0.7)
    turned = turn @ np.diag([0.1, 0.2, 0.25]) @ turn.T
    assert not np.array_equal(turned, turned.T)
    inertia = ModelBuilder().link("a", 1.0, inertia=turned).inertia
    assert np.array_equal(inertia, inertia.T)
    np.testing.assert_allclose(inertia, turned, rtol=1e-14)


def test_lopsided_inertia_is_refused() -> None:
    """A matrix that is really not symmetric is an error, not averaged in silence."""
    builder = ModelBuilder()
    builder.link("a", 1.0, inertia=[[1, 0.1, 0], [0, 1, 0], [0, 0, 1]])
    assert codes(builder) == ["inertia-not-symmetric"]


@pytest.mark.parametrize("inertia", [(1, 2), np.ones((2, 2)), 1.0])
def test_inertia_of_the_wrong_shape(inertia: object) -> None:
    """Another number of moments is an error that names the shapes allowed."""
    with pytest.raises(ArgumentError, match=r"\(3,\), \(6,\) or \(3, 3\)"):
        ModelBuilder().link("a", 1.0, inertia=inertia)


def test_origin_by_numbers_or_matrix() -> None:
    """xyz and rpy or the 4x4 pose itself place a joint alike."""
    poses = []
    for place in (
        {"xyz": (1, 2, 3), "rpy": (0.1, 0.2, 0.3)},
        {"origin": make_pose((1, 2, 3), (0.1, 0.2, 0.3))},
    ):
        builder = ModelBuilder()
        builder.link("a")
        builder.link("b", 1.0, inertia=(1, 1, 1))
        builder.joint("j", "revolute", "a", "b", **place)
        poses.append(frame_pose(builder.build(), [0.4], "b"))
    assert np.array_equal(*poses)


def test_one_number_holds_for_every_degree_of_freedom() -> None:
    """A scalar is spread, a list is kept, another count is refused."""
    builder = ModelBuilder()
    builder.link("a")
    builder.link("b", 1.0, inertia=(1, 1, 1))
    joint = builder.joint("j", "planar", "a", "b", damping=0.5, armature=(1, 2, 3), effort=7)
    assert joint.drive.damping == (0.5, 0.5, 0.5)
    assert joint.drive.armature == (1.0, 2.0, 3.0)
    assert joint.limits.effort == (7.0, 7.0, 7.0)
    with pytest.raises(ArgumentError, match="one number or 3"):
        builder.joint("k", "planar", "a", "b", damping=(1, 2))


def test_rotor_is_seen_through_its_gear() -> None:
    """The reflected inertia is armature + rotor inertia * gear ratio squared."""
    builder = pendulum()
    builder.joints.clear()
    builder.joint(
        "hinge", "revolute", "base", "arm", armature=0.01, rotor_inertia=2e-5, gear_ratio=50
    )
    assert builder.build().bodies[0].armature == pytest.approx((0.01 + 2e-5 * 2500,), rel=1e-15)


def test_floating_base_adds_a_free_joint() -> None:
    """floating_base=True puts root_joint under the root link, first in q and v."""
    model = pendulum().build(floating_base=True)
    assert model.joint_names == ("root_joint", "hinge")
    root = model.joint("root_joint")
    assert (root.kind, root.parent, root.child) == ("free", GROUND_NAME, "base")
    assert (model.nq, model.nv, root.q_slice) == (8, 7, slice(0, 7))


def test_floating_base_needs_one_root() -> None:
    """A forest and a robot that floats already cannot be set afloat; the message says why."""
    builder = pendulum()
    builder.link("stone", 1.0, inertia=(1, 1, 1))
    with pytest.raises(ArgumentError, match="base, stone"):
        builder.build(floating_base=True)
    twice = ModelBuilder()
    twice.link("a", 1.0, inertia=(1, 1, 1))
    twice.link("b", 1.0, inertia=(1, 1, 1))
    twice.joint("root_joint", "revolute", "a", "b")
    with pytest.raises(ArgumentError, match="root_joint"):
        twice.build(floating_base=True)


def test_single_root_refuses_forests() -> None:
    """A forest is a model unless one tree is asked for."""
    builder = pendulum()
    builder.link("stone", 1.0, inertia=(1, 1, 1))
    assert builder.build().nq == 1
    assert codes(builder, single_root=True) == ["two-roots"]


def test_every_problem_is_reported_at_once() -> None:
    """Errors of different kinds are collected before any is raised."""
    builder = ModelBuilder()
    builder.link("a", -1.0)
    builder.link("b", 1.0, (math.nan, 0, 0), (1, 1, 1))
    builder.joint("j", "revolute", "a", "b", lower=2, upper=1, armature=-1)
    assert sorted(codes(builder)) == [
        "com-not-finite",
        "inertia-negative-mass",
        "limit-order",
        "negative-armature",
    ]


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"lower": math.nan}, "limit-nan"),
        ({"lower": 1, "upper": 0}, "limit-order"),
        ({"damping": math.inf}, "damping-not-finite"),
        ({"rotor_inertia": -1e-6}, "negative-rotor_inertia"),
    ],
)
def test_bad_drives_and_limits_are_refused(values: dict[str, float], code: str) -> None:
    """Numbers that no joint can have are errors."""
    builder = pendulum()
    builder.joints.clear()
    builder.joint("hinge", "revolute", "base", "arm", **values)
    assert codes(builder) == [code]


@pytest.mark.parametrize("kind", ["spherical", "free", "planar", "cylindrical"])
def test_reference_needs_one_coordinate(kind: str) -> None:
    """A reference on a joint with several coordinates would mean nothing and is refused."""
    builder = ModelBuilder()
    builder.link("a")
    builder.link("b", 1.0, inertia=(1, 1, 1))
    builder.joint("j", kind, "a", "b", reference=0.5)
    assert codes(builder) == ["reference-size"]


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"damping": -0.1}, "negative-damping"),
        ({"friction": -0.1}, "negative-friction"),
        ({"velocity": -1.0}, "limit-negative"),
    ],
)
def test_doubtful_numbers_are_warned_of(values: dict[str, float], code: str) -> None:
    """Sloppiness that still makes a robot is kept and pointed out."""
    builder = pendulum()
    builder.joints.clear()
    builder.joint("hinge", "revolute", "base", "arm", **values)
    assert [p.code for p in builder.build().problems] == [code]


def test_robot_without_mass_is_pointed_out() -> None:
    """Kinematics needs no mass; the model says that dynamics does."""
    builder = ModelBuilder("ghost")
    builder.link("a")
    assert [p.code for p in builder.build().problems] == ["no-mass"]


def test_independent_mimics_have_coordinates() -> None:
    """mimic="independent" drops the law; another word is refused."""
    builder = pendulum()
    builder.link("tip", 1.0, inertia=(1, 1, 1))
    builder.joint("follow", "revolute", "arm", "tip", mimic=Mimic("hinge", 2.0))
    assert builder.build().nq == 1
    assert builder.build(mimic="independent").joint_names == ("hinge", "follow")
    with pytest.raises(ArgumentError, match="'reduce' or 'independent'"):
        builder.build(mimic="ignore")


def test_named_configurations_take_dicts_and_arrays() -> None:
    """Configurations may be given by joint name; they are stored as read-only arrays."""
    builder = pendulum()
    builder.configurations = {"up": {"hinge": math.pi}, "down": [0.0]}
    model = builder.build()
    assert {k: q.tolist() for k, q in model.configurations.items()} == {
        "up": [math.pi],
        "down": [0.0],
    }
    assert not model.configurations["up"].flags.writeable


def test_order_of_coordinates() -> None:
    """build(order=) numbers q and v as asked and refuses names that are not independent joints."""
    builder = pendulum()
    builder.link("tip", 1.0, inertia=(1, 1, 1))
    builder.joint("wrist", "spherical", "arm", "tip")
    model = builder.build(order=["wrist", "hinge"])
    assert model.joint_names == ("wrist", "hinge")
    assert model.joint("hinge").q_slice == slice(4, 5)
    with pytest.raises(UnknownNameError, match="wrist"):
        builder.build(order=["writs", "hinge"])
    with pytest.raises(ModelError, match="missing"):
        builder.build(order=["hinge"])
    with pytest.raises(ModelError, match="twice"):
        builder.build(order=["hinge", "wrist", "hinge"])


def test_frames_loops_and_couplings_are_kept() -> None:
    """Extra frames sit on their link; loops and couplings are kept as given."""
    builder = pendulum()
    builder.frame("tool", "arm", xyz=(0, 0, -1))
    builder.loop("close", "revolute", "arm", "world", axis=(0, 2, 0))
    builder.couple(Coupling("tie", "hinge", "", (0.1,)))
    model = builder.build()
    assert model.frame_names == ("base", "arm", "tool")
    np.testing.assert_allclose(frame_pose(model, [math.pi / 2], "tool")[:3, 3], [-1, 0, 1])
    assert [loop.name for loop in model.loops] == ["close", "tie"]
    assert model.loops[0].axis == (0.0, 1.0, 0.0)


def test_loops_must_end_somewhere() -> None:
    """A loop on a link, or a coupling of a joint, that is not there is refused with the cure."""
    builder = pendulum()
    builder.loop("close", "revolut", "arn", "world")
    builder.couple(Coupling("tie", "hinge", "hing", (0.0, 1.0)))
    with pytest.raises(ModelError) as caught:
        builder.build()
    problems = caught.value.problems
    assert [p.code for p in problems] == ["loop-kind", "unknown-link", "unknown-joint"]
    assert "'arm'" in problems[1].cure
    assert "'hinge'" in problems[2].cure


def test_frame_names_are_unique() -> None:
    """A frame may not take the name of a link or of another frame."""
    builder = pendulum()
    builder.frame("arm", "base")
    with pytest.raises(ModelError, match='frame "arm"'):
        builder.build()


def test_frame_on_an_unknown_link() -> None:
    """A frame on a link that is not there names close matches."""
    builder = pendulum()
    builder.frame("tool", "arn")
    with pytest.raises(UnknownNameError, match="'arm'"):
        builder.build()


def test_builder_can_be_used_again() -> None:
    """Building leaves the builder as it is: the same model comes twice, more may be added."""
    builder = pendulum()
    first = builder.build(floating_base=True)
    assert builder.build(floating_base=True) == first
    builder.link("tip", 1.0, inertia=(1, 1, 1))
    builder.joint("wrist", "fixed", "arm", "tip")
    assert builder.build() != first
