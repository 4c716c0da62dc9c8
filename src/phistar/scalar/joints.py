# SPDX-License-Identifier: BSD-3-Clause
"""How a link hangs on its parent: rotation and offset as scalars, for every joint kind."""

from __future__ import annotations

from collections.abc import Callable

from phistar.scalar.graph import Scalar, cos, sin
from phistar.scalar.numbers import Numbers
from phistar.scalar.vectors import Dense, Factor, Matrix, Rotation, Swap, Turn, Vector, plus, times

Coordinate = Callable[[int], Scalar]


def factors_of(R: Matrix) -> tuple[Factor, ...]:
    """A rotation as the cheapest factors that its known entries allow."""
    whole = [[x if x in (0.0, 1.0, -1.0) else None for x in row] for row in R]
    if all(x is not None for row in whole for x in row):
        places = [next(j for j in range(3) if row[j]) for row in R]
        signs = [R[i][j] for i, j in enumerate(places)]
        straight = places == [0, 1, 2] and all(sign == 1.0 for sign in signs)
        return () if straight else (Swap(tuple(places), tuple(signs)),)  # type: ignore[arg-type]
    for axis in range(3):
        i, j = (axis + 1) % 3, (axis + 2) % 3
        # The cosine of a small angle is 1 to rounding, so the diagonal alone does not tell.
        if all(whole[axis][k] == whole[k][axis] == float(k == axis) for k in range(3)):
            return (Turn(axis, R[i][i], R[j][i]),)
    if whole[2][0] == 0.0:
        return (Turn(2, R[0][0], R[1][0]), Turn(0, R[2][2], R[2][1]))
    return (Dense(R),)


def cosine_and_sine(angle: Scalar) -> tuple[Scalar, Scalar]:
    """Computed on the spot."""
    return cos(angle), sin(angle)


def transform(
    link: Numbers,
    q: Coordinate,
    turn: Callable[[Scalar], tuple[Scalar, Scalar]] = cosine_and_sine,
) -> tuple[Rotation, Vector]:
    """Rotation and offset of a link in its parent.

    Args:
        link: The link.
        q: Its joint's coordinates by number.
        turn: Cosine and sine of an angle.
    """
    R0, p0 = link.R, link.p
    fixed = factors_of(R0)

    def own(i: int) -> Scalar:
        return link.scale * q(i) + link.offset

    kind = link.kind
    if kind in ("revolute", "helical", "cylindrical", "prismatic"):
        slid: Scalar = 0.0
        if kind == "prismatic":
            slid = own(0)
        elif kind == "helical":
            slid = link.pitch * own(0)
        elif kind == "cylindrical":
            slid = own(1)
        p = [a + row[2] * slid for a, row in zip(p0, R0, strict=True)]
        turns = () if kind == "prismatic" else (Turn(2, *turn(own(0) + link.turn)),)
        return Rotation(_joined(fixed, turns)), p
    if kind == "frame":
        return Rotation(fixed), p0
    if kind == "planar":
        return Rotation(_joined(fixed, (Turn(2, *turn(own(2))),))), _offset(
            p0, R0, [own(0), own(1), 0.0]
        )
    if kind == "translation":
        return Rotation(fixed), _offset(p0, R0, [own(0), own(1), own(2)])
    if kind == "spherical":
        return Rotation((*fixed, Dense(_quaternion([own(i) for i in range(4)])))), p0
    place = _offset(p0, R0, [own(0), own(1), own(2)])
    return Rotation((*fixed, Dense(_quaternion([own(i) for i in range(3, 7)])))), place


def _joined(fixed: tuple[Factor, ...], turns: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """A dense constant rotation and a turn about z are one dense matrix."""
    if turns and len(fixed) == 1 and isinstance(fixed[0], Dense):
        (turn,) = turns
        assert isinstance(turn, Turn)
        rows = [[x * turn.c + y * turn.s, y * turn.c - x * turn.s, z] for x, y, z in fixed[0].rows]
        return (Dense(rows),)
    return (*fixed, *turns)


def _offset(p0: Vector, R0: Matrix, moved: Vector) -> Vector:
    return plus(p0, times(R0, moved))


def _quaternion(q: Vector) -> Matrix:
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
