# SPDX-License-Identifier: BSD-3-Clause
"""Rewriting sums of words by identities, with a trace; and the critical pairs of a set of rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from phistar.algebra.identities import WEIGHTS, Identity
from phistar.algebra.ir import Adjoint, Expr, Inverse, Product, Symbol
from phistar.algebra.words import Word, Words, to_words
from phistar.errors import RewriteError

MAX_STEPS = 100_000
"""Rule applications after which a set of rules is taken to loop."""

_ENDLESS = "rewriting did not end within {} steps; do rules loop?"


@dataclass(frozen=True)
class Rule:
    """An identity multiplied out: a word and the words that replace it."""

    identity: Identity
    lhs: Word
    rhs: Words

    @classmethod
    def of(cls, identity: Identity) -> Rule:
        """The rule of an identity.

        Raises:
            RewriteError: Its left side is not a single word, or its sides have different spaces.
        """
        left, right = to_words(identity.lhs), to_words(identity.rhs)
        if list(left.terms.values()) != [1] or () in left.terms:
            given = f"got {identity.lhs}"
            raise RewriteError(f"the left side of {identity.name} must be one word, {given}")
        if (left.codomain, left.domain) != (right.codomain, right.domain):
            raise RewriteError(f"the sides of {identity.name} map between different spaces")
        return cls(identity, next(iter(left)), right)


@dataclass(frozen=True)
class Step:
    """One rule application: which rule, on which word, and the whole sum afterwards."""

    identity: Identity
    word: Word
    result: Words


class Rewriter:
    """A set of rules and the normal forms found with it."""

    def __init__(self, identities: Sequence[Identity]) -> None:
        self.rules = tuple(Rule.of(identity) for identity in identities)
        self._starts: dict[Expr, list[Rule]] = {}
        for rule in self.rules:
            self._starts.setdefault(rule.lhs[0], []).append(rule)

    def find(self, word: Word) -> tuple[Rule, int] | None:
        """The first rule that applies to a word, and where."""
        for position, atom in enumerate(word):
            for rule in self._starts.get(atom, ()):
                if word[position : position + len(rule.lhs)] == rule.lhs:
                    return rule, position
        return None

    def steps(self, expr: Expr | Words) -> Iterator[Step]:
        """Rewrite to normal form, one rule application at a time.

        Raises:
            RewriteError: More than ``MAX_STEPS`` steps.
        """
        current = expr if isinstance(expr, Words) else to_words(expr)
        done: set[Word] = set()
        count = 0
        while found := self._next(current, done):
            if count == MAX_STEPS:
                raise RewriteError(_ENDLESS.format(count))
            word, rule, position = found
            current = apply(rule, current, word, position)
            count += 1
            yield Step(rule.identity, word, current)

    def _next(self, current: Words, done: set[Word]) -> tuple[Word, Rule, int] | None:
        for word in current:
            if word in done:
                continue
            found = self.find(word)
            if found is not None:
                return word, *found
            done.add(word)
        return None

    def normal_form(self, expr: Expr | Words) -> Words:
        """The sum of words to which no rule applies any more: where ``steps`` ends, faster.

        Raises:
            RewriteError: More than ``MAX_STEPS`` steps.
        """
        start = expr if isinstance(expr, Words) else to_words(expr)
        pending, done = dict(start.terms), dict[Word, Fraction]()
        count = 0
        while pending:
            word, factor = pending.popitem()
            found = self.find(word)
            if found is None:
                _add(done, word, factor)
                continue
            if count == MAX_STEPS:
                raise RewriteError(_ENDLESS.format(count))
            rule, position = found
            before, after = word[:position], word[position + len(rule.lhs) :]
            for middle, coefficient in rule.rhs.terms.items():
                _add(pending, before + middle + after, factor * coefficient)
            count += 1
        return Words(start.codomain, start.domain, done)


def _add(terms: dict[Word, Fraction], word: Word, factor: Fraction) -> None:
    """Add a multiple of a word to a sum; a word with nothing left of it goes."""
    total = terms.get(word, 0) + factor
    if total:
        terms[word] = total
    else:
        terms.pop(word, None)


def apply(rule: Rule, current: Words, word: Word, position: int) -> Words:
    """``current`` with one occurrence of a rule's left side in ``word`` replaced."""
    before, after = word[:position], word[position + len(rule.lhs) :]
    terms = dict(current.terms)
    factor = terms.pop(word)
    for middle, coefficient in rule.rhs.terms.items():
        new = before + middle + after
        terms[new] = terms.get(new, Fraction(0)) + factor * coefficient
    return Words(current.codomain, current.domain, {w: c for w, c in terms.items() if c})


def weight(word: Word, weights: Mapping[str, int] = WEIGHTS) -> int:
    """Weight of a word: it falls with every rule of a phase that has these weights.

    Raises:
        RewriteError: An atom is not made from symbols that have a weight.
    """
    return sum(_weight(atom, weights) for atom in word)


def _weight(atom: Expr, weights: Mapping[str, int]) -> int:
    inner = atom
    while isinstance(inner, (Adjoint, Inverse)):
        inner = inner.of
    if isinstance(inner, Product):
        return weight(inner.factors, weights)
    if not isinstance(inner, Symbol) or inner.name not in weights:
        raise RewriteError(f"{atom} has no weight; give its symbol one in WEIGHTS")
    return weights[inner.name]


@dataclass(frozen=True)
class CriticalPair:
    """A word that two rules rewrite differently."""

    first: Rule
    second: Rule
    word: Word
    left: Words
    right: Words


def critical_pairs(rules: Sequence[Rule]) -> Iterator[CriticalPair]:
    """Every overlap of two left sides: one's end is the other's start, or one holds the other."""
    for first in rules:
        for second in rules:
            for size in range(1, min(len(first.lhs), len(second.lhs))):
                if first.lhs[-size:] == second.lhs[:size]:
                    word = first.lhs + second.lhs[size:]
                    yield _pair(first, second, word, len(first.lhs) - size)
            if first is not second:
                for position in range(len(first.lhs) - len(second.lhs) + 1):
                    if first.lhs[position : position + len(second.lhs)] == second.lhs:
                        yield _pair(first, second, first.lhs, position)


def _pair(first: Rule, second: Rule, word: Word, position: int) -> CriticalPair:
    whole = Words(word[0].codomain, word[-1].domain, {word: Fraction(1)})
    left = apply(first, whole, word, 0)
    return CriticalPair(first, second, word, left, apply(second, whole, word, position))
