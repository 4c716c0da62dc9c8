# SPDX-License-Identifier: BSD-3-Clause
"""A scheme that conserves energy: the implicit midpoint rule in (q, η), gravity by a discrete
gradient.

    q_m = q ⊕ h v_m / 2     η_m = (η + η') / 2      v_m = L⁻*R⁻*η_m at q_m
    q'  = q ⊕ h v_m         η'  = η + h(ε - C - ε̄)

Half the sum of η² is the kinetic energy, and C does no work, η*C = 0 (Jain & Rodriguez 1995); so in
a step it changes by what ε - ε̄ does, h η_m*(ε - ε̄) = h v_m*τ - h η_m*ε̄. For ε̄ the gravity term
ε_g at the middle is corrected along η_m such that its work is the difference of the potential
energies,

    ε̄ = ε_g + α η_m,    α = (U(q') - U(q) - h v_m*g) / (h η_m*η_m),

as in O. Gonzalez, "Time integration and discrete Hamiltonian systems", J. Nonlinear Sci. 6 (1996).
Without joint forces energy is conserved to the tolerance of the iteration that solves these
equations, whatever the step. The rule is symmetric, so that it is of second order. Momentum is
conserved to second order only.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from phistar.arrays import Array
from phistar.kinematics import center_of_mass
from phistar.model.configuration import integrate_unchecked
from phistar.model.model import Model
from phistar.sim.divergence import call_around_singular, diverged_samples
from phistar.sim.numpy_stepper import NumpyLoop
from phistar.sim.variables import NormalisedRate

ITERATION_TOLERANCE = 4e-15
"""Largest relative change of η and v in the last iteration."""

STALL_TOLERANCE = 1e-12
"""An iteration that changes less than this and no longer improves has reached rounding."""

MAX_ITERATIONS = 60

SETTLING_ITERATIONS = 4
"""Iterations after which a relative change above one half counts as divergence."""

ENERGY_ROUNDINGS = 8.0
"""Roundings of weight times distance by which a difference of potential energies may be off. Work
of gravity that is missing by no more is none; near rest η is not known better than this over η.
"""

MIN_RELATIVE_SQUARE = 1e-12
"""η_m*η_m below this fraction of the change in a step gives no direction for the correction."""


class ConservingStepper(NumpyLoop):
    """Steps that conserve energy."""

    failure_text = "has steps whose equations do not converge, use shorter steps: no state"

    def __init__(self, model: Model, variable: NormalisedRate, keep_going: bool = False) -> None:
        """Args:
        model: The robot.
        variable: η.
        keep_going: Whether the rest of a batch continues when a sample diverges.
        """
        super().__init__(model, keep_going)
        self.variable = variable
        self.cost_ns = 4e5

    def begin(self, q: Array, x: Array) -> None:
        """Energy, and a guess of the middle of the first step."""
        self._energy = self._potential_energy(q)
        self._guess = (self.variable.velocity(q, x), x)
        self._last: tuple[Array, Array] | None = None

    def advance(
        self, q: Array, x: Array, tau: Array, dt: float, t: float, lost: Array
    ) -> tuple[Array, Array]:
        """See ``NumpyLoop``."""
        q, x, self._energy, middle = self.step(q, x, self._guess, self._energy, tau, dt, lost)
        # Linear extrapolation of the last two middles.
        last, self._last, self._guess = self._last, middle, middle
        if last is not None:
            self._guess = (2 * middle[0] - last[0], 2 * middle[1] - last[1])
        return q, x

    def step(
        self,
        q: Array,
        eta: Array,
        guess: tuple[Array, Array],
        potential: Array,
        tau: Array,
        dt: float,
        lost: Array,
    ) -> tuple[Array, Array, Array, tuple[Array, Array]]:
        """One step.

        Args:
            q: (batch, nq).
            eta: (batch, nv).
            guess: v and η (batch, nv) of the middle, initial guess.
            potential: (batch,) potential energy.
            tau: (batch, nv).
            dt: [s].
            lost: (batch,) samples to ignore; those that do not converge are added. They stay where
                they are, at rest.

        Returns:
            q, η and potential energy at the end, and v and η of the middle.
        """
        v, middle = guess
        change, done = np.full(len(q), np.inf), lost.copy()
        end_q, end_eta, end_potential = q, eta, potential
        kept: tuple[Array, ...] | None = None
        noise = self._energy_noise(q)
        for k in range(MAX_ITERATIONS):
            lost |= diverged_samples(v, middle)
            if k > SETTLING_ITERATIONS:
                lost |= ~(change < 0.5) & ~done
            if lost.all():
                break
            if lost.any():
                v, middle, eta = (np.where(lost[:, None], 0.0, x) for x in (v, middle, eta))
            middle_q = integrate_unchecked(self.model, q, dt / 2 * v)
            terms = partial(self.variable.terms, tau=tau)
            next_v, net, coriolis, gravity_force = call_around_singular(
                self.model, terms, middle_q, middle, self.keep_going
            )
            lost |= diverged_samples(next_v, net, coriolis)
            next_v = np.where(lost[:, None], 0.0, next_v) if lost.any() else next_v
            end_q = integrate_unchecked(self.model, q, dt * next_v)
            end_potential = self._potential_energy(end_q)
            missing = end_potential - potential - dt * (next_v * gravity_force).sum(axis=-1)
            missing = np.where(np.abs(missing) > noise, missing, 0.0)
            end_eta = eta + dt * (net - coriolis) - _gravity_correction(middle, missing, dt * net)
            previous, last = (middle, v), change
            middle, v = (eta + end_eta) / 2, next_v
            change = np.maximum(_change(middle, previous[0]), _change(v, previous[1]))
            unsure = noise / np.maximum((middle * middle).sum(axis=-1), np.finfo(float).tiny)
            stalled = (change <= np.maximum(STALL_TOLERANCE, unsure)) & (change >= last / 2)
            # What has settled stays, however long the others take.
            now: tuple[Array, ...] = end_q, end_eta, end_potential, v, middle
            if kept is not None:
                now = tuple(_chosen(done, old, new) for old, new in zip(kept, now, strict=True))
            kept = end_q, end_eta, end_potential, v, middle = now
            done |= (change <= ITERATION_TOLERANCE) | stalled | lost
            if done.all():
                break
        lost |= ~done
        if lost.any():
            frozen = lost[:, None]
            v, middle, end_eta = (np.where(frozen, 0.0, x) for x in (v, middle, end_eta))
            end_q = np.where(frozen, q, end_q)
            end_potential = np.where(lost, potential, end_potential)
        return end_q, end_eta, end_potential, (v, middle)

    def _potential_energy(self, q: Array) -> Array:
        """Potential energy (batch,), equal to ``energies.potential_energy``."""
        mass = float(self.model.inertias[:, 0].sum())
        if mass == 0.0 or not self.model.gravity.any():
            return np.zeros(len(q))
        center = center_of_mass(self.model, q, fixed=False)
        # Not @, whose order of terms depends on the batch.
        return np.asarray(-mass * (center * self.model.gravity).sum(axis=-1))

    def _energy_noise(self, q: Array) -> Array:
        """By how much (batch,) a difference of potential energies may be off.

        By roundings of the centre of mass, in whatever direction it lies from the origin.
        """
        mass = float(self.model.inertias[:, 0].sum())
        weight = mass * float(np.sqrt((self.model.gravity**2).sum()))
        if weight == 0.0:
            return np.zeros(len(q))
        away = np.sqrt((center_of_mass(self.model, q, fixed=False) ** 2).sum(axis=-1))
        return np.asarray(ENERGY_ROUNDINGS * float(np.finfo(float).eps) * weight * away)


def _chosen(done: Array, old: Array, new: Array) -> Array:
    """The old rows of samples that are done, the new ones of the others."""
    return np.where(done if new.ndim == 1 else done[:, None], old, new)


def _gravity_correction(middle: Array, missing: Array, reach: Array) -> Array:
    """h α η_m (batch, nv), such that its product with η_m is the missing work of gravity."""
    square = (middle * middle).sum(axis=-1)
    moving = square > MIN_RELATIVE_SQUARE * (reach * reach).sum(axis=-1)
    ratio = np.where(moving, missing / np.where(moving, square, 1.0), 0.0)
    return np.asarray(ratio[:, None] * middle)


def _change(x: Array, previous: Array) -> Array:
    """(batch,): largest change relative to the largest entry of the sample."""
    size = np.maximum(np.abs(x).max(axis=-1), np.abs(previous).max(axis=-1))
    difference = np.abs(x - previous).max(axis=-1)
    return np.asarray(difference / np.maximum(size, np.finfo(float).tiny))
