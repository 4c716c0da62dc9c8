# SPDX-License-Identifier: BSD-3-Clause
"""Every identity: it holds, it has teeth, and the core shrinks words and is confluent."""

import itertools
import random
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, reduce
from operator import attrgetter

import numpy as np
import pytest

from phistar.algebra.dense import Dense, ExpressionFrame
from phistar.algebra.identities import CORE, HYPOTHESES, Identity, with_adjoints
from phistar.algebra.ir import Expr, Product
from phistar.algebra.phases import IDENTITIES, row
from phistar.algebra.random_examples import joint_kinds, random_axes, random_loops, random_vectors
from phistar.algebra.rewrite import Rewriter, Rule, apply_rule, critical_pairs, weight
from phistar.algebra.symbols import P
from phistar.algebra.words import WordSum, to_words
from phistar.errors import UnknownNameError
from phistar.model import Model
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model

FRAMES: tuple[ExpressionFrame, ...] = ("link", "origin", "inertial")
BOTH = (*IDENTITIES, *(known.adjoint for known in IDENTITIES))
ROWS = tuple({(known.lhs, known.rhs): known for known in reversed(BOTH)}.values())[::-1]
ZERO_ROWS = [known for known in ROWS if not to_words(known.rhs)]
SHAPES = ("serial", "tree", "forest", "binary", "serial")


@cache
def _models(needs: frozenset[str]) -> Sequence[Model]:
    """Robots with every joint kind that meet hypotheses."""
    return [
        random_model(
            np.random.default_rng(seed),
            9,
            topology=shape,
            armature=0.0 if "unmotored" in needs else 0.5,
            fixed=0.2,
            massless=0.0 if "massive" in needs else 0.2,
            kinds=joint_kinds(needs),
        )
        for seed, shape in enumerate(SHAPES)
        if shape == "serial" or "serial" not in needs
    ]


@cache
def _dense(model: Model, frame: ExpressionFrame, needs: frozenset[str]) -> Dense:
    rng = np.random.default_rng(1)
    loops = random_loops(np.random.default_rng(2), model, needs)
    values = random_vectors(rng, model, [known.lhs for known in IDENTITIES], loops)
    axes = random_axes(rng, model, needs)
    q = random_configuration(model, rng)
    return Dense(model, q, frame, values, axes=axes, loops=loops)


def _error(dense: Dense, left: Expr, right: Expr) -> float:
    ours, theirs = dense(left), dense(right)
    return float(np.abs(ours - theirs).max() / max(np.abs(ours).max(), 1e-2))


def _rounding(dense: Dense, left: Expr, right: Expr) -> float:
    """The same, measured by the left side's factors: what cancels in it is rounded by their size.

    Kernels of BLAS add in other orders, and far from the origin products of inertias are large.
    """
    factors = left.factors if isinstance(left, Product) else (left,)
    size = float(reduce(np.matmul, [np.abs(dense.matrix(x)) for x in factors]).max())
    return float(np.abs(dense(left) - dense(right)).max() / max(size, 1e-2))


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("identity", ROWS, ids=attrgetter("name"))
def test_identity_holds(identity: Identity, frame: ExpressionFrame) -> None:
    """Both sides are the same matrix on random robots with every joint kind; relative 1e-11."""
    for model in _models(identity.needs):
        assert _rounding(_dense(model, frame, identity.needs), identity.lhs, identity.rhs) < 1e-11


@pytest.mark.parametrize("identity", ROWS, ids=attrgetter("name"))
def test_identity_has_teeth(identity: Identity) -> None:
    """Dropping any word of the right side breaks it, else the check would prove nothing."""
    model = _models(identity.needs)[0 if "serial" in identity.needs else 1]
    dense = _dense(model, "link", identity.needs)
    right = to_words(identity.rhs)
    for dropped in right:
        rest = {w: c for w, c in right.terms.items() if w != dropped}
        weakened = WordSum(right.codomain, right.domain, rest).expr()
        assert _error(dense, identity.lhs, weakened) > 1e-6


@pytest.mark.parametrize("identity", ZERO_ROWS, ids=attrgetter("name"))
def test_what_vanishes_is_not_made_of_zeros(identity: Identity) -> None:
    """A product that is zero has factors that are not; a symbol that is zero is not always so."""
    (word,) = to_words(identity.lhs)
    needs = identity.needs if len(word) > 1 else frozenset[str]()
    dense = _dense(_models(needs)[3], "link", needs)
    assert all(np.abs(dense(atom)).max() > 1e-3 for atom in word)


@pytest.mark.parametrize(
    ("identity", "need"),
    [(known, need) for known in IDENTITIES for need in sorted(known.needs - {"massive"})],
    ids=lambda value: getattr(value, "name", value),
)
def test_side_conditions_are_needed(identity: Identity, need: str) -> None:
    """A row is false on some robot that meets all its hypotheses but one."""
    rest = identity.needs - {need}
    assert _error(_dense(_models(rest)[3], "link", rest), identity.lhs, identity.rhs) > 1e-6


def test_massive_is_needed() -> None:
    """The dual update inverts P, which is singular where a link has no mass."""
    known = row("dual_inertia")
    needs = frozenset({"unmotored"})
    dense = _dense(_models(needs)[0], "link", needs)
    assert np.linalg.cond(dense(P)) > 1e12
    assert _error(dense, known.lhs, known.rhs) > 1e-6


def test_side_conditions_are_known() -> None:
    """Every hypothesis of a row is one of the table, and each is the hypothesis of some row."""
    assert {need for known in IDENTITIES for need in known.needs} == set(HYPOTHESES)
    assert all(hypothesis.says for hypothesis in HYPOTHESES.values())


@pytest.mark.parametrize("identity", with_adjoints(CORE), ids=attrgetter("name"))
def test_core_terminates(identity: Identity) -> None:
    """Every word on the right weighs less than the word on the left."""
    rule = Rule.of(identity)
    assert all(weight(word) < weight(rule.lhs) for word in rule.rhs)


def test_core_is_confluent() -> None:
    """All critical pairs join: with termination, normal forms decide equality modulo the core."""
    rewriter = Rewriter(with_adjoints(CORE))
    pairs = list(critical_pairs(rewriter.rules))
    assert len(pairs) > 30
    for pair in pairs:
        left, right = rewriter.normal_form(pair.left), rewriter.normal_form(pair.right)
        assert left == right, f"{pair.first.identity.name} and {pair.second.identity.name}"


def test_confluence_check_has_teeth() -> None:
    """Without the rule for ψG the core is not confluent: the checker notices."""
    weakened = [known for known in CORE if known.name != "psi_gain"]
    rewriter = Rewriter(with_adjoints(weakened))
    joins = (
        rewriter.normal_form(p.left) == rewriter.normal_form(p.right)
        for p in critical_pairs(rewriter.rules)
    )
    assert not all(joins)


@pytest.mark.parametrize("seed", range(8))
def test_order_of_rules_does_not_matter(seed: int) -> None:
    """Random words rewritten by randomly ordered rules reach one normal form."""
    rng = random.Random(seed)
    rows = list(with_adjoints(CORE))
    reference = Rewriter(rows)
    for _ in range(20):
        words = _random_words(rng, reference)
        rng.shuffle(rows)
        assert Rewriter(rows).normal_form(words) == reference.normal_form(words)


def _random_words(rng: random.Random, rewriter: Rewriter) -> WordSum:
    """A product of left sides that fit together, so that there is something to rewrite."""
    word = rng.choice(rewriter.rules).lhs
    for _ in range(3):
        fitting = [r.lhs for r in rewriter.rules if r.lhs[0].codomain is word[-1].domain]
        word = word + rng.choice(fitting)
    return WordSum(word[0].codomain, word[-1].domain, {word: Fraction(1)})


def test_names_and_left_sides_are_unique() -> None:
    """A row can be found by its name; no two core rows rewrite the same word."""
    names = [known.name for known in IDENTITIES]
    assert len(set(names)) == len(names)
    assert all(row(known.name) is known for known in IDENTITIES)
    lefts = [Rule.of(known).lhs for known in with_adjoints(CORE)]
    assert all(a != b for a, b in itertools.combinations(lefts, 2))


def test_unknown_row() -> None:
    """A misspelt row is told with the right one."""
    with pytest.raises(UnknownNameError, match="riccati_mixed"):
        row("riccati_mixd")


def test_every_row_says_why() -> None:
    """Each row has a reason."""
    assert all(known.why for known in IDENTITIES)


def test_apply_replaces_one_occurrence() -> None:
    """Rewriting is linear: the value of a sum does not change by a step."""
    dense = _dense(_models(frozenset())[1], "link", frozenset())
    rewriter = Rewriter(with_adjoints(CORE))
    for rule in rewriter.rules:
        whole = WordSum(rule.lhs[0].codomain, rule.lhs[-1].domain, {rule.lhs: Fraction(2)})
        after = apply_rule(rule, whole, rule.lhs, 0)
        assert _error(dense, whole.expr(), after.expr()) < 1e-11
