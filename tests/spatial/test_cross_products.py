# SPDX-License-Identifier: BSD-3-Clause
"""Laws of the spatial cross products: dualities, Jacobi, invariance, rates of change."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from phistar import spatial as sp

vectors = arrays(float, 6, elements=st.floats(-3, 3))
exact = {"rtol": 0, "atol": 1e-12}


@given(vectors)
def test_block_form(X: np.ndarray) -> None:
    """crm = [[ã, 0], [b̃, ã]], crf = -crmᵀ, Q = [[ã, b̃], [b̃, 0]]."""
    a, b, zero = sp.skew(X[:3]), sp.skew(X[3:]), np.zeros((3, 3))
    np.testing.assert_array_equal(sp.crm(X), np.block([[a, zero], [b, a]]))
    np.testing.assert_array_equal(sp.crf(X), -sp.crm(X).T)
    np.testing.assert_array_equal(sp.Q(X), np.block([[a, b], [b, zero]]))


@given(vectors, vectors, vectors)
def test_power_duality(X: np.ndarray, Y: np.ndarray, f: np.ndarray) -> None:
    """(X × Y)·f = -Y·(X ×* f)."""
    np.testing.assert_allclose(sp.crm_apply(X, Y) @ f, -Y @ sp.crf_apply(X, f), **exact)


@given(vectors, vectors, vectors)
def test_lie_bracket(X: np.ndarray, Y: np.ndarray, Z: np.ndarray) -> None:
    """× is antisymmetric and obeys Jacobi, and crm is its adjoint representation."""
    np.testing.assert_allclose(sp.crm_apply(X, Y), -sp.crm_apply(Y, X), rtol=0, atol=0)
    left = sp.crm_apply(X, sp.crm_apply(Z, Y))
    right = sp.crm_apply(Z, sp.crm_apply(X, Y)) + sp.crm_apply(sp.crm_apply(X, Z), Y)
    np.testing.assert_allclose(left, right, **exact)
    bracket = sp.crm(X) @ sp.crm(Y) - sp.crm(Y) @ sp.crm(X)
    np.testing.assert_allclose(sp.crm(sp.crm_apply(X, Y)), bracket, **exact)


@given(vectors, vectors)
def test_force_operator(f: np.ndarray, Y: np.ndarray) -> None:
    """Q(f) Y = -crf(Y) f."""
    np.testing.assert_allclose(sp.Q(f) @ Y, -sp.crf(Y) @ f, **exact)


@given(vectors, vectors)
def test_apply_is_the_matrix_product(X: np.ndarray, Y: np.ndarray) -> None:
    """The versions without a matrix give what the matrix gives."""
    np.testing.assert_allclose(sp.crm_apply(X, Y), sp.crm(X) @ Y, **exact)
    np.testing.assert_allclose(sp.crf_apply(X, Y), sp.crf(X) @ Y, **exact)


@given(vectors, vectors, vectors)
def test_cross_products_turn_with_the_frame(xi: np.ndarray, V: np.ndarray, F: np.ndarray) -> None:
    """X(V × F) = XV × XF on motions, φ(V ×* F) = XV ×* φF on forces."""
    T = sp.exp_se3(xi)
    X, phi = sp.motion_transform(T), sp.force_transform(T)
    near = {"rtol": 0, "atol": 1e-10}
    np.testing.assert_allclose(X @ sp.crm_apply(V, F), sp.crm_apply(X @ V, X @ F), **near)
    np.testing.assert_allclose(phi @ sp.crf_apply(V, F), sp.crf_apply(X @ V, phi @ F), **near)


@given(vectors, vectors)
def test_cross_products_are_rates_of_transforms(xi: np.ndarray, V: np.ndarray) -> None:
    """d/dt X(T exp(Vt)) = X crm(V) and d/dt φ(T exp(Vt)) = φ crf(V), by complex step."""
    h = 1e-40
    T = sp.exp_se3(xi)
    moved = T @ sp.exp_se3(1j * h * V)
    rate = sp.motion_transform(moved).imag / h
    np.testing.assert_allclose(rate, sp.motion_transform(T) @ sp.crm(V), rtol=0, atol=1e-11)
    rate = sp.force_transform(moved).imag / h
    np.testing.assert_allclose(rate, sp.force_transform(T) @ sp.crf(V), rtol=0, atol=1e-11)
