# SPDX-License-Identifier: BSD-3-Clause
"""A step of a scheme, stage by stage, on arrays of any batch and dtype."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from phistar.arrays import Array
from phistar.kinematics import integrate_unchecked
from phistar.model.model import Model
from phistar.scalar.trace.state_update import StateUpdate
from phistar.sim.manifold import lie_bracket
from phistar.sim.schemes import EvaluateRates, Scheme
from phistar.sim.variables import Variable


def next_state(
    scheme: Scheme, variable: Variable, q: Array, x: Array, tau: Array, dt: Array
) -> tuple[Array, Array]:
    """q (..., nq) and x (..., nv) after a step.

    Args:
        scheme: Instructions of the step.
        variable: What represents the velocity.
        q, x, tau: (..., nq), (..., nv), (..., nv) at its start.
        dt: Its length (..., 1) [s].
    """
    stages = {0: (q, x)}
    velocities: dict[int, Array] = {}
    rates: dict[int, Array] = {}
    for part in scheme.instructions:
        if not isinstance(part, EvaluateRates):
            step, change = increments(variable.model, part.update, x, velocities, rates, dt)
            moved = integrate_unchecked(variable.model, q, step) if part.update.velocities else q
            stages[part.stage] = moved, x + change
        elif part.velocity_only:
            velocities[part.stage] = variable.velocity(*stages[part.stage])
        else:
            velocities[part.stage], rates[part.stage] = variable.rate(*stages[part.stage], tau)
    return stages[0]


def increments(
    model: Model,
    update: StateUpdate,
    x: Array,
    velocities: Mapping[int, Array],
    rates: Mapping[int, Array],
    dt: Array | float,
) -> tuple[Array, Array]:
    """The tangent step of q and the change of x, each (..., nv), by which an update moves a state.

    Args:
        model: The robot.
        update: Weights of stages.
        x: (..., nv) at the start.
        velocities, rates: Of the stages so far, (..., nv).
        dt: Length of the step [s].
    """
    velocity = np.zeros_like(x)
    for stage, weight in update.velocity_weights:
        velocity = velocity + weight * velocities[stage]
    for one, other, weight in update.bracket_weights:
        bracket = lie_bracket(model, velocities[one], velocities[other])
        velocity = velocity + (weight * dt) * bracket
    total = np.zeros_like(x)
    for stage, weight in update.rate_weights:
        total = total + weight * rates[stage]
    return dt * velocity, dt * total
