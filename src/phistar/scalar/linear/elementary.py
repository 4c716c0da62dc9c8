# SPDX-License-Identifier: BSD-3-Clause
"""Elementary functions of rotation formulas on scalars, accurate at zero angle in every precision.

The functions of ``spatial._elementary``, under the same names, without branches: quotients at zero
angle are their limits because ``SQUARED_ANGLE_FLOOR`` is added to squared angles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from phistar.scalar.graph import Scalar, cos, select, sin, sqrt
from phistar.scalar.linear.vectors import Matrix, Vector, dot, scaled

SQUARED_ANGLE_FLOOR = 1e-36
"""Added to squares of angles, so that quotients of small angles are their limits, not 0 / 0. It and
its root are normal numbers in single precision, and in double precision no result feels it."""

ARCTAN_COEFFICIENTS = (
    -0.019175404711104932,
    0.03923044778479309,
    -0.050854078345894844,
    0.05858140904866328,
    -0.06664510525508936,
    0.07692183125376892,
    -0.0909090457530649,
    0.11111111015187018,
    -0.14285714284665682,
    0.19999999999995516,
    -0.3333333333333333,
)
"""Of (arctan(t)/t - 1) / t² in t², the highest first: interpolation at the Chebyshev nodes of
|t| <= tan(π/8), good to 6e-18."""

SINE_DEFECT_COEFFICIENTS = tuple((-1) ** k / math.factorial(2 * k + 3) for k in reversed(range(9)))
"""Of the power series of (θ - sin θ) / θ³ in θ², the highest first."""

TAN_22_5_DEGREES = math.sqrt(2.0) - 1.0


def larger(a: Scalar, b: Scalar) -> Scalar:
    """The larger of two numbers; the second if either is not a number."""
    return select(a, b, a, b)


def smaller(a: Scalar, b: Scalar) -> Scalar:
    """The smaller of two numbers; the second if either is not a number."""
    return select(b, a, a, b)


class HalfAngle:
    """Functions of an angle, from one sine and one cosine: ``ArcFunctions`` of a scalar.

    Attributes:
        square: θ², at least ``SQUARED_ANGLE_FLOOR``.
        angle: θ.
        half_sine, half_cosine: Of θ/2.
    """

    def __init__(self, square: Scalar) -> None:
        """Args:
        square: θ².
        """
        self.square = square + SQUARED_ANGLE_FLOOR
        self.angle = sqrt(self.square)
        half = 0.5 * self.angle
        self.half_sine, self.half_cosine = sin(half), cos(half)

    @property
    def half_sine_ratio(self) -> Scalar:
        """sin(θ/2) / θ."""
        return self.half_sine / self.angle

    @property
    def sine_ratio(self) -> Scalar:
        """sin θ / θ."""
        return 2.0 * (self.half_sine_ratio * self.half_cosine)

    @property
    def versine_ratio(self) -> Scalar:
        """(1 - cos θ) / θ²."""
        return 2.0 * (self.half_sine_ratio * self.half_sine_ratio)

    @property
    def sine_defect(self) -> Scalar:
        """(θ - sin θ) / θ³ for products with θ²: it loses as many digits as θ² makes up for."""
        return (1.0 - self.sine_ratio) / self.square

    @property
    def exact_sine_defect(self) -> Scalar:
        """(θ - sin θ) / θ³: the power series where θ < 1."""
        series = horner(SINE_DEFECT_COEFFICIENTS, self.square)
        return select(self.square, 1.0, self.sine_defect, series)

    @property
    def cotangent_defect(self) -> Scalar:
        """(1 - (θ/2) cot(θ/2)) / θ² for products with θ², as above."""
        return (1.0 - 0.5 * self.half_cosine / self.half_sine_ratio) / self.square


def arctan_ratio(sine: Scalar, cosine: Scalar) -> Scalar:
    """arctan2(s, c) / s for s, c >= 0 that are not both zero, accurate where s is zero.

    The angle is measured from the nearest of 0, π/4 and π/2, at most π/8 away: t is its tangent.
    """
    first, second = TAN_22_5_DEGREES * cosine, (2.0 + TAN_22_5_DEGREES) * cosine

    def nearest(at_zero: Scalar, at_eighth: Scalar, at_quarter: Scalar) -> Scalar:
        return select(sine, first, select(sine, second, at_quarter, at_eighth), at_zero)

    t = nearest(sine, sine - cosine, -cosine) / nearest(cosine, sine + cosine, sine)
    z = t * t
    ratio = 1.0 + z * horner(ARCTAN_COEFFICIENTS, z)
    angle = nearest(0.0, 0.25 * math.pi, 0.5 * math.pi) + t * ratio
    return select(sine, first, angle, ratio) / select(sine, first, sine, cosine)


def quaternion_log(q: Sequence[Scalar]) -> Vector:
    """The shortest rotation vector [rad] of a quaternion xyzw: the logarithm of q or -q, the one
    whose first non-zero number of w, x, y, z is positive."""
    x, y, z, w = q
    sign: Scalar = 1.0
    for number in (z, y, x, w):
        sign = select(0.0, number, -1.0, select(number, 0.0, 1.0, sign))
    u = scaled(sign, [x, y, z])
    return scaled(2.0 * arctan_ratio(sqrt(dot(u, u)), sign * w), u)


def rotation_log(R: Matrix) -> Vector:
    """The shortest rotation vector [rad] of a rotation matrix, accurate up to half a turn.

    4 qᵢqⱼ are sums of entries; the row of the largest qᵢ² is the quaternion, but for its length.
    """
    x, y, z = R[0][0], R[1][1], R[2][2]
    xw, yw, zw = R[2][1] - R[1][2], R[0][2] - R[2][0], R[1][0] - R[0][1]
    yz, xz, xy = R[2][1] + R[1][2], R[0][2] + R[2][0], R[1][0] + R[0][1]
    rows: Matrix = [
        [xw, yw, zw, 1.0 + x + y + z],
        [1.0 + x - y - z, xy, xz, xw],
        [xy, 1.0 - x + y - z, yz, yw],
        [xz, yz, 1.0 - x - y + z, zw],
    ]
    best, row = rows[0][3], rows[0]
    for i, other in enumerate(rows[1:]):
        row = [select(other[i], best, a, b) for a, b in zip(other, row, strict=True)]
        best = larger(other[i], best)
    return quaternion_log(row)


def horner(coefficients: Sequence[float], z: Scalar) -> Scalar:
    """A polynomial, coefficients of the highest power first."""
    value: Scalar = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * z + coefficient
    return value
