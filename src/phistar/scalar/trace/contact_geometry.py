# SPDX-License-Identifier: BSD-3-Clause
"""Where points touch: gaps, and unit forces on links along normals and tangents, in scalars.

    ball, corner on a plane    the plane is taken out to the link that may touch it
    ball on a ball             on the line of their centres
    ball on a box, a can       at the nearest point of it; from inside by the nearest face
    corner, rim on a box       on the face of the box along which both are furthest apart
    rod on a ball, rod, ...    as balls at three points of its axis, see ``closest_points``
    edge of a box on another   where both cross, see ``box_pairs``

Corners are the four of the face that looks at the surface, chosen by selects: a box has four points
rather than eight. Two boxes touch by corners of each on faces of the other, or by what edges do
when they cross. A cylinder touches with the lowest points of its rims and four more of the lower
end, and boxes with its side.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.scalar.graph import Scalar, Value, select, sqrt
from phistar.scalar.linear.elementary import larger, smaller
from phistar.scalar.linear.vectors import (
    Matrix,
    Vector,
    cross,
    dot,
    minus,
    plus,
    scaled,
    times,
    transposed,
    zeros,
)
from phistar.scalar.robot.link_numbers import placement_in_link
from phistar.scalar.trace.box_pairs import BoxPair
from phistar.scalar.trace.closest_points import (
    Axis,
    axis_point,
    beside_box,
    beside_can,
    largest,
    nearest_on_axis,
    points_of_two,
)
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.scalar.trace.unilateral_rows import (
    Along,
    Ball,
    Can,
    ContactRow,
    Corner,
    Crossing,
    Cuboid,
    Feature,
    GivenPlane,
    HalfSpace,
    Rim,
    Rod,
    Triple,
)
from phistar.thresholds import POLICY

PLANES = "planes"
"""Input of planes: normals and offsets."""
_TINY = sys.float_info.min
_FIXED_NORMAL: Vector = [0.36, 0.48, 0.8]
_FIXED_TANGENT: Vector = [0.8, -0.6, 0.0]
"""Unit vectors across each other; the opposite of the first is a normal that nobody builds."""
_LEAST_ALIGNED = 1e-30
_END = 1e-9
"""Fraction of a cylinder at its ends at which rims touch rather than its side."""


@dataclass(frozen=True)
class TouchingPoint:
    """A pair that may touch.

    Attributes:
        gap: Distance, negative for a penetration.
        forces: Of each link that moves, unit forces [moment; force] along the normal, out of the
            surface for the feature's link, and along two tangents; in the link's axes.
        rates: Of the gap, and along the tangents.
        position: Where it touches, in the world.
        axes: Normal and tangents in the world.
    """

    gap: Scalar
    forces: Mapping[int, Matrix]
    rates: Vector
    position: Vector
    axes: Matrix


class ContactFrames:
    """Planes, places and velocities on the links of a robot.

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

    def world(self, k: int) -> tuple[Matrix, Vector]:
        """The world's axes, and a link's origin in the world, as seen from that link."""
        planes = [self.plane_on(k, [*row, 0.0]) for row in np.eye(3).tolist()]
        return [plane[:3] for plane in planes], [plane[3] for plane in planes]

    def touching(self, row: ContactRow) -> TouchingPoint:
        """A pair at the robot's configuration."""
        feature, surface = row.feature, row.surface
        if isinstance(surface, Corner):
            assert isinstance(feature, Cuboid)
            gap, point, inward = self._box_on_box(surface, feature)
            away = scaled(-1.0, inward)
            return self._between(feature.body, surface.body, gap, point, away, across(away))
        if isinstance(surface, Cuboid):
            return self._on_box(feature, surface)
        if isinstance(surface, (Rod, Ball)):
            return self._on_round(feature, surface)
        if isinstance(surface, Can):
            return self._on_can(feature, surface)
        if isinstance(surface, GivenPlane):
            loads = [self.robot.graph.load(PLANES, 4 * surface.number + i) for i in range(4)]
            normal: Vector = [*loads[:3]]
            return self._on_plane(feature, [*normal, -loads[3]], across(normal))
        n = np.array(surface.normal)
        tangent: Vector = [float(x) for x in across(n.tolist())]  # type: ignore[arg-type]
        return self._on_plane(feature, [*n.tolist(), -surface.offset], tangent)

    def _on_plane(self, feature: Feature, plane: Vector, tangent: Vector) -> TouchingPoint:
        """On a half space of the world."""
        k = feature.body
        *normal, offset = self.plane_on(k, plane)
        *along, _ = self.plane_on(k, [*tangent, 0.0])
        if isinstance(feature, Ball):
            center = self._point(k, feature.center)
            gap = dot(normal, center) + offset - feature.radius
            point = plus(center, scaled(-feature.radius, normal))
        else:
            assert isinstance(feature, (Corner, Rim))
            point = self._outermost(feature, normal)
            gap = dot(normal, point) + offset
        forces = _unit_forces(point, [normal, along, cross(normal, along)])
        rates = [dot(column, self.velocity(k)) for column in forces]
        rows, origin = self.world(k)
        axes = [plane[:3], tangent, cross(plane[:3], tangent)]
        return TouchingPoint(gap, {k: forces}, rates, plus(times(rows, point), origin), axes)

    def _on_round(self, feature: Feature, other: Rod | Ball) -> TouchingPoint:
        """On a ball or a rod: along the line to the nearest point of its axis."""
        if isinstance(feature, Along):
            assert isinstance(other, Rod)
            pair = self._axis(feature.rod), self._axis(other)
            center, middle = points_of_two(*pair, feature.number)
            return self._round_on_round(feature.rod, other, center, middle)
        assert isinstance(feature, Ball)
        center = self._center(feature)
        if isinstance(other, Ball):
            return self._round_on_round(feature, other, center, self._center(other))
        axis = self._axis(other)
        middle = axis_point(axis, nearest_on_axis(center, axis))
        return self._round_on_round(feature, other, center, middle)

    def _round_on_round(
        self, own: Ball | Rod, other: Ball | Rod, center: Vector, middle: Vector
    ) -> TouchingPoint:
        """Along the line of two centres; of one centre along the world's z."""
        away = minus(center, middle)
        square = dot(away, away)
        distance, least = sqrt(square + _TINY), POLICY.smallest_contact_distance**2
        up: Vector = [0.0, 0.0, 1.0]
        normal = [select(square, least, x / distance, z) for x, z in zip(away, up, strict=True)]
        gap = distance - own.radius - other.radius
        point = plus(center, scaled(-own.radius, normal))
        return self._between(own.body, other.body, gap, point, normal, across(normal))

    def _on_box(self, feature: Feature, box: Cuboid) -> TouchingPoint:
        if isinstance(feature, Ball):
            return self._round_on_box(feature, self._center(feature), box)
        if isinstance(feature, Along):
            axis = self._axis(feature.rod)
            middle, edges = self._box_in_world(box)
            seen = Axis(times(edges, minus(axis.middle, middle)), times(edges, axis.way), axis.half)
            place = beside_box(seen, box.half, feature.number, feature.rod.flat)
            found = self._round_on_box(feature.rod, axis_point(axis, place), box)
            if not feature.rod.flat:
                return found
            inner = axis.half * (1.0 - _END) - larger(place, -place)
            gap = select(inner, 0.0, found.gap, POLICY.contact_out_of_reach)
            return replace(found, gap=gap)
        if isinstance(feature, (Crossing, Corner)):
            gap, point, normal = self._box_on_box(feature, box)
            return self._between(feature.body, box.body, gap, point, normal, across(normal))
        assert isinstance(feature, Rim)
        return self._rim_on_box(feature, box)

    def _box_on_box(self, feature: Corner | Crossing, box: Cuboid) -> tuple[Scalar, Vector, Vector]:
        """Gap, point and normal in the world."""
        middle, edges = self._box_in_world(box)
        center, sides = self._box_in_world(feature.box)
        seen = times(edges, minus(center, middle))
        turned = [times(edges, side) for side in sides]
        pair = BoxPair(box.half, feature.box.half, seen, turned)
        found = pair.crossing() if isinstance(feature, Crossing) else pair.corner(feature.number)
        back = transposed(edges)
        return found.gap, plus(middle, times(back, found.point)), times(back, found.normal)

    def _round_on_box(self, own: Ball | Rod, center: Vector, box: Cuboid) -> TouchingPoint:
        middle, edges = self._box_in_world(box)
        seen = times(edges, minus(center, middle))
        inside = [smaller(larger(x, -h), h) for x, h in zip(seen, box.half, strict=True)]
        depth, marks = largest([larger(x, -x) - h for x, h in zip(seen, box.half, strict=True)])
        face = [m * select(x, 0.0, 1.0, -1.0) for m, x in zip(marks, seen, strict=True)]
        return self._round_on_solid(
            own, box.body, center, edges, (minus(seen, inside), depth, face)
        )

    def _on_can(self, feature: Feature, can: Can) -> TouchingPoint:
        """On a cylinder: its side, an end, or a rim."""
        middle, (axis, *sides) = self._box_in_world(can)
        if isinstance(feature, Along):
            own, rod = self._axis(feature.rod), Axis(middle, axis, can.half)
            place = beside_can(own, rod, can.radius, feature.number)
            center, round_part = axis_point(own, place), feature.rod
        else:
            assert isinstance(feature, Ball)
            return self._round_on_can(feature, self._center(feature), can, (middle, [axis, *sides]))
        return self._round_on_can(round_part, center, can, (middle, [axis, *sides]))

    def _round_on_can(
        self, own: Ball | Rod, center: Vector, can: Can, place: tuple[Vector, Matrix]
    ) -> TouchingPoint:
        middle, axes = place
        height, x, y = times(axes, minus(center, middle))
        square, least = x * x + y * y, POLICY.smallest_contact_distance**2
        distance = sqrt(square + _TINY)
        way = [select(square, least, x / distance, 1.0), select(square, least, y / distance, 0.0)]
        beside, above = distance - can.radius, larger(height, -height) - can.half
        end = select(height, 0.0, 1.0, -1.0)
        aside = larger(beside, 0.0)
        out = [end * larger(above, 0.0), aside * way[0], aside * way[1]]
        depth = larger(beside, above)
        face = [
            select(above, beside, end, 0.0),
            *(select(above, beside, 0.0, each) for each in way),
        ]
        return self._round_on_solid(own, can.body, center, axes, (out, depth, face))

    def _round_on_solid(
        self,
        own: Ball | Rod,
        other: int,
        center: Vector,
        axes: Matrix,
        seen: tuple[Vector, Scalar, Vector],
    ) -> TouchingPoint:
        """A ball on a solid: from outside along the way out of it, from inside by a face.

        Args:
            own: Its radius and body; the side of a cylinder touches only across its axis.
            other: The body of the solid.
            center: Of the ball.
            axes: Of the solid.
            seen: In these axes: the way from the nearest point of the solid to the centre, how far
                the centre is from the nearest face (negative inside), and the normal of that.
        """
        out, depth, face = seen
        square, least = dot(out, out), POLICY.smallest_contact_distance**2
        distance = sqrt(square + _TINY)
        local = [select(square, least, x / distance, f) for x, f in zip(out, face, strict=True)]
        gap = select(square, least, distance, depth)
        normal = times(transposed(axes), local)
        radius: Scalar = own.radius
        if isinstance(own, Rod) and own.flat:
            along = dot(self._axis(own).way, normal)
            radius = own.radius * sqrt(larger(1.0 - along * along, 0.0) + _TINY)
            slant = larger(along, -along) - POLICY.contact_side_slant
            down = minus(normal, scaled(along, self._axis(own).way))
            point = minus(
                center, scaled(own.radius * own.radius / larger(radius, 0.5 * own.radius), down)
            )
            gap = select(slant, 0.0, POLICY.contact_out_of_reach, gap - radius)
        else:
            gap, point = gap - radius, plus(center, scaled(-own.radius, normal))
        return self._between(own.body, other, gap, point, normal, across(normal))

    def _center(self, ball: Ball) -> Vector:
        return self._to_world(ball.body, self._point(ball.body, ball.center))

    def _axis(self, rod: Rod) -> Axis:
        """The axis of a rod in the world."""
        middle = self._to_world(rod.body, self._point(rod.body, rod.center))
        rows, _ = self.world(rod.body)
        return Axis(middle, times(rows, self._direction(rod.body, rod.axis)), rod.half)

    def _rim_on_box(self, feature: Rim, box: Cuboid) -> TouchingPoint:
        k, other = feature.body, feature.can
        middle, edges = self._box_in_world(box)
        center, sides = self._box_in_world(other)
        seen = times(edges, minus(center, middle))
        apart = [
            larger(x, -x) - half - _reach(other, [dot(edge, side) for side in sides])
            for x, half, edge in zip(seen, box.half, edges, strict=True)
        ]
        _, marks = largest(apart)
        signs = [m * select(x, 0.0, 1.0, -1.0) for m, x in zip(marks, seen, strict=True)]
        normal = times(transposed(edges), signs)
        tangent = [dot([marks[2], marks[0], marks[1]], column) for column in transposed(edges)]
        point = self._to_world(k, self._outermost(feature, self._to_link(k, normal)))
        place = times(edges, minus(point, middle))
        beyond: Scalar = -1.0
        for x, half, mark in zip(place, box.half, marks, strict=True):
            beyond = larger(beyond, larger(x, -x) - half - mark * POLICY.contact_out_of_reach)
        gap = dot(signs, place) - dot(marks, list(box.half))
        margin = POLICY.contact_edge_margin * min(box.half)
        gap = select(beyond, margin, POLICY.contact_out_of_reach, gap)
        return self._between(k, box.body, gap, point, normal, tangent)

    def _between(
        self,
        k: int,
        other: int,
        gap: Scalar,
        point: Vector,
        normal: Vector,
        tangent: Vector,
    ) -> TouchingPoint:
        """A link that touches another, or the ground, at a point of the world."""
        axes = [normal, tangent, cross(normal, tangent)]
        forces: dict[int, Matrix] = {}
        rates: Vector = zeros(3)
        for body, sign in ((k, 1.0), (other, -1.0)):
            if body == GROUND:
                continue
            rows, origin = self.world(body)
            back = transposed(rows)
            here = times(back, minus(point, origin))
            columns = _unit_forces(here, [scaled(sign, times(back, axis)) for axis in axes])
            forces[body] = columns
            rates = plus(rates, [dot(column, self.velocity(body)) for column in columns])
        return TouchingPoint(gap, forces, rates, point, axes)

    def _point(self, body: int, point: Sequence[float]) -> Vector:
        """A point of a model's body in our link's axes."""
        pose = np.eye(4)
        pose[:3, 3] = point
        found: Vector = placement_in_link(self.robot.links, body, pose).p.tolist()
        return found

    def _direction(self, body: int, direction: Triple) -> Vector:
        """A direction of a model's body in our link's axes."""
        return minus(self._point(body, direction), self._point(body, (0.0, 0.0, 0.0)))

    def _outermost(self, feature: Corner | Rim, normal: Vector) -> Vector:
        """A corner or a point of a rim that looks against a normal; in the axes of its link."""
        if isinstance(feature, Corner):
            return self._corner(feature, normal)
        return self._rim(feature, normal)

    def _rim(self, rim: Rim, normal: Vector) -> Vector:
        can = rim.can
        axis, *sides = (self._direction(can.body, x) for x in can.axes)
        along = dot(axis, normal)
        lower = select(along, 0.0, -1.0, 1.0)
        end = -lower if rim.number == 1 else lower
        if rim.number < 2:
            down = minus(scaled(along, axis), normal)
            square, least = dot(down, down), POLICY.smallest_contact_distance**2
            length = sqrt(square + _TINY)
            pairs = zip(down, sides[0], strict=True)
            way = [select(square, least, x / length, y) for x, y in pairs]
        else:
            way = scaled(1.0 if rim.number < 4 else -1.0, sides[rim.number % 2])
        point = plus(self._point(can.body, can.center), scaled(end * can.half, axis))
        return plus(point, scaled(can.radius, way))

    def _corner(self, corner: Corner, normal: Vector) -> Vector:
        """A corner of the face that looks against a normal; both in the axes of its link."""
        box = corner.box
        edges = [self._direction(box.body, axis) for axis in box.axes]
        facing = [dot(edge, normal) for edge in edges]
        _, marks = largest([larger(x, -x) for x in facing])
        first, second = (1.0 if corner.number & bit else -1.0 for bit in (1, 2))
        point = self._point(box.body, box.center)
        for i in range(3):
            a, b = (i + 1) % 3, (i + 2) % 3
            sign = marks[i] * select(facing[i], 0.0, -1.0, 1.0) + marks[b] * first
            point = plus(point, scaled((sign + marks[a] * second) * box.half[i], edges[i]))
        return point

    def _to_world(self, k: int, point: Vector) -> Vector:
        if k == GROUND:
            return point
        rows, origin = self.world(k)
        return plus(times(rows, point), origin)

    def _to_link(self, k: int, direction: Vector) -> Vector:
        return times(transposed(self.world(k)[0]), direction)

    def _box_in_world(self, box: Cuboid | Can) -> tuple[Vector, Matrix]:
        """Middle and edges, of a cylinder its axes."""
        if box.body == GROUND:
            return list(box.center), [list(axis) for axis in box.axes]
        rows, origin = self.world(box.body)
        middle = plus(times(rows, self._point(box.body, box.center)), origin)
        return middle, [times(rows, self._direction(box.body, axis)) for axis in box.axes]


def _reach(shape: Cuboid | Can, parts: Vector) -> Scalar:
    """How far a shape reaches from its middle along a direction.

    Args:
        shape: The shape.
        parts: Of a unit vector along the shape's axes.
    """
    sizes = [larger(x, -x) for x in parts]
    if isinstance(shape, Cuboid):
        return dot(list(shape.half), sizes)
    across_axis = sqrt(larger(1.0 - parts[0] * parts[0], 0.0) + _TINY)
    return shape.half * sizes[0] + shape.radius * across_axis


def across(normal: Vector) -> Vector:
    """A unit vector across a unit normal.

    Of a normal that is known the cross product with the axis that is furthest from it. Of one that
    is not, that axis would be chosen by rounding wherever two are equally far, as on most floors
    and walls, and differ between programs. There a fixed vector is taken along by the shortest
    rotation from its own normal: it changes steadily with all normals but one.
    """
    if not any(isinstance(x, Value) for x in normal):
        _, marks = largest([-larger(x, -x) for x in normal])
        along = cross(marks, normal)
        return scaled(1.0 / sqrt(dot(along, along)), along)
    aligned = 1.0 + dot(_FIXED_NORMAL, normal)
    share = dot(_FIXED_TANGENT, normal) / larger(aligned, _LEAST_ALIGNED)
    return minus(_FIXED_TANGENT, scaled(share, plus(_FIXED_NORMAL, normal)))


def _unit_forces(point: Vector, axes: Matrix) -> Matrix:
    """Unit forces [moment; force] at a point."""
    return [[*cross(point, axis), *axis] for axis in axes]


__all__ = ["PLANES", "ContactFrames", "HalfSpace", "TouchingPoint", "across"]
