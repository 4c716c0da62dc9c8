# SPDX-License-Identifier: BSD-3-Clause
"""Sine, cosine, arctangent and length, the same bits on every machine.

The constants of a robot determine its code. Libraries round sines differently between processors
and versions; here are single additions, multiplications, divisions and square roots, which IEEE 754
defines to the last bit. Errors are below 1.5 units in the last place. Functions of arrays do the
same operations as those of floats.
"""

import math
from fractions import Fraction

import numpy as np

from phistar.arrays import Array

_PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459")


def _split_float(x: Fraction, bits: int, count: int) -> tuple[float, ...]:
    """Floats that add up to a number in [1, 2), all but the last one of few bits."""
    parts = []
    for i in range(1, count):
        leading = Fraction(math.floor(x * 2 ** (bits * i)), 2 ** (bits * i))
        parts.append(float(leading))
        x -= leading
    return (*parts, float(x))


_HALF_PI_PARTS = _split_float(_PI / 2, 33, 3)
"""π/2: the first two parts times up to a million are exact."""
_QUARTER_PI_PARTS = (math.pi / 4, float(_PI / 4 - Fraction(math.pi / 4)))
"""π/4 as a float, and its rounding error."""

MAX_ANGLE_RAD = 1e6
"""Angles [rad] up to which sines are computed here; robot files have no larger ones."""

_S = [float(Fraction((-1) ** k, math.factorial(2 * k + 1))) for k in range(9)]
_S1, _S2, _S3, _S4, _S5, _S6, _S7, _S8 = _S[1:]
_C = [float(Fraction((-1) ** k, math.factorial(2 * k))) for k in range(10)]
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9 = _C[2:]
_ARCTANGENT = [(-1) ** k / (2 * k + 1) for k in range(22, 0, -1)]
_TAN_EIGHTH_PI = math.sqrt(2.0) - 1.0
"""tan(π/8)."""


def sincos(angle: float) -> tuple[float, float]:
    """Sine and cosine of an angle [rad]; those of the library beyond ``MAX_ANGLE_RAD``."""
    if not abs(angle) <= MAX_ANGLE_RAD:
        return math.sin(angle), math.cos(angle)
    n = round(angle * (2.0 / math.pi))
    first, second, third = _HALF_PI_PARTS
    head, correction = angle - n * first, n * second
    r = head - correction
    remainder = ((head - r) - correction) - n * third
    r, remainder = r + remainder, (r - (r + remainder)) + remainder
    z = r * r
    s = ((((((_S8 * z + _S7) * z + _S6) * z + _S5) * z + _S4) * z + _S3) * z + _S2) * z + _S1
    c = ((((((_C9 * z + _C8) * z + _C7) * z + _C6) * z + _C5) * z + _C4) * z + _C3) * z + _C2
    half = 0.5 * z
    base = 1.0 - half
    sine = r + (s * z * r + remainder)
    cosine = base + (((1.0 - base) - half) + (c * z * z - r * remainder))
    quarter = n % 4
    if quarter == 0:
        return sine, cosine
    if quarter == 1:
        return cosine, -sine
    return (-sine, -cosine) if quarter == 2 else (-cosine, sine)


def atan2(y: Array, x: Array) -> Array:
    """The angles of (x, y) in [-π, π]; zero for the origin."""
    along, across = np.abs(x), np.abs(y)
    large, small = np.maximum(along, across), np.minimum(along, across)
    steep = small > _TAN_EIGHTH_PI * large
    below = np.where(steep, small + large, large)
    t = np.where(steep, small - large, small) / np.where(large == 0.0, 1.0, below)
    z = t * t
    value = np.zeros_like(z)
    for a in _ARCTANGENT:
        value = value * z + a
    angle, eighths = t + t * (value * z), np.where(steep, 1.0, 0.0)
    for mirror, turns in ((across > along, 2.0), (x < 0.0, 4.0)):
        angle = np.where(mirror, -angle, angle)
        eighths = np.where(mirror, turns - eighths, eighths)
    result = eighths * _QUARTER_PI_PARTS[0] + (eighths * _QUARTER_PI_PARTS[1] + angle)
    return np.where(large == 0.0, 0.0, np.where(y < 0.0, -result, result))


def lengths(vectors: Array) -> Array:
    """``length`` of vectors over leading axes, (..., n) to (...)."""
    largest = np.abs(vectors).max(axis=-1)
    plain = (largest > 0.0) & np.isfinite(largest)
    exponent = np.frexp(np.where(plain, largest, 1.0))[1]
    total = np.zeros_like(largest)
    for i in range(vectors.shape[-1]):
        scaled = np.ldexp(np.where(plain, vectors[..., i], 0.0), -exponent)
        total = total + scaled * scaled
    return np.asarray(np.where(plain, np.ldexp(np.sqrt(total), exponent), largest))


def length(*vector: float) -> float:
    """The Euclidean length of a vector, without overflow."""
    largest = max(map(abs, vector))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    exponent = math.frexp(largest)[1]
    total = 0.0
    for x in vector:
        scaled = math.ldexp(x, -exponent)
        total += scaled * scaled
    return math.ldexp(math.sqrt(total), exponent)
