# SPDX-License-Identifier: BSD-3-Clause
"""The operators of a robot at a state: L and Δ of its loops besides those of its tree."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from phistar import dynamics
from phistar.arrays import Array
from phistar.linear import LinearOperator
from phistar.loops.system import loop_system, rows_at
from phistar.operators import Operators


class LoopOperators(Operators):
    """``op.L @ v``, ``op.L.T @ lam`` and ``op.Delta @ lam``; the others are those of the tree."""

    def __repr__(self) -> str:
        if not loop_system(self.model).count:
            return super().__repr__()
        return super().__repr__().replace(": M,", ": L, Delta, M,")

    @cached_property
    def _rows(self) -> Array:
        return rows_at(self.model, self.q).L

    @property
    def L(self) -> LinearOperator:
        """Rows of the active loops: joint velocities to rates at which loops open."""
        rows = self._rows
        columns = np.swapaxes(rows, -1, -2)
        return LinearOperator(
            f"L of '{self.model.name}'",
            (rows.shape[-2], rows.shape[-1]),
            lambda x: np.asarray((rows @ x[..., None])[..., 0]),
            lambda x: np.asarray((columns @ x[..., None])[..., 0]),
            batch=self.q.shape[:-1],
            dtype=self.q.dtype,
        )

    @property
    def Delta(self) -> LinearOperator:
        """Δ = L𝓜⁻¹L*: multipliers to accelerations of the rows, by sweeps."""
        tree, q, L = loop_system(self.model).tree, self.q, self.L

        def times(x: Array) -> Array:
            return np.asarray(L @ dynamics.mass_matrix_solve(tree, q, L.T @ x))

        count = self._rows.shape[-2]
        name = f"Δ of '{self.model.name}'"
        return LinearOperator(name, (count, count), times, times, batch=q.shape[:-1], dtype=q.dtype)
