# SPDX-License-Identifier: BSD-3-Clause
"""Prints the table of operation counts in docs/derivatives.md: Algorithms 1-6, printed and ours.

Ours are counted in the straight-line scalar programs for a serial robot with revolute joints in
general position, in gravity and without external forces. Joint accelerations are given, as in the
paper. Run: ``python -m tools.counts``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phistar.algebra.ir import Expr
from phistar.algebra.symbols import mass_matrix
from phistar.algorithms import linearized
from phistar.algorithms.equations_of_motion import in_motion
from phistar.algorithms.innovations import mass_matrix_inverse
from phistar.compile import Full, compile_outputs, factored
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.scalar.lower import Options, to_straight
from phistar.scalar.matrix import to_matrix
from phistar.scalar.program import arithmetic
from phistar.sweeps.matrix import forms

ABSENT = frozenset({"f_ext", "gravity"})
SIZES = (6, 7, 30)

PRINTED: Mapping[int, tuple[tuple[float, ...], tuple[float, ...]]] = {
    1: ((320, -159), (303, -149)),
    2: ((21, 333, -132), (47 / 2, 605 / 2, -145)),
    3: ((1 / 6, 3 / 2, 952 / 3, -153), (1 / 6, 1, 1805 / 6, -147)),
    4: ((17 / 6, 43 / 2, 998 / 3, -132), (17 / 6, 20, 1819 / 6, -145)),
    5: ((259, -129), (232, -123)),
    6: ((36, 781, -225), (33, 773, -255)),
}
"""Multiplications and additions as printed: coefficients of powers of n, the highest first."""

GIVES = {
    1: "δτ",
    2: "𝓜, A_D, B_D",
    3: "δv̇, by rigid inertias",
    4: "𝓜⁻¹, A_C, B_C, by products",
    5: "δv̇, by articulated inertias",
    6: "𝓜⁻¹, A_C, B_C, by columns",
}


def printed(algorithm: int, n: int) -> int:
    """Multiplications and additions as the paper prints them."""
    return round(sum(float(np.polyval(powers, n)) for powers in PRINTED[algorithm]))


def chain(n: int) -> Model:
    """A serial robot in general position."""
    return random_model(np.random.default_rng(0), n, kinds=["revolute"], topology="serial")


def _vector(expr: Expr, model: Model) -> int:
    schedule = compile_outputs("counted", (("out", in_motion(expr)),)).schedule
    program = to_straight(schedule, model, ABSENT, options=Options(regroup=True))
    return arithmetic(program.count())


def _matrices(model: Model, *exprs: Expr) -> int:
    found = (forms(factored(in_motion(expr)), Full()) for expr in exprs)
    return sum(arithmetic(to_matrix(form, model, absent=ABSENT).count()) for form in found)


def ours(algorithm: int, n: int) -> int:
    """Multiplications, additions and subtractions of our scalar programs."""
    model, x = chain(n), linearized
    if algorithm == 1:
        return _vector(x.inverse_change, model)
    if algorithm == 2:
        return _matrices(model, mass_matrix, x.A_D_columns, x.B_D_columns)
    if algorithm == 3:
        return _vector(x.forward_change, model)
    if algorithm == 4:
        products = 2 * n * n * (2 * n - 1)
        return products + _matrices(model, mass_matrix_inverse.result, x.A_D_columns, x.B_D_columns)
    if algorithm == 5:
        return _vector(x.forward_change_articulated, model)
    return _matrices(model, mass_matrix_inverse.result, x.A_C, x.B_C)


def row(algorithm: int) -> str:
    """A line of the table."""
    numbers = [f"{printed(algorithm, n)} / {ours(algorithm, n)}" for n in SIZES]
    return f"| {algorithm} | {GIVES[algorithm]} | {' | '.join(numbers)} |"


def main() -> None:
    """Print the table."""
    print("| algorithm | gives | " + " | ".join(f"n = {n}" for n in SIZES) + " |")
    print("|---" * (2 + len(SIZES)) + "|")
    for algorithm in PRINTED:
        print(row(algorithm), flush=True)


if __name__ == "__main__":
    main()
