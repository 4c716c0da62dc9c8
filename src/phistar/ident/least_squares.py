# SPDX-License-Identifier: BSD-3-Clause
"""Weighted least squares from triangles: estimate, covariance, condition, cross-validation.

Forces of a shoulder and a wrist differ a thousandfold, and so does their noise. Every group of rows
(a joint) is weighted by its own residual: estimate, take the standard deviation of each group's
residual with its share of the degrees of freedom, estimate again, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.ident.equations import merged
from phistar.ident.triangles import RowTriangles, triangle, triangle_inverse
from phistar.thresholds import POLICY

ROUNDS = 100
"""Most times that weights are found again."""
SETTLED = 1e-8
"""Relative change of standard deviations at which they are found."""
LEAST_NOISE = 1e-6
"""Smallest standard deviation, relative to a group's forces: no model of a robot is better."""


@dataclass(frozen=True, eq=False)
class LinearFit:
    """An estimate of base parameters β.

    Attributes:
        beta: (b,) the estimate; directions that were not excited stay at the robot's values.
        covariance: (b, b) in the directions that were excited.
        deviation: (b,) standard deviations; infinite where a direction was not excited.
        noise: (groups,) standard deviation of the residuals [N m, N]; NaN without rows.
        rows: (groups,) rows that counted.
        information: (b, b) triangle R with RᵀR = Σ YᵀY/σ², the inverse of the covariance.
        condition: Condition number of the weighted base regressor with columns of unit length.
        rank: Directions that were excited, of b.
        singular_values: (b,) of it, relative to the first.
    """

    beta: Array
    covariance: Array
    deviation: Array
    noise: Array
    rows: Array
    information: Array
    condition: float
    rank: int
    singular_values: Array


def weighted_fit(
    triangles: RowTriangles,
    support: Sequence[Array],
    start: Array,
    noise: Array | None = None,
) -> LinearFit:
    """The estimate of triangles, weighted by group.

    Args:
        triangles: Of each group.
        support: Base parameters that each group has.
        start: (b,) values of directions that were not excited.
        noise: (groups,) standard deviations that are known; default: from the residuals.

    Raises:
        ArgumentError: There are fewer rows than parameters, or numbers that are too large.
    """
    if triangles.counts.sum() < len(start):
        raise ArgumentError(
            f"{triangles.counts.sum()} rows for {len(start)} base parameters: the log is too short"
        )
    for R in triangles.factors:
        _require_finite(R)
    sigma = _first_noise(triangles) if noise is None else noise
    fit = _solved(triangles, support, start, sigma)
    if noise is not None:
        return fit
    for _ in range(ROUNDS):
        found = _noise(triangles, support, fit, sigma)
        settled = np.allclose(found, sigma, rtol=SETTLED, atol=0.0)
        sigma = found
        fit = _solved(triangles, support, start, sigma)
        if settled:
            break
    return fit


def _require_finite(R: Array) -> Array:
    """A triangle, if it is one of finite numbers."""
    if not np.isfinite(R).all():
        raise ArgumentError(
            "numbers of the log are so large that their squares are not finite; expected SI units"
        )
    return R


def _first_noise(triangles: RowTriangles) -> Array:
    """Sizes of the forces of each group, for the first estimate."""
    lengths = np.array([np.linalg.norm(R[:, -1]) for R in triangles.factors])
    sizes = lengths / np.sqrt(np.maximum(triangles.counts, 1))
    return np.where(sizes > 0.0, sizes, max(float(sizes.max(initial=0.0)), 1.0))


def _noise(
    triangles: RowTriangles, support: Sequence[Array], fit: LinearFit, sigma: Array
) -> Array:
    """Standard deviations of residuals, each group having lost its share of b."""
    squares = triangles.squares([fit.beta[own] for own in support])
    least = LEAST_NOISE * _first_noise(triangles)
    found = np.empty(len(sigma))
    for k, (R, own) in enumerate(zip(triangles.factors, support, strict=True)):
        Y = R[:, :-1] / sigma[k]
        lost = float(np.einsum("ij,jk,ik->", Y, fit.covariance[np.ix_(own, own)], Y))
        left = triangles.counts[k] - lost
        found[k] = np.sqrt(squares[k] / left) if left > 0.0 else sigma[k]
    return np.maximum(found, least)


def _solved(
    triangles: RowTriangles, support: Sequence[Array], start: Array, sigma: Array
) -> LinearFit:
    """The estimate with given standard deviations."""
    size = len(start)
    stacked = []
    for R, own, scale in zip(triangles.factors, support, sigma, strict=True):
        rows = np.zeros((len(R), size + 1))
        rows[:, own] = R[:, :-1] / scale
        rows[:, -1] = (R[:, -1] - R[:, :-1] @ start[own]) / scale
        stacked.append(rows)
    whole = triangle(np.concatenate(stacked))
    information, wanted = whole[:size, :size], whole[:size, size]
    lengths = np.linalg.norm(information, axis=0)
    scale = np.where(lengths > 0.0, lengths, 1.0)
    s = np.linalg.svd(information / scale, compute_uv=False)
    if not s[0] > 0.0:
        raise ArgumentError("the log excites no parameter: all rows of the regressor are zero")
    rank = int((s > POLICY.excitation_tolerance * s[0]).sum())
    if rank == size:
        way, lost = triangle_inverse(information), np.zeros(size, dtype=bool)
        beta = start + np.einsum("ij,j->i", way, wanted)
    else:
        U, s, Vt = np.linalg.svd(information / scale)
        way = Vt[:rank].T / s[:rank] / scale[:, None]
        beta = start + way @ (U[:, :rank].T @ wanted)
        lost = np.abs(Vt[rank:]).max(axis=0, initial=0.0) > POLICY.excitation_tolerance
    deviation = np.where(lost, np.inf, np.linalg.norm(way, axis=1))
    return LinearFit(
        beta=beta,
        covariance=np.einsum("ik,jk->ij", way, way),
        deviation=deviation,
        noise=np.where(triangles.counts > 0, sigma, np.nan),
        rows=triangles.counts,
        information=information,
        condition=float(s[0] / s[rank - 1]),
        rank=rank,
        singular_values=s / s[0],
    )


def least_squares_solution(rows: Array, wanted: Array) -> Array:
    """x (n,) with the least ‖rows x - wanted‖; the shortest where columns depend on each other."""
    size = rows.shape[1]
    R = _require_finite(triangle(np.column_stack([rows, wanted]))[:size])
    pivots = np.abs(np.diagonal(R))
    if pivots.min() > POLICY.excitation_tolerance * pivots.max():
        return np.asarray(np.einsum("ij,j->i", triangle_inverse(R[:, :size]), R[:, size]))
    return np.asarray(np.linalg.lstsq(R[:, :size], R[:, size], rcond=None)[0])


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Errors on folds of a log whose rows were not used for the estimate.

    Attributes:
        rms: (groups,) root mean square of the errors on all folds [N m, N].
        folds: (folds, groups) of each.
        rank: The lowest number of directions that the other folds excited.
    """

    rms: Array
    folds: Array
    rank: int


def cross_validation(
    folds: Sequence[RowTriangles], support: Sequence[Array], start: Array
) -> CrossValidation:
    """Each fold predicted by an estimate from the others; takes the triangles only."""
    squares, counts, ranks = [], [], []
    for k, held in enumerate(folds):
        others = merged([each for i, each in enumerate(folds) if i != k])
        fit = weighted_fit(others, support, start)
        squares.append(held.squares([fit.beta[own] for own in support]))
        counts.append(held.counts)
        ranks.append(fit.rank)
    n = np.array(counts)
    with np.errstate(invalid="ignore"):
        each = np.sqrt(np.array(squares) / n)
        rms = np.sqrt(np.sum(squares, axis=0) / n.sum(axis=0))
    return CrossValidation(rms, each, min(ranks))
