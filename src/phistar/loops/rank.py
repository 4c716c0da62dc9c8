# SPDX-License-Identifier: BSD-3-Clause
"""How many rows of a robot's loops are independent, and which.

The number is decided on assembled configurations, on L and never on L𝓜⁻¹L*, whose singular values
are squares, and kept: between the stages of an integrator a loop is a little open, and rows that
depend on each other seem not to. Which rows are taken is decided afresh at each state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.loops.system import LoopSystem
from phistar.spatial.reproducible_products import matvec

RANK_TOLERANCE = 1e-8
"""Singular values of L without units below this fraction of the largest are zero."""


def singular_values(system: LoopSystem, rows: Array) -> Array:
    """Of L without units, (..., min(rows, nv))."""
    return np.asarray(np.linalg.svd(system.scaled(rows), compute_uv=False))


def rank_of(system: LoopSystem, rows: Array, tolerance: float = RANK_TOLERANCE) -> Array:
    """Rank (...) of L (..., rows, nv)."""
    if not rows.shape[-2] or not rows.shape[-1]:
        return np.zeros(rows.shape[:-2], dtype=int)
    values = singular_values(system, rows)
    return np.asarray((values > tolerance * values[..., :1]).sum(axis=-1))


def independent_rows(system: LoopSystem, rows: Array, rank: int) -> Array:
    """Numbers (..., rank) of rows that are far from dependent."""
    return independent_vectors(system.scaled(rows), rank)


def independent_vectors(vectors: Array, count: int, fraction: float = 1.0) -> Array:
    """Numbers (..., count), in order, of vectors that are far from dependent.

    By Gram-Schmidt with pivots: of what is left of the vectors the longest is taken, or the last
    one that has this fraction of its length.

    Args:
        vectors: (..., n, size).
        count: How many.
        fraction: At most one.
    """
    left = vectors
    chosen = np.empty((*left.shape[:-2], count), dtype=int)
    order = np.arange(left.shape[-2])
    for k in range(count):
        norms = (left * left).sum(axis=-1)
        if k:
            np.put_along_axis(norms, chosen[..., :k], -1.0, axis=-1)
        best = norms.argmax(axis=-1)
        if fraction < 1.0:
            far = norms >= fraction**2 * norms.max(axis=-1, keepdims=True)
            best = np.where(far, order, -1).argmax(axis=-1)
        chosen[..., k] = best
        pivot = np.take_along_axis(left, best[..., None, None], axis=-2)
        length = np.sqrt((pivot * pivot).sum(axis=-1, keepdims=True))
        unit = pivot / np.where(length > 0.0, length, 1.0)
        left = left - (left * unit).sum(axis=-1, keepdims=True) * unit
    return np.sort(chosen, axis=-1)


def take_rows(rows: Array, chosen: Array) -> Array:
    """Chosen rows (..., rank, n) of (..., rows, n)."""
    return np.take_along_axis(rows, chosen[..., None], axis=-2)


@dataclass(frozen=True)
class Factored:
    """L of a rank, U S V*.

    Attributes:
        U: (..., rows, rank).
        S: (..., rank).
        V: (..., nv, rank).
        X: (..., nv, nv - rank), a basis of the motions that keep the loops.
    """

    U: Array
    S: Array
    V: Array
    X: Array

    def least_norm(self, c: Array) -> Array:
        """The shortest x (..., nv) with Lx nearest to c."""
        return matvec(self.V, matvec(np.swapaxes(self.U, -1, -2), c) / self.S)

    def multipliers(self, force: Array) -> Array:
        """The shortest λ (..., rows) with L*λ nearest to joint forces."""
        return matvec(self.U, matvec(np.swapaxes(self.V, -1, -2), force) / self.S)


def factored(rows: Array, rank: int) -> Factored:
    """L (..., rows, nv) as if it had this rank."""
    nv = rows.shape[-1]
    if not rows.shape[-2]:
        batch = rows.shape[:-2]
        X = np.broadcast_to(np.eye(nv), (*batch, nv, nv))
        return Factored(np.zeros((*batch, 0, 0)), np.zeros((*batch, 0)), X[..., :0], X)
    U, S, Vt = np.linalg.svd(rows)
    V = np.swapaxes(Vt, -1, -2)
    return Factored(U[..., :rank], S[..., :rank], V[..., :rank], V[..., rank:])


def shortest_multipliers(rows: Array, rank: int, force: Array) -> Array:
    """The shortest λ (..., rows) with L*λ nearest to joint forces, L as if it had this rank."""
    U, S, Vt = np.linalg.svd(rows, full_matrices=False)
    inner = (Vt[..., :rank, :] @ force[..., None])[..., 0] / S[..., :rank]
    return np.asarray((U[..., :rank] @ inner[..., None])[..., 0])


def self_stress(system: LoopSystem, rows: Array, rank: int) -> Array:
    """A basis (..., rows, rows - rank) of multipliers without joint forces, L*λ = 0."""
    U = np.linalg.svd(system.scaled(rows))[0][..., rank:]
    return np.asarray(system.row_scale[:, None] * U)
