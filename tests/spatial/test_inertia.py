# SPDX-License-Identifier: BSD-3-Clause
"""Laws of rigid inertia, witnessed by clouds of point masses and by numerical integration."""

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from phistar import spatial as sp
from phistar.errors import ShapeError

numbers = st.floats(-3, 3)
twists = arrays(float, 6, elements=numbers)
clouds = st.integers(3, 8).flatmap(
    lambda n: st.tuples(
        arrays(float, n, elements=st.floats(0.1, 3)), arrays(float, (n, 3), elements=numbers)
    )
)
Cloud = tuple[np.ndarray, np.ndarray]
Region = Callable[[np.ndarray], np.ndarray]


def central(cloud: Cloud) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre and inertia about the centre of point masses, by their definitions."""
    masses, places = cloud
    com = masses @ places / masses.sum()
    inertia = sum(
        m * -np.linalg.matrix_power(sp.skew(p - com), 2) for m, p in zip(*cloud, strict=True)
    )
    return masses.sum(), com, inertia


def parameters(cloud: Cloud) -> np.ndarray:
    """The ten parameters of point masses."""
    return sp.inertia_parameters(*central(cloud))


@given(clouds, twists)
def test_kinetic_energy_of_point_masses(cloud: Cloud, V: np.ndarray) -> None:
    """½ V·(M V) is the sum of ½ m |v + ω × p|² of the particles."""
    masses, places = cloud
    velocities = V[3:] + np.cross(V[:3], places)
    expected = 0.5 * masses @ (velocities**2).sum(axis=1)
    energy = 0.5 * V @ sp.inertia_matrix(parameters(cloud)) @ V
    assert energy == pytest.approx(expected, rel=1e-11, abs=1e-11)


@given(clouds, twists)
def test_momentum_of_point_masses(cloud: Cloud, V: np.ndarray) -> None:
    """M V is the sum of the particles' momenta and of their moments about the origin."""
    masses, places = cloud
    momenta = masses[:, None] * (V[3:] + np.cross(V[:3], places))
    expected = np.concatenate([np.cross(places, momenta).sum(axis=0), momenta.sum(axis=0)])
    params = parameters(cloud)
    np.testing.assert_allclose(sp.inertia_apply(params, V), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(sp.inertia_matrix(params) @ V, expected, rtol=0, atol=1e-10)


@given(clouds)
def test_combining_is_adding(cloud: Cloud) -> None:
    """The parameters of the whole are the sum of those of its particles."""
    whole = sp.inertia_parameters(cloud[0], cloud[1], np.zeros((3, 3))).sum(axis=0)
    np.testing.assert_allclose(whole, parameters(cloud), rtol=0, atol=1e-11)


@given(clouds)
def test_components_round_trip(cloud: Cloud) -> None:
    """Mass, centre of mass and central inertia come back from the ten parameters."""
    expected = central(cloud)
    for value, witness in zip(sp.inertia_components(parameters(cloud)), expected, strict=True):
        np.testing.assert_allclose(value, witness, rtol=0, atol=1e-11)


def test_components_of_a_massless_body() -> None:
    """Where the mass is zero the centre of mass is zero and the inertia is kept."""
    params = np.array([[0, 0, 0, 0, 1, 0, 0, 2, 0, 2.5], [2, 2, 0, 0, 1, 0, 0, 3, 0, 4]])
    mass, com, inertia = sp.inertia_components(params)
    np.testing.assert_array_equal(mass, [0, 2])
    np.testing.assert_array_equal(com, [[0, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(inertia, [np.diag([1, 2, 2.5]), np.diag([1, 1, 2])])


@given(arrays(float, 10, elements=numbers))
def test_matrix_round_trip(params: np.ndarray) -> None:
    """The 6x6 matrix is symmetric and holds exactly the ten parameters."""
    M = sp.inertia_matrix(params)
    np.testing.assert_array_equal(M, M.T)
    np.testing.assert_allclose(sp.inertia_from_matrix(M), params, rtol=1e-15, atol=0)


def test_order_of_parameters() -> None:
    """m, h, then Ixx Ixy Ixz Iyy Iyz Izz about the origin."""
    M = sp.inertia_matrix(np.arange(1, 11))
    assert " ".join(sp.PARAMETER_NAMES) == "m hx hy hz Ixx Ixy Ixz Iyy Iyz Izz"
    np.testing.assert_array_equal(M[:3, :3], [[5, 6, 7], [6, 8, 9], [7, 9, 10]])
    np.testing.assert_array_equal(M[:3, 3:], sp.skew([2, 3, 4]))
    np.testing.assert_array_equal(M[3:, 3:], np.eye(3))


@given(twists, arrays(float, 10, elements=numbers))
def test_transform_is_a_congruence(xi: np.ndarray, params: np.ndarray) -> None:
    """M_A = φ M_B φᵀ with the force transform φ."""
    T = sp.exp_se3(xi)
    phi = sp.force_transform(T)
    expected = phi @ sp.inertia_matrix(params) @ phi.T
    moved = sp.inertia_matrix(sp.transform_inertia(T, params))
    np.testing.assert_allclose(moved, expected, rtol=0, atol=1e-10)


@given(twists, clouds)
def test_transform_moves_the_particles(xi: np.ndarray, cloud: Cloud) -> None:
    """The parameters in A are those of the particles at their coordinates in A."""
    T = sp.exp_se3(xi)
    moved = cloud[0], sp.transform_point(T, cloud[1])
    result = sp.transform_inertia(T, parameters(cloud))
    scale = np.abs(parameters(moved)).max()
    np.testing.assert_allclose(result, parameters(moved), rtol=0, atol=1e-12 * scale)


def integrated(inside: Region, size: np.ndarray) -> np.ndarray:
    """Central inertia of a unit mass that fills a region, by the midpoint rule on a box."""
    n = 80
    axes = [(np.arange(n) + 0.5) / n * s - s / 2 for s in size]
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    places = places[inside(places)]
    second = places.T @ places / len(places)
    return np.trace(second) * np.eye(3) - second


def capsule(p: np.ndarray, radius: float, length: float) -> np.ndarray:
    """Which points lie in a capsule along z."""
    beyond = np.maximum(np.abs(p[:, 2]) - length / 2, 0)
    return p[:, 0] ** 2 + p[:, 1] ** 2 + beyond**2 <= radius**2


@pytest.mark.parametrize(
    ("formula", "inside", "size"),
    [
        (sp.box_inertia(1, [0.4, 0.7, 1.1]), lambda p: p[:, 0] < 9, [0.4, 0.7, 1.1]),
        (
            sp.cylinder_inertia(1, 0.3, 1.1),
            lambda p: np.hypot(p[:, 0], p[:, 1]) <= 0.3,
            [0.6, 0.6, 1.1],
        ),
        (sp.sphere_inertia(1, 0.5), lambda p: (p**2).sum(axis=1) <= 0.25, [1, 1, 1]),
        (sp.capsule_inertia(1, 0.3, 0.8), lambda p: capsule(p, 0.3, 0.8), [0.6, 0.6, 1.4]),
    ],
    ids=["box", "cylinder", "sphere", "capsule"],
)
def test_solids_by_integration(formula: np.ndarray, inside: Region, size: list[float]) -> None:
    """Closed forms agree with half a million midpoints to 2e-3 of the largest moment."""
    witness = integrated(inside, np.array(size))
    np.testing.assert_allclose(formula, witness, rtol=0, atol=2e-3 * formula.max())


def test_capsule_limits() -> None:
    """Without length it is a sphere, without radius a rod, without either a point."""
    limits = {"rtol": 1e-15, "atol": 0}
    np.testing.assert_allclose(sp.capsule_inertia(2, 0.3, 0), sp.sphere_inertia(2, 0.3), **limits)
    rod = np.diag([2 / 12, 2 / 12, 0])
    np.testing.assert_allclose(sp.capsule_inertia(2, 0, 1), rod, **limits)
    np.testing.assert_array_equal(sp.capsule_inertia(2, 0, 0), np.zeros((3, 3)))


@given(clouds)
def test_solid_bodies_have_no_problems(cloud: Cloud) -> None:
    """Every body made of small balls is accepted, however its mass is spread."""
    mass, _, inertia = central(cloud)
    balls = sp.sphere_inertia(cloud[0], 0.05).sum(axis=0)
    assert sp.inertia_problems(mass, inertia + balls) == []


NAN = math.nan


@pytest.mark.parametrize(
    ("mass", "inertia", "kinds", "words"),
    [
        (1, np.eye(3), [], ""),
        (0, np.zeros((3, 3)), [], ""),
        (1e-9, 1e-300 * np.eye(3), [], ""),
        (1, np.diag([1, 1, 2]), [], ""),
        (1, np.diag([1, 2, NAN]), ["not finite"], "nan"),
        (math.inf, np.eye(3), ["not finite"], "inf"),
        (-2.5, np.eye(3), ["negative mass"], "-2.5 kg"),
        (1, [[1, 0.5, 0], [0.25, 1, 0], [0, 0, 1]], ["not symmetric"], "Ixy = 0.5 and Iyx = 0.25"),
        (1, np.diag([-3, 2, 2]), ["negative moment"], "moment -3 kg m²"),
        (1, [[1, 2, 0], [2, 1, 0], [0, 0, 1]], ["negative moment"], "moment -1 kg m²"),
        (1, -np.eye(3), ["negative moment"], "all: -1, -1, -1"),
        (1, np.diag([0, 1, 1]), ["not positive definite"], "moment is zero"),
        (1, np.diag([1, 5, 2]), ["triangle inequality"], "moment 5 exceeds .* 1 \\+ 2 = 3 kg m²"),
        (1, np.diag([1e-3, 5e-3, 2e-3]), ["triangle inequality"], "0.005 exceeds"),
        (1, 1e300 * np.diag([1, 5, 2]), ["triangle inequality"], "5e\\+300 exceeds"),
        (0, np.eye(3), ["inertia without mass"], "mass is zero"),
        (2, np.zeros((3, 3)), ["mass without inertia"], "2 kg"),
        (-1, np.diag([1, 5, 2]), ["negative mass", "triangle inequality"], "-1 kg"),
    ],
)
def test_problems_are_named(mass: float, inertia: np.ndarray, kinds: list[str], words: str) -> None:
    """Each defect is found, alone and together, with the numbers that show it."""
    problems = sp.inertia_problems(mass, inertia)
    assert [problem.kind for problem in problems] == kinds
    if problems:
        assert re.search(words, problems[0].text)


def test_tolerance_of_problems() -> None:
    """A violation within the tolerance is forgiven, relative to the size of the moments."""
    plate = 1e-4 * np.diag([1, 1, 2 + 1e-5])
    assert [p.kind for p in sp.inertia_problems(1, plate)] == ["triangle inequality"]
    assert sp.inertia_problems(1, plate, tol=1e-4) == []


def test_problems_are_asked_for_one_body() -> None:
    """A batch or a vector is refused with its shape."""
    with pytest.raises(ShapeError, match=r"\(6,\).*\(3, 3\)"):
        sp.inertia_problems(1, np.ones(6))
