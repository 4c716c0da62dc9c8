# SPDX-License-Identifier: BSD-3-Clause
"""What robots stand on: planes, boxes and height fields that are fixed in the world."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from phistar.arguments import require_number
from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.components import IDENTITY, frozen


@dataclass(frozen=True, eq=False)
class Plane:
    """A half space of the world: all places x with normal · x <= offset are ground.

    Attributes:
        normal: (3,) out of the ground; made a unit vector.
        offset: Distance of the surface from the world's origin along the normal [m].
        friction: Coulomb's coefficient; None: that of what touches it.
        restitution: Fraction of the normal speed after an impact, 0 to 1.
        name: For contacts.
    """

    normal: ArrayLike = (0.0, 0.0, 1.0)
    offset: float = 0.0
    friction: float | None = None
    restitution: float = 0.0
    name: str = "ground"

    def __post_init__(self) -> None:
        n = frozen(self.normal, (3,), "normal of the ground")
        length = float(np.linalg.norm(n))
        if not (0.0 < length < math.inf and math.isfinite(self.offset)):
            raise ArgumentError(
                f"normal {n.tolist()}, offset {self.offset:g} of '{self.name}': expected finite "
                "numbers, and a normal that is not zero"
            )
        object.__setattr__(self, "normal", frozen(n / length, (3,)))
        check_material(self.name, self.friction, self.restitution)

    @classmethod
    def slope(cls, angle: float, friction: float | None = None, restitution: float = 0.0) -> Plane:
        """A plane through the world's origin that goes down along x by an angle [rad]."""
        return cls((math.sin(angle), 0.0, math.cos(angle)), 0.0, friction, restitution)


@dataclass(frozen=True, eq=False)
class Box:
    """A box in the world.

    Attributes:
        size: (3,) edge lengths [m].
        pose: (4, 4) of its middle.
        friction, restitution, name: As of a plane.
    """

    size: ArrayLike
    pose: ArrayLike = field(default_factory=lambda: IDENTITY)
    friction: float | None = None
    restitution: float = 0.0
    name: str = "box"

    def __post_init__(self) -> None:
        size = frozen(self.size, (3,), f"size of '{self.name}'")
        if not (np.isfinite(size).all() and (size > 0.0).all()):
            raise ArgumentError(f"size {size.tolist()} of '{self.name}': expected positive lengths")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "pose", frozen(self.pose, (4, 4), f"pose of '{self.name}'"))
        check_material(self.name, self.friction, self.restitution)


@dataclass(frozen=True, eq=False)
class HeightField:
    """Heights over a grid of the x-y plane, bilinear in between, flat beyond its edges.

    Attributes:
        heights: (rows, columns) [m], rows along y, columns along x.
        spacing: Between grid points [m].
        origin: (2,) x and y of heights[0, 0] [m].
        friction, restitution, name: As of a plane.
    """

    heights: ArrayLike
    spacing: float
    origin: tuple[float, float] = (0.0, 0.0)
    friction: float | None = None
    restitution: float = 0.0
    name: str = "terrain"

    def __post_init__(self) -> None:
        heights = np.asarray(self.heights, float)
        if heights.ndim != 2 or min(heights.shape) < 2 or not np.isfinite(heights).all():
            raise ArgumentError(
                f"heights of '{self.name}' have shape {heights.shape}: expected finite numbers of "
                "shape (rows, columns), two of each at least"
            )
        if not 0.0 < self.spacing < math.inf:
            raise ArgumentError(f"spacing {self.spacing} of '{self.name}': expected metres")
        object.__setattr__(self, "heights", frozen(heights, heights.shape))
        check_material(self.name, self.friction, self.restitution)

    def planes_at(self, x: Array, y: Array) -> Array:
        """Tangent planes (..., 4), unit normal and offset, over places (...) of the x-y plane.

        Places may be complex, for derivatives by imaginary steps.
        """
        h = np.asarray(self.heights)
        rows, columns = h.shape
        u, inside_x = _clipped((x - self.origin[0]) / self.spacing, columns - 1.0)
        w, inside_y = _clipped((y - self.origin[1]) / self.spacing, rows - 1.0)
        i, j = np.minimum(w.real.astype(int), rows - 2), np.minimum(u.real.astype(int), columns - 2)
        a, b = w - i, u - j
        p, q, r, s = h[i, j], h[i, j + 1], h[i + 1, j], h[i + 1, j + 1]
        height = (1 - a) * ((1 - b) * p + b * q) + a * ((1 - b) * r + b * s)
        dx = np.where(inside_x, ((1 - a) * (q - p) + a * (s - r)) / self.spacing, 0.0)
        dy = np.where(inside_y, ((1 - b) * (r - p) + b * (s - q)) / self.spacing, 0.0)
        normal = np.stack([-dx, -dy, np.ones_like(dx)], axis=-1)
        normal /= np.sqrt((normal * normal).sum(axis=-1, keepdims=True))
        offset = normal[..., 0] * x + normal[..., 1] * y + normal[..., 2] * height
        return np.concatenate([normal, offset[..., None]], axis=-1)


def _clipped(x: Array, end: float) -> tuple[Array, Array]:
    """A number between 0 and an end, and whether it was there before; complex numbers may be."""
    inside = (x.real > 0.0) & (x.real < end)
    return np.where(inside, x, np.clip(x.real, 0.0, end)), np.asarray(inside)


GroundPart = Plane | Box | HeightField


def check_material(name: str, friction: float | None, restitution: float) -> None:
    """Raise unless a friction and a restitution are possible."""
    if friction is not None:
        require_number(f"friction of '{name}'", friction, "0 or more")
    if require_number(f"restitution of '{name}'", restitution, "0 to 1") > 1.0:
        raise ArgumentError(f"restitution of '{name}' is {restitution}, expected 0 to 1")
