# SPDX-License-Identifier: BSD-3-Clause
"""Vectors as lists of their entries, which may be floats, arrays or values of a scalar graph.

Formulas that are written with these functions run on arrays and become scalar programs alike.
"""

from collections.abc import Sequence
from typing import Any

Number = Any
"""A float, an array of any dtype with one entry per sample, or a value of a scalar graph."""
Entries = Sequence[Number]

_CYCLIC_AXES = ((1, 2), (2, 0), (0, 1))
"""For each axis the two others, in cyclic order."""


def dot(x: Entries, y: Entries) -> Number:
    """Inner product, without conjugation."""
    total: Number = 0.0
    for a, b in zip(x, y, strict=True):
        total = total + a * b
    return total


def plus(x: Entries, y: Entries) -> list[Number]:
    """Entrywise sum."""
    return [a + b for a, b in zip(x, y, strict=True)]


def minus(x: Entries, y: Entries) -> list[Number]:
    """Entrywise difference."""
    return [a - b for a, b in zip(x, y, strict=True)]


def scaled(factor: Number, x: Entries) -> list[Number]:
    """A multiple."""
    return [factor * a for a in x]


def cross(x: Entries, y: Entries) -> list[Number]:
    """x × y."""
    return [x[i] * y[j] - x[j] * y[i] for i, j in _CYCLIC_AXES]


def quaternion_product(a: Entries, b: Entries) -> list[Number]:
    """The product of quaternions xyzw, R(ab) = R(a) R(b)."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return [
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ]


def quaternion_rotate(q: Entries, x: Entries) -> list[Number]:
    """R(q) x of a unit quaternion xyzw: x + 2 r × (r × x + w x) with q = (r, w)."""
    r = q[:3]
    inner = plus(cross(r, x), scaled(q[3], x))
    return plus(x, scaled(2.0, cross(r, inner)))


def quaternion_matrix(q: Entries) -> list[list[Number]]:
    """Rotation matrix of a unit quaternion xyzw."""
    x, y, z, w = q
    x2, y2, z2 = x + x, y + y, z + z
    xx, yy, zz = x * x2, y * y2, z * z2
    xy, xz, yz = x * y2, x * z2, y * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    return [
        [1.0 - (yy + zz), xy - wz, xz + wy],
        [xy + wz, 1.0 - (xx + zz), yz - wx],
        [xz - wy, yz + wx, 1.0 - (xx + yy)],
    ]
