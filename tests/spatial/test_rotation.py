# SPDX-License-Identifier: BSD-3-Clause
"""Laws of rotation matrices; SciPy is the outside witness."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from phistar import spatial as sp
from phistar.errors import ArgumentError

vectors = arrays(float, 3, elements=st.floats(-5, 5))
angles = st.floats(-7, 7)
directions = vectors.filter(lambda a: np.linalg.norm(a) > 1e-3).map(lambda a: a / np.linalg.norm(a))
SMALL_AND_HALF_TURN = [
    *(0.0, 1e-300, 1e-9, 1e-5, 1e-3, 0.7, 2.0, 3.1),
    *(math.pi - 1e-5, math.pi - 1e-9, math.pi - 1e-15),
]
AXES = np.vstack([np.eye(3), -np.eye(3), np.array([[1, 2, -2], [2, -3, 6], [1e-8, 1, 0]])])
AXES /= np.linalg.norm(AXES, axis=1)[:, None]


@given(vectors, vectors)
def test_skew_is_the_cross_product(a: np.ndarray, b: np.ndarray) -> None:
    """ã b = a × b, ã is skew, and unskew takes it back."""
    np.testing.assert_allclose(sp.skew(a) @ b, np.cross(a, b), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(sp.skew(a), -sp.skew(a).T)
    np.testing.assert_array_equal(sp.unskew(sp.skew(a)), a)


@given(arrays(float, (3, 3), elements=st.floats(-5, 5)))
def test_unskew_ignores_the_symmetric_part(A: np.ndarray) -> None:
    """The vector belongs to (A - Aᵀ) / 2."""
    np.testing.assert_allclose(sp.skew(sp.unskew(A)), (A - A.T) / 2, rtol=0, atol=1e-14)


@given(directions, angles, angles)
def test_rotation_about_one_axis_adds_angles(axis: np.ndarray, one: float, two: float) -> None:
    """R(α) R(β) = R(α + β), the axis stays, and SciPy agrees."""
    R = sp.rotation_about(axis, one) @ sp.rotation_about(axis, two)
    np.testing.assert_allclose(R, sp.rotation_about(axis, one + two), rtol=0, atol=1e-14)
    np.testing.assert_allclose(R @ axis, axis, rtol=0, atol=1e-14)
    witness = Rotation.from_rotvec(axis * one).as_matrix()
    np.testing.assert_allclose(sp.rotation_about(axis, one), witness, rtol=0, atol=1e-14)


@given(angles)
def test_rotation_about_coordinate_axes_is_exact(angle: float) -> None:
    """About z the matrix holds exactly cos, sin, one and zeros."""
    c, s = math.cos(angle), math.sin(angle)
    expected = [[c, -s, 0], [s, c, 0], [0, 0, 1]]
    np.testing.assert_allclose(sp.rotation_about([0, 0, 1], angle), expected, rtol=1e-15, atol=0)


@given(arrays(float, 3, elements=angles))
def test_rpy_is_fixed_axis_xyz(rpy: np.ndarray) -> None:
    """Roll-pitch-yaw means SciPy's extrinsic 'xyz'."""
    witness = Rotation.from_euler("xyz", rpy).as_matrix()
    np.testing.assert_allclose(sp.rpy_to_rotation(rpy), witness, rtol=0, atol=1e-14)


@given(arrays(float, 3, elements=angles))
def test_rpy_round_trip(rpy: np.ndarray) -> None:
    """The recovered triple reproduces R, has |pitch| <= π/2, and is a fixed point."""
    R = sp.rpy_to_rotation(rpy)
    again = sp.rotation_to_rpy(R)
    np.testing.assert_allclose(sp.rpy_to_rotation(again), R, rtol=0, atol=4e-15)
    assert abs(again[1]) <= math.pi / 2
    if abs(rpy[0]) < 3 and abs(rpy[1]) < 1.5 and abs(rpy[2]) < 3:
        np.testing.assert_allclose(again, rpy, rtol=0, atol=1e-13)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("gap", [0.0, 1e-17, 1e-15, 1e-12, 1e-9, 1e-6])
@given(roll=angles, yaw=angles)
def test_rpy_round_trip_in_gimbal_lock(sign: int, gap: float, roll: float, yaw: float) -> None:
    """At pitch ±π/2 and at any distance from it, the triple still reproduces R."""
    R = sp.rpy_to_rotation([roll, sign * (math.pi / 2 - gap), yaw])
    again = sp.rpy_to_rotation(sp.rotation_to_rpy(R))
    np.testing.assert_allclose(again, R, rtol=0, atol=4e-15)


def test_rpy_in_exact_gimbal_lock_has_no_yaw() -> None:
    """In gimbal lock yaw is zero and roll takes the whole turn."""
    rpy = sp.rotation_to_rpy(sp.rpy_to_rotation([0.3, math.pi / 2, 0.1]))
    np.testing.assert_allclose(rpy, [0.2, math.pi / 2, 0.0], rtol=1e-14)


@given(vectors)
def test_exp_is_the_matrix_exponential(w: np.ndarray) -> None:
    """exp_so3(w) = expm(w̃), a proper rotation, with exp(-w) its transpose."""
    R = sp.exp_so3(w)
    np.testing.assert_allclose(R, expm(sp.skew(w)), rtol=0, atol=1e-13)
    np.testing.assert_allclose(R, Rotation.from_rotvec(w).as_matrix(), rtol=0, atol=1e-14)
    np.testing.assert_allclose(sp.exp_so3(-w), R.T, rtol=0, atol=1e-15)
    assert sp.is_rotation(R, tol=1e-14)


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("angle", SMALL_AND_HALF_TURN)
def test_log_inverts_exp(axis: np.ndarray, angle: float) -> None:
    """log(exp(w)) = w to 1e-15 of π or, for small w, to 1e-14 of |w|."""
    w = angle * axis
    error = np.abs(sp.log_so3(sp.exp_so3(w)) - w).max()
    assert error <= (1e-14 * angle if angle < 1 else 1e-14)


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_log_of_half_turn(axis: np.ndarray) -> None:
    """A half turn has a logarithm of length π along ± the axis, the same for both."""
    along, against = (sp.log_so3(sp.rotation_about(s * axis, math.pi)) for s in (1, -1))
    assert np.linalg.norm(along) == pytest.approx(math.pi, rel=1e-15, abs=0)
    assert np.linalg.norm(along) <= math.pi * (1 + 1e-15)
    assert abs(along @ axis) == pytest.approx(math.pi, rel=1e-15, abs=0)
    np.testing.assert_allclose(np.abs(against), np.abs(along), rtol=0, atol=1e-14)


@pytest.mark.parametrize("axis", np.eye(3), ids=str)
def test_log_of_exact_half_turn_is_unique(axis: np.ndarray) -> None:
    """The exact half turn about a coordinate axis gives +π about it."""
    R = 2 * np.outer(axis, axis) - np.eye(3)
    np.testing.assert_allclose(sp.log_so3(R), math.pi * axis, rtol=1e-15, atol=0)


@given(vectors)
def test_exp_inverts_log(w: np.ndarray) -> None:
    """exp(log(R)) = R, |log R| <= π, and SciPy gives the same vector away from the half turn."""
    R = Rotation.from_rotvec(w).as_matrix()
    log = sp.log_so3(R)
    np.testing.assert_allclose(sp.exp_so3(log), R, rtol=0, atol=4e-15)
    assert np.linalg.norm(log) <= math.pi * (1 + 1e-15)
    if np.linalg.norm(log) < 3.1:
        np.testing.assert_allclose(log, Rotation.from_matrix(R).as_rotvec(), rtol=0, atol=1e-13)


@given(vectors, vectors)
def test_conjugation_turns_the_logarithm(w: np.ndarray, u: np.ndarray) -> None:
    """R exp(w) Rᵀ = exp(R w)."""
    R = sp.exp_so3(u)
    np.testing.assert_allclose(R @ sp.exp_so3(w) @ R.T, sp.exp_so3(R @ w), rtol=0, atol=1e-13)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-5])
def test_complex_step_through_exp_at_small_angles(angle: float) -> None:
    """d exp((w + εa)~) at w -> 0 is ã (to first order in w)."""
    w, a, h = angle * AXES[6], np.array([0.3, -0.5, 0.7]), 1e-40
    derivative = sp.exp_so3(w + 1j * h * a).imag / h
    second_order = (sp.skew(w) @ sp.skew(a) + sp.skew(a) @ sp.skew(w)) / 2
    np.testing.assert_allclose(derivative, sp.skew(a) + second_order, rtol=0, atol=angle**2 + 1e-16)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-5, 0.4, 2.0, math.pi - 1e-5, math.pi - 1e-9])
def test_complex_step_through_exp_and_log(angle: float) -> None:
    """The derivative of log ∘ exp is the identity, from zero to the half turn."""
    w, h = angle * AXES[7], 1e-40
    steps = w + 1j * h * np.eye(3)
    derivative = sp.log_so3(sp.exp_so3(steps)).imag / h
    np.testing.assert_allclose(derivative, np.eye(3), rtol=0, atol=1e-13)


@given(vectors)
def test_is_rotation_accepts_rotations_only(w: np.ndarray) -> None:
    """Reflections, scaled, perturbed and non-finite matrices are no rotations."""
    R = sp.exp_so3(w)
    assert sp.is_rotation(R)
    wrong = np.stack([-R, 1.001 * R, R + 1e-6, R * np.nan, R + np.diag([np.inf, 0, 0]), 0 * R])
    assert not sp.is_rotation(wrong).any()
    assert sp.is_rotation(1.001 * R, tol=0.01)


@given(directions, directions, st.floats(0.01, 100))
def test_rotation_between_directions(a: np.ndarray, b: np.ndarray, scale: float) -> None:
    """R a = b for unit vectors, with angle ∠(a, b) about an axis across both."""
    R = sp.rotation_between(a, scale * b)
    assert sp.is_rotation(R, tol=1e-14)
    np.testing.assert_allclose(R @ a, b, rtol=0, atol=1e-14)
    angle = math.atan2(float(np.linalg.norm(np.cross(a, b))), float(a @ b))
    assert np.linalg.norm(sp.log_so3(R)) == pytest.approx(angle, abs=1e-13)


@pytest.mark.parametrize("gap", [0.0, 1e-300, 1e-17, 1e-16, 1e-15, 1e-12, 1e-8, 1e-4])
@pytest.mark.parametrize("sign", [-1, 1])
@given(a=directions, aside=directions)
def test_rotation_between_almost_parallel_directions(
    gap: float, sign: int, a: np.ndarray, aside: np.ndarray
) -> None:
    """R a = b stays exact and R a rotation up to parallel and to opposite vectors."""
    b = sign * a + gap * aside
    b /= np.linalg.norm(b)
    R = sp.rotation_between(a, b)
    assert sp.is_rotation(R, tol=1e-14)
    np.testing.assert_allclose(R @ a, b, rtol=0, atol=1e-14)


def test_rotation_between_refuses_zero() -> None:
    """A zero vector has no direction."""
    with pytest.raises(ArgumentError, match="vector b is zero"):
        sp.rotation_between([1, 0, 0], [0, 0, 0])
