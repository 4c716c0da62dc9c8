# SPDX-License-Identifier: BSD-3-Clause
"""Removes what MuJoCo would open a file for from its specification before compiling.

Textures, skins and height fields are irrelevant to rigid bodies. A mesh is needed only where a
body's inertia is computed from it; all other mesh geoms become spheres that refer to their mesh.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from phistar.arrays import Array
from phistar.errors import IgnoredWarning, InertiaWarning
from phistar.loaders.load_report import LoadReport
from phistar.loaders.mjcf.mjcf_files import MeshFile, ModelFiles
from phistar.loaders.mjcf.mujoco_types import MjsBody, MjsGeom, MjsMesh, MjSpec, MjsShape
from phistar.loaders.robot_source import read_source
from phistar.spatial import pose, quat_normalize, quat_to_rotation, transform_point, wxyz_to_xyzw

MAX_MESH_BYTES = 64 * 1024 * 1024
"""Largest mesh file that is read to compute an inertia."""


@dataclass(frozen=True)
class MeshShape:
    """A geom's mesh as in the file.

    Attributes:
        geom: MuJoCo's specification of the geom; its id is known after compiling.
        file: Spelling of the mesh file, empty for a mesh given inside the document.
        scale: Scale along the mesh's axes.
        offset: (4, 4) pose of the mesh file's axes in the geom's frame.
        replaced: Whether a sphere replaces it.
    """

    geom: MjsGeom
    file: str
    scale: tuple[float, ...]
    offset: Array
    replaced: bool


def replace_meshes(
    spec: MjSpec, mujoco: ModuleType, files: ModelFiles, report: LoadReport, *, all_move: bool
) -> list[MeshShape]:
    """Leave in ``spec`` only the meshes that inertias need, and give it their bytes.

    Args:
        spec: MuJoCo's MjSpec, changed in place.
        mujoco: The package.
        files: Has the mesh files.
        report: Receives an error for every missing mesh that an inertia needs, and a warning for
            every other missing mesh.
        all_move: Whether bodies welded to the world move too (a floating base).

    Returns:
        Every geom that has a mesh.
    """
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    for geom in spec.geoms:
        if geom.hfieldname:
            _make_sphere(geom, mujoco)
            geom.hfieldname = ""
    for site in spec.sites:
        if getattr(site, "meshname", ""):
            _make_sphere(site, mujoco)
            site.meshname = ""
    needed, shapes = _sort_geoms(spec, mujoco, files, report, all_move)
    for mesh in [m for m in spec.meshes if m.name not in needed]:
        spec.delete(mesh)
    for asset in (*spec.textures, *spec.hfields, *spec.skins):
        spec.delete(asset)
    spec.assets = _mesh_bytes(spec, files)
    return shapes


def _make_sphere(geom: MjsShape, mujoco: ModuleType) -> None:
    geom.type = mujoco.mjtGeom.mjGEOM_SPHERE
    geom.size = [1.0, 1.0, 1.0]


def _sort_geoms(
    spec: MjSpec, mujoco: ModuleType, files: ModelFiles, report: LoadReport, all_move: bool
) -> tuple[set[str], list[MeshShape]]:
    """Names of the meshes that inertias need, and the mesh shapes of all geoms."""
    meshes = {mesh.name: mesh for mesh in spec.meshes}
    absent = {
        name: file
        for name, mesh in meshes.items()
        if (file := files.meshes.get(mesh.file)) is not None and not file.exists
    }
    needed: set[str] = set()
    shapes: list[MeshShape] = []
    for geom in [g for g in spec.geoms if g.meshname in meshes]:
        weighs = _weighs(geom, spec, mujoco)
        stays = weighs and geom.meshname not in absent
        shapes.append(_shape(geom, meshes[geom.meshname], files, replaced=not stays))
        if weighs:
            needed.add(geom.meshname)
        if stays:
            continue
        if weighs:
            _report_needed(geom, absent[geom.meshname], report, all_move)
            geom.mass = 0.0
        geom.meshname = ""
        _make_sphere(geom, mujoco)
    for name, file in absent.items():
        if name not in needed:
            _report_absent(file, report)
    return needed - absent.keys(), shapes


def _weighs(geom: MjsGeom, spec: MjSpec, mujoco: ModuleType) -> bool:
    """Whether a geom counts in the inertia that MuJoCo computes for its body."""
    body, compiler = geom.parent, getattr(geom, "compiler", spec.compiler)
    kinds = mujoco.mjtInertiaFromGeom
    if body.name == "world" or compiler.inertiafromgeom == kinds.mjINERTIAFROMGEOM_FALSE:
        return False
    always = compiler.inertiafromgeom == kinds.mjINERTIAFROMGEOM_TRUE
    low, high = compiler.inertiagrouprange
    counts = low <= geom.group <= high and geom.mass != 0
    massless = math.isnan(geom.mass) and geom.density == 0
    return (always or not body.explicitinertial) and counts and not massless


def _moves(body: MjsBody | None) -> bool:
    while body is not None and body.name != "world":
        if body.joints:
            return True
        body = body.parent
    return False


def _report_needed(geom: MjsGeom, file: MeshFile, report: LoadReport, all_move: bool) -> None:
    body = geom.parent
    reason = "which is absent" if file.path is not None else "which is outside the allowed folders"
    what = f'inertia of body "{body.name}" needs mesh {file.spelling}, {reason}.'
    if all_move or _moves(body):
        cure = "Give the body an <inertial>, or put the mesh in its place."
        report.add_problem("error", "mesh-needed", file.where, what, cure)
    else:
        cure = "The body never moves: the mesh counts as massless."
        report.add_problem("warning", "mesh-needed", file.where, what, cure, InertiaWarning)


def _report_absent(file: MeshFile, report: LoadReport) -> None:
    reason = "is absent" if file.path is not None else "is outside the allowed folders"
    what = f"mesh {file.spelling} {reason} and was not opened."
    cure = "Only drawing needs it: inertias are explicit."
    report.add_problem("warning", "mesh-absent", file.where, what, cure, IgnoredWarning)


def _shape(geom: MjsGeom, mesh: MjsMesh, files: ModelFiles, *, replaced: bool) -> MeshShape:
    """MuJoCo subtracts refpos from the vertices, rotates by refquat's inverse and scales them."""
    rotation = quat_to_rotation(quat_normalize(wxyz_to_xyzw(np.array(mesh.refquat)))).T
    scale = np.array(mesh.scale)
    offset = pose(rotation, -scale * (transform_point(pose(rotation), mesh.refpos)))
    file = files.meshes.get(mesh.file)
    spelling = file.spelling if file is not None else ""
    return MeshShape(geom, spelling, tuple(float(x) for x in scale), offset, replaced)


def _mesh_bytes(spec: MjSpec, files: ModelFiles) -> dict[str, bytes]:
    meshes = {mesh.file: files.meshes[mesh.file] for mesh in spec.meshes if mesh.file}
    return {
        name: read_source(file.path, MAX_MESH_BYTES).data
        for name, file in meshes.items()
        if file.path is not None
    }
