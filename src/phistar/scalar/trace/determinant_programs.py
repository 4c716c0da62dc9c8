# SPDX-License-Identifier: BSD-3-Clause
"""log det of the mass matrix as an unrolled program: 𝓜 = L D L*, so it is that of D."""

from __future__ import annotations

from collections.abc import Sequence

from phistar.model.joint_map import joint_map
from phistar.model.model import Model
from phistar.scalar.graph import Scalar, log
from phistar.scalar.linear.vectors import Vector
from phistar.scalar.lower import (
    REGROUPED_OPTIONS,
    link_number_choices,
    quaternion_entries,
    trace_context,
)
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled, count_arithmetic
from phistar.scalar.robot.link_numbers import LinkNumbers
from phistar.scalar.trace.kinematics_programs import RESULT_OUTPUT
from phistar.scalar.trace.link_operations import LdlFactor
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.unrolled import UnrolledTrace
from phistar.sweeps.schedule import Schedule

PIVOTS_PER_LOGARITHM = 3
"""Pivots that are multiplied before the logarithm is taken: pivots down to 1e-12 stay far inside
the range of single precision."""


def log_determinant(model: Model, scheduled: Schedule) -> Unrolled:
    """log det 𝓜: q -> a number, for robots whose joints all have coordinates of their own.

    Args:
        model: The robot.
        scheduled: A program in which D occurs, such as ``hinge_inertias``.
    """
    assert joint_map(model).one_to_one
    choices = link_number_choices(model, frozenset(), REGROUPED_OPTIONS)
    found = [_trace(model, scheduled, links) for links in choices]
    return min(found, key=lambda program: count_arithmetic(program.count()))


def _trace(model: Model, scheduled: Schedule, links: Sequence[LinkNumbers]) -> Unrolled:
    robot, program = TracedLinks(links), scheduled.program
    trace = UnrolledTrace(robot, trace_context(program, model, frozenset()))
    (stream,) = (s for s in program.live() if program.nodes[s].op == "D")
    pivots: Vector = []
    for link in reversed(trace.tracers):
        factor = link.value(stream)
        assert isinstance(factor, LdlFactor)
        pivots += factor.inverse_pivots
    total: Scalar = 0.0
    for first in range(0, len(pivots), PIVOTS_PER_LOGARITHM):
        product: Scalar = 1.0
        for x in pivots[first : first + PIVOTS_PER_LOGARITHM]:
            product = product * x
        total = total - log(product)
    signature = Signature({"q": model.nq}, {RESULT_OUTPUT: 1}, quaternion_entries(model))
    return Unrolled(signature, BasicBlock(robot.graph, [Store(RESULT_OUTPUT, 0, "", total)]))
