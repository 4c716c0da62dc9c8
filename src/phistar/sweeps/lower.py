# SPDX-License-Identifier: BSD-3-Clause
"""Expressions -> streams: φ becomes an inward recursion, φ* an outward one, P a Riccati recursion.

K, Eψ and ψ are never formed: ψx is z = x + Σ φ (z - G H z), and so on. Symbols that stand for
longer expressions are unfolded; ``let`` gives its stream a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import inf

from phistar.algebra.calculus import is_zero
from phistar.algebra.ir import (
    Adjoint,
    Bracket,
    Expr,
    IdentityOperator,
    Inverse,
    Let,
    Product,
    Sparsity,
    Sum,
    Symbol,
    add,
    product,
    symbol,
)
from phistar.algebra.spaces import (
    FORCE,
    GROUND_FORCE,
    GROUND_POINT,
    JOINT,
    MOTION,
    ONE,
    PLACE,
    PLANE,
    POINT,
    TASK_FORCE,
    TASK_MOTION,
    WORLD_MOTION,
    Space,
)
from phistar.algebra.symbols import (
    ARTICULATED_RATE_SYMBOLS,
    POSE_ROWS,
    A,
    B,
    M,
    symbol_entry,
    vector,
    velocities,
    weight,
)
from phistar.errors import LoweringError
from phistar.sweeps.inner_products import DualPair, inner_product_terms
from phistar.sweeps.ir import StreamProgram, Type

_TYPES: Mapping[Space, Type] = {
    JOINT: Type.JOINT,
    MOTION: Type.MOTION,
    FORCE: Type.FORCE,
    WORLD_MOTION: Type.WORLD_MOTION,
    POINT: Type.POINT,
    PLANE: Type.PLANE,
    GROUND_FORCE: Type.GROUND_FORCE,
    GROUND_POINT: Type.GROUND_POINT,
    PLACE: Type.PLACE,
}
_ROBOT_VECTORS = {
    "mu": "mass_point",
    "mu_0": "ground_point",
    **{f"e_{axis}": f"coordinate_{axis}" for axis in "xyz"},
}
"""Operations for vectors that a robot gives and nobody else."""
_ONE = Fraction(1)

ARGUMENTS: Mapping[Space, Symbol] = {
    space: vector(f"argument_{space.name.lower()}", space, "x", "What an operator acts on.")
    for space in (JOINT, MOTION, FORCE, TASK_FORCE)
}
"""What operators are applied to, by domain."""

common_ancestor_product = symbol(
    "common_ancestor_product", MOTION, FORCE, Sparsity.DENSE, symmetric=True
)
"""ψ*H*D⁻¹Hψ where each column's source is a single link: see ``Lowering.meet``."""


def lower(outputs: Mapping[str, Expr]) -> StreamProgram:
    """A program that computes vectors and numbers.

    Args:
        outputs: Expressions of vectors and numbers by name. Motions of frames come as the motions
            of all links, from which the caller picks off the frames.

    Raises:
        LoweringError: An output is not a vector, or holds something that has no sweep form.
    """
    lowering = Lowering()
    for name, expr in outputs.items():
        if expr.domain is not ONE:
            raise LoweringError(f"output {name!r} is an operator, not a vector; apply it to one")
        stream = (
            lowering.number(expr)
            if expr.codomain is ONE
            else lowering.vector(_before_pick_off(name, expr))
        )
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
        self.program = StreamProgram()
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
        if isinstance(expr, Symbol) and expr.name in _ROBOT_VECTORS:
            return self._named(expr.name, self.program.apply(_ROBOT_VECTORS[expr.name]))
        if isinstance(expr, Symbol):
            return self.program.leaf(expr.name, _stream_type(expr))
        if isinstance(expr, Sum):
            if not expr.terms:
                return self.program.add("zero", (), _stream_type(expr))
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
        if isinstance(operator, IdentityOperator):
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
            cross = self.program.apply("crf", x, argument)
            return self.program.sum([(-_ONE, cross)])
        return self.program.apply(operator.kind, argument, x)

    def _atom(self, operator: Expr, x: int) -> int:
        name, adjoint, inverse = _parse_atom(operator)
        known = _LOWERINGS.get((name, adjoint, inverse))
        if known is not None:
            return known(self, x)
        for direction, rate in ARTICULATED_RATE_SYMBOLS.items():
            if operator is rate:
                return self._local("inertia", self.articulated_rate(direction), x)
        definition = symbol_entry(_symbol(operator)).definition
        if inverse or not isinstance(definition, Expr):
            raise LoweringError(_no_sweep_form_message(operator))
        return self.apply(definition.T if adjoint else definition, x)

    def _local(self, op: str, *operands: int, type: Type | None = None) -> int:
        return self.program.apply(op, *operands, type=type)

    # -- numbers

    def number(self, expr: Expr) -> int:
        """Σ over the links of products of vectors there, and what is weighed at the ground."""
        if expr not in self._vectors:
            terms = expr.terms if isinstance(expr, Sum) else ((_ONE, expr),)
            weighed = [
                (c, e) for c, e in terms if isinstance(e, Product) and e.factors[0] is weight
            ]
            parts = [(c, self.vector(e)) for c, e in weighed]
            products = add((term for term in terms if term not in weighed), ONE, ONE)
            if not is_zero(products):
                parts.append((_ONE, self._total(products)))
            found = self.program.sum(parts) if parts else self.program.add("zero", (), Type.TOTAL)
            self._vectors[expr] = found
        return self._vectors[expr]

    def _total(self, expr: Expr) -> int:
        """Σ over the links of products of vectors, as few streams as the cuts allow."""
        terms = []
        for term in inner_product_terms(expr, _count_streams):
            if len(term.pairs) != 1:
                raise LoweringError(
                    f"{expr} has a term that is not one product of two vectors; robot.function "
                    "multiplies numbers"
                )
            factor, stream = self._link_number(*term.pairs[0])
            terms.append((term.factor * factor, stream))
        return self.program.apply("total", self.program.sum(terms))

    def _link_number(self, left: Expr, right: Expr) -> tuple[int, int]:
        """A factor and the number at each link whose sum is a product of two vectors."""
        for operator, op in ((M, "link_energy"), (A, "rotor_energy")):
            for x, y in ((left, right), (right, left)):
                if x.codomain is operator.domain and y is operator @ x:
                    return 2, self.program.apply(op, self.vector(x))
        return 1, self.program.apply("dot", self.vector(left), self.vector(right))

    # -- recursions over vectors

    def phi(self, x: int) -> int:
        """z = x + Σ φ z."""
        z = self.program.recursion(("phi", x), Type.FORCE)
        inward = self._local("shift_in", z)
        return self._close(z, [(_ONE, x), (_ONE, inward)])

    def phi_adjoint(self, x: int) -> int:
        """y = x + φ* y(parent)."""
        y = self.program.recursion(("phi*", x), Type.MOTION)
        outward = self._local("shift_out", y)
        return self._close(y, [(_ONE, x), (_ONE, outward)])

    def pi(self, x: int) -> int:
        """z = x + Σ Eπ z."""
        z = self.program.recursion(("pi", x), Type.POINT)
        return self._close(z, [(_ONE, x), (_ONE, self._local("point_in", z))])

    def pi_adjoint(self, x: int) -> int:
        """y = x + Eπ* y(parent)."""
        y = self.program.recursion(("pi*", x), Type.PLANE)
        return self._close(y, [(_ONE, x), (_ONE, self._local("plane_out", y))])

    def pose_rows(self) -> tuple[int, ...]:
        """The rows of the links' poses in the world."""
        return tuple(self._named(axis, self.vector(row)) for axis, row in POSE_ROWS.items())

    def psi(self, x: int) -> int:
        """z = x + Σ φ (z - G H z)."""
        z = self.program.recursion(("psi", x), Type.FORCE)
        across = self._local("Gx", self.G(), self._local("H", z))
        through = self.program.sum([(_ONE, z), (-_ONE, across)])
        return self._close(z, [(_ONE, x), (_ONE, self._local("shift_in", through))])

    def psi_adjoint(self, x: int) -> int:
        """y = x + l - H* G* l with l = φ* y(parent)."""
        y = self.program.recursion(("psi*", x), Type.MOTION)
        carried = self._local("shift_out", y)
        given = self._local("Gtx", self.G(), carried)
        yielded = self._local("Ht", given)
        return self._close(y, [(_ONE, x), (_ONE, carried), (-_ONE, yielded)])

    def common_ancestor_product(self, x: int) -> int:
        """y = Υ ψx at the links that the source x lies beyond, else what the parent passes on.

        The first is the block ψ*(i,c) Υ(c) ψ(c,j) at i = c; the second walks it outward from the
        nearest common ancestor c to a link i on another branch.
        """
        beyond = self._local("inertia", self.compliance(), self.psi(x))
        y = self.program.recursion(("common_ancestor_product", x), Type.MOTION)
        carried = self._local("shift_out", y)
        yielded = self._local("Ht", self._local("Gtx", self.G(), carried))
        passed = self.program.sum([(_ONE, carried), (-_ONE, yielded)])
        if y not in self.program.definitions:
            self.program.define(y, self._local("select", beyond, passed))
        return y

    def _close(self, recursion: int, terms: list[tuple[Fraction, int]]) -> int:
        if recursion not in self.program.definitions:
            self.program.define(recursion, self.program.sum(terms))
        return recursion

    # -- inertias

    def rigid(self) -> int:
        """M."""
        return self._named("M", self.program.apply("rigid"))

    def articulated(self) -> int:
        """P = M + Σ φ P⁺ φ*, P⁺ = P - G U*."""
        p = self.program.recursion("P", Type.INERTIA)
        if p not in self.program.definitions:
            self.program.definitions[p] = p
            p_plus = self._named("P⁺", self._local("articulated_downdate", p, self.U(), self.G()))
            inward = self._local("congruence_in", p_plus)
            self.program.define(p, self.program.sum([(_ONE, self.rigid()), (_ONE, inward)]))
        return self._named("P", p)

    def articulated_rate(self, direction: Expr) -> int:
        """Ṗ = Σ φ (δ ×* P⁺ - P⁺ δ × + (I - G H) Ṗ (I - G H)*) φ*, δ = H* of the direction."""
        moved = self._local("Ht", self.vector(direction))
        rate = self.program.recursion(("P_dot", moved), Type.INERTIA)
        p_plus = self._local("articulated_downdate", self.articulated(), self.U(), self.G())
        turned = self._local("inertia_rate", moved, p_plus)
        passed = self._local("congruence_across", rate, self.G())
        across = self.program.sum([(_ONE, turned), (_ONE, passed)])
        inward = self._local("congruence_in", across)
        return self._named("P_dot", self._close(rate, [(_ONE, inward)]))

    def composite(self) -> int:
        """R = M + Σ φ R φ*."""
        r = self.program.recursion("R", Type.INERTIA)
        inward = self._local("congruence_in", r)
        return self._named("R", self._close(r, [(_ONE, self.rigid()), (_ONE, inward)]))

    def compliance(self) -> int:
        """Υ = (I - G H)* φ* Υ(parent) φ (I - G H) + H* D⁻¹ H."""
        y = self.program.recursion("Upsilon", Type.INERTIA)
        if y not in self.program.definitions:
            carried = self.parent_compliance()
            self.program.define(y, self._local("compliance_update", carried, self.G(), self.D()))
        return self._named("Upsilon", y)

    def parent_compliance(self) -> int:
        """φ* Υ(parent) φ."""
        y = self.program.recursion("Upsilon", Type.INERTIA)
        return self._local("congruence_out", y)

    def gyroscopic(self) -> int:
        """M̂ of the velocities V."""
        V = self.vector(velocities)
        return self._named("M_hat", self.program.apply("gyro", V))

    def gyroscopic_sum(self) -> int:
        """R̂ = M̂ + Σ φ R̂ φ*."""
        r = self.program.recursion("R_hat", Type.TRANSFER)
        inward = self._local("congruence_in", r)
        return self._named("R_hat", self._close(r, [(_ONE, self.gyroscopic()), (_ONE, inward)]))

    def gyroscopic_bias(self) -> int:
        """P̂ = M̂ + Σ φ (P̂ - G H P̂) φ*."""
        p = self.program.recursion("P_hat", Type.TRANSFER)
        across = self._local("project_across", p, self.G())
        inward = self._local("congruence_in", across)
        return self._named("P_hat", self._close(p, [(_ONE, self.gyroscopic()), (_ONE, inward)]))

    def bias_transfer(self) -> int:
        """Ĵ = φ* Ĵ(parent) φ*⁻¹ + H* B*, where B is the slip."""
        j = self.program.recursion("J_hat", Type.TRANSFER)
        if j not in self.program.definitions:
            self.program.definitions[j] = j
            bent = self._local("transfer_update", self._parent_transfer(), self.bias_gain())
            self.program.define(j, bent)
        return self._named("J_hat", j)

    def _parent_transfer(self) -> int:
        j = self.program.recursion("J_hat", Type.TRANSFER)
        return self._local("similarity_out", j)

    def bias_gain(self) -> int:
        """Ĝ - φ⁻¹ Ĵ*(parent) φ G: what K̂ - Ĵ*K takes to the parent."""
        self.bias_transfer()
        operands = self.gyroscopic_bias(), self._parent_transfer(), self.G(), self.D()
        return self._local("bias_gain", *operands)

    def U(self) -> int:
        """P H*."""
        return self._named("U", self._local("U", self.articulated()))

    def D(self) -> int:
        """H U + A, factored."""
        return self._named("D", self._local("D", self.U()))

    def G(self) -> int:
        """U D⁻¹."""
        return self._named("G", self._local("G", self.U(), self.D()))

    def _named(self, name: str, stream: int) -> int:
        self.program.names.setdefault(stream, name)
        return stream


def _count_streams(pair: DualPair) -> float:
    """What a pair of vectors costs: their streams; infinite if they cannot be computed."""
    lowering = Lowering()
    try:
        streams = [lowering.vector(expr) for expr in pair]
    except LoweringError:
        return inf
    lowering.program.outputs = {str(stream): stream for stream in streams}
    return sum(1 for _ in lowering.program.live())


def _symbol(operator: Expr) -> Symbol:
    inside = operator
    while isinstance(inside, (Adjoint, Inverse)):
        inside = inside.of
    if not isinstance(inside, Symbol):
        raise LoweringError(_no_sweep_form_message(operator))
    return inside


_INVERSES_TEXT = (
    "inverses that have one, and the theorems behind them: 𝓜⁻¹ (mass_matrix_inverse; 𝓜 is "
    "H φ M φ* H* + A, and without A only on robots without rotors), (I + H φ K)⁻¹ and "
    "(I - H ψ K)⁻¹ (innovations_inverse), D⁻¹, φ⁻¹ = I - Eφ, ψ⁻¹ = I - Eψ"
)


def _stream_type(expr: Expr) -> Type:
    """The type of a vector's stream.

    Raises:
        LoweringError: Its space has no part for each link, as that of loops.
    """
    if expr.codomain not in _TYPES:
        raise LoweringError(
            f"{expr} has no sweep form: {expr.codomain.reads} have no part at each link. Use "
            "matrices: phistar.algebra.dense.Dense(robot.model, q, loops=[...])(expr)"
        )
    return _TYPES[expr.codomain]


def _no_sweep_form_message(operator: Expr) -> str:
    """Why an operator cannot be computed link by link, and what to do."""
    inside = operator
    while isinstance(inside, Adjoint):
        inside = inside.of
    if isinstance(inside, Inverse):
        return f"{operator} has no sweep form; {_INVERSES_TEXT}"
    if isinstance(inside, Symbol) and inside.name in ("X", "Y", "Z"):
        return (
            f"{operator} has no sweep form: {inside} stands for any block diagonal in theorems, "
            "and no robot gives it. Write the operator that you mean, or give a matrix for it: "
            "phistar.algebra.dense.Dense(robot.model, q, "
            f"vectors={{'{inside.name}': matrix}})(expr)"
        )
    return (
        f"{operator} has no sweep form: it stands in theorems only. Write what it is equal to, or "
        "use matrices: phistar.algebra.dense.Dense(robot.model, q)(expr)"
    )


def _parse_atom(operator: Expr) -> tuple[str, bool, bool]:
    adjoint = inverse = False
    node = operator
    while isinstance(node, (Adjoint, Inverse)):
        adjoint ^= isinstance(node, Adjoint)
        inverse ^= isinstance(node, Inverse)
        node = node.of
    return _symbol(operator).name, adjoint, inverse


def _shift_in(s: Lowering, x: int) -> int:
    return s._local("shift_in", x)


def _shift_out(s: Lowering, x: int) -> int:
    return s._local("shift_out", x)


_LOWERINGS: dict[tuple[str, bool, bool], Callable[[Lowering, int], int]] = {
    ("H", False, False): lambda s, x: s._local("H", x),
    ("H", True, False): lambda s, x: s._local("Ht", x),
    ("M", False, False): lambda s, x: s._local("inertia", s.rigid(), x),
    ("P", False, False): lambda s, x: s._local("inertia", s.articulated(), x),
    ("composite", False, False): lambda s, x: s._local("inertia", s.composite(), x),
    ("Upsilon", False, False): lambda s, x: s._local("inertia", s.compliance(), x),
    ("M_hat", False, False): lambda s, x: s._local("inertia", s.gyroscopic(), x),
    ("M_hat", True, False): lambda s, x: s._local("inertia_t", s.gyroscopic(), x),
    ("R_hat", False, False): lambda s, x: s._local("inertia", s.gyroscopic_sum(), x),
    ("R_hat", True, False): lambda s, x: s._local("inertia_t", s.gyroscopic_sum(), x),
    ("P_hat", False, False): lambda s, x: s._local("inertia", s.gyroscopic_bias(), x),
    ("P_hat", True, False): lambda s, x: s._local("inertia_t", s.gyroscopic_bias(), x),
    ("J_hat", False, False): lambda s, x: s._local(
        "inertia", s.bias_transfer(), x, type=Type.MOTION
    ),
    ("J_hat", True, False): lambda s, x: s._local("inertia_t", s.bias_transfer(), x),
    ("A", False, False): lambda s, x: s._local("Ax", x),
    ("N", False, False): lambda s, x: s._local("Ht", x, type=Type.FORCE),
    ("N", True, False): lambda s, x: s._local("H", x),
    ("D", False, False): lambda s, x: s._local("Dx", s.D(), x),
    ("D", False, True): lambda s, x: s._local("Dsolve", s.D(), x),
    ("G", False, False): lambda s, x: s._local("Gx", s.G(), x),
    ("G", True, False): lambda s, x: s._local("Gtx", s.G(), x),
    ("E_phi", False, False): _shift_in,
    ("E_phi", True, False): _shift_out,
    ("E_0", False, False): lambda s, x: s._local("to_ground", x),
    ("E_pi", False, False): lambda s, x: s._local("point_in", x),
    ("pi", False, False): Lowering.pi,
    ("E_pi", True, False): lambda s, x: s._local("plane_out", x),
    ("pi", True, False): Lowering.pi_adjoint,
    ("X_0", False, False): lambda s, x: s._local("to_world", *s.pose_rows(), x),
    ("E_pi_0", False, False): lambda s, x: s._local("point_to_ground", x),
    ("weight", False, False): lambda s, x: s._local("weigh", x),
    ("center", False, False): lambda s, x: s._local("center", x),
    ("moving_center", False, False): lambda s, x: s._local("moving_center", x),
    ("K", False, False): lambda s, x: _shift_in(s, s._local("Gx", s.G(), x)),
    ("K", True, False): lambda s, x: s._local("Gtx", s.G(), _shift_out(s, x)),
    ("phi", False, False): Lowering.phi,
    ("phi", True, False): Lowering.phi_adjoint,
    ("psi", False, False): Lowering.psi,
    ("psi", True, False): Lowering.psi_adjoint,
    ("common_ancestor_product", False, False): Lowering.common_ancestor_product,
}
"""How each operator acts on a stream: (name, adjoint, inverse)."""
