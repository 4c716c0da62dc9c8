# SPDX-License-Identifier: BSD-3-Clause
"""𝓜 and J at a configuration as operators: multiply, transpose, solve; dense only on request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar import dynamics
from phistar.errors import ArgumentError, ShapeError
from phistar.model.configuration import Coordinates, configuration, tangent
from phistar.model.kinematics import frame_velocity
from phistar.model.model import Model

Array = NDArray[Any]
Action = Callable[[Array], Array]


@dataclass(frozen=True)
class LinearOperator:
    """A linear map that is applied, not formed.

    ``A @ x`` takes vectors (..., n) along the last axis and gives (..., m).

    Attributes:
        name: For messages.
        shape: (m, n).
        batch_axes: Number of batch axes of the configuration it was made at.
    """

    name: str
    shape: tuple[int, int]
    _apply: Action = field(repr=False)
    _adjoint: Action = field(repr=False)
    _solve: Action | None = field(default=None, repr=False)
    batch_axes: int = 0

    def __matmul__(self, x: ArrayLike) -> Array:
        return self._apply(self._checked(x, self.shape[1]))

    def _checked(self, x: ArrayLike, size: int) -> Array:
        array = np.asarray(x)
        if array.ndim == 0 or array.shape[-1] != size:
            raise ShapeError("x", array.shape, f"(..., {size})", self.name)
        return array

    @property
    def T(self) -> LinearOperator:
        """The transpose."""
        turned = (self.shape[1], self.shape[0])
        name, axes = f"{self.name}*", self.batch_axes
        return LinearOperator(name, turned, self._adjoint, self._apply, self._solve, axes)

    def solve(self, x: ArrayLike) -> Array:
        """The inverse applied to vectors (..., m)."""
        if self._solve is None:
            raise ArgumentError(f"{self.name} has no inverse")
        return self._solve(self._checked(x, self.shape[0]))

    @property
    def inv(self) -> LinearOperator:
        """The inverse as an operator."""
        if self._solve is None:
            raise ArgumentError(f"{self.name} has no inverse")
        name, axes = f"{self.name}⁻¹", self.batch_axes
        return LinearOperator(name, self.shape, self._solve, self._solve, self._apply, axes)

    def dense(self) -> Array:
        """The matrix (..., m, n)."""
        size = self.shape[1]
        units = np.eye(size).reshape(size, *(1,) * self.batch_axes, size)
        return np.moveaxis(self._apply(units), 0, -1)


class Operators:
    """The operators of a robot at a configuration (..., nq) and, for C, a velocity (..., nv)."""

    def __init__(self, model: Model, q: Coordinates, v: Coordinates | None = None) -> None:
        self.model = model
        self.q = configuration(model, q)
        self.v = None if v is None else tangent(model, v)

    @property
    def M(self) -> LinearOperator:
        """The mass matrix: O(n) to multiply, O(n) to solve."""
        model, q = self.model, self.q
        return LinearOperator(
            f"𝓜 of '{model.name}'",
            (model.nv, model.nv),
            lambda x: dynamics.mass_matrix_times(model, q, x),
            lambda x: dynamics.mass_matrix_times(model, q, x),
            lambda x: dynamics.mass_matrix_solve(model, q, x),
            batch_axes=q.ndim - 1,
        )

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
            batch_axes=max(q.ndim, v.ndim) - 1,
        )

    def J(self, frame: str, reference: str = "world_aligned") -> LinearOperator:
        """The Jacobian of a frame, rows [angular; linear]; its transpose takes wrenches to τ."""
        model, q = self.model, self.q
        model.frame(frame)
        return LinearOperator(
            f"J of '{frame}'",
            (6, model.nv),
            lambda v: frame_velocity(model, q, v, frame, reference),
            lambda f: dynamics.generalised_force(model, q, {frame: f}, reference),
            batch_axes=q.ndim - 1,
        )
