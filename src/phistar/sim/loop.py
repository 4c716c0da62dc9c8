# SPDX-License-Identifier: BSD-3-Clause
"""A scheme as a loop of NumPy over steps: for what has no machine code, and as its witness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.model.configuration import integrate
from phistar.model.model import Model
from phistar.scalar.steps import Update
from phistar.sim.manifold import bracket
from phistar.sim.schemes import Rate, Scheme
from phistar.sim.variables import Variable

Array = NDArray[Any]


class Loop:
    """Steps of a scheme.

    Attributes:
        engine: Its name in results.
    """

    engine = "numpy loop"

    def __init__(self, model: Model, variable: Variable, scheme: Scheme) -> None:
        self.model = model
        self.variable = variable
        self.scheme = scheme
        self.cost = 2e4

    def run(
        self,
        q: Array,
        x: Array,
        tau: Array,
        dt: float,
        steps: int,
        every: int,
        results: tuple[Array, Array],
    ) -> bool:
        """Fill the results.

        Args:
            q: (batch, nq) at the beginning.
            x: (batch, nv).
            tau: (batch, nv), or (steps, batch, nv): joint forces held during each step.
            dt: [s].
            steps: How many.
            every: Steps from one result to the next; divides ``steps``.
            results: q and x after each ``every`` steps, (steps / every, batch, n).

        Returns:
            Whether all numbers are finite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(steps):
                q, x = self.step(q, x, tau if tau.ndim == 2 else tau[k], dt)
                if not (np.isfinite(q).all() and np.isfinite(x).all()):
                    for result, state in zip(results, (q, x), strict=True):
                        result[k // every :] = state
                    return False
                if (k + 1) % every == 0:
                    for result, state in zip(results, (q, x), strict=True):
                        result[k // every] = state
        return True

    def step(self, q: Array, x: Array, tau: Array, dt: float) -> tuple[Array, Array]:
        """One step."""
        stages = {0: (q, x)}
        velocities: dict[int, Array] = {}
        rates: dict[int, Array] = {}
        for part in self.scheme.parts:
            if isinstance(part, Rate):
                here = stages[part.stage]
                if part.velocity_only:
                    velocities[part.stage] = self.variable.velocity(*here)
                else:
                    found = self.variable.rate(*here, tau)
                    velocities[part.stage], rates[part.stage] = found
            else:
                stages[part.stage] = self._updated(part.update, (q, x), velocities, rates, dt)
        return stages[0]

    def _updated(
        self,
        update: Update,
        start: tuple[Array, Array],
        velocities: Mapping[int, Array],
        rates: Mapping[int, Array],
        dt: float,
    ) -> tuple[Array, Array]:
        q, x = start
        way = np.zeros_like(x)
        for stage, weight in update.moves:
            way = way + weight * velocities[stage]
        for one, other, weight in update.turns:
            turned = bracket(self.model, velocities[one], velocities[other])
            way = way + (weight * dt) * turned
        total = np.zeros_like(x)
        for stage, weight in update.rates:
            total = total + weight * rates[stage]
        moved = integrate(self.model, q, dt * way) if update.velocities else q
        return moved, x + dt * total
