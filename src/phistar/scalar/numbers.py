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
    E: Vector
    armature: Vector
    scale: Scalar
    offset: Scalar
    turn: Scalar
    pitch: Scalar
    seat_rotation: Matrix
    seat_offset: Vector


_TURN = 27
"""Where the angle that is added to the joint's own stands in the order of ``flat``."""


def flat(link: Link) -> list[float]:
    """All numbers of a link in a fixed order."""
    J = [link.J[i, j] for i in range(3) for j in range(i, 3)]
    rows = [
        *link.frame.R.ravel(), *link.frame.p, link.mass, *link.h, *J, *link.E,
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
    (mass,), h, J, E = take(1), take(3), take(6), take(3)
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
        E,
        x,
        scale,
        offset,
        turn,
        pitch,
        seat_rotation,
        seat_offset,
    )


class Constants:
    """The numbers of a family of links: constants where all agree, a table where they differ."""

    def __init__(self, links: Sequence[Link], angles_apart: bool) -> None:
        """Args:
        links: The members.
        angles_apart: Whether the offsets of angles are in the first column in any case, so that
            the sines of all families are made by the same instructions.
        """
        self._link = links[0]
        self._rows = {link.index: flat(link) for link in links}
        self._first = self._rows[self._link.index]
        columns = zip(*self._rows.values(), strict=True)
        first = [_TURN] if angles_apart else []
        self._differ = first + [
            i for i, column in enumerate(columns) if len(set(column)) > 1 and i not in first
        ]

    def numbers(self, load: Callable[[int], Scalar]) -> Numbers:
        """The numbers; ``load`` gives the run-time value of a column of the table."""
        scalars: list[Scalar] = list(self._first)
        for column, i in enumerate(self._differ):
            scalars[i] = load(column)
        return numbers(self._link, scalars)

    def row(self, link: Link) -> list[float]:
        """The row of a member in the table."""
        own = self._rows[link.index]
        return [own[i] for i in self._differ]
