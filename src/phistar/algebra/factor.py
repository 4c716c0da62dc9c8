# SPDX-License-Identifier: BSD-3-Clause
"""Left Horner: a sum of words -> an expression that applies each leading operator once.

A word acts on the vector at its right end, so words that begin with one operator are that operator
applied to the sum of their remainders, recursively: A u + A v + B u becomes A(u + v) + B u.
Expressions are hash-consed and sums have one order and sign, so remainders that agree up to a
factor are one node, computed once: in forward dynamics the innovations ε and ν are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import gcd, lcm

from phistar.algebra.ir import Expr, Let, Product, Sum, Symbol, add, identity, let, scale
from phistar.algebra.printing import to_text
from phistar.algebra.spaces import TASK_FORCE, Space
from phistar.algebra.symbols import D, psi
from phistar.algebra.traverse import rebuild
from phistar.algebra.words import Word, WordSum, word_expr

WordTerms = Mapping[Word, Fraction]


def factor(words: WordSum) -> Expr:
    """The sum with its leading operators factored out, at every depth.

    Args:
        words: A vector or an operator, multiplied out.

    Returns:
        An equal expression, the same object whatever the order of the words.
    """
    return _horner(words.terms, words.codomain, words.domain)


def _horner(terms: WordTerms, codomain: Space, domain: Space) -> Expr:
    groups: dict[Expr, dict[Word, Fraction]] = {}
    terms_out: list[tuple[Fraction, Expr]] = []
    for word, coefficient in terms.items():
        if not word:
            terms_out.append((coefficient, identity(domain)))
        else:
            head, tail = _leading_operator(word, domain)
            groups.setdefault(head, {})[tail] = coefficient
    for head in sorted(groups, key=lambda head: _order(head, groups[head])):
        content, inner = _primitive_part(_horner(groups[head], head.domain, domain))
        terms_out.append((content, head @ inner))
    return add(terms_out, codomain, domain)


def _leading_operator(word: Word, domain: Space) -> tuple[Expr, Word]:
    """The leading operator and the remainder; forces on frames stay with the operator that takes
    them to the links, because frames have no sweeps to save."""
    if len(word) == 2 and word[0].domain is TASK_FORCE:
        return word_expr(word, domain), ()
    return word[0], word[1:]


def _order(head: Expr, rests: WordTerms) -> tuple[int, str, str]:
    """Short words first, then by name: independent of the order of the words."""
    detail = head.name if isinstance(head, Symbol) else ""
    if isinstance(head, Let):
        detail = to_text(head.value)
    return max(len(rest) for rest in rests), to_text(head), detail


def _primitive_part(expr: Expr) -> tuple[Fraction, Expr]:
    """A factor and the primitive part: coprime integer coefficients, the first one positive."""
    if not isinstance(expr, Sum) or not expr.terms:
        return Fraction(1), expr
    coefficients = [c for c, _ in expr.terms]
    top = gcd(*(c.numerator for c in coefficients))
    bottom = lcm(*(c.denominator for c in coefficients))
    content = Fraction(top if coefficients[0] > 0 else -top, bottom)
    return content, scale(1 / content, expr)


VECTOR_NAMES: Mapping[Expr, str] = {psi: "z", D.inv: "nu", psi.T: "alpha"}
"""Names of the papers for the result of an operator."""


def name_intermediates(expr: Expr) -> Expr:
    """An expression with the papers' names on its vectors: z = ψ…, ν = D⁻¹ε, α = ψ*…"""
    cache: dict[Expr, Expr] = {}

    def named(node: Expr) -> Expr:
        if node not in cache:
            cache[node] = _name_part(node, named)
        return cache[node]

    return named(expr)


def _name_part(node: Expr, named: Callable[[Expr], Expr]) -> Expr:
    if isinstance(node, Let):
        value = named(node.value)
        return let(node.name, value.value if isinstance(value, Let) else value)
    if not isinstance(node, Product):
        return rebuild(node, named)
    result = named(node.factors[-1])
    for operator in reversed(node.factors[:-1]):
        if operator is D.inv and isinstance(result, (Sum, Product)):
            result = let("epsilon", result)
        result = named(operator) @ result
        if operator in VECTOR_NAMES:
            result = let(VECTOR_NAMES[operator], result)
    return result
