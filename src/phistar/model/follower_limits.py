# SPDX-License-Identifier: BSD-3-Clause
"""Limits of coordinates that also count those of the joints which follow by mimic."""

from __future__ import annotations

from phistar.model.configuration import limits
from phistar.model.model import Model


def limits_with_followers(model: Model) -> tuple[list[float], list[float]]:
    """Lower and upper limits (nq) within which every joint is inside its own.

    A lower limit may be above the upper one: then no configuration is.
    """
    lower, upper = (each.tolist() for each in limits(model))
    for body in model.bodies:
        joint = model.joints[body.joint]
        if joint.mimic is not None and body.scale != 0.0:
            at, offset = body.q_slice.start, body.offset + joint.reference
            own = (joint.limits.lower[0], joint.limits.upper[0])
            low, high = sorted((x - offset) / body.scale for x in own)
            lower[at], upper[at] = max(lower[at], low), min(upper[at], high)
    return lower, upper
