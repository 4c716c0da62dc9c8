# SPDX-License-Identifier: BSD-3-Clause
"""Sines, arctangents and lengths without a library: accurate, and of known bits."""

import math

import numpy as np
import pytest

from phistar.spatial.reproducible_math import MAX_ANGLE_RAD, atan2, length, lengths, sincos
from phistar.spatial.reproducible_products import matvec, product

ANGLES = [
    *np.random.default_rng(0).uniform(-10, 10, 2000),
    *(k * math.pi / 4 for k in range(-16, 17)),
]
ANGLES += [
    *np.random.default_rng(1).uniform(-MAX_ANGLE_RAD, MAX_ANGLE_RAD, 500),
    0.0,
    1e-300,
    1e-9,
    1e6,
    1e9,
]


def test_sines_are_those_of_long_arithmetic() -> None:
    """Relative to the library's in extended precision, 1.5 units in the last place."""
    for angle in ANGLES:
        wide = np.longdouble(angle)
        for ours, exact in zip(sincos(float(angle)), (np.sin(wide), np.cos(wide)), strict=True):
            assert abs(ours - exact) <= 1.5 * math.ulp(float(exact))


def test_quarter_turns() -> None:
    """As exact as the angle itself says; signs of the four quarters."""
    assert sincos(0.0) == (0.0, 1.0)
    assert sincos(math.pi / 2) == (1.0, 6.123233995736766e-17)
    assert sincos(math.pi) == (1.2246467991473532e-16, -1.0)
    assert sincos(-math.pi / 2) == (-1.0, 6.123233995736766e-17)


@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e8, 1e300])
def test_arctangents(scale: float) -> None:
    """Within two units in the last place of the library's."""
    y, x = (np.random.default_rng(2).normal(size=(1000, 2)) * (1.0, scale)).T
    for found, expected in zip(atan2(y, x), map(math.atan2, y, x), strict=True):
        assert abs(found - expected) <= 2 * math.ulp(expected)


def test_arctangents_of_eighth_turns() -> None:
    """All eight directions exactly, and the origin."""
    y, x = np.repeat([-1.0, 0.0, 1.0], 3), np.tile([-1.0, 0.0, 1.0], 3)
    assert atan2(y, x).tolist() == list(map(math.atan2, y, x))


def test_lengths() -> None:
    """As the library's, also where squares would overflow or vanish."""
    for vector in ((3.0, 4.0), (1.0, 2.0, 2.0), (0.0, 0.0, 0.0), (3e200, 4e200), (3e-200, 4e-200)):
        assert length(*vector) == pytest.approx(math.hypot(*vector), rel=2e-16)
    assert length(math.inf, 1.0) == math.inf


def test_lengths_of_many() -> None:
    """Bit for bit those of single vectors."""
    scales = 10.0 ** np.random.default_rng(3).uniform(-200, 200, size=(500, 1))
    vectors = np.random.default_rng(4).normal(size=(500, 3)) * scales
    vectors[:3] = [[0.0] * 3, [math.inf, 1.0, 0.0], [3.0, 4.0, 0.0]]
    assert lengths(vectors).tolist() == [length(*vector) for vector in vectors.tolist()]


# Written once, on a processor with AVX-512; they hold on every other one.
BITS = {
    "sincos": ["0x1.d901dc1b0fa13p-1", "0x1.87f5b78a96af1p-2"],
    "atan2": ["0x1.4978fa3269ee1p-1"],
}


def test_bits() -> None:
    """Single operations of IEEE 754 leave no choice."""
    assert [x.hex() for x in sincos(1.178)] == BITS["sincos"]
    assert [atan2(np.array(0.3), np.array(0.4)).item().hex()] == BITS["atan2"]


def test_products_add_from_left_to_right() -> None:
    """Each entry is the rounded sum of rounded products in order, for any leading axes."""
    rng = np.random.default_rng(3)
    A, B, x = rng.normal(size=(5, 1, 3, 4)), rng.normal(size=(2, 4, 3)), rng.normal(size=(5, 2, 4))
    C, y = product(A, B), matvec(A, x)
    assert C.shape == (5, 2, 3, 3)
    for i, j, r in np.ndindex(5, 2, 3):
        a = A[i, 0, r].tolist()
        for c in range(3):
            total = a[0] * B[j, 0, c]
            for k in range(1, 4):
                total = total + a[k] * B[j, k, c]
            assert C[i, j, r, c] == total
        expected = ((a[0] * x[i, j, 0] + a[1] * x[i, j, 1]) + a[2] * x[i, j, 2]) + a[3] * x[i, j, 3]
        assert y[i, j, r] == expected


def test_products_over_nothing() -> None:
    """Of matrices without columns: zeros, as of ``@``, over all samples."""
    a, b = np.zeros((3, 1, 4, 0)), np.zeros((2, 0, 5))
    assert np.array_equal(product(a, b), a @ b)
    assert np.array_equal(matvec(a, np.zeros((2, 0))), np.zeros((3, 2, 4)))
