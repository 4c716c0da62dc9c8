# SPDX-License-Identifier: BSD-3-Clause
"""Denavit–Hartenberg tables -> Model, in both conventions.

Standard (distal, Denavit and Hartenberg 1955): row i is Rz(θ) Tz(d) Tx(a) Rx(α), joint i rotates
about z of frame i-1 and link i has the frame at its far end. Modified (proximal, Khalil and
Kleinfinger 1986; Craig): row i is Rx(α) Tx(a) Rz(θ) Tz(d), joint i rotates about z of frame i,
which is the frame of link i.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, pluralize
from phistar.model import GROUND_NAME, Model, ModelBuilder
from phistar.model.builder import make_pose
from phistar.model.components import frozen
from phistar.spatial import is_rotation, pose_product

DHConvention = Literal["standard", "modified"]

_ROW = (0.0, 0.0, 0.0, 1.0)
_KINDS = ("revolute", "continuous", "prismatic", "fixed")


@dataclass(frozen=True)
class DHRow:
    """One row of a table: four parameters, the joint kind, and optionally the link's inertia.

    Attributes:
        a: Link length along x [m].
        alpha: Link twist about x [rad].
        d: Joint offset along z [m]; a prismatic joint adds its coordinate.
        theta: Joint angle about z [rad]; a revolute joint adds its coordinate.
        kind: ``"revolute"``, ``"continuous"``, ``"prismatic"``, or ``"fixed"`` for a flange.
        sign: 1 or -1: sign of the coordinate.
        mass: [kg].
        com: (3,) centre of mass in this row's frame [m].
        inertia: About the centre of mass, this row's axes [kg m^2]; see ``ModelBuilder.link``.
        lower, upper, velocity, effort: Limits; none by default.
        joint, link: Names; default ``joint1``, ``link1``, ...
    """

    a: float = 0.0
    alpha: float = 0.0
    d: float = 0.0
    theta: float = 0.0
    kind: str = "revolute"
    sign: float = 1.0
    mass: float = 0.0
    com: ArrayLike = (0.0, 0.0, 0.0)
    inertia: ArrayLike = (0.0, 0.0, 0.0)
    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf
    joint: str = ""
    link: str = ""

    @property
    def across(self) -> Array:
        """Tx(a) Rx(α), the part about x, (4, 4)."""
        return make_pose((self.a, 0.0, 0.0), (self.alpha, 0.0, 0.0))

    @property
    def along(self) -> Array:
        """Rz(θ) Tz(d), the part about z at coordinate zero, (4, 4)."""
        return make_pose((0.0, 0.0, self.d), (0.0, 0.0, self.theta))


def from_dh(
    rows: Sequence[DHRow | Sequence[float]],
    *,
    convention: DHConvention = "standard",
    name: str = "robot",
    base: ArrayLike | None = None,
) -> Model:
    """A serial robot from its Denavit–Hartenberg table.

    Args:
        rows: One per joint, from the base outward: ``DHRow`` or (a, alpha, d, theta) of a revolute
            joint [m, rad]. In the modified convention a and alpha are those before the joint
            (a_{i-1}, alpha_{i-1}), in the standard one those after it.
        convention: ``"standard"`` or ``"modified"``.
        name: Name of the robot.
        base: (4, 4) pose of frame 0, the link ``base``, in the world; default identity.

    Returns:
        The model; its links are ``base`` and ``link1``, ..., whose frames are those of the table.

    Raises:
        ArgumentError: Another convention, a row of the wrong length, a number that is not finite,
            or a joint kind that such a table does not have.
        ModelError: The masses, limits or names do not make a robot.
    """
    if convention not in get_args(DHConvention):
        known = " or ".join(repr(c) for c in get_args(DHConvention))
        raise ArgumentError(f"convention must be {known}, got {convention!r}")
    builder = ModelBuilder(name)
    builder.link("base")
    parent = "base"
    if base is not None:
        builder.joint("base_mount", "fixed", GROUND_NAME, parent, origin=_rigid(base))
    for number, entry in enumerate(rows, start=1):
        row = _checked(entry, number)
        link = row.link or f"link{number}"
        builder.link(link, row.mass, row.com, row.inertia)
        origin, child_pose = (
            (row.along, row.across)
            if convention == "standard"
            else (pose_product(row.across, row.along), None)
        )
        builder.joint(
            row.joint or f"joint{number}",
            row.kind,
            parent,
            link,
            origin=origin,
            child_pose=child_pose,
            axis=None if row.kind == "fixed" else (0.0, 0.0, row.sign),
            lower=row.lower,
            upper=row.upper,
            velocity=row.velocity,
            effort=row.effort,
        )
        parent = link
    return builder.build()


def _rigid(base: ArrayLike) -> Array:
    pose = frozen(base, (4, 4), "base")
    if not (
        is_rotation(pose[:3, :3]) and np.isfinite(pose).all() and np.array_equal(pose[3], _ROW)
    ):
        raise ArgumentError(
            "base is not a rigid pose: expected a rotation, a position, (0, 0, 0, 1)"
        )
    return pose


def _checked(entry: DHRow | Sequence[float], number: int) -> DHRow:
    row = entry if isinstance(entry, DHRow) else _from_numbers(entry, number)
    parameters = (row.a, row.alpha, row.d, row.theta)
    if not all(math.isfinite(x) for x in parameters):
        raise ArgumentError(f"row {number} has a parameter that is not finite: {parameters}")
    if row.kind not in _KINDS:
        known = ", ".join(_KINDS)
        raise ArgumentError(f"row {number} has a {row.kind!r} joint; a DH table knows {known}")
    if row.sign not in (1.0, -1.0):
        raise ArgumentError(f"row {number} has sign {row.sign!r}; it must be 1 or -1")
    return row


def _from_numbers(entry: Sequence[float], number: int) -> DHRow:
    if len(entry) != 4:
        raise ArgumentError(
            f"row {number} has {pluralize(len(entry), 'number')}, "
            "expected a, alpha, d, theta (or a DHRow)"
        )
    a, alpha, d, theta = (float(x) for x in entry)
    return DHRow(a, alpha, d, theta)


__all__ = ["DHConvention", "DHRow", "from_dh"]
