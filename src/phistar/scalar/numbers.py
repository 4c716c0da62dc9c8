# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of a link as scalars: its own, or those of all links of a class at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from phistar.scalar.graph import Scalar
from phistar.scalar.links import Link
from phistar.scalar.vectors import Matrix, Vector

Columns = tuple[tuple[tuple[int, Scalar], ...], ...]
"""A joint map: for each joint velocity the (axis, factor) pairs that it moves along."""


@dataclass(frozen=True)
class Numbers:
    """What the formulas need to know about a link; see ``Link``."""

    kind: str
    columns: Columns
    R: Matrix
    p: Vector
    mass: Scalar
    h: Vector
    J: Vector
    armature: Vector
    scale: Scalar
    offset: Scalar
    turn: Scalar
    pitch: Scalar
    seat_rotation: Matrix
    seat_offset: Vector


def flat(link: Link) -> list[float]:
    """All numbers of a link in a fixed order."""
    J = [link.J[i, j] for i in range(3) for j in range(i, 3)]
    rows = [
        *link.frame.R.ravel(), *link.frame.p, link.mass, *link.h, *J,
        link.scale, link.offset, link.turn, link.pitch,
        *link.seat.R.ravel(), *link.seat.p, *link.armature,
    ]  # fmt: skip
    return [float(x) for x in rows]


def numbers(link: Link, scalars: Sequence[Scalar] | None = None) -> Numbers:
    """The numbers of a link, or others in their place in the order of ``flat``."""
    x = list(flat(link) if scalars is None else scalars)

    def take(n: int) -> Vector:
        head = x[:n]
        del x[:n]
        return head

    def take_matrix() -> Matrix:
        return [take(3) for _ in range(3)]

    R, p = take_matrix(), take(3)
    (mass,), h, J = take(1), take(3), take(6)
    scale, offset, turn, pitch = take(4)
    seat_rotation, seat_offset = take_matrix(), take(3)
    columns: Columns = link.columns
    if link.kind == "helical" and columns:
        columns = (((2, 1.0), (5, pitch)),)
    return Numbers(
        link.kind,
        columns,
        R,
        p,
        mass,
        h,
        J,
        x,
        scale,
        offset,
        turn,
        pitch,
        seat_rotation,
        seat_offset,
    )


def shared(
    link: Link, rows: Sequence[Sequence[float]], load: Callable[[int], Scalar]
) -> tuple[Numbers, list[list[float]]]:
    """The numbers of a class of links: constants where all agree, loads where they differ.

    Args:
        link: One of them.
        rows: The numbers of all of them, in the order of ``flat``.
        load: The run-time value of a column of the table.

    Returns:
        The numbers and, for each member, its row of the table.
    """
    scalars: list[Scalar] = []
    columns: list[int] = []
    for i, column in enumerate(zip(*rows, strict=True)):
        if all(x == column[0] for x in column):
            scalars.append(column[0])
        else:
            scalars.append(load(len(columns)))
            columns.append(i)
    table = [[row[i] for i in columns] for row in rows]
    return numbers(link, scalars), table
