# SPDX-License-Identifier: BSD-3-Clause
"""Passes over links -> one straight line of scalar operations for one robot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phistar.model.parts import GROUND
from phistar.scalar.emit import Place
from phistar.scalar.graph import Graph, Scalar
from phistar.scalar.inertia import Inertia, Nothing, added
from phistar.scalar.joints import transform
from phistar.scalar.links import Link
from phistar.scalar.numbers import numbers
from phistar.scalar.program import Body, Signature, Store, Straight
from phistar.scalar.tracer import LinkTracer, Setting
from phistar.scalar.vectors import Vector, plus
from phistar.sweeps.ir import Direction, Node, Type
from phistar.sweeps.schedule import Schedule


class Robot:
    """The links of a robot in one graph."""

    def __init__(self, links: Sequence[Link]) -> None:
        self.links = links
        self.graph = Graph()
        self.children: list[list[int]] = [[] for _ in links]
        for link in links:
            if link.parent != GROUND:
                self.children[link.parent].append(link.index)
        self.places = [self._place(link) for link in links]

    def _place(self, link: Link) -> Place:
        own = numbers(link)
        return Place(own, *transform(own, lambda i: self.graph.load("q", link.q + i)))


class Trace:
    """The values of all streams at all links."""

    def __init__(self, robot: Robot, setting: Setting) -> None:
        self.robot = robot
        self.links = [
            _Unrolled(self, setting, place, link)
            for place, link in zip(robot.places, robot.links, strict=True)
        ]

    def run(self, schedule: Schedule) -> None:
        """Walk all passes, so that operations come in their order."""
        for each in schedule.passes:
            outward = each.direction is Direction.OUTWARD
            for link in self.links if outward else reversed(self.links):
                for stream in each.streams:
                    link.value(stream)


class _Unrolled(LinkTracer):
    """One link, with the others at hand."""

    def __init__(self, trace: Trace, setting: Setting, place: Place, link: Link) -> None:
        super().__init__(setting, place, link.parent == GROUND, link.index, link.v)
        self.trace = trace
        self.link = link

    def entry(self, name: str, i: int, base: str) -> Scalar:
        start = self.link.v if base == "v" else 6 * self.link.index
        return self.trace.robot.graph.load(name, start + i)

    def of_parent(self, stream: int) -> Any:
        return self.trace.links[self.link.parent].value(stream)

    def of_children(self, stream: int, node: Node) -> Any:
        children = self.trace.robot.children[self.link.index]
        values = [self.trace.links[c].value(node.operands[0]) for c in children]
        places = [self.trace.robot.places[c] for c in children]
        if node.op == "shin":
            force: Vector = [0.0] * 6
            for place, value in zip(places, values, strict=True):
                force = plus(force, place.inward(value))
            return force
        inertia: Inertia = Nothing()
        for place, value in zip(places, values, strict=True):
            inertia = added(inertia, value.moved(place.rotation, place.offset))
        return inertia


def straight(
    schedule: Schedule, links: Sequence[Link], signature: Signature, setting: Setting
) -> Straight:
    """The straight line of a program.

    Args:
        schedule: The program.
        links: The robot.
        signature: Its inputs and outputs.
        setting: What is known beforehand.
    """
    robot = Robot(links)
    trace = Trace(robot, setting)
    trace.run(schedule)
    body = Body(robot.graph)
    for name, stream in schedule.program.outputs.items():
        kind = schedule.program.nodes[stream].type
        for link in trace.links:
            body.stores += outputs(name, kind, link, link.value(stream))
    return Straight(signature, body)


def outputs(name: str, kind: Type, link: _Unrolled, value: Vector) -> list[Store]:
    """Where the value of an output at a link goes."""
    if kind is Type.JOINT:
        return [Store(name, link.link.v + i, "", x) for i, x in enumerate(value)]
    seat = link.place.unseat_force if kind is Type.FORCE else link.place.unseat_motion
    start = 6 * link.link.index
    return [Store(name, start + i, "", x) for i, x in enumerate(seat(value))]
