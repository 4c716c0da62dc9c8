# SPDX-License-Identifier: BSD-3-Clause
"""How long a program of dynamics with loops is going to be, before it is traced.

A row is carried along the links between its ends and the ground, and eliminated with the rows that
share links with it. Rows that are zero for the robot as such, as those across the plane of a planar
mechanism, are not in the program.
"""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.loops.assembly import usual_rank
from phistar.loops.system import rows_at
from phistar.model.configuration import random_configuration
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.thresholds import POLICY


@cached_on_model
def link_rows(model: Model) -> int:
    """Links on the ways of all rows to the ground, with what eliminating the rows is worth."""
    carried = _links_of_rows(model)
    ways = int(carried.sum())
    if usual_rank(model) < len(carried):
        steps = usual_rank(model) * len(carried) ** 2
    else:
        steps = _elimination_steps(carried)
    return ways + steps // POLICY.elimination_steps_per_link_row


def _links_of_rows(model: Model) -> Array:
    """(rows, bodies) booleans: links along which each row of the program is carried."""
    q = random_configuration(model, np.random.default_rng(0))
    moves: Array = np.not_equal(rows_at(model, q).L, 0.0)
    result: Array = np.zeros((len(moves), len(model.bodies)), dtype=bool)
    for body in model.bodies:
        touched = np.flatnonzero(moves[:, body.v_slice].any(axis=-1))
        result[touched[:, None], model.ancestors(body.index)] = True
    return np.asarray(result[moves.any(axis=-1)])


def _elimination_steps(carried: Array) -> int:
    """Entries of Δ that change when rows are eliminated in turn."""
    joined = (carried.astype(int) @ carried.T.astype(int)) > 0
    steps = 0
    for k in range(len(joined)):
        later = np.flatnonzero(joined[k, k + 1 :]) + k + 1
        joined[np.ix_(later, later)] = True
        steps += len(later) * (len(later) + 1) // 2
    return steps
