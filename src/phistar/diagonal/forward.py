# SPDX-License-Identifier: BSD-3-Clause
"""Forward dynamics in the state (q, ζ): ζ̇ and v from ζ and joint forces, three sweeps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from phistar.arguments import refuse_mimic, refuse_nan, refuse_singular, shaped
from phistar.compile import joint_map, kernel
from phistar.dynamics import Forces, link_forces
from phistar.model.configuration import Coordinates, batch_shape
from phistar.model.model import Model

Array = NDArray[Any]


class TotalRates(NamedTuple):
    """How (q, ζ) moves.

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
    forces: Forces | None = None,
    reference: str = "world_aligned",
) -> TotalRates:
    """ζ̇ and v, consistent with each other: no velocity is carried over from an earlier step."""
    refuse_mimic(model)
    refuse_singular(model)
    arrays = shaped(model, q=q, zeta=zeta, tau=tau)
    joints = joint_map(model)
    inputs = {name: joints.spread(arrays[name]) for name in ("zeta", "tau")}
    if forces:
        refuse_nan("q", arrays["q"])
        inputs["f_ext"] = link_forces(model, arrays["q"], forces, reference)
        batch_shape(model, {**arrays, "forces": inputs["f_ext"][..., 0, :]})
    executable = kernel("diagonal_dynamics").executable(model)
    found, finite = executable.run(arrays["q"], inputs)
    if not finite:
        for name, array in arrays.items():
            refuse_nan(name, array)
    return TotalRates(*(np.asarray(joints.gather(found[n])) for n in TotalRates._fields))
