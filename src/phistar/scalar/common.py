# SPDX-License-Identifier: BSD-3-Clause
"""The links of a robot in common axes, those of the root that carries them.

Nothing has to be moved from link to link then: what turns instead are joint axes and inertias, once
for each link. That pays where many vectors go a long way, as in matrices over all joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from phistar.model.parts import GROUND
from phistar.scalar.emit import Place
from phistar.scalar.graph import Scalar
from phistar.scalar.links import Link
from phistar.scalar.numbers import Columns
from phistar.scalar.straight import Robot
from phistar.scalar.vectors import Dense, Matrix, Rotation, Vector, cross, plus, scaled, times

Axis = tuple[tuple[int, Scalar], ...]
_ONE: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


class CommonRobot(Robot):
    """The links of a robot in one graph, each in the axes of its root."""

    def __init__(self, links: Sequence[Link]) -> None:
        super().__init__(links)
        poses: list[tuple[Matrix, Vector]] = []
        for link, place in zip(links, self.places, strict=True):
            if link.parent == GROUND:
                poses.append((_ONE, [0.0, 0.0, 0.0]))
            else:
                R, p = poses[link.parent]
                turned = [place.rotation.turn_back(row) for row in R]
                poses.append((turned, plus(p, times(R, place.offset))))
                self.places[link.index] = _moved(place, *poses[-1])


def _moved(place: Place, R: Matrix, p: Vector) -> Place:
    """A link as its root sees it."""
    inertia = place.inertia.moved(Rotation((Dense(R),)), p)
    columns: Columns = tuple(_axis(column, R, p) for column in place.link.columns)
    own = replace(place.link, columns=columns, mass=inertia.mass, h=inertia.h, J=inertia.J)
    return Place(own, Rotation(), [0.0, 0.0, 0.0])


def _axis(column: Axis, R: Matrix, p: Vector) -> Axis:
    """A joint axis, as its root sees it."""
    angular: Vector = [0.0, 0.0, 0.0]
    linear: Vector = [0.0, 0.0, 0.0]
    for axis, factor in column:
        along = scaled(factor, [row[axis % 3] for row in R])
        if axis < 3:
            angular = plus(angular, along)
            linear = plus(linear, cross(p, along))
        else:
            linear = plus(linear, along)
    return tuple(enumerate([*angular, *linear]))
