# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of a link as scalars: its own, or those of all links of a class at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.model.joints.kind import Columns, JointKind
from phistar.scalar.graph import CancellingFloat, Scalar
from phistar.scalar.linear.vectors import Matrix, Vector
from phistar.scalar.robot.link_numbers import FlatLayout, LinkNumbers


@dataclass(frozen=True)
class LinkScalars:
    """What the formulas need to know about a link; see ``LinkNumbers``."""

    joint_kind: JointKind
    columns: Columns
    R: Matrix
    p: Vector
    mass: Scalar
    h: Vector
    J: Vector
    E: Vector
    armature: Vector
    min_pivots: Vector
    scale: Scalar
    offset: Scalar
    angle_offset: Scalar
    body_rotation: Matrix
    body_offset: Vector


def link_scalars(link: LinkNumbers, scalars: Sequence[Scalar] | None = None) -> LinkScalars:
    """The numbers of a link, or others in their place, see ``FlatLayout``."""
    x: list[Scalar] = (
        [CancellingFloat(y) for y in link.flat_numbers] if scalars is None else list(scalars)
    )
    at, names = FlatLayout, link.joint_kind.parameters
    end = at.parameters + len(names)
    kind = link.joint_kind.replaced(dict(zip(names, x[at.parameters : end], strict=True)))
    body_rotation, body_offset, rotors = x[end : end + 9], x[end + 9 : end + 12], x[end + 12 :]
    return LinkScalars(
        joint_kind=kind,
        columns=kind.columns() if link.columns else (),
        R=_matrix(x[at.R]),
        p=x[at.p],
        mass=x[at.mass],
        h=x[at.h],
        J=x[at.J],
        E=x[at.E],
        armature=rotors[: len(rotors) // 2],
        min_pivots=rotors[len(rotors) // 2 :],
        scale=x[at.scale],
        offset=x[at.offset],
        angle_offset=x[at.angle_offset],
        body_rotation=_matrix(body_rotation),
        body_offset=body_offset,
    )


def _matrix(x: Vector) -> Matrix:
    """Nine numbers as a matrix."""
    return [x[0:3], x[3:6], x[6:9]]


class FamilyConstants:
    """The numbers of a family of links: constants where all agree, a table where they differ."""

    def __init__(self, links: Sequence[LinkNumbers], rows: Array, angles_apart: bool) -> None:
        """Args:
        links: The members.
        rows: ``LinkNumbers.flat_numbers`` of each.
        angles_apart: Whether the offsets of angles are in the first column in any case, so that
            the sines of all families are made by the same instructions.
        """
        self._link = links[0]
        self._first = links[0].flat_numbers
        first = [FlatLayout.angle_offset] if angles_apart else []
        differ = np.flatnonzero((rows != rows[0]).any(axis=0)).tolist()
        self._differ = first + [i for i in differ if i not in first]
        listed: list[list[float]] = rows[:, self._differ].tolist()
        self._rows = {link.index: row for link, row in zip(links, listed, strict=True)}

    def scalars(self, load: Callable[[int], Scalar]) -> LinkScalars:
        """The numbers; ``load`` gives the run-time value of a column of the table."""
        scalars: list[Scalar] = [CancellingFloat(x) for x in self._first]
        for column, i in enumerate(self._differ):
            scalars[i] = load(column)
        return link_scalars(self._link, scalars)

    def table_row(self, link: LinkNumbers) -> list[float]:
        """The row of a member in the table."""
        return self._rows[link.index]
