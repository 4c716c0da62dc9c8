# SPDX-License-Identifier: BSD-3-Clause
"""Curvature of robots against closed forms, complex steps and free motions."""

import numpy as np
import pytest

import phistar
from phistar.errors import ArgumentError, ShapeError, SingularHingeError, SingularHingeWarning
from phistar.model.random import random_model
from tests.geometry.arms import POINT, elbow, gantry, places, polar, serial, spherical_pendulum

TINY = 1e-30
KINDS = ["revolute", "prismatic", "helical", "cylindrical", "universal"]


@pytest.fixture(scope="module")
def tree() -> phistar.Robot:
    """A tree with every kind of joint whose velocities are rates, and a mimic joint."""
    rng = np.random.default_rng(8)
    model = random_model(rng, 5, kinds=KINDS, mimic=0.5, armature=0.5)
    robot = phistar.Robot(model)
    assert robot.nv < sum(joint.joint_kind.nv for joint in robot.joints.values())
    return robot


def along(function: object, q: np.ndarray) -> np.ndarray:
    """Derivatives by complex steps, the direction last."""
    steps = [function(q + 1j * TINY * e).imag / TINY for e in np.eye(q.shape[-1])]  # type: ignore[operator]
    return np.stack(steps, axis=-1)


def small(value: np.ndarray, scale: np.ndarray, tolerance: float) -> None:
    """Nothing next to a scale."""
    assert np.abs(value).max() <= tolerance * np.abs(scale).max()


# -- symbols


def test_christoffel_symbols(tree: phistar.Robot) -> None:
    """Both kinds are those of complex steps of 𝓜; [ij,k] v_i v_j is the Coriolis force; 1e-11."""
    q = places(tree)
    v = np.random.default_rng(2).normal(size=(len(q), tree.nv))
    found = tree.christoffel(q)
    slope = along(tree.mass_matrix, q)
    expected = np.empty_like(slope)
    for i, j, k in np.ndindex(*expected.shape[1:]):
        expected[:, i, j, k] = (slope[:, i, k, j] + slope[:, j, k, i] - slope[:, i, j, k]) / 2
    small(found.first - expected, expected, 1e-11)
    raised = np.stack(
        [
            np.linalg.solve(tree.mass_matrix(x), y)
            for x, y in zip(
                q, np.moveaxis(expected, -1, 1).reshape(len(q), tree.nv, -1), strict=True
            )
        ]
    )
    raised = np.moveaxis(raised.reshape(expected.shape), 1, -1)
    small(found.second - raised, raised, 1e-11)
    force = np.einsum("zijk,zi,zj->zk", found.first, v, v)
    known = tree.with_gravity((0, 0, 0)).bias_force(q, v)
    small(force - known, known, 1e-11)


def test_free_motions_are_geodesics(tree: phistar.Robot) -> None:
    """Without forces v̇_l = -{ij,l} v_i v_j; relative 1e-10."""
    free = tree.with_gravity((0, 0, 0))
    q = places(free)
    v = np.random.default_rng(3).normal(size=(len(q), free.nv))
    vdot = -np.einsum("zijl,zi,zj->zl", free.christoffel(q).second, v, v)
    known = free.forward_dynamics(q, v, np.zeros(free.nv))
    small(vdot - known, known, 1e-10)


def test_riemann_symbols_by_another_way(tree: phistar.Robot) -> None:
    """R_hijk from complex steps of {ij,l}, without second derivatives of 𝓜; relative 1e-10."""
    q = places(tree, 2)
    gamma = tree.christoffel(q).second
    slope = along(lambda x: tree.christoffel(x).second, q)  # [i, k, l, j] = ∂_j {ik,l}
    # Curvature of the connection, lowered: ∂_j{ik,l} - ∂_k{ij,l} + {ik,m}{mj,l} - {ij,m}{mk,l}.
    raised = np.einsum("ziklj->zlijk", slope) + np.einsum("zikm,zmjl->zlijk", gamma, gamma)
    raised = raised - np.swapaxes(raised, -1, -2)
    expected = np.einsum("zhl,zlijk->zhijk", tree.mass_matrix(q), raised)
    small(tree.riemann(q) - expected, expected, 1e-10)


def test_symmetries(tree: phistar.Robot) -> None:
    """Signs of pairs, exchange of pairs, and the cyclic sum (Bianchi); relative 1e-12."""
    found = tree.riemann(places(tree))
    for other in ("hijk->ihjk", "hijk->hikj"):
        small(found + np.einsum(f"z{other.replace('->', '->z')}", found), found, 1e-12)
    small(found - np.einsum("zhijk->zjkhi", found), found, 1e-12)
    cyclic = found + np.einsum("zhijk->zhjki", found) + np.einsum("zhijk->zhkij", found)
    small(cyclic, found, 1e-12)


def brioschi(robot: phistar.Robot, q: np.ndarray) -> float:
    """Gauss's curvature from E, F, G and central differences of them."""
    step = 2e-4

    def metric(a: float, b: float) -> np.ndarray:
        return robot.mass_matrix(q + step * np.array([a, b]))

    here = metric(0, 0)
    by_u, by_v = ((metric(*d) - metric(*-d)) / (2 * step) for d in np.eye(2))
    by_uu, by_vv = ((metric(*d) + metric(*-d) - 2 * here) / step**2 for d in np.eye(2))
    corners = metric(1, 1) - metric(1, -1) - metric(-1, 1) + metric(-1, -1)
    by_uv = corners / (4 * step**2)
    (e, f), (_, g) = here
    (e_u, f_u), (_, g_u) = by_u
    (e_v, f_v), (_, g_v) = by_v
    top = -by_vv[0, 0] / 2 + by_uv[0, 1] - by_uu[1, 1] / 2
    first = [[top, e_u / 2, f_u - e_v / 2], [f_v - g_u / 2, e, f], [g_v / 2, f, g]]
    second = [[0, e_v / 2, g_u / 2], [e_v / 2, e, f], [g_u / 2, f, g]]
    return float((np.linalg.det(first) - np.linalg.det(second)) / np.linalg.det(here) ** 2)


@pytest.mark.parametrize("make", [elbow, spherical_pendulum, lambda: polar(0.4)])
def test_gauss_curvature(make: object) -> None:
    """R_1212 / det 𝓜 is Brioschi's formula, to 1e-6 for the differences; so are the others."""
    robot: phistar.Robot = make()  # type: ignore[operator]
    for q in places(robot):
        gauss, found = brioschi(robot, q), robot.curvature(q)
        assert abs(gauss) > 0.01
        area = np.linalg.det(robot.mass_matrix(q))
        assert found.riemann[0, 1, 0, 1] / area == pytest.approx(gauss, rel=1e-6)
        assert found.scalar == pytest.approx(2 * gauss, rel=1e-6)
        assert found.size == pytest.approx(2 * abs(gauss), rel=1e-6)
        assert robot.sectional_curvature(q, [1, 0.3], [-2, 1]) == pytest.approx(gauss, rel=1e-6)
        np.testing.assert_allclose(found.ricci, gauss * robot.mass_matrix(q), rtol=1e-5, atol=1e-7)


def test_a_sphere() -> None:
    """A point on two crossed axes moves on a sphere: curvature 1 / (m r²), relative 1e-12."""
    robot = spherical_pendulum(0.8)
    found = robot.sectional_curvature(places(robot), [1, 0], [0, 1])
    np.testing.assert_allclose(found, 1 / (POINT * 0.8**2), rtol=1e-12)


def test_curvature_of_a_tree(tree: phistar.Robot) -> None:
    """The scalar is the sum of sectional curvatures over pairs of orthonormal axes; 1e-10."""
    q = places(tree, 2)
    found = tree.curvature(q)
    for k in range(2):
        # Eigenvectors over roots of eigenvalues: other axes than those of a triangular factor.
        values, vectors = np.linalg.eigh(tree.mass_matrix(q[k]))
        axes = (vectors / np.sqrt(values)).T
        i, j = np.triu_indices(tree.nv, 1)
        pairs = tree.sectional_curvature(q[k], axes[i], axes[j])
        assert 2 * pairs.sum() == pytest.approx(found.scalar[k], rel=1e-10)
        seen = np.einsum("hijk,ah,bi,cj,dk->abcd", found.riemann[k], *[axes] * 4, optimize=True)
        assert np.sqrt((seen**2).sum()) == pytest.approx(found.size[k], rel=1e-10)
    assert ((found.relative > 0.01) & (found.relative <= 1)).all()


# -- flatness


@pytest.mark.parametrize("make", [gantry, polar, lambda: phistar.load("cartpole")])
def test_flat_robots(make: object) -> None:
    """Slides, a point in polar coordinates and a cart-pole are flat, to 1e-13."""
    found = make().is_flat()  # type: ignore[operator]
    assert found
    assert found.relative < 1e-13
    assert str(found).startswith("flat: ")


@pytest.mark.parametrize(
    "make", [elbow, spherical_pendulum, lambda: polar(1e-3), lambda: phistar.load("panda")]
)
def test_curved_robots(make: object) -> None:
    """Two axes, a sphere, a body (no point) on a polar arm and a Panda are not, by far."""
    found = make().is_flat()  # type: ignore[operator]
    assert not found
    assert found.relative > 1e-4
    assert "above" in str(found)


def test_units_do_not_matter() -> None:
    """Relative curvature stays if lengths grow by 1000 and masses by 7; 1e-10."""

    def arm(length: float, mass: float) -> phistar.Robot:
        solid = {
            "mass": mass,
            "com": (0.4 * length, 0, 0),
            "inertia": (0.1 * mass * length**2,) * 3,
        }
        return serial(
            "arm",
            {"kind": "revolute", "axis": (0, 0, 1), **solid},
            {"kind": "prismatic", "axis": (1, 0.5, 0), **solid},
            {"kind": "revolute", "axis": (0, 1, 0), "xyz": (length, 0, 0), **solid},
        )

    q = np.array([0.3, 0.7, -0.4])
    small_arm, large_arm = arm(1.0, 1.0), arm(1000.0, 7.0)
    relative = small_arm.curvature(q).relative
    scaled = large_arm.curvature(q * [1, 1000, 1])
    assert scaled.relative == pytest.approx(relative, rel=1e-10)
    assert scaled.scalar == pytest.approx(small_arm.curvature(q).scalar / 7e6, rel=1e-10)


def test_quasi_velocities_of_a_flat_arm_integrate() -> None:
    """Lemma 2.1 on the polar arm: the rates of f = √m (x, y) obey f̈ = ℓτ, no Coriolis; 1e-12.

    ∇f is a factor, 𝓜 = ∇f*∇f; on a curved arm there is no such f.
    """
    arm = polar().with_gravity((0, 0, 0))
    q = places(arm)
    v, tau = np.random.default_rng(4).normal(size=(2, len(q), 2))
    factor = np.sqrt(POINT) * arm.jacobian(q, "link1")[:, 3:5, :]
    small(np.swapaxes(factor, 1, 2) @ factor - arm.mass_matrix(q), arm.mass_matrix(q), 1e-12)
    vdot = arm.forward_dynamics(q, v, tau)
    growth = np.sqrt(POINT) * arm.frame_acceleration(q, v, vdot, "link1")[:, 3:5]
    epsilon = np.linalg.solve(np.swapaxes(factor, 1, 2), tau[..., None])[..., 0]
    small(growth - epsilon, epsilon, 1e-12)
    assert np.abs(arm.bias_force(q, v)).min() > 0.01


# -- arguments


@pytest.mark.parametrize("kind", ["spherical", "free", "planar"])
def test_velocities_that_are_no_rates(kind: str) -> None:
    """Joints whose velocities are no rates of coordinates are refused by name, with the reason."""
    robot = serial("ball", {"kind": kind, "mass": 1.0, "inertia": (1.0, 2.0, 2.5)})
    message = f"joint 'joint0' of robot 'ball' is {kind}: .* axes that move"
    for ask in (robot.christoffel, robot.riemann, robot.curvature, robot.is_flat):
        with pytest.raises(ArgumentError, match=message):
            ask(robot.neutral())
    with pytest.raises(ArgumentError, match=message):
        robot.is_flat()


def test_mistakes() -> None:
    """Parallel directions, wrong shapes, complex numbers and useless settings are named."""
    robot = elbow()
    with pytest.raises(ArgumentError, match=r"parallel at index \[1\]"):
        robot.sectional_curvature(np.zeros(2), [[1, 0], [1, 2]], [[0, 1], [2, 4]])
    with pytest.raises(ShapeError):
        robot.riemann(np.zeros(3))
    with pytest.raises(ArgumentError, match="complex"):
        robot.curvature(np.zeros(2) + 1j)
    with pytest.raises(ArgumentError, match="tolerance is 0"):
        robot.is_flat(tolerance=0)
    with pytest.raises(ArgumentError, match="samples is 0"):
        robot.is_flat(samples=0)
    with pytest.warns(SingularHingeWarning):
        hollow = serial("hollow", {"kind": "revolute", "axis": (0, 0, 1)})
    with pytest.raises(SingularHingeError):
        hollow.riemann([0.0])


def test_batches_and_dicts() -> None:
    """Any leading axes, or a dict by joint name; the same numbers."""
    robot = elbow()
    q = places(robot, 6).reshape(2, 3, 2)
    found = robot.curvature(q)
    assert found.riemann.shape == (2, 3, 2, 2, 2, 2)
    assert found.scalar.shape == found.relative.shape == (2, 3)
    alone = robot.curvature({"joint0": q[1, 2, 0], "joint1": q[1, 2, 1]})
    np.testing.assert_allclose(alone.riemann, found.riemann[1, 2], rtol=1e-12)
    assert robot.is_flat(q).configurations == 6
