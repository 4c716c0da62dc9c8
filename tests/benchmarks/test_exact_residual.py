# SPDX-License-Identifier: BSD-3-Clause
"""Residuals with all their digits, beside fractions; errors of the sparse system's solution."""

from fractions import Fraction

import numpy as np
import pytest

from benchmarks.exact_residual import exact_product, exact_sum, forward_error, residual
from benchmarks.parallel import system_errors
from phistar import robots
from phistar.whole_system.sparse_equations import WholeSystem


def _system(links: int) -> WholeSystem:
    robot = robots.chain(links, axes="xyz")
    return robot.system(*0.3 * np.random.default_rng(0).normal(size=(3, robot.nv)))


def test_nothing_is_lost() -> None:
    """Products and sums of numbers of very different size, beside fractions: equal."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 50)) * 10.0 ** rng.integers(-8, 9, size=(2, 50))
    for exact, operation in ((exact_product, Fraction.__mul__), (exact_sum, Fraction.__add__)):
        for value, error, x, y in zip(*exact(a, b), a, b, strict=True):
            assert Fraction(value) + Fraction(error) == operation(Fraction(x), Fraction(y))


def test_residual_beside_fractions() -> None:
    """Of each row to one rounding, though the terms cancel to 1e-13 of their size."""
    system = _system(5)
    unknowns = system.solve().unknowns
    found = residual(system, unknowns)
    dense = system.matrix.toarray()
    for row, right, value in zip(dense, system.right_hand_side, found, strict=True):
        terms = (Fraction(a) * Fraction(x) for a, x in zip(row, unknowns, strict=True))
        exact = float(Fraction(right) - sum(terms))
        assert value == pytest.approx(exact, rel=1e-12, abs=1e-28)


def test_solution_of_a_long_chain() -> None:
    """1e-12 with 3000 links, which is far below the bound of 1e-10; a disturbed one is seen."""
    system = _system(3000)
    unknowns = system.solve().unknowns
    assert forward_error(system, unknowns) < 1e-12
    disturbed = unknowns * (1 + 1e-9 * np.sin(np.arange(len(unknowns))))
    assert 1e-10 < forward_error(system, disturbed) < 1e-8


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long doubles have no more digits")
def test_accelerations_beside_extended_precision() -> None:
    """Of a chain of 1000 links 1e-11; the solver's part of that is far smaller."""
    robot = robots.chain(1000)
    error, solver_error = system_errors(robot, tuple(0.3 * np.ones((3, 1000))))
    assert solver_error < 1e-14 < error < 1e-11
