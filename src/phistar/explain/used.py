# SPDX-License-Identifier: BSD-3-Clause
"""What an expression is made of: the theorems behind it, and its symbols."""

from __future__ import annotations

from collections.abc import Iterable

from phistar.algebra.ir import Adjoint, Expr, Identity, Inverse, Product, Symbol
from phistar.algebra.proof import Theorem
from phistar.algebra.symbols import SYMBOLS
from phistar.algebra.traverse import nodes
from phistar.algorithms import catalogue as theorems
from phistar.algorithms.equations_of_motion import at_rest, in_motion


def theorems_in(exprs: Iterable[Expr]) -> list[Theorem]:
    """Theorems whose results occur in expressions, and those that they rest on."""
    every = list(nodes(exprs))
    known = theorems.catalogue()
    found = [t for t in known.values() if any(_holds(every, form) for form in _forms(t))]
    for theorem in found:
        found += [t for t in _rests_on(theorem) if t not in found]
    return found


def symbols_in(exprs: Iterable[Expr]) -> list[str]:
    """Operators and vectors in expressions, in the order in which they are defined."""
    used = {node.name for node in nodes(exprs) if isinstance(node, Symbol)}
    return [name for name in SYMBOLS if name in used]


def _rests_on(theorem: Theorem) -> list[Theorem]:
    known = theorems.catalogue()
    return [known[rule.name] for rule in theorem.rules if rule.name in known]


def _forms(theorem: Theorem) -> set[Expr]:
    return {theorem.result, in_motion(theorem.result), at_rest(theorem.result)}


def _is_atom(part: Expr) -> bool:
    """Whether it is a symbol, turned or inverted: it says nothing about where it came from."""
    while isinstance(part, (Adjoint, Inverse)):
        part = part.of
    return isinstance(part, (Symbol, Identity))


def _holds(every: list[Expr], part: Expr) -> bool:
    """Whether an expression is one of some nodes, or a run of factors in one of them."""
    if _is_atom(part):
        return False
    run = part.factors if isinstance(part, Product) else (part,)
    if len(run) == 1:
        return part in every
    products = (node.factors for node in every if isinstance(node, Product))
    return any(
        factors[i : i + len(run)] == run
        for factors in products
        for i in range(len(factors) - len(run) + 1)
    )
