# SPDX-License-Identifier: BSD-3-Clause
"""Base parameters: the combinations of parameters that joint forces depend on, and their names.

Columns of a regressor depend on each other: a motion tells sums of parameters only. At random
states a QR factorization with pivoting finds how many columns are independent; of these the first
in order are kept, so that an outer link's mass is counted with the inner links that carry it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.ident.columns import Columns
from phistar.ident.triangles import triangle, triangle_inverse
from phistar.thresholds import POLICY

STATES_PER_COLUMN = 1
"""Random states for each column: every state has nv rows."""
DIGITS = 4
"""Significant digits of coefficients in names."""


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Base parameters β = θ[kept] + K θ[counted] of the parameters θ of columns.

    Attributes:
        columns: The columns.
        kept: (b,) indices of columns that are independent.
        counted: (d,) indices of the others, which are counted with them.
        K: (b, d) how.
        gap: (above, below): the smallest pivot that counts and the largest that does not, relative
            to the first. The decision is as clear as they are apart.
    """

    columns: Columns
    kept: Array
    counted: Array
    K: Array
    gap: tuple[float, float]

    def __len__(self) -> int:
        return len(self.kept)

    def __repr__(self) -> str:
        return (
            f"<BaseParameters of '{self.columns.robot.name}': {len(self)} of {len(self.columns)} "
            f"columns, pivots {self.gap[0]:.1e} | {self.gap[1]:.1e}>"
        )

    @cached_property
    def matrix(self) -> Array:
        """(b, columns) B with β = B θ."""
        result = np.zeros((len(self.kept), len(self.columns)))
        result[np.arange(len(self.kept)), self.kept] = 1.0
        result[:, self.counted] = self.K
        return result

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Each combination in symbols: ``Izz.link1 + Iyy.link2 + 0.1 m.link3``."""
        names = self.columns.names
        return tuple(
            "".join(
                [names[i], *(_term(c, names[j]) for c, j in zip(row, self.counted, strict=True))]
            )
            for i, row in zip(self.kept, self.K, strict=True)
        )

    @property
    def units(self) -> tuple[str, ...]:
        """A unit for each."""
        return tuple(self.columns.units[i] for i in self.kept)

    @cached_property
    def support(self) -> tuple[Array, ...]:
        """For each entry of v the indices of base parameters that its force may depend on."""
        return tuple(np.flatnonzero(np.isin(self.kept, each)) for each in self.columns.support)

    @cached_property
    def values(self) -> Array:
        """(b,) those of the robot itself."""
        return np.asarray(self.matrix @ self.columns.values)


def base_parameters(columns: Columns, seed: int = 0) -> BaseParameters:
    """The base parameters of columns: a property of the robot, not of a motion.

    Args:
        columns: Of a robot.
        seed: Of the random states.

    Raises:
        ArgumentError: There is nothing to identify, or the rank cannot be decided.
    """
    if not len(columns):
        raise ArgumentError(
            f"nothing to identify of robot '{columns.robot.name}': no body has mass, and no joint "
            "column is wanted"
        )
    R, scale = _compressed(columns, np.random.default_rng(seed))
    rank, above, below = _widest_gap(_pivots(R))
    middle = float(np.sqrt(above * max(below, POLICY.base_rank_rounding)))
    kept = _first_independent(R, middle)
    if len(kept) != rank:
        raise ArgumentError(
            f"the rank of the regressor of '{columns.robot.name}' is not clear: {rank} columns "
            f"with pivoting, {len(kept)} in order, at a tolerance of {middle:.2g}; lengths or "
            "masses of the robot differ too much"
        )
    counted = np.setdiff1d(np.arange(len(columns)), kept)
    both = triangle(np.concatenate([R[:, kept], R[:, counted]], axis=1))[:rank]
    K = np.einsum("ij,jk->ik", triangle_inverse(both[:, :rank]), both[:, rank:])
    K[np.abs(K) < POLICY.base_rank_tolerance] = 0.0
    K = K * scale[counted] / scale[kept][:, None]
    return BaseParameters(columns, kept, counted, K, (above, below))


def _compressed(columns: Columns, rng: np.random.Generator) -> tuple[Array, Array]:
    """R (p, p) of the regressor at random states, columns of unit length, and their lengths."""
    robot = columns.robot
    count = STATES_PER_COLUMN * len(columns) + PADDING
    q = np.stack([robot.random_configuration(rng) for _ in range(count)])
    v, vdot = rng.normal(size=(2, count, robot.nv))
    rows = columns.at(q, v, vdot).dense().reshape(-1, len(columns))
    lengths = np.linalg.norm(rows, axis=0)
    least = POLICY.base_rank_tolerance * lengths.max(initial=1.0)
    scale = np.where(lengths > least, lengths, np.inf)
    R = triangle(rows / scale)
    return R, np.where(np.isinf(scale), 1.0, scale)


PADDING = 10
"""States beyond one per column, for robots with one joint."""


def _pivots(R: Array) -> Array:
    """Sizes of the pivots of QR with pivoting, relative to the first."""
    from scipy.linalg import qr

    diagonal = np.abs(np.diag(qr(R, mode="r", pivoting=True)[0]))
    return np.asarray(diagonal / diagonal[0])


def _widest_gap(pivots: Array) -> tuple[int, float, float]:
    """How many pivots count, the smallest that does and the largest that does not.

    The decision is where neighbours differ most: a short column, of axes that are parallel but for
    the digits of a file, has few digits left at unit length, and no fixed tolerance fits all.
    """
    least = POLICY.base_rank_rounding
    bounded = np.maximum(np.append(pivots, 0.0), least)
    rank = int(np.argmax(bounded[:-1] / bounded[1:])) + 1
    below = float(pivots[rank]) if rank < len(pivots) else 0.0
    return rank, float(pivots[rank - 1]), below


def _first_independent(R: Array, tolerance: float) -> Array:
    """Indices of columns that do not depend on those before them."""
    basis = np.zeros((len(R), 0))
    kept = []
    for i, column in enumerate(R.T):
        rest = column - basis @ (basis.T @ column)
        rest = rest - basis @ (basis.T @ rest)
        length = np.linalg.norm(rest)
        if length > tolerance:
            basis = np.column_stack([basis, rest / length])
            kept.append(i)
    return np.array(kept, dtype=int)


def _term(coefficient: float, name: str) -> str:
    if coefficient == 0.0:
        return ""
    size = float(f"{abs(coefficient):.{DIGITS}g}")
    factor = "" if size == 1.0 else f"{size:g} "
    return f" {'-' if coefficient < 0.0 else '+'} {factor}{name}"
