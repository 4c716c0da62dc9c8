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
from phistar.compile import Full, compile_outputs, with_closed_inverses
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.scalar.lower import LoweringOptions, to_unrolled
from phistar.scalar.lower_fused import to_fused
from phistar.scalar.program import count_arithmetic
from phistar.sweeps.ir import StreamProgram
from phistar.sweeps.matrix_requests import LoweredBundle, matrix_forms
from phistar.sweeps.schedule import Schedule
from phistar.sweeps.split_matrices import SplitMatrices, SplitTerms, lower_split

ABSENT = frozenset({"f_ext", "gravity"})
OPTIONS = LoweringOptions(regroup=True)
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
    6: "𝓜⁻¹, A_C, B_C, by single walks",
}


def printed(algorithm: int, n: int) -> int:
    """Multiplications and additions as the paper prints them."""
    return round(sum(float(np.polyval(powers, n)) for powers in PRINTED[algorithm]))


def chain(n: int) -> Model:
    """A serial robot in general position."""
    return random_model(np.random.default_rng(0), n, kinds=["revolute"], topology="serial")


def _vector(expr: Expr, model: Model) -> int:
    compiled = compile_outputs("counted", (("out", in_motion(expr)),)).schedule
    program = to_unrolled(compiled, model, ABSENT, options=OPTIONS)
    return count_arithmetic(program.count())


def _assembled(
    model: Model,
    matrices: Mapping[str, Expr],
    products: Mapping[str, tuple[str, str]] | None = None,
    walks: SplitMatrices | None = None,
) -> int:
    """Matrices in one program, without any vectors: what they share is done once."""
    nothing = Schedule(StreamProgram(), ())
    found = {
        name: matrix_forms(with_closed_inverses(in_motion(expr)), Full())
        for name, expr in matrices.items()
    }
    program = to_fused(LoweredBundle(nothing, found, products or {}, walks), model, ABSENT, OPTIONS)
    return count_arithmetic(program.count())


def ours(algorithm: int, n: int) -> int:
    """Multiplications, additions and subtractions of our scalar programs."""
    model, x = chain(n), linearized
    if algorithm == 1:
        return _vector(x.inverse_change, model)
    if algorithm == 2:
        matrices = {"m": mass_matrix, "a": x.A_D_columns, "b": x.B_D_columns}
        return _assembled(model, matrices)
    if algorithm == 3:
        return _vector(x.forward_change, model)
    if algorithm == 4:
        inverse = mass_matrix_inverse.result
        matrices = {"i": inverse, "a": x.A_D_columns, "b": x.B_D_columns}
        return _assembled(model, matrices, {"v": ("i", "a"), "q": ("i", "b")})
    if algorithm == 5:
        return _vector(x.forward_change_articulated, model)
    parts = {"q": x.split_terms_q, "v": x.split_terms_v}
    terms = {name: SplitTerms(*map(in_motion, part)) for name, part in parts.items()}
    return _assembled(model, {}, walks=lower_split("i", terms))


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
