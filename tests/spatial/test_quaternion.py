# SPDX-License-Identifier: BSD-3-Clause
"""Laws of unit quaternions xyzw; SciPy is the outside witness."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from phistar import spatial as sp
from phistar.errors import ArgumentError

vectors = arrays(float, 3, elements=st.floats(-5, 5))
normal = st.floats(-5, 5, allow_subnormal=False)
raw = arrays(float, 4, elements=normal).filter(lambda q: np.linalg.norm(q) > 1e-2)
quaternions = raw.map(lambda q: q / np.linalg.norm(q))
AXES = np.array([[1, 0, 0], [0, -1, 0], [0, 0, 1], [1, 2, -2], [-2, 3, 6], [1e-8, 1, 0]])
AXES /= np.linalg.norm(AXES, axis=1)[:, None]


@given(quaternions, quaternions, quaternions)
def test_group_laws(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """The product is associative, has the identity, and the conjugate inverts."""
    left = sp.quat_multiply(sp.quat_multiply(a, b), c)
    right = sp.quat_multiply(a, sp.quat_multiply(b, c))
    np.testing.assert_allclose(left, right, rtol=0, atol=4e-15)
    np.testing.assert_array_equal(sp.quat_multiply(a, sp.quat_identity()), a)
    undone = sp.quat_multiply(a, sp.quat_conjugate(a))
    np.testing.assert_allclose(undone, sp.quat_identity(), rtol=0, atol=4e-15)


@given(quaternions, quaternions, vectors)
def test_agrees_with_scipy(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> None:
    """Product, matrix and rotation of vectors are SciPy's."""
    one, two = Rotation.from_quat(a), Rotation.from_quat(b)
    product = (one * two).as_quat()
    np.testing.assert_allclose(
        sp.quat_multiply(a, b) * np.sign(sp.quat_multiply(a, b) @ product), product, atol=1e-14
    )
    np.testing.assert_allclose(sp.quat_to_rotation(a), one.as_matrix(), rtol=0, atol=4e-15)
    np.testing.assert_allclose(sp.quat_rotate(a, x), one.apply(x), rtol=0, atol=1e-14)


@given(quaternions)
def test_matrix_round_trip(q: np.ndarray) -> None:
    """rotation_to_quat gives back q with w >= 0."""
    back = sp.rotation_to_quat(sp.quat_to_rotation(q))
    assert back[3] >= 0
    np.testing.assert_allclose(back * np.sign(back @ q), q, rtol=0, atol=4e-15)


@pytest.mark.parametrize("gap", [0.0, 1e-17, 1e-16, 1e-12, 1e-8, 1e-3])
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_matrix_round_trip_at_the_half_turn(gap: float, axis: np.ndarray) -> None:
    """Where w vanishes, the other components still carry the full precision."""
    q = np.array([*(math.cos(gap) * axis), math.sin(gap)])
    back = sp.rotation_to_quat(Rotation.from_quat(q).as_matrix())
    assert back[3] >= 0
    np.testing.assert_allclose(back * np.sign(back @ q), q, rtol=0, atol=4e-15)


@given(vectors)
def test_exp_agrees_with_scipy(w: np.ndarray) -> None:
    """quat_exp(w) is SciPy's quaternion of the rotation vector, up to its sign."""
    witness = Rotation.from_rotvec(w).as_quat()
    q = sp.quat_exp(w)
    np.testing.assert_allclose(q * np.sign(q @ witness), witness, rtol=0, atol=4e-15)
    np.testing.assert_allclose(sp.quat_to_rotation(q), sp.exp_so3(w), rtol=0, atol=1e-14)


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("angle", [0, 1e-300, 1e-9, 1e-5, 0.1, 0.49, 1.5, 3.0, math.pi - 1e-9])
def test_log_inverts_exp(axis: np.ndarray, angle: float) -> None:
    """log(exp(w)) = w to a relative 1e-14 at every angle below π, from q as from -q."""
    w = angle * axis
    np.testing.assert_allclose(sp.quat_log(sp.quat_exp(w)), w, rtol=1e-14, atol=1e-323)
    np.testing.assert_allclose(sp.quat_log(-sp.quat_exp(w)), w, rtol=1e-14, atol=1e-323)


@given(raw, st.floats(1e-3, 1e3))
def test_log_ignores_sign_and_length(q: np.ndarray, scale: float) -> None:
    """q, -q and multiples have one logarithm, of length at most π."""
    log = sp.quat_log(q)
    assert np.linalg.norm(log) <= math.pi * (1 + 1e-15)
    np.testing.assert_allclose(sp.quat_log(-q), log, rtol=0, atol=0)
    np.testing.assert_allclose(sp.quat_log(scale * q), log, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_log_of_exact_half_turn_is_unique(axis: np.ndarray) -> None:
    """With w = 0 (of either sign) q and -q give the same vector of length π."""
    logs = [sp.quat_log([*(s * axis), zero]) for s in (1, -1) for zero in (0.0, -0.0)]
    assert np.linalg.norm(logs[0]) == pytest.approx(math.pi, rel=1e-15, abs=0)
    for log in logs[1:]:
        np.testing.assert_array_equal(log, logs[0])


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-5, 0.3, 1.0, 3.0, math.pi - 1e-9])
def test_complex_step_through_exp_and_log(angle: float) -> None:
    """The derivative of log ∘ exp is the identity, from zero to the half turn."""
    h = 1e-40
    steps = angle * AXES[3] + 1j * h * np.eye(3)
    derivative = sp.quat_log(sp.quat_exp(steps)).imag / h
    np.testing.assert_allclose(derivative, np.eye(3), rtol=0, atol=1e-13)


@given(raw)
def test_normalize(q: np.ndarray) -> None:
    """The length becomes one, the direction stays."""
    unit = sp.quat_normalize(q)
    np.testing.assert_allclose(unit, q / np.linalg.norm(q), rtol=1e-15, atol=1e-300)


@pytest.mark.parametrize("function", [sp.quat_normalize, sp.quat_log])
def test_zero_quaternion_is_refused(function: Callable[[np.ndarray], np.ndarray]) -> None:
    """A zero quaternion is no rotation: an error, not NaN."""
    with pytest.raises(ArgumentError, match="quaternion q is zero"):
        function(np.array([[0, 0, 0, 1], [0, 0, 0, 0]]))


def test_order_of_components() -> None:
    """xyzw and wxyz differ by where w stands."""
    np.testing.assert_array_equal(sp.xyzw_to_wxyz([1, 2, 3, 4]), [4, 1, 2, 3])
    np.testing.assert_array_equal(sp.wxyz_to_xyzw([4, 1, 2, 3]), [1, 2, 3, 4])


def test_random_quaternions_are_uniform() -> None:
    """For uniform rotations E R = 0, E qqᵀ = 1/4, and P(angle < x) = (x - sin x)/π."""
    count = 20000
    q = sp.random_quaternion(np.random.default_rng(7), (count,))
    assert q.shape == (count, 4)
    np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1, rtol=1e-15)
    five_sigma = 5 / math.sqrt(count)
    np.testing.assert_allclose(q.T @ q / count, np.eye(4) / 4, rtol=0, atol=five_sigma)
    np.testing.assert_allclose(sp.quat_to_rotation(q).mean(axis=0), 0, rtol=0, atol=five_sigma)
    angle = np.linalg.norm(sp.quat_log(q), axis=1)
    for x in (0.5, 1.0, 2.0, 3.0):
        expected = (x - math.sin(x)) / math.pi
        assert np.mean(angle < x) == pytest.approx(expected, abs=five_sigma)


def test_random_quaternion_shapes() -> None:
    """The leading axes are as asked: none, one, several."""
    rng = np.random.default_rng(1)
    shapes = [sp.random_quaternion(rng, shape).shape for shape in ((), 3, (2, 5))]
    assert shapes == [(4,), (3, 4), (2, 5, 4)]
