# SPDX-License-Identifier: BSD-3-Clause
"""``<link>`` elements -> links with their inertia and shapes. No mesh is opened."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.errors import InertiaWarning
from phistar.loaders.urdf.context import Context, prefixed_tag, quote
from phistar.loaders.urdf.dialect import qname
from phistar.loaders.urdf.fast_elements import fast_inertial, fast_name
from phistar.loaders.urdf.values import (
    Vector,
    check_attributes,
    children_by_tag,
    fast_numbers,
    ignore_element,
    parse_number,
    read_flag,
    read_number,
    read_numbers,
    read_pose,
)
from phistar.model.builder import ModelBuilder
from phistar.model.components import IDENTITY, ZERO3, Link, Shape
from phistar.spatial import rotate_inertia

if TYPE_CHECKING:
    from lxml.etree import _Element

Inertial = tuple[float, Array, Vector]
Colour = tuple[float, float, float, float]

VIRTUAL_ATTRIBUTE, GROUND_ATTRIBUTE = qname("virtual"), qname("ground")
_COLOUR, _SHAPE, _FRICTION = qname("color"), qname("shape"), qname("friction")
_VISUALS = frozenset({"visual", qname("visual")})
_SHAPES = _VISUALS | {"collision", qname("collision")}

_LINK_ATTRIBUTES = frozenset({"name", VIRTUAL_ATTRIBUTE, GROUND_ATTRIBUTE})
_INERTIAL = frozenset({"inertial"})
_INERTIAL_CHILDREN = frozenset({"origin", "mass", "inertia"})
_VALUE = frozenset({"value"})
_NAME = frozenset({"name"})
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_ZERO_MOMENTS: Vector = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
_IDENTITY_ROTATION_BYTES = IDENTITY[:3, :3].tobytes()
_UNIT_MOMENTS: Vector = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)
_MOMENT_SET = frozenset(_MOMENTS)
_SHAPE_CHILDREN = frozenset({"origin", "geometry", "material", _COLOUR, _FRICTION})
_GEOMETRIES = {
    "box": (("size", 3),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
    "sphere": (("radius", 1),),
}
_GEOMETRY_ATTRIBUTES = {
    kind: frozenset(attribute for attribute, _ in sizes) for kind, sizes in _GEOMETRIES.items()
}


class LinkReader:
    """Converts ``<link>`` elements to links of a builder."""

    def __init__(self, context: Context, builder: ModelBuilder, materials: Mapping[str, Colour]):
        self.context = context
        self.builder = builder
        self.materials = materials

    def read(self, element: _Element) -> None:
        """Add the link of one element."""
        if (plain := self._plain(element)) is not None:
            self.builder.links.append(plain)
            return
        context = self.context
        name = context.name(element)
        if name is None:
            context.incomplete = True
            return
        label = f'link "{name}"'
        check_attributes(context, element, _LINK_ATTRIBUTES, label)
        first, rows = children_by_tag(context, element, _INERTIAL, label, many=_SHAPES)
        mass, com, inertia = self._inertial(element, first.get("inertial"), label)
        visuals, collisions = self._shapes(rows, label) if rows else ((), ())
        self.builder.link(
            name,
            mass,
            com,
            inertia,
            visuals=visuals,
            collisions=collisions,
            virtual=bool(read_flag(context, element, VIRTUAL_ATTRIBUTE, label)),
            where=context.where(element),
        )

    def _plain(self, element: _Element) -> Link | None:
        """A link that has only a name and an inertia without rotation."""
        name = fast_name(element)
        if name is None or len(element) != 1:
            return None
        (child,) = element
        inertial = fast_inertial(child) if child.tag == "inertial" else None
        if inertial is None:
            return None
        self.context.report.read["inertials"] += 1
        return Link(name, *inertial, where=self.context.where(element))

    def _inertial(self, link: _Element, element: _Element | None, label: str) -> Inertial:
        context = self.context
        if element is None:
            context.default(link, label, "no <inertial>: massless")
            return 0.0, ZERO3, _ZERO_MOMENTS
        context.report.read["inertials"] += 1
        children, _ = children_by_tag(context, element, _INERTIAL_CHILDREN, label)
        mass = self._mass(element, children.get("mass"), label)
        inertia = self._inertia(element, children.get("inertia"), label)
        if (origin := children.get("origin")) is None:
            return mass, ZERO3, inertia
        pose = read_pose(context, origin, f"{label} inertial")
        if pose is IDENTITY:
            return mass, ZERO3, inertia
        rotation, com = pose[:3, :3], pose[:3, 3]
        if rotation.tobytes() != _IDENTITY_ROTATION_BYTES:
            return mass, com, _rotate_moments(inertia, rotation)
        return mass, com, inertia

    def _mass(self, inertial: _Element, element: _Element | None, label: str) -> float:
        context = self.context
        if element is None:
            what = f"{label}: <inertial> without <mass>."
            context.error("no-mass", inertial, what, 'Add <mass value="..."/> in kg.')
            return 1.0
        check_attributes(context, element, _VALUE, label)
        if element.get("value") is None:
            what = f"{label}: <mass> without value."
            context.error("no-mass", element, what, 'Write <mass value="..."/> in kg.')
        mass = read_number(context, element, "value", label)
        return 1.0 if mass is None else mass

    def _inertia(self, inertial: _Element, element: _Element | None, label: str) -> Vector:
        """The six moments in the order of ``_MOMENTS``."""
        context = self.context
        if element is None:
            what = f"{label}: <inertial> without <inertia>."
            cure = "It is taken as a point mass; give the inertia about the centre of mass."
            context.warn("no-inertia", inertial, what, cure, InertiaWarning)
            context.default(inertial, label, "no <inertia>: zero, a point mass")
            return _ZERO_MOMENTS
        check_attributes(context, element, _MOMENT_SET, label)
        if (plain := fast_numbers(element, _MOMENTS)) is not None:
            return plain
        values = [
            read_number(context, element, name, label, thing=f"inertia {name}") for name in _MOMENTS
        ]
        if None in values and not self._missing_moments(element, label):
            return _UNIT_MOMENTS
        return tuple(0.0 if value is None else value for value in values)

    def _missing_moments(self, element: _Element, label: str) -> bool:
        """Report missing moments; whether the others make an inertia."""
        missing = [name for name in _MOMENTS if element.get(name) is None]
        names = ", ".join(missing)
        if any(name in ("ixx", "iyy", "izz") for name in missing):
            what = f"{label}: <inertia> without {names}."
            self.context.error("no-moment", element, what, "Give all six moments.")
            return False
        if missing:
            what = f"{label}: <inertia> without {names}, taken as 0."
            self.context.warn("no-product", element, what, "Write them, even if 0.", InertiaWarning)
            self.context.default(element, label, f"inertia {names}: 0")
        return bool(missing)

    def _shapes(
        self, rows: list[_Element], label: str
    ) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
        """Visual and collision shapes. A bad one is only not drawn."""
        context = self.context
        visuals: list[Shape] = []
        collisions: list[Shape] = []
        severity, context.severity = context.severity, "warning"
        for row in rows:
            is_visual = row.tag in _VISUALS
            context.report.read["visuals" if is_visual else "collisions"] += 1
            shape = self._shape(row, f"{label} {'visual' if is_visual else 'collision'}")
            if shape is not None:
                (visuals if is_visual else collisions).append(shape)
        context.severity = severity
        return tuple(visuals), tuple(collisions)

    def _shape(self, element: _Element, label: str) -> Shape | None:
        context = self.context
        check_attributes(context, element, _NAME, label)
        children, _ = children_by_tag(context, element, _SHAPE_CHILDREN, label)
        geometry = children.get("geometry")
        if geometry is None or len(geometry) == 0:
            what = f"{label}: no geometry."
            context.reject("no-geometry", element, what, "Add a box, cylinder, sphere or mesh.")
            return None
        rejected = context.rejected
        kind, size, mesh = self._geometry(geometry, label)
        pose = read_pose(context, children.get("origin"), label)
        rgba = self._colour(children.get("material"), children.get(_COLOUR), label)
        friction = self._friction(children.get(_FRICTION), label)
        if context.rejected > rejected:
            return None
        return Shape(kind, size, pose, rgba, mesh, element.get("name") or "", friction)

    def _friction(self, element: _Element | None, label: str) -> float | None:
        """Coulomb's coefficient of a shape, in our dialect."""
        if element is None:
            return None
        thing = "coefficient of friction"
        value = read_number(self.context, element, "value", label, thing=thing)
        if value is not None and not value >= 0.0:
            what = f"{label}: a coefficient of friction of {value:g}."
            self.context.reject("friction", element, what, "Give a number that is not negative.")
            return None
        return value

    def _geometry(self, geometry: _Element, label: str) -> tuple[str, Vector, str]:
        """Kind, size and mesh file of a shape."""
        context = self.context
        check_attributes(context, geometry, frozenset(), label)
        element, *others = geometry
        for other in others:
            ignore_element(context, other, label)
        if element.tag == "mesh":
            return self._mesh(element, label)
        if element.tag == _SHAPE:
            size = read_numbers(context, element, "size", (), label) or ()
            return element.get("kind") or "", size, element.get("mesh") or ""
        if element.tag not in _GEOMETRIES:
            what = f"{label}: unknown geometry <{prefixed_tag(element.tag)}>."
            context.reject("geometry", element, what, "Use a box, cylinder, sphere or mesh.")
            return "", (), ""
        size = ()
        for attribute, count in _GEOMETRIES[element.tag]:
            size += self._size(element, attribute, count, label)
        check_attributes(context, element, _GEOMETRY_ATTRIBUTES[element.tag], label)
        return element.tag, size, ""

    def _size(self, element: _Element, attribute: str, count: int, label: str) -> Vector:
        context, thing = self.context, f"{element.tag} {attribute}"
        if element.get(attribute) is None:
            what = f"{label}: <{element.tag}> without {attribute}."
            context.reject("geometry", element, what, "Give it in metres.")
            return ()
        values = read_numbers(context, element, attribute, (count,), label, thing=thing) or ()
        if min(values, default=0.0) < 0.0:
            what = f"{label}: {thing} {element.get(attribute)} is negative."
            context.reject("geometry", element, what, "Give its size in metres.")
        return values

    def _mesh(self, element: _Element, label: str) -> tuple[str, Vector, str]:
        context = self.context
        context.report.read["meshes"] += 1
        check_attributes(context, element, frozenset({"filename", "scale"}), label)
        filename = element.get("filename")
        if not filename:
            what = f"{label}: <mesh> without filename."
            context.reject("geometry", element, what, "Name the mesh file.")
        size = read_numbers(context, element, "scale", (3,), label, thing="mesh scale") or ()
        return "mesh", size, filename or ""

    def _colour(
        self, material: _Element | None, colour: _Element | None, label: str
    ) -> Colour | None:
        context = self.context
        if colour is not None:
            return read_colour(context, colour, label)
        if material is None:
            return None
        children, _ = children_by_tag(context, material, frozenset({"color", "texture"}), label)
        if "texture" in children:
            ignore_element(context, children["texture"], label)
        name = material.get("name") or ""
        if "color" in children:
            return read_colour(context, children["color"], label)
        if name not in self.materials and "texture" not in children:
            what = f"{label}: material {quote(name)}"
            context.ignore(material, what, "its colour is not defined")
        return self.materials.get(name)


def _rotate_moments(inertia: Vector, rotation: Array) -> Vector:
    """The six moments in other axes."""
    ixx, ixy, ixz, iyy, iyz, izz = inertia
    matrix = rotate_inertia(rotation, [[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
    return tuple(matrix[np.triu_indices(3)].tolist())


def read_colour(context: Context, element: _Element, label: str) -> Colour | None:
    """The rgba of a ``<color>``, None if absent or bad."""
    values = read_numbers(context, element, "rgba", (4,), label, thing="color rgba")
    return None if values is None else (values[0], values[1], values[2], values[3])


def read_materials(context: Context, root: _Element) -> dict[str, Colour]:
    """Colours by material name; those of the robot override those inside links."""
    colours: dict[str, Colour] = {}
    for element in (*root.iterfind("material"), *root.iter("material")):
        name, colour = element.get("name"), element.find("color")
        if not name or colour is None or name in colours:
            continue
        values = tuple(map(parse_number, (colour.get("rgba") or "").split()))
        if len(values) == 4 and all(map(math.isfinite, values)):
            colours[name] = values
        elif element.getparent() is root:
            what = f"material {quote(name)}: rgba {quote(colour.get('rgba') or '')} is no colour."
            context.warn("colour", colour, what, "Give four numbers from 0 to 1.")
    return colours
