# SPDX-License-Identifier: BSD-3-Clause
"""Momentum, kinetic and potential energy as straight lines for one robot.

Momentum and kinetic energy cannot tell whether inertia that a joint does not feel is on its link or
on the parent: it moves with both alike, and what gets to the ground would be at rest. So links are
regrouped. Potential energy would miss what gets to the ground.
"""

from __future__ import annotations

from dataclasses import replace

from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.scalar.graph import Scalar
from phistar.scalar.linear.inertias import RigidInertia
from phistar.scalar.linear.vectors import Vector, cross, dot, plus
from phistar.scalar.lower import DEFAULT_OPTIONS
from phistar.scalar.program import Unrolled
from phistar.scalar.robot.link_numbers import LinkNumbers
from phistar.scalar.robot.link_scalars import link_scalars
from phistar.scalar.trace.kinematics_programs import PathSteps, first_moment, trace_cheapest

REGROUPED_OPTIONS = replace(DEFAULT_OPTIONS, regroup=True)


def momentum(model: Model) -> Unrolled:
    """Momentum of all links about the world's origin: q, v -> 6 numbers [angular; linear]."""

    def trace(steps: PathSteps) -> Vector:
        total: Vector = [0.0] * 6
        momenta = []
        for link, velocity in zip(steps.links, _link_velocities(steps), strict=True):
            own = link_scalars(link)
            momenta.append(RigidInertia(own.mass, own.h, own.J).times(velocity))
        for link in reversed(steps.links):
            step, here = steps.joint_step(link.index), momenta[link.index]
            linear = step.rotation.rotate(here[3:])
            angular = plus(step.rotation.rotate(here[:3]), cross(step.offset, linear))
            if link.parent == GROUND:
                total = plus(total, [*angular, *linear])
            else:
                momenta[link.parent] = plus(momenta[link.parent], [*angular, *linear])
        return total

    return trace_cheapest(model, ("q", "v"), trace, REGROUPED_OPTIONS)


def kinetic_energy(model: Model) -> Unrolled:
    """Kinetic energy of links and rotors: q, v -> a number."""

    def trace(steps: PathSteps) -> Vector:
        total: Scalar = 0.0
        for link, velocity in zip(steps.links, _link_velocities(steps), strict=True):
            total = total + _link_energy(link, velocity) + _rotor_energy(steps, link)
        return [total]

    return trace_cheapest(model, ("q", "v"), trace, REGROUPED_OPTIONS)


def potential_energy(model: Model) -> Unrolled:
    """Potential energy of the links that move, zero at the world's origin: q -> a number."""

    def trace(steps: PathSteps) -> Vector:
        _, moment = first_moment(steps)
        return [dot([-float(x) for x in model.gravity], moment)]

    return trace_cheapest(model, ("q",), trace)


def _link_velocities(steps: PathSteps) -> list[Vector]:
    """Of all links, each in its own axes at its origin."""
    found: list[Vector] = []
    for link in steps.links:
        parent: Vector = [0.0] * 6 if link.parent == GROUND else found[link.parent]
        found.append(steps.outer_velocity(steps.joint_step(link.index), parent))
    return found


def _link_energy(link: LinkNumbers, velocity: Vector) -> Scalar:
    """ω · (½ Jω + h × v) + ½ m v·v, with J as a triangle: each product of two rates once."""
    own, w, v = link_scalars(link), velocity[:3], velocity[3:]
    xx, xy, xz, yy, yz, zz = own.J
    rows: list[Vector] = [[0.5 * xx, xy, xz], [0.0, 0.5 * yy, yz], [0.0, 0.0, 0.5 * zz]]
    turning = [dot(row, w) for row in rows]
    return dot(w, plus(turning, cross(own.h, v))) + dot(v, v) * (0.5 * own.mass)


def _rotor_energy(steps: PathSteps, link: LinkNumbers) -> Scalar:
    """Of the motors of a joint, which turn with its own velocity."""
    own = link_scalars(link)
    total: Scalar = 0.0
    for armature, (entry, _) in zip(own.armature, steps.joint_step(link.index).axes, strict=True):
        rate = own.scale * steps.graph.load("v", entry)
        total = total + rate * rate * (0.5 * armature)
    return total
