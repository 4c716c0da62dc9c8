# SPDX-License-Identifier: BSD-3-Clause
"""Vectors -> sums of words of bounded size, over named leaves.

Multiplying out is exponential in nested sums: 𝓜⁻ᵏτ has 4ᵏ words. Here a vector becomes a named leaf
as soon as an operator would multiply it beyond ``MAX_WORDS_EXPANDED`` words. A ``let`` stays closed
if it is not linear (its value holds a bracket) or is the argument of a bracket; other lets are
opened, because identities connect what is inside with what is outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from phistar.algebra.ir import Bracket, Expr, IdentityOperator, Let, Product, Sum, bracket, let
from phistar.algebra.spaces import ONE, Space
from phistar.algebra.traverse import nodes, rebuild
from phistar.algebra.words import Word, WordSum

MAX_WORDS_EXPANDED = 64
"""Words beyond which a vector is not multiplied out further."""

WordTerms = dict[Word, Fraction]


@dataclass(frozen=True)
class BoundedSums:
    """Vectors as sums of words over leaves.

    Attributes:
        outputs: The vectors.
        leaves: Values of the lets that occur as leaves, each after those that it uses.
    """

    outputs: Mapping[str, WordSum]
    leaves: Mapping[Let, WordSum]

    def __iter__(self) -> Iterator[tuple[str | Let, WordSum]]:
        yield from self.leaves.items()
        yield from self.outputs.items()


def expand_bounded(outputs: Mapping[str, Expr], growth: Mapping[Expr, int]) -> BoundedSums:
    """Multiply vectors out as far as they stay small.

    Args:
        outputs: Vector expressions by name.
        growth: For atoms that rules will unfold, the number of words they become.
    """
    cutter = _Expander(outputs.values(), growth)
    words = {name: cutter.words(expr) for name, expr in outputs.items()}
    return BoundedSums(words, cutter.leaves)


class _Expander:
    """The leaves so far, and the words of every vector."""

    def __init__(self, exprs: Iterable[Expr], growth: Mapping[Expr, int]) -> None:
        self.growth = growth
        self.leaves: dict[Let, WordSum] = {}
        everything = list(nodes(exprs))
        arguments = [node.argument for node in everything if isinstance(node, Bracket)]
        self._in_brackets = set(nodes(arguments))
        self._vectors: dict[Expr, WordTerms] = {}

    def words(self, expr: Expr) -> WordSum:
        """A vector as a sum of words."""
        return WordSum(expr.codomain, ONE, self._vector(expr))

    def _vector(self, expr: Expr) -> WordTerms:
        if expr not in self._vectors:
            self._vectors[expr] = self._multiply_out(expr)
        return self._vectors[expr]

    def _multiply_out(self, expr: Expr) -> WordTerms:
        if isinstance(expr, Let):
            words = self.words(expr.value)
            return self._leaf(expr.name, words) if self._closed(expr) else dict(words.terms)
        if isinstance(expr, Sum):
            return _linear_combination((c, self._vector(term)) for c, term in expr.terms)
        if isinstance(expr, Product):
            vector = self._vector(expr.factors[-1])
            for operator in reversed(expr.factors[:-1]):
                vector = self._apply(operator, vector)
            return vector
        return {() if isinstance(expr, IdentityOperator) else (expr,): Fraction(1)}

    def _closed(self, node: Let) -> bool:
        return node in self._in_brackets or any(isinstance(n, Bracket) for n in nodes((node,)))

    def _leaf(self, name: str, words: WordSum) -> WordTerms:
        leaf = let(name, words.expr())
        self.leaves.setdefault(leaf, words)
        return {(leaf,): Fraction(1)}

    def _apply(self, operator: Expr, vector: WordTerms) -> WordTerms:
        """An operator applied to a sum of words."""
        if isinstance(operator, IdentityOperator):
            return vector
        if isinstance(operator, Sum):
            vector = self._bounded(vector, operator.domain, len(operator.terms))
            return _linear_combination((c, self._apply(term, vector)) for c, term in operator.terms)
        if isinstance(operator, Product):
            for factor in reversed(operator.factors):
                vector = self._apply(factor, vector)
            return vector
        plain = open_operator_lets(operator)
        if plain is not operator:
            return self._apply(plain, vector)
        if isinstance(operator, Bracket):
            operator = bracket(operator.kind, self._argument(operator.argument))
        vector = self._bounded(vector, operator.domain, self.growth.get(operator, 1))
        return {(operator, *word): c for word, c in vector.items()}

    def _bounded(self, vector: WordTerms, space: Space, times: int) -> WordTerms:
        """A vector that may be multiplied: itself, or a name for it."""
        size = sum(prod(self.growth.get(atom, 1) for atom in word) for word in vector)
        if times == 1 or size <= 1 or size * times <= MAX_WORDS_EXPANDED:
            return vector
        return self._leaf("y", WordSum(space, ONE, vector))

    def _argument(self, expr: Expr) -> Expr:
        """The argument of a bracket as one leaf."""
        terms = self._vector(expr)
        atoms = [word[0] for word, c in terms.items() if len(word) == 1 and c == 1]
        if len(terms) == len(atoms) == 1:
            return atoms[0]
        ((leaf,),) = self._leaf("x", WordSum(expr.codomain, ONE, terms))
        return leaf


def open_operator_lets(operator: Expr) -> Expr:
    """An operator with the operators that it names put in; vectors stay named."""
    if isinstance(operator, Let):
        return operator if operator.domain is ONE else open_operator_lets(operator.value)
    return operator if isinstance(operator, Bracket) else rebuild(operator, open_operator_lets)


def _linear_combination(parts: Iterable[tuple[Fraction, WordTerms]]) -> WordTerms:
    total: WordTerms = {}
    for factor, terms in parts:
        for word, coefficient in terms.items():
            total[word] = total.get(word, Fraction(0)) + factor * coefficient
    return {word: coefficient for word, coefficient in total.items() if coefficient}
