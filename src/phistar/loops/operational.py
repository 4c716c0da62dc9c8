# SPDX-License-Identifier: BSD-3-Clause
"""The inertia that frames of a robot with closed loops show to forces on them.

Λ = (JX (X*𝓜X)⁻¹ X*J*)⁻¹        X: motions that keep the loops
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phistar import dynamics
from phistar.arguments import checked_state
from phistar.arrays import Array
from phistar.functions import check_operational, inertia_of_mobility
from phistar.loops.apart import each_its_way
from phistar.loops.assembly import usual_rank
from phistar.loops.constrained_dynamics import present_rank, require_on_loops
from phistar.loops.rank import factored
from phistar.loops.system import loop_system, motion_at, refuse_complex
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.model.numpy_kinematics import jacobian
from phistar.spatial.reproducible_products import product

_WHAT = "operational_inertia"


@each_its_way
def operational_inertia(
    model: Model, q: Coordinates, frames: Sequence[str], reference: str, damping: float
) -> Array:
    """Operational inertia (..., 6m, 6m) of frames on the loops; see ``Robot``."""
    kind = check_operational(model, frames, reference, damping, model.nv - usual_rank(model))
    (given,) = checked_state(model, q=q)
    refuse_complex(given)
    at = given.astype(float)
    rest = np.zeros((*at.shape[:-1], model.nv))
    rows = motion_at(model, at, rest)
    rank = present_rank(model, rows.L, _WHAT)
    require_on_loops(model, rows, rest, _WHAT, float(np.finfo(given.dtype).eps))
    X = factored(rows.L, rank).X
    Xt = np.swapaxes(X, -1, -2)
    tree = loop_system(model).tree
    inner = product(product(Xt, dynamics.mass_matrix(tree, at)), X)
    J = np.concatenate([jacobian(tree, at, name, "local") for name in frames], axis=-2)
    along = product(J, X)
    solved = np.linalg.solve(inner, np.swapaxes(along, -1, -2))
    mobility = product(along, solved)
    found = inertia_of_mobility(tree, at, frames, kind, damping, mobility)
    return found.astype(given.dtype)
