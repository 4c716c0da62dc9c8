# SPDX-License-Identifier: BSD-3-Clause
"""Unit quaternions (x, y, z, w): product, rotation of vectors, matrices, exponential, logarithm.

All functions broadcast over leading axes, keep the dtype and are analytic on complex data.
"""

import numpy as np
import numpy.typing as npt

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.spatial._arrays import (
    ArrayLike,
    as_array_with_tail,
    as_inexact,
    cross,
    dot,
    require_tail,
    unit_vectors,
)
from phistar.spatial._elementary import arctan_ratio, cosine, sine_ratio


def quat_identity() -> npt.NDArray[np.float64]:
    """The quaternion of no rotation, (0, 0, 0, 1)."""
    return np.array([0.0, 0.0, 0.0, 1.0])


def quat_normalize(q: ArrayLike) -> Array:
    """A quaternion scaled to length one.

    Args:
        q: (..., 4) quaternion xyzw of any length but zero.

    Returns:
        (..., 4) unit quaternion.

    Raises:
        ArgumentError: If a quaternion is zero.
    """
    return unit_vectors(as_array_with_tail(q, (4,), "q", "quat_normalize"), "quaternion q")


def quat_multiply(a: ArrayLike, b: ArrayLike) -> Array:
    """The product of quaternions, R(ab) = R(a) R(b); any length.

    Args:
        a: (..., 4) xyzw.
        b: (..., 4) xyzw.

    Returns:
        (..., 4) product.
    """
    a, b = as_inexact(a, b)
    require_tail(a, (4,), "a", "quat_multiply")
    require_tail(b, (4,), "b", "quat_multiply")
    u, s, v, t = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    vector = s * v + t * u + cross(u, v)
    return np.concatenate([vector, s * t - dot(u, v)[..., None]], axis=-1)


def quat_conjugate(q: ArrayLike) -> Array:
    """The conjugate quaternion: the inverse rotation when q has length one.

    Args:
        q: (..., 4) xyzw.

    Returns:
        (..., 4) with the vector part negated.
    """
    q = as_array_with_tail(q, (4,), "q", "quat_conjugate")
    return np.concatenate([-q[..., :3], q[..., 3:]], axis=-1)


def quat_rotate(q: ArrayLike, x: ArrayLike) -> Array:
    """The vector x rotated by a unit quaternion, R(q) x.

    Args:
        q: (..., 4) unit quaternion xyzw.
        x: (..., 3) vector.

    Returns:
        (..., 3) rotated vector.
    """
    q, x = as_inexact(q, x)
    require_tail(q, (4,), "q", "quat_rotate")
    require_tail(x, (3,), "x", "quat_rotate")
    u, w = q[..., :3], q[..., 3:]
    crossed = cross(u, x)
    return np.asarray(x + 2 * (w * crossed + cross(u, crossed)))


def quat_to_rotation(q: ArrayLike) -> Array:
    """The rotation matrix of a unit quaternion.

    Args:
        q: (..., 4) unit quaternion xyzw.

    Returns:
        (..., 3, 3) rotation matrix.
    """
    q = as_array_with_tail(q, (4,), "q", "quat_to_rotation")
    x, y, z, w = np.moveaxis(q, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def rotation_to_quat(R: ArrayLike) -> Array:
    """The unit quaternion of a rotation matrix, with w >= 0.

    The products 4 qᵢqⱼ are sums of entries of R; the row i of the largest |qᵢ| is normalised, so
    no branch divides by a small number.

    Args:
        R: (..., 3, 3) rotation matrix.

    Returns:
        (..., 4) unit quaternion xyzw. Where w = 0, the first non-zero component is positive.
    """
    R = as_array_with_tail(R, (3, 3), "R", "rotation_to_quat")
    r00, r11, r22 = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    xw, yw, zw = (R[..., i, j] - R[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0)))
    yz, xz, xy = (R[..., i, j] + R[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0)))
    rows = [
        [1 + r00 - r11 - r22, xy, xz, xw],
        [xy, 1 - r00 + r11 - r22, yz, yw],
        [xz, yz, 1 - r00 - r11 + r22, zw],
        [xw, yw, zw, 1 + r00 + r11 + r22],
    ]
    products = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    squares = np.diagonal(products, axis1=-2, axis2=-1).real
    best = np.argmax(squares, axis=-1)[..., None, None]
    row = np.take_along_axis(products, best, axis=-2)[..., 0, :]
    return _on_upper_half(row / np.sqrt(dot(row, row))[..., None])


def quat_exp(w: ArrayLike) -> Array:
    """The unit quaternion of a rotation vector.

    Args:
        w: (..., 3) rotation vector [rad]: axis times angle.

    Returns:
        (..., 4) unit quaternion xyzw, (sin(θ/2) axis, cos(θ/2)).
    """
    w = as_array_with_tail(w, (3,), "w", "quat_exp")
    t = dot(w, w) / 4
    return np.concatenate([sine_ratio(t)[..., None] * w / 2, cosine(t)[..., None]], axis=-1)


def quat_log(q: ArrayLike) -> Array:
    """The rotation vector of a quaternion, the shorter one.

    Args:
        q: (..., 4) quaternion xyzw; q, -q and positive multiples give the same result.

    Returns:
        (..., 3) rotation vector [rad] of length at most π.

    Raises:
        ArgumentError: If a quaternion is zero.
    """
    q = _on_upper_half(as_array_with_tail(q, (4,), "q", "quat_log"))
    if not np.all(np.any(q, axis=-1)):
        raise ArgumentError("quaternion q is zero and is no rotation; give a unit quaternion")
    u = q[..., :3]
    return np.asarray(2 * arctan_ratio(dot(u, u), q[..., 3])[..., None] * u)


def xyzw_to_wxyz(q: ArrayLike) -> Array:
    """A quaternion (..., 4) with its scalar part moved from the end to the front."""
    return np.roll(as_array_with_tail(q, (4,), "q", "xyzw_to_wxyz"), 1, axis=-1)


def wxyz_to_xyzw(q: ArrayLike) -> Array:
    """A quaternion (..., 4) with its scalar part moved from the front to the end."""
    return np.roll(as_array_with_tail(q, (4,), "q", "wxyz_to_xyzw"), -1, axis=-1)


def random_quaternion(
    rng: np.random.Generator, shape: int | tuple[int, ...] = ()
) -> npt.NDArray[np.float64]:
    """Quaternions of uniformly distributed rotations.

    Args:
        rng: Source of random numbers.
        shape: Leading axes of the result.

    Returns:
        (*shape, 4) unit quaternions xyzw.
    """
    leading = (shape,) if isinstance(shape, int) else tuple(shape)
    return quat_normalize(rng.standard_normal((*leading, 4)))


def _on_upper_half(q: Array) -> Array:
    """q or -q: the one whose first non-zero number of w, x, y, z is positive."""
    signs = np.sign(q[..., [3, 0, 1, 2]].real)
    first = np.argmax(signs != 0, axis=-1)[..., None]
    return np.where(np.take_along_axis(signs, first, axis=-1) < 0, -q, q)
