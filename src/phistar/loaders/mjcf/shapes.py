# SPDX-License-Identifier: BSD-3-Clause
"""MuJoCo's geoms -> shapes of links, in our sizes (full lengths)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from phistar.arrays import Array
from phistar.loaders.load_report import Entry, LoadReport
from phistar.loaders.mjcf.meshes import MeshShape
from phistar.loaders.mjcf.mujoco_model import element_names, mujoco_pose
from phistar.loaders.mjcf.mujoco_types import MjModel
from phistar.model.components import Shape
from phistar.spatial import pose_inverse, pose_product

Shapes = tuple[list[Shape], list[Shape]]

_KINDS = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")
_FIRST_HIDDEN_GROUP = 3
"""MuJoCo's viewers show the groups 0 to 2."""
_DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)


def shapes_of(model: MjModel, meshes: Mapping[int, MeshShape], report: LoadReport) -> list[Shapes]:
    """Visual and collision shapes of every body.

    A geom is visual if it is in a group that MuJoCo shows (0 to 2), and a collision shape if it
    takes part in contacts.

    Args:
        model: MuJoCo's MjModel.
        meshes: Geoms that have a mesh, by id.
        report: Receives the geoms that are neither.
    """
    result: list[Shapes] = [([], []) for _ in range(model.nbody)]
    dropped = 0
    poses = mujoco_pose(model.geom_pos, model.geom_quat)
    for geom, name in enumerate(element_names(model, "geom", "geom")):
        visuals, collisions = result[int(model.geom_bodyid[geom])]
        shape = _shape(model, geom, name, poses[geom], meshes.get(geom))
        visible = model.geom_group[geom] < _FIRST_HIDDEN_GROUP
        touches = bool(model.geom_contype[geom] or model.geom_conaffinity[geom])
        if shape is None or not (visible or touches):
            dropped += 1
            continue
        if visible:
            visuals.append(shape)
        if touches:
            collisions.append(
                replace(
                    shape,
                    friction=float(model.geom_friction[geom, 0]),
                    contype=int(model.geom_contype[geom]),
                    conaffinity=int(model.geom_conaffinity[geom]),
                )
            )
    if dropped:
        note = "height fields, or in a hidden group and without contacts: no shape"
        report.ignored.append(Entry(report.source, f"{dropped} geoms", note))
    return result


def _shape(
    model: MjModel, geom: int, name: str, pose: Array, mesh: MeshShape | None
) -> Shape | None:
    kind = _KINDS[int(model.geom_type[geom])]
    if mesh is not None and (mesh.replaced or kind in ("mesh", "sdf")):
        if not mesh.replaced:
            # MuJoCo moved the mesh to its centre of mass and the geom with it.
            asset = int(model.geom_dataid[geom])
            seat = mujoco_pose(model.mesh_pos[asset], model.mesh_quat[asset])
            pose = pose_product(pose, pose_inverse(seat))
        pose = pose_product(pose, mesh.offset)
        return Shape("mesh", mesh.scale, _frozen(pose), _colour(model, geom), mesh.file, name)
    size = _size(kind, [float(x) for x in model.geom_size[geom]])
    if size is None:
        return None
    return Shape(kind, size, _frozen(pose), _colour(model, geom), name=name)


def _size(kind: str, half: list[float]) -> tuple[float, ...] | None:
    """Our size of a primitive from MuJoCo's half sizes; a plane's is 0 where it is infinite."""
    if kind == "sphere":
        return (half[0],)
    if kind in ("capsule", "cylinder"):
        return (half[0], 2.0 * half[1])
    if kind == "ellipsoid":
        return tuple(half)
    if kind == "box":
        return tuple(2.0 * x for x in half)
    return (2.0 * half[0], 2.0 * half[1]) if kind == "plane" else None


def _colour(model: MjModel, geom: int) -> tuple[float, float, float, float]:
    """The geom's own colour, or its material's where the geom leaves the default."""
    colour, material = model.geom_rgba[geom], int(model.geom_matid[geom])
    if material >= 0 and np.allclose(colour, _DEFAULT_RGBA):
        colour = model.mat_rgba[material]
    red, green, blue, alpha = (float(x) for x in colour)
    return red, green, blue, alpha


def _frozen(pose: Array) -> Array:
    pose.flags.writeable = False
    return pose
