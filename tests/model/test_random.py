# SPDX-License-Identifier: BSD-3-Clause
"""Random robots have what was asked for, the same for the same seed, and sound inertias."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phistar.errors import ArgumentError, UnknownNameError
from phistar.model import GROUND_NAME, JOINT_KINDS, Coupling, LoopJoint, Model
from phistar.model.configuration import neutral
from phistar.model.numpy_kinematics import frame_pose
from phistar.model.random import TOPOLOGIES, random_model
from phistar.model.singular import singular_hinges
from phistar.spatial import inertia_problems

MOVING_KINDS = {name for name, kind in JOINT_KINDS.items() if kind.nv}
EVERYTHING = {
    "fixed": 0.4,
    "mimic": 0.4,
    "massless": 0.6,
    "armature": 0.5,
    "anchors": 0.5,
    "frames": 3,
    "loops": 6,
    "configurations": 2,
}

each_topology = pytest.mark.parametrize("topology", TOPOLOGIES)


def draw(seed: int = 0, n: int = 12, **options: object) -> Model:
    """A random robot of a seed."""
    return random_model(np.random.default_rng(seed), n, **options)


def drawn_parents(model: Model) -> dict[str, str]:
    """Parent link of each numbered link, looking through welded mounts."""
    above = {joint.child: joint.parent for joint in model.joints.values()}
    return {
        link: above[parent] if parent.startswith("mount") else parent
        for link, parent in above.items()
        if link.startswith("link")
    }


@each_topology
def test_same_seed_same_robot(topology: str) -> None:
    """The generator decides everything: equal states give equal models, others do not."""
    first = draw(1, topology=topology, **EVERYTHING)
    assert draw(1, topology=topology, **EVERYTHING) == first
    assert draw(2, topology=topology, **EVERYTHING) != first


def test_every_kind_occurs() -> None:
    """As many joints as there are kinds give one of each, new classes included."""
    model = draw(n=len(MOVING_KINDS))
    assert {joint.kind for joint in model.joints.values()} == MOVING_KINDS
    twice = draw(n=2 * len(MOVING_KINDS) + 3)
    kinds = [joint.kind for joint in twice.joints.values()]
    assert all(2 <= kinds.count(kind) <= 3 for kind in MOVING_KINDS)


def test_kinds_can_be_chosen() -> None:
    """Only the kinds asked for occur."""
    model = draw(n=9, kinds=["prismatic", "spherical"])
    assert {joint.kind for joint in model.joints.values()} == {"prismatic", "spherical"}


def test_number_of_joints() -> None:
    """n counts the joints drawn; the base, welds and a floating base come on top."""
    for n in range(4):
        assert len(draw(n=n).joints) == n
        assert len(draw(n=n, floating_base=True).joints) == n + 1
    assert draw(n=0).link_names == ("link0",)


def test_serial() -> None:
    """Each link hangs on the one before."""
    parents = drawn_parents(draw(topology="serial", fixed=0.5))
    assert parents == {f"link{k}": f"link{k - 1}" for k in range(1, 13)}


def test_star() -> None:
    """Every link hangs on the root."""
    assert set(drawn_parents(draw(topology="star", fixed=0.5)).values()) == {"link0"}


def test_binary() -> None:
    """No link carries more than two, and there are as few levels as that allows."""
    parents = drawn_parents(draw(topology="binary", n=14))
    counts = [list(parents.values()).count(f"link{k}") for k in range(15)]
    assert counts == [2] * 7 + [0] * 8


def test_arms() -> None:
    """A trunk of three links with three arms has exactly three tips."""
    parents = drawn_parents(draw(topology="arms", n=12))
    tips = [link for link in parents if link not in parents.values()]
    assert len(tips) == 3


def test_forest() -> None:
    """Some trees stand on resting links, some hang on the ground by their first joint."""
    models = [draw(seed, topology="forest") for seed in range(10)]
    hanging = [any(j.parent == GROUND_NAME for j in m.joints.values()) for m in models]
    resting = [any(link.name.startswith("root") for link in m.links) for m in models]
    assert any(hanging)
    assert any(resting)


def test_floating_base() -> None:
    """The free joint comes first; a forest has no single base to set free."""
    assert draw(floating_base=True).joint_names[0] == "root_joint"
    with pytest.raises(ArgumentError, match="exactly one root"):
        draw(4, topology="forest", n=30, floating_base=True)


@each_topology
def test_everything_asked_for_is_there(topology: str) -> None:
    """Welds, followers, massless links, drives, anchors, frames, loops and configurations occur."""
    model = draw(3, 40, topology=topology, **EVERYTHING)
    joints = list(model.joints.values())
    assert any(joint.kind == "fixed" for joint in joints)
    assert any(joint.mimic for joint in joints)
    assert any(any(joint.drive.armature) for joint in joints)
    assert any(joint.child_pose[0, 0] != 1.0 for joint in joints)
    assert any(joint.reference for joint in joints)
    assert any(np.isfinite(joint.limits.lower).any() for joint in joints)
    assert {"frame1", "frame2", "frame3"} <= set(model.frame_names)
    assert {type(loop) for loop in model.loops} == {LoopJoint, Coupling}
    assert list(model.configurations) == ["pose1", "pose2"]
    if topology != "star":
        assert any(link.mass == 0 for link in model.links)


def test_nothing_comes_unasked() -> None:
    """The default is a robot that every other library can hold: no welds, loops or followers."""
    model = draw()
    joints = model.joints.values()
    assert all(joint.mimic is None and joint.joint_kind.nv for joint in joints)
    assert all(not any(joint.drive.reflected_inertia) for joint in joints)
    assert all(np.array_equal(joint.child_pose, np.eye(4)) for joint in joints)
    assert (model.loops, dict(model.configurations)) == ((), {})
    assert model.frame_names == model.link_names
    assert all(link.mass > 0 for link in model.links)


@given(seed=st.integers(0, 2**32 - 1), topology=st.sampled_from(sorted(TOPOLOGIES)))
def test_inertias_are_sound_and_well_conditioned(seed: int, topology: str) -> None:
    """Every link is a possible solid, no moment is a 30th of another, and nothing is warned of."""
    model = draw(seed, 10, topology=topology, **EVERYTHING)
    assert model.without_loops().problems == ()
    for link in model.links:
        assert inertia_problems(link.mass, link.inertia) == []
        if link.mass:
            moments = np.linalg.eigvalsh(link.inertia)
            assert moments[2] < 30 * moments[0]


@given(seed=st.integers(0, 2**32 - 1), topology=st.sampled_from(sorted(TOPOLOGIES)))
def test_no_joint_is_left_without_inertia(seed: int, topology: str) -> None:
    """Massless links never make a singular hinge."""
    options = {"massless": 0.7, "mimic": 0.2, "fixed": 0.2}
    assert singular_hinges(draw(seed, 14, topology=topology, **options)) == ()


@pytest.mark.parametrize("seed", range(3))
def test_loops_are_closed_at_the_neutral_configuration(seed: int) -> None:
    """The two frames of a loop joint coincide at neutral, to 1e-13."""
    model = draw(seed, loops=6, fixed=0.2)
    q = neutral(model)
    loops = [loop for loop in model.loops if isinstance(loop, LoopJoint)]
    assert loops
    for loop in loops:
        assert loop.predecessor != loop.successor
        first = frame_pose(model, q, loop.predecessor) @ loop.predecessor_pose
        second = frame_pose(model, q, loop.successor) @ loop.successor_pose
        np.testing.assert_allclose(first, second, atol=1e-13)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n": -1}, ArgumentError, "at least 0"),
        ({"topology": "sreial"}, UnknownNameError, "serial"),
        ({"kinds": ["revolut"]}, UnknownNameError, "revolute"),
        ({"kinds": []}, ArgumentError, "at least one"),
    ],
)
def test_bad_arguments(options: dict[str, object], error: type[Exception], words: str) -> None:
    """Arguments that make no robot are refused with the choices."""
    with pytest.raises(error, match=words):
        draw(**options)
