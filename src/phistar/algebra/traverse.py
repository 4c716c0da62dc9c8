# SPDX-License-Identifier: BSD-3-Clause
"""Traversal of expressions: children, all nodes, substitution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from phistar.algebra.ir import Adjoint, Bracket, Expr, Inverse, Let, Product, Sum, add, bracket, let


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct subexpressions."""
    if isinstance(expr, Sum):
        return tuple(e for _, e in expr.terms)
    if isinstance(expr, Product):
        return expr.factors
    if isinstance(expr, (Adjoint, Inverse)):
        return (expr.of,)
    if isinstance(expr, Bracket):
        return (expr.argument,)
    return (expr.value,) if isinstance(expr, Let) else ()


def rebuild(expr: Expr, transform: Callable[[Expr], Expr]) -> Expr:
    """``expr`` with every child replaced; the same object if nothing changed."""
    if isinstance(expr, Sum):
        terms = ((c, transform(e)) for c, e in expr.terms)
        return add(terms, expr.codomain, expr.domain)
    if isinstance(expr, Product):
        result = transform(expr.factors[0])
        for factor in expr.factors[1:]:
            result = result @ transform(factor)
        return result
    if isinstance(expr, Adjoint):
        return transform(expr.of).T
    if isinstance(expr, Inverse):
        return transform(expr.of).inv
    if isinstance(expr, Bracket):
        return bracket(expr.kind, transform(expr.argument))
    return let(expr.name, transform(expr.value)) if isinstance(expr, Let) else expr


def nodes(exprs: Iterable[Expr]) -> Iterator[Expr]:
    """Every node of some expressions, each once."""
    stack, visited = list(exprs), set[Expr]()
    while stack:
        expr = stack.pop()
        if expr not in visited:
            visited.add(expr)
            yield expr
            stack.extend(children(expr))


def substitute(expr: Expr, replacements: Mapping[Expr, Expr]) -> Expr:
    """An expression with some of its nodes replaced by others of the same spaces."""
    results: dict[Expr, Expr] = dict(replacements)

    def replaced(node: Expr) -> Expr:
        if node not in results:
            results[node] = rebuild(node, replaced)
        return results[node]

    return replaced(expr)


def open_lets(expr: Expr) -> Expr:
    """An expression with every ``let`` replaced by its value."""
    results: dict[Expr, Expr] = {}

    def opened(node: Expr) -> Expr:
        if node not in results:
            inner = opened(node.value) if isinstance(node, Let) else rebuild(node, opened)
            results[node] = inner
        return results[node]

    return opened(expr)
