# SPDX-License-Identifier: BSD-3-Clause
"""How a robot moves under joint forces, as matrices: 𝓜⁻¹, or what takes its place on closed loops.

Velocities that keep the loops are Xy, with X a basis of the null space of their rows G:

    v̇ = a + Wf      W = X(X*𝓜X)⁻¹X*      a = accelerations that the loops ask for
"""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.loops.assembly import usual_rank
from phistar.loops.held import NOT_HELD, Held
from phistar.loops.rank import factored
from phistar.loops.system import motion_at
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model


def free_rates(
    model: Model, q: Array, v: Array, mass: Array, force: Array, held: Held = NOT_HELD
) -> tuple[Array, Array]:
    """v̇ (batch, nv) under joint forces, and W (batch, nv, nv).

    Args:
        model: The robot.
        q, v: (batch, nq), (batch, nv) on its loops, or nearly.
        mass: (batch, nv, nv).
        force: (batch, nv), the bias taken off.
        held: Motion that is told.
    """
    if not active_loops(model.loops):
        W = np.linalg.inv(mass)
        return np.asarray((W @ force[..., None])[..., 0]), W
    loops = held.driven(model, motion_at(model, q, v))
    rows = factored(loops.L, usual_rank(model) if held.rank is None else held.rank)
    start = rows.least_norm(-loops.bias)
    X, Xt = rows.X, np.swapaxes(rows.X, -1, -2)
    W = X @ np.linalg.solve(Xt @ mass @ X, Xt)
    left = force - (mass @ start[..., None])[..., 0]
    return start + (W @ left[..., None])[..., 0], W
