# SPDX-License-Identifier: BSD-3-Clause
"""Sums of words: expressions multiplied out, the form in which rules act and equality is decided.

A word is a product of atoms (symbols, their adjoints and inverses, brackets, lets); the empty word
is the identity. Words grow exponentially with nested sums, so lowering never uses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from phistar.algebra.ir import (
    Bracket,
    Expr,
    IdentityOperator,
    Product,
    Sum,
    add,
    bracket,
    identity,
    product,
)
from phistar.algebra.spaces import ONE, Space
from phistar.errors import SpaceError

Word = tuple[Expr, ...]


@dataclass(frozen=True)
class WordSum:
    """A sum of words with exact coefficients, none of them zero.

    Attributes:
        codomain, domain: Spaces of every word.
        terms: Coefficient of each word.
    """

    codomain: Space
    domain: Space
    terms: Mapping[Word, Fraction]

    def __add__(self, other: WordSum) -> WordSum:
        return self._combine(other, Fraction(1))

    def __sub__(self, other: WordSum) -> WordSum:
        return self._combine(other, Fraction(-1))

    def _combine(self, other: WordSum, factor: Fraction) -> WordSum:
        if (self.codomain, self.domain) != (other.codomain, other.domain):
            spaces = f"from {self.domain.reads} to {self.codomain.reads}"
            others = f"from {other.domain.reads} to {other.codomain.reads}"
            raise SpaceError(f"cannot combine words that map {spaces} and words that map {others}")
        total = dict(self.terms)
        for word, coefficient in other.terms.items():
            total[word] = total.get(word, Fraction(0)) + factor * coefficient
        return WordSum(self.codomain, self.domain, {w: c for w, c in total.items() if c})

    def __len__(self) -> int:
        return len(self.terms)

    def __iter__(self) -> Iterator[Word]:
        return iter(self.terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WordSum) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Space, Space, frozenset[tuple[Word, Fraction]]]:
        return self.codomain, self.domain, frozenset(self.terms.items())

    def expr(self) -> Expr:
        """The same sum as an expression."""
        terms = ((c, word_expr(w, self.domain)) for w, c in self.terms.items())
        return add(terms, self.codomain, self.domain)


def word_expr(word: Word, space: Space) -> Expr:
    """A word as an expression; the empty one is the identity on ``space``."""
    return product(word, space) if word else identity(space)


def word_count(expr: Expr) -> int:
    """Number of words of an expression when multiplied out, before cancellation; cheap."""
    if isinstance(expr, Sum):
        return sum(word_count(term) for _, term in expr.terms)
    if isinstance(expr, Product):
        return prod(word_count(factor) for factor in expr.factors)
    return word_count(expr.argument) if isinstance(expr, Bracket) else 1


def to_words(expr: Expr) -> WordSum:
    """An expression multiplied out."""
    return WordSum(expr.codomain, expr.domain, _multiply_out(expr, {}))


def _multiply_out(expr: Expr, cache: dict[Expr, dict[Word, Fraction]]) -> dict[Word, Fraction]:
    if expr in cache:
        return cache[expr]
    terms: dict[Word, Fraction] = {}
    if isinstance(expr, IdentityOperator):
        terms = {(): Fraction(1)}
    elif isinstance(expr, Sum):
        for factor, node in expr.terms:
            for word, coefficient in _multiply_out(node, cache).items():
                terms[word] = terms.get(word, Fraction(0)) + factor * coefficient
    elif isinstance(expr, Product):
        terms = {(): Fraction(1)}
        for node in expr.factors:
            terms = _times(terms, _multiply_out(node, cache))
    elif isinstance(expr, Bracket):
        for word, coefficient in _multiply_out(expr.argument, cache).items():
            terms[(bracket(expr.kind, word_expr(word, ONE)),)] = coefficient
    else:
        terms = {(expr,): Fraction(1)}
    cache[expr] = {word: c for word, c in terms.items() if c}
    return cache[expr]


def _times(left: dict[Word, Fraction], right: dict[Word, Fraction]) -> dict[Word, Fraction]:
    result: dict[Word, Fraction] = {}
    for first, a in left.items():
        for second, b in right.items():
            word = first + second
            result[word] = result.get(word, Fraction(0)) + a * b
    return result
