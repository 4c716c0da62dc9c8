# SPDX-License-Identifier: BSD-3-Clause
"""Pseudo-inertia: a set of numbers for every possible body, and the divergence between two."""

import numpy as np
import pytest

from phistar.ident import from_log_cholesky, is_possible, log_cholesky
from phistar.ident.pseudo_inertia import divergence, feasible, parameters_of, pseudo_inertia
from phistar.spatial import inertia_components, inertia_parameters, transform_inertia
from phistar.spatial import pose as make_pose
from phistar.spatial.inertia import inertia_problems


@pytest.fixture
def bodies() -> np.ndarray:
    """(6, 10) clouds of point masses."""
    rng = np.random.default_rng(0)
    mass, place = rng.uniform(0.1, 2.0, size=(6, 8)), rng.normal(size=(6, 8, 3))
    points = inertia_parameters(mass, place, np.zeros((6, 8, 3, 3)))
    return points.sum(axis=1)


def test_there_and_back(bodies: np.ndarray) -> None:
    """Parameters to pseudo-inertia to parameters, and through logarithms."""
    assert parameters_of(pseudo_inertia(bodies)) == pytest.approx(bodies, rel=1e-12, abs=1e-13)
    again, _ = from_log_cholesky(log_cholesky(bodies))
    assert again == pytest.approx(bodies, rel=1e-11, abs=1e-12)


def test_any_ten_numbers_are_a_body() -> None:
    """Mass positive, principal moments positive and a triangle: by the checker of robot files."""
    found, _ = from_log_cholesky(np.random.default_rng(1).normal(size=(50, 10)))
    assert is_possible(found).all()
    for body in found:
        mass, _, inertia = inertia_components(body)
        assert inertia_problems(float(mass), inertia) == []


def test_derivative_of_the_parametrisation() -> None:
    """Against central differences."""
    phi = np.random.default_rng(2).normal(size=(3, 10))
    _, derivative = from_log_cholesky(phi)
    for k, unit in enumerate(1e-6 * np.eye(10)):
        slope = (from_log_cholesky(phi + unit)[0] - from_log_cholesky(phi - unit)[0]) / 2e-6
        assert derivative[..., k] == pytest.approx(slope, rel=1e-6, abs=1e-7)


def test_divergence(bodies: np.ndarray) -> None:
    """Zero at the prior, positive elsewhere, the same in all frames; its slopes by differences."""
    prior = bodies[::-1]
    value, gradient, hessian = divergence(bodies, prior)
    assert (value > 0.0).all()
    assert (np.linalg.eigvalsh(hessian) > 0.0).all()
    assert divergence(prior, prior)[0] == pytest.approx(np.zeros(6), abs=1e-10)
    T = make_pose(np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]]), [0.3, -0.2, 0.5])
    moved = divergence(transform_inertia(T, bodies), transform_inertia(T, prior))[0]
    assert moved == pytest.approx(value, rel=1e-9)
    for k, unit in enumerate(1e-6 * np.eye(10)):
        up, down = divergence(bodies + unit, prior), divergence(bodies - unit, prior)
        assert gradient[:, k] == pytest.approx((up[0] - down[0]) / 2e-6, rel=1e-5, abs=1e-5)
        assert hessian[..., k] == pytest.approx((up[1] - down[1]) / 2e-6, rel=1e-4, abs=1e-4)


def test_feasible_fills_up_what_has_no_extent(bodies: np.ndarray) -> None:
    """A point mass becomes a small ball; real bodies stay as they are, bit by bit."""
    point = inertia_parameters(2.0, [0.1, 0.2, 0.3], np.zeros((3, 3)))
    assert not is_possible(point)
    ball = feasible(point, 0.01)
    assert is_possible(ball)
    assert ball[:4] == pytest.approx(point[:4])
    assert np.array_equal(feasible(bodies, 0.01), bodies)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("above", [0.0, 2.3e-16, 1e-15, 1e-12])
def test_what_rounding_decides_is_not_possible(size: float, above: float) -> None:
    """Point masses, but for rounding, have no inverse on some processors; units change nothing."""
    J = np.diag([size**2, size**2, size**2, 1.0])
    J[0, 3] = J[3, 0] = size
    J[0, 0] *= 1.0 + above
    assert is_possible(parameters_of(J)) == (above > 1e-13)
    assert is_possible(3.0 * parameters_of(J)) == (above > 1e-13)
