# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of loop joints: the directions in which each one pushes, and how far open it is.

A loop joint connects a predecessor frame F₁ and a successor frame F₂. V_r = V₂ - X₂₁V₁ is the
velocity of F₂ relative to F₁, [angular; linear] in the axes of F₂ at its origin. A kind has a
column of N per row: the wrench, in the same axes, that a unit multiplier puts on the successor. The
row is N*V_r = 0. Formulas are written over ``spatial.entries``, so that they run on arrays and
become scalar programs alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from phistar.arrays import Array, DType
from phistar.model.components import LoopJoint
from phistar.model.joints import Axis
from phistar.spatial import log_se3, pose, pose_inverse, rotation_about
from phistar.spatial.entries import Entries, Number, cross, dot, minus, plus, scaled

Columns = list[list[Number]]
_UNITS = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
_NOTHING = (0.0, 0.0, 0.0)


class Roots(Protocol):
    """What the formulas need besides arithmetic."""

    def sqrt(self, x: Number) -> Number:
        """Square root."""


@dataclass(frozen=True)
class RelativePose:
    """The successor frame as seen from the predecessor frame: rows of its axes, its origin."""

    R: Sequence[Entries]
    p: Entries

    def to_successor(self, x: Entries) -> list[Number]:
        """A vector in the axes of F₁, in those of F₂."""
        return [dot([row[i] for row in self.R], x) for i in range(3)]

    def to_predecessor(self, x: Entries) -> list[Number]:
        """A vector in the axes of F₂, in those of F₁."""
        return [dot(row, x) for row in self.R]


class LoopKind(Protocol):
    """What is known of a kind of loop joint."""

    @property
    def rows(self) -> int:
        """Number of rows."""

    @property
    def holonomic(self) -> tuple[bool, ...]:
        """For each row whether it constrains the configuration, not the velocity alone."""

    def columns(self, loop: LoopJoint, at: RelativePose, ops: Roots) -> Columns:
        """N: a wrench on the successor per row, in the axes of F₂."""

    def column_rates(
        self, loop: LoopJoint, at: RelativePose, velocity: Entries, ops: Roots
    ) -> Columns | None:
        """dN/dt at a relative velocity; None if N is constant."""

    def error(self, loop: LoopJoint, relative: Array) -> Array:
        """How far open it is (..., rows) [rad, m], of relative poses (..., 4, 4)."""

    def near_error(self, loop: LoopJoint, at: RelativePose, ops: Roots) -> list[Number]:
        """The same to first order where it is nearly closed, by arithmetic and roots alone."""


def across(axis: Axis) -> tuple[Axis, Axis]:
    """Two unit vectors normal to a unit vector and to each other; coordinate axes if it is one."""
    a = np.asarray(axis, dtype=float)
    i = int(np.argmax(np.abs(a)))
    if abs(a[i]) == 1.0:
        return _UNITS[(i + 1) % 3], _UNITS[(i + 2) % 3]
    x = np.cross(a, _UNITS[int(np.argmin(np.abs(a)))])
    x /= np.linalg.norm(x)
    y = np.cross(a, x)
    return tuple(x.tolist()), tuple(y.tolist())


@dataclass(frozen=True)
class LowerPair:
    """A joint whose free motions are a group: N is constant.

    Attributes:
        angular: Which rotations are blocked: ``"all"``, ``"none"``, or ``"across"`` the axis.
        linear: Which translations: also ``"along"`` the axis.
    """

    angular: str
    linear: str

    @property
    def rows(self) -> int:
        """See ``LoopKind``."""
        return self.angular_rows + _COUNTS[self.linear]

    @property
    def angular_rows(self) -> int:
        """How many rows, the first ones, are about rotations."""
        return _COUNTS[self.angular]

    @property
    def holonomic(self) -> tuple[bool, ...]:
        """See ``LoopKind``."""
        return (True,) * self.rows

    def columns(self, loop: LoopJoint, at: RelativePose, ops: Roots) -> Columns:
        """See ``LoopKind``."""
        del at, ops
        angular = [[*x, *_NOTHING] for x in _directions(self.angular, loop.axis)]
        return angular + [[*_NOTHING, *x] for x in _directions(self.linear, loop.axis)]

    def column_rates(
        self, loop: LoopJoint, at: RelativePose, velocity: Entries, ops: Roots
    ) -> Columns | None:
        """See ``LoopKind``."""
        return None

    def error(self, loop: LoopJoint, relative: Array) -> Array:
        """N* log of what is left when the nearest free motion is taken off."""
        rest = pose_inverse(self._nearest_motion(loop, relative)) @ relative
        columns = self.columns(loop, RelativePose((), ()), _ARRAY_ROOTS)
        N: Array = np.array(columns).reshape(-1, 6)
        return np.asarray(log_se3(rest) @ N.T)

    def near_error(self, loop: LoopJoint, at: RelativePose, ops: Roots) -> list[Number]:
        """See ``LoopKind``."""
        R, a = at.R, loop.axis
        if self.angular == "across":
            turned = cross(at.to_successor(a), a)
        else:
            turned = scaled(0.5, [R[2][1] - R[1][2], R[0][2] - R[2][0], R[1][0] - R[0][1]])
        found = [dot(x, turned) for x in _directions(self.angular, a)]
        p = list(at.p)
        if self.linear in ("across", "along"):
            along = scaled(dot(a, p), a)
            p = minus(p, along) if self.linear == "across" else along
        shifted = at.to_successor(p)
        return found + [dot(x, shifted) for x in _directions(self.linear, a)]

    def _nearest_motion(self, loop: LoopJoint, relative: Array) -> Array:
        """The nearest motion (..., 4, 4) that the joint allows."""
        R, p = relative[..., :3, :3], relative[..., :3, 3]
        a = np.asarray(loop.axis, dtype=float)
        turned = R
        if self.angular == "all":
            turned = np.broadcast_to(np.eye(3), R.shape)
        elif self.angular == "across":
            turned = rotation_about(a, _twist(R, a))
        along = a * (p @ a)[..., None]
        moved = {
            "all": np.zeros_like(p), "none": p, "across": along, "along": p - along,
        }[self.linear]  # fmt: skip
        return pose(turned, moved)


_COUNTS = {"all": 3, "across": 2, "along": 1, "none": 0}


def _directions(which: str, axis: Axis) -> Sequence[Entries]:
    if which == "all":
        return _UNITS
    return {"across": across(axis), "along": (axis,), "none": ()}[which]


def _twist(R: Array, a: Array) -> Array:
    """The angle (...) of the rotation about a that is nearest to R: of its quaternion."""
    s = np.stack(
        [R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]],
        axis=-1,
    )
    trace = np.trace(R, axis1=-2, axis2=-1)
    sine, cosine = s @ a, 1.0 + trace
    # Near half a turn both vanish; the symmetric part then has the axis and its sine of half angle.
    spread = np.einsum("i,...ij,j->...", a, R, a)
    half_turn = np.sqrt(np.maximum(1.0 + 2.0 * spread - trace, 0.0))
    half_cosine = np.sqrt(np.maximum(cosine, 0.0))
    near = half_cosine > 1e-3
    safe = np.where(near, half_cosine, 1.0)
    sign = np.where(sine < 0.0, -1.0, 1.0)
    return np.asarray(2.0 * np.arctan2(np.where(near, sine / safe, sign * half_turn), half_cosine))


@dataclass(frozen=True)
class RigidRod:
    """Two points keep the distance ``loop.size``; a rod without mass."""

    rows: int = 1
    holonomic: tuple[bool, ...] = (True,)

    def columns(self, loop: LoopJoint, at: RelativePose, ops: Roots) -> Columns:
        """See ``LoopKind``."""
        direction, _ = self._direction(at, ops)
        return [[*_NOTHING, *direction]]

    def column_rates(
        self, loop: LoopJoint, at: RelativePose, velocity: Entries, ops: Roots
    ) -> Columns | None:
        """See ``LoopKind``."""
        direction, length = self._direction(at, ops)
        r = scaled(length, direction)
        rate = minus(velocity[3:], cross(velocity[:3], r))
        across_rod = minus(rate, scaled(dot(direction, rate), direction))
        return [[*_NOTHING, *scaled(1.0 / length, across_rod)]]

    def _direction(self, at: RelativePose, ops: Roots) -> tuple[list[Number], Number]:
        """From F₁ to F₂ in the axes of F₂, and the distance."""
        length = ops.sqrt(dot(at.p, at.p))
        return scaled(1.0 / length, at.to_successor(at.p)), length

    def near_error(self, loop: LoopJoint, at: RelativePose, ops: Roots) -> list[Number]:
        """See ``LoopKind``."""
        return [self._direction(at, ops)[1] - loop.size]

    def error(self, loop: LoopJoint, relative: Array) -> Array:
        """See ``LoopKind``."""
        p = relative[..., :3, 3]
        return np.asarray(np.sqrt((p * p).sum(axis=-1)) - loop.size)[..., None]


@dataclass(frozen=True)
class Roller:
    """A sphere or a thin disc of radius ``loop.size`` around F₂ rolls on the plane z = 0 of F₁.

    Rows: the contact point of the roller does not move along x, y and z of F₁. The disc's axis is
    ``loop.axis`` in F₂; only the height is a condition on the configuration.
    """

    disc: bool
    rows: int = 3
    holonomic: tuple[bool, ...] = (False, False, True)

    def columns(self, loop: LoopJoint, at: RelativePose, ops: Roots) -> Columns:
        """See ``LoopKind``."""
        c = self._contact(loop, at, ops)
        return [[*at.to_successor(cross(c, x)), *at.to_successor(x)] for x in _UNITS]

    def column_rates(
        self, loop: LoopJoint, at: RelativePose, velocity: Entries, ops: Roots
    ) -> Columns | None:
        """See ``LoopKind``."""
        turn = velocity[:3]
        moved = self._contact_rate(loop, at, turn, ops)
        found = []
        for x, column in zip(_UNITS, self.columns(loop, at, ops), strict=True):
            angular = plus(at.to_successor(cross(moved, x)), cross(column[:3], turn))
            found.append([*angular, *cross(column[3:], turn)])
        return found

    def _contact(self, loop: LoopJoint, at: RelativePose, ops: Roots) -> list[Number]:
        """From the centre to the contact point, in the axes of F₁."""
        if not self.disc:
            return [0.0, 0.0, -loop.size]
        down, _, _ = self._down(loop, at, ops)
        return scaled(-loop.size, down)

    def _down(
        self, loop: LoopJoint, at: RelativePose, ops: Roots
    ) -> tuple[list[Number], Number, list[Number]]:
        """The plane's normal in the plane of the disc, its length before scaling, the axis."""
        a = at.to_predecessor(loop.axis)
        m = minus((0.0, 0.0, 1.0), scaled(a[2], a))
        length = ops.sqrt(dot(m, m))
        return scaled(1.0 / length, m), length, a

    def _contact_rate(
        self, loop: LoopJoint, at: RelativePose, turn: Entries, ops: Roots
    ) -> list[Number]:
        if not self.disc:
            return [0.0, 0.0, 0.0]
        down, length, a = self._down(loop, at, ops)
        rate = cross(at.to_predecessor(turn), a)
        m = scaled(-1.0, plus(scaled(rate[2], a), scaled(a[2], rate)))
        return scaled(-loop.size / length, minus(m, scaled(dot(down, m), down)))

    def near_error(self, loop: LoopJoint, at: RelativePose, ops: Roots) -> list[Number]:
        """See ``LoopKind``."""
        return [0.0, 0.0, at.p[2] + self._contact(loop, at, ops)[2]]

    def error(self, loop: LoopJoint, relative: Array) -> Array:
        """See ``LoopKind``."""
        at = pose_entries(relative)
        height = at.p[2] + self._contact(loop, at, _ARRAY_ROOTS)[2]
        result = np.zeros((*relative.shape[:-2], 3), relative.dtype)
        result[..., 2] = height
        return result


class _ArrayRoots:
    def sqrt(self, x: Number) -> Number:
        return np.sqrt(x)


_ARRAY_ROOTS = _ArrayRoots()


def pose_entries(relative: Array) -> RelativePose:
    """Poses (..., 4, 4) as entries (...)."""
    rows = [[relative[..., i, j] for j in range(3)] for i in range(3)]
    return RelativePose(rows, [relative[..., i, 3] for i in range(3)])


LOOP_KINDS: Mapping[str, LoopKind] = {
    "weld": LowerPair("all", "all"),
    "revolute": LowerPair("across", "all"),
    "prismatic": LowerPair("all", "across"),
    "cylindrical": LowerPair("across", "across"),
    "spherical": LowerPair("none", "all"),
    "planar": LowerPair("across", "along"),
    "distance": RigidRod(),
    "rolling": Roller(disc=False),
    "rolling_disc": Roller(disc=True),
}
"""Kinds by name; one place for a kind."""


LOWER_PAIRS = ("weld", "revolute", "prismatic", "spherical", "cylindrical", "planar")
"""Kinds with constant N."""


def wrench_columns(loop: LoopJoint, relative: Array) -> Array:
    """N (..., rows, 6), a row per multiplier, of relative poses (..., 4, 4)."""
    found = LOOP_KINDS[loop.kind].columns(loop, pose_entries(relative), _ARRAY_ROOTS)
    return _stacked(found, relative.shape[:-2], relative.dtype)


def wrench_rates(loop: LoopJoint, relative: Array, velocity: Array) -> Array | None:
    """dN/dt (..., rows, 6) as F₂ moves by V_r (..., 6); None if N is constant."""
    entries = [velocity[..., i] for i in range(6)]
    found = LOOP_KINDS[loop.kind].column_rates(loop, pose_entries(relative), entries, _ARRAY_ROOTS)
    return None if found is None else _stacked(found, velocity.shape[:-1], velocity.dtype)


def _stacked(columns: Columns, batch: tuple[int, ...], dtype: DType) -> Array:
    result = np.empty((*batch, len(columns), 6), dtype)
    for i, column in enumerate(columns):
        for j, entry in enumerate(column):
            result[..., i, j] = entry
    return result
