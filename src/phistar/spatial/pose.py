# SPDX-License-Identifier: BSD-3-Clause
"""Rigid transforms as plain (..., 4, 4) arrays: T_AB maps coordinates in frame B to frame A.

Exponentials and logarithms of SE(3) and SE(2), and the 6x6 transforms of motions and forces. All
functions broadcast over leading axes, keep the dtype and are analytic on complex data.
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
    require_tail,
)
from phistar.spatial._elementary import cotangent_defect, sine_defect, sine_ratio, versine_ratio
from phistar.spatial.reproducible_products import matvec, product
from phistar.spatial.rotation import exp_so3, log_so3, skew


def pose(rotation: ArrayLike | None = None, translation: ArrayLike | None = None) -> Array:
    """The rigid transform with a rotation and a translation.

    Args:
        rotation: (..., 3, 3) axes of B in A; no rotation if None.
        translation: (..., 3) origin of B in A [m]; zero if None.

    Returns:
        (..., 4, 4) transform T_AB.
    """
    R, p = as_inexact(
        np.eye(3, dtype=int) if rotation is None else rotation,
        np.zeros(3, dtype=int) if translation is None else translation,
    )
    require_tail(R, (3, 3), "rotation", "pose")
    require_tail(p, (3,), "translation", "pose")
    leading = np.broadcast_shapes(R.shape[:-2], p.shape[:-1])
    T = np.zeros((*leading, 4, 4), dtype=R.dtype)
    T[..., :3, :3] = R
    T[..., :3, 3] = p
    T[..., 3, 3] = 1
    return T


def pose_identity() -> npt.NDArray[np.float64]:
    """The identity transform, (4, 4)."""
    return np.eye(4)


def pose_inverse(T: ArrayLike) -> Array:
    """The inverse of a rigid transform, T_BA from T_AB.

    Args:
        T: (..., 4, 4) transform.

    Returns:
        (..., 4, 4) inverse.
    """
    R, p = _rotation_and_translation(T, "pose_inverse")
    back = np.swapaxes(R, -1, -2)
    return pose(back, -matvec(back, p))


def pose_product(T_AB: ArrayLike, T_BC: ArrayLike) -> Array:
    """The product T_AC = T_AB T_BC, the same bits on every machine.

    Args:
        T_AB: (..., 4, 4) transform.
        T_BC: (..., 4, 4) transform.

    Returns:
        (..., 4, 4) product.
    """
    first, second = as_inexact(T_AB, T_BC)
    require_tail(first, (4, 4), "T_AB", "pose_product")
    require_tail(second, (4, 4), "T_BC", "pose_product")
    return product(first, second)


def pose_rotation(T: ArrayLike) -> Array:
    """The rotation (..., 3, 3) of a transform (..., 4, 4)."""
    return _rotation_and_translation(T, "pose_rotation")[0]


def pose_translation(T: ArrayLike) -> Array:
    """The translation (..., 3) [m] of a transform (..., 4, 4)."""
    return _rotation_and_translation(T, "pose_translation")[1]


def transform_point(T: ArrayLike, x: ArrayLike) -> Array:
    """Coordinates in A of a point given in B, R x + p.

    Args:
        T: (..., 4, 4) transform T_AB.
        x: (..., 3) point in B [m].

    Returns:
        (..., 3) the same point in A [m].
    """
    T, x = as_inexact(T, x)
    R, p = _rotation_and_translation(T, "transform_point")
    require_tail(x, (3,), "x", "transform_point")
    return np.asarray(matvec(R, x) + p)


def exp_se3(xi: ArrayLike) -> Array:
    """The transform reached by following a constant twist for unit time.

    Args:
        xi: (..., 6) twist [angular; linear] in the moving frame [rad, m].

    Returns:
        (..., 4, 4) transform.
    """
    xi = as_array_with_tail(xi, (6,), "xi", "exp_se3")
    w, v = xi[..., :3], xi[..., 3:]
    t = dot(w, w)
    wv = cross(w, v)
    translation = v + _column(versine_ratio(t)) * wv + _column(sine_defect(t)) * cross(w, wv)
    return pose(exp_so3(w), translation)


def log_se3(T: ArrayLike) -> Array:
    """The twist whose exponential is a given transform, the inverse of exp_se3.

    Args:
        T: (..., 4, 4) transform.

    Returns:
        (..., 6) twist [angular; linear] [rad, m] with an angle of at most π.
    """
    R, p = _rotation_and_translation(T, "log_se3")
    w = log_so3(R)
    wv = cross(w, p)
    linear = p - wv / 2 + _column(cotangent_defect(dot(w, w))) * cross(w, wv)
    return np.concatenate([w, linear], axis=-1)


def exp_se2(xi: ArrayLike) -> Array:
    """The planar pose reached by following a constant planar twist for unit time.

    Args:
        xi: (..., 3) twist (vx, vy, ω) in the moving axes [m, m, rad].

    Returns:
        (..., 3) planar pose (x, y, angle) [m, m, rad].
    """
    vx, vy, w = np.moveaxis(as_array_with_tail(xi, (3,), "xi", "exp_se2"), -1, 0)
    ahead, aside = sine_ratio(w * w), w * versine_ratio(w * w)
    return np.stack([ahead * vx - aside * vy, aside * vx + ahead * vy, w], axis=-1)


def log_se2(x: ArrayLike) -> Array:
    """The planar twist whose exponential is a planar pose, with its angle in (-π, π].

    Args:
        x: (..., 3) planar pose (x, y, angle) [m, m, rad].

    Returns:
        (..., 3) twist (vx, vy, ω) [m, m, rad].
    """
    px, py, angle = np.moveaxis(as_array_with_tail(x, (3,), "x", "log_se2"), -1, 0)
    w = wrapped_angle(angle)
    ahead, aside = 1 - w * w * cotangent_defect(w * w), w / 2
    return np.stack([ahead * px + aside * py, ahead * py - aside * px, w], axis=-1)


def motion_transform(T_AB: ArrayLike) -> Array:
    """The matrix that maps a twist at and in frame B to frame A, [[R, 0], [p̃R, R]].

    Args:
        T_AB: (..., 4, 4) transform.

    Returns:
        (..., 6, 6) matrix X with V_A = X V_B.
    """
    R, p = _rotation_and_translation(T_AB, "motion_transform")
    X = _double_block(R)
    X[..., 3:, :3] = product(skew(p), R)
    return X


def force_transform(T_AB: ArrayLike) -> Array:
    """The matrix that maps a wrench at and in frame B to frame A, φ(A,B) = [[R, p̃R], [0, R]].

    Args:
        T_AB: (..., 4, 4) transform.

    Returns:
        (..., 6, 6) matrix φ with f_A = φ f_B.
    """
    R, p = _rotation_and_translation(T_AB, "force_transform")
    phi = _double_block(R)
    phi[..., :3, 3:] = product(skew(p), R)
    return phi


def _rotation_and_translation(T: ArrayLike, owner: str) -> tuple[Array, Array]:
    T = as_array_with_tail(T, (4, 4), "T", owner)
    return T[..., :3, :3], T[..., :3, 3]


def _column(factor: Array) -> Array:
    return factor[..., None]


def _double_block(R: Array) -> Array:
    matrix = np.zeros((*R.shape[:-2], 6, 6), dtype=R.dtype)
    matrix[..., :3, :3] = R
    matrix[..., 3:, 3:] = R
    return matrix


def wrapped_angle(angle: Array) -> Array:
    """The angle plus a multiple of 2π with real part in (-π, π]."""
    angle = np.asarray(angle - 2 * np.pi * np.ceil((angle.real - np.pi) / (2 * np.pi)))
    # rounding can put values next to ±π one turn off, on either side
    angle = np.where(angle.real > np.pi, angle - 2 * np.pi, angle)
    return np.where(angle.real <= -np.pi, angle + 2 * np.pi, angle)
