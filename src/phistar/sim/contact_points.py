# SPDX-License-Identifier: BSD-3-Clause
"""Where pairs that may touch are, for a batch: gaps, places, axes, rates, and the rows L."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phistar.arrays import Array
from phistar.compile import traced_results
from phistar.model.model import Model
from phistar.scalar.trace.unilateral_rows import StepRows
from phistar.sim.contact_pairs import Pair


class ContactPoints:
    """The pairs of a robot. Configurations may be complex, for derivatives by imaginary steps.

    Args:
        model: The robot.
        rows: Of its joints and pairs.
        pairs: In the order of the rows.
    """

    def __init__(self, model: Model, rows: StepRows, pairs: Sequence[Pair]) -> None:
        self.model = model
        self.rows = rows
        self.pairs = pairs
        self.on_terrain = rows.given_planes > 0

    def planes(self, q: Array) -> Array:
        """Tangent planes (batch, 4 n) of height fields below what may touch them."""
        flat = np.tile([0.0, 0.0, 1.0, 0.0], self.rows.given_planes)
        level = np.broadcast_to(flat, (len(q), len(flat)))
        key = ("terrain_points", self.rows)
        places = traced_results(self.model, key, q, np.zeros((len(q), self.model.nv)), level)
        found = []
        for k, pair in enumerate(self.pairs):
            if pair.terrain is not None:
                x, y, _ = np.moveaxis(places["position"][:, k], -1, 0)
                found.append(pair.terrain.planes_at(x, y))
        return np.ascontiguousarray(np.concatenate(found, axis=-1))

    def at(self, q: Array, v: Array) -> dict[str, Array]:
        """``gap`` (batch, pairs), ``position``, ``rates`` (batch, pairs, 3), ``axes`` (..., 3, 3).

        Args:
            q: (batch, nq).
            v: (batch, nv).
        """
        if self.on_terrain:
            key = ("terrain_points", self.rows)
            return traced_results(self.model, key, q, v, self.planes(q))
        return traced_results(self.model, ("contact_points", self.rows), q, v)

    def row_matrix(self, q: Array) -> Array:
        """L (batch, rows, nv): rates of joints that rub or stop and of pairs are L v."""
        batch, nv, bounded = len(q), self.model.nv, self.rows.bounded
        L = np.zeros((batch, self.rows.count, nv), np.result_type(q, float))
        for i, row in enumerate(bounded):
            L[:, i, row.v] = 1.0
        if self.pairs:
            units = np.tile(np.eye(nv), (batch, 1))
            rates = self.at(np.repeat(q, nv, axis=0), units)["rates"]
            columns = rates.reshape(batch, nv, 3 * len(self.pairs))
            L[:, len(bounded) :] = np.swapaxes(columns, 1, 2)
        return L

    def states(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Coordinates or gaps (batch, joints + pairs) of rows with laws, and their rates."""
        bounded = self.rows.bounded
        places = q[:, [max(row.q, 0) for row in bounded]]
        rates = v[:, [row.v for row in bounded]]
        if not self.pairs:
            return places, rates
        found = self.at(q, v)
        gap = found["gap"].reshape(len(q), -1)
        speed = found["rates"].reshape(len(q), -1, 3)[..., 0]
        return np.concatenate([places, gap], axis=-1), np.concatenate([rates, speed], axis=-1)
