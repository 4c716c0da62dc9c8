# SPDX-License-Identifier: BSD-3-Clause
"""A robot and its motion as one page for a browser, which needs nothing else and asks for nothing.

The page has the surfaces, the poses of all bodies at the shown times and a small program that draws
them (``static/scene.js``).
"""

from __future__ import annotations

import base64
import html
import json
from importlib.resources import files
from string import Template

import numpy as np

from phistar.arrays import Array
from phistar.drawing.scene import Part, Scene
from phistar.errors import pluralize
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.model.numpy_kinematics import body_poses
from phistar.spatial import rotation_to_quat

GROUND_PADDING = 1.3
"""Half the edge of the ground's grid, in radii of the robot."""
FAR = 3.0
"""Size of a motion, in sizes of the robot, from which the camera follows it."""


def web_page(scene: Scene, t: Array, q: Array, title: str, plays: bool = True) -> str:
    """The page as text.

    Args:
        scene: What is drawn.
        t: (N,) times [s].
        q: (N, copies, nq) configurations; copies after the first are drawn as ghosts. What is not
            finite is not drawn.
        title: Title of the page.
        plays: Whether the motion starts by itself.
    """
    poses = _finite_poses(scene, q)
    ground, center, radius, followed = _framing(scene, poses)
    data = {
        "parts": [_part(part) for part in scene.parts],
        "times": _packed(t, "<f4"),
        "poses": _packed(_vectors(poses), "<f4"),
        "bodies": poses.shape[2],
        "copies": poses.shape[1],
        "center": center.tolist(),
        "radius": radius,
        "followed": _packed(followed, "<f4"),
        "grid": {"half": GROUND_PADDING * radius, "center": [center[0], center[1], ground]},
        "plays": plays,
    }
    subtitle = _subtitle(scene.model)
    if poses.shape[1] > 1:
        subtitle += f", {poses.shape[1]} of them at once"
    static = files("phistar.drawing") / "static"
    return Template((static / "page.html").read_text("utf-8")).substitute(
        title=html.escape(title),
        subtitle=html.escape(subtitle),
        data=json.dumps(data).replace("</", "<\\/"),
        script=(static / "scene.js").read_text("utf-8"),
    )


def _subtitle(model: Model) -> str:
    """How large a robot is; with closed loops fewer of its joint rates are free."""
    bodies = f"{len(model.bodies)} moving bodies"
    if loops := active_loops(model.loops):
        return f"{bodies}, {pluralize(model.nv, 'joint rate')}, {pluralize(len(loops), 'loop')}"
    return f"{bodies}, {model.nv} degrees of freedom"


def _framing(scene: Scene, poses: Array) -> tuple[float, Array, float, Array]:
    """Height of the ground, the sphere around the robot, and how the camera follows it (N, 3).

    The sphere is around the whole motion, or around the first picture if the robot goes far; then
    the camera follows the bodies' middle.
    """
    flat = poses.reshape(-1, *poses.shape[2:])
    seen = flat[np.isfinite(flat).all(axis=(1, 2, 3))]
    whole, first = scene.bounds(seen), scene.bounds(seen[:1])
    far = np.linalg.norm(whole[1] - whole[0]) > FAR * np.linalg.norm(first[1] - first[0])
    low, high = first if far else whole
    radius = max(float(np.linalg.norm(high - low)) / 2, 1e-3)
    middle = poses[:, 0, :, :3, 3].mean(axis=1) if far else np.zeros((len(poses), 3))
    return float(low[2]), (low + high) / 2, radius, np.nan_to_num(middle - middle[0])


def _finite_poses(scene: Scene, q: Array) -> Array:
    """Poses (N, copies, bodies, 4, 4); NaN where a configuration is not finite."""
    good = np.isfinite(q).all(axis=-1)
    poses = np.full((*q.shape[:-1], len(scene.model.bodies), 4, 4), np.nan)
    if good.any():
        poses[good] = body_poses(scene.model, q[good].astype(float))
    return poses


def _part(part: Part) -> dict[str, object]:
    surface = part.surface
    return {
        "body": part.body,
        "link": part.link,
        "rgba": [round(float(x), 4) for x in part.rgba],
        "vertices": _packed(surface.vertices, "<f4"),
        "faces": _packed(surface.faces, "<u4"),
    }


def _vectors(poses: Array) -> Array:
    """Poses (..., 4, 4) as (..., 7): position, quaternion xyzw; NaN stays NaN."""
    good = np.isfinite(poses).all(axis=(-2, -1))
    result = np.full((*poses.shape[:-2], 7), np.nan)
    result[good, :3] = poses[good][:, :3, 3]
    if good.any():
        result[good, 3:] = rotation_to_quat(poses[good][:, :3, :3])
    return result


def _packed(array: Array, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=dtype).tobytes()).decode()
