# SPDX-License-Identifier: BSD-3-Clause
"""The segments of a robot's links: where runs may end, and whether joins are worth it.

A segment that goes on beyond a link needs D > 0 of that link by itself. A link whose own inertia
along its joint is little next to its neighbours', for instance none, is taken in before what is
beyond it: runs do not end there, nor right after it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from phistar.arrays import Array
from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.spatial import force_transform, inertia_matrix
from phistar.sweeps.op_costs import LinkType, link_types
from phistar.sweeps.parallel.join_tree import JoinTree, Round
from phistar.sweeps.parallel.segment_costs import (
    split_join,
    split_link,
    star_join,
    star_link,
    vector_join,
    vector_link,
)
from phistar.thresholds import POLICY


@cached_on_model
def parallel_tree(model: Model) -> JoinTree:
    """The segments of a robot: joined runs, or the levels of its tree where those are quicker."""
    return tree_of_runs(model, POLICY.parallel_run_links)


def tree_of_runs(model: Model, run_links: int) -> JoinTree:
    """The same for runs of other lengths."""
    parents = [body.parent for body in model.bodies]
    levels = [0] * len(parents)
    for k, parent in enumerate(parents):
        levels[k] = 1 + (levels[parent] if parent != GROUND else 0)
    if max(levels, default=0) <= 1:
        return JoinTree(parents)
    joined = JoinTree(parents, run_links, may_end_runs(model))
    if max(levels) > POLICY.max_parallel_levels:
        return joined
    plain = JoinTree(parents)
    here = link_types(model)
    return min(plain, joined, key=lambda tree: pair_span(tree, here))


def pair_span(tree: JoinTree, here: Iterable[LinkType]) -> int:
    """Operations one after the other of forward dynamics' star product on a tree."""
    given = list(here)
    places = [given[k] for k in tree.order.tolist()]
    up = sum(_dearest(each, places, "up") for each in tree.up)
    return up + sum(_dearest(each, places, "down") for each in tree.down)


def _dearest(each: Round, places: list[LinkType], way: str) -> int:
    found = [0]
    for links, closed, last in each.links:
        for place in {places[k] for k in links.index.tolist()}:
            if way == "up":
                found.append(
                    (star_link(place, closed, last) + vector_link(place, closed, last)).total
                )
            else:
                found.append(split_link(place, closed, last).total)
    for joins, closed in each.joins:
        if len(joins.index):
            up = star_join(closed) + vector_join(closed)
            found.append((up if way == "up" else split_join(closed)).total)
    return max(found)


def may_end_runs(model: Model) -> list[bool]:
    """Whether runs may end at each link: it and the one before it resist their joints alone."""
    count = len(model.bodies)
    d = max(body.joint_kind.nv for body in model.bodies)
    H, A = np.zeros((count, d, 6)), np.zeros((count, d))
    for k, body in enumerate(model.bodies):
        size = body.joint_kind.nv
        H[k, :size] = body.joint_kind.motion_map().T
        A[k, :size] = body.armature
        A[k, size:] = 1.0
    own = inertia_matrix(model.inertias)
    resists = np.linalg.eigvalsh(_joint_inertia(H, A, own) - _needed(model, H, A, own))[:, 0] > 0
    before = np.array([body.parent for body in model.bodies])
    may_end = resists & ((before == GROUND) | resists[np.maximum(before, 0)])
    return [bool(each) for each in may_end]


def _needed(model: Model, H: Array, A: Array, own: Array) -> Array:
    """The part of the inertia of a link with its neighbours that it must have by itself."""
    near = own.copy()
    shifts = force_transform(np.stack([body.placement for body in model.bodies]))
    moved = shifts @ own @ np.swapaxes(shifts, -1, -2)
    parents = np.array([body.parent for body in model.bodies])
    np.add.at(near, parents[parents != GROUND], moved[parents != GROUND])
    return POLICY.min_own_joint_inertia * _joint_inertia(H, A, near)


def _joint_inertia(H: Array, A: Array, inertia: Array) -> Array:
    rotors = A[:, :, None] * np.eye(H.shape[1])
    return np.asarray(H @ inertia @ np.swapaxes(H, -1, -2) + rotors)
