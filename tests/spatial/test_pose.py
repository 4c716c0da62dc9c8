# SPDX-License-Identifier: BSD-3-Clause
"""Laws of rigid transforms and of their action on twists and wrenches."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import expm

from phistar import spatial as sp

numbers = st.floats(-4, 4)
points = arrays(float, 3, elements=numbers)
twists = arrays(float, 6, elements=numbers)
poses = twists.map(lambda xi: sp.pose(sp.exp_so3(xi[:3]), xi[3:]))
ANGLES = [0.0, 1e-300, 1e-9, 1e-5, 0.1, 0.999, 1.001, 2.0, 3.1, math.pi - 1e-9]


def hat(xi: np.ndarray) -> np.ndarray:
    """The 4x4 matrix whose exponential is the motion along a twist."""
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = sp.skew(xi[:3]), xi[3:]
    return matrix


def planar(x: np.ndarray) -> np.ndarray:
    """The planar pose (x, y, angle) as a transform."""
    return sp.pose(sp.rotation_about([0, 0, 1], x[2]), [x[0], x[1], 0])


@given(poses, poses, points)
def test_transforms_form_a_group(A: np.ndarray, B: np.ndarray, x: np.ndarray) -> None:
    """Products act one after the other; the inverse undoes on both sides."""
    np.testing.assert_allclose(
        sp.transform_point(A @ B, x), sp.transform_point(A, sp.transform_point(B, x)), atol=1e-13
    )
    np.testing.assert_allclose(A @ sp.pose_inverse(A), sp.pose_identity(), rtol=0, atol=1e-14)
    np.testing.assert_allclose(sp.pose_inverse(A), np.linalg.inv(A), rtol=0, atol=1e-13)


@given(poses)
def test_pose_is_made_of_its_parts(T: np.ndarray) -> None:
    """pose(rotation, translation) and the two readers are inverse; None means identity."""
    R, p = sp.pose_rotation(T), sp.pose_translation(T)
    np.testing.assert_array_equal(sp.pose(R, p), T)
    np.testing.assert_array_equal(sp.pose(rotation=R) @ [0, 0, 0, 1], [0, 0, 0, 1])
    np.testing.assert_array_equal(sp.pose(translation=p)[:3, :3], np.eye(3))
    np.testing.assert_array_equal(sp.pose(), sp.pose_identity())


def test_pose_does_not_alias_its_input() -> None:
    """Writing to a pose leaves the rotation it was made of alone."""
    R = np.eye(3)
    sp.pose(R)[0, 0] = 5
    assert R[0, 0] == 1


@given(twists)
def test_exp_se3_is_the_matrix_exponential(xi: np.ndarray) -> None:
    """exp_se3(ξ) = expm(ξ^), angular part first."""
    np.testing.assert_allclose(sp.exp_se3(xi), expm(hat(xi)), rtol=0, atol=2e-13)


@pytest.mark.parametrize("angle", ANGLES)
def test_log_se3_inverts_exp_se3(angle: float) -> None:
    """log(exp(ξ)) = ξ to a relative 2e-14 for angles from zero to π."""
    xi = np.array([*(angle * np.array([2, -3, 6]) / 7), 0.3, -0.8, 1.1])
    np.testing.assert_allclose(sp.log_se3(sp.exp_se3(xi)), xi, rtol=2e-14, atol=1e-300)


@given(poses)
def test_exp_se3_inverts_log_se3(T: np.ndarray) -> None:
    """exp(log(T)) = T for every pose, also beyond half a turn."""
    np.testing.assert_allclose(sp.exp_se3(sp.log_se3(T)), T, rtol=0, atol=3e-14)


@pytest.mark.parametrize("angle", ANGLES)
def test_complex_step_through_exp_and_log(angle: float) -> None:
    """The derivative of log ∘ exp on SE(3) is the identity, from zero to the half turn."""
    h = 1e-40
    xi = np.array([*(angle * np.array([2, -3, 6]) / 7), 0.3, -0.8, 1.1])
    derivative = sp.log_se3(sp.exp_se3(xi + 1j * h * np.eye(6))).imag / h
    np.testing.assert_allclose(derivative, np.eye(6), rtol=0, atol=1e-12)


@given(arrays(float, 3, elements=numbers))
def test_exp_se2_is_exp_se3_in_the_plane(xi: np.ndarray) -> None:
    """(vx, vy, ω) moves like the spatial twist (0, 0, ω; vx, vy, 0)."""
    witness = sp.exp_se3([0, 0, xi[2], xi[0], xi[1], 0])
    np.testing.assert_allclose(planar(sp.exp_se2(xi)), witness, rtol=0, atol=1e-14)
    assert sp.exp_se2(xi)[2] == xi[2]


@pytest.mark.parametrize("angle", [*ANGLES, math.pi, -1e-9, -2.0, -math.pi + 1e-9])
def test_log_se2_inverts_exp_se2(angle: float) -> None:
    """log(exp(ξ)) = ξ to a relative 2e-14 for angles in (-π, π]."""
    xi = np.array([0.3, -0.8, angle])
    np.testing.assert_allclose(sp.log_se2(sp.exp_se2(xi)), xi, rtol=2e-14, atol=0)


@given(arrays(float, 3, elements=st.floats(-50, 50)))
def test_log_se2_takes_the_short_way(x: np.ndarray) -> None:
    """exp(log(x)) is the same planar pose and turns by at most half a turn."""
    xi = sp.log_se2(x)
    assert -math.pi < xi[2] <= math.pi
    np.testing.assert_allclose(planar(sp.exp_se2(xi)), planar(x), rtol=0, atol=2e-13)


@pytest.mark.parametrize("turns", [-1000, -3, -1, 0, 1, 2, 1000])
@pytest.mark.parametrize("direction", [-np.inf, 0, np.inf])
def test_log_se2_next_to_the_half_turn(turns: int, direction: float) -> None:
    """Angles next to odd multiples of π stay in (-π, π] and away from zero."""
    start = math.pi * (2 * turns + 1)
    angle = start if direction == 0 else np.nextafter(start, direction)
    wrapped = sp.log_se2([0, 0, angle])[2]
    assert -math.pi < wrapped <= math.pi
    assert abs(wrapped) > 3.14159


@pytest.mark.parametrize(("dtype", "turns"), [(np.float32, 1000), (np.float64, 10**12)])
def test_log_se2_wraps_coarse_angles(dtype: type, turns: int) -> None:
    """Where rounding of the angle is coarse, results still lie in (-π, π] and keep the dtype."""
    odd = 2 * np.random.default_rng(3).integers(-turns, turns, 5000) + 1
    angle = (math.pi * odd).astype(dtype)
    wrapped = sp.log_se2(np.stack([0 * angle, 0 * angle, angle], axis=-1))[:, 2]
    half_turn = dtype(math.pi)
    assert wrapped.dtype == dtype
    assert ((-half_turn < wrapped) & (wrapped <= half_turn)).all()


def test_log_se2_wraps_minus_pi_to_pi() -> None:
    """The interval is open at -π and closed at π."""
    assert sp.log_se2([0, 0, -math.pi])[2] == math.pi
    assert sp.log_se2([0, 0, math.pi])[2] == math.pi


@given(poses, poses)
def test_six_by_six_transforms_compose(A: np.ndarray, B: np.ndarray) -> None:
    """Both are homomorphisms, so the transform of the inverse is the inverse."""
    for X in (sp.motion_transform, sp.force_transform):
        np.testing.assert_allclose(X(A @ B), X(A) @ X(B), rtol=0, atol=2e-13)
        np.testing.assert_allclose(X(sp.pose_inverse(A)) @ X(A), np.eye(6), rtol=0, atol=2e-13)


@given(poses, twists, twists)
def test_power_does_not_depend_on_the_frame(T: np.ndarray, V: np.ndarray, f: np.ndarray) -> None:
    """V_A·f_A = V_B·f_B: the force transform is the inverse transpose of the motion transform."""
    power = (sp.motion_transform(T) @ V) @ (sp.force_transform(T) @ f)
    assert power == pytest.approx(V @ f, rel=1e-12, abs=1e-11)


@given(poses, twists)
def test_motion_transform_is_conjugation(T: np.ndarray, xi: np.ndarray) -> None:
    """exp(X ξ) = T exp(ξ) T⁻¹."""
    moved = sp.motion_transform(T) @ xi
    np.testing.assert_allclose(hat(moved), T @ hat(xi) @ np.linalg.inv(T), rtol=0, atol=1e-12)


@given(poses, twists, points)
def test_motion_transform_keeps_point_velocities(
    T: np.ndarray, V: np.ndarray, x: np.ndarray
) -> None:
    """A material point has the same velocity v + ω × x whichever frame the twist refers to."""
    moved = sp.motion_transform(T) @ V
    here = T[:3, :3] @ (V[3:] + np.cross(V[:3], x))
    there = moved[3:] + np.cross(moved[:3], sp.transform_point(T, x))
    np.testing.assert_allclose(there, here, rtol=0, atol=1e-12)


@given(poses, points, points)
def test_force_transform_keeps_the_line_of_action(
    T: np.ndarray, x: np.ndarray, f: np.ndarray
) -> None:
    """A force f at the point x has the moment x × f about the origin of either frame."""
    wrench = np.concatenate([np.cross(x, f), f])
    arm, force = sp.transform_point(T, x), T[:3, :3] @ f
    expected = np.concatenate([np.cross(arm, force), force])
    np.testing.assert_allclose(sp.force_transform(T) @ wrench, expected, rtol=0, atol=1e-12)
