# SPDX-License-Identifier: BSD-3-Clause
"""Rewriting sums of words by identities, with a trace; and the critical pairs of a set of rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from phistar.algebra.identities import Identity
from phistar.algebra.ir import Adjoint, Bracket, Expr, Inverse, Product, Symbol, bracket
from phistar.algebra.patterns import argument, filled, fit, is_schematic
from phistar.algebra.phases import WEIGHTS
from phistar.algebra.spaces import ONE
from phistar.algebra.words import Word, Words, to_words, word_expr
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

    @cached_property
    def schematic(self) -> bool:
        """Whether it has variables."""
        return is_schematic(self.lhs)

    def at(self, word: Word, position: int) -> Match | None:
        """What the rule does to a word at a place; None if it does not fit there."""
        if not self.schematic:
            stop = position + len(self.lhs)
            if word[position:stop] != self.lhs:
                return None
            return Match(self, position, stop, self.rhs.terms)
        fitted = fit(self.lhs, word, position)
        if fitted is None or not (self.identity.when is None or self.identity.when(fitted[1])):
            return None
        terms: dict[Word, Fraction] = {}
        for pattern, coefficient in self.rhs.terms.items():
            _add(terms, filled(pattern, fitted[1]), coefficient)
        return Match(self, position, fitted[0], terms)


@dataclass(frozen=True)
class Match:
    """A place in a word where a rule applies, and the words that replace what stands there."""

    rule: Rule
    start: int
    stop: int
    terms: Mapping[Word, Fraction]

    def results(self, word: Word) -> Iterator[tuple[Word, Fraction]]:
        """The words that the whole word becomes."""
        before, after = word[: self.start], word[self.stop :]
        for middle, coefficient in self.terms.items():
            yield before + middle + after, coefficient


@dataclass(frozen=True)
class Step:
    """One rule application: which rule, on which word, and the whole sum afterwards."""

    identity: Identity
    word: Word
    result: Words


class Rewriter:
    """A set of rules and the normal forms found with it.

    Args:
        identities: The rows.
        deep: Whether to rewrite in the arguments of brackets too.
    """

    def __init__(self, identities: Sequence[Identity], deep: bool = False) -> None:
        self.rules = tuple(Rule.of(identity) for identity in identities)
        self.deep = deep
        self._starts: dict[Expr | str, list[Rule]] = {}
        for rule in self.rules:
            first = rule.lhs[0]
            key = first.kind if isinstance(first, Bracket) and rule.schematic else first
            self._starts.setdefault(key, []).append(rule)

    def find(self, word: Word) -> Match | None:
        """The first rule that applies to a word, where, and what it makes of it."""
        for position, atom in enumerate(word):
            for rule in self._starts.get(atom, ()):
                if found := rule.at(word, position):
                    return found
            if isinstance(atom, Bracket):
                for rule in self._starts.get(atom.kind, ()):
                    if found := rule.at(word, position):
                        return found
                if self.deep and (found := self._inside(atom, position)):
                    return found
        return None

    def _inside(self, atom: Bracket, position: int) -> Match | None:
        """The first rule that applies to the argument of a bracket."""
        inner = argument(atom)
        found = self.find(inner)
        if found is None:
            return None
        terms: dict[Word, Fraction] = {
            (bracket(atom.kind, word_expr(word, ONE)),): coefficient
            for word, coefficient in found.results(inner)
        }
        return Match(found.rule, position, position + 1, terms)

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
            word, match = found
            current = _replace(current, word, match)
            count += 1
            yield Step(match.rule.identity, word, current)

    def _next(self, current: Words, done: set[Word]) -> tuple[Word, Match] | None:
        for word in current:
            if word in done:
                continue
            found = self.find(word)
            if found is not None:
                return word, found
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
            for new, coefficient in found.results(word):
                _add(pending, new, factor * coefficient)
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
    """``current`` with one occurrence of a rule's left side in ``word`` replaced.

    Raises:
        RewriteError: The rule does not apply there.
    """
    match = rule.at(word, position)
    if match is None:
        where = f"at atom {position} of {word_expr(word, current.domain)}"
        raise RewriteError(f"{rule.identity.name} does not apply {where}")
    return _replace(current, word, match)


def _replace(current: Words, word: Word, match: Match) -> Words:
    terms = dict(current.terms)
    factor = terms.pop(word)
    for new, coefficient in match.results(word):
        _add(terms, new, factor * coefficient)
    return Words(current.codomain, current.domain, terms)


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
