# SPDX-License-Identifier: BSD-3-Clause
"""The operators of a robot at a state: 𝓜, C, J, φ, ψ, your own; dense only on request."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from phistar import dynamics
from phistar.algebra import symbols
from phistar.algebra.expression_checks import check_expression
from phistar.algebra.ir import Expr
from phistar.algebra.spaces import ONE
from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.functions import Function
from phistar.linear import LinearOperator
from phistar.model.configuration import Coordinates, as_numbers, batch_shape, configuration, tangent
from phistar.model.model import Model
from phistar.model.numpy_kinematics import check_reference, frame_velocity
from phistar.model.wrenches import check_wrenches


class Operators:
    """The operators of a robot at a configuration (..., nq) and, for C, a velocity (..., nv).

    ``M``, ``C`` and ``J`` act on the robot's coordinates. The operators of the papers (``phi``,
    ``psi``, ``E_phi``, ``H``, ``P``, ``D``, ``G``, ``K``) act on vectors over its links
    (..., bodies * 6), [angular; linear] in link axes, and over its joints (..., nv).
    """

    def __init__(self, model: Model, q: Coordinates, v: Coordinates | None = None) -> None:
        self.model = model
        self.q = configuration(model, q)
        self.v = None if v is None else tangent(model, v)
        state = {"q": self.q} if self.v is None else {"q": self.q, "v": self.v}
        self._batch = batch_shape(model, state)

    def __repr__(self) -> str:
        state = f"q {self.q.shape}" + ("" if self.v is None else f", v {self.v.shape}")
        have = (
            "M, " + ("" if self.v is None else "C, ") + "J(frame), phi, psi, E_phi, H, P, D, G, K"
        )
        return f"<operators of '{self.model.name}' at {state}: {have}, operator(expr)>"

    @property
    def M(self) -> LinearOperator:
        """The mass matrix: O(n) to multiply, O(n) to solve."""
        model, q = self.model, self.q

        def times(x: Array) -> Array:
            return dynamics.mass_matrix_times(model, q, x)

        def solve(x: Array) -> Array:
            return dynamics.mass_matrix_solve(model, q, x)

        name, shape, batch = f"𝓜 of '{model.name}'", (model.nv, model.nv), q.shape[:-1]
        inverse = LinearOperator(name, shape, solve, solve, batch=batch, dtype=q.dtype)
        return LinearOperator(name, shape, times, times, lambda: inverse, batch, q.dtype)

    @property
    def C(self) -> LinearOperator:
        """The Christoffel-consistent Coriolis matrix: C @ v is the bias force without gravity."""
        model, q, v = self.model, self.q, self.v
        if v is None:
            raise ArgumentError("the Coriolis operator depends on v; ask for operators(q, v)")
        return LinearOperator(
            f"C of '{model.name}'",
            (model.nv, model.nv),
            lambda x: dynamics.coriolis_times(model, q, v, x),
            lambda x: dynamics.coriolis_times(model, q, v, x, adjoint=True),
            batch=self._batch,
            dtype=np.result_type(q, v),
        )

    def J(self, frames: str | Sequence[str], reference: str = "world_aligned") -> LinearOperator:
        """The Jacobian of a frame, or of several: 6 rows each, [angular; linear].

        Its transpose takes wrenches on the frames to joint forces.

        Args:
            frames: Name of a link or frame, or several names, each once.
            reference: Axes and point of its velocity, as in ``Robot.jacobian``.
        """
        model, q = self.model, self.q
        names = [frames] if isinstance(frames, str) else list(frames)
        for name in names:
            model.frame(name)
        if len(set(names)) < len(names) or not names:
            raise ArgumentError(f"J needs one frame or more, each named once, got {names}")
        check_reference(reference)

        def velocities(v: Array) -> Array:
            blocks = [frame_velocity(model, q, v, name, reference) for name in names]
            return np.concatenate(blocks, axis=-1)

        def force(f: Array) -> Array:
            blocks = np.split(f, len(names), axis=-1)
            forces = dict(zip(names, blocks, strict=True))
            wrenches = check_wrenches(model, q, forces, reference)
            return dynamics.generalised_force(model, q, wrenches)

        title = f"J of {', '.join(map(repr, names))}"
        shape = (6 * len(names), model.nv)
        return LinearOperator(title, shape, velocities, force, batch=q.shape[:-1], dtype=q.dtype)

    @property
    def phi(self) -> LinearOperator:
        """φ: collects the forces on each link and all its descendants."""
        return self.operator(symbols.phi)

    @property
    def psi(self) -> LinearOperator:
        """ψ: the same through joints that are free to move."""
        return self.operator(symbols.psi)

    @property
    def E_phi(self) -> LinearOperator:
        """Eφ: the force on each link, at its parent."""
        return self.operator(symbols.E_phi)

    @property
    def H(self) -> LinearOperator:
        """H: forces on the links to joint forces; ``H.T`` joint velocities to motions."""
        return self.operator(symbols.H)

    @property
    def P(self) -> LinearOperator:
        """P: articulated-body inertias of the links."""
        return self.operator(symbols.P)

    @property
    def D(self) -> LinearOperator:
        """D: the inertia at each joint when those beyond it are free."""
        return self.operator(symbols.D)

    @property
    def G(self) -> LinearOperator:
        """G = P H* D⁻¹: the Kalman gain."""
        return self.operator(symbols.G)

    @property
    def K(self) -> LinearOperator:
        """K = Eφ G: the gain, shifted to the parent."""
        return self.operator(symbols.K)

    def operator(
        self, expr: Expr, *, frames: Sequence[str] = (), **inputs: ArrayLike
    ) -> LinearOperator:
        """Your own operator at this state: compiled, applied in O(n).

        Args:
            expr: Written with the symbols of ``phistar.algebra.symbols``.
            frames: The frames selected by ``B``, in order.
            inputs: Vectors that the expression names; ``v`` is known if this state has one.
        """
        check_expression(expr)
        if expr.domain is ONE:
            raise ArgumentError(f"{expr} is a vector; use apply({expr}, ...)")
        function = Function(self.model, expr, frames)
        values = self._inputs(function, inputs)
        adjoint = cache(lambda: Function(self.model, expr.T, frames))
        return LinearOperator(
            str(expr),
            (function.size(expr.codomain), function.size(expr.domain)),
            lambda x: function(self.q, x, **values),
            lambda x: adjoint()(self.q, x, **values),
            lambda: self.operator(expr.inv, frames=frames, **inputs),
            batch_shape(self.model, {"q": self.q, **values}),
            np.result_type(self.q, *values.values()),
        )

    def apply(
        self,
        expr: Expr,
        x: ArrayLike | None = None,
        *,
        frames: Sequence[str] = (),
        **inputs: ArrayLike,
    ) -> Array:
        """An operator expression applied to ``x`` (..., n), or a vector expression evaluated.

        Args:
            expr: Written with the symbols of ``phistar.algebra.symbols``.
            x: Argument of an operator.
            frames, inputs: As in ``operator``.
        """
        check_expression(expr)
        if expr.domain is not ONE:
            if x is None:
                raise ArgumentError(f"{expr} is an operator; give what it acts on")
            return np.asarray(self.operator(expr, frames=frames, **inputs) @ x)
        if x is not None:
            raise ArgumentError(f"{expr} is a vector, it acts on nothing")
        function = Function(self.model, expr, frames)
        return function(self.q, **self._inputs(function, inputs))

    def _inputs(self, function: Function, given: dict[str, ArrayLike]) -> dict[str, Array]:
        """The vectors that a function names, v from the state unless given."""
        values = {name: as_numbers(value, name) for name, value in given.items()}
        if self.v is not None and "v" in function.inputs:
            values.setdefault("v", self.v)
        return values
