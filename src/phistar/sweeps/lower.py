# SPDX-License-Identifier: BSD-3-Clause
"""Expressions -> streams: φ becomes an inward recursion, φ* an outward one, P a Riccati recursion.

K, Eψ and ψ are never formed: ψx is z = x + Σ φ (z - G H z), and so on. Symbols that stand for
longer expressions are unfolded; ``let`` gives its stream a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from phistar.algebra.ir import (
    Adjoint,
    Bracket,
    Expr,
    Identity,
    Inverse,
    Let,
    Pattern,
    Product,
    Sum,
    Symbol,
    add,
    product,
    symbol,
)
from phistar.algebra.spaces import FORCE, JOINT, MOTION, ONE, TASK_FORCE, TASK_MOTION, Space
from phistar.algebra.symbols import RATES_OF_P, B, entry, velocities
from phistar.errors import LoweringError
from phistar.sweeps.ir import Program, Type

_TYPES: Mapping[Space, Type] = {JOINT: Type.JOINT, MOTION: Type.MOTION, FORCE: Type.FORCE}
_ONE = Fraction(1)

meet = symbol("meet", MOTION, FORCE, Pattern.DENSE, symmetric=True)
"""ψ*H*D⁻¹Hψ where each column's source is a single link: see ``Lowering.meet``."""


def lower(outputs: Mapping[str, Expr]) -> Program:
    """A program that computes vectors.

    Args:
        outputs: Vector expressions by name. Motions of frames come as the motions of all links,
            from which the caller picks off the frames.

    Raises:
        LoweringError: An output is not a vector, or holds something that has no sweep form.
    """
    lowering = Lowering()
    for name, expr in outputs.items():
        if expr.domain is not ONE:
            raise LoweringError(f"output {name!r} is an operator, not a vector; apply it to one")
        if expr.codomain is ONE:
            raise LoweringError(
                f"output {name!r} is a number, which has no sweep form: compute the two vectors of "
                "the product and multiply them"
            )
        stream = lowering.vector(_before_pick_off(name, expr))
        lowering.program.outputs[name] = stream
        lowering.program.names.setdefault(stream, name)
    return lowering.program


def _before_pick_off(name: str, expr: Expr) -> Expr:
    """A motion of frames B*x as the link motions x; the frames are picked off at the very end."""
    if expr.codomain is not TASK_MOTION:
        return expr
    if isinstance(expr, Sum):
        parts = ((c, _before_pick_off(name, e)) for c, e in expr.terms)
        return add(parts, MOTION, ONE)
    if isinstance(expr, Product) and expr.factors[0] is B.T:
        return product(expr.factors[1:], ONE)
    raise LoweringError(f"output {name!r} is a motion of frames, so it must begin with B*: {expr}")


class Lowering:
    """One program on its way."""

    def __init__(self) -> None:
        self.program = Program()
        self._vectors: dict[Expr, int] = {}

    def vector(self, expr: Expr) -> int:
        """The stream of a vector expression."""
        if expr not in self._vectors:
            self._vectors[expr] = self._vector(expr)
        return self._vectors[expr]

    def _vector(self, expr: Expr) -> int:
        if isinstance(expr, Let):
            stream = self.vector(expr.value)
            self.program.names.setdefault(stream, expr.name)
            return stream
        if isinstance(expr, Symbol):
            return self.program.leaf(expr.name, _TYPES[expr.codomain])
        if isinstance(expr, Sum):
            if not expr.terms:
                return self.program.add("zero", (), _TYPES[expr.codomain])
            return self.program.sum([(c, self.vector(e)) for c, e in expr.terms])
        if isinstance(expr, Product) and expr.factors[-1].codomain is TASK_FORCE:
            return self._scatter(expr)
        if isinstance(expr, Product):
            stream = self.vector(expr.factors[-1])
            for factor in reversed(expr.factors[:-1]):
                stream = self.apply(factor, stream)
            return stream
        raise LoweringError(f"{expr} is not a vector that can be computed link by link")

    def _scatter(self, expr: Product) -> int:
        leaf = expr.factors[-1]
        if not isinstance(leaf, Symbol) or expr.factors[-2] is not B:
            raise LoweringError(
                f"forces on frames must be given from outside and go through B: {expr}"
            )
        stream = self.program.add("scatter", (), Type.FORCE, leaf.name)
        for factor in reversed(expr.factors[:-2]):
            stream = self.apply(factor, stream)
        return stream

    def apply(self, operator: Expr, x: int) -> int:
        """The stream of an operator applied to a stream."""
        if isinstance(operator, Identity):
            return x
        if isinstance(operator, Sum):
            return self.program.sum([(c, self.apply(e, x)) for c, e in operator.terms])
        if isinstance(operator, Product):
            for factor in reversed(operator.factors):
                x = self.apply(factor, x)
            return x
        if isinstance(operator, Let):
            return self.apply(operator.value, x)
        if isinstance(operator, Bracket):
            return self._bracket(operator, x)
        return self._atom(operator, x)

    def _bracket(self, operator: Bracket, x: int) -> int:
        argument = self.vector(operator.argument)
        if operator.kind == "Q":
            cross = self.program.add("crf", (x, argument), Type.FORCE)
            return self.program.sum([(-_ONE, cross)])
        return self.program.add(operator.kind, (argument, x), _TYPES[operator.codomain])

    def _atom(self, operator: Expr, x: int) -> int:
        name, adjoint, inverse = _spell(operator)
        known = _APPLY.get((name, adjoint, inverse))
        if known is not None:
            return known(self, x)
        for direction, rate in RATES_OF_P.items():
            if operator is rate:
                return self._local("inertia", Type.FORCE, self.inertia_rate(direction), x)
        definition = entry(_symbol(operator)).definition
        if inverse or not isinstance(definition, Expr):
            raise LoweringError(
                f"{operator} has no sweep form; rewrite it by a theorem of phistar.algorithms first"
            )
        return self.apply(definition.T if adjoint else definition, x)

    def _local(self, op: str, type: Type, *operands: int) -> int:
        return self.program.add(op, operands, type)

    # -- recursions over vectors

    def phi(self, x: int) -> int:
        """z = x + Σ φ z."""
        z = self.program.recursion(("phi", x), Type.FORCE)
        inward = self._local("shin", Type.FORCE, z)
        return self._close(z, [(_ONE, x), (_ONE, inward)])

    def phi_adjoint(self, x: int) -> int:
        """y = x + φ* y(parent)."""
        y = self.program.recursion(("phi*", x), Type.MOTION)
        outward = self._local("shout", Type.MOTION, y)
        return self._close(y, [(_ONE, x), (_ONE, outward)])

    def psi(self, x: int) -> int:
        """z = x + Σ φ (z - G H z)."""
        z = self.program.recursion(("psi", x), Type.FORCE)
        across = self._local("Gx", Type.FORCE, self.G(), self._local("H", Type.JOINT, z))
        through = self.program.sum([(_ONE, z), (-_ONE, across)])
        return self._close(z, [(_ONE, x), (_ONE, self._local("shin", Type.FORCE, through))])

    def psi_adjoint(self, x: int) -> int:
        """y = x + l - H* G* l with l = φ* y(parent)."""
        y = self.program.recursion(("psi*", x), Type.MOTION)
        carried = self._local("shout", Type.MOTION, y)
        given = self._local("Gtx", Type.JOINT, self.G(), carried)
        yielded = self._local("Ht", Type.MOTION, given)
        return self._close(y, [(_ONE, x), (_ONE, carried), (-_ONE, yielded)])

    def meet(self, x: int) -> int:
        """y = Υ ψx at the links that the source x lies beyond, else what the parent passes on.

        The first is the block ψ*(i,c) Υ(c) ψ(c,j) at i = c; the second walks it outward from the
        nearest common ancestor c to a link i on another branch.
        """
        beyond = self._local("inertia", Type.MOTION, self.compliance(), self.psi(x))
        y = self.program.recursion(("meet", x), Type.MOTION)
        carried = self._local("shout", Type.MOTION, y)
        yielded = self._local("Ht", Type.MOTION, self._local("Gtx", Type.JOINT, self.G(), carried))
        passed = self.program.sum([(_ONE, carried), (-_ONE, yielded)])
        if y not in self.program.definitions:
            self.program.define(y, self._local("join", Type.MOTION, beyond, passed))
        return y

    def _close(self, recursion: int, terms: list[tuple[Fraction, int]]) -> int:
        if recursion not in self.program.definitions:
            self.program.define(recursion, self.program.sum(terms))
        return recursion

    # -- inertias

    def rigid(self) -> int:
        """M."""
        return self._named("M", self.program.add("rigid", (), Type.INERTIA))

    def articulated(self) -> int:
        """P = M + Σ φ P⁺ φ*, P⁺ = P - G U*."""
        p = self.program.recursion("P", Type.INERTIA)
        if p not in self.program.definitions:
            self.program.definitions[p] = p
            felt = self._named("P⁺", self._local("down", Type.INERTIA, p, self.U(), self.G()))
            inward = self._local("cong", Type.INERTIA, felt)
            self.program.define(p, self.program.sum([(_ONE, self.rigid()), (_ONE, inward)]))
        return self._named("P", p)

    def inertia_rate(self, direction: Expr) -> int:
        """Ṗ = Σ φ (δ ×* P⁺ - P⁺ δ × + (I - G H) Ṗ (I - G H)*) φ*, δ = H* of the direction."""
        moved = self._local("Ht", Type.MOTION, self.vector(direction))
        rate = self.program.recursion(("P_dot", moved), Type.INERTIA)
        felt = self._local("down", Type.INERTIA, self.articulated(), self.U(), self.G())
        turned = self._local("turn", Type.INERTIA, moved, felt)
        passed = self._local("through", Type.INERTIA, rate, self.G())
        across = self.program.sum([(_ONE, turned), (_ONE, passed)])
        inward = self._local("cong", Type.INERTIA, across)
        return self._named("P_dot", self._close(rate, [(_ONE, inward)]))

    def composite(self) -> int:
        """R = M + Σ φ R φ*."""
        r = self.program.recursion("R", Type.INERTIA)
        inward = self._local("cong", Type.INERTIA, r)
        return self._named("R", self._close(r, [(_ONE, self.rigid()), (_ONE, inward)]))

    def compliance(self) -> int:
        """Υ = (I - G H)* φ* Υ(parent) φ (I - G H) + H* D⁻¹ H."""
        y = self.program.recursion("Upsilon", Type.INERTIA)
        if y not in self.program.definitions:
            carried = self.carried_compliance()
            self.program.define(y, self._local("give", Type.INERTIA, carried, self.G(), self.D()))
        return self._named("Upsilon", y)

    def carried_compliance(self) -> int:
        """φ* Υ(parent) φ."""
        y = self.program.recursion("Upsilon", Type.INERTIA)
        return self._local("outcong", Type.INERTIA, y)

    def gyroscopic(self) -> int:
        """M̂ of the velocities V."""
        V = self.vector(velocities)
        return self._named("M_hat", self.program.add("gyro", (V,), Type.TRANSFER))

    def gyroscopic_sum(self) -> int:
        """R̂ = M̂ + Σ φ R̂ φ*."""
        r = self.program.recursion("R_hat", Type.TRANSFER)
        inward = self._local("cong", Type.TRANSFER, r)
        return self._named("R_hat", self._close(r, [(_ONE, self.gyroscopic()), (_ONE, inward)]))

    def gyroscopic_bias(self) -> int:
        """P̂ = M̂ + Σ φ (P̂ - G H P̂) φ*."""
        p = self.program.recursion("P_hat", Type.TRANSFER)
        felt = self._local("across", Type.TRANSFER, p, self.G())
        inward = self._local("cong", Type.TRANSFER, felt)
        return self._named("P_hat", self._close(p, [(_ONE, self.gyroscopic()), (_ONE, inward)]))

    def bias_transfer(self) -> int:
        """Ĵ = φ* Ĵ(parent) φ*⁻¹ + H* B*, where B is the slip."""
        j = self.program.recursion("J_hat", Type.TRANSFER)
        if j not in self.program.definitions:
            self.program.definitions[j] = j
            bent = self._local("bend", Type.TRANSFER, self._carried_transfer(), self.slip())
            self.program.define(j, bent)
        return self._named("J_hat", j)

    def _carried_transfer(self) -> int:
        j = self.program.recursion("J_hat", Type.TRANSFER)
        return self._local("outsim", Type.TRANSFER, j)

    def slip(self) -> int:
        """Ĝ - φ⁻¹ Ĵ*(parent) φ G: what K̂ - Ĵ*K takes to the parent."""
        self.bias_transfer()
        operands = self.gyroscopic_bias(), self._carried_transfer(), self.G(), self.D()
        return self._local("slip", Type.BLOCK, *operands)

    def U(self) -> int:
        """P H*."""
        return self._named("U", self._local("U", Type.BLOCK, self.articulated()))

    def D(self) -> int:
        """H U + A, factored."""
        return self._named("D", self._local("D", Type.FACTOR, self.U()))

    def G(self) -> int:
        """U D⁻¹."""
        return self._named("G", self._local("G", Type.BLOCK, self.U(), self.D()))

    def _named(self, name: str, stream: int) -> int:
        self.program.names.setdefault(stream, name)
        return stream


def _symbol(operator: Expr) -> Symbol:
    while isinstance(operator, (Adjoint, Inverse)):
        operator = operator.of
    if not isinstance(operator, Symbol):
        raise LoweringError(f"{operator} has no sweep form")
    return operator


def _spell(operator: Expr) -> tuple[str, bool, bool]:
    adjoint = inverse = False
    node = operator
    while isinstance(node, (Adjoint, Inverse)):
        adjoint ^= isinstance(node, Adjoint)
        inverse ^= isinstance(node, Inverse)
        node = node.of
    return _symbol(operator).name, adjoint, inverse


def _shin(s: Lowering, x: int) -> int:
    return s._local("shin", Type.FORCE, x)


def _shout(s: Lowering, x: int) -> int:
    return s._local("shout", Type.MOTION, x)


_APPLY: dict[tuple[str, bool, bool], Callable[[Lowering, int], int]] = {
    ("H", False, False): lambda s, x: s._local("H", Type.JOINT, x),
    ("H", True, False): lambda s, x: s._local("Ht", Type.MOTION, x),
    ("M", False, False): lambda s, x: s._local("inertia", Type.FORCE, s.rigid(), x),
    ("P", False, False): lambda s, x: s._local("inertia", Type.FORCE, s.articulated(), x),
    ("composite", False, False): lambda s, x: s._local("inertia", Type.FORCE, s.composite(), x),
    ("Upsilon", False, False): lambda s, x: s._local("inertia", Type.MOTION, s.compliance(), x),
    ("M_hat", False, False): lambda s, x: s._local("inertia", Type.FORCE, s.gyroscopic(), x),
    ("M_hat", True, False): lambda s, x: s._local("inertia_t", Type.FORCE, s.gyroscopic(), x),
    ("R_hat", False, False): lambda s, x: s._local("inertia", Type.FORCE, s.gyroscopic_sum(), x),
    ("R_hat", True, False): lambda s, x: s._local("inertia_t", Type.FORCE, s.gyroscopic_sum(), x),
    ("P_hat", False, False): lambda s, x: s._local("inertia", Type.FORCE, s.gyroscopic_bias(), x),
    ("P_hat", True, False): lambda s, x: s._local("inertia_t", Type.FORCE, s.gyroscopic_bias(), x),
    ("J_hat", False, False): lambda s, x: s._local("inertia", Type.MOTION, s.bias_transfer(), x),
    ("J_hat", True, False): lambda s, x: s._local("inertia_t", Type.FORCE, s.bias_transfer(), x),
    ("A", False, False): lambda s, x: s._local("Ax", Type.JOINT, x),
    ("D", False, False): lambda s, x: s._local("Dx", Type.JOINT, s.D(), x),
    ("D", False, True): lambda s, x: s._local("Dsolve", Type.JOINT, s.D(), x),
    ("G", False, False): lambda s, x: s._local("Gx", Type.FORCE, s.G(), x),
    ("G", True, False): lambda s, x: s._local("Gtx", Type.JOINT, s.G(), x),
    ("E_phi", False, False): _shin,
    ("E_phi", True, False): _shout,
    ("K", False, False): lambda s, x: _shin(s, s._local("Gx", Type.FORCE, s.G(), x)),
    ("K", True, False): lambda s, x: s._local("Gtx", Type.JOINT, s.G(), _shout(s, x)),
    ("phi", False, False): Lowering.phi,
    ("phi", True, False): Lowering.phi_adjoint,
    ("psi", False, False): Lowering.psi,
    ("psi", True, False): Lowering.psi_adjoint,
    ("meet", False, False): Lowering.meet,
}
"""How each operator acts on a stream: (name, adjoint, inverse)."""
