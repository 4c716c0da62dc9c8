# SPDX-License-Identifier: BSD-3-Clause
"""An expression on a robot whose mimic joints are reduced: compiled pieces between joint vectors.

Joint vectors have an entry for each of the robot's coordinates, so that H is X*H and A is X*AX: X
gives the rates of all joints, followers too. Pieces that lead from joint vectors to joint vectors
without one in between are programs of the tree, their vectors spread and their results summed. 𝓜⁻¹
is that over nodes of links. Operators that are about single joints, D, ψ and those made of them,
are not known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from phistar.algebra.ir import (
    Adjoint,
    Bracket,
    Expr,
    IdentityOperator,
    Inverse,
    Product,
    Sum,
    Symbol,
    product,
)
from phistar.algebra.spaces import JOINT, ONE, TASK_MOTION, Space
from phistar.algebra.symbols import D, E_psi, G, K, P, Upsilon, mass_matrix, psi
from phistar.algebra.traverse import nodes, open_lets
from phistar.arrays import Array
from phistar.compile.evaluate import run_traced
from phistar.compile.node_rows import embedded_request
from phistar.compile.pipeline import Kernel, compile_outputs
from phistar.errors import ArgumentError
from phistar.model.frame_motions import frame_motions
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.model.node_tree import NodeTree
from phistar.sweeps.lower import ARGUMENTS

_OF_SINGLE_JOINTS = frozenset({P, D, G, K, E_psi, psi, Upsilon})


class Pieces:
    """An expression in pieces.

    Args:
        model: The robot.
        expr: Inverses spelled as in the catalogue.
        frames: That B selects.

    Raises:
        ArgumentError: It has operators of single joints.
    """

    def __init__(self, model: Model, expr: Expr, frames: Sequence[str]) -> None:
        self.model = model
        self.expr = open_lets(expr)
        self.frames = tuple(frames)
        self._joints = joint_map(model)
        self._kernels: dict[Expr, Kernel] = {}
        self._check()

    @property
    def divides(self) -> bool:
        """Whether the inverse of the mass matrix is in it."""
        return any(isinstance(node, Inverse) for node in nodes([self.expr]))

    @property
    def is_one_program(self) -> bool:
        """Whether it is a program of the tree as it stands, between spread and summed vectors."""
        return not self.divides and not _crosses_joints(self.expr) and _is_force(self.expr)

    def _check(self) -> None:
        found = list(nodes([self.expr]))
        single = sorted(str(x) for x in _OF_SINGLE_JOINTS & set(found))
        single += [str(x) for x in found if isinstance(x, Inverse) and x.of is not mass_matrix]
        if single:
            raise ArgumentError(
                f"{single[0]} in {self.expr} is about single joints, and robot "
                f"'{self.model.name}' has reduced mimic joints, which share coordinates: "
                "robot.minimal(q).operators() has it over nodes of links that move together; or "
                "load the robot with mimic='independent'"
            )
        for x in found:
            if isinstance(x, Bracket) and _crosses_joints(x.argument):
                raise ArgumentError(
                    f"{x} multiplies joint vectors inside its brackets, which cannot be taken "
                    f"apart for robot '{self.model.name}' with reduced mimic joints; compute its "
                    "argument first and pass it as a vector"
                )

    def value(self, q: Array, vectors: Mapping[str, Array]) -> Array:
        """A vector or number; joint vectors (..., nv), those of links (..., bodies, 6)."""
        return self._value(self.expr, q, vectors)

    def apply(self, q: Array, x: Array, vectors: Mapping[str, Array]) -> Array:
        """An operator applied."""
        return self._apply(self.expr, q, x, vectors)

    def _value(self, expr: Expr, q: Array, vectors: Mapping[str, Array]) -> Array:
        if isinstance(expr, Symbol) and expr.codomain is JOINT:
            return vectors[expr.name]
        if isinstance(expr, Sum):
            terms = [float(c) * self._value(x, q, vectors) for c, x in expr.terms]
            return np.asarray(sum(terms)) if terms else self._nothing(expr.codomain, q)
        groups = _groups(expr)
        found = self._value(groups[-1], q, vectors) if len(groups) > 1 else None
        if found is None:
            return self._run(expr, q, {}, vectors)
        for group in reversed(groups[:-1]):
            found = self._apply(group, q, found, vectors)
        return found

    def _apply(self, expr: Expr, q: Array, x: Array, vectors: Mapping[str, Array]) -> Array:
        if isinstance(expr, IdentityOperator):
            return x
        if isinstance(expr, Sum):
            terms = [float(c) * self._apply(e, q, x, vectors) for c, e in expr.terms]
            return np.asarray(sum(terms)) if terms else self._nothing(expr.codomain, q)
        if isinstance(expr, Inverse):
            return self._solve(q, x)
        if expr.domain is ONE:
            vector = self._value(expr, q, vectors)
            axes = 1 if expr.codomain is JOINT else 2
            return np.asarray(vector * x.reshape(*x.shape, *(1,) * axes))
        if expr.codomain is ONE and isinstance(expr, Adjoint):
            axis = -1 if expr.domain is JOINT else (-2, -1)
            return np.asarray((self._value(expr.of, q, vectors) * x).sum(axis=axis))
        groups = _groups(expr)
        if len(groups) > 1:
            for group in reversed(groups):
                x = self._apply(group, q, x, vectors)
            return x
        argument = ARGUMENTS.get(expr.domain)
        if argument is None:
            raise ArgumentError(f"{expr} takes {expr.domain.reads}, which is not supported")
        given = self._joints.spread(x) if expr.domain is JOINT else x
        return self._run(expr @ argument, q, {argument.name: given}, vectors)

    def _run(
        self, expr: Expr, q: Array, given: Mapping[str, Array], vectors: Mapping[str, Array]
    ) -> Array:
        """A program of the tree."""
        if expr not in self._kernels:
            self._kernels[expr] = compile_outputs("piece", (("out", expr),), simplify=True)
        inputs = dict(given)
        for node in nodes([expr]):
            if isinstance(node, Symbol) and node.name in vectors:
                x = vectors[node.name]
                inputs[node.name] = self._joints.spread(x) if node.codomain is JOINT else x
        result = self._kernels[expr](self.model, q, inputs, self.frames)["out"]
        if expr.codomain is JOINT:
            return self._joints.gather(result)
        if expr.codomain is TASK_MOTION:
            return frame_motions(self.model, self.frames, result)
        return result

    def _solve(self, q: Array, x: Array) -> Array:
        key = (embedded_request("mass_matrix_solve", self.model),)
        found = run_traced(self.model, key, q, x)
        return NodeTree.of_mimics(self.model, q).solve(x) if found is None else found

    def _nothing(self, space: Space, q: Array) -> Array:
        links, frames = (len(self.model.bodies), 6), (len(self.frames), 6)
        sizes = {JOINT: (self.model.nv,), ONE: (), TASK_MOTION: frames}
        return np.zeros((*q.shape[:-1], *sizes.get(space, links)))

    @property
    def sweeps(self) -> str:
        """The walks over the links of pieces that were run."""
        texts = [f"{expr}\n{kernel.sweeps}" for expr, kernel in self._kernels.items()]
        return "\n\n".join(texts) or f"{self.expr}: in pieces, which are compiled when it is run"


def _groups(expr: Expr) -> list[Expr]:
    """Factors between joint vectors or numbers, each one piece or a sum of pieces."""
    if not isinstance(expr, Product):
        return [expr]
    groups: list[list[Expr]] = []
    closed = True
    for factor in expr.factors:
        alone = isinstance(factor, Sum) and _splits(factor)
        if closed or alone:
            groups.append([])
        groups[-1].append(factor)
        closed = alone or factor.domain in (JOINT, ONE)
    return [product(group, group[-1].domain) for group in groups]


def _splits(expr: Sum) -> bool:
    """Whether a sum may be no program of the tree as it stands."""
    return JOINT in (expr.codomain, expr.domain) or _crosses_joints(expr)


def _crosses_joints(expr: Expr) -> bool:
    """Whether something computed over joints goes on to links or joints."""
    for node in nodes([expr]):
        if isinstance(node, Product):
            pairs = zip(node.factors, node.factors[1:], strict=False)
            for left, right in pairs:
                given = isinstance(right, Symbol) and right.domain is ONE
                if left.domain is JOINT and not given:
                    return True
    return False


def _is_force(expr: Expr) -> bool:
    """Whether no joint vector that is given, or the identity, is a result or a part of it."""
    if expr.codomain is not JOINT:
        return True
    if isinstance(expr, Sum):
        return all(_is_force(term) for _, term in expr.terms)
    first = expr.factors[0] if isinstance(expr, Product) else expr
    if isinstance(first, Sum):
        return _is_force(first)
    return first.domain is not ONE and not isinstance(first, IdentityOperator)
