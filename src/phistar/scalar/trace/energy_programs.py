# SPDX-License-Identifier: BSD-3-Clause
"""Potential energy as a straight line for one robot."""

from __future__ import annotations

from dataclasses import replace

from phistar.model.model import Model
from phistar.scalar.linear.vectors import Vector, dot
from phistar.scalar.lower import DEFAULT_OPTIONS
from phistar.scalar.program import Unrolled
from phistar.scalar.trace.kinematics_programs import PathSteps, first_moment, trace_cheapest

REGROUPED_OPTIONS = replace(DEFAULT_OPTIONS, regroup=True)


def potential_energy(model: Model) -> Unrolled:
    """Potential energy of the links that move, zero at the world's origin: q -> a number."""

    def trace(steps: PathSteps) -> Vector:
        _, moment = first_moment(steps)
        return [dot([-float(x) for x in model.gravity], moment)]

    return trace_cheapest(model, ("q",), trace)
