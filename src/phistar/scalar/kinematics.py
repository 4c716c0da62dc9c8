# SPDX-License-Identifier: BSD-3-Clause
"""Poses, Jacobians, velocities and the centre of mass as straight lines for one robot.

They are walked along the paths from the root to the frames that are asked for, in whichever axes
take the fewest operations; results are about the frames of the model and coordinates in its order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from phistar.model.model import Model
from phistar.model.parts import GROUND
from phistar.scalar.graph import Graph
from phistar.scalar.joints import factors_of, transform
from phistar.scalar.links import ROUNDING, Frame, Link
from phistar.scalar.lower import DEFAULT, Options, choices
from phistar.scalar.numbers import numbers
from phistar.scalar.program import Body, Signature, Store, Straight, arithmetic
from phistar.scalar.vectors import Matrix, Rotation, Vector, cross, minus, plus, scaled, times
from phistar.spatial import transform_point

IDENTITY: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
OUTPUT = "result"
"""Name of the only output."""


@dataclass(frozen=True)
class Step:
    """From a frame to the next one outward: over a joint, or over what is rigid.

    Attributes:
        rotation, offset: Of the outer frame in the inner one.
        axes: For each joint velocity its entry in v, and the motion [angular; linear] that a unit
            of it gives the outer frame, in the axes of that frame.
    """

    rotation: Rotation
    offset: Vector
    axes: tuple[tuple[int, Vector], ...] = ()

    def inward(self, r: Vector) -> Vector:
        """A point of the outer frame in the inner one."""
        return plus(self.rotation.turn(r), self.offset)

    def outward(self, r: Vector) -> Vector:
        """A point of the inner frame in the outer one."""
        return self.rotation.turn_back(minus(r, self.offset))

    def turned(self, rows: Matrix) -> Matrix:
        """A R: axes of the inner frame somewhere, to those of the outer frame there."""
        return [self.rotation.turn_back(row) for row in rows]

    def turned_back(self, rows: Matrix) -> Matrix:
        """A R*: axes of the outer frame somewhere, to those of the inner frame there."""
        return [self.rotation.turn(row) for row in rows]


class Steps:
    """The steps of a robot in one graph."""

    def __init__(self, model: Model, links: Sequence[Link]) -> None:
        self.model = model
        self.links = links
        self.graph = Graph()
        self._joints: dict[int, Step] = {}

    def joint(self, k: int) -> Step:
        """Over the joint of a body."""
        if k not in self._joints:
            link, v = self.links[k], self.model.bodies[k].v_slice.start
            own = numbers(link)
            axes = []
            for i, column in enumerate(own.columns):
                motion: Vector = [0.0] * 6
                for axis, factor in column:
                    motion[axis] = own.scale * factor
                axes.append((v + i, motion))
            place = transform(own, lambda i: self.graph.load("q", link.q + i))
            self._joints[k] = Step(*place, tuple(axes))
        return self._joints[k]

    def tip(self, name: str) -> Step:
        """From the link that carries a frame to the frame."""
        frame = self.model.frame(name)
        pose = Frame(frame.body_pose[:3, :3], frame.body_pose[:3, 3])
        seated = pose if frame.body == GROUND else self.links[frame.body].seat.inverse @ pose
        R, p = seated.R.copy(), seated.p
        for whole in (0.0, 1.0, -1.0):
            R[np.abs(R - whole) < ROUNDING] = whole
        p = np.where(np.abs(p) < ROUNDING, 0.0, p)
        return Step(Rotation(factors_of(R.tolist())), p.tolist())

    def path(self, name: str) -> list[Step]:
        """From the world to a frame."""
        ancestors = self.model.ancestors(self.model.frame(name).body)
        return [*(self.joint(k) for k in ancestors), self.tip(name)]

    def motion(self, step: Step) -> Vector:
        """What a joint's own velocity gives the outer frame of its step."""
        total: Vector = [0.0] * 6
        for entry, axis in step.axes:
            total = plus(total, scaled(self.graph.load("v", entry), axis))
        return total

    def onward(self, step: Step, velocity: Vector) -> Vector:
        """Velocity of the outer frame of a step, at its origin, from that of the inner one."""
        angular, linear, own = velocity[:3], velocity[3:], self.motion(step)
        carried = plus(linear, cross(angular, step.offset))
        angular = plus(step.rotation.turn_back(angular), own[:3])
        return [*angular, *plus(step.rotation.turn_back(carried), own[3:])]


Trace = Callable[[Steps], Vector]


def cheapest(
    model: Model, inputs: Sequence[str], trace: Trace, options: Options = DEFAULT
) -> Straight:
    """The program of a trace, in the axes in which it takes the fewest operations.

    Args:
        model: The robot.
        inputs: What it reads of ``"q"`` and ``"v"``.
        trace: Gives the numbers of its output.
        options: Which links it may see.
    """
    sizes = {"q": model.nq, "v": model.nv}
    found = []
    for links in choices(model, frozenset(), options):
        steps = Steps(model, links)
        result = trace(steps)
        signature = Signature({name: sizes[name] for name in inputs}, {OUTPUT: len(result)})
        stores = [Store(OUTPUT, i, "", x) for i, x in enumerate(result)]
        found.append(Straight(signature, Body(steps.graph, stores)))
    return min(found, key=lambda program: arithmetic(program.count()))


def poses(model: Model, frames: Sequence[str]) -> Straight:
    """World poses of some frames: q -> 16 numbers each, rows one after the other."""

    def trace(steps: Steps) -> Vector:
        known: dict[int, tuple[Matrix, Vector]] = {GROUND: (IDENTITY, [0.0, 0.0, 0.0])}

        def outward(place: tuple[Matrix, Vector], step: Step) -> tuple[Matrix, Vector]:
            R, p = place
            return step.turned(R), plus(p, times(R, step.offset))

        result: Vector = []
        for name in frames:
            body = model.frame(name).body
            for k in model.ancestors(body):
                if k not in known:
                    known[k] = outward(known[model.bodies[k].parent], steps.joint(k))
            R, p = outward(known[body], steps.tip(name))
            for row, x in zip(R, p, strict=True):
                result += [*row, x]
            result += [0.0, 0.0, 0.0, 1.0]
        return result

    return cheapest(model, ("q",), trace)


def jacobian(model: Model, frame: str, reference: str) -> Straight:
    """Jacobian of a frame: q -> 6 nv numbers, rows one after the other.

    A joint that moves its link by [a; b] moves the reference point, r in the link's axes, by
    [a; b + a × r]; one rotation takes both to the axes of the reference.
    """

    def trace(steps: Steps) -> Vector:
        path = steps.path(frame)
        rotations = _rotations(path, reference)
        points = _points(path, reference)
        result: Vector = [0.0] * (6 * model.nv)
        for step, R, r in zip(path, rotations, points, strict=True):
            for entry, axis in step.axes:
                moved = plus(axis[3:], cross(axis[:3], r))
                for i, x in enumerate([*times(R, axis[:3]), *times(R, moved)]):
                    result[i * model.nv + entry] = result[i * model.nv + entry] + x
        return result

    return cheapest(model, ("q",), trace)


def _rotations(path: Sequence[Step], reference: str) -> list[Matrix]:
    """From the axes of the outer frame of each step to those of the reference."""
    rows, found = IDENTITY, []
    if reference == "local":
        for step in reversed(path):
            found.append(rows)
            rows = step.turned_back(rows)
        return found[::-1]
    for step in path:
        rows = step.turned(rows)
        found.append(rows)
    return found


def _points(path: Sequence[Step], reference: str) -> list[Vector]:
    """The point of the reference in the axes of the outer frame of each step."""
    r: Vector = [0.0, 0.0, 0.0]
    found = []
    if reference == "world":
        for step in path:
            r = step.outward(r)
            found.append(r)
        return found
    for step in reversed(path):
        found.append(r)
        r = step.inward(r)
    return found[::-1]


def velocity(model: Model, frame: str, reference: str) -> Straight:
    """Velocity of a frame: q, v -> 6 numbers, in one walk along its path."""
    walk = {"local": _local, "world": _world, "world_aligned": _world_aligned}[reference]
    return cheapest(model, ("q", "v"), lambda steps: walk(steps, steps.path(frame)))


def _local(steps: Steps, path: Sequence[Step]) -> Vector:
    """Outward, in the axes of each frame at its origin."""
    velocity: Vector = [0.0] * 6
    for step in path:
        velocity = steps.onward(step, velocity)
    return velocity


def _world(steps: Steps, path: Sequence[Step]) -> Vector:
    """Inward: what the joints from here on give, in the axes of each frame at its origin."""
    angular: Vector = [0.0] * 3
    linear: Vector = [0.0] * 3
    for step in reversed(path):
        own = steps.motion(step)
        angular = step.rotation.turn(plus(angular, own[:3]))
        linear = step.rotation.turn(plus(linear, own[3:]))
        linear = plus(linear, cross(step.offset, angular))
    return [*angular, *linear]


def _world_aligned(steps: Steps, path: Sequence[Step]) -> Vector:
    """Inward: what the joints from here on give the last frame's origin, which comes along."""
    angular: Vector = [0.0] * 3
    linear: Vector = [0.0] * 3
    for step, r in reversed(list(zip(path, _points(path, "world_aligned"), strict=True))):
        own = steps.motion(step)
        moved = plus(own[3:], cross(own[:3], r))
        angular = step.rotation.turn(plus(angular, own[:3]))
        linear = step.rotation.turn(plus(linear, moved))
    return [*angular, *linear]


def center_of_mass(model: Model, fixed: bool) -> Straight:
    """Centre of mass: q -> 3 numbers.

    Args:
        model: The robot; something of it that moves has mass.
        fixed: Count the links that are welded to the ground too.
    """

    def trace(steps: Steps) -> Vector:
        rest, at_rest = _at_rest(model) if fixed else (0.0, [0.0, 0.0, 0.0])
        mass, moment = first_moment(steps)
        return scaled(1.0 / (rest + mass), plus(at_rest, moment))

    return cheapest(model, ("q",), trace)


def first_moment(steps: Steps) -> tuple[float, Vector]:
    """Mass and first moment in the world of the links that move."""
    masses = [link.mass for link in steps.links]
    moments: list[Vector] = [[float(x) for x in link.h] for link in steps.links]
    mass = 0.0
    total: Vector = [0.0, 0.0, 0.0]
    for link in reversed(steps.links):
        k, step = link.index, steps.joint(link.index)
        carried = plus(step.rotation.turn(moments[k]), scaled(masses[k], step.offset))
        if link.parent == GROUND:
            mass, total = mass + masses[k], plus(total, carried)
        else:
            masses[link.parent] += masses[k]
            moments[link.parent] = plus(moments[link.parent], carried)
    return mass, total


def _at_rest(model: Model) -> tuple[float, Vector]:
    """Mass and first moment of the links that are welded to the ground."""
    mass, moment = 0.0, np.zeros(3)
    for link in model.links:
        seat = model.frames.get(link.name)
        if seat is not None and seat.body == GROUND:
            mass += link.mass
            moment += link.mass * transform_point(seat.body_pose, link.com)
    return mass, [float(x) for x in moment]
