# SPDX-License-Identifier: BSD-3-Clause
"""States of a robot with closed loops that stay on the loops while somebody moves a joint."""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.errors import LoopOpenError
from phistar.loops.assembly import assemble
from phistar.loops.system import loop_system, rows_at
from phistar.model.model import Model

RANK_TOLERANCE = 1e-6
"""Singular values of L without units, relative to the largest, that are no rows of their own."""


def on_the_loops(model: Model, q: Array, held: str | None = None) -> Array:
    """The configuration (nq,) on the loops near q, with a joint held where it is if that can be.

    Raises:
        LoopOpenError: The loops cannot be closed near q.
    """
    if not loop_system(model).count:
        return q
    try:
        return assemble(model, q, () if held is None else (held,), restarts=0)
    except LoopOpenError:
        return assemble(model, q, restarts=0)


def velocity_on_the_loops(model: Model, q: Array, v: Array, held: int | None = None) -> Array:
    """The velocity (nv,) on the loops nearest to v, with one entry held if that can move."""
    system = loop_system(model)
    if not system.count:
        return v
    rows = system.scaled(rows_at(model, q).L)
    _, sizes, across = np.linalg.svd(rows)
    rank = int((sizes > RANK_TOLERANCE * sizes.max(initial=0.0)).sum())
    free = across[rank:].T
    wanted = v / system.column_scale
    rates = free.T @ wanted
    if held is not None:
        own = free[held]
        strength = float(own @ own)
        if strength > RANK_TOLERANCE:
            rates += own * (wanted[held] - own @ rates) / strength
    return np.asarray((free @ rates) * system.column_scale)
