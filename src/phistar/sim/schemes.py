# SPDX-License-Identifier: BSD-3-Clause
"""Explicit schemes as data: rates at stages, and updates made of them.

A state is (q, x), where x may be the velocity v or another variable for it. A stage has a
configuration, an x, and what the dynamics say there: v and ẋ. Stage 0 is the state. Updates start
from the state, go to a stage, and the last one to the next state. They hold on any configuration
space: steps of q are tangent steps in the axes of the moving links, where velocities are, and
brackets [v, v] make up for turns that do not commute. Where they do, these are the classical
schemes.

The fourth-order scheme is the classical Runge-Kutta one with two brackets, after H. Munthe-Kaas,
"High order Runge-Kutta methods on manifolds", Appl. Numer. Math. 29 (1999). There the group acts
from the left; here velocities are in child axes, so the signs of brackets are the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from phistar.scalar.steps import Update


@dataclass(frozen=True)
class Rate:
    """v and ẋ of a stage, from its q and x; or v alone."""

    stage: int
    velocity_only: bool = False


@dataclass(frozen=True)
class Go:
    """An update from the state to a stage, or to the next state, which is stage 0."""

    stage: int
    update: Update


@dataclass(frozen=True)
class Scheme:
    """An explicit scheme with a fixed step.

    Attributes:
        name: What users call it.
        order: Of the error of a state after a given time, in the step.
        doc: What it is, in one line.
        parts: What a step does, in order.
    """

    name: str
    order: int
    doc: str
    parts: tuple[Rate | Go, ...]


EULER = Scheme(
    "euler",
    1,
    "explicit Euler: q' = q ⊕ h v, x' = x + h ẋ; energy grows",
    (Rate(0), Go(0, Update(moves=((0, 1.0),), rates=((0, 1.0),)))),
)

SEMI_IMPLICIT = Scheme(
    "semi_implicit",
    1,
    "semi-implicit Euler: x' = x + h ẋ, then q' = q ⊕ h v' with v' of x'",
    (
        Rate(0),
        Go(1, Update(rates=((0, 1.0),))),
        Rate(1, velocity_only=True),
        Go(0, Update(moves=((1, 1.0),), rates=((0, 1.0),))),
    ),
)

MIDPOINT = Scheme(
    "midpoint",
    2,
    "explicit midpoint rule: half a step to where the whole step is measured",
    (
        Rate(0),
        Go(1, Update(moves=((0, 0.5),), rates=((0, 0.5),))),
        Rate(1),
        Go(0, Update(moves=((1, 1.0),), rates=((1, 1.0),))),
    ),
)

_SIXTHS = (1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0)

RK4 = Scheme(
    "rk4",
    4,
    "classical Runge-Kutta with two brackets",
    (
        Rate(0),
        Go(1, Update(moves=((0, 0.5),), rates=((0, 0.5),))),
        Rate(1),
        Go(2, Update(moves=((1, 0.5),), turns=((0, 1, 1.0 / 8.0),), rates=((1, 0.5),))),
        Rate(2),
        Go(3, Update(moves=((2, 1.0),), rates=((2, 1.0),))),
        Rate(3),
        Go(
            0,
            Update(
                moves=tuple(enumerate(_SIXTHS)),
                turns=((0, 3, 1.0 / 12.0),),
                rates=tuple(enumerate(_SIXTHS)),
            ),
        ),
    ),
)

SCHEMES = {scheme.name: scheme for scheme in (EULER, SEMI_IMPLICIT, MIDPOINT, RK4)}
"""Explicit schemes by name."""
