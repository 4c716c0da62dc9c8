# SPDX-License-Identifier: BSD-3-Clause
"""Left Horner: a sum of words -> an expression that applies each leading operator once.

A word acts on the vector at its right end, so words that begin with one operator are that operator
applied to the sum of their rests, and so on inward: A u + A v + B u becomes A(u + v) + B u.
Expressions are hash-consed and sums come in one order with one sign, so rests that agree up to a
factor are one node, computed once: in forward dynamics the innovations ε and ν come out shared.
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
from phistar.algebra.words import Word, Words, word_expr

Terms = Mapping[Word, Fraction]


def factor(words: Words) -> Expr:
    """The sum with its leading operators taken out, at every depth.

    Args:
        words: A vector or an operator, multiplied out.

    Returns:
        An equal expression, the same object whatever the order of the words.
    """
    return _horner(words.terms, words.codomain, words.domain)


def _horner(terms: Terms, codomain: Space, domain: Space) -> Expr:
    groups: dict[Expr, dict[Word, Fraction]] = {}
    alone: list[tuple[Fraction, Expr]] = []
    for word, coefficient in terms.items():
        if not word:
            alone.append((coefficient, identity(domain)))
        else:
            head, rest = _cut(word, domain)
            groups.setdefault(head, {})[rest] = coefficient
    parts = alone
    for head in sorted(groups, key=lambda head: _order(head, groups[head])):
        content, inner = _content(_horner(groups[head], head.domain, domain))
        parts.append((content, head @ inner))
    return add(parts, codomain, domain)


def _cut(word: Word, domain: Space) -> tuple[Expr, Word]:
    """The leading operator and the rest; forces on frames stay with the operator that takes them
    to the links, because frames have no sweeps in which a sum could be saved."""
    if len(word) == 2 and word[0].domain is TASK_FORCE:
        return word_expr(word, domain), ()
    return word[0], word[1:]


def _order(head: Expr, rests: Terms) -> tuple[int, str, str]:
    """Short words first, then by name: independent of the order of the words."""
    detail = head.name if isinstance(head, Symbol) else ""
    if isinstance(head, Let):
        detail = to_text(head.value)
    return max(len(rest) for rest in rests), to_text(head), detail


def _content(expr: Expr) -> tuple[Fraction, Expr]:
    """A factor and what is left: coprime whole coefficients, the first of them positive."""
    if not isinstance(expr, Sum) or not expr.terms:
        return Fraction(1), expr
    coefficients = [c for c, _ in expr.terms]
    top = gcd(*(c.numerator for c in coefficients))
    bottom = lcm(*(c.denominator for c in coefficients))
    content = Fraction(top if coefficients[0] > 0 else -top, bottom)
    return content, scale(1 / content, expr)


NAMES: Mapping[Expr, str] = {psi: "z", D.inv: "nu", psi.T: "alpha"}
"""What the papers call a vector that an operator has just given."""


def name_parts(expr: Expr) -> Expr:
    """An expression with the papers' names on its vectors: z = ψ…, ν = D⁻¹ε, α = ψ*…"""
    seen: dict[Expr, Expr] = {}

    def named(node: Expr) -> Expr:
        if node not in seen:
            seen[node] = _name_part(node, named)
        return seen[node]

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
        if operator in NAMES:
            result = let(NAMES[operator], result)
    return result
