# SPDX-License-Identifier: BSD-3-Clause
"""Points of a line segment that are near other shapes, in scalars: where rods touch.

Each point of a rod's axis with the rod's radius about it is a ball that may not enter what it
touches, so that every choice is lawful; these are those that matter:

    0       the nearest point
    1, 2    the ends of the stretch that is beside the other shape, as rods lie on boxes and rods
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phistar.scalar.graph import Scalar, select, sqrt
from phistar.scalar.linear.elementary import larger, smaller
from phistar.scalar.linear.vectors import Vector, dot, minus, plus, scaled
from phistar.thresholds import POLICY

_FAR = 1e12


@dataclass(frozen=True)
class Axis:
    """A segment: its middle, its direction (a unit vector) and half its length."""

    middle: Vector
    way: Vector
    half: float


def axis_point(axis: Axis, place: Scalar) -> Vector:
    """The point at a distance from the middle."""
    return plus(axis.middle, scaled(place, axis.way))


def nearest_on_axis(point: Vector, axis: Axis) -> Scalar:
    """The place that is nearest to a point."""
    return _within(dot(axis.way, minus(point, axis.middle)), axis.half)


def points_of_two(own: Axis, other: Axis, number: int) -> tuple[Vector, Vector]:
    """A point of a segment, and the nearest one of another."""
    away = minus(own.middle, other.middle)
    slant, first, second = dot(own.way, other.way), dot(own.way, away), dot(other.way, away)
    if number:
        reach = other.half * larger(slant, -slant)
        place = _within(-first + (reach if number == 2 else -reach), own.half)
        there = _within(second + place * slant, other.half)
        return axis_point(own, place), axis_point(other, there)
    square, least = 1.0 - slant * slant, POLICY.smallest_crossing_sine**2
    crossed = (slant * second - first) / larger(square, least)
    begun = _within(select(square, least, crossed, 0.0), own.half)
    there = _within(second + begun * slant, other.half)
    place = _within(there * slant - first, own.half)
    return axis_point(own, place), axis_point(other, there)


def beside_box(axis: Axis, half: Sequence[float], number: int, flat: bool) -> Scalar:
    """A place on a segment that is seen from a box with its middle at the origin.

    Args:
        axis: The segment in the axes of the box.
        half: Half the lengths of the box.
        number: Of the point.
        flat: Whether it is that of a cylinder's side.
    """
    sides = list(zip(axis.middle, axis.way, half, strict=True))
    if number:
        apart = [larger(x, -x) - h - axis.half * larger(d, -d) for x, d, h in sides]
        _, marks = largest(apart)
        ends = [
            _stretch(x, d, h + _FAR * mark) for (x, d, h), mark in zip(sides, marks, strict=True)
        ]
        return _end_of_stretch(ends, axis.half, number)

    def slope(place: Scalar) -> Scalar:
        """Half the derivative of the squared distance: it never falls."""
        total: Scalar = 0.0
        for x, d, h in sides:
            there = x + place * d
            total = total + d * (there - _within(there, h))
        return total

    low, high = -axis.half, axis.half
    left: tuple[Scalar, ...] = (low, slope(low))
    right: tuple[Scalar, ...] = (high, slope(high))
    places: Vector = [low, high]
    for x, d, h in sides:
        places += [_within(end, axis.half) for end in _stretch(x, d, h)]
    for place in places:
        value = slope(place)
        further, nearer = (
            tuple(select(a, b, x, y) for x, y in zip((place, value), old, strict=True))
            for a, b, old in ((place, left[0], left), (right[0], place, right))
        )
        # The last place where the slope is not positive, the first where it is not negative.
        left = tuple(select(value, 0.0, x, y) for x, y in zip(left, further, strict=True))
        right = tuple(select(0.0, value, x, y) for x, y in zip(right, nearer, strict=True))
    width, rise = right[0] - left[0], right[1] - left[1]
    between = left[0] - left[1] * width / larger(rise, POLICY.smallest_contact_distance**2)
    # Anywhere along a face; sides of cylinders leave that to the other points and to their rims.
    middle = axis.half if flat else 0.5 * (left[0] + right[0])
    found = select(rise, POLICY.smallest_contact_distance**2, between, middle)
    return _within(found, axis.half)


def beside_can(axis: Axis, can: Axis, radius: float, number: int) -> Scalar:
    """A place on a segment that is near a cylinder; above a rim it is found by projections."""
    center, middle = points_of_two(axis, can, 0)
    if not number:
        place = dot(axis.way, minus(center, axis.middle))
        for _ in range(POLICY.rim_projections):
            near = _nearest_in_can(axis_point(axis, place), can, radius)
            place = nearest_on_axis(near, axis)
        return place
    apart = minus(center, middle)
    slant, away = dot(axis.way, can.way), minus(axis.middle, can.middle)
    height = dot(can.way, away)
    above = larger(height, -height) - can.half - axis.half * larger(slant, -slant)
    beside = sqrt(dot(apart, apart)) - radius
    slab = _end_of_stretch([_stretch(height, slant, can.half)], axis.half, number)
    across, start = (
        minus(axis.way, scaled(slant, can.way)),
        minus(away, scaled(height, can.way)),
    )
    square = larger(dot(across, across), POLICY.smallest_crossing_sine**2)
    turn = dot(across, start) / square
    width = turn * turn - (dot(start, start) - radius * radius) / square
    root = sqrt(larger(width, 0.0))
    disc = _within(-turn + (root if number == 2 else -root), axis.half)
    return select(above, beside, disc, slab)


def largest(values: Vector) -> tuple[Scalar, Vector]:
    """The largest of three values, and a vector with a one at its place; the last of equal ones."""
    best, marks = values[2], [0.0, 0.0, 1.0]
    found: Vector = list(marks)
    for i in (1, 0):
        old = best
        best = select(values[i], old, values[i], old)
        found = [select(values[i], old, float(j == i), found[j]) for j in range(3)]
    return best, found


def _nearest_in_can(point: Vector, can: Axis, radius: float) -> Vector:
    """The point of a solid cylinder that is nearest to one."""
    seen = minus(point, can.middle)
    height = dot(can.way, seen)
    out = minus(seen, scaled(height, can.way))
    square = larger(dot(out, out), radius * radius)
    inside = plus(scaled(_within(height, can.half), can.way), scaled(radius / sqrt(square), out))
    return plus(can.middle, inside)


def _within(x: Scalar, half: Scalar) -> Scalar:
    return smaller(larger(x, -half), half)


def _stretch(x: Scalar, d: Scalar, h: Scalar) -> tuple[Scalar, Scalar]:
    """Where x + t d enters and leaves [-h, h]; far away if it hardly moves."""
    size = larger(d, -d)
    step = select(size, 1.0 / _FAR, d, 1.0 / _FAR)
    one, two = (-h - x) / step, (h - x) / step
    return smaller(one, two), larger(one, two)


def _end_of_stretch(ends: Sequence[tuple[Scalar, Scalar]], half: float, number: int) -> Scalar:
    """Where all of several stretches begin (1) or end (2), on the segment."""
    place: Scalar = half if number == 2 else -half
    for low, high in ends:
        place = smaller(place, high) if number == 2 else larger(place, low)
    return _within(place, half)
