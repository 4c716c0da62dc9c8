# SPDX-License-Identifier: BSD-3-Clause
"""What the loader reads of MuJoCo's objects; the package itself has no types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from phistar.arrays import Array


class MjOption(Protocol):
    """Settings of a simulation."""

    gravity: Array
    density: float
    viscosity: float
    disableflags: int


class MjModel(Protocol):
    """A compiled model: counts of elements; all other attributes are arrays, a row per element."""

    nbody: int
    njnt: int
    nkey: int
    nsite: int
    nmocap: int
    nflex: int
    ntendon: int
    nv: int
    opt: MjOption

    def __getattr__(self, name: str) -> Array: ...


class MjsElement(Protocol):
    """An element of a specification; its id is known after compiling."""

    id: int
    name: str
    info: str


class MjsMesh(MjsElement, Protocol):
    """A mesh and its file."""

    file: str
    refpos: Array
    refquat: Array
    scale: Array


class MjsMaterial(MjsElement, Protocol):
    """A material with the names of its textures."""

    textures: Sequence[str]


class MjsBody(MjsElement, Protocol):
    """A body in the tree."""

    parent: MjsBody | None
    joints: Sequence[MjsElement]
    explicitinertial: bool


class MjsShape(MjsElement, Protocol):
    """A geom or a site, which may have a mesh."""

    type: int
    size: Sequence[float]
    meshname: str


class MjsGeom(MjsShape, Protocol):
    """A geom."""

    hfieldname: str
    parent: MjsBody
    group: int
    mass: float
    density: float


class MjsCompiler(Protocol):
    """Settings of the compiler."""

    inertiafromgeom: int
    inertiagrouprange: tuple[int, int]


class MjSpec(Protocol):
    """A model before it is compiled."""

    bodies: Sequence[MjsBody]
    geoms: Sequence[MjsGeom]
    sites: Sequence[MjsShape]
    meshes: Sequence[MjsMesh]
    materials: Sequence[MjsMaterial]
    textures: Sequence[MjsElement]
    hfields: Sequence[MjsElement]
    skins: Sequence[MjsElement]
    compiler: MjsCompiler
    assets: Mapping[str, bytes]

    def delete(self, element: MjsElement) -> None:
        """Take an element away."""
