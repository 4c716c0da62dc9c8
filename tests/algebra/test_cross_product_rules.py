# SPDX-License-Identifier: BSD-3-Clause
"""Rules of the calculus: they hold in every frame, they end, and proofs need them."""

import dataclasses
import random
from fractions import Fraction
from operator import attrgetter

import numpy as np
import pytest
from numpy.typing import NDArray

from phistar import spatial
from phistar.algebra import cross_product_rules
from phistar.algebra.dense import Dense, ExpressionFrame
from phistar.algebra.identities import Identity
from phistar.algebra.ir import Expr, Q, crf, crm, symbol
from phistar.algebra.phases import PHASES, Phase
from phistar.algebra.proof import Outcome, prove
from phistar.algebra.random_examples import (
    joint_kinds,
    random_axes,
    random_model_with,
    random_vectors,
)
from phistar.algebra.rewrite import Rewriter
from phistar.algebra.rules import with_adjoints
from phistar.algebra.spaces import FORCE, MOTION, ONE
from phistar.algebra.symbols import E_phi, H, M, dq, f_ext, gravity, phi, v, vdot
from phistar.algebra.words import WordSum, to_words, word_expr
from phistar.algorithms.catalogue import catalogue
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model

GROUPS = (
    cross_product_rules.SWAPS,
    cross_product_rules.RIGID_SHIFTS,
    cross_product_rules.GRAVITY_AT_ROOTS,
    cross_product_rules.GYROSCOPIC,
    cross_product_rules.BRACKET_PAIRS,
    cross_product_rules.JACOBI,
    cross_product_rules.ONE_DOF,
    cross_product_rules.SUBALGEBRA,
    cross_product_rules.ARTICULATED_RATES,
)
ROWS = [row for group in GROUPS for row in group]
SCHEMATIC = [phase for phase in PHASES if phase.weights is None]


@pytest.mark.parametrize("frame", ["link", "origin", "inertial"])
@pytest.mark.parametrize("row", ROWS, ids=attrgetter("name"))
def test_row_holds(row: Identity, frame: ExpressionFrame) -> None:
    """Both sides are the same matrix on trees and forests with every joint kind; relative 1e-12."""
    for seed, topology in enumerate(("tree", "forest", "serial")):
        rng = np.random.default_rng(seed)
        armature = 0.0 if "unmotored" in row.needs else 0.3
        model = random_model(
            rng, 11, topology=topology, kinds=joint_kinds(row.needs), armature=armature
        )
        values = random_vectors(rng, model, (row.lhs, row.rhs))
        axes = random_axes(rng, model, row.needs)
        dense = Dense(model, random_configuration(model, rng), frame, values, axes=axes)
        ours, theirs = dense.matrix(row.lhs), dense.matrix(row.rhs)
        scale = max(np.abs(dense.matrix(word)).max() for word in _words(row))
        assert np.abs(ours - theirs).max() <= 1e-12 * max(scale, 1e-2)


def _words(row: Identity) -> list[Expr]:
    """The words of both sides: rounding is relative to the largest of them."""
    sides = (to_words(row.lhs), to_words(row.rhs))
    return [word_expr(word, side.domain) for side in sides for word in side]


def test_examples_meet_the_joint_classes() -> None:
    """One axis a joint, or motions closed under the cross product; bent axes are neither."""
    rng = np.random.default_rng(0)
    single = random_model_with(rng, {"one_dof"})
    assert {body.joint_kind.nv for body in single.bodies} == {1}
    model = random_model_with(rng, frozenset(), n=20)
    bent, plain = random_axes(rng, model, ()), random_axes(rng, model, {"subalgebra"})
    assert all(_closed(axes) for axes in plain)
    assert not all(_closed(axes) for axes in bent)


def _closed(axes: NDArray[np.float64]) -> bool:
    """Whether the cross product of any two columns is in their span."""
    projector = axes @ np.linalg.pinv(axes)
    products = np.hstack([spatial.crm(axis) @ axes for axis in axes.T])
    return bool(np.abs(products - projector @ products).max() < 1e-12)


ATOMS: tuple[Expr, ...] = (
    H, H.T, M, phi, phi.T, E_phi, E_phi.T,
    crm(H.T @ v), crm(phi.T @ H.T @ v), crm(gravity), crm(phi.T @ gravity), crm(H.T @ dq),
    crf(H.T @ v), crf(phi.T @ H.T @ v), crf(H.T @ dq),
    Q(f_ext), Q(phi @ f_ext), Q(M @ phi.T @ H.T @ v), Q(crf(H.T @ v) @ f_ext),
)  # fmt: skip
ENDS = (H.T @ v, H.T @ dq, gravity, f_ext, v, vdot)


def _random_words(rng: random.Random, length: int) -> WordSum:
    """A random product of operators and brackets that ends in a vector."""
    word: list[Expr] = [rng.choice(ATOMS)]
    while len(word) < length:
        word.append(rng.choice([atom for atom in ATOMS if atom.codomain is word[-1].domain]))
    (tail,) = to_words(rng.choice([end for end in ENDS if end.codomain is word[-1].domain]))
    return WordSum(word[0].codomain, ONE, {(*word, *tail): Fraction(1)})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("phase", SCHEMATIC, ids=attrgetter("name"))
def test_rewriting_ends(phase: Phase, seed: int) -> None:
    """Forty random words a phase come to a normal form, whatever the order of the rules."""
    rng = random.Random(seed)
    rows = [row for row in phase.rows if not row.needs]
    rng.shuffle(rows)
    rewriter = Rewriter(with_adjoints(rows), deep=True)
    for _ in range(40):
        words = _random_words(rng, rng.randint(2, 6))
        normal = rewriter.normal_form(words)
        assert rewriter.normal_form(normal) == normal


@pytest.mark.parametrize("seed", range(3))
def test_rewriting_keeps_the_value(seed: int) -> None:
    """Random words and their normal forms are the same vectors; relative 1e-11."""
    rng = random.Random(seed)
    numbers = np.random.default_rng(seed)
    model = random_model(numbers, 6, topology="tree")
    named = (f_ext, v, vdot, dq)
    values = random_vectors(numbers, model, named)
    dense = Dense(model, random_configuration(model, numbers), vectors=values)
    rewriter = Rewriter(
        with_adjoints((*cross_product_rules.CALCULUS, *cross_product_rules.BRACKET_PAIRS)),
        deep=True,
    )
    for _ in range(15):
        words = _random_words(rng, 4)
        before, after = dense(words.expr()), dense(rewriter.normal_form(words).expr())
        assert np.abs(before - after).max() <= 1e-11 * max(1.0, np.abs(before).max())


@pytest.mark.parametrize("dropped", ["swap_force", "telescope_motion", "gyroscopic_brackets"])
def test_proofs_need_the_rules(dropped: str) -> None:
    """Without a rule that it uses, the derivative of inverse dynamics is open, not refuted."""
    theorem = catalogue()["linearized_inverse_dynamics"]
    rules = tuple(row for row in theorem.rules if row.name != dropped)
    assert prove(dataclasses.replace(theorem, rules=rules)).outcome is Outcome.OPEN


def test_variables_stand_for_anything() -> None:
    """A rule acts on vectors that the package does not know."""
    motion, force = symbol("some_motion", MOTION, ONE), symbol("some_force", FORCE, ONE)
    rewriter = Rewriter(with_adjoints(cross_product_rules.RIGID_SHIFTS), deep=True)
    (step,) = rewriter.steps(phi.T @ crm(motion) @ phi.T)
    assert step.identity.name == "telescope_motion"
    (step,) = rewriter.steps(phi @ Q(force) @ phi.T)
    assert step.identity.name == "telescope_force"
