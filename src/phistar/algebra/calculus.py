# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of operator expressions, in link axes, by the product rule.

In its own axes a link's joint map H and inertia M are constant, only the transforms between links
change:

    δEφ = Eφ crf[H*δ]      δφ = φ Eφ crf[H*δ] φ      δγ = -crm[H*δ] γ      δE₀ = E₀ crf[H*δ]

where δ, a joint vector, is the direction in which the configuration moves: each joint transform
X_J(q) is followed by exp(H*δ). ``derivative`` is along a direction, for operators and vectors,
articulated inertias included. ``gradient`` is the operator from all directions to the change of a
vector: its product with a direction is the derivative (forward mode), its adjoint times a weight
the gradient of a scalar (reverse mode).

In inertial axes it is the reverse: Eφ, φ, E₀ and γ are constant, H and M rotate with their links,
which move by Δ = φ*H*δ. The two derivatives of an operator X differ by a commutator,

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
    IdentityOperator,
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
    ARTICULATED_RATE_SYMBOLS,
    E_0,
    X_0,
    A,
    D_root,
    D_root_dot,
    E_phi,
    G,
    H,
    M,
    M_root,
    N,
    P,
    Riccati,
    dq,
    gravity,
    phi,
    psi,
    symbol_entry,
    unfold_definitions,
    v,
    vdot,
)
from phistar.errors import LoweringError, SpaceError

CONFIGURATION = "q"
"""The name of the configuration as a variable of derivatives."""

Variable = Symbol | str
Axes = Literal["link", "inertial"]

_CONFIGURATION_SYMBOLS = ("E_phi", "phi", "E_0", "X_0", "gravity")
"""Base symbols that depend on the configuration, in link axes."""
_POINT_SHIFTS = ("E_pi", "E_pi_0", "e_x", "e_y", "e_z")
"""Base symbols that depend on the configuration and have no derivative: they are not motions."""


def derivative(expr: Expr, changes: Mapping[Variable, Expr], axes: Axes = "link") -> Expr:
    """The derivative of an expression along a direction.

    Args:
        expr: An operator or a vector.
        changes: The direction: for vector symbols the vectors by which they change, for ``"q"`` the
            joint vector along which the configuration moves.
        axes: Axes in which vectors that do not change are constant, ``"link"`` or ``"inertial"``.

    Returns:
        An expression between the same spaces. Articulated inertias change by the symbols of
        ``ARTICULATED_RATE_SYMBOLS``, ``P_dot`` along ``dq`` and ``P_dot_v`` along ``v``: they need
        one of these directions for ``"q"``.

    Raises:
        SpaceError: A change is not of the space of what it changes.
        LoweringError: A symbol has no derivative.
    """
    for variable, change in changes.items():
        space = JOINT if isinstance(variable, str) else variable.codomain
        if (change.codomain, change.domain) != (space, ONE):
            raise SpaceError(f"{variable} changes by a vector of {space.reads}, not by {change}")
    return (_DirectionalDerivative if axes == "link" else _InertialDerivative)(changes).of(expr)


def rate(expr: Expr) -> Expr:
    """The time derivative, in link axes: the configuration moves along v, and v by vdot."""
    return derivative(expr, {CONFIGURATION: v, v: vdot})


class _DirectionalDerivative:
    """Derivatives along one direction, memoised."""

    def __init__(self, changes: Mapping[Variable, Expr]) -> None:
        self.leaves = {x: change for x, change in changes.items() if isinstance(x, Symbol)}
        self.direction = changes.get(CONFIGURATION)
        self.cache: dict[Expr, Expr] = {}

    def of(self, expr: Expr) -> Expr:
        if expr not in self.cache:
            self.cache[expr] = self._of(expr)
        return self.cache[expr]

    def _of(self, expr: Expr) -> Expr:
        if isinstance(expr, Symbol):
            return self._symbol(expr)
        if isinstance(expr, IdentityOperator):
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
        definition = symbol_entry(node).definition
        if self.direction is not None:
            _refuse_point_shifts(node)
        if definition is None and (
            self.direction is None or node.name not in _CONFIGURATION_SYMBOLS
        ):
            return nothing
        if self.direction is None:
            return self.of(definition) if isinstance(definition, Expr) else self._constant(node)
        found = self._of_configuration(node, self.direction)
        if found is not None:
            return found
        if isinstance(definition, Expr):
            return self.of(definition)
        known = ", ".join(str(direction) for direction in ARTICULATED_RATE_SYMBOLS)
        raise LoweringError(
            f"{node} has no derivative along {self.direction}: only the articulated inertia {P} "
            f"has symbols for it, along {known}"
        )

    def _of_configuration(self, node: Symbol, direction: Expr) -> Expr | None:
        """The change of what depends on the configuration itself."""
        joint_motion = H.T @ direction
        if node in (E_phi, E_0):
            return node @ crf(joint_motion)
        if node is X_0:
            return X_0 @ crm(phi.T @ joint_motion)
        if node is phi:
            return phi @ E_phi @ crf(joint_motion) @ phi
        if node is gravity:
            return -(crm(joint_motion) @ gravity)
        if node is psi:
            return psi @ self.of(E_phi - E_phi @ G @ H) @ psi
        if isinstance(symbol_entry(node).definition, Riccati):
            return ARTICULATED_RATE_SYMBOLS.get(direction)
        return D_root_dot if node is D_root and direction is dq else None

    def _constant(self, node: Symbol) -> Expr:
        """A symbol whose recursion does not depend on the vectors of the direction."""
        _refuse_recursion_over(node, self.leaves)
        return zero(node.codomain, node.domain)


def _refuse_point_shifts(node: Symbol) -> None:
    if node.name in _POINT_SHIFTS:
        raise LoweringError(
            f"{node} has no derivative: the velocity of a weighted point is no weighted point. "
            f"Momentum and its rate say the same in motions and forces"
        )


def _refuse_recursion_over(node: Symbol, variables: Iterable[Symbol]) -> None:
    """Raise if a recursion depends on one of some vectors."""
    unfolded = set(unfold_definitions([node]))
    for variable in variables:
        if variable in unfolded:
            raise LoweringError(f"{node} is a recursion over {variable}; it has no derivative rule")


class _InertialDerivative(_DirectionalDerivative):
    """The same in inertial axes."""

    def _symbol(self, node: Symbol) -> Expr:
        if self.direction is None:
            return super()._symbol(node)
        if node.domain is ONE or node in (E_phi, phi, E_0, X_0, A):
            return self.leaves.get(node, zero(node.codomain, node.domain))
        if node in (H, M, M_root, N, P):
            return super()._symbol(node) + inertial_commutator(node, self.direction)
        if node is psi or isinstance(symbol_entry(node).definition, Expr):
            return super()._symbol(node)
        raise LoweringError(f"{node} has no derivative in inertial axes; take it in link axes")


def inertial_commutator(expr: Expr, direction: Expr) -> Expr:
    """Derivative in inertial axes minus that in link axes: [rigid, X]."""
    link_motion = phi.T @ H.T @ direction
    rigid = {MOTION: crm(link_motion), FORCE: crf(link_motion)}
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
    """Gradients with respect to one variable, memoised."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable
        self.space = JOINT if isinstance(variable, str) else variable.codomain
        self.by_configuration = isinstance(variable, str)
        self.cache: dict[Expr, Expr] = {}

    def of(self, x: Expr) -> Expr:
        """The gradient of a vector."""
        if x not in self.cache:
            self.cache[x] = self._of(x)
        return self.cache[x]

    def _of(self, x: Expr) -> Expr:
        if isinstance(x, Let):
            return self.of(x.value)
        if isinstance(x, Sum):
            return add(((c, self.of(e)) for c, e in x.terms), x.codomain, self.space)
        if isinstance(x, Product):
            operator, vector = x.factors[0], product(x.factors[1:], ONE)
            inner = self.of(vector)
            change = self.no_change(x) if is_zero(inner) else operator @ inner
            return change + self.of_operator(operator, vector)
        if x is self.variable:
            return identity(self.space)
        if self.by_configuration and isinstance(x, Symbol):
            _refuse_point_shifts(x)
        if x is gravity and self.by_configuration:
            return crm(gravity) @ H.T
        return self.no_change(x)

    def no_change(self, x: Expr) -> Expr:
        """No change of a vector."""
        return zero(x.codomain, self.space)

    def of_operator(self, operator: Expr, x: Expr) -> Expr:
        """The change of an operator, times a constant vector."""
        if isinstance(operator, Let):
            return self.of_operator(operator.value, x)
        if isinstance(operator, Sum):
            terms = ((c, self.of_operator(e, x)) for c, e in operator.terms)
            return add(terms, operator.codomain, self.space)
        if isinstance(operator, Product):
            return self._chain(operator, x)
        if isinstance(operator, Bracket):
            return self._bracket(operator, x)
        if isinstance(operator, Inverse):
            return self._inverse(operator, x)
        if isinstance(operator, IdentityOperator):
            return zero(operator.codomain, self.space)
        return self._atom(operator, x)

    def _chain(self, operator: Product, x: Expr) -> Expr:
        first, tail = operator.factors[0], product(operator.factors[1:], operator.domain)
        inner = self.of_operator(tail, x)
        change = zero(operator.codomain, self.space) if is_zero(inner) else first @ inner
        return change + self.of_operator(first, tail @ x)

    def _bracket(self, operator: Bracket, x: Expr) -> Expr:
        inner = self.of(operator.argument)
        if is_zero(inner):
            return zero(operator.codomain, self.space)
        return -(_SWAPPED_BRACKETS[operator.kind](x) @ inner)

    def _inverse(self, operator: Inverse, x: Expr) -> Expr:
        inner = self.of_operator(operator.of, operator @ x)
        if is_zero(inner):
            return zero(operator.codomain, self.space)
        return -(operator @ inner)

    def _atom(self, operator: Expr, x: Expr) -> Expr:
        if self.by_configuration and operator in _GRADIENTS:
            return _GRADIENTS[operator](x)
        inner = operator.of if isinstance(operator, Adjoint) else operator
        assert isinstance(inner, Symbol)
        if self.by_configuration:
            _refuse_point_shifts(inner)
        definition = symbol_entry(inner).definition
        if definition is None or inner in (E_phi, phi):
            return zero(operator.codomain, self.space)
        if isinstance(definition, Expr):
            return self.of_operator(definition.T if inner is not operator else definition, x)
        if isinstance(self.variable, Symbol):
            _refuse_recursion_over(inner, [self.variable])
            return zero(operator.codomain, self.space)
        raise LoweringError(
            f"{inner} has no gradient: its change in all directions is a tensor. Write the vector "
            f"with the mass matrix and its inverse, or take its derivative along one direction"
        )


_GRADIENTS: Mapping[Expr, Callable[[Expr], Expr]] = {
    E_phi: lambda x: -(E_phi @ Q(x) @ H.T),
    E_phi.T: lambda x: crm(E_phi.T @ x) @ H.T,
    E_0: lambda x: -(E_0 @ Q(x) @ H.T),
    E_0.T: lambda x: crm(E_0.T @ x) @ H.T,
    X_0: lambda x: -(X_0 @ crm(x) @ phi.T @ H.T),
    X_0.T: lambda x: Q(X_0.T @ x) @ phi.T @ H.T,
    phi: lambda x: -(phi @ E_phi @ Q(phi @ x) @ H.T),
    phi.T: lambda x: phi.T @ crm(E_phi.T @ phi.T @ x) @ H.T,
}
"""The change of an operator with the configuration, times a constant x."""
_SWAPPED_BRACKETS: Mapping[str, Callable[[Expr], Expr]] = {"crm": crm, "crf": Q, "Q": crf}
"""Brackets that change sign when their two vectors are exchanged."""

__all__ = ["CONFIGURATION", "derivative", "gradient", "inertial_commutator", "is_zero", "rate"]
