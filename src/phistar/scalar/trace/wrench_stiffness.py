# SPDX-License-Identifier: BSD-3-Clause
"""Wrenches on frames that are held in the world while the robot moves.

In the axes of its link such a wrench changes: δf = S J δq with J the Jacobian of the point at which
it acts, and Σ J*SJ δq is added to what it gives the joints. S is linear in f: -crf[·] f for
wrenches at the world's origin; for those that stay at their frame's origin the linear velocity does
not count.
"""

from __future__ import annotations

from collections.abc import Sequence

from phistar.scalar.graph import Scalar
from phistar.scalar.linear.vectors import Matrix, Vector, cross, dot, plus, scaled, times, zeros
from phistar.scalar.trace.frame_wrenches import LinkWrenches
from phistar.scalar.trace.traced_links import TracedLinks

MatrixEntries = dict[tuple[int, int], Scalar]

_IDENTITY: Matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def stiffness(wrenches: LinkWrenches) -> MatrixEntries:
    """Σ J*SJ over the joints in the order of bodies, by row and column; others are zero."""
    entries: MatrixEntries = {}
    for k in wrenches.on_link:
        for point, wrench in wrenches.parts(k) if wrenches.at.turn else ():
            columns = _columns(wrenches.robot, k, point)
            for j, moved in columns.items():
                change = _change(wrench, moved, wrenches.at.reference == "world")
                for i, axis in columns.items():
                    entries[i, j] = entries.get((i, j), 0.0) + dot(axis, change)
    return entries


def stiffness_times(wrenches: LinkWrenches, x: Sequence[Scalar], adjoint: bool = False) -> Vector:
    """Σ J*SJ x, or Σ J*S*J x, over the joints in the order of bodies, along the paths."""
    result = zeros(len(x))
    change = _adjoint_change if adjoint else _change
    for k in wrenches.on_link:
        for point, wrench in wrenches.parts(k) if wrenches.at.turn else ():
            columns = _columns(wrenches.robot, k, point)
            moved = zeros()
            for j, axis in columns.items():
                moved = plus(moved, scaled(x[j], axis))
            felt = change(wrench, moved, wrenches.at.reference == "world")
            for i, axis in columns.items():
                result[i] = result[i] + dot(axis, felt)
    return result


def _change(wrench: Vector, x: Vector, moves: bool) -> Vector:
    """S x: how a held wrench changes in axes that move by x."""
    moment, force, turning = wrench[:3], wrench[3:], x[:3]
    turned = cross(moment, turning)
    if moves:
        turned = plus(turned, cross(force, x[3:]))
    return [*turned, *cross(force, turning)]


def _adjoint_change(wrench: Vector, y: Vector, moves: bool) -> Vector:
    """S* y."""
    moment, force = wrench[:3], wrench[3:]
    turned = plus(cross(y[:3], moment), cross(y[3:], force))
    return [*turned, *(cross(y[:3], force) if moves else zeros(3))]


def _columns(robot: TracedLinks, k: int, point: Vector) -> dict[int, Vector]:
    """The Jacobian of a point of a link in the link's axes, by joint coordinate."""
    rows, r = _IDENTITY, point
    found: dict[int, Vector] = {}
    for j in reversed(robot.path(k)):
        place, link = robot.placed_links[j], robot.links[j]
        for e in range(link.size):
            axis = place.apply_H_adjoint([float(e == i) for i in range(link.size)])
            moved = plus(axis[3:], cross(axis[:3], r))
            found[link.v + e] = [*times(rows, axis[:3]), *times(rows, moved)]
        rows = [place.rotation.rotate(row) for row in rows]
        r = plus(place.rotation.rotate(r), place.offset)
    return found
