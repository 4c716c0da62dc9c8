# SPDX-License-Identifier: BSD-3-Clause
"""A robot among the nodes of a scene: one that is moved per body, its surfaces below it."""

from __future__ import annotations

from phistar.drawing.scene import Scene
from phistar.model.components import GROUND
from phistar.viewer.view_state import ViewState, place
from phistar.viewer.web_server import Handle, Server

GHOST_OPACITY = 0.25
SEEN_THROUGH = 0.35
"""Opacity of a robot of which one wants to see the inside."""


class RobotNodes:
    """The surfaces of one robot.

    Args:
        server: The server.
        surfaces: What is drawn.
        root: Name of its part of the scene, such as ``"/world/robot"``.
        ghost: Whether it is drawn transparent, and without what stands on the ground.
    """

    def __init__(self, server: Server, surfaces: Scene, root: str, *, ghost: bool = False) -> None:
        self.bodies = [
            server.scene.add_frame(f"{root}/{body.index}", show_axes=False)
            for body in surfaces.model.bodies
        ]
        self._opaque: list[Handle] = []
        for number, part in enumerate(surfaces.parts):
            if ghost and part.body == GROUND:
                continue
            parent = f"{root}/{part.body}" if part.body != GROUND else f"{root}/ground"
            opacity = GHOST_OPACITY if ghost else part.rgba[3]
            mesh = server.scene.add_mesh_simple(
                f"{parent}/{number}",
                part.surface.vertices.astype("float32"),
                part.surface.faces.astype("uint32"),
                color=tuple(round(255 * x) for x in part.rgba[:3]),
                opacity=None if opacity >= 1.0 else opacity,
                flat_shading=True,
                side="double",
            )
            if opacity >= 1.0:
                self._opaque.append(mesh)

    def see_through(self, wanted: bool) -> None:
        """Draw surfaces that are opaque transparent, or opaque again."""
        for mesh in self._opaque:
            mesh.opacity = SEEN_THROUGH if wanted else None

    def show(self, state: ViewState) -> None:
        """Move to a state."""
        for node, pose in zip(self.bodies, state.poses, strict=True):
            place(node, pose)

    @property
    def visible(self) -> bool:
        """Whether it is drawn."""
        return all(node.visible for node in self.bodies)

    @visible.setter
    def visible(self, value: bool) -> None:
        for node in self.bodies:
            node.visible = value
