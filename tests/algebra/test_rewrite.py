# SPDX-License-Identifier: BSD-3-Clause
"""Rewriting on toy rules: normal forms, traces, loops, and critical pairs."""

from itertools import product as tuples

import pytest

from phistar.algebra import rewrite
from phistar.algebra.identities import Identity
from phistar.algebra.ir import Expr, I, crm, identity, let, symbol, zero
from phistar.algebra.rewrite import Rewriter, Rule, apply_rule, critical_pairs, weight
from phistar.algebra.spaces import FORCE, JOINT, MOTION, ONE
from phistar.algebra.symbols import D, H, P, phi
from phistar.algebra.words import Word, WordSum, to_words, word_expr
from phistar.errors import RewriteError, SpaceError

a, b, c, d = (symbol(name, JOINT, JOINT) for name in "abcd")
one = identity(JOINT)


def row(name: str, lhs: Expr, rhs: Expr) -> Identity:
    """A toy identity."""
    return Identity(name, lhs, rhs, "toy")


# Reflections a and b that commute: every word is one of I, a, b, ab.
KLEIN = (row("aa", a @ a, one), row("bb", b @ b, one), row("ba", b @ a, a @ b))
# ab may go to c or, inside abb, to ad: acb and ad do not meet.
SPLIT = (row("ab", a @ b, c), row("bb", b @ b, d))


def all_words(length: int, atoms: tuple[Expr, ...] = (a, b)) -> list[Word]:
    """Every word of a length."""
    return list(tuples(atoms, repeat=length))


def joins(rewriter: Rewriter) -> list[bool]:
    """For every critical pair, whether both ways lead to one normal form."""
    return [
        rewriter.normal_form(pair.left) == rewriter.normal_form(pair.right)
        for pair in critical_pairs(rewriter.rules)
    ]


def test_normal_forms_of_a_group() -> None:
    """A word of commuting reflections is decided by the parities of its letters."""
    rewriter = Rewriter(KLEIN)
    for word in all_words(6):
        parities = word.count(a) % 2, word.count(b) % 2
        expected = (a,) * parities[0] + (b,) * parities[1]
        assert rewriter.normal_form(word_expr(word, JOINT)).terms == {expected: 1}


def test_normal_form_is_a_fixed_point() -> None:
    """Rewriting a normal form does nothing."""
    rewriter = Rewriter(KLEIN)
    normal = rewriter.normal_form((a + 2 * b) @ (b - a) @ (I + b @ a))
    assert normal == rewriter.normal_form(normal)
    assert normal == rewriter.normal_form(normal.expr())
    assert rewriter.steps(normal) == ()
    assert all(rewriter.find(word) is None for word in normal)


def test_normal_form_is_linear() -> None:
    """The normal form of a sum is the sum of the normal forms."""
    rewriter = Rewriter(KLEIN)
    left, right = b @ a @ b @ a @ b, a @ b @ a
    total = rewriter.normal_form(3 * left - right)
    parts = rewriter.normal_form(3 * left) - rewriter.normal_form(right)
    assert total == parts
    assert total.terms == {(b,): 2}


def test_terms_that_meet_cancel() -> None:
    """ba - ab rewrites to nothing, and a right side of zero deletes words."""
    assert len(Rewriter(KLEIN).normal_form(b @ a - a @ b)) == 0
    nilpotent = Rewriter([row("aa", a @ a, zero(JOINT, JOINT))])
    assert nilpotent.normal_form((I + a) @ (I + a)).terms == {(): 1, (a,): 2}


def test_lets_and_brackets_are_opaque() -> None:
    """No rule looks inside a let or a bracket."""
    rewriter = Rewriter(KLEIN)
    named = let("V", b @ a)
    assert rewriter.normal_form(named @ b @ b).terms == {(named,): 1}
    motion = symbol("n", MOTION, JOINT) @ b @ b @ symbol("w", JOINT, ONE)
    assert rewriter.normal_form(crm(motion)).terms == {(crm(motion),): 1}


def test_trace_is_consistent() -> None:
    """Each step applies its named rule to its word once, and the last one is the normal form."""
    rewriter = Rewriter(KLEIN)
    rules = {rule.identity.name: rule for rule in rewriter.rules}
    expr = 2 * (b @ a @ b @ b) - a @ a @ b
    current = to_words(expr)
    steps = rewriter.steps(expr)
    for step, terms in zip(steps, rewriter.trace(expr).sums(), strict=True):
        after = WordSum(JOINT, JOINT, dict(terms))
        rule = rules[step.identity.name]
        places = [k for k in range(len(step.word)) if step.word[k : k + 2] == rule.lhs]
        assert step.word in current.terms
        assert after in [apply_rule(rule, current, step.word, place) for place in places]
        current = after
    assert len(steps) == 3
    assert current == rewriter.normal_form(expr)
    assert current.terms == {(a, b): 2, (b,): -1}


def test_apply_replaces_one_occurrence() -> None:
    """Only the occurrence at the given place is replaced, with its coefficient."""
    rule = Rule.of(row("ab", a @ b, c - 2 * one))
    before = to_words(3 * (a @ b @ a @ b) + c @ a @ b)
    after = apply_rule(rule, before, (a, b, a, b), 2)
    assert after.terms == {(a, b, c): 3, (a, b): -6, (c, a, b): 1}
    assert before.terms == {(a, b, a, b): 3, (c, a, b): 1}


def test_loop_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rules that undo each other end in an error, not in an endless run."""
    monkeypatch.setattr(rewrite, "MAX_STEPS", 50)
    rewriter = Rewriter([row("there", a @ b, b @ a), row("back", b @ a, a @ b)])
    with pytest.raises(RewriteError, match="did not end within 50 steps"):
        rewriter.normal_form(a @ b)


def test_step_limit_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """A derivation of exactly the allowed length passes, one step more does not."""
    rewriter = Rewriter([row("aa", a @ a, a)])
    monkeypatch.setattr(rewrite, "MAX_STEPS", 4)
    assert rewriter.normal_form(word_expr((a,) * 5, JOINT)).terms == {(a,): 1}
    with pytest.raises(RewriteError, match="4 steps"):
        rewriter.normal_form(word_expr((a,) * 6, JOINT))


@pytest.mark.parametrize(
    "lhs", [a + b, a @ (b + c), 2 * a, -(a @ b), one, zero(JOINT, JOINT)], ids=repr
)
def test_left_side_is_one_word(lhs: Expr) -> None:
    """Sums, multiples, zero and the identity are refused on the left, by the rule's name."""
    with pytest.raises(RewriteError, match="left side of bad must be one word"):
        Rule.of(row("bad", lhs, c))


def test_sides_share_their_spaces() -> None:
    """An equation between operators of different spaces is refused."""
    with pytest.raises(SpaceError, match="the two sides cannot be equal: a b maps from joint"):
        row("bad", a @ b, identity(FORCE))


def test_confluent_rules_have_joinable_pairs() -> None:
    """The commuting reflections overlap in aaa, bbb, bba, baa, and every pair joins."""
    rewriter = Rewriter(KLEIN)
    found = {pair.word for pair in critical_pairs(rewriter.rules)}
    assert found == {(a, a, a), (b, b, b), (b, b, a), (b, a, a)}
    assert joins(rewriter) == [True] * 4


def test_other_rules_have_a_pair_that_does_not_join() -> None:
    """ab → c and bb → d leave abb with two normal forms, cb and ad."""
    rewriter = Rewriter(SPLIT)
    pairs = {pair.word: pair for pair in critical_pairs(rewriter.rules)}
    assert set(pairs) == {(a, b, b), (b, b, b)}
    split = pairs[a, b, b]
    assert (split.first.identity.name, split.second.identity.name) == ("ab", "bb")
    assert rewriter.normal_form(split.left).terms == {(c, b): 1}
    assert rewriter.normal_form(split.right).terms == {(a, d): 1}
    assert joins(rewriter) == [False, False]


def test_joined_pairs_mean_unique_normal_forms() -> None:
    """With joinable pairs the order of the rules does not matter; without, it does."""

    def forms(rows: tuple[Identity, ...], word: Word) -> set[WordSum]:
        expr = word_expr(word, JOINT)
        return {Rewriter(order).normal_form(expr) for order in (rows, rows[::-1])}

    assert all(len(forms(KLEIN, word)) == 1 for word in all_words(5))
    contained = (row("aba", a @ b @ a, one), row("ab", a @ b, c))
    assert len(forms(contained, (a, b, a))) == 2


def test_contained_left_sides_are_pairs() -> None:
    """A left side inside another, at any place, or equal to it, is an overlap as well."""
    outer = Rule.of(row("cabd", c @ a @ b @ d, one))
    inner = Rule.of(row("ab", a @ b, c))
    (pair,) = critical_pairs([outer, inner])
    assert pair.word == (c, a, b, d)
    assert pair.left.terms == {(): 1}
    assert pair.right.terms == {(c, c, d): 1}
    twins = [inner, Rule.of(row("ab again", a @ b, d))]
    results = {frozenset(p.left.terms) | frozenset(p.right.terms) for p in critical_pairs(twins)}
    assert results == {frozenset({(c,), (d,)})}


def test_long_overlaps_are_found() -> None:
    """abab overlaps itself in two letters."""
    rule = Rule.of(row("abab", a @ b @ a @ b, one))
    (pair,) = critical_pairs([rule])
    assert pair.word == (a, b, a, b, a, b)
    assert pair.left == pair.right


def test_weight_counts_atoms() -> None:
    """A word weighs the sum of its atoms; adjoints and inverses weigh what their symbols do."""
    weights = rewrite.WEIGHTS
    assert weight(()) == 0
    assert weight((H, phi, P)) == weights["H"] + weights["phi"] + weights["P"]
    assert weight((phi.T,)) == weight((phi,)) == weight((phi.T.inv,))
    assert weight((D.inv, D)) == 2 * weights["D"]


@pytest.mark.parametrize("atom", [a, (I - phi).inv, let("V", phi)], ids=repr)
def test_unknown_atoms_have_no_weight(atom: Expr) -> None:
    """An atom without a row in the table is an error that names it."""
    with pytest.raises(RewriteError, match="has no weight"):
        weight((phi, atom))
