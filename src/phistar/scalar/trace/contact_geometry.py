# SPDX-License-Identifier: BSD-3-Clause
"""Where points touch: gaps, and unit forces on links along normals and tangents, in scalars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.scalar.graph import Scalar
from phistar.scalar.linear.vectors import Matrix, Vector, cross, dot, plus, scaled, zeros
from phistar.scalar.robot.link_numbers import placement_in_link
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.unilateral_rows import Ball, ContactRow, HalfSpace


@dataclass(frozen=True)
class TouchingPoint:
    """A pair that may touch.

    Attributes:
        gap: Distance, negative for a penetration.
        forces: Of each link that moves, unit forces [moment; force] along the normal, out of the
            surface for the feature's link, and along two tangents; in the link's axes.
        speed: Rate of the gap.
    """

    gap: Scalar
    forces: Mapping[int, Matrix]
    speed: Scalar


class ContactFrames:
    """Planes and velocities on the links of a robot.

    Args:
        model: The robot.
        robot: Its links.
        v: Joint velocities in body order.
    """

    def __init__(self, model: Model, robot: TracedLinks, v: Vector) -> None:
        self.model = model
        self.robot = robot
        self.v = v
        self._velocities: dict[int, Vector] = {GROUND: zeros()}

    def velocity(self, k: int) -> Vector:
        """A link's velocity [angular; linear] in its axes."""
        if k not in self._velocities:
            link, place = self.robot.links[k], self.robot.placed_links[k]
            own = self.v[link.v : link.v + len(place.link.columns)]
            inner = place.shift_out(self.velocity(link.parent))
            self._velocities[k] = plus(inner, place.apply_H_adjoint(own))
        return self._velocities[k]

    def plane_on(self, k: int, plane: Vector) -> Vector:
        """A function of place [n; d] in the world as one on a link."""
        for step in self.robot.path(k):
            plane = self.robot.placed_links[step].plane_out(plane)
        return plane

    def touching(self, row: ContactRow) -> TouchingPoint:
        """A pair at the robot's configuration."""
        return self._ball_on_plane(row.feature, row.surface)

    def _point(self, body: int, point: tuple[float, float, float]) -> Vector:
        """A point of a model's body in our link's axes."""
        pose = np.eye(4)
        pose[:3, 3] = point
        found: Vector = placement_in_link(self.robot.links, body, pose).p.tolist()
        return found

    def _ball_on_plane(self, ball: Ball, surface: HalfSpace) -> TouchingPoint:
        n, t = np.array(surface.normal), _tangent(np.array(surface.normal))
        *normal, offset = self.plane_on(ball.body, [*n.tolist(), -surface.offset])
        *tangent, _ = self.plane_on(ball.body, [*t.tolist(), 0.0])
        center = self._point(ball.body, ball.center)
        gap = dot(normal, center) + offset - ball.radius
        point = plus(center, scaled(-ball.radius, normal))
        forces = unit_forces(point, normal, tangent)
        return TouchingPoint(gap, {ball.body: forces}, dot(forces[0], self.velocity(ball.body)))


def unit_forces(point: Vector, normal: Vector, tangent: Vector) -> Matrix:
    """Unit forces at a point along a normal, a tangent, and across both."""
    axes = (normal, tangent, cross(normal, tangent))
    return [[*cross(point, axis), *axis] for axis in axes]


def _tangent(normal: np.ndarray) -> np.ndarray:
    """A unit vector across a normal."""
    other = np.eye(3)[int(np.argmin(np.abs(normal)))]
    across = np.cross(other, normal)
    return np.asarray(across / np.linalg.norm(across))
