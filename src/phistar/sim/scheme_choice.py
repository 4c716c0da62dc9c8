# SPDX-License-Identifier: BSD-3-Clause
"""Which scheme ``"auto"`` is: explicit unless springs or dampers of the joints are too stiff."""

from __future__ import annotations

import numpy as np

from phistar import dynamics
from phistar.model.configuration import neutral
from phistar.model.joint_physics import passive_numbers
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.sim.force_to_motion import free_rates
from phistar.sim.schemes import IMPLICIT, RK4, SEMI_IMPLICIT
from phistar.thresholds import POLICY

AUTO = "auto"
"""Name of the choice."""


@cached_on_model
def _rates(model: Model) -> tuple[float, float]:
    """Rates [1/s] at which dampers stop, and springs swing, the joints by themselves, largest.

    By the diagonal of the inverse mass matrix in the home configuration, on loops of what is left
    of it along their motions.
    """
    numbers = passive_numbers(model)
    q = model.configurations.get("home", neutral(model))
    rest, tree = np.zeros((1, model.nv)), model.without_loops()
    _, W = free_rates(model, q[None], rest, dynamics.mass_matrix(tree, q)[None], rest)
    compliance = np.diagonal(W[0])
    damping, stiffness = numbers.damping * compliance, numbers.stiffness * compliance
    return float(np.max(damping, initial=0.0)), float(np.sqrt(np.max(stiffness, initial=0.0)))


def is_stiff(model: Model, dt: float, smooth: tuple[str, ...]) -> bool:
    """Whether explicit steps of a length [s] would overshoot what springs and dampers do."""
    if not smooth:
        return False
    damping, swing = _rates(model)
    rates = (damping if "damping" in smooth else 0.0, swing if "springs" in smooth else 0.0)
    return bool(dt * max(rates) > POLICY.max_explicit_joint_rate)


def scheme_of_simulation(
    model: Model, scheme: str, dt: float | None, smooth: tuple[str, ...], variables: str | None
) -> str:
    """A scheme by name; ``"auto"`` is rk4, or implicit where joints are stiff."""
    if scheme != AUTO:
        return scheme
    plain = variables in (None, "v")
    return IMPLICIT.name if plain and dt and is_stiff(model, dt, smooth) else RK4.name


def scheme_of_step(model: Model, scheme: str, smooth: tuple[str, ...]) -> str:
    """A scheme by name; ``"auto"`` is semi_implicit, with springs or dampers implicit."""
    if scheme != AUTO:
        return scheme
    return IMPLICIT.name if smooth else SEMI_IMPLICIT.name
