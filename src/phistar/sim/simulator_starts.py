# SPDX-License-Identifier: BSD-3-Clause
"""A look at samples of a simulator that were reset: loops closed, nothing in the ground."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phistar.arguments import refuse_singular
from phistar.arrays import Array
from phistar.errors import PenetrationWarning, warn
from phistar.loops import constrained_dynamics
from phistar.loops.assembly import usual_configurations
from phistar.loops.constrained_dynamics import require_on_loops
from phistar.loops.system import motion_at
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.model.singular import singular_hinges
from phistar.sim.contact_pairs import Pair
from phistar.sim.loop_stepper import samples_off_loops
from phistar.thresholds import POLICY

_PRECISION = float(np.finfo(float).eps)


def off_loops(model: Model, q: Array, v: Array, keep_going: bool) -> Array:
    """Which samples (samples,) are not on the loops.

    Raises:
        LoopOpenError, LoopVelocityError: There is one, and the others are not to go on.
    """
    if keep_going:
        return samples_off_loops(model, q, v, _PRECISION)
    require_on_loops(model, motion_at(model, q, v), v, "step", _PRECISION)
    return np.zeros(len(q), dtype=bool)


def warn_of_penetrations(gap: Array, pairs: Sequence[Pair], samples: Array) -> None:
    """Say that something was put into the ground.

    Args:
        gap: (samples, pairs) [m].
        pairs: That may touch.
        samples: (samples,) their numbers in the batch.
    """
    sample, pair = np.unravel_index(int(np.argmin(gap)), gap.shape)
    depth = -float(gap[sample, pair])
    if depth > POLICY.deep_penetration:
        worst = pairs[int(pair)]
        warn(
            f"'{worst.name}' of sample {int(samples[sample])} is {depth:.3g} m inside "
            f"'{worst.surface}'. It is pushed out at no more than "
            f"{POLICY.max_correction_speed:g} m/s; reset to a configuration above the ground.",
            PenetrationWarning,
        )


def refuse_without_inertia(model: Model) -> None:
    """Raise where a joint, or on loops a motion that keeps them, moves no inertia."""
    if not active_loops(model.loops):
        refuse_singular(model)
    elif singular_hinges(model):
        q, rest = usual_configurations(model)[0], np.zeros(model.nv)
        constrained_dynamics.forward_dynamics(model, q, rest, rest)
