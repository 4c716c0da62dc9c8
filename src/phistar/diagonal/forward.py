# SPDX-License-Identifier: BSD-3-Clause
"""Forward dynamics in the state (q, ζ): ζ̇ and v from ζ and joint forces, three sweeps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phistar.arguments import check_shapes, refuse_mimic, refuse_singular, require_valid_inputs
from phistar.arrays import Array
from phistar.compile import joint_map, kernel
from phistar.dynamics import with_wrenches
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.model.singular import require_finite_results
from phistar.model.wrenches import Wrenches, check_batch


class TotalRates(NamedTuple):
    """Rates of (q, ζ).

    Attributes:
        zeta_dot: (..., nv) rate of ζ.
        v: (..., nv) joint velocities, along which q moves.
    """

    zeta_dot: Array
    v: Array


def diagonal_forward_dynamics(
    model: Model,
    q: Coordinates,
    zeta: Coordinates,
    tau: Coordinates,
    wrenches: Wrenches | None = None,
) -> TotalRates:
    """ζ̇ and v, both at the given state."""
    refuse_mimic(model)
    refuse_singular(model)
    arrays = check_shapes(model, q=q, zeta=zeta, tau=tau)
    joints = joint_map(model)
    inputs = {name: joints.spread(arrays[name]) for name in ("zeta", "tau")}
    check_batch(model, arrays, wrenches)
    executable = kernel("diagonal_dynamics", model).executable(model)
    results, finite = executable.run(arrays["q"], with_wrenches(inputs, wrenches))
    if not finite:
        require_valid_inputs(model, **arrays)
        if wrenches is not None:
            wrenches.require_finite()
        require_finite_results(model, arrays["q"], results, results["v"].ndim - 1)
    return TotalRates(*(np.asarray(joints.gather(results[n])) for n in TotalRates._fields))
