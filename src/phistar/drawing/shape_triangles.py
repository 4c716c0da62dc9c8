# SPDX-License-Identifier: BSD-3-Clause
"""Shapes as triangles: boxes, spheres, ellipsoids, cylinders, capsules and planes.

Triangles are counter-clockwise seen from outside, so that their normals point outward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array

AROUND = 24
"""Corners of a circle."""
PLANE_EDGE_METRES = 4.0
"""Edge of a plane that is drawn in place of an infinite one."""


@dataclass(frozen=True, eq=False)
class Triangles:
    """A surface.

    Attributes:
        vertices: (n, 3) corners [m].
        faces: (m, 3) integers, the corners of each triangle.
    """

    vertices: Array
    faces: Array

    @property
    def volume(self) -> float:
        """Enclosed volume [m^3]; positive if all triangles face outward."""
        a, b, c = np.moveaxis(self.vertices[self.faces], 1, 0)
        return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0)

    def moved(self, pose: Array) -> Triangles:
        """The same surface at a pose (4, 4)."""
        return Triangles(self.vertices @ pose[:3, :3].T + pose[:3, 3], self.faces)

    def scaled(self, scale: Array) -> Triangles:
        """The same surface with its axes scaled by (3,); a mirror image is turned outside out."""
        faces = self.faces if np.prod(scale) > 0.0 else self.faces[:, ::-1]
        return Triangles(self.vertices * scale, faces)


def box(x: float, y: float, z: float) -> Triangles:
    """A box of full edge lengths [m]; four corners per side, so that edges stay sharp."""
    corners: list[Array] = []
    faces: list[tuple[int, int, int]] = []
    for axis in range(3):
        u, v = np.eye(3)[(axis + 1) % 3], np.eye(3)[(axis + 2) % 3]
        for sign in (1.0, -1.0):
            first = len(corners)
            w = sign * np.eye(3)[axis]
            corners += [w - u - v, w + u - v, w + u + v, w - u + v]
            turn = (0, 1, 2, 3) if sign > 0.0 else (3, 2, 1, 0)
            quad = [first + k for k in turn]
            faces += [(quad[0], quad[1], quad[2]), (quad[0], quad[2], quad[3])]
    return Triangles(np.array(corners) * (x / 2, y / 2, z / 2), np.array(faces))


def _revolved(profile: Array) -> Triangles:
    """The surface of a profile (k, 2) of radius and height, bottom to top, turned about z."""
    angle = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    radius, height = profile[:, 0], profile[:, 1]
    flat = radius[:, None, None] * ring
    vertices = np.concatenate(
        [flat, np.broadcast_to(height[:, None, None], (*flat.shape[:2], 1))], -1
    )
    k, j = np.meshgrid(np.arange(len(profile) - 1), np.arange(AROUND), indexing="ij")
    a, b = k * AROUND + j, k * AROUND + (j + 1) % AROUND
    quads = np.stack([a, b, b + AROUND, a, b + AROUND, a + AROUND], axis=-1)
    return Triangles(vertices.reshape(-1, 3), quads.reshape(-1, 3))


def cylinder(radius: float, length: float) -> Triangles:
    """A cylinder along z with flat ends [m]; rims have two rings, so that edges stay sharp."""
    low, high = -length / 2, length / 2
    rows = [(0.0, low), (radius, low), (radius, low), (radius, high), (radius, high), (0.0, high)]
    return _revolved(np.array(rows))


def ellipsoid(x: float, y: float, z: float) -> Triangles:
    """An ellipsoid of half axes [m]."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, AROUND // 2 + 1)
    ball = _revolved(np.stack([np.cos(angle), np.sin(angle)], axis=-1))
    return ball.scaled(np.array([x, y, z]))


def sphere(radius: float) -> Triangles:
    """A ball [m]."""
    return ellipsoid(radius, radius, radius)


def capsule(radius: float, length: float) -> Triangles:
    """A cylinder along z with half balls on its ends, whose centres are ``length`` [m] apart."""
    angle = np.linspace(-np.pi / 2, 0.0, AROUND // 4 + 1)
    cap = radius * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    low = cap - (0.0, length / 2)
    return _revolved(np.concatenate([low, low[::-1] * (1.0, -1.0)]))


def plane(x: float = 0.0, y: float = 0.0) -> Triangles:
    """A rectangle in the x-y plane of full edge lengths [m]; zero stands for an infinite one."""
    a, b = (x or PLANE_EDGE_METRES) / 2, (y or PLANE_EDGE_METRES) / 2
    corners = np.array([[-a, -b, 0.0], [a, -b, 0.0], [a, b, 0.0], [-a, b, 0.0]])
    return Triangles(corners, np.array([[0, 1, 2], [0, 2, 3]]))


def height_map(heights: Array, spacing: float, origin: tuple[float, float]) -> Triangles:
    """Heights (rows, columns) [m] over a grid of the x-y plane, rows along y; looks up."""
    rows, columns = heights.shape
    x = origin[0] + spacing * np.arange(columns)
    y = origin[1] + spacing * np.arange(rows)
    vertices = np.stack([*np.meshgrid(x, y), heights], axis=-1).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(rows - 1), np.arange(columns - 1), indexing="ij")
    a = i * columns + j
    c = a + columns
    return Triangles(vertices, np.stack([a, a + 1, c + 1, a, c + 1, c], -1).reshape(-1, 3))


PRIMITIVES: Mapping[str, Callable[..., Triangles]] = {
    "box": box,
    "capsule": capsule,
    "cylinder": cylinder,
    "ellipsoid": ellipsoid,
    "plane": plane,
    "sphere": sphere,
}
"""Surfaces by kind of ``model.components.Shape``; their arguments are its ``size``."""
