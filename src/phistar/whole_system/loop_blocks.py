# SPDX-License-Identifier: BSD-3-Clause
"""Rows of closed loops in the accelerations of links."""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.compile import joint_map, kernel
from phistar.loops.constrained_dynamics import present_rank
from phistar.loops.join import closing_links, loop_loads
from phistar.loops.rank import independent_rows
from phistar.loops.routes import LoopProblem
from phistar.loops.system import loop_system, motion_at
from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.whole_system.link_blocks import LinkBlocks
from phistar.whole_system.sparse_equations import NO_LOOPS, LoopBlocks


def loop_blocks(model: Model, links: LinkBlocks, q: Array, v: Array) -> LoopBlocks:
    """The rows of a robot's active loops at a state; of dependent ones some that are not."""
    system = loop_system(model)
    if not system.count:
        return NO_LOOPS
    rows = motion_at(model, q, v)
    rank = present_rank(model, rows.L, "system")
    problem = LoopProblem(model, q, v, np.zeros(model.nv), None, rows, rank, -rows.bias)
    gamma, coupled = loop_loads(problem, np.ones(system.count), ())
    ends = np.empty(system.count, dtype=int)
    for link, slices in closing_links(model, problem).items():
        for own in slices:
            ends[own] = link
    kept = np.sort(independent_rows(system, rows.L, rank))
    wanted = -rows.bias
    resting = _resting_accelerations(model, q, v)
    for link, block in gamma.items():
        wanted = wanted + block.T @ (links.ground if link == GROUND else resting[link])
    names = {}
    for loop, own in zip(system.loops, system.slices, strict=True):
        first, last = np.searchsorted(kept, [own.start, own.stop])
        if last > first:
            names[loop.name] = slice(int(first), int(last))
    return LoopBlocks(
        {link: block[:, kept] for link, block in gamma.items()},
        coupled[kept],
        wanted[kept],
        ends[kept],
        names,
    )


def _resting_accelerations(model: Model, q: Array, v: Array) -> Array:
    """Accelerations (links, 6) relative to free fall at v̇ = 0."""
    joints = joint_map(model)
    given = {"v": joints.spread(v), "vdot": joints.spread(np.zeros_like(v))}
    return kernel("falling_accelerations", model)(model, q, given)["alpha"]
