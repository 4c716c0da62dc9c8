# SPDX-License-Identifier: BSD-3-Clause
"""Elementary functions of rotation formulas, accurate at zero angle and analytic.

The even functions take the squared angle t = θ². Below |t| = 1 they are power series: a closed
form divides rounding errors by t, in the value or in the imaginary part that a complex step reads.
"""

from collections.abc import Callable
from fractions import Fraction
from math import factorial

import numpy as np

from phistar.arrays import Array

_SINE = tuple((-1) ** k / factorial(2 * k + 1) for k in range(10))
_SINE_DEFECT = tuple((-1) ** k / factorial(2 * k + 3) for k in range(9))
_BERNOULLI = "1/6 1/30 1/42 1/30 5/66 691/2730 7/6 3617/510 43867/798 174611/330"
_COTANGENT_DEFECT = tuple(
    float(Fraction(b) / factorial(2 * k)) for k, b in enumerate(_BERNOULLI.split(), start=1)
)
_ARCTANGENT = tuple((-1) ** k / (2 * k + 1) for k in range(15))


def sine_ratio(t: Array) -> Array:
    """sin θ / θ with t = θ²."""
    return _blend(t, 1.0, _SINE, _closed_sine_ratio)


def versine_ratio(t: Array) -> Array:
    """(1 - cos θ) / θ² with t = θ²."""
    half = sine_ratio(t / 4)
    return np.asarray(half * half / 2)


def sine_defect(t: Array) -> Array:
    """(θ - sin θ) / θ³ with t = θ²."""
    return _blend(t, 1.0, _SINE_DEFECT, _closed_sine_defect)


def cotangent_defect(t: Array) -> Array:
    """(1 - (θ/2) cot(θ/2)) / θ² with t = θ², for |θ| < 2π."""
    return _blend(t, 1.0, _COTANGENT_DEFECT, _closed_cotangent_defect)


def cosine(t: Array) -> Array:
    """cos θ with t = θ²."""
    return np.asarray(np.cos(np.sqrt(t)))


def arctan_ratio(sine_squared: Array, cosine: Array) -> Array:
    """arctan2(s, c) / s with s² given and Re c >= 0."""
    small = np.abs(sine_squared) < np.abs(cosine) ** 2 / 16
    safe_cosine = np.where(small, cosine, 1)
    series = _horner(_ARCTANGENT, np.where(small, sine_squared, 0) / safe_cosine**2) / safe_cosine
    sine = np.sqrt(np.where(small, 1, sine_squared))
    return np.where(small, series, arctan2(sine, cosine) / sine)


def arctan2(y: Array, x: Array) -> Array:
    """The angle of (x, y); for complex data the analytic continuation from the real parts."""
    if not (np.iscomplexobj(y) or np.iscomplexobj(x)):
        return np.asarray(np.arctan2(y, x))
    start = np.arctan2(np.real(y), np.real(x))
    c, s = np.cos(start), np.sin(start)
    return np.asarray(start + np.arctan((y * c - x * s) / (x * c + y * s)))


def _closed_sine_ratio(t: Array) -> Array:
    angle = np.sqrt(t)
    return np.asarray(np.sin(angle) / angle)


def _closed_sine_defect(t: Array) -> Array:
    angle = np.sqrt(t)
    return np.asarray((angle - np.sin(angle)) / (angle * t))


def _closed_cotangent_defect(t: Array) -> Array:
    half = np.sqrt(t) / 2
    return np.asarray((1 - half * np.cos(half) / np.sin(half)) / t)


def _blend(
    t: Array, radius: float, series: tuple[float, ...], closed: Callable[[Array], Array]
) -> Array:
    """The power series where |t| < radius, the closed form elsewhere; no warnings from either."""
    small = np.abs(t) < radius
    return np.where(small, _horner(series, np.where(small, t, 0)), closed(np.where(small, 1, t)))


def _horner(coefficients: tuple[float, ...], t: Array) -> Array:
    value = np.full_like(t, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * t + coefficient
    return value
