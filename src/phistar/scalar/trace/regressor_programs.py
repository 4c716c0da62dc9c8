# SPDX-License-Identifier: BSD-3-Clause
"""The regressor of inverse dynamics, unrolled: joint forces per unit of each parameter.

A body has ten parameters, in the order of ``spatial.PARAMETER_NAMES``: mass, first moments h and
inertia J about the origin of its frame. With velocity [ω; v], acceleration [ω̇; a] (gravity taken
off) and c = a + ω × v, the force [moment; force] that moves it is

    mass    [0; c]
    h       [h × c; (ω̇~ + ω~ω~) h]
    J       [J ω̇ + ω × J ω; 0]

which is handed inward; each joint on the way takes what it feels.
"""

from __future__ import annotations

import numpy as np

from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.scalar.linear.vectors import Matrix, Vector, cross, dot, plus, times
from phistar.scalar.program import Unrolled
from phistar.scalar.trace.kinematics_programs import PathSteps, trace_cheapest
from phistar.scalar.trace.link_operations import angular_acceleration_matrix
from phistar.scalar.trace.rate_programs import outer_acceleration
from phistar.spatial import PARAMETER_NAMES, inertia_matrix

PARAMETERS_PER_BODY = len(PARAMETER_NAMES)
_UNIT_INERTIAS: list[Matrix] = [
    [[float(x) for x in row] for row in unit[:3, :3]]
    for unit in inertia_matrix(np.eye(PARAMETERS_PER_BODY))[4:]
]
"""J of each of its six parameters alone."""


def regressor(model: Model) -> Unrolled:
    """Y of τ = Y π without rotors: q, v, vdot -> nv · 10 bodies numbers, rows one after another."""
    width = PARAMETERS_PER_BODY * len(model.bodies)

    def trace(steps: PathSteps) -> Vector:
        result: Vector = [0.0] * (model.nv * width)
        for link, (velocity, acceleration) in zip(steps.links, _motions(steps), strict=True):
            place = steps.placed_link(link.index)
            forces = _parameter_forces(
                place.motion_to_body_frame(velocity), place.motion_to_body_frame(acceleration)
            )
            columns = [place.force_to_link_frame(force) for force in forces]
            _hand_inward(steps, link.index, columns, result, width)
        return result

    return trace_cheapest(model, ("q", "v", "vdot"), trace)


def _motions(steps: PathSteps) -> list[tuple[Vector, Vector]]:
    """Velocity and acceleration of all links, as if the ground fell upward."""
    nothing: Vector = [0.0] * 6
    ground: Vector = [0.0, 0.0, 0.0, *(-float(g) for g in steps.model.gravity)]
    found: list[tuple[Vector, Vector]] = []
    for link in steps.links:
        inner = (nothing, ground) if link.parent == GROUND else found[link.parent]
        found.append(outer_acceleration(steps, steps.joint_step(link.index), *inner))
    return found


def _parameter_forces(velocity: Vector, acceleration: Vector) -> Matrix:
    """The force that a unit of each parameter takes, in the axes of the body's frame."""
    turn, angular = velocity[:3], acceleration[:3]
    c = plus(acceleration[3:], cross(turn, velocity[3:]))
    nothing: Vector = [0.0, 0.0, 0.0]
    found: Matrix = [[*nothing, *c]]
    u = angular_acceleration_matrix(velocity, acceleration)
    for i in range(3):
        h: Vector = [float(i == j) for j in range(3)]
        found.append([*cross(h, c), *(row[i] for row in u)])
    for unit in _UNIT_INERTIAS:
        moment = plus(times(unit, angular), cross(turn, times(unit, turn)))
        found.append([*moment, *nothing])
    return found


def _hand_inward(steps: PathSteps, body: int, columns: Matrix, result: Vector, width: int) -> None:
    """Forces on a link as what each joint on the way to the ground feels."""
    first, k = PARAMETERS_PER_BODY * body, body
    while k != GROUND:
        step, place = steps.joint_step(k), steps.placed_link(k)
        for entry, axis in step.axes:
            for i, force in enumerate(columns, entry * width + first):
                result[i] = result[i] + dot(axis, force)
        k = steps.links[k].parent
        if k != GROUND:
            columns = [place.shift_in(force) for force in columns]
