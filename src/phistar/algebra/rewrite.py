# SPDX-License-Identifier: BSD-3-Clause
"""Rewriting sums of words by identities, with a trace; and the critical pairs of a set of rules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from phistar.algebra.identities import Identity
from phistar.algebra.ir import Adjoint, Bracket, Expr, Inverse, Product, Symbol, bracket
from phistar.algebra.matching import bracket_argument, instantiate, is_schematic, match_word
from phistar.algebra.phases import WEIGHTS
from phistar.algebra.spaces import ONE
from phistar.algebra.words import Word, WordSum, to_words, word_expr
from phistar.errors import RewriteError

MAX_STEPS = 100_000
"""Rule applications after which rules are assumed to loop."""

MAX_ATOMS = 10_000_000
"""Atoms in all words of a trace, some hundred megabytes."""

_ENDLESS_TEXT = "rewriting did not end within {} steps; do rules loop?"


@dataclass(frozen=True)
class Rule:
    """An identity multiplied out: a word and the words that replace it."""

    identity: Identity
    lhs: Word
    rhs: WordSum

    @classmethod
    def of(cls, identity: Identity) -> Rule:
        """The rule of an identity.

        Raises:
            RewriteError: Its left side is not a single word.
        """
        left, right = to_words(identity.lhs), to_words(identity.rhs)
        if list(left.terms.values()) != [1] or () in left.terms:
            given = f"got {identity.lhs}"
            raise RewriteError(f"the left side of {identity.name} must be one word, {given}")
        return cls(identity, next(iter(left)), right)

    @cached_property
    def schematic(self) -> bool:
        """Whether it has variables."""
        return is_schematic(self.lhs)

    def at(self, word: Word, position: int) -> Match | None:
        """Match of the rule in a word at a position; None if it does not match there."""
        if not self.schematic:
            stop = position + len(self.lhs)
            if word[position:stop] != self.lhs:
                return None
            return Match(self, position, stop, self.rhs.terms)
        fitted = match_word(self.lhs, word, position)
        if fitted is None or not (self.identity.when is None or self.identity.when(fitted[1])):
            return None
        terms: dict[Word, Fraction] = {}
        for pattern, coefficient in self.rhs.terms.items():
            _add(terms, instantiate(pattern, fitted[1]), coefficient)
        return Match(self, position, fitted[0], terms)


@dataclass(frozen=True)
class Match:
    """An occurrence of a rule in a word, and the words that replace it."""

    rule: Rule
    start: int
    stop: int
    terms: Mapping[Word, Fraction]

    def results(self, word: Word) -> Iterator[tuple[Word, Fraction]]:
        """The words that replace the full word."""
        head, tail = word[: self.start], word[self.stop :]
        for middle, coefficient in self.terms.items():
            yield head + middle + tail, coefficient


@dataclass(frozen=True, slots=True)
class RewriteStep:
    """One rule application: the replaced word, not the sum, as there may be thousands of steps.

    Attributes:
        word: The word that a rule was applied to.
        match: The rule, the position in the word and the replacement.
    """

    word: Word
    match: Match

    @property
    def identity(self) -> Identity:
        """The rule."""
        return self.match.rule.identity

    def results(self) -> Iterator[tuple[Word, Fraction]]:
        """The words that replace the full word."""
        return self.match.results(self.word)


@dataclass(frozen=True)
class RewriteTrace:
    """The steps by which a sum of words was rewritten.

    Attributes:
        start: The sum before.
        steps: Every rule application, in order.
        end: The sum after the last.
        stopped: Why the steps end before a normal form; else empty.
    """

    start: WordSum
    steps: tuple[RewriteStep, ...]
    end: WordSum
    stopped: str = ""

    def sums(self) -> Iterator[Mapping[Word, Fraction]]:
        """The sum after each step; one mapping, updated in place."""
        terms = dict(self.start.terms)
        for step in self.steps:
            factor = terms.pop(step.word)
            for new, coefficient in step.results():
                _add(terms, new, factor * coefficient)
            yield terms

    def then(self, other: RewriteTrace) -> RewriteTrace:
        """This trace and one that begins where it ends."""
        return RewriteTrace(self.start, self.steps + other.steps, other.end, other.stopped)


class Rewriter:
    """A set of rules, and rewriting by it.

    Args:
        identities: The rows.
        deep: Whether to rewrite in the arguments of brackets too.
    """

    def __init__(self, identities: Sequence[Identity], deep: bool = False) -> None:
        self.rules = tuple(Rule.of(identity) for identity in identities)
        self.deep = deep
        self._rules_by_first_atom: dict[Expr | str, list[Rule]] = {}
        for rule in self.rules:
            first = rule.lhs[0]
            key = first.kind if isinstance(first, Bracket) and rule.schematic else first
            self._rules_by_first_atom.setdefault(key, []).append(rule)

    def find(self, word: Word) -> Match | None:
        """The match of the first rule that applies to a word."""
        for position, atom in enumerate(word):
            for rule in self._rules_by_first_atom.get(atom, ()):
                if match := rule.at(word, position):
                    return match
            if isinstance(atom, Bracket):
                for rule in self._rules_by_first_atom.get(atom.kind, ()):
                    if match := rule.at(word, position):
                        return match
                if self.deep and (match := self._inside(atom, position)):
                    return match
        return None

    def _inside(self, atom: Bracket, position: int) -> Match | None:
        """The first rule that applies to the argument of a bracket."""
        inner = bracket_argument(atom)
        match = self.find(inner)
        if match is None:
            return None
        terms: dict[Word, Fraction] = {
            (bracket(atom.kind, word_expr(word, ONE)),): coefficient
            for word, coefficient in match.results(inner)
        }
        return Match(match.rule, position, position + 1, terms)

    def steps(self, expr: Expr | WordSum) -> tuple[RewriteStep, ...]:
        """Rewrite to normal form, one rule application at a time.

        Raises:
            RewriteError: More than ``MAX_STEPS`` steps, or ``MAX_ATOMS`` atoms.
        """
        trace = self.trace(expr)
        if trace.stopped:
            raise RewriteError(_ENDLESS_TEXT.format(len(trace.steps)))
        return trace.steps

    def trace(self, expr: Expr | WordSum) -> RewriteTrace:
        """The steps to normal form; a trace that gets too long stops with a reason.

        The words of a sum are rewritten in the order in which they came into it.
        """
        start = expr if isinstance(expr, WordSum) else to_words(expr)
        terms, steps, atoms = dict(start.terms), list[RewriteStep](), 0
        pending, irreducible = OrderedDict.fromkeys(terms), set[Word]()
        stopped = ""
        while pending:
            word, _ = pending.popitem(last=False)
            match = self.find(word)
            if match is None:
                irreducible.add(word)
                continue
            if len(steps) == MAX_STEPS or atoms > MAX_ATOMS:
                stopped = f"stopped after {len(steps)} steps, at a sum of {len(terms)} words"
                break
            step = RewriteStep(word, match)
            steps.append(step)
            factor = terms.pop(word)
            for new, coefficient in step.results():
                atoms += len(new)
                _add(terms, new, factor * coefficient)
                if new not in terms:
                    pending.pop(new, None)
                elif new not in irreducible:
                    pending.setdefault(new)
        end = WordSum(start.codomain, start.domain, terms)
        return RewriteTrace(start, tuple(steps), end, stopped)

    def normal_form(self, expr: Expr | WordSum) -> WordSum:
        """The sum of words to which no rule applies: the end of ``steps``, faster.

        Raises:
            RewriteError: More than ``MAX_STEPS`` steps.
        """
        start = expr if isinstance(expr, WordSum) else to_words(expr)
        pending, irreducible = dict(start.terms), dict[Word, Fraction]()
        count = 0
        while pending:
            word, factor = pending.popitem()
            match = self.find(word)
            if match is None:
                _add(irreducible, word, factor)
                continue
            if count == MAX_STEPS:
                raise RewriteError(_ENDLESS_TEXT.format(count))
            for new, coefficient in match.results(word):
                _add(pending, new, factor * coefficient)
            count += 1
        return WordSum(start.codomain, start.domain, irreducible)


def _add(terms: dict[Word, Fraction], word: Word, factor: Fraction) -> None:
    """Add a multiple of a word to a sum; a zero coefficient removes the word."""
    total = terms.get(word, 0) + factor
    if total:
        terms[word] = total
    else:
        terms.pop(word, None)


def apply_rule(rule: Rule, current: WordSum, word: Word, position: int) -> WordSum:
    """``current`` with one occurrence of a rule's left side in ``word`` replaced.

    Raises:
        RewriteError: The rule does not apply there.
    """
    match = rule.at(word, position)
    if match is None:
        where = f"at atom {position} of {word_expr(word, current.domain)}"
        raise RewriteError(f"{rule.identity.name} does not apply {where}")
    return _replace(current, word, match)


def _replace(current: WordSum, word: Word, match: Match) -> WordSum:
    terms = dict(current.terms)
    factor = terms.pop(word)
    for new, coefficient in match.results(word):
        _add(terms, new, factor * coefficient)
    return WordSum(current.codomain, current.domain, terms)


def weight(word: Word, weights: Mapping[str, int] = WEIGHTS) -> int:
    """Weight of a word: it decreases with every rule of a phase that has these weights.

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
    left: WordSum
    right: WordSum


def critical_pairs(rules: Sequence[Rule]) -> Iterator[CriticalPair]:
    """Every overlap of two left sides: one's end is the other's start, or one holds the other."""
    for first in rules:
        for second in rules:
            for size in range(1, min(len(first.lhs), len(second.lhs))):
                if first.lhs[-size:] == second.lhs[:size]:
                    word = first.lhs + second.lhs[size:]
                    yield _critical_pair(first, second, word, len(first.lhs) - size)
            if first is not second:
                for position in range(len(first.lhs) - len(second.lhs) + 1):
                    if first.lhs[position : position + len(second.lhs)] == second.lhs:
                        yield _critical_pair(first, second, first.lhs, position)


def _critical_pair(first: Rule, second: Rule, word: Word, position: int) -> CriticalPair:
    start = WordSum(word[0].codomain, word[-1].domain, {word: Fraction(1)})
    left = apply_rule(first, start, word, 0)
    return CriticalPair(first, second, word, left, apply_rule(second, start, word, position))
