# SPDX-License-Identifier: BSD-3-Clause
"""Even functions of the angle against exact rational Taylor sums, values and derivatives."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from phistar.spatial import _elementary

ANGLES = [0.0, 1e-160, 1e-9, 1e-5, 1e-3, 0.1, 0.4999, 0.99999, 1.0, 1.00001, 1.9999, 2.5, 3.14]
STEP = Fraction(1, 10**40)
TERMS = range(30)


def sine(x: Fraction) -> Fraction:
    """The Taylor polynomial of degree 59, exact to 1e-40 up to x = π."""
    return sum(Fraction((-1) ** k, math.factorial(2 * k + 1)) * x ** (2 * k + 1) for k in TERMS)


def cosine(x: Fraction) -> Fraction:
    """The Taylor polynomial of degree 58, exact to 1e-40 up to x = π."""
    return sum(Fraction((-1) ** k, math.factorial(2 * k)) * x ** (2 * k) for k in TERMS)


WITNESSES: dict[str, tuple[Callable[[Fraction], Fraction], Fraction]] = {
    "sine_ratio": (lambda x: sine(x) / x, Fraction(1)),
    "versine_ratio": (lambda x: (1 - cosine(x)) / x**2, Fraction(1, 2)),
    "sine_defect": (lambda x: (x - sine(x)) / x**3, Fraction(1, 6)),
    "cotangent_defect": (
        lambda x: (1 - x / 2 * cosine(x / 2) / sine(x / 2)) / x**2,
        Fraction(1, 12),
    ),
    "cosine": (cosine, Fraction(1)),
}


@pytest.mark.parametrize("name", WITNESSES)
@pytest.mark.parametrize("angle", ANGLES)
def test_value(name: str, angle: float) -> None:
    """Values are right to a few units in the last place (relative 1e-15) at every angle."""
    exact, at_zero = WITNESSES[name]
    expected = float(exact(Fraction(angle)) if angle > 1e-100 else at_zero)
    assert getattr(_elementary, name)(np.array(angle**2)) == pytest.approx(
        expected, rel=1e-15, abs=0
    )


@pytest.mark.parametrize("name", WITNESSES)
@pytest.mark.parametrize("angle", [a for a in ANGLES if a > 1e-100])
def test_complex_step_derivative(name: str, angle: float) -> None:
    """The complex step gives the derivative by the angle, also at tiny angles (relative 1e-13)."""
    exact, _ = WITNESSES[name]
    x = Fraction(angle)
    expected = float((exact(x + STEP) - exact(x - STEP)) / (2 * STEP))
    h = 1e-40
    t = np.array(complex(angle, h)) ** 2
    assert getattr(_elementary, name)(t).imag / h == pytest.approx(expected, rel=1e-13, abs=0)


@pytest.mark.parametrize("name", WITNESSES)
def test_series_and_closed_form_meet(name: str) -> None:
    """Neighbouring numbers on both sides of the switch at θ = 1 have neighbouring values."""
    function = getattr(_elementary, name)
    below, above = function(np.array([np.nextafter(1.0, 0.0), 1.0]))
    assert below == pytest.approx(above, rel=2e-15, abs=0)


@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-9, 1e-5, 0.1, 0.2449, 0.245, 0.5, 1.0, 1.5707])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_arctan_ratio(angle: float, scale: float) -> None:
    """θ / (r sin θ) from (r sin θ)² and r cos θ is right to 1e-14, whatever the scale r."""
    s, c = scale * math.sin(angle), scale * math.cos(angle)
    expected = angle / s if angle > 1e-100 else 1 / scale
    value = _elementary.arctan_ratio(np.array(s * s), np.array(c))
    assert value == pytest.approx(expected, rel=1e-14, abs=0)


@pytest.mark.parametrize("angle", np.linspace(-3.1, 3.1, 13))
def test_arctan2_is_analytic(angle: float) -> None:
    """The derivative of the angle of (x, y) is (x dy - y dx) / r² in all four quadrants."""
    x, y, dx, dy, h = 2 * math.cos(angle), 2 * math.sin(angle), 0.3, -0.7, 1e-40
    value = _elementary.arctan2(np.array(y + 1j * h * dy), np.array(x + 1j * h * dx))
    assert value.real == pytest.approx(angle, rel=1e-15, abs=1e-16)
    assert value.imag / h == pytest.approx((x * dy - y * dx) / 4, rel=1e-14, abs=0)
