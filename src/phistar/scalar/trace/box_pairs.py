# SPDX-License-Identifier: BSD-3-Clause
"""Two boxes near each other, in scalars: corners over faces, edges over faces, edges that cross.

All of it in the axes of the box that is touched, with its middle at the origin. Of fifteen axes
along which the boxes may be apart (three of each, nine across an edge of each) that along which
they are furthest apart decides: of a face, the edges of the other box's nearest face are cut to
what lies over it; across two edges, these touch where they cross.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from phistar.scalar.graph import Scalar, select, sqrt
from phistar.scalar.linear.elementary import larger, smaller
from phistar.scalar.linear.vectors import Matrix, Vector, dot, minus, plus, scaled, zeros
from phistar.scalar.trace.closest_points import largest
from phistar.thresholds import POLICY

_FAR = 1e12


@dataclass(frozen=True)
class BoxContact:
    """A gap, out of reach where nothing touches, a point and a unit normal."""

    gap: Scalar
    point: Vector
    normal: Vector


class BoxPair:
    """A box that touches another.

    Args:
        half: Half the lengths of the box that is touched.
        other: Of the one that touches.
        seen: The middle of the latter.
        sides: Its axes, unit vectors.
    """

    def __init__(
        self, half: Sequence[float], other: Sequence[float], seen: Vector, sides: Matrix
    ) -> None:
        self.half, self.other = list(half), list(other)
        self.seen, self.sides = seen, sides
        self.margin = POLICY.contact_edge_margin * min(*half, *other)
        self.sizes = [[larger(x, -x) for x in side] for side in sides]

    @cached_property
    def _faces(self) -> tuple[Scalar, Vector, Vector]:
        """How far the boxes are apart along the axes of the one touched; its face, the normal."""
        apart = [
            larger(x, -x) - half - dot(self.other, [size[i] for size in self.sizes])
            for i, (x, half) in enumerate(zip(self.seen, self.half, strict=True))
        ]
        best, marks = largest(apart)
        signs = [m * select(x, 0.0, 1.0, -1.0) for m, x in zip(marks, self.seen, strict=True)]
        return best, marks, signs

    @cached_property
    def _other_faces(self) -> Scalar:
        """How far they are apart along the axes of the other."""
        apart = []
        for side, size, half in zip(self.sides, self.sizes, self.other, strict=True):
            x = dot(side, self.seen)
            apart.append(larger(x, -x) - half - dot(self.half, size))
        return largest(apart)[0]

    @cached_property
    def _edges(self) -> tuple[Scalar, Vector, Vector, Vector]:
        """How far apart across two edges; the normal, and which edge of each."""
        best: Scalar = -POLICY.contact_out_of_reach
        found: Vector = [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
        least = POLICY.smallest_crossing_sine**2
        for i in range(3):
            a, b = (i + 1) % 3, (i + 2) % 3
            for j, (side, size) in enumerate(zip(self.sides, self.sizes, strict=True)):
                square = 1.0 - side[i] * side[i]
                length = sqrt(larger(square, least))
                way = self.seen[b] * side[a] - self.seen[a] * side[b]
                c, d = (j + 1) % 3, (j + 2) % 3
                reach = self.half[a] * size[b] + self.half[b] * size[a]
                reach = reach + self.other[c] * self.sizes[d][i] + self.other[d] * self.sizes[c][i]
                apart = (larger(way, -way) - reach) / length
                apart = select(square, least, apart, -POLICY.contact_out_of_reach)
                scale = select(way, 0.0, 1.0, -1.0) / length
                normal = zeros(3)
                normal[a], normal[b] = -side[b] * scale, side[a] * scale
                marks = [float(k == i) for k in range(3)] + [float(k == j) for k in range(3)]
                pairs = zip([*normal, *marks], found, strict=True)
                found = [select(apart, best, x, y) for x, y in pairs]
                best = larger(apart, best)
        return best, found[:3], found[3:6], found[6:]

    def crossing(self) -> BoxContact:
        """Where two edges cross, if the boxes are furthest apart there."""
        apart, normal, first, second = self._edges
        own: Vector = [
            (1.0 - mark) * half * select(x, 0.0, 1.0, -1.0)
            for mark, half, x in zip(first, self.half, normal, strict=True)
        ]
        begun = self.seen
        along = zeros(3)
        for mark, half, side in zip(second, self.other, self.sides, strict=True):
            facing = select(dot(side, normal), 0.0, 1.0, -1.0)
            begun = minus(begun, scaled((1.0 - mark) * half * facing, side))
            along = plus(along, scaled(mark, side))
        away, slant = minus(begun, own), dot(along, first)
        square = larger(1.0 - slant * slant, POLICY.smallest_crossing_sine**2)
        there, here = dot(first, away), dot(along, away)
        place = (slant * there - here) / square
        other = (there - slant * here) / square
        beyond = larger(
            larger(place, -place) - dot(second, self.other),
            larger(other, -other) - dot(first, self.half),
        )
        faces = larger(self._faces[0], self._other_faces)
        beyond = larger(beyond - self.margin, faces + self.margin - apart)
        gap = select(beyond, 0.0, POLICY.contact_out_of_reach, apart)
        return BoxContact(gap, plus(begun, scaled(place, along)), normal)

    def corner(self, number: int) -> BoxContact:
        """A corner over the face, or where the edge that begins there comes over it.

        The four edges of the face that looks at the box are gone round. Where one is not over the
        face at all, the end of the one before is taken, where that leaves the face.
        """
        best, marks, signs = self._faces
        facing = [dot(side, signs) for side in self.sides]
        _, chosen = largest([larger(x, -x) for x in facing])
        first, second = (1.0 if number & bit else -1.0 for bit in (1, 2))
        point, ways = self.seen, [zeros(3), zeros(3)]
        for i, (half, side) in enumerate(zip(self.other, self.sides, strict=True)):
            a, b = (i + 1) % 3, (i + 2) % 3
            sign = chosen[i] * select(facing[i], 0.0, -1.0, 1.0) + chosen[b] * first
            point = plus(point, scaled((sign + chosen[a] * second) * half, side))
            ways[0] = plus(ways[0], scaled(chosen[b] * (2.0 * half), side))
            ways[1] = plus(ways[1], scaled(chosen[a] * (2.0 * half), side))
        ahead, behind = scaled(-first, ways[0]), scaled(-second, ways[1])
        if number in (1, 2):
            ahead, behind = behind, ahead
        begins, ends = self._over(point, ahead, marks)
        before, after = self._over(point, behind, marks)
        # Where it does not touch the face as a corner, edges count if no other axis is better.
        rival = larger(self._other_faces, self._edges[0])
        allowed = best + self.margin - rival
        comes = smaller(ends - begins, select(begins, 0.0, allowed, 1.0))
        leaves = smaller(after - before, allowed)
        place: Vector = []
        for x, d, e in zip(point, ahead, behind, strict=True):
            edge = select(leaves, 0.0, x + before * e, x)
            place.append(select(comes, 0.0, x + begins * d, edge))
        reach = larger(comes, leaves)
        gap = dot(signs, place) - dot(marks, self.half)
        gap = select(reach, 0.0, gap, POLICY.contact_out_of_reach)
        return BoxContact(gap, place, signs)

    def _over(self, point: Vector, way: Vector, marks: Vector) -> tuple[Scalar, Scalar]:
        """Between which parts of a way from a point it is over the face."""
        low: Scalar = 0.0
        high: Scalar = 1.0
        for x, d, half, mark in zip(point, way, self.half, marks, strict=True):
            reach = half + self.margin + _FAR * mark
            size = larger(d, -d)
            step = select(size, 1.0 / _FAR, d, 1.0 / _FAR)
            one, two = (-reach - x) / step, (reach - x) / step
            low, high = larger(low, smaller(one, two)), smaller(high, larger(one, two))
        return low, high
