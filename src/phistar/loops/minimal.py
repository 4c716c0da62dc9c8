# SPDX-License-Identifier: BSD-3-Clause
"""Independent coordinates of a robot with loops: v = X v_R, v̇ = X v̇_R + x̄."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from phistar.arguments import checked_state
from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.loops.assembly import assemble, usual_rank
from phistar.loops.constrained_dynamics import (
    coordinate_names,
    require_closed,
    warn_where_singular,
)
from phistar.loops.rank import independent_vectors
from phistar.loops.system import LoopSystem, loop_system, motion_at, rows_at
from phistar.model.configuration import Coordinates, difference, integrate
from phistar.model.model import Model

if TYPE_CHECKING:
    from phistar.loops.embedded_operators import EmbeddedOperators

PIVOT_FRACTION = 0.25
"""Of the largest pivot: what a column may have less to be taken for its place in the robot."""


def dependent_columns(system: LoopSystem, rows: Array, rank: int) -> Array:
    """Numbers (..., rank) of coordinates that follow from the others.

    Their columns of L are far from dependent; among those that are about as far the last is taken,
    so that joints near the root stay independent.
    """
    columns = np.swapaxes(system.scaled(rows), -1, -2)
    return independent_vectors(columns, rank, PIVOT_FRACTION)


def partition(
    system: LoopSystem, rows: Array, rank: int, c: Array, dependent: Array | None = None
) -> tuple[Array, Array]:
    """X (..., nv, nv - rank) with ones at independent coordinates, and x̄ (..., nv) with Lx̄ = c.

    Args:
        system: The loops.
        rows: L.
        rank: Of L.
        c: (..., rows).
        dependent: Numbers of the coordinates that follow, (..., rank).
    """
    if dependent is None:
        dependent = dependent_columns(system, rows, rank)
    nv = rows.shape[-1]
    batch = np.broadcast_shapes(rows.shape[:-2], c.shape[:-1])
    rows = np.broadcast_to(rows, (*batch, *rows.shape[-2:]))
    dependent = np.broadcast_to(dependent, (*batch, rank))
    free = independent_of(dependent, nv)
    L_D = np.take_along_axis(rows, dependent[..., None, :], axis=-1)
    L_R = np.take_along_axis(rows, free[..., None, :], axis=-1)
    # Rows may depend on each other: least squares by the pseudo-inverse of full column rank.
    Q, R = np.linalg.qr(L_D)
    Qt = np.swapaxes(Q, -1, -2)
    followed = -np.linalg.solve(R, Qt @ L_R)
    start = np.linalg.solve(R, Qt @ np.broadcast_to(c, (*batch, c.shape[-1]))[..., None])[..., 0]
    X = np.zeros((*batch, nv, nv - rank))
    index = np.broadcast_to(dependent[..., :, None], followed.shape)
    np.put_along_axis(X, index, followed, axis=-2)
    ones = np.broadcast_to(np.eye(nv - rank), (*batch, nv - rank, nv - rank))
    np.put_along_axis(X, np.broadcast_to(free[..., :, None], ones.shape), ones, axis=-2)
    whole = np.zeros((*batch, nv))
    np.put_along_axis(whole, dependent, start, axis=-1)
    return X, whole


def independent_of(dependent: Array, nv: int) -> Array:
    """The other coordinates, (..., nv - rank)."""
    taken = np.zeros((*dependent.shape[:-1], nv), dtype=bool)
    np.put_along_axis(taken, dependent, True, axis=-1)
    order = np.argsort(taken, axis=-1, kind="stable")
    return order[..., : nv - dependent.shape[-1]]


@dataclass(frozen=True)
class MinimalCoordinates:
    """Independent coordinates of a robot with loops, chosen at a configuration.

    Attributes:
        independent: Names of the independent coordinates: joints, ``joint[i]`` where a joint has
            several.
        entries: Their numbers in v.
        q: (nq,) the configuration at which they were chosen.
        X: (nv, n) v = X v_R there.
    """

    independent: tuple[str, ...]
    entries: Array = field(repr=False)
    q: Array = field(repr=False)
    X: Array = field(repr=False)
    model: Model = field(repr=False)

    @property
    def dependent(self) -> Array:
        """Numbers in v of the coordinates that follow from the independent ones."""
        rest = np.ones(self.model.nv, dtype=bool)
        rest[self.entries] = False
        return np.flatnonzero(rest)

    def map(self, q: Coordinates) -> Array:
        """X (..., nv, n) at other configurations."""
        (at,) = checked_state(self.model, q=q)
        L = rows_at(self.model, at).L
        nothing = np.zeros((*L.shape[:-2], L.shape[-2]))
        return partition(loop_system(self.model), L, len(self.dependent), nothing, self.dependent)[
            0
        ]

    def bias(self, q: Coordinates, v: Coordinates) -> Array:
        """x̄ (..., nv) of v̇ = X v̇_R + x̄ at states on the loops."""
        at, rate = checked_state(self.model, q=q, v=v)
        rows = motion_at(self.model, at, rate)
        dependent = self.dependent
        return partition(loop_system(self.model), rows.L, len(dependent), -rows.bias, dependent)[1]

    def coordinates(self, q: Coordinates) -> Array:
        """q_R (..., n): a joint's own coordinate if it has one, else the step from ``self.q``."""
        (at,) = checked_state(self.model, q=q)
        step = difference(self.model, np.broadcast_to(self.q, at.shape), at)
        return np.asarray(step[..., self.entries] + self._offsets())

    def operators(self, q: Coordinates | None = None) -> EmbeddedOperators:
        """The embedded tree: 𝓜, N, D, φ, ψ, P, Υ on nodes of links that move together.

        Args:
            q: (..., nq) on the loops; default: ``self.q``.
        """
        from phistar.loops.embedded_operators import EmbeddedOperators

        return EmbeddedOperators(self, self.q if q is None else q)

    def velocities(self, v: Coordinates) -> Array:
        """v_R (..., n)."""
        (rate,) = checked_state(self.model, v=v)
        return np.asarray(rate[..., self.entries])

    def expand(self, q_R: Array, v_R: Array | None = None) -> Array | tuple[Array, Array]:
        """q (..., nq), and v (..., nv) if ``v_R`` is given, of independent coordinates.

        The dependent ones are found from ``self.q`` on.

        Raises:
            LoopOpenError: The mechanism does not reach there.
        """
        wanted = np.asarray(q_R, dtype=float)
        count = len(self.entries)
        if wanted.shape[-1:] != (count,):
            raise ArgumentError(f"q_R has shape {wanted.shape}, expected (..., {count})")
        step = np.zeros((*wanted.shape[:-1], self.model.nv))
        step[..., self.entries] = wanted - self._offsets()
        # The dependent coordinates follow in a few steps, so that the assembly stays on its branch.
        base = np.broadcast_to(self.q, (*wanted.shape[:-1], self.model.nq))
        pieces = max(1, int(np.ceil(np.abs(step).max(initial=0.0) / 0.2)))
        q = np.array(base)
        for k in range(1, pieces + 1):
            q = self._closed(integrate(self.model, q, step / pieces))
            del k
        if v_R is None:
            return q
        rates = np.asarray(v_R, dtype=float)
        return q, np.asarray((self.map(q) @ rates[..., None])[..., 0])

    def _closed(self, q: Array) -> Array:
        """Onto the loops with the independent coordinates held."""
        names = coordinate_names(self.model)
        held = {names[k] for k in self.entries}
        whole = [n for n in self.model.joint_names if n in held]
        if len(whole) == len(self.entries):
            return assemble(self.model, q, whole, restarts=0)
        return _close_dependent(self.model, q, self.dependent)

    def _offsets(self) -> Array:
        """What coordinates of joints with one have at ``self.q``; zero for the others."""
        offsets = np.zeros(self.model.nv)
        for name in self.model.joint_names:
            joint = self.model.joints[name]
            if joint.joint_kind.nq == joint.joint_kind.nv == 1:
                offsets[joint.v_slice] = self.q[joint.q_slice]
        return offsets[self.entries]


def _close_dependent(model: Model, q: Array, dependent: Array) -> Array:
    """Newton steps of some coordinates only."""
    from phistar.loops.assembly import ASSEMBLED_TOLERANCE, open_loop_error

    system = loop_system(model)
    for _ in range(30):
        at = rows_at(model, q)
        scaled = system.row_scale * at.error
        if (np.abs(scaled) < 1e-14).all():
            break
        step = np.zeros((*q.shape[:-1], model.nv))
        inverse = np.linalg.pinv(at.L[..., dependent], rcond=1e-10)
        step[..., dependent] = -(inverse @ at.error[..., None])[..., 0]
        q = integrate(model, q, step)
    error = rows_at(model, q).error
    bad = ~(np.abs(system.row_scale * error).max(axis=-1) <= ASSEMBLED_TOLERANCE)
    if bad.any():
        cure = "the mechanism does not reach these coordinates"
        raise open_loop_error(model, error, np.asarray(bad), "expand", cure)
    return q


def minimal(model: Model, q: Coordinates, *, reports: bool = True) -> MinimalCoordinates:
    """Independent coordinates at a configuration (nq,) on the loops.

    Args:
        model: The robot.
        q: (nq,).
        reports: Whether to warn where it is singular.

    Raises:
        LoopOpenError: It is not on them.
    """
    (at,) = checked_state(model, q=q)
    if at.ndim != 1:
        raise ArgumentError(
            f"minimal coordinates are chosen at one configuration, got q of shape {at.shape}"
        )
    rank = usual_rank(model)
    system, rows = loop_system(model), rows_at(model, at.astype(float))
    require_closed(model, rows, "minimal", float(np.finfo(at.dtype).eps))
    L = rows.L
    if rank and reports:
        warn_where_singular(model, L, "minimal", rank)
    dependent = dependent_columns(system, L, rank)
    entries = independent_of(dependent, model.nv)
    X, _ = partition(system, L, rank, np.zeros(L.shape[-2]), dependent)
    names = coordinate_names(model)
    return MinimalCoordinates(tuple(names[k] for k in entries), entries, at.astype(float), X, model)
