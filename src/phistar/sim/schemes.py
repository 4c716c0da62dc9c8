# SPDX-License-Identifier: BSD-3-Clause
"""Explicit schemes as data: rates at stages, and updates from them.

A state is (q, x), where x may be the velocity v or another variable for it. A stage has a
configuration, an x, and their rates v and ẋ. Stage 0 is the state. Updates start from the state, go
to a stage, and the last one to the next state. They hold on any configuration
space: steps of q are tangent steps in the axes of the moving links, where velocities are, and
brackets [v, v] correct for rotations that do not commute. Where they commute, these are the
classical schemes.

The fourth-order scheme is the classical Runge-Kutta one with two brackets, after H. Munthe-Kaas,
"High order Runge-Kutta methods on manifolds", Appl. Numer. Math. 29 (1999). There the group acts
from the left; here velocities are in child axes, so brackets have the opposite sign.
"""

from __future__ import annotations

from dataclasses import dataclass

from phistar.scalar.trace.state_update import StateUpdate


@dataclass(frozen=True)
class EvaluateRates:
    """v and ẋ of a stage, from its q and x; or v alone."""

    stage: int
    velocity_only: bool = False


@dataclass(frozen=True)
class UpdateStage:
    """An update from the state to a stage, or to the next state, which is stage 0."""

    stage: int
    update: StateUpdate


@dataclass(frozen=True)
class Scheme:
    """An explicit scheme with a fixed step.

    Attributes:
        name: Name for users.
        order: Order of the error after a given time in the step.
        doc: One line of text.
        instructions: Those of one step, in order.
        implicit: Whether springs and dampers of joints push as they do at the end of the step.
    """

    name: str
    order: int
    doc: str
    instructions: tuple[EvaluateRates | UpdateStage, ...]
    implicit: bool = False


EULER = Scheme(
    "euler",
    1,
    "explicit Euler: q' = q ⊕ h v, x' = x + h ẋ; energy grows",
    (
        EvaluateRates(0),
        UpdateStage(0, StateUpdate(velocity_weights=((0, 1.0),), rate_weights=((0, 1.0),))),
    ),
)

SEMI_IMPLICIT = Scheme(
    "semi_implicit",
    1,
    "semi-implicit Euler: x' = x + h ẋ, then q' = q ⊕ h v' with v' of x'",
    (
        EvaluateRates(0),
        UpdateStage(1, StateUpdate(rate_weights=((0, 1.0),))),
        EvaluateRates(1, velocity_only=True),
        UpdateStage(0, StateUpdate(velocity_weights=((1, 1.0),), rate_weights=((0, 1.0),))),
    ),
)

IMPLICIT = Scheme(
    "implicit",
    1,
    "semi-implicit Euler with springs and dampers of joints at the end of the step",
    SEMI_IMPLICIT.instructions,
    implicit=True,
)

MIDPOINT = Scheme(
    "midpoint",
    2,
    "explicit midpoint rule: half a step to where the rates of the full step are taken",
    (
        EvaluateRates(0),
        UpdateStage(1, StateUpdate(velocity_weights=((0, 0.5),), rate_weights=((0, 0.5),))),
        EvaluateRates(1),
        UpdateStage(0, StateUpdate(velocity_weights=((1, 1.0),), rate_weights=((1, 1.0),))),
    ),
)

_SIXTHS = (1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0)

RK4 = Scheme(
    "rk4",
    4,
    "classical Runge-Kutta with two brackets",
    (
        EvaluateRates(0),
        UpdateStage(1, StateUpdate(velocity_weights=((0, 0.5),), rate_weights=((0, 0.5),))),
        EvaluateRates(1),
        UpdateStage(
            2,
            StateUpdate(
                velocity_weights=((1, 0.5),),
                bracket_weights=((0, 1, 1.0 / 8.0),),
                rate_weights=((1, 0.5),),
            ),
        ),
        EvaluateRates(2),
        UpdateStage(3, StateUpdate(velocity_weights=((2, 1.0),), rate_weights=((2, 1.0),))),
        EvaluateRates(3),
        UpdateStage(
            0,
            StateUpdate(
                velocity_weights=tuple(enumerate(_SIXTHS)),
                bracket_weights=((0, 3, 1.0 / 12.0),),
                rate_weights=tuple(enumerate(_SIXTHS)),
            ),
        ),
    ),
)

SCHEMES = {scheme.name: scheme for scheme in (EULER, SEMI_IMPLICIT, IMPLICIT, MIDPOINT, RK4)}
"""Schemes with fixed steps by name; all but ``"implicit"`` are explicit."""
