# SPDX-License-Identifier: BSD-3-Clause
"""Equations of an identification: rows [Y | τ] of a log, made piece by piece.

``TorqueEquations`` has one row per sample and joint, from the equation of motion. ``accumulate``
turns equations into triangles; a log is cut into folds first, so that the parameters of some folds
can be tried on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError, pluralize
from phistar.ident.base_parameters import BaseParameters
from phistar.ident.row_blocks import Part, RowBlock
from phistar.ident.triangles import Pile, RowTriangles
from phistar.thresholds import POLICY

Weights = Callable[[int, int], Array]
"""Weights (n, groups) of the samples from a first to before a last, for robust estimates."""


class Equations(Protocol):
    """Rows of a log.

    Attributes:
        base: The base parameters they are in.
        groups: Names of groups of rows with a scale of noise each: joints, or the energy.
        support: For each group the base parameters that are in its rows.
        samples: How many there are.
        signal: What is predicted.
    """

    @property
    def base(self) -> BaseParameters:
        """The base parameters."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of groups."""

    @property
    def support(self) -> tuple[Array, ...]:
        """Base parameters of each group."""

    @property
    def samples(self) -> int:
        """How many."""

    @property
    def signal(self) -> str:
        """What is predicted, of ``result.SIGNALS``."""

    def rows(self, first: int, last: int) -> tuple[list[RowBlock], Array]:
        """Rows [Y | τ] of each group, and (n, groups) which of them count."""


@dataclass(frozen=True, eq=False)
class TorqueEquations:
    """Joint forces of samples: Y β = τ - known.

    Attributes:
        base: The base parameters.
        q, v, vdot, tau: (N, nq), (N, nv) ... the log.
        rest_speed: (nv,) speed up to which a joint counts as at rest: there dry friction may be
            anything, and the row is left out.
    """

    base: BaseParameters
    q: Array
    v: Array
    vdot: Array
    tau: Array
    rest_speed: Array

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the entries of v."""
        model = self.base.columns.robot.model
        names = [""] * model.nv
        for name in model.joint_names:
            entries = range(model.nv)[model.joints[name].v_slice]
            for i, entry in enumerate(entries):
                names[entry] = name + (f".{i}" if len(entries) > 1 else "")
        return tuple(names)

    @property
    def signal(self) -> str:
        """Joint forces."""
        return "force"

    @property
    def support(self) -> tuple[Array, ...]:
        """Base parameters of each joint's rows."""
        return self.base.support

    @property
    def samples(self) -> int:
        """N."""
        return int(self.q.shape[0])

    @cached_property
    def _chosen(self) -> list[tuple[Array, list[int], Array]]:
        """Of each entry of v: entries of the regressor, kinds of joint columns, the robot's own β.

        Columns come in this order, as they do among the base parameters.
        """
        base, columns = self.base, self.base.columns
        found = []
        for own in base.support:
            kept = base.kept[own]
            inertial = columns.inertial_entries[kept[kept < columns.inertial]]
            joint = kept[kept >= columns.inertial] - columns.inertial
            kinds = (joint // max(len(columns.joints), 1)).tolist()
            found.append((inertial, kinds, base.values[own]))
        return found

    def rows(self, first: int, last: int) -> tuple[list[RowBlock], Array]:
        """Rows [Y | τ - known] of each entry of v.

        What is known is the robot's own force less that of its own base parameters β: the rows are
        [Y | τ - force + Yβ].
        """
        columns = self.base.columns
        q, v, vdot = (x[first:last] for x in (self.q, self.v, self.vdot))
        at = columns.at(q, v, vdot)
        whole = columns.robot.inverse_dynamics(q, v, vdot, passive=True)
        left = self.tau[first:last] - whole
        counted = np.ones(v.shape, dtype=bool)
        if "coulomb" in columns.kinds:
            counted = np.abs(v) > self.rest_speed
        weights = counted.astype(float)
        found = []
        for entry, (inertial, kinds, beta) in enumerate(self._chosen):
            parts: list[Part] = [
                (at.bodies[:, entry], inertial),
                *((at.signals[kind], (entry,)) for kind in kinds),
                (left, (entry,)),
            ]
            found.append(RowBlock(parts, weights[:, entry], beta))
        return found, counted


def accumulate(
    equations: Equations, folds: int = 1, weights: Weights | None = None
) -> list[RowTriangles]:
    """The triangles of each of some folds, which follow one another in time.

    Args:
        equations: The rows.
        folds: How many.
        weights: Of rows, beside those of groups.
    """
    return [
        pile_of(equations, first, last, weights=weights).total()
        for first, last in fold_edges(equations.samples, folds)
    ]


def fold_edges(samples: int, folds: int) -> list[tuple[int, int]]:
    """The first sample of each fold, and the one after its last.

    Raises:
        ArgumentError: There are fewer samples than folds.
    """
    if samples < folds:
        raise ArgumentError(
            f"the log has {pluralize(samples, 'sample')}, and {pluralize(folds, 'fold')} take one "
            "each at least; a motion takes many"
        )
    return list(pairwise(np.linspace(0, samples, folds + 1).astype(int).tolist()))


def pile_of(
    equations: Equations,
    first: int,
    last: int,
    first_piece: int = 0,
    weights: Weights | None = None,
) -> Pile:
    """Triangles of the samples from ``first`` to before ``last``, piece by piece.

    Args:
        equations: The rows.
        first, last: Samples.
        first_piece: Number of their first piece; a fold's pieces are counted from its beginning.
        weights: Of rows, beside those of groups.
    """
    pile = Pile()
    for piece, (start, stop) in enumerate(_pieces(first, last), first_piece):
        rows, counted = equations.rows(start, stop)
        if weights is not None:
            factors = np.sqrt(weights(start, stop))
            rows = [x.weighted(factors[:, k]) for k, x in enumerate(rows)]
        pile.add(piece, RowTriangles.of(rows, counted.sum(axis=0)))
    return pile


def _pieces(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Samples whose rows are formed together."""
    size = POLICY.identification_piece_samples
    for start in range(first, last, size):
        yield start, min(start + size, last)


def residuals(equations: Equations, beta: Array) -> tuple[Array, Array]:
    """(N, groups) Yβ - τ of all samples, zero where a row does not count; and which do."""
    left = np.zeros((equations.samples, len(equations.groups)))
    counts = np.zeros(left.shape, dtype=bool)
    for start, stop in _pieces(0, equations.samples):
        rows, counts[start:stop] = equations.rows(start, stop)
        for k, (block, own) in enumerate(zip(rows, equations.support, strict=True)):
            each = block.dense()
            left[start:stop, k] = each[:, :-1] @ beta[own] - each[:, -1]
    return left, counts


def merged(triangles: Sequence[RowTriangles]) -> RowTriangles:
    """The triangles of several folds together."""
    total = triangles[0]
    for each in triangles[1:]:
        total = total.merge(each)
    return total
