# SPDX-License-Identifier: BSD-3-Clause
"""What there is to draw of a robot: surfaces fixed to its bodies, with colours.

Links without a shape that can be drawn are boxes of the size that their inertia says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phistar.arrays import Array
from phistar.drawing.mesh_files import MeshError, find_mesh, read_mesh
from phistar.drawing.shape_triangles import PRIMITIVES, Triangles, box
from phistar.errors import PhistarWarning, warn
from phistar.model.components import GROUND, Link, Shape
from phistar.model.model import Model

Colour = tuple[float, float, float, float]

PALETTE: tuple[Colour, ...] = (
    (0.27, 0.51, 0.71, 1.0),
    (0.93, 0.58, 0.23, 1.0),
    (0.35, 0.65, 0.44, 1.0),
    (0.78, 0.36, 0.42, 1.0),
    (0.55, 0.47, 0.71, 1.0),
    (0.60, 0.56, 0.49, 1.0),
)
"""Colours of links whose shapes have none, one after the other."""


class MissingShapeWarning(PhistarWarning):
    """Shapes of a robot cannot be drawn; boxes stand in their places."""


@dataclass(frozen=True, eq=False)
class Part:
    """A surface of one colour, fixed to a body.

    Attributes:
        link: Name of its link.
        body: Index of the body that carries it, or ``GROUND``.
        surface: Its triangles in the body's frame.
        rgba: Colour with components in [0, 1].
    """

    link: str
    body: int
    surface: Triangles
    rgba: Colour


@dataclass(frozen=True, eq=False)
class Scene:
    """All surfaces of a robot.

    Attributes:
        model: The robot.
        parts: Its surfaces.
        missing: Why shapes are not drawn, one line for each mesh.
    """

    model: Model
    parts: tuple[Part, ...]
    missing: tuple[str, ...] = ()

    def __repr__(self) -> str:
        triangles = sum(len(part.surface.faces) for part in self.parts)
        return f"<Scene of '{self.model.name}': {len(self.parts)} parts, {triangles} triangles>"

    def bounds(self, poses: Array) -> tuple[Array, Array]:
        """Least and largest coordinates (3,) of all parts, given poses (n, bodies, 4, 4)."""
        corners = []
        for part in self.parts:
            points = part.surface.vertices
            ends = np.array([points.min(axis=0), points.max(axis=0)])
            grid = np.stack(np.meshgrid(*ends.T), axis=-1).reshape(-1, 3)
            at = np.eye(4)[None] if part.body == GROUND else poses[:, part.body]
            corners.append(
                (grid @ np.swapaxes(at[:, :3, :3], 1, 2) + at[:, None, :3, 3]).reshape(-1, 3)
            )
        every = np.concatenate(corners) if corners else np.zeros((1, 3))
        return every.min(axis=0), every.max(axis=0)


def scene(
    model: Model, folder: Path | None = None, mesh_folders: Sequence[str | Path] = ()
) -> Scene:
    """The surfaces of a robot.

    Visual shapes are drawn, collision shapes of links that have none. Meshes that are missing or
    too large are named in one warning and drawn as boxes.

    Args:
        model: The robot.
        folder: Where the robot's file is, and its meshes.
        mesh_folders: More folders for meshes, looked at first.
    """
    folders = [Path(name) for name in mesh_folders]
    if folder is not None:
        folders.append(folder)
    parts: list[Part] = []
    missing: dict[str, MeshError] = {}
    for number, link in enumerate(model.links):
        frame = model.frames[link.name]
        colour = PALETTE[number % len(PALETTE)]
        drawn = [(s, _surface(s, folders, missing)) for s in link.visuals or link.collisions]
        found = [(x.moved(s.pose), s.rgba or colour) for s, x in drawn if x is not None]
        if not found and (substitute := _inertia_box(link)) is not None:
            found = [(substitute, colour)]
        parts += [Part(link.name, frame.body, x.moved(frame.body_pose), c) for x, c in found]
    result = Scene(model, tuple(parts), tuple(map(str, missing.values())))
    if missing:
        warn(
            f"robot '{model.name}': {_what_is_missing(list(missing.values()))}. "
            "Boxes of the size of the inertia are drawn instead.",
            MissingShapeWarning,
        )
    return result


def _what_is_missing(errors: Sequence[MeshError]) -> str:
    """Each mesh once, each reason once."""
    names: dict[str, list[str]] = {}
    for error in errors:
        names.setdefault(error.why, []).append(f"'{error.mesh}'")
    return "; ".join(
        f"mesh {found[0]} {why}" if len(found) == 1 else f"of meshes {', '.join(found)} each {why}"
        for why, found in names.items()
    )


def _surface(
    shape: Shape, folders: Sequence[Path], missing: dict[str, MeshError]
) -> Triangles | None:
    """Triangles of a shape in its own frame, or None; what is missing is noted by mesh."""
    if shape.kind in PRIMITIVES:
        return PRIMITIVES[shape.kind](*shape.size)
    if shape.mesh in missing:
        return None
    try:
        mesh = read_mesh(find_mesh(shape.mesh, folders))
    except MeshError as error:
        missing[shape.mesh] = error
        return None
    return mesh.scaled(np.array(shape.size)) if shape.size else mesh


def _inertia_box(link: Link) -> Triangles | None:
    """The homogeneous box with the mass and inertia of a link, or None if it has none."""
    if not link.mass > 0.0:
        return None
    moments, axes = np.linalg.eigh(link.inertia)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]
    squares = 6.0 / link.mass * (moments.sum() - 2.0 * moments)
    edges = np.sqrt(np.maximum(squares, 0.0))
    if not edges.max() > 0.0:
        return None
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = axes, link.com
    return box(*np.maximum(edges, 0.02 * edges.max())).moved(pose)
