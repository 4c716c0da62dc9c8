# SPDX-License-Identifier: BSD-3-Clause
"""Theorems and symbols of an expression."""

from __future__ import annotations

from collections.abc import Iterable

from phistar.algebra.ir import Adjoint, Expr, IdentityOperator, Inverse, Product, Symbol
from phistar.algebra.proof import Theorem
from phistar.algebra.symbols import SYMBOLS
from phistar.algebra.traverse import nodes
from phistar.algorithms import catalogue as theorems
from phistar.algorithms.equations_of_motion import at_rest, in_motion


def theorems_in(exprs: Iterable[Expr]) -> list[Theorem]:
    """Theorems whose results occur in expressions, and those that they use."""
    every = list(nodes(exprs))
    known = theorems.catalogue()
    used = [
        t for t in known.values() if any(_occurs_in(every, form) for form in _result_variants(t))
    ]
    for theorem in used:
        used += [t for t in _theorems_used(theorem) if t not in used]
    return used


def symbols_in(exprs: Iterable[Expr]) -> list[str]:
    """Operators and vectors in expressions, in the order in which they are defined."""
    used = {node.name for node in nodes(exprs) if isinstance(node, Symbol)}
    return [name for name in SYMBOLS if name in used]


def _theorems_used(theorem: Theorem) -> list[Theorem]:
    known = theorems.catalogue()
    return [known[rule.name] for rule in theorem.rules if rule.name in known]


def _result_variants(theorem: Theorem) -> frozenset[Expr]:
    return frozenset({theorem.result, in_motion(theorem.result), at_rest(theorem.result)})


def _is_atom(expr: Expr) -> bool:
    """Whether it is a symbol, its adjoint or inverse: these do not identify a theorem."""
    while isinstance(expr, (Adjoint, Inverse)):
        expr = expr.of
    return isinstance(expr, (Symbol, IdentityOperator))


def _occurs_in(every: list[Expr], expr: Expr) -> bool:
    """Whether an expression is one of some nodes, or a sequence of factors in one of them."""
    if _is_atom(expr):
        return False
    run = expr.factors if isinstance(expr, Product) else (expr,)
    if len(run) == 1:
        return expr in every
    products = (node.factors for node in every if isinstance(node, Product))
    return any(
        factors[i : i + len(run)] == run
        for factors in products
        for i in range(len(factors) - len(run) + 1)
    )
