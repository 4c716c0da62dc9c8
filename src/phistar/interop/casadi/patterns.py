# SPDX-License-Identifier: BSD-3-Clause
"""Which derivatives of a robot's dynamics may differ from zero, from its tree alone."""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.model.model import Model


def _coordinates(model: Model) -> Array:
    """(bodies, nv): coordinates of v that move each body against its parent."""
    own = np.zeros((len(model.bodies), model.nv), dtype=bool)
    for body in model.bodies:
        own[body.index, body.v_slice] = True
    return own


def on_one_path(model: Model) -> Array:
    """(nv, nv): whether a link is moved by both, so that each feels the other in τ.

    Joints on different branches do not feel each other.
    """
    own = _coordinates(model)
    moved = own.copy()
    for body in model.bodies:
        if body.parent >= 0:
            moved[body.index] |= moved[body.parent]
    found: Array = (moved.T.astype(int) @ moved.astype(int)) > 0
    return found


def branches_of_ground(model: Model) -> Array:
    """(nv, nv): whether two coordinates belong to one branch that leaves the ground.

    Within one all accelerations depend on each other, mimic joints join branches.
    """
    found = on_one_path(model)
    while True:
        wider: Array = (found.astype(int) @ found.astype(int)) > 0
        if (wider == found).all():
            return found
        found = wider
