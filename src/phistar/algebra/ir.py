# SPDX-License-Identifier: BSD-3-Clause
"""Operator expressions: immutable, hash-consed nodes with a codomain and a domain.

    expr    := symbol | adjoint | inverse | identity | sum | product | bracket | let
    sum     := number expr + number expr + ...     exact fractions; the empty sum is zero
    product := expr @ expr @ ...                   the right one acts first
    bracket := crm[x] | crf[x] | Q[f]              block diagonal made from a vector
    let     := name = expr                         a value by name, opaque to rewriting

A vector is an operator from ONE. Two expressions are equal exactly if they are the same object, so
nodes may be keys of dicts. A sum keeps the order in which it was written, for printing: A + B and B
+ A are two objects, and equal only as words (``to_words``). Adjoints are pushed down to the atoms;
products and sums are flat; nothing is distributed (``normal_form`` does that).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from fractions import Fraction
from typing import Any, NoReturn, TypeVar, cast

from phistar.algebra.interned import Interned
from phistar.algebra.spaces import FORCE, MOTION, ONE, Space
from phistar.errors import ArgumentError, SpaceError, kind_of

Number = int | float | Fraction
Term = tuple[Fraction, "Expr"]
NodeT = TypeVar("NodeT", bound="Expr")

_NODES: Interned[Expr] = Interned()


class Sparsity(Enum):
    """Which blocks of an operator may be non-zero."""

    DIAGONAL = "block diagonal: local to each link"
    SHIFT = "one link inward"
    LOWER = "from descendants to ancestors"
    DENSE = "between any links"


class Expr:
    """An operator from ``domain`` to ``codomain``; built with ``@ + - .T .inv``."""

    __slots__ = ("__weakref__", "codomain", "domain", "fields")
    codomain: Space
    domain: Space
    fields: tuple[Any, ...]

    # NumPy leaves ``array @ expr`` and the like to this class, which rejects them.
    __array_ufunc__ = None

    def __matmul__(self, other: object) -> Expr:
        if isinstance(other, Expr):
            return compose(self, other)
        return NotImplemented if isinstance(other, _AnyIdentity) else _reject("@", self, other)

    def __rmatmul__(self, other: object) -> Expr:
        return _reject("@", self, other)

    def __add__(self, other: object) -> Expr:
        if isinstance(other, Expr):
            return add(_pair(1, self, other))
        return NotImplemented if isinstance(other, _AnyIdentity) else _reject("+", self, other)

    def __radd__(self, other: object) -> Expr:
        # ``sum(expressions)`` begins with a zero.
        return self if isinstance(other, int) and other == 0 else _reject("+", self, other)

    def __sub__(self, other: object) -> Expr:
        if isinstance(other, Expr):
            return add(_pair(-1, self, other))
        return NotImplemented if isinstance(other, _AnyIdentity) else _reject("-", self, other)

    def __rsub__(self, other: object) -> Expr:
        return _reject("-", self, other)

    def __neg__(self) -> Expr:
        return scale(-1, self)

    def __mul__(self, factor: Number) -> Expr:
        return scale(_as_fraction(factor, self), self)

    __rmul__ = __mul__

    def __truediv__(self, factor: Number) -> Expr:
        return scale(1 / _as_fraction(factor, self), self)

    @property
    def T(self) -> Expr:
        """The adjoint: reverses products and swaps motions with forces."""
        return _node(Adjoint, self.domain.dual, self.codomain.dual, self)

    @property
    def inv(self) -> Expr:
        """The inverse of an operator between spaces of one size."""
        if self.codomain not in (self.domain, self.domain.dual):
            reads = f"from {self.domain.reads} to {self.codomain.reads}"
            raise SpaceError(f"{self} maps {reads} and has no inverse")
        return _node(Inverse, self.domain, self.codomain, self)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"expressions are immutable: cannot set {name} of {self}")

    def __reduce__(self) -> tuple[object, ...]:
        return _node, (type(self), self.codomain, self.domain, *self.fields)

    def __repr__(self) -> str:
        from phistar.algebra.printing import to_text

        return to_text(self)


def _reject(operation: str, expr: Expr, other: object) -> Expr:
    """Raise: numbers and arrays do not mix with expressions."""
    raise ArgumentError(
        f"{operation} of {expr} and {kind_of(other)}: expressions combine with expressions "
        "only, because they know no robot. Compile it for one and apply that: "
        "robot.function(expr)(q, x)"
    )


def _as_fraction(factor: Any, expr: Expr) -> Fraction:
    """A number as an exact fraction."""
    if isinstance(factor, Expr):
        raise ArgumentError(f"* of {expr} and {factor}: operators are composed with @")
    if not isinstance(factor, (int, float, Fraction)):
        _reject("*", expr, factor)
    exact: Fraction = Fraction(factor)
    return exact


def _node(cls: type[NodeT], codomain: Space, domain: Space, *fields: object) -> NodeT:
    """The unique node of a class with these fields; thread-safe."""
    key = (cls, codomain, domain, *fields)
    node = _NODES.get(key)
    if node is None:
        node = object.__new__(cls)
        for name, value in (("codomain", codomain), ("domain", domain), ("fields", fields)):
            object.__setattr__(node, name, value)
        node = _NODES.add(key, node)
    return node  # type: ignore[return-value]


class Symbol(Expr):
    """A named operator or vector."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Its name, unique in the symbol table."""
        return str(self.fields[0])

    @property
    def sparsity(self) -> Sparsity:
        """Which of its blocks may be non-zero."""
        sparsity: Sparsity = self.fields[1]
        return sparsity

    @property
    def symmetric(self) -> bool:
        """Whether it is its own adjoint."""
        return bool(self.fields[2])

    @property
    def T(self) -> Expr:
        """The adjoint."""
        return self if self.symmetric else super().T


def symbol(
    name: str,
    codomain: Space,
    domain: Space,
    sparsity: Sparsity = Sparsity.DIAGONAL,
    *,
    symmetric: bool = False,
) -> Symbol:
    """A named operator (or, from ONE, a vector)."""
    if symmetric and codomain is not domain.dual:
        raise SpaceError(f"{name} cannot be symmetric from {domain} to {codomain}")
    return _node(Symbol, codomain, domain, name, sparsity, symmetric)


class Let(Expr):
    """A value by name: an opaque leaf to rewriting, shared by lowering."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.fields[0])

    @property
    def value(self) -> Expr:
        """Its value."""
        value: Expr = self.fields[1]
        return value

    @property
    def T(self) -> Expr:
        """The adjoint; itself if its value is."""
        return self if self.value.T is self.value else super().T


def let(name: str, value: Expr) -> Let:
    """``value`` under a name."""
    return _node(Let, value.codomain, value.domain, name, value)


class Adjoint(Expr):
    """The adjoint of an atom."""

    __slots__ = ()

    @property
    def of(self) -> Expr:
        """The atom."""
        of: Expr = self.fields[0]
        return of

    @property
    def T(self) -> Expr:
        """The atom itself."""
        return self.of


class Inverse(Expr):
    """The inverse of an operator."""

    __slots__ = ()

    @property
    def of(self) -> Expr:
        """What is inverted."""
        of: Expr = self.fields[0]
        return of

    @property
    def T(self) -> Expr:
        """The inverse of the adjoint."""
        return self.of.T.inv

    @property
    def inv(self) -> Expr:
        """The operator itself."""
        return self.of


class IdentityOperator(Expr):
    """The identity operator."""

    __slots__ = ()

    @property
    def T(self) -> Expr:
        """The identity of the dual space."""
        return identity(self.domain.dual)

    @property
    def inv(self) -> Expr:
        """Itself."""
        return self


def identity(space: Space) -> IdentityOperator:
    """The identity on a space."""
    return _node(IdentityOperator, space, space)


class _AnyIdentity:
    """``I``: the identity of whatever space it is added to or compared with."""

    def __add__(self, other: Expr) -> Expr:
        return self.on(other) + other

    def __sub__(self, other: Expr) -> Expr:
        return self.on(other) - other

    def __radd__(self, other: Expr) -> Expr:
        return other + self.on(other)

    def __rsub__(self, other: Expr) -> Expr:
        return other - self.on(other)

    def __matmul__(self, other: Expr) -> Expr:
        return other

    __rmatmul__ = __matmul__

    @property
    def T(self) -> _AnyIdentity:
        """Itself."""
        return self

    inv = T

    @staticmethod
    def on(other: object) -> Expr:
        """The identity that can be added to ``other``."""
        if not isinstance(other, Expr):
            _reject_bare_identity()
        if other.codomain is not other.domain:
            reads = f"from {other.domain.reads} to {other.codomain.reads}"
            raise SpaceError(f"I cannot be added to {other}, which maps {reads}")
        return identity(other.domain)

    def __getattr__(self, name: str) -> object:
        if name in Expr.__slots__:
            _reject_bare_identity()
        raise AttributeError(name)

    def __repr__(self) -> str:
        return "I"


def _reject_bare_identity() -> NoReturn:
    raise SpaceError("I alone has no space of its own; write identity(FORCE), for instance")


# To type checkers it is an expression like any other.
I = cast(Expr, _AnyIdentity())  # noqa: E741  (the papers' name)


def fit_sides(left: object, right: object) -> tuple[Expr, Expr]:
    """The two sides of an equation; ``I`` becomes the identity that fits the other side.

    Raises:
        ArgumentError: A side is no expression.
        SpaceError: The sides map between different spaces.
    """
    for side in (left, right):
        if not isinstance(side, (Expr, _AnyIdentity)):
            given = f"{kind_of(side)}: {side!r}"
            raise ArgumentError(
                f"a side of an equation must be an operator expression, got {given}"
            )
    left = left if isinstance(left, Expr) else _AnyIdentity.on(right)
    right = right if isinstance(right, Expr) else _AnyIdentity.on(left)
    if (left.codomain, left.domain) != (right.codomain, right.domain):
        left_spaces = f"from {left.domain.reads} to {left.codomain.reads}"
        right_spaces = f"from {right.domain.reads} to {right.codomain.reads}"
        sides = f"{left} maps {left_spaces}, {right} maps {right_spaces}"
        raise SpaceError(f"the two sides cannot be equal: {sides}")
    return left, right


class Sum(Expr):
    """A sum of terms with exact coefficients; empty means zero."""

    __slots__ = ()

    @property
    def terms(self) -> tuple[Term, ...]:
        """Coefficients and expressions."""
        return self.fields

    @property
    def T(self) -> Expr:
        """The sum of the adjoints."""
        return add(((c, e.T) for c, e in self.terms), self.domain.dual, self.codomain.dual)

    @property
    def inv(self) -> Expr:
        """The inverse; of a multiple, the inverse multiple."""
        if not self.terms:
            raise SpaceError("zero has no inverse")
        if len(self.terms) > 1:
            return super().inv
        ((factor, term),) = self.terms
        return scale(1 / factor, term.inv)


def add(terms: Iterable[Term], codomain: Space | None = None, domain: Space | None = None) -> Expr:
    """A flat sum with equal terms collected; spaces are needed only if it may be empty.

    Raises:
        SpaceError: Terms map between different spaces.
    """
    collected: dict[Expr, Fraction] = {}
    for factor, term in terms:
        codomain, domain = codomain or term.codomain, domain or term.domain
        if term.codomain is not codomain or term.domain is not domain:
            so_far = add(((c, e) for e, c in collected.items()), codomain, domain)
            raise SpaceError(_sum_message(so_far, term))
        for inner, node in term.terms if isinstance(term, Sum) else ((Fraction(1), term),):
            collected[node] = collected.get(node, Fraction(0)) + factor * inner
    nonzero = tuple((c, e) for e, c in collected.items() if c)
    if len(nonzero) == 1 and nonzero[0][0] == 1:
        return nonzero[0][1]
    if codomain is None or domain is None:
        raise SpaceError("an empty sum has no spaces of its own; pass codomain and domain")
    return _node(Sum, codomain, domain, *nonzero)


def _pair(factor: int, left: Expr, right: Expr) -> tuple[Term, Term]:
    return (Fraction(1), left), (Fraction(factor), right)


def zero(codomain: Space, domain: Space) -> Expr:
    """The operator that maps everything to zero."""
    return add((), codomain, domain)


def scale(factor: Number, expr: Expr) -> Expr:
    """A multiple of an expression."""
    return add(((Fraction(factor), expr),), expr.codomain, expr.domain)


def _sum_message(left: Expr, right: Expr) -> str:
    spaces = f"from {left.domain.reads} to {left.codomain.reads}"
    others = f"from {right.domain.reads} to {right.codomain.reads}"
    fits = (right.domain.dual, right.codomain.dual) == (left.codomain, left.domain)
    hint = " (did you forget a .T?)" if fits else ""
    return (
        f"cannot add {left} and {right}: the left one maps {spaces}, the right one {others}{hint}"
    )


class Product(Expr):
    """A product of at least two factors, none of which is a product or an identity."""

    __slots__ = ()

    @property
    def factors(self) -> tuple[Expr, ...]:
        """From left to right; the last acts first."""
        return self.fields

    @property
    def T(self) -> Expr:
        """The reversed product of the adjoints."""
        return product([f.T for f in reversed(self.factors)], self.domain.dual)

    @property
    def inv(self) -> Expr:
        """The reversed product of the inverses if every factor is square; else opaque."""
        if all(f.codomain in (f.domain, f.domain.dual) for f in self.factors):
            return product([f.inv for f in reversed(self.factors)], self.codomain)
        return super().inv


def compose(left: Expr, right: Expr) -> Expr:
    """``left @ right``.

    Raises:
        SpaceError: The spaces do not fit.
    """
    if left.domain is not right.codomain:
        raise SpaceError(_product_message(left, right))
    factors = [*_factors(left), *_factors(right)]
    return product(factors, right.domain)


def _factors(expr: Expr) -> tuple[Expr, ...]:
    return expr.factors if isinstance(expr, Product) else (expr,)


def product(factors: Iterable[Expr], space: Space) -> Expr:
    """The product of factors that are known to fit; the identity on ``space`` if there are none."""
    scalar = Fraction(1)
    nodes: list[Expr] = []
    for factor in factors:
        if isinstance(factor, IdentityOperator):
            continue
        if isinstance(factor, Sum) and len(factor.terms) == 1:
            ((coefficient, inner),) = factor.terms
            scalar *= coefficient
            nodes += _factors(inner) if not isinstance(inner, IdentityOperator) else ()
        else:
            nodes += _factors(factor)
    if not nodes:
        return scale(scalar, identity(space))
    codomain, domain = nodes[0].codomain, nodes[-1].domain
    if any(isinstance(f, Sum) and not f.terms for f in nodes):
        return zero(codomain, domain)
    node = nodes[0] if len(nodes) == 1 else _node(Product, codomain, domain, *nodes)
    return scale(scalar, node)


def _product_message(left: Expr, right: Expr) -> str:
    text = (
        f"cannot compose {left} with {right}: the left one takes {left.domain.reads}, "
        f"the right one gives {right.codomain.reads}"
    )
    cures = []
    if left.codomain.dual is right.codomain:
        cures.append("the left")
    if left.domain is right.domain.dual:
        cures.append("the right")
    return f"{text} (did you forget a .T on {' or '.join(cures)}?)" if cures else text


class Bracket(Expr):
    """A block diagonal made from a vector: ``crm[x]``, ``crf[x]`` or ``Q[f]``."""

    __slots__ = ()

    @property
    def kind(self) -> str:
        """``"crm"``, ``"crf"`` or ``"Q"``."""
        return str(self.fields[0])

    @property
    def argument(self) -> Expr:
        """The vector."""
        argument: Expr = self.fields[1]
        return argument

    @property
    def T(self) -> Expr:
        """crm[x]* = -crf[x], Q[f]* = -Q[f]."""
        return -_node(
            Bracket, self.domain.dual, self.codomain.dual, _DUAL[self.kind], self.argument
        )


_DUAL = {"crm": "crf", "crf": "crm", "Q": "Q"}
_BRACKETS = {
    "crm": (MOTION, MOTION, MOTION),
    "crf": (FORCE, FORCE, MOTION),
    "Q": (FORCE, MOTION, FORCE),
}


def bracket(kind: str, argument: Expr) -> Expr:
    """``crm[x] y = x × y`` on motions, ``crf[x] f`` on forces, ``Q[f] y = -crf[y] f``.

    Linear in the argument, so a sum in the bracket becomes a sum of brackets.

    Raises:
        SpaceError: The argument is not a vector of the right space.
    """
    codomain, domain, space = _BRACKETS[kind]
    if argument.domain is not ONE or argument.codomain is not space:
        given = f"maps {argument.domain.reads} to {argument.codomain.reads}"
        raise SpaceError(f"{kind}[...] needs a vector of {space.reads}; {argument} {given}")
    if isinstance(argument, Sum):
        brackets = ((c, bracket(kind, e)) for c, e in argument.terms)
        return add(brackets, codomain, domain)
    return _node(Bracket, codomain, domain, kind, argument)


def crm(x: Expr) -> Expr:
    """Motion cross motion, x ×."""
    return bracket("crm", x)


def crf(x: Expr) -> Expr:
    """Motion cross force, -crm[x]*."""
    return bracket("crf", x)


def Q(f: Expr) -> Expr:
    """The operator with Q[f] y = -crf[y] f."""
    return bracket("Q", f)
