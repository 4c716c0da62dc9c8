# SPDX-License-Identifier: BSD-3-Clause
"""Forces of closed loops on the links of a robot that moves in a known way."""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.errors import RedundantWrenchWarning, SampleError, first_index, sample_text, warn
from phistar.loops.apart import each_its_way, is_reported
from phistar.loops.constrained_dynamics import NOT_HELD, Held, coordinate_names
from phistar.loops.inverse import (
    RESIDUAL_TOLERANCE,
    KnownMotion,
    constrained_inverse_dynamics,
    known_motion,
)
from phistar.loops.join import loop_loads
from phistar.loops.routes import LoopProblem
from phistar.loops.system import loop_system
from phistar.loops.uniqueness import uniqueness
from phistar.model.components import GROUND
from phistar.model.configuration import Coordinates
from phistar.model.model import Model
from phistar.model.wrenches import Wrenches

WHAT = "reaction_forces"
_ROUNDED_ROWS = 10.0
"""The multipliers of other rows may be so many times those of all rows, which are the shortest."""


@each_its_way
def link_loads(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    vdot: Coordinates,
    tau: Coordinates | None = None,
    wrenches: Wrenches | None = None,
    held: Held = NOT_HELD,
) -> Array:
    """Γλ (..., bodies, 6) [moment; force] of the loops on the links, in their axes.

    Args:
        model: The robot with its loops.
        q, v, vdot: A motion on the loops.
        tau: (..., nv) joint forces under which it moves so; default: the least efforts of its
            actuators that do.
        wrenches: On frames.
        held: What constraints of one call hold and drive.
    """
    system = loop_system(model)
    motion = known_motion(model, q, v, vdot, wrenches, held, WHAT, tau)
    net = motion.wanted - motion.tau
    if tau is None:
        net = net - constrained_inverse_dynamics(model, q, v, vdot, None, wrenches, held=held).tau
    multipliers = motion.factor.multipliers(net)
    pushed = (np.swapaxes(motion.rows.L, -1, -2) @ multipliers[..., None])[..., 0]
    _require_balance(model, net, pushed, motion.wanted, _rounding_of_rows(motion, multipliers))
    _say_if_not_determined(model, motion.rows.L, motion.rows.relative, motion.rank)
    batch = multipliers.shape[:-1]
    asked = (model, motion.q, motion.v, motion.tau, None)
    problem = LoopProblem(*asked, motion.rows, motion.rank, -motion.rows.bias)
    gamma, _ = loop_loads(problem, np.ones((*batch, system.count)), batch)
    total = np.zeros((*batch, len(model.bodies), 6))
    for body, block in gamma.items():
        if body != GROUND:
            total[..., body, :] += (block @ multipliers[..., None])[..., 0]
    return total


def _rounding_of_rows(motion: KnownMotion, multipliers: Array) -> Array:
    """Joint forces (...) by which redundant rows of a file with rounded numbers contradict each
    other: dynamics with some of the rows does not know which are meant."""
    factor = motion.factor
    left = motion.rows.L - (factor.U * factor.S[..., None, :]) @ np.swapaxes(factor.V, -1, -2)
    size = np.sqrt((left * left).sum(axis=(-1, -2)))
    return np.asarray(size * np.sqrt((multipliers * multipliers).sum(axis=-1)))


def _require_balance(
    model: Model, net: Array, pushed: Array, wanted: Array, rounding: Array
) -> None:
    """Loops can give what the joint forces do not, or these do not belong to the motion."""
    left = np.abs(net - pushed)
    size = np.maximum(np.abs(wanted).max(axis=-1), np.abs(net - wanted).max(axis=-1))
    slack = RESIDUAL_TOLERANCE * np.maximum(size, 1e-9) + _ROUNDED_ROWS * rounding
    bad = np.asarray(left.max(axis=-1) > slack)
    if bad.any():
        sample = first_index(bad)
        worst = int(np.argmax(left[sample]))
        raise SampleError(
            f"{WHAT} of robot '{model.name}'{sample_text(sample)}: under these tau it does not "
            f"move with this vdot: {left[sample][worst]:.3g} is missing at "
            f"'{coordinate_names(model)[worst]}'; give vdot = forward_dynamics(q, v, tau), or "
            "leave tau out for the least efforts that do",
            bad,
        )


def _say_if_not_determined(model: Model, L: Array, relative: Array, rank: int) -> None:
    system = loop_system(model)
    if rank == system.count or is_reported():
        return
    found = uniqueness(system, L, relative, rank).loops
    if tense := [f"'{name}'" for name, unique in found.items() if not np.all(unique)]:
        warn(
            f"{WHAT} of robot '{model.name}' are not determined: loops {', '.join(tense)} hold "
            "each other in tension that does not move it; these are the forces at the shortest "
            "multipliers",
            RedundantWrenchWarning,
        )
