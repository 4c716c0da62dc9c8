# SPDX-License-Identifier: BSD-3-Clause
"""Every identity: it holds, it has teeth, it shrinks words, and the core is confluent."""

import itertools
import random
from fractions import Fraction
from operator import attrgetter

import numpy as np
import pytest

from phistar.algebra.dense import Dense, FrameKind
from phistar.algebra.identities import CORE, IDENTITIES, Identity, with_adjoints
from phistar.algebra.ir import Expr
from phistar.algebra.rewrite import Rewriter, Rule, apply, critical_pairs, weight
from phistar.algebra.words import Words, to_words
from phistar.model import Model
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model

FRAMES: tuple[FrameKind, ...] = ("link", "origin", "inertial")
ROWS = with_adjoints(IDENTITIES)


def _model(seed: int, topology: str) -> Model:
    rng = np.random.default_rng(seed)
    return random_model(rng, 9, topology=topology, armature=0.5, fixed=0.2, massless=0.2)


MODELS = [_model(s, t) for s, t in enumerate(("serial", "tree", "forest", "binary", "serial"))]
SERIAL = [MODELS[0], MODELS[4]]


def _dense(model: Model, frame: FrameKind) -> Dense:
    return Dense(model, random_configuration(model, np.random.default_rng(1)), frame)


def _error(dense: Dense, left: Expr, right: Expr) -> float:
    ours, theirs = dense(left), dense(right)
    return float(np.abs(ours - theirs).max() / max(np.abs(ours).max(), 1e-2))


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("identity", ROWS, ids=attrgetter("name"))
def test_identity_holds(identity: Identity, frame: FrameKind) -> None:
    """Both sides are the same matrix on random robots with every joint kind; relative 1e-11."""
    for model in SERIAL if "serial" in identity.needs else MODELS:
        assert _error(_dense(model, frame), identity.lhs, identity.rhs) < 1e-11


@pytest.mark.parametrize("identity", ROWS, ids=attrgetter("name"))
def test_identity_has_teeth(identity: Identity) -> None:
    """Dropping any word of the right side breaks it, else the check would prove nothing."""
    model = SERIAL[0] if "serial" in identity.needs else MODELS[1]
    dense = _dense(model, "link")
    right = to_words(identity.rhs)
    for dropped in right:
        rest = {w: c for w, c in right.terms.items() if w != dropped}
        weakened = Words(right.codomain, right.domain, rest).expr()
        assert _error(dense, identity.lhs, weakened) > 1e-6


@pytest.mark.parametrize(
    "identity", [r for r in IDENTITIES if "serial" in r.needs], ids=attrgetter("name")
)
def test_side_conditions_are_needed(identity: Identity) -> None:
    """A row that asks for a serial chain is false on a tree."""
    assert _error(_dense(MODELS[3], "link"), identity.lhs, identity.rhs) > 1e-6


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
    weakened = [row for row in CORE if row.name != "psi_gain"]
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


def _random_words(rng: random.Random, rewriter: Rewriter) -> Words:
    """A product of left sides that fit together, so that there is something to rewrite."""
    word = rng.choice(rewriter.rules).lhs
    for _ in range(3):
        fitting = [r.lhs for r in rewriter.rules if r.lhs[0].codomain is word[-1].domain]
        word = word + rng.choice(fitting)
    return Words(word[0].codomain, word[-1].domain, {word: Fraction(1)})


def test_names_and_left_sides_are_unique() -> None:
    """A row can be found by its name; no two core rows rewrite the same word."""
    names = [row.name for row in IDENTITIES]
    assert len(set(names)) == len(names)
    lefts = [Rule.of(row).lhs for row in with_adjoints(CORE)]
    assert all(a != b for a, b in itertools.combinations(lefts, 2))


def test_every_row_says_why() -> None:
    """Each row has a reason."""
    assert all(row.why for row in IDENTITIES)


def test_apply_replaces_one_occurrence() -> None:
    """Rewriting is linear: the value of a sum does not change by a step."""
    dense = _dense(MODELS[1], "link")
    rewriter = Rewriter(with_adjoints(CORE))
    for rule in rewriter.rules:
        whole = Words(rule.lhs[0].codomain, rule.lhs[-1].domain, {rule.lhs: Fraction(2)})
        after = apply(rule, whole, rule.lhs, 0)
        assert _error(dense, whole.expr(), after.expr()) < 1e-11
