# SPDX-License-Identifier: BSD-3-Clause
"""Momentum, kinetic and potential energy as straight lines for one robot.

Momentum and kinetic energy cannot tell whether inertia that a joint does not feel is on its link or
on the parent: it moves with both alike, and what gets to the ground would be at rest. So links are
regrouped. Potential energy would miss what gets to the ground.
"""

from __future__ import annotations

from dataclasses import replace

from phistar.model.model import Model
from phistar.model.parts import GROUND
from phistar.scalar.graph import Scalar
from phistar.scalar.inertia import Rigid
from phistar.scalar.kinematics import Steps, cheapest, first_moment
from phistar.scalar.links import Link
from phistar.scalar.lower import DEFAULT
from phistar.scalar.numbers import numbers
from phistar.scalar.program import Straight
from phistar.scalar.vectors import Vector, cross, dot, plus

REGROUPED = replace(DEFAULT, regroup=True)


def momentum(model: Model) -> Straight:
    """Momentum of all links about the world's origin: q, v -> 6 numbers [angular; linear]."""

    def trace(steps: Steps) -> Vector:
        total: Vector = [0.0] * 6
        momenta = []
        for link, velocity in zip(steps.links, _velocities(steps), strict=True):
            own = numbers(link)
            momenta.append(Rigid(own.mass, own.h, own.J).times(velocity))
        for link in reversed(steps.links):
            step, here = steps.joint(link.index), momenta[link.index]
            linear = step.rotation.turn(here[3:])
            angular = plus(step.rotation.turn(here[:3]), cross(step.offset, linear))
            if link.parent == GROUND:
                total = plus(total, [*angular, *linear])
            else:
                momenta[link.parent] = plus(momenta[link.parent], [*angular, *linear])
        return total

    return cheapest(model, ("q", "v"), trace, REGROUPED)


def kinetic_energy(model: Model) -> Straight:
    """Kinetic energy of links and rotors: q, v -> a number."""

    def trace(steps: Steps) -> Vector:
        total: Scalar = 0.0
        for link, velocity in zip(steps.links, _velocities(steps), strict=True):
            total = total + _of_link(link, velocity) + _of_rotors(steps, link)
        return [total]

    return cheapest(model, ("q", "v"), trace, REGROUPED)


def potential_energy(model: Model) -> Straight:
    """Potential energy of the links that move, zero at the world's origin: q -> a number."""

    def trace(steps: Steps) -> Vector:
        _, moment = first_moment(steps)
        return [dot([-float(x) for x in model.gravity], moment)]

    return cheapest(model, ("q",), trace)


def _velocities(steps: Steps) -> list[Vector]:
    """Of all links, each in its own axes at its origin."""
    found: list[Vector] = []
    for link in steps.links:
        parent: Vector = [0.0] * 6 if link.parent == GROUND else found[link.parent]
        found.append(steps.onward(steps.joint(link.index), parent))
    return found


def _of_link(link: Link, velocity: Vector) -> Scalar:
    """ω · (½ Jω + h × v) + ½ m v·v, with J as a triangle: each product of two rates once."""
    own, w, v = numbers(link), velocity[:3], velocity[3:]
    xx, xy, xz, yy, yz, zz = own.J
    rows: list[Vector] = [[0.5 * xx, xy, xz], [0.0, 0.5 * yy, yz], [0.0, 0.0, 0.5 * zz]]
    turning = [dot(row, w) for row in rows]
    return dot(w, plus(turning, cross(own.h, v))) + dot(v, v) * (0.5 * own.mass)


def _of_rotors(steps: Steps, link: Link) -> Scalar:
    """Of the motors of a joint, which turn with its own velocity."""
    own = numbers(link)
    total: Scalar = 0.0
    for armature, (entry, _) in zip(own.armature, steps.joint(link.index).axes, strict=True):
        rate = own.scale * steps.graph.load("v", entry)
        total = total + rate * rate * (0.5 * armature)
    return total
