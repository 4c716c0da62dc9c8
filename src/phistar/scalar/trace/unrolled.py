# SPDX-License-Identifier: BSD-3-Clause
"""Passes over links -> one unrolled program of scalar operations for one robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from phistar.model.components import GROUND
from phistar.scalar.graph import Scalar
from phistar.scalar.linear.vectors import Vector, scaled, zeros
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.robot.link_numbers import LinkNumbers
from phistar.scalar.trace.frame_wrenches import LinkWrenches, SeatedWrenches, link_wrenches
from phistar.scalar.trace.ground_tracer import GroundTracer
from phistar.scalar.trace.link_operations import (
    LINK_OPERATIONS,
    LinkValue,
    PlacedLink,
    add_term,
    as_vector,
)
from phistar.scalar.trace.link_tracer import LinkTracer, TraceContext
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.wrench_stiffness import stiffness_times
from phistar.sweeps.ir import Direction, Node, Type
from phistar.sweeps.ops import Reduction
from phistar.sweeps.schedule import Schedule
from phistar.sweeps.stream_types import GROUND_COMPONENTS


class UnrolledTrace:
    """The values of all streams at all links."""

    def __init__(self, robot: TracedLinks, setting: TraceContext) -> None:
        self.traced_links = robot
        self.tracers = [
            _UnrolledLinkTracer(self, setting, place, link)
            for place, link in zip(robot.placed_links, robot.links, strict=True)
        ]

    def run(self, schedule: Schedule) -> None:
        """Walk all passes, so that operations come in their order."""
        nodes = schedule.program.nodes
        for each in schedule.sweeps:
            outward = each.direction is Direction.OUTWARD
            streams = [stream for stream in each.streams if not nodes[stream].type.at_ground]
            for link in self.tracers if outward else reversed(self.tracers):
                for stream in streams:
                    link.value(stream)

    def link_terms(self, stream: int, node: Node) -> Vector:
        """What the links add to a sum at the ground."""
        total: LinkValue = zeros(GROUND_COMPONENTS[node.type])
        for link in self.tracers:
            if node.spec.reduction is Reduction.LINKS or link.is_root:
                operands = (link.value(o) for o in node.operands)
                term = LINK_OPERATIONS[node.op](link.placed, *operands)
                total = add_term(total, Fraction(1), term)
        return as_vector(total)


class _UnrolledLinkTracer(LinkTracer):
    """One link, with the others at hand."""

    def __init__(
        self, trace: UnrolledTrace, setting: TraceContext, place: PlacedLink, link: LinkNumbers
    ) -> None:
        super().__init__(setting, place, link.parent == GROUND, link.index, link.v)
        self.trace = trace
        self.link = link

    def input_entry(self, name: str, i: int, base: str) -> Scalar:
        start = self.link.v if base == "v" else 6 * self.link.index
        load = self.trace.traced_links.graph.load
        if base == "v" and self.context.joint_places:
            place, factor = self.context.joint_places[start + i]
            return factor * load(name, place)
        return load(name, start + i)

    def parent_value(self, stream: int) -> LinkValue:
        return self.trace.tracers[self.link.parent].value(stream)

    def sum_over_children(self, stream: int, node: Node) -> LinkValue:
        children = self.trace.traced_links.children[self.link.index]
        values = [self.trace.tracers[c].value(node.operands[0]) for c in children]
        places = [self.trace.traced_links.placed_links[c] for c in children]
        total = self._zero(node)
        for place, value in zip(places, values, strict=True):
            total = add_term(total, Fraction(1), LINK_OPERATIONS[node.op](place, value))
        return total

    def _sum(self, node: Node) -> LinkValue:
        """Of weighted points the link's own comes first: numbers that are known then meet."""
        if node.type is not Type.POINT:
            return super()._sum(node)
        terms = list(zip(node.data, node.operands, strict=True))
        inward = [(f, o) for f, o in terms if self.program.nodes[o].op == "point_in"]
        total: LinkValue = self._zero(node)
        for factor, stream in (term for term in terms if term not in inward):
            total = add_term(total, factor, self.value(stream))
        for factor, stream in inward:
            (operand,) = self.program.nodes[stream].operands
            for c in reversed(self.trace.traced_links.children[self.link.index]):
                child = self.trace.tracers[c]
                moved = child.placed.point_in(as_vector(child.value(operand)))
                total = add_term(total, factor, moved)
        return total


def trace_unrolled(
    schedule: Schedule,
    links: Sequence[LinkNumbers],
    signature: Signature,
    setting: TraceContext,
    wrenches: SeatedWrenches | None = None,
    added: Mapping[int, int] | None = None,
) -> Unrolled:
    """A program, unrolled.

    Args:
        schedule: The program.
        tracers: The robot.
        signature: Its inputs and outputs.
        setting: What is known beforehand.
        wrenches: On frames, in place of external forces on links.
        added: Joints with more inertia, see ``TracedLinks``.
    """
    robot = TracedLinks(links, added)
    acting = None if wrenches is None else link_wrenches(robot, wrenches)
    if acting is not None:
        more = _added_to_inputs(acting, signature)
        setting = replace(setting, link_force=acting.force, added=more)
    trace = UnrolledTrace(robot, setting)
    trace.run(schedule)
    body = BasicBlock(robot.graph)
    for name, stream in schedule.program.outputs.items():
        kind = schedule.program.nodes[stream].type
        if kind.at_ground:
            numbers = GroundTracer(schedule.program, setting.ground, trace.link_terms).value(stream)
            body.stores += [Store(name, i, "", x) for i, x in enumerate(numbers)]
            continue
        for link in trace.tracers:
            body.stores += output_stores(name, kind, link, as_vector(link.value(stream)))
    if acting is not None:
        _add_to_outputs(acting, signature, body.stores)
    return Unrolled(signature, body)


def _added_to_inputs(acting: LinkWrenches, signature: Signature) -> dict[str, Vector]:
    """What wrenches that are held in the world add to an input, see ``HeldTerm``."""
    term = acting.at.held
    if term is None or term.target not in signature.inputs:
        return {}
    x = [acting.robot.graph.load(term.vector, i) for i in range(signature.inputs[term.vector])]
    return {term.target: scaled(term.sign, stiffness_times(acting, x, term.adjoint))}


def _add_to_outputs(acting: LinkWrenches, signature: Signature, stores: list[Store]) -> None:
    """Add what wrenches that are held in the world add to an output."""
    term = acting.at.held
    if term is None or term.target not in signature.outputs:
        return
    x: Vector
    if term.vector in signature.inputs:
        x = [acting.robot.graph.load(term.vector, i) for i in range(signature.inputs[term.vector])]
    else:
        x = zeros(signature.outputs[term.vector])
        for store in stores:
            if store.space == term.vector:
                x[store.index] = store.value
    more = scaled(term.sign, stiffness_times(acting, x, term.adjoint))
    for i, store in enumerate(stores):
        if store.space == term.target:
            stores[i] = replace(store, value=store.value + more[store.index])


def output_stores(name: str, kind: Type, link: _UnrolledLinkTracer, value: Vector) -> list[Store]:
    """Where the value of an output at a link goes."""
    if kind is Type.JOINT:
        return [Store(name, link.link.v + i, "", x) for i, x in enumerate(value)]
    seat = link.placed.to_body_frame(kind)
    start = kind.width * link.link.index
    return [Store(name, start + i, "", x) for i, x in enumerate(seat(value))]
