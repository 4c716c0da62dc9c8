# SPDX-License-Identifier: BSD-3-Clause
"""Rotation matrices: cross-product matrix, axis and angle, roll-pitch-yaw, exponential, logarithm.

All functions broadcast over leading axes, keep the dtype and are analytic on complex data.
"""

import numpy as np
import numpy.typing as npt

from phistar.arrays import Array
from phistar.spatial._arrays import (
    ArrayLike,
    as_array_with_tail,
    as_inexact,
    cross,
    dot,
    outer,
    require_tail,
    scaled_eye,
    unit_vectors,
)
from phistar.spatial._elementary import arctan2, sine_ratio, versine_ratio
from phistar.spatial.quaternion import quat_log, rotation_to_quat
from phistar.spatial.reproducible_products import product


def skew(a: ArrayLike) -> Array:
    """The cross-product matrix ã with ã b = a × b.

    Args:
        a: (..., 3) vector.

    Returns:
        (..., 3, 3) skew-symmetric matrix.
    """
    a = as_array_with_tail(a, (3,), "a", "skew")
    matrix = np.zeros((*a.shape, 3), dtype=a.dtype)
    matrix[..., 2, 1], matrix[..., 1, 2] = a[..., 0], -a[..., 0]
    matrix[..., 0, 2], matrix[..., 2, 0] = a[..., 1], -a[..., 1]
    matrix[..., 1, 0], matrix[..., 0, 1] = a[..., 2], -a[..., 2]
    return matrix


def unskew(A: ArrayLike) -> Array:
    """The vector a whose cross-product matrix is the skew part of A.

    Args:
        A: (..., 3, 3) matrix; its symmetric part has no effect.

    Returns:
        (..., 3) vector.
    """
    A = as_array_with_tail(A, (3, 3), "A", "unskew")
    pairs = ((2, 1), (0, 2), (1, 0))
    return np.stack([(A[..., i, j] - A[..., j, i]) / 2 for i, j in pairs], axis=-1)


def rotation_about(axis: ArrayLike, angle: ArrayLike) -> Array:
    """The rotation by an angle about a unit axis.

    Args:
        axis: (..., 3) unit vector.
        angle: (...) [rad].

    Returns:
        (..., 3, 3) rotation matrix; exact ones and zeros for a coordinate axis.
    """
    axis, angle = as_inexact(axis, angle)
    require_tail(axis, (3,), "axis", "rotation_about")
    along = outer(axis, axis)
    across = np.eye(3, dtype=axis.dtype) - along
    c, s = np.cos(angle)[..., None, None], np.sin(angle)[..., None, None]
    return np.asarray(along + c * across + s * skew(axis))


def rpy_to_rotation(rpy: ArrayLike) -> Array:
    """The rotation of URDF's roll, pitch, yaw: Rz(yaw) Ry(pitch) Rx(roll) about fixed axes.

    Args:
        rpy: (..., 3) roll, pitch, yaw [rad].

    Returns:
        (..., 3, 3) rotation matrix.
    """
    rpy = as_array_with_tail(rpy, (3,), "rpy", "rpy_to_rotation")
    cr, cp, cy = np.moveaxis(np.cos(rpy), -1, 0)
    sr, sp, sy = np.moveaxis(np.sin(rpy), -1, 0)
    rows = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def rotation_to_rpy(R: ArrayLike) -> Array:
    """Roll, pitch, yaw that reproduce a rotation, with |pitch| <= π/2.

    Roll and pitch are read from Rz(yaw)ᵀ R, so they compensate any choice of yaw: the triple
    reproduces R in gimbal lock (yaw = 0 there) and close to it.

    Args:
        R: (..., 3, 3) rotation matrix.

    Returns:
        (..., 3) roll, pitch, yaw [rad].
    """
    R = as_array_with_tail(R, (3, 3), "R", "rotation_to_rpy")
    locked = np.abs(R[..., 0, 0]) + np.abs(R[..., 1, 0]) < 8 * np.finfo(R.dtype).eps
    yaw = arctan2(np.where(locked, 0, R[..., 1, 0]), np.where(locked, 1, R[..., 0, 0]))
    c, s = np.cos(yaw), np.sin(yaw)
    pitch = arctan2(-R[..., 2, 0], c * R[..., 0, 0] + s * R[..., 1, 0])
    roll = arctan2(s * R[..., 0, 2] - c * R[..., 1, 2], c * R[..., 1, 1] - s * R[..., 0, 1])
    return np.stack([roll, pitch, yaw], axis=-1)


def exp_so3(w: ArrayLike) -> Array:
    """The rotation matrix of a rotation vector, exp(w̃).

    Args:
        w: (..., 3) rotation vector [rad]: axis times angle.

    Returns:
        (..., 3, 3) rotation matrix.
    """
    w = as_array_with_tail(w, (3,), "w", "exp_so3")
    t = dot(w, w)
    square = outer(w, w) - scaled_eye(t, 3)
    first, second = sine_ratio(t)[..., None, None], versine_ratio(t)[..., None, None]
    return np.asarray(np.eye(3, dtype=w.dtype) + (first * skew(w) + second * square))


def log_so3(R: ArrayLike) -> Array:
    """The rotation vector of a rotation matrix, the inverse of exp_so3.

    Args:
        R: (..., 3, 3) rotation matrix.

    Returns:
        (..., 3) rotation vector [rad] of length at most π. Of the two vectors of a half turn, the
        one whose first non-zero component is positive.
    """
    return quat_log(rotation_to_quat(R))


def is_rotation(R: ArrayLike, tol: float = 1e-9) -> npt.NDArray[np.bool_]:
    """Whether matrices are proper rotations: R Rᵀ = 1 and det R > 0.

    Args:
        R: (..., 3, 3) matrix.
        tol: Largest allowed entry of R Rᵀ - 1.

    Returns:
        (...) truth values; False where R is not finite.
    """
    R = as_array_with_tail(R, (3, 3), "R", "is_rotation")
    finite = np.asarray(np.isfinite(R).all(axis=(-2, -1)))
    R = np.where(finite[..., None, None], R, 0)
    error = np.abs(product(R, np.swapaxes(R, -1, -2)) - np.eye(3)).max(axis=(-2, -1))
    triple = dot(R[..., 0, :], cross(R[..., 1, :], R[..., 2, :])).real
    return np.asarray(finite & (error <= tol) & (triple > 0))


def rotation_between(a: ArrayLike, b: ArrayLike) -> Array:
    """The smallest rotation from the direction of a to the direction of b.

    Args:
        a: (..., 3) non-zero vector.
        b: (..., 3) non-zero vector.

    Returns:
        (..., 3, 3) rotation matrix; for opposite vectors one of the possible half turns.

    Raises:
        ArgumentError: If a vector is zero.
    """
    a, b = as_inexact(a, b)
    require_tail(a, (3,), "a", "rotation_between")
    require_tail(b, (3,), "b", "rotation_between")
    a, b = np.broadcast_arrays(unit_vectors(a, "vector a"), unit_vectors(b, "vector b"))
    c = dot(a, b)
    obtuse = c.real < 0
    K = skew(cross(a, b))
    scale = 1 / np.where(obtuse, 1, 1 + c)
    acute_result = np.eye(3, dtype=a.dtype) + K + scale[..., None, None] * product(K, K)
    obtuse_result = _two_half_turns(a, np.where(obtuse[..., None], b, -a))
    return np.where(obtuse[..., None, None], obtuse_result, acute_result)


def _two_half_turns(a: Array, b: Array) -> Array:
    """The rotation a -> b, for a·b < 0, as a half turn about a, then one about their bisector.

    The bisector is made orthogonal to a - b, which keeps R a = b exact up to opposite vectors,
    where the bisector itself is mostly rounding error.
    """
    chord = unit_vectors(a - b, "a - b")
    middle = a + b
    middle = middle - dot(middle, chord)[..., None] * chord
    opposite = np.abs(middle).max(axis=-1, keepdims=True) < 4 * np.finfo(a.dtype).eps
    middle = unit_vectors(np.where(opposite, _any_normal(chord), middle), "a + b")
    eye = np.eye(3, dtype=a.dtype)
    return product(2 * outer(middle, middle) - eye, 2 * outer(a, a) - eye)


def _any_normal(a: Array) -> Array:
    """Some vector normal to a, from the coordinate axis farthest from a."""
    farthest = np.eye(3, dtype=a.dtype)[np.argmin(np.abs(a), axis=-1)]
    return cross(a, farthest)
