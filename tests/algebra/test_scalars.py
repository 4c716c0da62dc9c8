# SPDX-License-Identifier: BSD-3-Clause
"""Scalars in proofs: a number is its own adjoint, and nothing else is."""

import numpy as np
import pytest

from phistar.algebra.cross_product_rules import SWAPS
from phistar.algebra.dense import Dense
from phistar.algebra.ir import Expr, Q, crf, zero
from phistar.algebra.proof import SCALAR_ADJOINT, Outcome, Theorem, initial_words, prove
from phistar.algebra.random_examples import random_model_with, random_vectors
from phistar.algebra.spaces import JOINT, ONE
from phistar.algebra.symbols import H, M, P, dq, f_ext, mass_matrix, phi, tau, v
from phistar.algebra.words import WordSum, word_expr
from phistar.algorithms.catalogue import catalogue
from phistar.algorithms.diagonal_rates import bias, coriolis_zeta, nu, zeta
from phistar.model.configuration import random_configuration

_V = phi.T @ H.T @ dq
TRUE: dict[str, tuple[Expr, Expr]] = {
    "power": (v.T @ H @ phi @ f_ext, f_ext.T @ phi.T @ H.T @ v),
    "two different vectors": (tau.T @ mass_matrix @ v, v.T @ mass_matrix @ tau),
    "skew": (dq.T @ H @ Q(f_ext) @ H.T @ dq, zero(ONE, ONE)),
    "gyroscopic forces": (_V.T @ crf(_V) @ M @ _V, zero(ONE, ONE)),
}
FALSE: dict[str, tuple[Expr, Expr]] = {
    "no symmetry": (v.T @ H @ phi @ P @ H.T @ tau, tau.T @ H @ phi @ P @ H.T @ v),
    "Coriolis forces of the joints": (dq.T @ bias, zero(ONE, ONE)),
    "Coriolis forces in ζ": (zeta.T @ coriolis_zeta, zero(ONE, ONE)),
    "ν without the star": (nu.T @ nu, dq.T @ dq),
}


@pytest.mark.parametrize("name", TRUE)
def test_scalars_are_their_own_adjoints(name: str) -> None:
    """Equal numbers are proved equal, whichever way round they are written."""
    left, right = TRUE[name]
    assert prove(Theorem(name, left, right, "", rules=SWAPS)).outcome is Outcome.PROVED


@pytest.mark.parametrize("name", FALSE)
def test_false_scalars_are_refuted(name: str) -> None:
    """Numbers that differ have a counterexample."""
    left, right = FALSE[name]
    assert prove(Theorem(name, left, right, "", rules=SWAPS)).outcome is Outcome.REFUTED


def test_operators_are_not_turned_round() -> None:
    """A skew matrix is not zero, and an operator not its adjoint."""
    skew = Theorem("skew", H @ Q(f_ext) @ H.T, zero(JOINT, JOINT), "")
    turned = Theorem("turned", H @ phi @ P @ H.T, H @ P @ phi.T @ H.T, "")
    assert prove(skew).outcome is Outcome.REFUTED
    assert prove(turned).outcome is Outcome.REFUTED


def test_turning_round_keeps_the_value() -> None:
    """Every such step of the proofs of the catalogue, densely; relative 1e-9."""
    turns = 0
    for theorem in catalogue().values():
        if theorem.result.codomain is not ONE:
            continue
        proof = prove(theorem)
        rng = np.random.default_rng(0)
        model = random_model_with(rng, theorem.needs, 5)
        vectors = random_vectors(rng, model, theorem.sides)
        dense = Dense(model, random_configuration(model, rng), vectors=vectors)
        for start, trace in zip(initial_words(theorem), proof.traces, strict=True):
            assert trace.start == start
            steps = trace.steps
            sums = [start, *(WordSum(ONE, ONE, dict(terms)) for terms in trace.sums())]
            scale = max([1.0, *(abs(dense(word_expr(word, ONE))[0]) for word in start)])
            for before, step, after in zip(sums, steps, sums[1:], strict=False):
                if step.identity is SCALAR_ADJOINT:
                    turns += 1
                    change = dense(after.expr())[0] - dense(before.expr())[0]
                    assert abs(change) <= 1e-9 * scale
    assert turns > 5
