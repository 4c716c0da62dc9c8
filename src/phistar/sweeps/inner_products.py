# SPDX-License-Identifier: BSD-3-Clause
"""Numbers, such as ½ v*𝓜v: sums of products of two vectors, which sweeps compute.

A number is an expression from ONE to ONE. It is cut where a product passes through ONE, and each
piece x*Y into the vectors x and Y, as far to the right or left as is cheapest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from phistar.algebra.ir import Expr, IdentityOperator, Let, Product, Sum, product
from phistar.algebra.spaces import FORCE, JOINT, MOTION, ONE
from phistar.errors import LoweringError

DualPair = tuple[Expr, Expr]
"""Two vectors of dual spaces."""


@dataclass(frozen=True)
class InnerProductTerm:
    """A factor times a product of numbers, each of them a pair of vectors."""

    factor: Fraction
    pairs: tuple[DualPair, ...]


def inner_product_terms(
    expr: Expr, cost: Callable[[DualPair], float]
) -> tuple[InnerProductTerm, ...]:
    """A number as a sum of products of vectors.

    Args:
        expr: The number.
        cost: What a pair of vectors costs; infinite if it cannot be computed.

    Raises:
        LoweringError: A part of it is no product of two vectors that can be computed.
    """
    return tuple(_terms(expr, Fraction(1), cost))


def _terms(
    expr: Expr, factor: Fraction, cost: Callable[[DualPair], float]
) -> Iterator[InnerProductTerm]:
    if isinstance(expr, Sum):
        for coefficient, part in expr.terms:
            yield from _terms(part, factor * coefficient, cost)
    elif isinstance(expr, Let):
        yield from _terms(expr.value, factor, cost)
    elif isinstance(expr, IdentityOperator):
        yield InnerProductTerm(factor, ())
    elif isinstance(expr, Product):
        yield InnerProductTerm(factor, tuple(_cheapest(piece, cost) for piece in _pieces(expr)))
    else:
        raise LoweringError(f"{expr} is a number of its own, not a product of two vectors")


def _pieces(expr: Product) -> Iterator[tuple[Expr, ...]]:
    """The factors of a product, cut where it passes through ONE."""
    piece: list[Expr] = []
    for factor in expr.factors:
        piece.append(factor)
        if factor.domain is ONE:
            yield tuple(piece)
            piece = []


def _cheapest(piece: tuple[Expr, ...], cost: Callable[[DualPair], float]) -> DualPair:
    """The two vectors whose product a number is."""
    cuts = [k for k in range(1, len(piece)) if piece[k].codomain in (JOINT, MOTION, FORCE)]
    pairs = [(product(piece[:k], ONE).T, product(piece[k:], ONE)) for k in cuts]
    priced = [(cost(pair), number, pair) for number, pair in enumerate(pairs)]
    if not priced or min(priced)[0] == inf:
        raise LoweringError(
            f"{product(piece, ONE)} is no product of two vectors that can be computed link by link"
        )
    return min(priced)[2]
