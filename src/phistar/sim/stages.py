# SPDX-License-Identifier: BSD-3-Clause
"""A step of a scheme, stage by stage, on arrays of any batch and dtype."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from phistar.arrays import Array
from phistar.kinematics import integrate_unchecked
from phistar.model.model import Model
from phistar.scalar.trace.state_update import StateUpdate
from phistar.sim.manifold import is_euclidean, lie_bracket
from phistar.sim.schemes import EvaluateRates, Scheme
from phistar.sim.variables import Variable


@dataclass(frozen=True)
class StateFunctions:
    """What a step is made of.

    Attributes:
        model: The robot.
        velocity: q, x -> v.
        rate: q, x, tau -> v and the rate of x.
        move: q and a tangent step -> the configuration there.
    """

    model: Model
    velocity: Callable[[Array, Array], Array]
    rate: Callable[[Array, Array, Array], tuple[Array, Array]]
    move: Callable[[Array, Array], Array]


def functions_of(variable: Variable) -> StateFunctions:
    """Those of a variable for the velocity, for any arrays."""
    move = partial(integrate_unchecked, variable.model)
    return StateFunctions(variable.model, variable.velocity, variable.rate, move)


def next_state(
    scheme: Scheme, functions: StateFunctions, q: Array, x: Array, tau: Array, dt: Array | float
) -> tuple[Array, Array]:
    """q (..., nq) and x (..., nv) after a step.

    Args:
        scheme: Instructions of the step.
        functions: The dynamics.
        q, x, tau: (..., nq), (..., nv), (..., nv) at its start.
        dt: Its length [s], (..., 1) or a number.
    """
    stages = {0: (q, x)}
    velocities: dict[int, Array] = {}
    rates: dict[int, Array] = {}
    for part in scheme.instructions:
        if not isinstance(part, EvaluateRates):
            step, change = increments(functions.model, part.update, x, velocities, rates, dt)
            moved = functions.move(q, step) if part.update.velocities else q
            stages[part.stage] = moved, x + change
        elif part.velocity_only:
            velocities[part.stage] = functions.velocity(*stages[part.stage])
        else:
            velocities[part.stage], rates[part.stage] = functions.rate(*stages[part.stage], tau)
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
    velocity = _weighted(update.velocity_weights, velocities, x)
    if update.bracket_weights and not is_euclidean(model):
        for one, other, weight in update.bracket_weights:
            bracket = lie_bracket(model, velocities[one], velocities[other])
            velocity = velocity + (weight * dt) * bracket
    return dt * velocity, dt * _weighted(update.rate_weights, rates, x)


def _weighted(
    weights: tuple[tuple[int, float], ...], values: Mapping[int, Array], like: Array
) -> Array:
    """The weighted sum of the values of some stages."""
    total: Array | None = None
    for stage, weight in weights:
        term = values[stage] if weight == 1.0 else weight * values[stage]
        total = term if total is None else total + term
    return np.zeros_like(like) if total is None else total
