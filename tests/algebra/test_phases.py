# SPDX-License-Identifier: BSD-3-Clause
"""Phases of rewriting: each ends, each has one normal form, and so have the proofs made of them."""

import random
from collections.abc import Sequence
from fractions import Fraction
from operator import attrgetter

import pytest

from phistar.algebra.identities import (
    COMPOSITE,
    CORE,
    GYROSCOPIC_BIAS,
    RICCATI_PRODUCTS,
    TRIANGULAR_SPLITS,
    Identity,
    with_adjoints,
)
from phistar.algebra.phases import IDENTITIES, PHASES, Phase, row
from phistar.algebra.proof import Outcome, Theorem, initial_words, phase_rows, prove, rewrite_sides
from phistar.algebra.rewrite import Rewriter, Rule, critical_pairs, weight
from phistar.algebra.words import WordSum
from phistar.algorithms.catalogue import catalogue

THEOREMS = tuple(catalogue().values())
LITERAL = [phase for phase in PHASES if phase.weights is not None]
"""Phases whose rows have no variables."""


def _both(rows: Sequence[Identity]) -> list[Identity]:
    """Rows and adjoints, every one of them even where two have the same left side."""
    return [*rows, *(known.adjoint for known in rows)]


def _unjoined(rows: Sequence[Identity]) -> list[str]:
    rewriter = Rewriter(list({(r.lhs, r.rhs): r for r in _both(rows)}.values()))
    return [
        f"{pair.first.identity.name} and {pair.second.identity.name}"
        for pair in critical_pairs(rewriter.rules)
        if rewriter.normal_form(pair.left) != rewriter.normal_form(pair.right)
    ]


@pytest.mark.parametrize("phase", LITERAL, ids=attrgetter("name"))
def test_phase_terminates(phase: Phase) -> None:
    """In every row and adjoint, each word on the right weighs less than the word on the left."""
    assert phase.weights is not None
    for known in _both(phase.rows):
        rule = Rule.of(known)
        heaviest = max((weight(word, phase.weights) for word in rule.rhs), default=-1)
        assert heaviest < weight(rule.lhs, phase.weights), known.name


@pytest.mark.parametrize("phase", LITERAL, ids=attrgetter("name"))
def test_phase_is_confluent(phase: Phase) -> None:
    """All critical pairs join: with no hypotheses, and with all of them."""
    assert not _unjoined([known for known in phase.rows if not known.needs])
    assert not _unjoined(phase.rows)


@pytest.mark.parametrize("phase", PHASES, ids=attrgetter("name"))
def test_no_two_rows_of_a_phase_share_a_left_side(phase: Phase) -> None:
    """Which of two would act is no question."""
    lefts = [known.lhs for known in phase.rows]
    assert len(set(lefts)) == len(lefts)


def test_one_recursion_at_a_time() -> None:
    """Composite rows in the core would leave M with two normal forms: that is why phases exist."""
    assert _unjoined((*CORE, *COMPOSITE[:1]))
    assert _unjoined((*CORE, *GYROSCOPIC_BIAS, *COMPOSITE[1:]))
    assert _unjoined((*CORE, row("compliance_recursion")))


def test_every_row_has_its_phase() -> None:
    """A row starts one phase at most; decompositions are shortcuts of none."""
    for known in IDENTITIES:
        homes = [phase.name for phase in PHASES if known in phase.required]
        if known in TRIANGULAR_SPLITS:
            assert not homes
        elif any(known in phase.rows and known not in phase.required for phase in PHASES):
            assert len(homes) <= 1, known.name
        else:
            assert len(homes) == 1, known.name


_FROM = {
    "composite_split": ("composite_recursion",),
    "gyroscopic_split": ("gyroscopic_recursion",),
    "compliance_split": ("compliance_recursion",),
    "compliance_tree": ("compliance_recursion",),
}


@pytest.mark.parametrize("known", [*RICCATI_PRODUCTS, *TRIANGULAR_SPLITS], ids=attrgetter("name"))
def test_shortcuts_follow(known: Identity) -> None:
    """A split is no axiom: the recursion it is made of proves it."""
    rules = tuple(row(name) for name in _FROM.get(known.name, ()))
    theorem = Theorem(known.name, known.lhs, known.rhs, known.why, known.ref, rules, known.needs)
    assert prove(theorem).outcome is Outcome.PROVED


def _shuffled(rng: random.Random, rows: Sequence[Identity], deep: bool = False) -> Rewriter:
    mixed = list(with_adjoints(rows))
    rng.shuffle(mixed)
    return Rewriter(mixed, deep)


@pytest.mark.parametrize("theorem", THEOREMS, ids=attrgetter("name"))
def test_order_of_rules_does_not_matter_to_proofs(theorem: Theorem) -> None:
    """Rules in three random orders, phase by phase: both sides reach the same normal form."""
    rng = random.Random(theorem.name)
    proof = prove(theorem)
    both = initial_words(theorem)
    expected = [trace.end for trace in proof.traces]
    for _ in range(3):
        rewriters = [_shuffled(rng, rows, deep=True) for rows in phase_rows(theorem)]
        assert [trace.end for trace in rewrite_sides(rewriters, both)] == expected


@pytest.mark.parametrize("phase", LITERAL, ids=attrgetter("name"))
@pytest.mark.parametrize("seed", range(3))
def test_order_of_rules_does_not_matter_to_words(phase: Phase, seed: int) -> None:
    """Fifteen random words a phase: the core, the phase and the core again end, and in one form."""
    rng = random.Random(seed)
    core = [known for known in next(p for p in PHASES if p.name == "core").rows if not known.needs]
    own = [known for known in phase.rows if not known.needs]
    lefts = [Rule.of(known).lhs for known in with_adjoints((*own, *CORE))]
    # The composite phase takes M before the core does.
    order = [own, core] if phase.name == "composite" else [core, own, core]
    reference = [Rewriter(with_adjoints(rows)) for rows in order]
    for _ in range(15):
        words = _random_words(rng, lefts)
        mixed = [_shuffled(rng, rows) for rows in order]
        (expected,) = rewrite_sides(reference, [words])
        (found,) = rewrite_sides(mixed, [words])
        assert found.end == expected.end
        assert len(expected.steps) < 20_000


def _random_words(rng: random.Random, lefts: Sequence[tuple]) -> WordSum:  # type: ignore[type-arg]
    """A product of left sides that fit together, so that there is something to rewrite."""
    word = rng.choice(lefts)
    for _ in range(2):
        fitting = [left for left in lefts if left[0].codomain is word[-1].domain]
        word = word + rng.choice(fitting) if fitting else word
    return WordSum(word[0].codomain, word[-1].domain, {word: Fraction(1)})
