# SPDX-License-Identifier: BSD-3-Clause
"""Which entries of matrices over the joints are zero for every state, because of the tree.

Where no branch holds the links of two coordinates, neither moves what the other one moves: entries
of the mass matrix and of the derivatives of inverse dynamics are zero there. Nor do joint forces
change as the robot is shifted without being turned, so that root joints have columns of zeros.
"""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.model.components import GROUND
from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model


@cached_on_model
def related_coordinates(model: Model) -> Array:
    """(nv, nv) booleans: whether some link that moves with one coordinate carries, or is carried
    by, one that moves with the other."""
    found = np.zeros((model.nv, model.nv), dtype=bool)
    for body in model.bodies:
        own = _coordinates(model, body.index)
        for k in model.ancestors(body.index):
            other = _coordinates(model, k)
            found[np.ix_(own, other)] = True
            found[np.ix_(other, own)] = True
    return found


@cached_on_model
def shifting_coordinates(model: Model) -> Array:
    """(nv,) booleans: coordinates of one root joint alone along which all it carries is shifted,
    not turned."""
    found = np.zeros(model.nv, dtype=bool)
    users = np.bincount(joint_map(model).v_indices, minlength=model.nv)
    for body in model.bodies:
        if body.parent == GROUND:
            own = _coordinates(model, body.index)
            shifts = ~body.motion_map()[:3].any(axis=0)
            found[own] = shifts & (users[own] == 1)
    return found


@cached_on_model
def parents_first(model: Model) -> Array | None:
    """The coordinates in an order in which those of a link come after those of the links that carry
    it; None where joints share coordinates."""
    joints = joint_map(model)
    return joints.v_indices.astype(np.intp) if joints.one_to_one else None


def _coordinates(model: Model, body: int) -> list[int]:
    """Those of a link's own joint."""
    link = model.bodies[body]
    start = link.v_slice.start
    return list(range(start, start + link.joint_kind.nv))
