# SPDX-License-Identifier: BSD-3-Clause
"""Accelerations of frames and rates of their Jacobians as unrolled programs for one robot.

Both are time derivatives of the numbers that ``kinematics_programs`` gives, in the same axes about
the same points. Joints that mimic others add to their leader's columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from phistar.model.model import Model
from phistar.scalar.linear.vectors import Vector, cross, plus, scaled, times
from phistar.scalar.program import Unrolled
from phistar.scalar.trace.kinematics_programs import (
    PathStep,
    PathSteps,
    reference_points,
    rotations_to_reference,
    trace_cheapest,
)


def frame_acceleration(model: Model, frame: str, reference: str) -> Unrolled:
    """The rate of a frame's velocity: q, v, vdot -> 6 numbers, one walk out and, for world axes,
    one back."""
    return _acceleration(model, frame, reference, ("q", "v", "vdot"))


def frame_bias_acceleration(model: Model, frame: str, reference: str) -> Unrolled:
    """The same without joint accelerations: q, v -> 6 numbers."""
    return _acceleration(model, frame, reference, ("q", "v"))


def _acceleration(model: Model, frame: str, reference: str, inputs: tuple[str, ...]) -> Unrolled:
    """The walk, with or without ``vdot`` among its inputs."""
    accelerates = "vdot" in inputs

    def trace(steps: PathSteps) -> Vector:
        path = steps.path(frame)
        nothing: Vector = [0.0] * 6
        velocity, acceleration = nothing, nothing
        for step in path:
            velocity, acceleration = outer_acceleration(
                steps, step, velocity, acceleration, accelerates
            )
        angular, linear = acceleration[:3], acceleration[3:]
        if reference == "local":
            return acceleration
        if reference == "world_aligned":
            linear = plus(linear, cross(velocity[:3], velocity[3:]))
        for step in reversed(path):
            angular, linear = step.rotation.rotate(angular), step.rotation.rotate(linear)
            if reference == "world":
                linear = plus(linear, cross(step.offset, angular))
        return [*angular, *linear]

    return trace_cheapest(model, inputs, trace)


def outer_acceleration(
    steps: PathSteps,
    step: PathStep,
    velocity: Vector,
    acceleration: Vector,
    accelerates: bool = True,
) -> tuple[Vector, Vector]:
    """Velocity and spatial acceleration of the outer frame of a step, from those of the inner one.

    The acceleration is the rate of the velocity's numbers in moving axes: of X V + u it is
    X A + u̇ + V' × u, where u is the joint's own motion and V' the outer velocity.
    """
    own = steps.joint_motion(step)
    ahead = steps.outer_velocity(step, velocity)
    carried = plus(acceleration[3:], cross(acceleration[:3], step.offset))
    rate = [*step.rotation.rotate_back(acceleration[:3]), *step.rotation.rotate_back(carried)]
    if accelerates:
        rate = plus(rate, steps.joint_motion(step, "vdot"))
    turn = cross(ahead[:3], own[:3])
    shift = plus(cross(ahead[:3], own[3:]), cross(ahead[3:], own[:3]))
    return ahead, plus(rate, [*turn, *shift])


def jacobian_rate(model: Model, frame: str, reference: str) -> Unrolled:
    """The rate of a frame's Jacobian: q, v -> 6 nv numbers, rows one after the other.

    A joint that moves its link by [a; b] moves the reference point, r in the link's axes, by
    [a; b + a × r]. The link's axes turn with Ω against those of the reference and the point moves
    with ṙ in them, so that column changes by [Ω × a; Ω × (b + a × r) + a × ṙ].
    """

    def trace(steps: PathSteps) -> Vector:
        path = steps.path(frame)
        rotations = rotations_to_reference(path, reference)
        points = reference_points(path, reference)
        turns, shifts = _relative_motions(steps, path, points, reference)
        result: Vector = [0.0] * (6 * model.nv)
        for step, R, r, turn, shift in zip(path, rotations, points, turns, shifts, strict=True):
            for entry, axis in step.axes:
                moved = plus(axis[3:], cross(axis[:3], r))
                angular = cross(turn, axis[:3])
                linear = plus(cross(turn, moved), cross(axis[:3], shift))
                for i, x in enumerate([*times(R, angular), *times(R, linear)]):
                    result[i * model.nv + entry] = result[i * model.nv + entry] + x
        return result

    return trace_cheapest(model, ("q", "v"), trace)


def _relative_motions(
    steps: PathSteps, path: Sequence[PathStep], points: Sequence[Vector], reference: str
) -> tuple[list[Vector], list[Vector]]:
    """Ω and ṙ at the outer frame of each step, in its axes."""
    if reference == "world":
        velocities = _outward_velocities(steps, path)
        turns = [velocity[:3] for velocity in velocities]
        shifts = [
            scaled(-1.0, plus(velocity[3:], cross(velocity[:3], r)))
            for velocity, r in zip(velocities, points, strict=True)
        ]
        return turns, shifts
    beyond = _motions_beyond(steps, path, points)
    shifts = [each[3:] for each in beyond]
    if reference == "local":
        return [scaled(-1.0, each[:3]) for each in beyond], shifts
    turn: Vector = [0.0] * 3
    turns = []
    for step in path:
        turn = plus(step.rotation.rotate_back(turn), steps.joint_motion(step)[:3])
        turns.append(turn)
    return turns, shifts


def _outward_velocities(steps: PathSteps, path: Sequence[PathStep]) -> list[Vector]:
    """Of the outer frames of all steps, each in its own axes at its origin."""
    velocity: Vector = [0.0] * 6
    found = []
    for step in path:
        velocity = steps.outer_velocity(step, velocity)
        found.append(velocity)
    return found


def _motions_beyond(
    steps: PathSteps, path: Sequence[PathStep], points: Sequence[Vector]
) -> list[Vector]:
    """Velocity of the last frame as the outer frame of each step sees it, at the last origin."""
    angular: Vector = [0.0] * 3
    linear: Vector = [0.0] * 3
    found: list[Vector] = []
    for step, r in reversed(list(zip(path, points, strict=True))):
        found.append([*angular, *linear])
        own = steps.joint_motion(step)
        moved = plus(own[3:], cross(own[:3], r))
        angular = step.rotation.rotate(plus(angular, own[:3]))
        linear = step.rotation.rotate(plus(linear, moved))
    return found[::-1]
