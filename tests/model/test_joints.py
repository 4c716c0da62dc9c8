# SPDX-License-Identifier: BSD-3-Clause
"""The contract of a joint kind. Every class of JOINT_KINDS is tested; a new one needs no edit here.

The independent witness is the matrix exponential of SciPy: a joint map H* is right when the
transform moves along X_J(q) expm(H* dv), and a step is right when it arrives there.
"""

import math

import numpy as np
import pytest
from scipy.linalg import expm

from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.joints import (
    JOINT_KINDS,
    JointKind,
    Planar,
    Prismatic,
    Revolute,
    Universal,
    free_configuration,
    make_kind,
    unit_axis,
)
from phistar.spatial import crm, is_rotation, skew

SEED = 20
UNLIMITED = math.inf


def draw(name: str, seed: int = SEED) -> JointKind:
    """A kind with random parameters."""
    return JOINT_KINDS[name].random_kind(np.random.default_rng(seed))


def configurations(kind: JointKind, shape: tuple[int, ...], seed: int = SEED + 1) -> np.ndarray:
    """Random configurations without limits."""
    free = np.full(kind.nq, UNLIMITED)
    return kind.random(np.random.default_rng(seed), -free, free, shape)


def twist_matrix(twist: np.ndarray) -> np.ndarray:
    """The 4x4 matrix whose exponential is the motion along a twist [angular; linear]."""
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = skew(twist[:3]), twist[3:]
    return matrix


each_kind = pytest.mark.parametrize("name", JOINT_KINDS)
simple_kinds = pytest.mark.parametrize(
    "name", [name for name in JOINT_KINDS if len(draw(name).parts) == 1]
)


@each_kind
def test_transform_is_rigid(name: str) -> None:
    """X_J(q) is a pose for every q: a rotation to 1e-14, a position and the row 0 0 0 1."""
    kind = draw(name)
    poses = kind.transform(configurations(kind, (20,)))
    assert poses.shape == (20, 4, 4)
    assert np.all(is_rotation(poses[:, :3, :3], 1e-14))
    assert np.array_equal(poses[:, 3], np.broadcast_to([0, 0, 0, 1], (20, 4)))


@each_kind
def test_neutral_is_identity(name: str) -> None:
    """X_J(neutral) = 1, exactly."""
    kind = draw(name)
    assert np.array_equal(kind.transform(kind.neutral()), np.eye(4))


@each_kind
def test_sizes_and_units_fit(name: str) -> None:
    """There is one unit for every coordinate, and neutral and the joint map have those sizes."""
    kind = draw(name)
    assert len(kind.q_units) == kind.nq == kind.neutral().size
    assert len(kind.v_units) == kind.nv == sum(part.nv for part in kind.parts)
    assert all(part.motion_map().shape == (6, part.nv) for part in kind.parts)


@simple_kinds
def test_motion_map_is_derivative_of_transform(name: str) -> None:
    """X⁻¹ dX/dε along integrate(q, ε dv) is H* dv (central difference, h = 1e-6: to 1e-8)."""
    kind = draw(name)
    rng = np.random.default_rng(3)
    for q in configurations(kind, (5,)):
        dv, h = rng.normal(size=kind.nv), 1e-6
        ahead = kind.transform(kind.integrate(q, h * dv))
        behind = kind.transform(kind.integrate(q, -h * dv))
        rate = np.linalg.inv(kind.transform(q)) @ (ahead - behind) / (2 * h)
        np.testing.assert_allclose(rate, twist_matrix(kind.motion_map() @ dv), atol=1e-8)


@simple_kinds
def test_integrate_is_the_exponential(name: str) -> None:
    """X_J(integrate(q, dv)) = X_J(q) expm(H* dv) for steps of any size, to 1e-12."""
    kind = draw(name)
    rng = np.random.default_rng(4)
    for q, size in zip(configurations(kind, (6,)), (0.0, 1e-9, 1e-4, 0.3, 2.0, 5.0), strict=True):
        dv = size * rng.normal(size=kind.nv)
        expected = kind.transform(q) @ expm(twist_matrix(kind.motion_map() @ dv))
        np.testing.assert_allclose(kind.transform(kind.integrate(q, dv)), expected, atol=1e-12)


@simple_kinds
def test_complex_step_gives_the_same_derivative(name: str) -> None:
    """The transform is analytic in q: a complex step equals a real difference to 1e-8."""
    kind = draw(name)
    q, dv = configurations(kind, ()), np.random.default_rng(5).normal(size=kind.nv)
    exact = kind.transform(kind.integrate(q + 0j, 1e-30j * dv)).imag / 1e-30
    h = 1e-6
    ahead = kind.transform(kind.integrate(q, h * dv))
    behind = kind.transform(kind.integrate(q, -h * dv))
    np.testing.assert_allclose(exact, (ahead - behind) / (2 * h), atol=1e-8)


@each_kind
def test_difference_undoes_integrate(name: str) -> None:
    """difference(q, integrate(q, dv)) = dv while rotations stay below half a turn, to 1e-12."""
    kind = draw(name)
    q = configurations(kind, (30,))
    dv = np.random.default_rng(6).uniform(-1.0, 1.0, (30, kind.nv))
    np.testing.assert_allclose(kind.difference(q, kind.integrate(q, dv)), dv, atol=1e-12)


@each_kind
def test_integrate_undoes_difference(name: str) -> None:
    """Stepping from q0 by difference(q0, q1) arrives at the pose of q1, to 1e-12."""
    kind = draw(name)
    q0, q1 = configurations(kind, (30,), 7), configurations(kind, (30,), 8)
    reached = kind.integrate(q0, kind.difference(q0, q1))
    np.testing.assert_allclose(kind.transform(reached), kind.transform(q1), atol=1e-12)


@each_kind
def test_batch_is_a_loop(name: str) -> None:
    """Leading axes broadcast: a batch gives what its members give one by one, to 1e-14."""
    kind = draw(name)
    q = configurations(kind, (2, 3))
    dv = np.random.default_rng(9).normal(size=(2, 3, kind.nv))
    for function, other in ((kind.integrate, dv), (kind.difference, q[::-1, ::-1])):
        batch = function(q, other)
        for index in np.ndindex(2, 3):
            np.testing.assert_allclose(batch[index], function(q[index], other[index]), rtol=1e-14)
    poses = kind.transform(q)
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(poses[index], kind.transform(q[index]), rtol=0, atol=1e-15)


@each_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_dtype_is_kept(name: str, dtype: type) -> None:
    """Single, double and complex coordinates give results of the same dtype."""
    kind = draw(name)
    q = configurations(kind, (4,)).astype(dtype)
    dv = np.ones((4, kind.nv), dtype=dtype)
    assert kind.transform(q).dtype == dtype
    assert kind.integrate(q, dv).dtype == dtype
    assert kind.difference(q, q).dtype == dtype
    assert kind.normalize(q).dtype == dtype


@each_kind
def test_parts_compose_to_the_transform(name: str) -> None:
    """The simple joints in a row, each with its share of q, give the joint's transform."""
    kind = draw(name)
    q = configurations(kind, (10,))
    composed, start = np.broadcast_to(np.eye(4), (10, 4, 4)), 0
    for part in kind.parts:
        composed = composed @ part.transform(q[:, start : start + part.nq])
        start += part.nq
    assert start == kind.nq
    np.testing.assert_allclose(composed, kind.transform(q), atol=1e-15)


@each_kind
def test_random_stays_inside_limits(name: str) -> None:
    """Limited coordinates are drawn inside; quaternions are unit; both ends are approached."""
    kind = draw(name)
    limited = np.array([bool(unit) for unit in kind.q_units], dtype=bool)
    lower = np.where(limited, -0.3, -np.inf)
    upper = np.where(limited, 0.5, np.inf)
    q = kind.random(np.random.default_rng(10), lower, upper, (500,))
    assert q.shape == (500, kind.nq)
    inside = q[:, limited]
    assert np.all((inside >= -0.3) & (inside < 0.5))
    assert np.all(np.ptp(inside, axis=0) > 0.7)
    np.testing.assert_allclose(kind.normalize(q), q, atol=1e-15)


@each_kind
@pytest.mark.parametrize("end", [-math.inf, -1.7976931348623157e308, -1e16])
def test_random_knows_numbers_that_mean_no_limit(name: str, end: float) -> None:
    """Infinite and absurdly large limits draw the same: angles in a turn, lengths in a metre."""
    kind = draw(name)
    lower = np.full(kind.nq, end)
    q = kind.random(np.random.default_rng(11), lower, -lower, (100,))
    assert np.all(np.abs(q) <= math.pi)


@each_kind
def test_one_sided_limits(name: str) -> None:
    """With one limit only, coordinates are drawn beside it: within a turn or two metres."""
    kind = draw(name)
    limited = np.array([bool(unit) for unit in kind.q_units], dtype=bool)
    none = np.full(kind.nq, np.inf)
    above = kind.random(np.random.default_rng(12), np.where(limited, 7.0, -np.inf), none, (50,))
    below = kind.random(np.random.default_rng(12), -none, np.where(limited, -7.0, np.inf), (50,))
    assert np.all((above[:, limited] >= 7.0) & (above[:, limited] <= 7.0 + 2 * math.pi))
    assert np.all((below[:, limited] <= -7.0) & (below[:, limited] >= -7.0 - 2 * math.pi))


@each_kind
def test_flat_kinds_add(name: str) -> None:
    """is_euclidean says truly whether a step is the sum of q and dv."""
    kind = draw(name)
    if kind.nq != kind.nv:
        assert not kind.is_euclidean
        return
    q, dv = configurations(kind, (5,)), np.random.default_rng(13).normal(size=(5, kind.nv))
    assert np.allclose(kind.integrate(q, dv), q + dv, atol=1e-14) == kind.is_euclidean


@simple_kinds
def test_bracket_is_that_of_the_joint_map(name: str) -> None:
    """H* [a, b] = crm(H* a) H* b, for what a kind says and for what follows from H*; 1e-14."""
    kind = draw(name)
    a, b = np.random.default_rng(14).normal(size=(2, kind.nv))
    H = kind.motion_map()
    expected = crm(H @ a) @ H @ b
    for bracket in (kind.bracket(a, b), JointKind.bracket(kind, a, b)):
        np.testing.assert_allclose(H @ np.array(bracket, dtype=float), expected, atol=1e-14)


@simple_kinds
def test_frames_that_commute(name: str) -> None:
    """Motions of kinds that say so do not notice a turn about their axis or a slide along it."""
    kind = draw(name).canonical()
    turned = Revolute().transform(np.array([0.7])) @ Prismatic().transform(np.array([0.3]))
    X = kind.transform(configurations(kind, ()))
    moved = turned @ X @ np.linalg.inv(turned)
    assert np.allclose(moved, X, atol=1e-14) == (kind.commutes_with_axis or name == "fixed")
    if kind.slides_only or kind.turns_only:
        assert kind.nv == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    {
        "revolute": ("angle", "rad", "rad/s", "N m"),
        "helical": ("angle", "rad", "rad/s", "N m"),
        "prismatic": ("displacement", "m", "m/s", "N"),
        "cylindrical": ("angle, displacement", "rad, m", "rad/s, m/s", "N m, N"),
        "universal": ("two angles", "rad", "rad/s", "N m"),
        "planar": ("x, y, angle", "m, m, rad", "m/s, m/s, rad/s; moving axes", "N, N, N m"),
        "translation": ("x, y, z", "m", "m/s", "N"),
        "spherical": ("quaternion x, y, z, w", "unit", "rad/s; moving axes", "N m"),
        "free": (
            "x, y, z, quaternion x, y, z, w",
            "m, unit",
            "angular rad/s, linear m/s; moving axes",
            "moment N m, force N",
        ),
    }.items(),
)
def test_labels(name: str, expected: tuple[str, ...]) -> None:
    """Coordinates and units as exported C code spells them."""
    assert draw(name).labels == expected


@each_kind
def test_names_fit_the_coordinates(name: str) -> None:
    """Each coordinate has a name, or none has one."""
    kind = draw(name)
    assert len(kind.coordinate_names) in (0, kind.nq)
    assert all(kind.labels) == (kind.nv > 0)


def test_maps_that_are_not_closed_are_refused() -> None:
    """Turns about x and y lead to turns about z: no two-axis joint has them as a constant map."""
    kind = type(
        "Twisted",
        (Universal,),
        {"columns": lambda _: (((0, 1.0),), ((1, 1.0),)), "motion_map": JointKind.motion_map},
    )()
    with pytest.raises(ArgumentError, match="not closed"):
        kind.bracket([1.0, 0.0], [0.0, 1.0])


def test_planar_moves_in_its_plane() -> None:
    """A planar joint about z has q = (x, y, angle) in the joint frame's own axes."""
    pose = Planar((0.0, 0.0, 1.0)).transform(np.array([2.0, 3.0, math.pi / 2]))
    np.testing.assert_allclose(pose[:2, 3], [2.0, 3.0])
    np.testing.assert_allclose(pose[:2, :2], [[0.0, -1.0], [1.0, 0.0]], atol=1e-15)


def test_universal_has_no_constant_map() -> None:
    """The joint map of a compound is refused with the cure, not answered wrongly."""
    with pytest.raises(ArgumentError, match="use its parts"):
        Universal().motion_map()


def test_universal_axes_must_differ() -> None:
    """Two parallel axes are one degree of freedom."""
    with pytest.raises(ArgumentError, match="must differ"):
        make_kind("universal", (0, 0, 1), axis2=(0, 0, -1))


def test_free_configuration_inverts_the_transform() -> None:
    """free_configuration(X_J(q)) is q up to the sign of the quaternion."""
    kind = make_kind("free")
    q = configurations(kind, (20,))
    back = free_configuration(kind.transform(q))
    np.testing.assert_allclose(back[:, :3], q[:, :3], atol=0)
    np.testing.assert_allclose(np.abs(np.sum(back[:, 3:] * q[:, 3:], axis=1)), 1.0, rtol=1e-14)


@pytest.mark.parametrize("axis", [(3, 4, 0), (1e-8, 0, 0), (0.1, 0.2, 0.3), (1e8, -1e8, 1e8)])
def test_unit_axis(axis: tuple[float, float, float]) -> None:
    """A direction of any length becomes a unit vector, and a unit vector stays bit for bit."""
    unit = unit_axis(axis)
    np.testing.assert_allclose(unit, np.array(axis) / np.linalg.norm(axis), rtol=1e-15)
    assert unit_axis(unit) == unit


def test_unit_axes_stay_bit_for_bit() -> None:
    """Normalising is idempotent for any direction, which exact round trips of files need."""
    rng = np.random.default_rng(14)
    units = [unit_axis(axis) for axis in rng.normal(size=(2000, 3))]
    assert [unit_axis(unit) for unit in units] == units


@pytest.mark.parametrize("axis", [(0, 0, 0), (math.nan, 0, 1), (math.inf, 0, 0), (1, 0)])
def test_bad_axes_are_refused(axis: object) -> None:
    """No direction, no numbers or the wrong count is an error that shows the axis."""
    with pytest.raises(ArgumentError, match="axis"):
        unit_axis(axis)


def test_unknown_kind_lists_close_names() -> None:
    """A slip of the pen in a kind's name is answered with the right spelling."""
    with pytest.raises(UnknownNameError, match="revolute"):
        make_kind("revolut")


@pytest.mark.parametrize(
    ("name", "given"), [("fixed", {"axis": (0, 0, 1)}), ("revolute", {"pitch": 0.1})]
)
def test_parameters_a_kind_lacks_are_refused(name: str, given: dict[str, object]) -> None:
    """A parameter that would be dropped in silence is an error."""
    with pytest.raises(ArgumentError, match=f"a {name} joint has no"):
        make_kind(name, **given)
