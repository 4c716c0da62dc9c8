# SPDX-License-Identifier: BSD-3-Clause
"""A scheme that keeps energy: the implicit midpoint rule in (q, η), gravity by a discrete gradient.

    q_m = q ⊕ h v_m / 2     η_m = (η + η') / 2      v_m = L⁻*R⁻*η_m at q_m
    q'  = q ⊕ h v_m         η'  = η + h(ε - C - ε̄)

Half the sum of η² is the kinetic energy, and C does no work, η*C = 0 (Jain & Rodriguez 1995); so in
a step it changes by what ε - ε̄ does, h η_m*(ε - ε̄) = h v_m*τ - h η_m*ε̄. For ε̄ the gravity term ε_g
at the middle is mended along η_m such that its work is the difference of the potential energies,

    ε̄ = ε_g + α η_m,    α = (U(q') - U(q) - h v_m*g) / (h η_m*η_m),

as in O. Gonzalez, "Time integration and discrete Hamiltonian systems", J. Nonlinear Sci. 6 (1996).
Without joint forces energy is kept to the tolerance of the iteration that solves these equations,
whatever the step. The rule is symmetric, so that it is of second order. Momentum is kept to second
order only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.errors import ArgumentError
from phistar.model.configuration import integrate
from phistar.model.model import Model
from phistar.motion import center_of_mass
from phistar.sim.variables import Normalised

Array = NDArray[Any]

TOLERANCE = 4e-15
"""Of η and v in an iteration, relative to their size."""

STALLED = 1e-12
"""An iteration that changes no more than this and gets no better is as good as numbers allow."""

ITERATIONS = 60

SETTLED = 4
"""Iterations after which η and v change by less than half of their size, or never settle."""

STILL = 1e-12
"""η_m*η_m below this part of what a step can change it by has no direction to mend along."""


class Conserving:
    """Steps that keep energy.

    Attributes:
        engine: Its name in results.
    """

    engine = "numpy loop"

    def __init__(self, model: Model, variable: Normalised) -> None:
        self.model = model
        self.variable = variable
        self.cost = 4e5

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
        """See ``sim.loop.Loop.run``."""
        height = self._height(q)
        guess = (self.variable.velocity(q, x), x)
        last: tuple[Array, Array] | None = None
        for k in range(steps):
            push = tau if tau.ndim == 2 else tau[k]
            q, x, height, middle = self.step(q, x, guess, height, push, dt)
            # The next middle lies about as far from this one as this one from the last.
            guess = middle if last is None else (2 * middle[0] - last[0], 2 * middle[1] - last[1])
            last = middle
            if (k + 1) % every == 0:
                for result, state in zip(results, (q, x), strict=True):
                    result[k // every] = state
        return True

    def step(
        self,
        q: Array,
        eta: Array,
        guess: tuple[Array, Array],
        height: Array,
        tau: Array,
        dt: float,
    ) -> tuple[Array, Array, Array, tuple[Array, Array]]:
        """One step.

        Args:
            q: (batch, nq).
            eta: (batch, nv).
            guess: v and η (batch, nv) of the middle, about.
            height: (batch,) potential energy.
            tau: (batch, nv).
            dt: [s].

        Returns:
            q, η and potential energy at the end, and v and η of the middle.

        Raises:
            ArgumentError: The iteration does not converge.
        """
        v, middle = guess
        change = np.inf
        for k in range(ITERATIONS):
            if k > SETTLED and not change < 0.5:
                break
            place = integrate(self.model, q, dt / 2 * v)
            later, net, coriolis, weight = self.variable.terms(place, middle, tau)
            end = integrate(self.model, q, dt * later)
            above = self._height(end)
            missing = above - height - dt * (later * weight).sum(axis=-1)
            after = eta + dt * (net - coriolis) - _mended(middle, missing, dt * net)
            before, last = (middle, v), change
            middle, v = (eta + after) / 2, later
            change = max(_change(middle, before[0]), _change(v, before[1]))
            if change <= TOLERANCE or (change <= STALLED and change >= last / 2):
                return end, after, above, (v, middle)
        raise ArgumentError(
            f"a step of {dt:g} s of robot '{self.model.name}' does not converge (last change "
            f"{change:.1e} of η and v); use shorter steps"
        )

    def _height(self, q: Array) -> Array:
        """Potential energy (batch,), as ``energies.potential_energy`` has it."""
        mass = float(self.model.inertias[:, 0].sum())
        if mass == 0.0 or not self.model.gravity.any():
            return np.zeros(len(q))
        center = center_of_mass(self.model, q, fixed=False)
        return np.asarray(-mass * center @ self.model.gravity)


def _mended(middle: Array, missing: Array, reach: Array) -> Array:
    """h α η_m (batch, nv), such that its product with η_m is the missing work of gravity."""
    square = (middle * middle).sum(axis=-1)
    moving = square > STILL * (reach * reach).sum(axis=-1)
    ratio = np.where(moving, missing / np.where(moving, square, 1.0), 0.0)
    return np.asarray(ratio[:, None] * middle)


def _change(x: Array, before: Array) -> float:
    """The largest change relative to the size of the sample's vector."""
    size = np.maximum(np.abs(x).max(axis=-1), np.abs(before).max(axis=-1))
    moved = np.abs(x - before).max(axis=-1)
    return float(np.max(moved / np.maximum(size, np.finfo(float).tiny), initial=0.0))
