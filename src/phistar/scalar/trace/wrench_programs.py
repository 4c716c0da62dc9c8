# SPDX-License-Identifier: BSD-3-Clause
"""Programs about wrenches on frames: the forces on links that they are, and how those change."""

from __future__ import annotations

from collections.abc import Callable

from phistar.model.model import Model
from phistar.model.wrenches import WrenchFrames
from phistar.scalar.linear.vectors import Vector
from phistar.scalar.lower import DEFAULT_OPTIONS, link_number_choices, quaternion_entries
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled, count_arithmetic
from phistar.scalar.trace.frame_wrenches import LinkWrenches, SeatedWrenches, link_wrenches
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.wrench_stiffness import stiffness

RESULT_OUTPUT = "result"
"""Name of the only output."""


def link_force_program(model: Model, at: WrenchFrames) -> Unrolled:
    """Forces on the bodies that carry frames, in their own: q, wrenches -> 6 numbers each."""

    def trace(wrenches: LinkWrenches) -> Vector:
        result: Vector = []
        for k in sorted(wrenches.on_link):
            result += wrenches.robot.placed_links[k].force_to_body_frame(wrenches.force(k))
        return result

    return _cheapest(model, at, trace)


def stiffness_program(model: Model, at: WrenchFrames) -> Unrolled:
    """``stiffness`` as rows one after the other: q, wrenches -> joints² numbers."""

    def trace(wrenches: LinkWrenches) -> Vector:
        size = range(sum(link.size for link in wrenches.robot.links))
        entries = stiffness(wrenches)
        return [entries.get((i, j), 0.0) for i in size for j in size]

    return _cheapest(model, at, trace)


def _cheapest(model: Model, at: WrenchFrames, trace: Callable[[LinkWrenches], Vector]) -> Unrolled:
    """The program of a trace, in the axes in which it takes the fewest operations."""
    seated = SeatedWrenches(model, at)
    found = []
    for links in link_number_choices(model, frozenset(), DEFAULT_OPTIONS):
        robot = TracedLinks(links)
        result = trace(link_wrenches(robot, seated))
        signature = Signature(
            {"q": model.nq, **seated.sizes}, {RESULT_OUTPUT: len(result)}, quaternion_entries(model)
        )
        stores = [Store(RESULT_OUTPUT, i, "", x) for i, x in enumerate(result)]
        found.append(Unrolled(signature, BasicBlock(robot.graph, stores)))
    return min(found, key=lambda program: count_arithmetic(program.count()))
