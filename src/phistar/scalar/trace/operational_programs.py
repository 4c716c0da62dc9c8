# SPDX-License-Identifier: BSD-3-Clause
"""Operational inertia of frames as an unrolled program: the inverse of their compliance."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from phistar.model.model import Model
from phistar.scalar.graph import Graph, Scalar, guard
from phistar.scalar.linear.vectors import Matrix, Vector, cross, dot, times, transposed
from phistar.scalar.lower import quaternion_entries
from phistar.scalar.lower_frames import frame_poses
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.trace.inline import inline
from phistar.scalar.trace.kinematics_programs import RESULT_OUTPUT


def operational_inertia(
    model: Model,
    frames: Sequence[str],
    reference: str,
    compliance: Unrolled,
    singular_roundings: float,
    damped: bool = False,
) -> Unrolled:
    """(J𝓜⁻¹J*)⁻¹: q -> (6m)² numbers, rows one after the other; or q, damping -> the same.

    Where the smallest eigenvalue of the compliance, scaled to ones on its diagonal, may be within
    rounding of zero, the result is not a number: 1 / tr(scaled inverse) is below that eigenvalue.

    Args:
        model: The robot.
        frames: Names of m frames.
        reference: Axes and point of each, as in ``jacobian``.
        compliance: Gives J𝓜⁻¹J* in each frame's own axes: q -> (6m)² numbers.
        singular_roundings: Of double precision, what the smallest eigenvalue must exceed.
        damped: Whether the input ``damping``, a number, is added to the diagonal.
    """
    size = 6 * len(frames)
    body = BasicBlock(Graph())
    g = body.graph
    q: Vector = [g.load("q", i) for i in range(model.nq)]
    (flat,) = inline(compliance, {"q": q}).values()
    rows = [flat[i * size : (i + 1) * size] for i in range(size)]
    if reference != "local":
        rows = _in_reference(rows, _transforms(model, frames, reference, q))
    if damped:
        rows = [
            [x + (g.load("damping", 0) if i == j else 0.0) for j, x in enumerate(row)]
            for i, row in enumerate(rows)
        ]
    inverse = symmetric_inverse(rows)
    if not damped:
        _spoil_singular(rows, inverse, singular_roundings * sys.float_info.epsilon)
    numbers = [x for row in inverse for x in row]
    body.stores = [Store(RESULT_OUTPUT, i, "", x) for i, x in enumerate(numbers)]
    inputs = {"q": model.nq, **({"damping": 1} if damped else {})}
    return Unrolled(
        Signature(inputs, {RESULT_OUTPUT: size * size}, quaternion_entries(model)), body
    )


def _spoil_singular(rows: Matrix, inverse: Matrix, least_eigenvalue: float) -> None:
    """Make the diagonal of the inverse NaN where a bound of the eigenvalues is too small."""
    size = len(rows)
    trace = dot([rows[i][i] for i in range(size)], [inverse[i][i] for i in range(size)])
    least = 1.0 / trace
    nothing = guard(least, least_eigenvalue) - least
    for i in range(size):
        inverse[i][i] = inverse[i][i] + nothing


def symmetric_inverse(rows: Matrix) -> Matrix:
    """The inverse of a symmetric matrix, of which the lower half is read, by L D L*."""
    size = len(rows)
    work = [list(row) for row in rows]
    lower: Matrix = [[float(i == j) for j in range(size)] for i in range(size)]
    pivots: Vector = []
    for j in range(size):
        pivots.append(1.0 / work[j][j])
        for i in range(j + 1, size):
            lower[i][j] = work[i][j] * pivots[j]
            for k in range(j + 1, i + 1):
                work[i][k] = work[i][k] - lower[i][j] * work[k][j]
    columns = [_solve_lower(lower, j) for j in range(size)]
    scaled = [[x * p for x, p in zip(column, pivots, strict=True)] for column in columns]
    inverse: Matrix = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            inverse[i][j] = inverse[j][i] = dot(columns[i][i:], scaled[j][i:])
    return inverse


def _solve_lower(lower: Matrix, j: int) -> Vector:
    """Column j of L⁻¹."""
    column: Vector = []
    for i in range(len(lower)):
        value: Scalar = float(i == j)
        for k in range(j, i):
            value = value - lower[i][k] * column[k]
        column.append(value)
    return column


def _transforms(
    model: Model, frames: Sequence[str], reference: str, q: Vector
) -> list[tuple[Matrix, Vector]]:
    """Rotation and offset from each frame's own axes to those of the reference."""
    (flat,) = inline(frame_poses(model, frames), {"q": q}).values()
    found = []
    for first in range(0, len(flat), 16):
        rows = [flat[first + 4 * i : first + 4 * i + 4] for i in range(3)]
        offset = [row[3] if reference == "world" else 0.0 for row in rows]
        found.append(([row[:3] for row in rows], offset))
    return found


def _in_reference(rows: Matrix, places: Sequence[tuple[Matrix, Vector]]) -> Matrix:
    """X C X* with a block X = [[R, 0], [p̃R, R]] per frame."""

    def moved(columns: Matrix) -> Matrix:
        return [
            [x for i, place in enumerate(places) for x in _motion(place, column[6 * i : 6 * i + 6])]
            for column in columns
        ]

    return moved(transposed(moved(rows)))


def _motion(place: tuple[Matrix, Vector], x: Vector) -> Vector:
    R, p = place
    angular = times(R, x[:3])
    return [*angular, *(a + b for a, b in zip(times(R, x[3:]), cross(p, angular), strict=True))]
