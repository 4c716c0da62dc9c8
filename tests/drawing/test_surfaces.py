# SPDX-License-Identifier: BSD-3-Clause
"""Surfaces of robots: primitives, mesh files, scenes."""

import math
import struct
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar.drawing import mesh_files
from phistar.drawing.mesh_files import MeshError, find_mesh, read_mesh
from phistar.drawing.scene import MissingShapeWarning, scene
from phistar.drawing.shape_triangles import AROUND, PRIMITIVES, Triangles, box
from phistar.model.builder import ModelBuilder
from phistar.model.components import Shape

# Volumes of the smooth bodies; circles are polygons here, so that somewhat less is enclosed.
VOLUMES = {
    "box": ((0.1, 0.2, 0.3), 0.006),
    "cylinder": ((0.5, 0.6), math.pi * 0.25 * 0.6),
    "capsule": ((0.5, 0.6), math.pi * 0.25 * 0.6 + math.pi / 6),
    "sphere": ((0.5,), math.pi / 6),
    "ellipsoid": ((0.1, 0.2, 0.3), 4 / 3 * math.pi * 0.006),
}


@pytest.mark.parametrize("kind", VOLUMES)
def test_primitives_are_closed_and_face_outward(kind: str) -> None:
    """The enclosed volume is that of the body, less what polygons cut off; every edge is in two."""
    size, volume = VOLUMES[kind]
    surface = PRIMITIVES[kind](*size)
    lost = 0.0 if kind == "box" else 1.0 - math.sin(2 * math.pi / AROUND) / (2 * math.pi / AROUND)
    assert (1 - 3 * lost - 1e-12) * volume <= surface.volume <= (1 + 1e-12) * volume
    corners = surface.vertices[surface.faces]
    area = np.linalg.norm(
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
    )
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert np.abs(normals.sum(axis=0)).max() < 1e-12 * area.sum()


def test_a_plane_and_its_normal() -> None:
    """An infinite plane is a square that looks along z."""
    surface = PRIMITIVES["plane"](0.0, 2.0)
    a, b, c = surface.vertices[surface.faces[0]]
    assert np.cross(b - a, c - a)[2] > 0.0
    assert np.ptp(surface.vertices[:, 1]) == 2.0


def test_mirrored_surfaces_still_face_outward() -> None:
    """A negative scale, as of left and right parts, turns triangles round."""
    assert box(1.0, 2.0, 3.0).scaled(np.array([-1.0, 1.0, 1.0])).volume == pytest.approx(6.0)


def _binary_stl(surface: Triangles) -> bytes:
    rows = [
        struct.pack("<12fH", 0, 0, 0, *surface.vertices[face].ravel(), 0) for face in surface.faces
    ]
    return b"\0" * 80 + struct.pack("<I", len(rows)) + b"".join(rows)


def _text_stl(surface: Triangles) -> bytes:
    lines = ["solid part"]
    for face in surface.faces:
        lines += ["facet normal 0 0 0", "outer loop"]
        lines += ["vertex " + " ".join(map(str, corner)) for corner in surface.vertices[face]]
        lines += ["endloop", "endfacet"]
    return "\n".join([*lines, "endsolid part"]).encode()


def _obj(surface: Triangles) -> bytes:
    lines = ["# part"] + ["v " + " ".join(map(str, corner)) for corner in surface.vertices]
    # Quadrilaterals, one with indices from the end and with normals.
    for k, (first, second) in enumerate(zip(surface.faces[::2], surface.faces[1::2], strict=True)):
        quad = [first[0], first[1], first[2], second[2]]
        shift = -len(surface.vertices) if k == 0 else 1
        lines.append("f " + " ".join(f"{corner + shift}//1" for corner in quad))
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("suffix", "write"), [("stl", _binary_stl), ("stl", _text_stl), ("obj", _obj)]
)
def test_mesh_files_give_the_surface(tmp_path: Path, suffix: str, write) -> None:
    """Volume and extent of a box survive."""
    file = tmp_path / f"part.{suffix}"
    file.write_bytes(write(box(0.5, 0.25, 2.0)))
    found = read_mesh(file)
    assert found.volume == pytest.approx(0.25, rel=1e-6)
    assert np.ptp(found.vertices, axis=0) == pytest.approx([0.5, 0.25, 2.0], rel=1e-6)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.stl", b"solid", "no triangles"),
        ("a.stl", b"facet vertex 1 2 x", "cannot be read"),
        ("a.obj", b"v 0 0 0\nf 1 2 3", "a corner that does not exist"),
        ("a.obj", b"v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3", "not finite"),
    ],
)
def test_damaged_meshes_are_refused(tmp_path: Path, name: str, content: bytes, text: str) -> None:
    """The file and what is wrong are named."""
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(MeshError, match=f"{name}.*{text}"):
        read_mesh(file)


def test_large_meshes_are_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size is looked at before the file is."""
    file = tmp_path / "large.stl"
    file.write_bytes(b"0" * 2000)
    monkeypatch.setattr(mesh_files, "LARGEST_MEGABYTES", 1e-3)
    with pytest.raises(MeshError, match=r"large\.stl' has .* MB, more than"):
        read_mesh(file)


def test_meshes_are_found_in_their_package_and_nowhere_else(tmp_path: Path) -> None:
    """package:// is looked for above the robot's file; what lies elsewhere is not opened."""
    meshes = tmp_path / "arm" / "meshes"
    meshes.mkdir(parents=True)
    (meshes / "hand.stl").write_bytes(_binary_stl(box(1, 1, 1)))
    (tmp_path / "secret.stl").write_bytes(_binary_stl(box(1, 1, 1)))
    folder = tmp_path / "arm" / "urdf"
    folder.mkdir()
    here = (meshes / "hand.stl").resolve()
    assert find_mesh("package://arm/meshes/hand.stl", [folder]) == here
    assert find_mesh("package://other_name/meshes/hand.stl", [folder]) == here
    assert find_mesh("../meshes/hand.stl", [folder]) == here
    for name in (
        "../../secret.stl",
        str(tmp_path / "secret.stl"),
        "package://../secret.stl",
        "no.stl",
    ):
        with pytest.raises(MeshError, match="is not there"):
            find_mesh(name, [folder])


def test_meshes_beside_the_file_are_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of the robot's file counts, not that of the process; editing keeps it."""
    text = (
        '<robot name="arm"><link name="base"/><link name="tip"><inertial><mass value="1"/>'
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial><visual>'
        '<geometry><mesh filename="part.stl"/></geometry></visual></link><joint name="hinge" '
        'type="continuous"><parent link="base"/><child link="tip"/></joint></robot>'
    )
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    (here / "robot.urdf").write_text(text, "utf-8")
    (here / "part.stl").write_bytes(_binary_stl(box(0.5, 0.25, 2.0)))
    monkeypatch.chdir(here)
    found = phistar.load("robot.urdf")
    monkeypatch.chdir(elsewhere)
    for each in (found, found.with_gravity((0.0, 0.0, -1.0)), phistar.load(here / "robot.urdf")):
        (part,) = each.scene().parts
        assert part.surface.volume == pytest.approx(0.25, rel=1e-6)


def test_missing_meshes_are_named_once_and_drawn_as_boxes() -> None:
    """Two links with one missing mesh: one line; both are boxes with the inertia of the link."""
    builder = ModelBuilder("arm")
    inertia = np.diag([0.5, 0.4, 0.3])
    lost = (Shape("mesh", mesh="package://arm/lost.stl"),)
    for name in ("base", "hand"):
        builder.link(name, mass=2.0, com=(0.1, 0.2, 0.3), inertia=inertia, visuals=lost)
    builder.joint("wrist", "revolute", "base", "hand", axis=(0, 0, 1))
    with pytest.warns(
        MissingShapeWarning, match=r"mesh 'package://arm/lost\.stl' is not there"
    ) as told:
        found = scene(builder.build())
    assert len(told) == 1
    assert str(told[0].message).count("lost.stl") == 1
    assert [part.link for part in found.parts] == ["base", "hand"]
    assert np.mean(found.parts[0].surface.vertices, axis=0) == pytest.approx([0.1, 0.2, 0.3])
    edges = np.ptp(found.parts[0].surface.vertices, axis=0)
    squares = np.sum(edges**2) - edges**2
    assert 2.0 / 12.0 * squares == pytest.approx([0.5, 0.4, 0.3], rel=1e-12)


def test_meshes_that_are_missing_together_share_the_reason() -> None:
    """Each name once, where they were looked for once."""
    builder = ModelBuilder("arm")
    for name in ("base", "hand"):
        shapes = (Shape("mesh", mesh=f"{name}.stl"),)
        builder.link(name, mass=2.0, com=(0.1, 0.2, 0.3), inertia=np.eye(3), visuals=shapes)
    builder.joint("wrist", "revolute", "base", "hand", axis=(0, 0, 1))
    with pytest.warns(MissingShapeWarning) as told:
        found = scene(builder.build())
    text = str(told[0].message)
    assert "of meshes 'base.stl', 'hand.stl' each is not there (looked in no folder;" in text
    assert text.count("looked in") == 1
    assert len(found.missing) == 2


@pytest.mark.parametrize("name", phistar.robots.names())
def test_bundled_robots_have_surfaces(name: str) -> None:
    """Nothing is missing, and what is drawn stays within a few metres."""
    robot = phistar.load(name)
    found = robot.scene()
    assert found.parts
    assert not found.missing
    poses = phistar.model.numpy_kinematics.body_poses(robot.model, robot.home)
    low, high = found.bounds(poses[None])
    assert 0.05 < np.linalg.norm(high - low) < 6.0
