# SPDX-License-Identifier: BSD-3-Clause
"""What can be drawn over a robot: frames, centres of mass, ellipsoids of inertia.

An ellipsoid of rigid inertia is that of the homogeneous body with the same mass and moments. An
articulated inertia has another mass in each direction; its ellipsoid has half axes along the
principal directions of its linear part, as long as a body of that mass would be wide (cube root of
mass), so that directions in which a link gives way are thin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from phistar.arrays import Array
from phistar.drawing.shape_triangles import ellipsoid, sphere
from phistar.explain.sweep_steps import sweep_steps
from phistar.model.model import Model
from phistar.spatial import inertia_matrix
from phistar.viewer.view_state import ViewState, place
from phistar.viewer.web_server import WORLD, Handle, Server

RIGID = (80, 130, 200)
ARTICULATED = (220, 120, 50)
MASS_POINT = (200, 40, 60)


class Overlay(Protocol):
    """Something over the robot that moves with it."""

    visible: bool

    def show(self, state: ViewState) -> None:
        """Move to a state; called if it is visible."""


class Nodes:
    """An overlay of some nodes, each fixed to a body.

    Args:
        nodes: The nodes.
        places: Body and pose on it for each of them.
    """

    def __init__(self, nodes: Sequence[Handle], places: Sequence[tuple[int, Array]]) -> None:
        self.nodes, self.places = nodes, places
        self.visible = False

    @property
    def visible(self) -> bool:
        """Whether it is drawn."""
        return self._visible

    @visible.setter
    def visible(self, value: bool) -> None:
        self._visible = value
        for node in self.nodes:
            node.visible = value

    def show(self, state: ViewState) -> None:
        """Move to a state."""
        for node, (body, offset) in zip(self.nodes, self.places, strict=True):
            place(node, state.pose(body, offset))


def frames(server: Server, model: Model, size: float) -> Nodes:
    """Axes of all links and named frames."""
    rows = list(model.frames.values())
    nodes = [
        server.scene.add_frame(
            f"{WORLD}/overlays/frames/{k}", axes_length=0.08 * size, axes_radius=0.003 * size
        )
        for k in range(len(rows))
    ]
    return Nodes(nodes, [(row.body, row.body_pose) for row in rows])


def centres_of_mass(server: Server, model: Model, size: float) -> Nodes:
    """A ball at the centre of mass of each body, as large as the cube root of its mass."""
    nodes, places = [], []
    masses = np.array([body.inertia[0] for body in model.bodies])
    for body in model.bodies:
        if not body.inertia[0] > 0.0:
            continue
        radius = 0.03 * size * np.cbrt(body.inertia[0] / masses.max())
        surface = sphere(float(radius))
        name = f"{WORLD}/overlays/masses/{body.index}"
        nodes.append(_mesh(server, name, surface.vertices, surface.faces, MASS_POINT, 1.0))
        places.append((body.index, _pose(np.eye(3), body.inertia[1:4] / body.inertia[0])))
    return Nodes(nodes, places)


def rigid_ellipsoids(server: Server, model: Model, size: float) -> Nodes:
    """The homogeneous ellipsoid with the mass and inertia of each body."""
    nodes, places = [], []
    for body in model.bodies:
        if not body.inertia[0] > 0.0:
            continue
        pose, halves = equivalent_ellipsoid(body.inertia)
        surface = ellipsoid(*np.maximum(halves, 1e-3 * size))
        name = f"{WORLD}/overlays/rigid/{body.index}"
        nodes.append(_mesh(server, name, surface.vertices, surface.faces, RIGID, 0.4))
        places.append((body.index, pose))
    return Nodes(nodes, places)


class ArticulatedEllipsoids(Nodes):
    """P(k): the inertia that a joint feels of everything outboard, all joints there being free."""

    def __init__(self, server: Server, model: Model, size: float) -> None:
        ball = sphere(1.0)
        names = (f"{WORLD}/overlays/articulated/{body.index}" for body in model.bodies)
        nodes = [_mesh(server, n, ball.vertices, ball.faces, ARTICULATED, 0.35) for n in names]
        self.model, self.size = model, size
        self.total = sum(float(body.inertia[0]) for body in model.bodies)
        super().__init__(nodes, [(body.index, np.eye(4)) for body in model.bodies])

    def show(self, state: ViewState) -> None:
        """The inertias at a state."""
        found = articulated_inertias(self.model, state.q)
        for node, body, inertia in zip(self.nodes, self.model.bodies, found, strict=True):
            masses, axes = np.linalg.eigh(inertia[3:, 3:])
            if np.linalg.det(axes) < 0.0:
                axes[:, 0] = -axes[:, 0]
            scale = 0.2 * self.size * np.cbrt(np.maximum(masses, 0.0) / self.total)
            node.scale = tuple(float(x) for x in np.maximum(scale, 2e-3 * self.size))
            place(node, state.pose(body.index, _pose(axes, np.zeros(3))))


def articulated_inertias(model: Model, q: Array) -> Array:
    """P(k) of every body (bodies, 6, 6) [angular; linear] in its axes."""
    zero = np.zeros(model.nv)
    result = inertia_matrix(model.inertias)
    for step in sweep_steps("forward_dynamics", model, q, v=zero, tau=zero).steps:
        if step.name == "P":
            result[step.body] = step.value
    return result


def equivalent_ellipsoid(parameters: Array) -> tuple[Array, Array]:
    """Pose (4, 4) and half axes (3,) of the homogeneous ellipsoid with inertia parameters (10,)."""
    mass, first = parameters[0], parameters[1:4]
    center = first / mass
    about_origin = inertia_matrix(parameters)[:3, :3]
    shift = mass * (center @ center * np.eye(3) - np.outer(center, center))
    moments, axes = np.linalg.eigh(about_origin - shift)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] = -axes[:, 0]
    squares = 2.5 / mass * (moments.sum() - 2.0 * moments)
    return _pose(axes, center), np.sqrt(np.maximum(squares, 0.0))


def _pose(rotation: Array, position: Array) -> Array:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, position
    return pose


def _mesh(
    server: Server,
    name: str,
    vertices: Array,
    faces: Array,
    colour: tuple[int, int, int],
    opacity: float,
) -> Handle:
    return server.scene.add_mesh_simple(
        name,
        vertices.astype("float32"),
        faces.astype("uint32"),
        color=colour,
        opacity=None if opacity >= 1.0 else opacity,
        cast_shadow=False,
        receive_shadow=False,
    )


OVERLAYS: Mapping[str, Callable[[Server, Model, float], Overlay]] = {
    "frames": frames,
    "centres of mass": centres_of_mass,
    "rigid inertia": rigid_ellipsoids,
    "articulated inertia P(k)": ArticulatedEllipsoids,
}
"""Overlays by the label of their check box; each is made of a server, a robot and its size [m]."""
LEGEND = ", ".join(
    f'<b style="color:rgb{colour}">{name}</b>'
    for name, colour in {
        "centres of mass": MASS_POINT,
        "rigid inertia": RIGID,
        "articulated inertia": ARTICULATED,
    }.items()
)
"""What is drawn in which colour, in HTML."""
