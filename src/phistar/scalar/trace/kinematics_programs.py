# SPDX-License-Identifier: BSD-3-Clause
"""Jacobians of frames, and their velocities in the world, as unrolled programs for one robot.

They are walked along the paths from the root to the frames that are asked for, in whichever axes
take the fewest operations; results are about the frames of the model and coordinates in its order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from phistar.model.model import Model
from phistar.scalar.graph import Graph
from phistar.scalar.linear.vectors import (
    Matrix,
    Rotation,
    Vector,
    cross,
    minus,
    plus,
    scaled,
    times,
)
from phistar.scalar.lower import (
    DEFAULT_OPTIONS,
    LoweringOptions,
    link_number_choices,
    quaternion_entries,
)
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled, count_arithmetic
from phistar.scalar.robot.joint_transforms import factor_rotation, joint_transform
from phistar.scalar.robot.link_numbers import LinkNumbers, placement_in_link
from phistar.scalar.robot.link_scalars import link_scalars
from phistar.scalar.trace.link_operations import PlacedLink

IDENTITY: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
RESULT_OUTPUT = "result"
"""Name of the only output."""


@dataclass(frozen=True)
class PathStep:
    """From a frame to the next one outward: over a joint, or over what is rigid.

    Attributes:
        rotation, offset: Of the outer frame in the inner one.
        axes: For each joint velocity its entry in v, and the motion [angular; linear] that a unit
            of it gives the outer frame, in the axes of that frame.
    """

    rotation: Rotation
    offset: Vector
    axes: tuple[tuple[int, Vector], ...] = ()

    def point_inward(self, r: Vector) -> Vector:
        """A point of the outer frame in the inner one."""
        return plus(self.rotation.rotate(r), self.offset)

    def point_outward(self, r: Vector) -> Vector:
        """A point of the inner frame in the outer one."""
        return self.rotation.rotate_back(minus(r, self.offset))

    def to_outer_axes(self, rows: Matrix) -> Matrix:
        """A R: axes of the inner frame somewhere, to those of the outer frame there."""
        return [self.rotation.rotate_back(row) for row in rows]

    def to_inner_axes(self, rows: Matrix) -> Matrix:
        """A R*: axes of the outer frame somewhere, to those of the inner frame there."""
        return [self.rotation.rotate(row) for row in rows]


class PathSteps:
    """The steps of a robot in one graph."""

    def __init__(self, model: Model, links: Sequence[LinkNumbers]) -> None:
        self.model = model
        self.links = links
        self.graph = Graph()
        self._joints: dict[int, PathStep] = {}

    def joint_step(self, k: int) -> PathStep:
        """Over the joint of a body."""
        if k not in self._joints:
            link, v = self.links[k], self.model.bodies[k].v_slice.start
            own = link_scalars(link)
            axes = []
            for i, column in enumerate(own.columns):
                joint_motion: Vector = [0.0] * 6
                for axis, factor in column:
                    joint_motion[axis] = own.scale * factor
                axes.append((v + i, joint_motion))
            place = joint_transform(own, lambda i: self.graph.load("q", link.q + i))
            self._joints[k] = PathStep(*place, tuple(axes))
        return self._joints[k]

    def placed_link(self, k: int) -> PlacedLink:
        """A body's link with its transform to the parent."""
        step = self.joint_step(k)
        return PlacedLink(link_scalars(self.links[k]), step.rotation, step.offset)

    def frame_step(self, name: str) -> PathStep:
        """From the link that carries a frame to the frame."""
        frame = self.model.frame(name)
        place = placement_in_link(self.links, frame.body, frame.body_pose)
        return PathStep(Rotation(factor_rotation(place.R.tolist())), place.p.tolist())

    def path(self, name: str) -> list[PathStep]:
        """From the world to a frame."""
        ancestors = self.model.ancestors(self.model.frame(name).body)
        return [*(self.joint_step(k) for k in ancestors), self.frame_step(name)]

    def joint_motion(self, step: PathStep, name: str = "v") -> Vector:
        """What a joint's own velocity, or acceleration, gives the outer frame of its step."""
        total: Vector = [0.0] * 6
        for entry, axis in step.axes:
            total = plus(total, scaled(self.graph.load(name, entry), axis))
        return total

    def outer_velocity(self, step: PathStep, velocity: Vector) -> Vector:
        """Velocity of the outer frame of a step, at its origin, from that of the inner one."""
        angular, linear, own = velocity[:3], velocity[3:], self.joint_motion(step)
        carried = plus(linear, cross(angular, step.offset))
        angular = plus(step.rotation.rotate_back(angular), own[:3])
        return [*angular, *plus(step.rotation.rotate_back(carried), own[3:])]


TraceFunction = Callable[[PathSteps], Vector]


def trace_cheapest(
    model: Model,
    inputs: Sequence[str],
    trace: TraceFunction,
    options: LoweringOptions = DEFAULT_OPTIONS,
) -> Unrolled:
    """The program of a trace, in the axes in which it takes the fewest operations.

    Args:
        model: The robot.
        inputs: What it reads of ``"q"``, ``"v"`` and ``"vdot"``.
        trace: Gives the numbers of its output.
        options: Which links it may see.
    """
    sizes = {"q": model.nq, "v": model.nv, "vdot": model.nv}
    found = []
    for links in link_number_choices(model, frozenset(), options):
        steps = PathSteps(model, links)
        result = trace(steps)
        read = {name: sizes[name] for name in inputs}
        signature = Signature(read, {RESULT_OUTPUT: len(result)}, quaternion_entries(model))
        stores = [Store(RESULT_OUTPUT, i, "", x) for i, x in enumerate(result)]
        found.append(Unrolled(signature, BasicBlock(steps.graph, stores)))
    return min(found, key=lambda program: count_arithmetic(program.count()))


def jacobian(model: Model, frame: str, reference: str) -> Unrolled:
    """Jacobian of a frame: q -> 6 nv numbers, rows one after the other.

    A joint that moves its link by [a; b] moves the reference point, r in the link's axes, by
    [a; b + a × r]; one rotation takes both to the axes of the reference.
    """

    def trace(steps: PathSteps) -> Vector:
        path = steps.path(frame)
        rotations = rotations_to_reference(path, reference)
        points = reference_points(path, reference)
        result: Vector = [0.0] * (6 * model.nv)
        for step, R, r in zip(path, rotations, points, strict=True):
            for entry, axis in step.axes:
                moved = plus(axis[3:], cross(axis[:3], r))
                for i, x in enumerate([*times(R, axis[:3]), *times(R, moved)]):
                    result[i * model.nv + entry] = result[i * model.nv + entry] + x
        return result

    return trace_cheapest(model, ("q",), trace)


def rotations_to_reference(path: Sequence[PathStep], reference: str) -> list[Matrix]:
    """From the axes of the outer frame of each step to those of the reference."""
    rows, found = IDENTITY, []
    if reference == "local":
        for step in reversed(path):
            found.append(rows)
            rows = step.to_inner_axes(rows)
        return found[::-1]
    for step in path:
        rows = step.to_outer_axes(rows)
        found.append(rows)
    return found


def reference_points(path: Sequence[PathStep], reference: str) -> list[Vector]:
    """The point of the reference in the axes of the outer frame of each step."""
    r: Vector = [0.0, 0.0, 0.0]
    found = []
    if reference == "world":
        for step in path:
            r = step.point_outward(r)
            found.append(r)
        return found
    for step in reversed(path):
        found.append(r)
        r = step.point_inward(r)
    return found[::-1]


def velocity(model: Model, frame: str, reference: str) -> Unrolled:
    """Velocity of a frame in the axes of the world: q, v -> 6 numbers, in one walk inward.

    Args:
        model: The robot.
        frame: Name of the frame.
        reference: ``"world"`` or ``"world_aligned"``; in its own axes see ``lower_frames``.
    """
    walk = {"world": _world_velocity, "world_aligned": _world_aligned_velocity}[reference]
    return trace_cheapest(model, ("q", "v"), lambda steps: walk(steps, steps.path(frame)))


def _world_velocity(steps: PathSteps, path: Sequence[PathStep]) -> Vector:
    """Inward: what the joints from here on give, in the axes of each frame at its origin."""
    angular: Vector = [0.0] * 3
    linear: Vector = [0.0] * 3
    for step in reversed(path):
        own = steps.joint_motion(step)
        angular = step.rotation.rotate(plus(angular, own[:3]))
        linear = step.rotation.rotate(plus(linear, own[3:]))
        linear = plus(linear, cross(step.offset, angular))
    return [*angular, *linear]


def _world_aligned_velocity(steps: PathSteps, path: Sequence[PathStep]) -> Vector:
    """Inward: what the joints from here on give the last frame's origin, which comes along."""
    angular: Vector = [0.0] * 3
    linear: Vector = [0.0] * 3
    for step, r in reversed(list(zip(path, reference_points(path, "world_aligned"), strict=True))):
        own = steps.joint_motion(step)
        moved = plus(own[3:], cross(own[:3], r))
        angular = step.rotation.rotate(plus(angular, own[:3]))
        linear = step.rotation.rotate(plus(linear, moved))
    return [*angular, *linear]
