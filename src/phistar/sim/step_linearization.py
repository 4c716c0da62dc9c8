# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of a step with contacts and joint physics, for the set of rows that act in it.

A step is the solution of 𝓜ₕ(v⁺ - v) = h(τ - 𝒞 - passive forces) + L*λ together with a law of each
row, σ = Lv⁺ being its rate:

    open, free      λ = 0
    closed, stick   σ + c = 0 along the normal, σ = 0 along the tangents
    slide           λ + μλₙ σ/|σ| = 0 along the tangents of a closed contact
    rubs            λ = ±h f of a joint that slips
    held, at stop   σ = 0, σ = bound of a joint

Where the set of laws stays the same, that is a smooth system of equations, and its derivatives are
those of its solution (implicit function theorem):

    𝓜ₕ δv̇ = (∂) δq + (∂) δv + δτ + L*δλ/h        E_σ δσ + E_λ δλ + E_q δq + E_v δv = 0

with δσ = L(δv + h δv̇) + (∂L/∂q v⁺) δq. Derivatives of L are by imaginary steps, those of 𝓜 and 𝒞
by ``linearize_inverse``. All of that is in the axes that floating bodies have at the beginning
(``model.floating_roots``); by imaginary steps, too, they go on to those of the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from phistar.arrays import Array
from phistar.derivatives.discrete import semi_implicit_discretization
from phistar.derivatives.first import Linearization, linearize_inverse
from phistar.joint_physics.implicit import implicit_numbers
from phistar.joint_physics.passive_forces import IMAGINARY_STEP, passive_derivatives
from phistar.model.configuration import integrate_unchecked
from phistar.model.floating_roots import carried_velocity, unsettled_velocity
from phistar.reprs import one_line_repr
from phistar.sim.batch_state import BatchState
from phistar.sim.contact_points import ContactPoints
from phistar.sim.row_sets import RowSets, row_sets
from phistar.sim.turning_axes import carried_derivative, settled_derivatives
from phistar.thresholds import POLICY


@one_line_repr
@dataclass(frozen=True)
class StepLinearization:
    """A step of a simulator's batch: δx' = A δx + B δτ with δx = (δq, δv), δq tangent steps.

    Attributes:
        q: (batch, nq) configurations at its end.
        v: (batch, nv) velocities at its end.
        A: (batch, 2 nv, 2 nv).
        B: (batch, 2 nv, nv).
        names: Of joints that rub or stop, then of pairs that may touch, as in ``sim.contacts``.
        sets: (batch, names) which law each of them follows: ``"free"``, ``"rubs"``, ``"held"`` or
            ``"stop"`` of joints; ``"open"``, ``"stick"`` or ``"slide"`` of pairs.
        kinks: (batch, names) what is at a boundary, where derivatives to both sides differ:
            ``"force"`` (about to open, or to touch), ``"slip"`` (about to slip, or to stick),
            ``"gap"`` (gaps are used up, penetrations taken back in part: resting contacts are at
            that boundary, and have the derivative from inside); ``""``: nothing.
    """

    q: Array
    v: Array
    A: Array
    B: Array
    names: tuple[str, ...]
    sets: Array
    kinks: Array

    @property
    def smooth(self) -> Array:
        """(batch,) booleans: samples whose step is differentiable."""
        return np.asarray((self.kinks == "").all(axis=-1))


def linearize_step(
    points: ContactPoints,
    dt: float,
    smooth: tuple[str, ...],
    state: BatchState,
    tau: Array,
    ahead: BatchState,
    names: tuple[str, ...],
) -> StepLinearization:
    """The derivatives of a step that was taken.

    Args:
        points: Pairs and joints with rows.
        dt: Length of the step [s].
        smooth: Springs and dampers that pushed.
        state: Before the step.
        tau: (batch, nv).
        ahead: After it.
        names: Of joints and pairs.
    """
    model, h, rows = points.model, dt, points.rows
    q, v, impulses = state.q, state.v, ahead.impulses[:, : rows.count]
    later = unsettled_velocity(model, ahead.v, h)
    kept = np.eye(model.nv) + carried_derivative(model, v, h)
    vdot = (later - v - carried_velocity(model, v, h)) / h
    added, K = implicit_numbers(model, smooth, h)
    at = linearize_inverse(model, q, v, vdot)
    along_q, along_v = passive_derivatives(model, q, v, smooth)
    L, change = _row_derivatives(points, q)
    inverse = np.linalg.inv(at.tau_vdot + np.diag(added))
    by_q = along_q - at.tau_q + np.einsum("br,brij->bij", impulses / h, change)
    by_v = along_v - h * np.diag(K) - at.tau_v
    by_x = np.concatenate([by_q, by_v, np.broadcast_to(np.eye(model.nv), by_q.shape)], axis=-1)
    found = inverse @ by_x
    sets = row_sets(points, dt, state, replace(ahead, v=later), L, inverse)
    if rows.count:
        rates = np.concatenate(
            [np.einsum("brij,bi->brj", change, later), L @ kept, np.zeros_like(L)], axis=-1
        )
        before = np.einsum("brij,bi->brj", change, v)
        moved = _multipliers(points, sets, L, inverse, rates + h * L @ found, before)
        found = found + inverse @ np.swapaxes(L, 1, 2) @ moved / h
    at_q, at_v, at_tau = np.split(found, 3, axis=-1)
    at_v = at_v + (kept - np.eye(model.nv)) / h
    known = Linearization((later - v) / h, at_q, at_v, at_tau, model, v)
    step = semi_implicit_discretization(model, q, v, h, known)
    both = settled_derivatives(model, later, h, np.concatenate([step.A, step.B], axis=-1))
    A, B = both[..., : 2 * model.nv], both[..., 2 * model.nv :]
    return StepLinearization(ahead.q, ahead.v, A, B, names, sets.sets, sets.kinks)


def _row_derivatives(points: ContactPoints, q: Array) -> tuple[Array, Array]:
    """L (batch, rows, nv), and ∂L/∂q along tangent steps (batch, rows, nv, nv)."""
    batch, nv = len(q), points.model.nv
    L = points.row_matrix(q)
    if not points.pairs:
        return L, np.zeros((*L.shape, nv))
    steps = 1j * IMAGINARY_STEP * np.tile(np.eye(nv), (batch, 1))
    moved = integrate_unchecked(points.model, np.repeat(q.astype(complex), nv, axis=0), steps)
    change = points.row_matrix(moved).imag / IMAGINARY_STEP
    return L, np.moveaxis(change.reshape(batch, nv, *L.shape[1:]), 1, -1)


def _multipliers(
    points: ContactPoints, sets: RowSets, L: Array, inverse: Array, rates: Array, before: Array
) -> Array:
    """∂λ (batch, rows, 3 nv) along q, v and τ, of the laws that hold.

    Args:
        points: Pairs and joints with rows.
        sets: Which laws hold.
        L: Rows.
        inverse: 𝓜ₕ⁻¹.
        rates: (batch, rows, 3 nv) ∂σ without multipliers.
        before: (batch, rows, nv) ∂L/∂q v at the start of the step.
    """
    nv = points.model.nv
    delta = L @ inverse @ np.swapaxes(L, 1, 2)
    right = sets.by_rate @ rates
    first = len(points.rows.bounded)
    for k in range(sets.place_slopes.shape[1]):
        r = k if k < first else first + 3 * (k - first)
        place, rate = sets.place_slopes[:, k, None], sets.rate_slopes[:, k, None]
        right[:, r, :nv] += place * L[:, r] + rate * before[:, r]
        right[:, r, nv : 2 * nv] += rate * L[:, r]
    left = sets.by_rate @ delta + sets.by_multiplier
    # Rows in units of λ, so that those that are redundant can be told by their size.
    size = np.abs(left).max(axis=-1, keepdims=True)
    size = np.where(size > 0.0, size, 1.0)
    least = np.linalg.pinv(left / size, rcond=POLICY.redundant_row_share)
    return np.asarray(-least @ (right / size))
