# SPDX-License-Identifier: BSD-3-Clause
"""The model: what merging, mimic reduction and reordering keep, what equality sees, what is fixed.

Witnesses are models that avoid the feature under test: welds are compared with locked joints, mimic
joints with independent ones moved by hand.
"""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from phistar.errors import ArgumentError, ModelError, UnknownNameError
from phistar.model import GROUND, JOINT_KINDS, Frame, Mimic, Model, ModelBuilder, make_kind
from phistar.model.components import Drive, Limits
from phistar.model.configuration import neutral, random_configuration
from phistar.model.numpy_kinematics import (
    body_velocities,
    center_of_mass,
    frame_velocity,
    jacobian,
    link_poses,
)
from phistar.model.random import random_model
from phistar.spatial import inertia_apply, inertia_parameters

RICH = {"fixed": 0.5, "armature": 0.5, "anchors": 0.5, "frames": 2, "configurations": 1}


def kinetic_energy_of_bodies(model: Model, q: np.ndarray, v: np.ndarray) -> float:
    """From the merged inertias."""
    velocity = body_velocities(model, q, v)
    return float(np.sum(velocity * inertia_apply(model.inertias, velocity)) / 2)


def kinetic_energy_of_links(model: Model, q: np.ndarray, v: np.ndarray) -> float:
    """From the links as given, one by one."""
    total = 0.0
    for link in model.links:
        velocity = frame_velocity(model, q, v, link.name, "local")
        own = inertia_parameters(link.mass, link.com, link.inertia)
        total += float(velocity @ inertia_apply(own, velocity)) / 2
    return total


def unwelded(model: Model) -> Model:
    """The same robot with a revolute joint in the place of every fixed one."""
    hinge = make_kind("revolute", (0.6, 0.0, 0.8))
    joints = [
        replace(
            j, joint_kind=hinge, limits=Limits.unlimited(hinge), drive=Drive.passive_free(hinge)
        )
        if j.kind == "fixed"
        else j
        for j in model.joints.values()
    ]
    return Model.build(model.name, model.links, joints)


def spread(model: Model, witness: Model, x: np.ndarray, space: str) -> np.ndarray:
    """Coordinates of the witness with the joints that the model lacks at zero."""
    result = neutral(witness) if space == "q" else np.zeros(witness.nv)
    for name in model.joint_names:
        ours, theirs = model.joints[name], witness.joints[name]
        if space == "q":
            result[theirs.q_slice] = x[ours.q_slice]
        else:
            result[theirs.v_slice] = x[ours.v_slice]
    return result


@pytest.mark.parametrize("seed", range(5))
def test_merging_keeps_frames_and_inertia(seed: int) -> None:
    """Links welded together move and weigh as they do with locked joints between them, to 1e-12."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, 8, **RICH)
    witness = unwelded(model)
    welds = sum(joint.kind == "fixed" for joint in model.joints.values())
    assert welds > 0
    assert len(witness.bodies) == len(model.bodies) + welds
    q, v = random_configuration(model, rng), rng.normal(size=model.nv)
    locked, still = spread(model, witness, q, "q"), spread(model, witness, v, "v")
    poses, expected = link_poses(model, q), link_poses(witness, locked)
    assert list(poses) == list(expected) == list(model.link_names)
    for name, pose in poses.items():
        np.testing.assert_allclose(pose, expected[name], atol=1e-13)
    energy = kinetic_energy_of_bodies(model, q, v)
    assert energy == pytest.approx(kinetic_energy_of_links(witness, locked, still), rel=1e-12)
    assert energy == pytest.approx(kinetic_energy_of_links(model, q, v), rel=1e-12)
    np.testing.assert_allclose(
        center_of_mass(model, q), center_of_mass(witness, locked), atol=1e-13
    )


def test_weld_to_the_ground_moves_nothing() -> None:
    """Links welded to the root belong to the ground: no body carries their mass."""
    builder = ModelBuilder()
    builder.link("base", 5.0, inertia=(1, 1, 1))
    builder.link("plate", 3.0, inertia=(1, 1, 1))
    builder.joint("weld", "fixed", "base", "plate", xyz=(1, 0, 0))
    model = builder.build()
    assert (model.bodies, model.nq, model.total_mass) == ((), 0, 8.0)
    assert model.frame("plate").body == GROUND
    assert jacobian(model, [], "plate").shape == (6, 0)
    np.testing.assert_allclose(center_of_mass(model, []), [3 / 8, 0, 0])


def followed(model: Model, reduced: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Configuration of the independent model, and dv_independent/dv_reduced, law by law."""
    full, rate = neutral(model), np.zeros((model.nv, reduced.nv))

    def put(name: str) -> None:
        joint, own = reduced.joints[name], model.joints[name]
        if joint.mimic is None:
            full[own.q_slice] = q[joint.q_slice]
            rate[own.v_slice, joint.v_slice] = np.eye(joint.nv)
            return
        put(joint.mimic.joint)
        leader = model.joints[joint.mimic.joint]
        full[own.q_slice] = joint.mimic.multiplier * full[leader.q_slice] + joint.mimic.offset
        rate[own.v_slice] = joint.mimic.multiplier * rate[leader.v_slice]

    for name in model.joint_names:
        put(name)
    return full, rate


@pytest.mark.parametrize("seed", range(6))
def test_mimic_reduction_is_exact(seed: int) -> None:
    """A reduced model moves as the independent one with q substituted: poses, J and energy."""
    rng = np.random.default_rng(seed)
    options = {"mimic": 0.6, "anchors": 0.4, "fixed": 0.2}
    reduced = random_model(np.random.default_rng(seed), 12, **options)
    joints = [replace(joint, mimic=None) for joint in reduced.joints.values()]
    model = Model.build(reduced.name, reduced.links, joints)
    assert model.nv > reduced.nv
    q, v = random_configuration(reduced, rng), rng.normal(size=reduced.nv)
    full, rate = followed(model, reduced, q)
    expected = link_poses(model, full)
    for name, pose in link_poses(reduced, q).items():
        np.testing.assert_allclose(pose, expected[name], atol=1e-13)
        np.testing.assert_allclose(
            jacobian(reduced, q, name), jacobian(model, full, name) @ rate, atol=1e-12
        )
    energy = kinetic_energy_of_bodies(model, full, rate @ v)
    assert kinetic_energy_of_bodies(reduced, q, v) == pytest.approx(energy, rel=1e-12)


def test_mimic_shares_its_leaders_coordinates() -> None:
    """A follower has no coordinates of its own: its slices are those it follows in the end."""
    model = random_model(np.random.default_rng(1), 10, kinds=["revolute"], mimic=0.9)
    followers = [joint for joint in model.joints.values() if joint.mimic]
    assert len(followers) > 3
    assert any(model.joints[j.mimic.joint].mimic for j in followers if j.mimic)
    for joint in followers:
        assert (joint.nq, joint.nv) == (0, 0)
        assert joint.name not in model.joint_names
        leader = joint
        while leader.mimic:
            leader = model.joints[leader.mimic.joint]
        assert (joint.q_slice, joint.v_slice) == (leader.q_slice, leader.v_slice)


def two_joints(**second: object) -> ModelBuilder:
    """Joints j1 and j2 in a row."""
    builder = ModelBuilder()
    builder.link("a")
    for k, parent in ((1, "a"), (2, "b1")):
        builder.link(f"b{k}", 1.0, inertia=(1, 1, 1))
        extra = second if k == 2 else {}
        builder.joint(f"j{k}", "revolute", parent, f"b{k}", **extra)
    return builder


def test_mimic_of_oneself_is_refused() -> None:
    """A joint that follows itself leaves no coordinate and is an error that shows the ring."""
    with pytest.raises(ModelError, match="mimic cycle j2 -> j2"):
        two_joints(mimic=Mimic("j2")).build()


def test_compound_joint_becomes_massless_bodies() -> None:
    """A universal joint is two revolute ones; the first of its bodies weighs nothing."""
    builder = ModelBuilder()
    builder.link("a")
    builder.link("b", 2.0, inertia=(1, 1, 1))
    builder.joint("u", "universal", "a", "b", axis=(0, 0, 1), axis2=(1, 0, 0), armature=(1, 2))
    model = builder.build()
    first, second = model.bodies
    assert model.joint("u").bodies == (0, 1)
    assert not first.inertia.any()
    assert second.inertia[0] == 2.0
    assert (first.armature, second.armature) == ((1.0,), (2.0,))
    assert (first.q_slice, second.q_slice) == (slice(0, 1), slice(1, 2))
    assert model.frame("b").body == 1


def test_bodies_and_coordinates_are_in_order() -> None:
    """Bodies come parents first, coordinates without gaps in the order of joint_names."""
    model = random_model(np.random.default_rng(2), 22, topology="forest", fixed=0.3, mimic=0.3)
    assert all(body.parent < body.index == k for k, body in enumerate(model.bodies))
    ends = np.cumsum([model.joints[name].nq for name in model.joint_names])
    assert [model.joints[name].q_slice.stop for name in model.joint_names] == ends.tolist()
    assert ends[-1] == model.nq
    for body in model.bodies:
        path = model.ancestors(body.index)
        assert path[-1] == body.index
        assert model.parents[path[0]] == GROUND


@pytest.mark.parametrize("seed", range(3))
def test_reorder_permutes_coordinates_and_nothing_else(seed: int) -> None:
    """In another order q is permuted; poses, Jacobian columns and configurations follow."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, 12, mimic=0.2, **RICH)
    names = [model.joint_names[k] for k in rng.permutation(len(model.joint_names))]
    other = model.reorder(names)
    assert list(other.joint_names) == names
    q = random_configuration(model, rng)
    permuted = np.concatenate([q[model.joints[name].q_slice] for name in names])
    columns = np.concatenate([np.r_[model.joints[name].v_slice] for name in names])
    for name in model.frame_names:
        ours, theirs = jacobian(model, q, name), jacobian(other, permuted, name)
        assert np.array_equal(ours[:, columns], theirs)
    home, moved = model.configurations["pose1"], other.configurations["pose1"]
    for name in names:
        assert np.array_equal(home[model.joints[name].q_slice], moved[other.joints[name].q_slice])
    assert other != model
    assert other.reorder(model.joint_names) == model


def test_reorder_refuses_what_is_no_permutation() -> None:
    """Unknown, missing and repeated names are errors that name them."""
    model = two_joints().build()
    with pytest.raises(UnknownNameError, match="j1, j2"):
        model.reorder(["jl", "j2"])
    with pytest.raises(ModelError, match=r"missing \['j1'\]"):
        model.reorder(["j2"])
    with pytest.raises(ModelError, match=r"twice \['j2'\]"):
        model.reorder(["j2", "j1", "j2"])


def test_equal_models_have_equal_fingerprints() -> None:
    """Equality is of content: the same random numbers make equal models, with equal hashes."""
    first = random_model(np.random.default_rng(4), 8, **RICH)
    second = random_model(np.random.default_rng(4), 8, **RICH)
    assert first is not second
    assert first == second
    assert hash(first) == hash(second)
    assert len({first, second}) == 1
    assert first != random_model(np.random.default_rng(5), 8, **RICH)
    assert first != "random"


CHANGES = {
    "name": lambda b: setattr(b, "name", "other"),
    "gravity": lambda b: setattr(b, "gravity", (0, 0, -9.80665)),
    "mass": lambda b: b.links.__setitem__(2, replace(b.links[2], mass=1.0 + 2**-52)),
    "axis": lambda b: b.joints.__setitem__(
        1, replace(b.joints[1], joint_kind=make_kind("revolute", (1, 0, 0)))
    ),
    "kind": lambda b: b.joints.__setitem__(
        1, replace(b.joints[1], joint_kind=make_kind("continuous"))
    ),
    "limit": lambda b: b.joints.__setitem__(
        1, replace(b.joints[1], limits=Limits((-1.0,), (1.0,), (1.0,), (1.0,)))
    ),
    "frame": lambda b: b.frames.append(Frame("tool", "b2")),
    "loop": lambda b: b.loop("close", "revolute", "b2", "world"),
    "configuration": lambda b: b.configurations.update(home=[0.0, 0.1]),
    "virtual": lambda b: b.links.__setitem__(1, replace(b.links[1], virtual=True)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_equality_sees_every_change(change: object) -> None:
    """One changed number, name or part makes another model."""
    builder = two_joints()
    before = builder.build()
    change(builder)
    assert builder.build() != before


def test_equality_does_not_see_file_positions() -> None:
    """Where a part was read from is no part of the robot."""
    builder = two_joints()
    before = builder.build()
    builder.links[0] = replace(builder.links[0], where="elsewhere.urdf:7")
    builder.joints[0] = replace(builder.joints[0], where="elsewhere.urdf:8")
    assert builder.build() == before


def test_equality_counts_numbers_not_spellings() -> None:
    """-0 is 0 and 1 is 1.0."""
    first = two_joints(xyz=(0.0, 0.0, 1)).build()
    assert two_joints(xyz=(-0.0, 0.0, 1.0)).build() == first


def arrays_of(model: Model) -> list[np.ndarray]:
    """Every array a model holds."""
    parts = [*model.links, *model.joints.values(), *model.frames.values(), *model.bodies]
    parts += [*model.loops, *(shape for link in model.links for shape in link.visuals)]
    values = [value for part in parts for value in vars(part).values()]
    return [model.gravity, *model.configurations.values()] + [
        value for value in values if isinstance(value, np.ndarray)
    ]


def test_models_cannot_be_changed() -> None:
    """Attributes, mappings and arrays of a model are read-only throughout."""
    model = random_model(np.random.default_rng(6), 8, loops=3, **RICH)
    with pytest.raises(FrozenInstanceError):
        model.name = "other"
    with pytest.raises(TypeError):
        model.joints["new"] = model.joints["joint1"]
    with pytest.raises(TypeError):
        del model.frames["link0"]
    with pytest.raises(TypeError):
        model.configurations["home"] = neutral(model)
    with pytest.raises(FrozenInstanceError):
        model.links[0].mass = 0.0
    assert len(arrays_of(model)) > 100
    assert not any(array.flags.writeable for array in arrays_of(model))


def test_arrays_given_to_the_builder_are_copied() -> None:
    """Changing an array after building changes no model."""
    com, origin = np.array([0.0, 0.0, 0.1]), np.eye(4)
    builder = ModelBuilder()
    builder.link("a", 1.0, com, (1, 1, 1))
    builder.link("b", 1.0, com, (1, 1, 1))
    builder.joint("j", "revolute", "a", "b", origin=origin)
    model = builder.build()
    before = model.fingerprint
    com[:] = 5.0
    origin[:3, 3] = 7.0
    assert builder.build().fingerprint == before


def test_gravity_and_configurations_can_be_replaced() -> None:
    """with_gravity and with_configurations give another model and leave the first alone."""
    model = two_joints().build()
    moon = model.with_gravity((0, 0, -1.62))
    assert moon.gravity.tolist() == [0.0, 0.0, -1.62]
    assert model.gravity.tolist() == [0.0, 0.0, -9.81]
    assert moon.with_gravity(model.gravity) == model
    named = model.with_configurations({"home": [0.1, 0.2]})
    assert named.configurations["home"].tolist() == [0.1, 0.2]
    assert not model.configurations
    with pytest.raises(ArgumentError, match=r"\(2,\)"):
        model.with_configurations({"home": [0.1]})


@pytest.mark.parametrize("what", ["link", "joint", "frame"])
def test_unknown_names_list_close_ones(what: str) -> None:
    """Asking for a part that is not there names the robot and what is meant."""
    builder = two_joints()
    builder.frame("tool", "b2")
    model = builder.build()
    near = {"link": "b11", "joint": "j11", "frame": "tol"}[what]
    with pytest.raises(UnknownNameError) as caught:
        getattr(model, what)(near)
    assert caught.value.close
    assert model.name in str(caught.value)


@pytest.mark.parametrize("kind", JOINT_KINDS)
def test_one_joint_of_each_kind(kind: str) -> None:
    """A model of a single joint has the sizes and bodies of its kind."""
    motion = JOINT_KINDS[kind].random_kind(np.random.default_rng(0))
    builder = ModelBuilder()
    builder.link("a")
    builder.link("b", 1.0, inertia=(1, 1, 1))
    builder.joint("j", motion, "a", "b")
    model = builder.build()
    assert (model.nq, model.nv) == (motion.nq, motion.nv)
    assert len(model.bodies) == (len(motion.parts) if motion.nv else 0)
    assert model.joint_names == (("j",) if motion.nv else ())
