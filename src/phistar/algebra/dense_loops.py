# SPDX-License-Identifier: BSD-3-Clause
"""Loops as plain matrices: their rows, a partition of the rates, and the nodes of links they join.

Comes in: rows as forces between links and on joint rates; goes out: which rates are independent,
and which links share loops. Used by ``Dense``, the oracle; slow and simple on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from phistar.arrays import Array
from phistar.model.components import GROUND

RANK_TOLERANCE = 1e-9
"""Pivot of an elimination that counts as zero, relative to the largest entry of the matrix."""


@dataclass(frozen=True, eq=False)
class LoopRows:
    """Rows of one constraint, as forces between two links and on joint rates.

    Attributes:
        predecessor, successor: Indices of the bodies; ``GROUND`` is the ground.
        forces: (6, m) wrenches on the successor per unit of each multiplier, in its frame.
        joints: (m, nv) rows on joint rates in body order; None if there are none.
        successor_pose: (4, 4) pose of the successor's frame in its body.
    """

    predecessor: int
    successor: int
    forces: Array
    joints: Array | None = None
    successor_pose: Array = field(default_factory=lambda: np.eye(4))

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.forces.shape[1])


@dataclass(frozen=True, eq=False)
class Partition:
    """Independent and dependent rates of rows L, and independent rows of them.

    Attributes:
        rows: Indices of as many independent rows as L has.
        dependent: Indices of the rates that these rows give.
        independent: Indices of all other rates.
        matrix: L itself.
    """

    rows: list[int]
    dependent: list[int]
    independent: list[int]
    matrix: Array

    def embedding(self) -> Array:
        """(n, n - r) rates from independent ones, so that L times it is zero."""
        result = np.zeros((self.matrix.shape[1], len(self.independent)), self.matrix.dtype)
        result[self.independent] = np.eye(len(self.independent))
        result[self.dependent] = -self._solve(self.matrix[np.ix_(self.rows, self.independent)])
        return result

    def independent_rates(self) -> Array:
        """(n - r, n) choice of the independent rates."""
        return np.eye(self.matrix.shape[1])[self.independent]

    def particular_rates(self) -> Array:
        """(n, m) rates for given values of the independent rows; the independent rates are zero."""
        result = np.zeros(self.matrix.shape[::-1], self.matrix.dtype)
        result[np.ix_(self.dependent, self.rows)] = self._solve(np.eye(len(self.rows)))
        return result

    def self_stress(self) -> Array:
        """(m, 1) a vector s with L*s = 0 in which every redundant row has its part."""
        result = np.zeros((self.matrix.shape[0], 1), self.matrix.dtype)
        redundant = [k for k in range(len(result)) if k not in self.rows]
        result[redundant, 0] = 1.0 + np.arange(len(redundant))
        block = self.matrix[np.ix_(redundant, self.dependent)]
        square = self.matrix[np.ix_(self.rows, self.dependent)]
        result[self.rows] = -np.linalg.solve(square.T, block.T @ result[redundant])
        return result

    def _solve(self, right: Array) -> Array:
        square = self.matrix[np.ix_(self.rows, self.dependent)]
        return np.asarray(np.linalg.solve(square, right))


def partition(matrix: Array) -> Partition:
    """Independent rows and rates by elimination with complete pivoting; complex steps go through,
    because pivots are chosen by the real part.

    Args:
        matrix: (m, n) rows on rates.
    """
    work = np.array(matrix.real, dtype=float)
    tolerance = RANK_TOLERANCE * np.abs(work).max(initial=0.0)
    rows, columns = list[int](), list[int]()
    while work.size and np.abs(work).max() > tolerance:
        row, column = divmod(int(np.abs(work).argmax()), work.shape[1])
        work = work - np.outer(work[:, column] / work[row, column], work[row])
        work[row], work[:, column] = 0.0, 0.0
        rows.append(row)
        columns.append(column)
    independent = [k for k in range(matrix.shape[1]) if k not in columns]
    return Partition(rows, columns, independent, matrix)


def node_numbers(parents: Sequence[int], loops: Iterable[LoopRows], joints: Array) -> list[int]:
    """The node of each body: bodies that share a loop, or loops that overlap, have one number.

    A loop joins the bodies on the paths of its ends up to, without, their common ancestor; a
    coupling those between its joints and the common ancestor of the bodies that carry the joints.

    Args:
        parents: Parent of each body, ``GROUND`` at the roots; parents first.
        loops: The rows.
        joints: (nv,) body of each joint rate.

    Returns:
        For each body the smallest index of a body of its node.
    """
    numbers = list(range(len(parents)))
    for rows in loops:
        group = _joined(parents, rows, joints)
        members = {numbers[k] for k in group}
        numbers = [min(members) if each in members else each for each in numbers]
    return numbers


def _joined(parents: Sequence[int], rows: LoopRows, joints: Array) -> list[int]:
    """Bodies that the rows of a loop join."""
    moved = set() if rows.joints is None else set(joints[np.any(rows.joints != 0, axis=0)].tolist())
    ends = {rows.predecessor, rows.successor} if np.any(rows.forces) else set()
    carriers = [*ends, *(parents[k] for k in moved)]
    paths = [_path(parents, k) for k in carriers]
    shared = set(paths[0]).intersection(*paths[1:]) if paths else set()
    starts = {*ends, *moved}
    return sorted({k for start in starts for k in _path(parents, start)} - shared)


def _path(parents: Sequence[int], body: int) -> list[int]:
    """A body and its ancestors."""
    path = []
    while body != GROUND:
        path.append(body)
        body = parents[body]
    return path
