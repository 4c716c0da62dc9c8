# SPDX-License-Identifier: BSD-3-Clause
"""What rounds need of an array library, and small linear algebra over many links at once.

Arrays are (components, links, samples) or (rows, columns, links, samples); links and samples
broadcast. Nothing here changes an array that a caller holds, so that a library of immutable arrays
does as well: it brings its namespace and a few functions.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Protocol, TypeVar

import numpy as np

from phistar.arrays import Array
from phistar.spatial.any_namespace import NUMPY, Namespace
from phistar.sweeps.parallel.join_tree import Round
from phistar.thresholds import POLICY

State = TypeVar("State")
Index = tuple[slice | EllipsisType | Array, ...]
RoundStep = Callable[[Round], None]
Held = tuple[object, tuple[str, ...]]


class ArrayOps(Protocol):
    """An array library.

    Attributes:
        xp: Its namespace: einsum, concatenate, stack, where, zeros, eye and arithmetic.
    """

    xp: Namespace

    def assign(self, array: Array, index: Index, value: Array) -> Array:
        """The array with ``array[index] = value``; the one given is not used any more."""
        ...

    def take(self, array: Array, index: Array) -> Array:
        """Some of the links: ``array[..., index, :]``."""
        ...

    def sum_by(self, array: Array, groups: Array, count: int) -> Array:
        """Links added up by group: (..., links, samples) -> (..., count, samples)."""
        ...

    def fold(
        self, rounds: Sequence[Round], step: Callable[[State, Round], State], state: State
    ) -> State:
        """What ``step(state, round)`` makes of a state, one round after the other."""
        ...

    def inverse(self, A: Array) -> Array:
        """A⁻¹ without looking for pivots, of matrices whose leading minors are not small."""
        ...


def fold_arrays(
    ops: ArrayOps, rounds: Sequence[Round], held: Sequence[Held], step: RoundStep
) -> None:
    """Rounds that change arrays which some objects hold.

    Args:
        ops: The array library.
        rounds: One after the other.
        held: Objects, each with the names of those arrays.
        step: What a round does.
    """

    def now() -> tuple[dict[str, Array], ...]:
        return tuple({name: getattr(owner, name) for name in names} for owner, names in held)

    def put(state: tuple[dict[str, Array], ...]) -> None:
        for (owner, _), arrays in zip(held, state, strict=True):
            vars(owner).update(arrays)

    def one(state: tuple[dict[str, Array], ...], each: Round) -> tuple[dict[str, Array], ...]:
        put(state)
        step(each)
        return now()

    put(ops.fold(rounds, one, now()))


class NumpyOps:
    """NumPy."""

    xp: Namespace = NUMPY

    def assign(self, array: Array, index: Index, value: Array) -> Array:
        """In place."""
        if len(index) == 3 and index[0] is ... and isinstance(index[1], np.ndarray):
            index = (..., _as_slice(index[1]), index[2])
        array[index] = value
        return array

    def take(self, array: Array, index: Array) -> Array:
        """See ``ArrayOps``; a view where links lie side by side."""
        place = _as_slice(index)
        if isinstance(place, slice):
            return array[..., place, :]
        return np.asarray(array.take(place, axis=-2))

    def sum_by(self, array: Array, groups: Array, count: int) -> Array:
        """In the order of the links, whatever else is added up beside them."""
        total = np.zeros((*array.shape[:-2], count, array.shape[-1]), dtype=array.dtype)
        if len(groups):
            order = np.argsort(groups, kind="stable")
            starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
            sums = np.add.reduceat(array.take(order, axis=-2), starts, axis=-2)
            total[..., groups[order][starts], :] = sums
        return total

    def fold(
        self, rounds: Sequence[Round], step: Callable[[State, Round], State], state: State
    ) -> State:
        """See ``ArrayOps``."""
        for each in rounds:
            state = step(state, each)
        return state

    def inverse(self, A: Array) -> Array:
        """By sweeping pivots."""
        result = A
        for j in range(len(A)):
            pivot = 1 / result[j, j]
            row, column = result[j] * pivot, result[:, j]
            swept = result - column[:, None] * row[None]
            swept[:, j] = -column * pivot
            swept[j] = row
            swept[j, j] = pivot
            result = swept
        return result


NUMPY_OPS = NumpyOps()


_slices: dict[int, tuple[weakref.ref[Array], Array | slice]] = {}
"""What is known of index arrays, which belong to a tree and come again."""


def _as_slice(index: Array) -> Array | slice:
    """Indices of neighbours as a slice, which copies nothing."""
    known = _slices.get(id(index))
    if known is not None and known[0]() is index:
        return known[1]
    found: Array | slice = index
    if len(index) and index[-1] - index[0] == len(index) - 1 and (np.diff(index) == 1).all():
        found = slice(int(index[0]), int(index[-1]) + 1)
    if len(_slices) >= POLICY.max_kept_slices:
        _slices.clear()
    if isinstance(found, slice):
        _slices[id(index)] = weakref.ref(index), found
    return found


@dataclass(frozen=True)
class Algebra:
    """Small linear algebra of a library."""

    ops: ArrayOps

    def times(self, A: Array, x: Array) -> Array:
        """A x."""
        return self.ops.xp.einsum("ij...,j...->i...", A, x)

    def adjoint_times(self, A: Array, x: Array) -> Array:
        """A* x."""
        return self.ops.xp.einsum("ji...,j...->i...", A, x)

    def matmul(self, A: Array, B: Array) -> Array:
        """A B."""
        return self.ops.xp.einsum("ij...,jk...->ik...", A, B)

    def adjoint_matmul(self, A: Array, B: Array) -> Array:
        """A* B."""
        return self.ops.xp.einsum("ji...,jk...->ik...", A, B)

    def matmul_adjoint(self, A: Array, B: Array) -> Array:
        """A B*."""
        return self.ops.xp.einsum("ij...,kj...->ik...", A, B)

    def symmetric(self, A: Array) -> Array:
        """(A + A*) / 2: what rounding has made unequal becomes equal."""
        return (A + self.ops.xp.swapaxes(A, 0, 1)) / 2

    def cross(self, a: Array, b: Array) -> Array:
        """a × b."""
        return self.ops.xp.stack(
            [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
        )

    def inverse(self, A: Array) -> Array:
        """A⁻¹ without looking for pivots, of matrices whose leading minors are not small."""
        return self.ops.inverse(A)

    # -- poses (R, p): a segment's last link in the frame of its inboard neighbour

    def motion_out(self, R: Array, p: Array, y: Array) -> Array:
        """φ* y = [R* w; R* (v - p × w)]."""
        moved = y[3:] - self.cross(p, y[:3])
        halves = [self.adjoint_times(R, y[:3]), self.adjoint_times(R, moved)]
        return self.ops.xp.concatenate(halves)

    def force_in(self, R: Array, p: Array, x: Array) -> Array:
        """φ x = [R n + p × R f; R f]."""
        moment, force = self.times(R, x[:3]), self.times(R, x[3:])
        return self.ops.xp.concatenate([moment + self.cross(p, force), force])

    def rows_out(self, R: Array, p: Array, S: Array) -> Array:
        """φ* S: each column as a motion."""
        xp = self.ops.xp
        moved = S[3:] - self._cross_rows(p, S[:3])
        return xp.concatenate([self.adjoint_matmul(R, S[:3]), self.adjoint_matmul(R, moved)])

    def rows_in(self, R: Array, p: Array, S: Array) -> Array:
        """φ S: each column as a force."""
        upper, lower = self.matmul(R, S[:3]), self.matmul(R, S[3:])
        return self.ops.xp.concatenate([upper + self._cross_rows(p, lower), lower])

    def _cross_rows(self, p: Array, S: Array) -> Array:
        """p × each column of S (3, m, ...)."""
        return self.ops.xp.stack(
            [p[1] * S[2] - p[2] * S[1], p[2] * S[0] - p[0] * S[2], p[0] * S[1] - p[1] * S[0]]
        )

    def congruence_in(self, R: Array, p: Array, S: Array) -> Array:
        """φ S φ*."""
        half = self.ops.xp.swapaxes(self.rows_in(R, p, S), 0, 1)
        return self.ops.xp.swapaxes(self.rows_in(R, p, half), 0, 1)

    def congruence_out(self, R: Array, p: Array, S: Array) -> Array:
        """φ* S φ."""
        half = self.ops.xp.swapaxes(self.rows_out(R, p, S), 0, 1)
        return self.ops.xp.swapaxes(self.rows_out(R, p, half), 0, 1)

    def columns_out(self, R: Array, p: Array, S: Array) -> Array:
        """S φ*, of which each row is a force taken inward: (φ S*)*."""
        xp = self.ops.xp
        return xp.swapaxes(self.rows_in(R, p, xp.swapaxes(S, 0, 1)), 0, 1)

    def point_in(self, R: Array, p: Array, x: Array) -> Array:
        """[R h + m p; m]."""
        return self.ops.xp.concatenate([self.times(R, x[:3]) + x[3] * p, x[3:] + 0 * p[:1]])

    def plane_out(self, R: Array, p: Array, y: Array) -> Array:
        """[R* n; n · p + d]."""
        offset = y[3:] + (y[:3] * p).sum(0)[None]
        return self.ops.xp.concatenate([self.adjoint_times(R, y[:3]), offset])
