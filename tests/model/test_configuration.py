# SPDX-License-Identifier: BSD-3-Clause
"""The configuration space of whole models: laws by hypothesis, Pinocchio as a second opinion."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.loaders.urdf.urdf_writer import export_urdf
from phistar.model import Mimic, Model, ModelBuilder
from phistar.model.configuration import (
    configuration,
    difference,
    integrate,
    limits,
    neutral,
    normalize,
    random_configuration,
    tangent,
    to_mapping,
)
from phistar.model.numpy_kinematics import link_poses
from phistar.model.random import random_model

EVERY_KIND = random_model(np.random.default_rng(7), 13, topology="tree", fixed=0.2, mimic=0.2)

seeds = st.integers(0, 2**32 - 1)
steps = st.sampled_from([0.0, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 1.0])


def state(model: Model, seed: int, size: float) -> tuple[np.ndarray, np.ndarray]:
    """A configuration and a step whose rotations stay below half a turn."""
    rng = np.random.default_rng(seed)
    return random_configuration(model, rng), size * rng.uniform(-1, 1, model.nv)


def same_poses(model: Model, q0: np.ndarray, q1: np.ndarray, tol: float) -> None:
    """Two configurations put every link in the same place."""
    first, second = link_poses(model, q0), link_poses(model, q1)
    for name, pose in first.items():
        np.testing.assert_allclose(pose, second[name], atol=tol)


@given(seed=seeds, size=steps)
def test_difference_undoes_integrate(seed: int, size: float) -> None:
    """difference(q, integrate(q, dv)) = dv, absolutely to 4e-15 + 1e-13 |dv|."""
    q, dv = state(EVERY_KIND, seed, size)
    back = difference(EVERY_KIND, q, integrate(EVERY_KIND, q, dv))
    np.testing.assert_allclose(back, dv, rtol=0, atol=4e-15 + 1e-13 * size)


@given(first=seeds, second=seeds)
def test_integrate_undoes_difference(first: int, second: int) -> None:
    """From any configuration to any other: the step found leads there, to 1e-12 in all poses."""
    q0, q1 = state(EVERY_KIND, first, 0)[0], state(EVERY_KIND, second, 0)[0]
    reached = integrate(EVERY_KIND, q0, difference(EVERY_KIND, q0, q1))
    same_poses(EVERY_KIND, reached, q1, 1e-12)


@given(seed=seeds, size=steps)
def test_a_step_there_and_back(seed: int, size: float) -> None:
    """integrate(integrate(q, dv), -dv) = q: exp(-H* dv) undoes exp(H* dv), to 1e-13."""
    q, dv = state(EVERY_KIND, seed, size)
    back = integrate(EVERY_KIND, integrate(EVERY_KIND, q, dv), -dv)
    np.testing.assert_allclose(back, q, atol=1e-13)


@given(seed=seeds, share=st.floats(0.0, 1.0))
def test_steps_along_one_direction_add_up(seed: int, share: float) -> None:
    """Going a share of the way, then the rest, is going all the way, to 1e-13."""
    q, dv = state(EVERY_KIND, seed, 1.0)
    half = integrate(EVERY_KIND, q, share * dv)
    whole = integrate(EVERY_KIND, half, (1 - share) * dv)
    np.testing.assert_allclose(whole, integrate(EVERY_KIND, q, dv), atol=1e-13)


@given(seed=seeds)
def test_difference_changes_sign_when_turned_round(seed: int) -> None:
    """difference(q1, q0) = -difference(q0, q1), to 1e-12."""
    q, dv = state(EVERY_KIND, seed, 1.0)
    other = integrate(EVERY_KIND, q, dv)
    there, back = difference(EVERY_KIND, q, other), difference(EVERY_KIND, other, q)
    np.testing.assert_allclose(back, -there, atol=1e-12)


@given(seed=seeds, size=steps)
def test_quaternions_stay_unit(seed: int, size: float) -> None:
    """After five steps in a row quaternions still have length 1, to 1e-15."""
    q, dv = state(EVERY_KIND, seed, size)
    for _ in range(5):
        q = integrate(EVERY_KIND, q, dv)
    np.testing.assert_allclose(normalize(EVERY_KIND, q), q, atol=1e-15)


@given(seed=seeds)
def test_the_sign_of_a_quaternion_has_no_meaning(seed: int) -> None:
    """q and the same q with quaternions turned round differ by a zero step."""
    q, _ = state(EVERY_KIND, seed, 0)
    flipped = q.copy()
    for name in EVERY_KIND.joint_names:
        joint = EVERY_KIND.joints[name]
        if joint.nq > joint.nv:
            flipped[joint.q_slice.stop - 4 : joint.q_slice.stop] *= -1
    assert not np.array_equal(flipped, q)
    np.testing.assert_allclose(difference(EVERY_KIND, q, flipped), 0, atol=1e-14)


@given(seed=seeds)
def test_random_configurations_respect_limits(seed: int) -> None:
    """Drawn configurations lie inside the limits and have unit quaternions."""
    q = random_configuration(EVERY_KIND, np.random.default_rng(seed), (3, 2))
    lower, upper = limits(EVERY_KIND)
    assert np.isfinite(lower).any()
    assert np.all((lower <= q) & (q <= upper))
    np.testing.assert_allclose(normalize(EVERY_KIND, q), q, atol=1e-15)


def test_same_seed_same_configurations() -> None:
    """Drawing is deterministic in the generator, whatever the batch is called."""
    draws = [random_configuration(EVERY_KIND, np.random.default_rng(1), s) for s in (4, (4,))]
    assert np.array_equal(*draws)
    assert draws[0].shape == (4, EVERY_KIND.nq)


def test_batches_broadcast() -> None:
    """Leading axes of q and dv broadcast; a batch equals its members."""
    rng = np.random.default_rng(2)
    q = random_configuration(EVERY_KIND, rng, (3, 1))
    dv = rng.normal(size=(2, EVERY_KIND.nv))
    batch = integrate(EVERY_KIND, q, dv)
    assert batch.shape == (3, 2, EVERY_KIND.nq)
    for i, k in np.ndindex(3, 2):
        one = integrate(EVERY_KIND, q[i, 0], dv[k])
        np.testing.assert_allclose(batch[i, k], one, atol=1e-15)
    steps = difference(EVERY_KIND, q, batch)
    assert steps.shape == (3, 2, EVERY_KIND.nv)
    with pytest.raises(ShapeError):
        integrate(EVERY_KIND, q[:, 0], dv)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_dtype_is_kept(dtype: type) -> None:
    """Single, double and complex precision go in and come out."""
    q = random_configuration(EVERY_KIND, np.random.default_rng(3)).astype(dtype)
    dv = np.full(EVERY_KIND.nv, 0.1, dtype=dtype)
    assert integrate(EVERY_KIND, q, dv).dtype == dtype
    assert difference(EVERY_KIND, q, q).dtype == dtype
    assert normalize(EVERY_KIND, q).dtype == dtype


def test_flat_coordinates_are_added() -> None:
    """Without curved joints a step is a sum: broadcast, in the dtype of both, in new memory."""
    model = random_model(np.random.default_rng(8), 4, kinds=["revolute", "prismatic"])
    q, dv = np.arange(8.0).reshape(2, 1, 4), np.ones((3, 4), np.complex64)
    later = integrate(model, q, dv)
    assert later.dtype == np.complex128
    np.testing.assert_array_equal(later, np.broadcast_to(q + 1, (2, 3, 4)))
    still = integrate(model, q[0, 0], np.zeros(4))
    assert not np.shares_memory(still, q)
    np.testing.assert_array_equal(difference(model, q, later), np.ones((2, 3, 4)))


def test_inputs_are_not_changed() -> None:
    """Functions are pure: what they are given stays as it was."""
    q = random_configuration(EVERY_KIND, np.random.default_rng(4))
    kept = q.copy()
    for result in (normalize(EVERY_KIND, q), integrate(EVERY_KIND, q, np.zeros(EVERY_KIND.nv))):
        result[:] = 0.0
    assert np.array_equal(q, kept)


def test_neutral_has_identity_quaternions() -> None:
    """neutral is zero but for the w of quaternions, and steps of zero leave it."""
    q = neutral(EVERY_KIND)
    assert set(q.tolist()) == {0.0, 1.0}
    np.testing.assert_array_equal(normalize(EVERY_KIND, q), q)
    np.testing.assert_array_equal(integrate(EVERY_KIND, q, np.zeros(EVERY_KIND.nv)), q)


def small_robot() -> Model:
    """A hinge, a ball and a follower."""
    builder = ModelBuilder("small")
    builder.link("a")
    parts = (("hinge", "revolute"), ("ball", "spherical"), ("follow", "revolute"), ("w", "fixed"))
    for name, kind in parts:
        builder.link(f"{name}_link", 1.0, inertia=(1, 1, 1))
        mimic = Mimic("hinge") if name == "follow" else None
        builder.joint(name, kind, "a", f"{name}_link", mimic=mimic)
    return builder.build()


def test_dicts_in_and_out() -> None:
    """Values by joint name go in, missing joints are neutral, and the same values come out."""
    model = small_robot()
    q = configuration(model, {"hinge": 0.5})
    assert q.tolist() == [0.5, 0, 0, 0, 1]
    assert tangent(model, {"ball": [1, 2, 3]}).tolist() == [0, 1, 2, 3]
    mapping = to_mapping(model, q, "q")
    assert list(mapping) == ["hinge", "ball"]
    assert mapping["hinge"].shape == ()
    np.testing.assert_array_equal(configuration(model, mapping), q)


def test_dicts_broadcast() -> None:
    """One joint may be given for a whole batch, another once for all."""
    model = small_robot()
    q = configuration(model, {"hinge": [0.1, 0.2, 0.3], "ball": [0, 0, 0, 1]})
    assert q.shape == (3, 5)
    assert q[:, 0].tolist() == [0.1, 0.2, 0.3]
    back = to_mapping(model, q, "q")
    assert (back["hinge"].shape, back["ball"].shape) == ((3,), (3, 4))


@pytest.mark.parametrize("space", ["q", "v"])
@pytest.mark.parametrize("shape", [(), (2,), (3, 2)])
def test_dict_round_trip(space: str, shape: tuple[int, ...]) -> None:
    """Array to dict to array is the identity for every kind of joint and batch."""
    rng = np.random.default_rng(5)
    size = EVERY_KIND.nq if space == "q" else EVERY_KIND.nv
    x = rng.normal(size=(*shape, size))
    x = normalize(EVERY_KIND, x) if space == "q" else x
    back = (configuration if space == "q" else tangent)(
        EVERY_KIND, to_mapping(EVERY_KIND, x, space)
    )
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ([0.0], ShapeError, ["q", "(1,)", "(..., 5)", "small", "hinge"]),
        (1.0, ShapeError, ["()", "(..., 5)"]),
        ({"hing": 0.0}, UnknownNameError, ["hing", "hinge", "small"]),
        ({"follow": 0.0}, ArgumentError, ["follows 'hinge'", "independent"]),
        ({"w": 0.0}, ArgumentError, ["fixed"]),
        ({"ball": [0.0, 1.0]}, ShapeError, ["ball", "(2,)", "(..., 4)", "small"]),
        (["a"] * 5, ArgumentError, ["numbers"]),
        ([[0.0], [0.0, 1.0]], ArgumentError, ["numbers"]),
    ],
)
def test_bad_coordinates_are_explained(
    given: object, error: type[Exception], words: list[str]
) -> None:
    """An error names the argument, what was given, what is needed and the robot."""
    with pytest.raises(error) as caught:
        configuration(small_robot(), given)
    assert [word for word in words if word not in str(caught.value)] == []


def test_integers_are_numbers_too() -> None:
    """Lists of integers are taken as floats."""
    assert configuration(small_robot(), [1, 0, 0, 0, 1]).dtype == np.float64


@pytest.mark.parametrize("seed", range(5))
def test_pinocchio_agrees_on_manifolds(seed: int) -> None:
    """Steps of trees with free joints are Pinocchio's, whose velocities have the linear part first.

    Tolerance 1e-12 for where a step leads and 1e-10 for the step found, near half turns worst.
    """
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(seed)
    kinds = ["free", "revolute", "prismatic"]
    model = random_model(rng, 6, kinds=kinds, floating_base=True)
    other = pin.buildModelFromXML(export_urdf(model))

    def to_peer(x: np.ndarray, space: str) -> np.ndarray:
        result = np.empty(other.nq if space == "q" else other.nv)
        for name in model.joint_names:
            ours, theirs = model.joints[name], other.joints[other.getJointId(name)]
            part = x[ours.q_slice if space == "q" else ours.v_slice]
            if space == "v" and ours.kind == "free":
                part = np.concatenate([part[3:], part[:3]])
            start = theirs.idx_q if space == "q" else theirs.idx_v
            result[start : start + part.size] = part
        return result

    q0, q1 = random_configuration(model, rng), random_configuration(model, rng)
    dv = rng.normal(size=model.nv)
    reached = pin.integrate(other, to_peer(q0, "q"), to_peer(dv, "v"))
    ours = to_peer(integrate(model, q0, dv), "q")
    gap = pin.difference(other, reached, ours)
    np.testing.assert_allclose(gap, 0, atol=1e-12)
    step = pin.difference(other, to_peer(q0, "q"), to_peer(q1, "q"))
    np.testing.assert_allclose(to_peer(difference(model, q0, q1), "v"), step, atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["planar", "spherical"])
def test_pinocchio_agrees_on_planar_and_spherical(kind: str, seed: int) -> None:
    """Planar and spherical steps are those of Pinocchio's joint models, to 1e-12."""
    pin = pytest.importorskip("pinocchio")
    other = pin.Model()
    joint = pin.JointModelPlanar() if kind == "planar" else pin.JointModelSpherical()
    other.addJoint(0, joint, pin.SE3.Identity(), "j")
    builder = ModelBuilder()
    builder.link("a")
    builder.link("b", 1.0, inertia=(1, 1, 1))
    builder.joint("j", kind, "a", "b")
    model = builder.build()

    def to_peer(q: np.ndarray) -> np.ndarray:
        return np.array([*q[:2], math.cos(q[2]), math.sin(q[2])]) if kind == "planar" else q

    rng = np.random.default_rng(seed)
    q0, q1 = random_configuration(model, rng), random_configuration(model, rng)
    dv = rng.normal(size=model.nv)
    reached = pin.integrate(other, to_peer(q0), dv)
    gap = pin.difference(other, reached, to_peer(integrate(model, q0, dv)))
    np.testing.assert_allclose(gap, 0, atol=1e-12)
    step = pin.difference(other, to_peer(q0), to_peer(q1))
    np.testing.assert_allclose(difference(model, q0, q1), step, atol=1e-10)
