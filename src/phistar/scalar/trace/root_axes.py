# SPDX-License-Identifier: BSD-3-Clause
"""The links of a robot in common axes, those of the root that carries them.

Nothing has to be moved from link to link then: what turns instead are joint axes and inertias, once
for each link. That pays where many vectors go a long way, as in matrices over all joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from phistar.model.components import GROUND
from phistar.model.joints.kind import Columns
from phistar.scalar.graph import Scalar
from phistar.scalar.linear.vectors import (
    DenseRotation,
    Matrix,
    Rotation,
    Vector,
    cross,
    plus,
    scaled,
    times,
)
from phistar.scalar.robot.link_numbers import LinkNumbers, Placement
from phistar.scalar.trace.link_operations import PlacedLink
from phistar.scalar.trace.traced_links import TracedLinks

AxisColumn = tuple[tuple[int, Scalar], ...]
_IDENTITY: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


class RootAxesLinks(TracedLinks):
    """The links of a robot in one graph, each in the axes of its root."""

    def __init__(self, links: Sequence[LinkNumbers]) -> None:
        super().__init__(links)
        self._poses: list[tuple[Matrix, Vector]] = []
        poses = self._poses
        for link, place in zip(links, self.placed_links, strict=True):
            if link.parent == GROUND:
                poses.append((_IDENTITY, [0.0, 0.0, 0.0]))
            else:
                R, p = poses[link.parent]
                turned = [place.rotation.rotate_back(row) for row in R]
                poses.append((turned, plus(p, times(R, place.offset))))
                self.placed_links[link.index] = _in_root_axes(place, *poses[-1])

    def frame_place(self, k: int, place: Placement) -> tuple[Rotation, Vector]:
        """See ``TracedLinks``."""
        rotation, offset = super().frame_place(k, place)
        R, p = self._poses[k]
        return Rotation((DenseRotation(R), *rotation.factors)), plus(p, times(R, offset))


def _in_root_axes(place: PlacedLink, R: Matrix, p: Vector) -> PlacedLink:
    """A link as its root sees it."""
    inertia = place.inertia.in_parent(Rotation((DenseRotation(R),)), p)
    columns: Columns = tuple(_axis_in_root(column, R, p) for column in place.link.columns)
    own = replace(place.link, columns=columns, mass=inertia.mass, h=inertia.h, J=inertia.J)
    return PlacedLink(own, Rotation(), [0.0, 0.0, 0.0])


def _axis_in_root(column: AxisColumn, R: Matrix, p: Vector) -> AxisColumn:
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
