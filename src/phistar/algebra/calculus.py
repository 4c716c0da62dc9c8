# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of operator expressions, in link axes, by the product rule.

In its own axes a link's joint map H and inertia M never change, only the way between links does:

    δEφ = Eφ crf[H*δ]      δφ = φ Eφ crf[H*δ] φ      δγ = -crm[H*δ] γ

where δ, a joint vector, is the direction in which the configuration moves: each joint transform
X_J(q) is followed by exp(H*δ). There are two ways to use that. ``derivative`` is along a direction,
for operators as for vectors, and may go through articulated inertias. ``gradient`` is the operator
from all directions to the change of a vector: its product with a direction is the derivative
(forward mode), its adjoint times a weight the gradient of a scalar (reverse mode).

In inertial axes it is the other way round: Eφ, φ and γ stay, H and M turn with their links, which
move by Δ = φ*H*δ. The two derivatives of an operator X differ by a commutator,

    δ_I X = δ X + [rigid, X]      rigid = crm[Δ] on motions, crf[Δ] on forces, 0 on joint vectors,

so they are the same for whatever maps joint vectors to joint vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from phistar.algebra.ir import (
    Adjoint,
    Bracket,
    Expr,
    Identity,
    Inverse,
    Let,
    Product,
    Q,
    Sum,
    Symbol,
    add,
    bracket,
    crf,
    crm,
    identity,
    product,
    zero,
)
from phistar.algebra.spaces import FORCE, JOINT, MOTION, ONE
from phistar.algebra.symbols import (
    RATES_OF_P,
    A,
    E_phi,
    G,
    H,
    M,
    P,
    P_dot,
    Riccati,
    dq,
    entry,
    gravity,
    phi,
    psi,
    unfolded,
    v,
    vdot,
)
from phistar.errors import LoweringError, SpaceError

CONFIGURATION = "q"
"""The name by which derivatives with respect to the configuration are asked for."""

Variable = Symbol | str
Axes = Literal["link", "inertial"]

_VARIES = ("E_phi", "phi", "gravity")
"""Base symbols that depend on the configuration, in link axes."""


def derivative(expr: Expr, changes: Mapping[Variable, Expr], axes: Axes = "link") -> Expr:
    """The derivative of an expression along a direction.

    Args:
        expr: An operator or a vector.
        changes: The direction: for vector symbols the vectors by which they change, for ``"q"`` the
            joint vector along which the configuration moves.
        axes: In which axes vectors that do not change are held, ``"link"`` or ``"inertial"``.

    Returns:
        An expression between the same spaces. Articulated inertias change by the symbol ``P_dot``,
        which is their change along ``dq``; so they need ``dq`` as the direction of ``"q"``.

    Raises:
        SpaceError: A change is not of the space of what it changes.
        LoweringError: A symbol has no derivative.
    """
    for variable, change in changes.items():
        space = JOINT if isinstance(variable, str) else variable.codomain
        if (change.codomain, change.domain) != (space, ONE):
            raise SpaceError(f"{variable} changes by a vector of {space.reads}, not by {change}")
    return (_Derivation if axes == "link" else _InertialDerivation)(changes).of(expr)


def rate(expr: Expr) -> Expr:
    """The time derivative, in link axes: the configuration moves along v, and v by vdot."""
    return derivative(expr, {CONFIGURATION: v, v: vdot})


class _Derivation:
    """The derivatives along one direction that were found so far."""

    def __init__(self, changes: Mapping[Variable, Expr]) -> None:
        self.leaves = {x: change for x, change in changes.items() if isinstance(x, Symbol)}
        self.direction = changes.get(CONFIGURATION)
        self.seen: dict[Expr, Expr] = {}

    def of(self, expr: Expr) -> Expr:
        if expr not in self.seen:
            self.seen[expr] = self._of(expr)
        return self.seen[expr]

    def _of(self, expr: Expr) -> Expr:
        if isinstance(expr, Symbol):
            return self._symbol(expr)
        if isinstance(expr, Identity):
            return zero(expr.codomain, expr.domain)
        if isinstance(expr, Adjoint):
            return self.of(expr.of).T
        if isinstance(expr, Inverse):
            return -(expr @ self.of(expr.of) @ expr)
        if isinstance(expr, Let):
            return self.of(expr.value)
        if isinstance(expr, Bracket):
            return bracket(expr.kind, self.of(expr.argument))
        if isinstance(expr, Sum):
            terms = ((c, self.of(e)) for c, e in expr.terms)
            return add(terms, expr.codomain, expr.domain)
        assert isinstance(expr, Product)
        return self._product(expr)

    def _product(self, expr: Product) -> Expr:
        terms = []
        for i, factor in enumerate(expr.factors):
            changed = self.of(factor)
            if not is_zero(changed):
                factors = (*expr.factors[:i], changed, *expr.factors[i + 1 :])
                terms.append((1, product(factors, expr.domain)))
        return add(terms, expr.codomain, expr.domain)  # type: ignore[arg-type]

    def _symbol(self, node: Symbol) -> Expr:
        nothing = zero(node.codomain, node.domain)
        if node in self.leaves:
            return self.leaves[node]
        definition = entry(node).definition
        if definition is None and (self.direction is None or node.name not in _VARIES):
            return nothing
        if self.direction is None:
            return self.of(definition) if isinstance(definition, Expr) else self._held(node)
        moved = H.T @ self.direction
        if node is E_phi:
            return E_phi @ crf(moved)
        if node is phi:
            return phi @ E_phi @ crf(moved) @ phi
        if node is gravity:
            return -(crm(moved) @ gravity)
        if node is psi:
            return psi @ self.of(E_phi - E_phi @ G @ H) @ psi
        if isinstance(definition, Riccati) and self.direction in RATES_OF_P:
            return RATES_OF_P[self.direction]
        if isinstance(definition, Expr):
            return self.of(definition)
        raise LoweringError(
            f"{node} has no derivative along {self.direction}: only the articulated inertia {P} "
            f"has a symbol for it, {P_dot}, along {dq}"
        )

    def _held(self, node: Symbol) -> Expr:
        """A symbol with a recursion that no vector in the direction enters."""
        _refuse(node, self.leaves)
        return zero(node.codomain, node.domain)


def _refuse(node: Symbol, variables: Iterable[Symbol]) -> None:
    """Raise if a recursion depends on one of some vectors."""
    inside = set(unfolded([node]))
    for variable in variables:
        if variable in inside:
            raise LoweringError(f"{node} is a recursion over {variable}; it has no derivative rule")


class _InertialDerivation(_Derivation):
    """The same in inertial axes."""

    def _symbol(self, node: Symbol) -> Expr:
        if self.direction is None:
            return super()._symbol(node)
        if node.domain is ONE or node in (E_phi, phi, A):
            return self.leaves.get(node, zero(node.codomain, node.domain))
        if node in (H, M, P):
            return super()._symbol(node) + turning(node, self.direction)
        if node is psi or isinstance(entry(node).definition, Expr):
            return super()._symbol(node)
        raise LoweringError(f"{node} has no derivative in inertial axes; take it in link axes")


def turning(expr: Expr, direction: Expr) -> Expr:
    """What a derivative in inertial axes has more than one in link axes: [rigid, X]."""
    moved = phi.T @ H.T @ direction
    rigid = {MOTION: crm(moved), FORCE: crf(moved)}
    nothing = zero(expr.codomain, expr.domain)
    left = rigid[expr.codomain] @ expr if expr.codomain in rigid else nothing
    right = expr @ rigid[expr.domain] if expr.domain in rigid else nothing
    return left - right


def is_zero(expr: Expr) -> bool:
    """Whether an expression is the empty sum."""
    return isinstance(expr, Sum) and not expr.terms


def gradient(expr: Expr, variable: Variable) -> Expr:
    """The operator from joint directions to the change of a vector, in link axes.

    Args:
        expr: A vector.
        variable: A vector symbol, or ``"q"`` for the configuration.

    Returns:
        An operator from the variable's space: times a direction it is ``derivative`` along it.

    Raises:
        SpaceError: The expression is not a vector.
        LoweringError: It holds an articulated inertia, whose gradient is not an operator but a
            tensor: write it with the mass matrix and its inverse instead.
    """
    if expr.domain is not ONE:
        raise SpaceError(f"only vectors have gradients; {expr} maps {expr.domain.reads}")
    return _Gradient(variable).of(expr)


class _Gradient:
    """The gradients with respect to one variable that were found so far."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable
        self.space = JOINT if isinstance(variable, str) else variable.codomain
        self.moves = isinstance(variable, str)
        self.seen: dict[Expr, Expr] = {}

    def of(self, x: Expr) -> Expr:
        """The gradient of a vector."""
        if x not in self.seen:
            self.seen[x] = self._of(x)
        return self.seen[x]

    def _of(self, x: Expr) -> Expr:
        if isinstance(x, Let):
            return self.of(x.value)
        if isinstance(x, Sum):
            return add(((c, self.of(e)) for c, e in x.terms), x.codomain, self.space)
        if isinstance(x, Product):
            operator, rest = x.factors[0], product(x.factors[1:], ONE)
            inner = self.of(rest)
            moved = self.none(x) if is_zero(inner) else operator @ inner
            return moved + self.across(operator, rest)
        if x is self.variable:
            return identity(self.space)
        if x is gravity and self.moves:
            return crm(gravity) @ H.T
        return self.none(x)

    def none(self, x: Expr) -> Expr:
        """No change of a vector."""
        return zero(x.codomain, self.space)

    def across(self, operator: Expr, x: Expr) -> Expr:
        """The change of an operator times a vector that is held."""
        if isinstance(operator, Let):
            return self.across(operator.value, x)
        if isinstance(operator, Sum):
            terms = ((c, self.across(e, x)) for c, e in operator.terms)
            return add(terms, operator.codomain, self.space)
        if isinstance(operator, Product):
            return self._chain(operator, x)
        if isinstance(operator, Bracket):
            return self._bracket(operator, x)
        if isinstance(operator, Inverse):
            return self._inverse(operator, x)
        if isinstance(operator, Identity):
            return zero(operator.codomain, self.space)
        return self._atom(operator, x)

    def _chain(self, operator: Product, x: Expr) -> Expr:
        first, rest = operator.factors[0], product(operator.factors[1:], operator.domain)
        inner = self.across(rest, x)
        moved = zero(operator.codomain, self.space) if is_zero(inner) else first @ inner
        return moved + self.across(first, rest @ x)

    def _bracket(self, operator: Bracket, x: Expr) -> Expr:
        inner = self.of(operator.argument)
        if is_zero(inner):
            return zero(operator.codomain, self.space)
        return -(_SWAPPED[operator.kind](x) @ inner)

    def _inverse(self, operator: Inverse, x: Expr) -> Expr:
        inner = self.across(operator.of, operator @ x)
        if is_zero(inner):
            return zero(operator.codomain, self.space)
        return -(operator @ inner)

    def _atom(self, operator: Expr, x: Expr) -> Expr:
        if self.moves and operator in _GRADIENTS:
            return _GRADIENTS[operator](x)
        inner = operator.of if isinstance(operator, Adjoint) else operator
        assert isinstance(inner, Symbol)
        definition = entry(inner).definition
        if definition is None or inner in (E_phi, phi):
            return zero(operator.codomain, self.space)
        if isinstance(definition, Expr):
            return self.across(definition.T if inner is not operator else definition, x)
        if isinstance(self.variable, Symbol):
            _refuse(inner, [self.variable])
            return zero(operator.codomain, self.space)
        raise LoweringError(
            f"{inner} has no gradient: its change in all directions is a tensor. Write the vector "
            f"with the mass matrix and its inverse, or take its derivative along one direction"
        )


_GRADIENTS: Mapping[Expr, Callable[[Expr], Expr]] = {
    E_phi: lambda x: -(E_phi @ Q(x) @ H.T),
    E_phi.T: lambda x: crm(E_phi.T @ x) @ H.T,
    phi: lambda x: -(phi @ E_phi @ Q(phi @ x) @ H.T),
    phi.T: lambda x: phi.T @ crm(E_phi.T @ phi.T @ x) @ H.T,
}
"""The change of an operator times x that is held, as the configuration moves."""
_SWAPPED: Mapping[str, Callable[[Expr], Expr]] = {"crm": crm, "crf": Q, "Q": crf}
"""Brackets that change the sign if the two vectors in them change places."""

__all__ = ["CONFIGURATION", "derivative", "gradient", "is_zero", "rate", "turning"]
