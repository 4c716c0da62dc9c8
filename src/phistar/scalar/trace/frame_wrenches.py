# SPDX-License-Identifier: BSD-3-Clause
"""Wrenches on frames as forces on the links that carry them, in the axes of the links.

A wrench in the frame's own axes is moved by constants. One that is given in the world is taken
outward along the path to its link, joint by joint, or turned by the link's orientation, which is
composed along the path once for all wrenches behind it: whichever takes fewer operations.
"""

from __future__ import annotations

from dataclasses import dataclass

from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.model.wrenches import WrenchFrames
from phistar.scalar.graph import Scalar, Value
from phistar.scalar.linear.vectors import (
    Matrix,
    Rotation,
    Vector,
    cross,
    minus,
    plus,
    times,
    transposed,
    zeros,
)
from phistar.scalar.program import count_arithmetic
from phistar.scalar.robot.link_numbers import placement_in_link
from phistar.scalar.trace.traced_links import TracedLinks

_IDENTITY: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


@dataclass(frozen=True)
class SeatedWrenches:
    """Wrenches on a robot's frames.

    Attributes:
        model: The robot.
        at: Frames and reference.
    """

    model: Model
    at: WrenchFrames

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of the inputs that they are."""
        return dict.fromkeys(self.at.inputs, 6)

    @property
    def bodies(self) -> list[int]:
        """The bodies that carry them, each once, in order."""
        return self.at.bodies(self.model)


class LinkWrenches:
    """The forces on links that wrenches amount to, in one graph."""

    def __init__(self, robot: TracedLinks, seated: SeatedWrenches, compose: bool) -> None:
        """Args:
        robot: The links.
        seated: The wrenches.
        compose: Whether orientations of links are composed, or wrenches taken along the paths.
        """
        self.robot = robot
        self.at = seated.at
        self._compose = compose
        self._poses: dict[int, tuple[Matrix, Vector]] = {GROUND: (_IDENTITY, zeros(3))}
        self.on_link: dict[int, list[tuple[str, Rotation, Vector]]] = {}
        for name, given in zip(seated.at.frames, seated.at.inputs, strict=True):
            frame = seated.model.frame(name)
            place = placement_in_link(robot.links, frame.body, frame.body_pose)
            here = (given, *robot.frame_place(frame.body, place))
            self.on_link.setdefault(frame.body, []).append(here)

    def force(self, k: int) -> Vector:
        """All wrenches on a link as one force on it, at its origin; zeros without any."""
        parts = self.parts(k)
        total = zeros()
        for point, wrench in parts:
            force = wrench[3:]
            total = plus(total, [*plus(wrench[:3], cross(point, force)), *force])
        return total

    def parts(self, k: int) -> list[tuple[Vector, Vector]]:
        """The wrenches on a link in its axes, each with the point at which it is a wrench."""
        given = self.on_link.get(k, ())
        loaded = [(self._load(name), R, p) for name, R, p in given]
        if not loaded:
            return []
        if self.at.reference == "local":
            return [(p, [*R.rotate(f[:3]), *R.rotate(f[3:])]) for f, R, p in loaded]
        if self.at.reference == "world":
            total = zeros()
            for f, _, _ in loaded:
                total = plus(total, f)
            return [(zeros(3), self._from_world(k, total))]
        return [(p, self._turned(k, f)) for f, _, p in loaded]

    def _load(self, name: str) -> Vector:
        return [self.robot.graph.load(name, i) for i in range(6)]

    def _from_world(self, k: int, f: Vector) -> Vector:
        """A wrench at the world's origin, at that of a link."""
        if self._compose:
            R, p = self._pose(k)
            back, force = transposed(R), f[3:]
            return [*times(back, minus(f[:3], cross(p, force))), *times(back, force)]
        moment, force = f[:3], f[3:]
        for j in self.robot.path(k):
            place = self.robot.placed_links[j]
            moment = place.rotation.rotate_back(minus(moment, cross(place.offset, force)))
            force = place.rotation.rotate_back(force)
        return [*moment, *force]

    def _turned(self, k: int, f: Vector) -> Vector:
        """A wrench with the axes of the world, with those of a link."""
        moment, force = f[:3], f[3:]
        if self._compose:
            back = transposed(self._pose(k)[0])
            return [*times(back, moment), *times(back, force)]
        for j in self.robot.path(k):
            rotation = self.robot.placed_links[j].rotation
            moment, force = rotation.rotate_back(moment), rotation.rotate_back(force)
        return [*moment, *force]

    def _pose(self, k: int) -> tuple[Matrix, Vector]:
        """A link in the world."""
        for j in self.robot.path(k):
            if j not in self._poses:
                place = self.robot.placed_links[j]
                R, p = self._poses[self.robot.links[j].parent]
                turned = [place.rotation.rotate_back(row) for row in R]
                self._poses[j] = turned, plus(p, times(R, place.offset))
        return self._poses[k]


def link_wrenches(robot: TracedLinks, seated: SeatedWrenches) -> LinkWrenches:
    """Wrenches in the way that takes the fewest operations."""
    if not seated.at.turn:
        return LinkWrenches(robot, seated, compose=False)
    counts = {}
    for compose in (False, True):
        scratch = TracedLinks(robot.links)
        trial = LinkWrenches(scratch, seated, compose)
        roots: list[Scalar] = [x for k in seated.bodies for x in trial.force(k)]
        bill = scratch.graph.count([x for x in roots if isinstance(x, Value)])
        counts[compose] = count_arithmetic(bill)
    return LinkWrenches(robot, seated, compose=counts[True] < counts[False])
