# SPDX-License-Identifier: BSD-3-Clause
"""Mesh files: found by the name a robot file gives them, read into triangles.

STL and OBJ are read here, DAE and others by trimesh where that is installed. Files are looked for
in given folders only, never elsewhere, and large ones are refused before they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path, PurePosixPath

import numpy as np

from phistar.drawing.shape_triangles import Triangles
from phistar.errors import PhistarError

LARGEST_MEGABYTES = 100.0
"""Size of a mesh file above which it is not drawn."""
_STL_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
_STL_HEAD = 84
"""Bytes before the first triangle of a binary STL file; the last four count the triangles."""


class MeshError(PhistarError):
    """A mesh cannot be drawn: ``mesh`` says which, ``why`` the rest of the sentence."""

    def __init__(self, mesh: str, why: str) -> None:
        self.mesh, self.why = mesh, why
        super().__init__(f"mesh '{mesh}' {why}")


def find_mesh(name: str, folders: Sequence[Path]) -> Path:
    """The file of a mesh.

    ``package://NAME/rest`` is looked for as ``NAME/rest`` in the folders and in those above them,
    and as ``rest`` in the folders and those they are in; other names relative to the folders, or
    beside them (``../meshes``). What leads elsewhere is not followed.

    Args:
        name: The mesh's name in the robot file.
        folders: Where to look.

    Raises:
        MeshError: There is no such file.
    """
    place = PurePosixPath(name.split("://", 1)[-1].replace("\\", "/"))
    package = name.startswith(("package://", "model://"))
    for folder in folders:
        for base, rest in _candidates(folder.resolve(), place, package):
            file = (base / rest).resolve()
            if file.is_file() and file.is_relative_to(base):
                return file
    looked = ", ".join(f"'{folder}'" for folder in folders) or "no folder"
    raise MeshError(name, f"is not there (looked in {looked}; mesh_folders= names others)")


def _candidates(
    root: Path, place: PurePosixPath, package: bool
) -> Iterator[tuple[Path, PurePosixPath]]:
    """Folders that may be read and what is looked for below them."""
    if place.is_absolute():
        return
    if package:
        yield from ((base, place) for base in (root, *root.parents))
        place = PurePosixPath(*place.parts[1:])
    yield root, place
    if package or place.parts[:1] == ("..",):  # beside the robot's file, as in ../meshes/hand.stl
        yield root.parent, place if package else PurePosixPath(*place.parts[1:])


def read_mesh(file: Path) -> Triangles:
    """The triangles of a mesh file, in its own units.

    Raises:
        MeshError: It is too large, damaged, or of an unknown format.
    """
    megabytes = file.stat().st_size / 1e6
    if megabytes > LARGEST_MEGABYTES:
        raise MeshError(
            file.name,
            f"has {megabytes:.0f} MB, more than {LARGEST_MEGABYTES:.0f}; make it coarser",
        )
    readers = {".stl": _read_stl, ".obj": _read_obj}
    try:
        found = readers.get(file.suffix.lower(), _read_other)(file)
    except (ValueError, IndexError, OSError) as error:
        raise MeshError(file.name, f"cannot be read: {error}") from None
    if not len(found.faces) or not np.isfinite(found.vertices).all():
        raise MeshError(file.name, "has no triangles or numbers that are not finite")
    return found


def _read_stl(file: Path) -> Triangles:
    """A binary or text STL file; corners that lie together are one."""
    data = file.read_bytes()
    count = int.from_bytes(data[80:84], "little")
    if len(data) == _STL_HEAD + _STL_TRIANGLE.itemsize * count:
        corners = np.frombuffer(data, _STL_TRIANGLE, count, _STL_HEAD)["corners"].astype(float)
    else:
        words = data.decode("ascii", "replace").split()
        at = [k for k, word in enumerate(words) if word == "vertex"]
        corners = np.array([[float(x) for x in words[k + 1 : k + 4]] for k in at])
        corners = corners.reshape(-1, 3, 3)
    vertices, index = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    return Triangles(vertices, index.reshape(-1, 3))


def _read_obj(file: Path) -> Triangles:
    """Corners and faces of an OBJ file; faces of more than three corners are fans."""
    vertices: list[list[float]] = []
    faces: list[tuple[int, int, int]] = []
    for line in file.read_text("utf-8", "replace").splitlines():
        word, *rest = line.split() or [""]
        if word == "v":
            vertices.append([float(x) for x in rest[:3]])
        elif word == "f":
            numbers = [int(x.split("/")[0]) for x in rest]
            corners = [n - 1 if n > 0 else len(vertices) + n for n in numbers]
            faces += [(corners[0], b, c) for b, c in pairwise(corners[1:])]
    index = np.array(faces, dtype=int).reshape(-1, 3)
    if index.size and not (index.min() >= 0 and index.max() < len(vertices)):
        raise ValueError("a face names a corner that does not exist")
    return Triangles(np.array(vertices).reshape(-1, 3), index)


def _read_other(file: Path) -> Triangles:
    """A file of another format, by trimesh; all parts of its scene together."""
    try:
        import trimesh
    except ImportError:
        raise MeshError(
            file.name,
            "needs the package 'trimesh'. Install it with: pip install \"phistar[viewer]\"",
        ) from None
    try:
        mesh = trimesh.load(file, force="mesh")
    except Exception as error:  # trimesh raises what its format's reader raises
        raise MeshError(file.name, f"cannot be read: {error}") from None
    return Triangles(np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces))
