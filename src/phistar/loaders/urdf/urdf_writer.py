# SPDX-License-Identifier: BSD-3-Clause
"""Model -> URDF text that our reader reads as the same model, bit for bit.

Standard URDF is used where it suffices, so that other readers understand it. The rest is in
elements and attributes of the namespace ``urn:phistar:urdf``, which they skip; a joint that they
would get wrong without it has a type of that namespace, so that they reject it.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.loaders.urdf.context import MAX_NAME_CHARACTERS
from phistar.loaders.urdf.dialect import NAMESPACE, qname
from phistar.model import GROUND_NAME, Coupling, Joint, Link, LoopJoint, Model, Shape, make_pose
from phistar.model.actuators import Actuator
from phistar.model.components import IDENTITY, Drive, Limits
from phistar.model.model import STANDARD_GRAVITY
from phistar.spatial import rotation_to_rpy

if TYPE_CHECKING:
    from lxml.etree import _Element


_DIALECT_PREFIX = qname("")
_TYPES = {"free": "floating"}
_SIZES = {"box": 3, "sphere": 1, "cylinder": 2}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MAX_FLOAT = sys.float_info.max


def export_urdf(model: Model) -> str:
    """The model as a URDF document.

    Args:
        model: Any model.

    Returns:
        XML text; ``read_urdf`` makes an equal model of it. Warnings, file positions and mesh files
        are not part of it.

    Raises:
        ArgumentError: A name is empty, too long, or has a character that XML does not allow.
    """
    from lxml import etree

    root = etree.Element("robot", nsmap={"phistar": NAMESPACE})
    writer = _UrdfWriter(root, etree.SubElement)
    _set(root, {"name": model.name})
    writer.colors(model.links)
    writer.ground(model)
    for link in model.links:
        writer.link(link)
    for joint in model.joints.values():
        writer.joint(joint)
    if not np.array_equal(model.gravity, STANDARD_GRAVITY):
        writer.add(root, f"{_DIALECT_PREFIX}gravity", xyz=_numbers(model.gravity))
    for frame in model.frames.values():
        if frame.name not in model.link_table:
            element = writer.add(root, f"{_DIALECT_PREFIX}frame", name=frame.name, link=frame.link)
            writer.origin(element, frame.pose)
    for loop in model.loops:
        writer.loop(loop)
    writer.transmissions(model.actuated)
    for actuator in model.actuators:
        writer.actuator(actuator)
    writer.order(model)
    for name, q in model.configurations.items():
        writer.add(root, f"{_DIALECT_PREFIX}configuration", name=name, values=_numbers(q))
    etree.cleanup_namespaces(root)
    text = etree.tostring(root, pretty_print=True, encoding="unicode")
    return f'<?xml version="1.0"?>\n{text}'


def _number(value: float) -> str:
    """Shortest text that reads back as the same number."""
    return repr(float(value)).removesuffix(".0")


def _numbers(values: Iterable[float]) -> str:
    return " ".join(_number(x) for x in np.asarray(values, dtype=float).ravel())


def _set(element: _Element, attributes: Mapping[str, str]) -> None:
    for key, value in attributes.items():
        if key == "name" and not 0 < len(value) <= MAX_NAME_CHARACTERS:
            _reject_name(element, value)
        bad = _NOT_XML.search(value)
        if bad:
            raise ArgumentError(f"XML cannot hold the character {bad.group()!r} of {value!r}")
        element.set(key, value)


def _reject_name(element: _Element, name: str) -> None:
    """Raise for names that the reader would reject or replace."""
    thing = str(element.tag).rpartition("}")[2]
    if not name:
        raise ArgumentError(f"a {thing} without a name cannot be written as URDF: give it one")
    raise ArgumentError(
        f"the name of a {thing} has {len(name)} characters, and a URDF file holds at most "
        f"{MAX_NAME_CHARACTERS}: '{name[:40]}...'"
    )


def _is_standard(shape: Shape) -> bool:
    """Whether plain URDF has a shape."""
    if shape.kind == "mesh":
        return bool(shape.mesh) and len(shape.size) in (0, 3)
    sized = len(shape.size) == _SIZES.get(shape.kind) and min(shape.size) >= 0
    return sized and not shape.mesh


class _UrdfWriter:
    """Adds the elements of a model to the root element."""

    def __init__(self, root: _Element, sub_element: Callable[[_Element, str], _Element]) -> None:
        self.root = root
        self.sub_element = sub_element
        self.materials: dict[tuple[float, ...], str] = {}

    def add(self, parent: _Element, tag: str, **attributes: str) -> _Element:
        element = self.sub_element(parent, tag)
        _set(element, attributes)
        return element

    def origin(self, parent: _Element, pose: Array, tag: str = "origin") -> None:
        """An <origin>, or nothing for the identity."""
        if np.array_equal(pose, IDENTITY):
            return
        rotation = pose[:3, :3]
        element = self.add(parent, tag, xyz=_numbers(pose[:3, 3]))
        if np.array_equal(rotation, IDENTITY[:3, :3]):
            return
        rpy = rotation_to_rpy(rotation)
        _set(element, {"rpy": _numbers(rpy)})
        # The reader uses make_pose, so it decides whether these angles are exact.
        if not np.array_equal(make_pose(rpy=rpy)[:3, :3], rotation):
            _set(element, {f"{_DIALECT_PREFIX}rotation": _numbers(rotation)})

    def ground(self, model: Model) -> None:
        """A link that is the ground, where a joint has it as parent, and the attribute for forests.

        Other readers see a massless link that carries those joints, which is equivalent.
        """
        joints = model.joints.values()
        carried = {joint.child for joint in joints}
        roots = [link.name for link in model.links if link.name not in carried]
        if any(joint.parent == GROUND_NAME for joint in joints):
            roots.append(GROUND_NAME)
            self.add(self.root, "link", name=GROUND_NAME).set(f"{_DIALECT_PREFIX}ground", "true")
        if len(roots) > 1:
            self.root.set(f"{_DIALECT_PREFIX}forest", "true")

    def colors(self, links: Iterable[Link]) -> None:
        """One <material> for each colour of a visual."""
        shapes = (shape for link in links for shape in link.visuals)
        for rgba in dict.fromkeys(shape.rgba for shape in shapes):
            if rgba is not None:
                self.materials[rgba] = f"color{len(self.materials) + 1}"
                material = self.add(self.root, "material", name=self.materials[rgba])
                self.add(material, "color", rgba=_numbers(rgba))

    def link(self, link: Link) -> None:
        element = self.add(self.root, "link", name=link.name)
        if link.virtual:
            element.set(f"{_DIALECT_PREFIX}virtual", "true")
        if link.mass or link.com.any() or link.inertia.any():
            self._inertial(element, link)
        for tag, shapes in (("visual", link.visuals), ("collision", link.collisions)):
            for shape in shapes:
                self._shape(element, tag, shape)

    def _inertial(self, parent: _Element, link: Link) -> None:
        inertial = self.add(parent, "inertial")
        if link.com.any():
            self.add(inertial, "origin", xyz=_numbers(link.com))
        self.add(inertial, "mass", value=_number(link.mass))
        entries = {
            f"i{'xyz'[i]}{'xyz'[j]}": _number(link.inertia[i, j])
            for i in range(3)
            for j in range(i, 3)
        }
        self.add(inertial, "inertia", **entries)

    def _shape(self, parent: _Element, tag: str, shape: Shape) -> None:
        """A standard <visual> or <collision>, or one of ours that other readers skip."""
        standard = _is_standard(shape)
        element = self.add(parent, tag if standard else f"{_DIALECT_PREFIX}{tag}")
        if shape.name:
            _set(element, {"name": shape.name})
        self.origin(element, shape.pose)
        geometry = self.add(element, "geometry")
        size = _numbers(shape.size)
        if not standard:
            self.add(
                geometry, f"{_DIALECT_PREFIX}shape", kind=shape.kind, size=size, mesh=shape.mesh
            )
        elif shape.kind == "mesh":
            scale = {"scale": size} if shape.size else {}
            self.add(geometry, "mesh", filename=shape.mesh, **scale)
        elif shape.kind == "cylinder":
            radius, length = size.split()
            self.add(geometry, "cylinder", radius=radius, length=length)
        else:
            attribute = "radius" if shape.kind == "sphere" else "size"
            self.add(geometry, shape.kind, **{attribute: size})
        if shape.rgba is not None:
            self._material(element, tag, shape.rgba)

    def _material(self, parent: _Element, tag: str, rgba: tuple[float, ...]) -> None:
        if tag == "collision":
            self.add(parent, f"{_DIALECT_PREFIX}color", rgba=_numbers(rgba))
            return
        self.add(parent, "material", name=self.materials[rgba])

    def joint(self, joint: Joint) -> None:
        kind = _TYPES.get(joint.kind, joint.kind)
        if joint.reference or not np.array_equal(joint.child_pose, IDENTITY):
            kind = f"phistar:{kind}"
        element = self.add(self.root, "joint", name=joint.name, type=kind)
        self.origin(element, joint.origin)
        self.add(element, "parent", link=joint.parent)
        self.add(element, "child", link=joint.child)
        self._joint_kind(element, joint)
        self._limits(element, joint)
        self._drive(element, joint)
        if joint.mimic is not None:
            law = joint.mimic
            numbers = {"multiplier": _number(law.multiplier), "offset": _number(law.offset)}
            self.add(element, "mimic", joint=law.joint, **numbers)

    def _joint_kind(self, element: _Element, joint: Joint) -> None:
        for parameter in fields(joint.joint_kind):
            value = getattr(joint.joint_kind, parameter.name)
            if parameter.name == "axis":
                self.add(element, "axis", xyz=_numbers(value))
            elif isinstance(value, float):
                self.add(element, f"{_DIALECT_PREFIX}{parameter.name}", value=_number(value))
            else:
                self.add(element, f"{_DIALECT_PREFIX}{parameter.name}", xyz=_numbers(value))
        self.origin(element, joint.child_pose, f"{_DIALECT_PREFIX}child_origin")
        if joint.reference:
            self.add(element, f"{_DIALECT_PREFIX}reference", value=_number(joint.reference))

    def _limits(self, element: _Element, joint: Joint) -> None:
        limits, kind = joint.limits, joint.kind
        if joint.joint_kind.nv == 0:
            return
        unlimited = limits == Limits.unlimited(joint.joint_kind)
        if kind in ("revolute", "prismatic"):
            # Other readers insist on <limit> and know no infinity.
            ends = {
                k: _number(np.clip(v[0], -_MAX_FLOAT, _MAX_FLOAT)) for k, v in vars(limits).items()
            }
            self.add(element, "limit", **ends)
            exact = all(math.isfinite(v[0]) for v in vars(limits).values())
        elif kind == "continuous" and math.isfinite(limits.velocity[0] + limits.effort[0]):
            sizes = {"effort": _number(limits.effort[0]), "velocity": _number(limits.velocity[0])}
            self.add(element, "limit", **sizes)
            exact = limits.lower[0] == -math.inf and limits.upper[0] == math.inf
        else:
            exact = unlimited
        if not exact:
            lists = {name: _numbers(values) for name, values in vars(limits).items()}
            self.add(element, f"{_DIALECT_PREFIX}limits", **lists)

    def _drive(self, element: _Element, joint: Joint) -> None:
        drive = joint.drive
        passive = Drive.passive_free(joint.joint_kind)
        standard = ("damping", "friction") if joint.joint_kind.nv == 1 else ()
        changed = {k: v for k, v in vars(drive).items() if v != getattr(passive, k)}
        plain = {k: _numbers(v) for k, v in changed.items() if k in standard}
        ours = {k: _numbers(v) for k, v in changed.items() if k not in standard}
        if plain:
            self.add(element, "dynamics", **plain)
        if ours:
            self.add(element, f"{_DIALECT_PREFIX}dynamics", **ours)

    def loop(self, loop: LoopJoint | Coupling) -> None:
        active = {} if loop.active else {"active": "false"}
        if isinstance(loop, Coupling):
            attributes = {
                "joint": loop.joint,
                "source": loop.source,
                "coefficients": _numbers(loop.coefficients),
                "references": _numbers(loop.references),
            }
            self.add(
                self.root, f"{_DIALECT_PREFIX}coupling", name=loop.name, **attributes, **active
            )
            return
        element = self.add(
            self.root, f"{_DIALECT_PREFIX}loop", name=loop.name, type=loop.kind, **active
        )
        for side in ("predecessor", "successor"):
            end = self.add(element, f"{_DIALECT_PREFIX}{side}", link=getattr(loop, side))
            self.origin(end, getattr(loop, f"{side}_pose"))
        self.add(element, "axis", xyz=_numbers(loop.axis))

    def transmissions(self, joints: Iterable[str]) -> None:
        """A motor for each of the joints that have one."""
        for name in joints:
            element = self.add(self.root, "transmission", name=name)
            self.add(element, "type").text = "transmission_interface/SimpleTransmission"
            self.add(element, "joint", name=name)
            self.add(element, "actuator", name=name)

    def actuator(self, actuator: Actuator) -> None:
        """What drives joints, without what is the default."""
        plain = Actuator("", "", (), ())
        names = ("gain", "bias", "ctrlrange", "forcerange")
        told = {name: getattr(actuator, name) for name in names}
        lists = {k: _numbers(x) for k, x in told.items() if x != getattr(plain, k)}
        element = self.add(self.root, f"{_DIALECT_PREFIX}actuator", name=actuator.name, **lists)
        for joint, gear in zip(actuator.joints, actuator.gear, strict=True):
            self.add(element, f"{_DIALECT_PREFIX}joint", name=joint, gear=_number(gear))

    def order(self, model: Model) -> None:
        """The order of coordinates, where it is not that of the tree."""
        natural = [joint.name for joint in model.joints.values() if joint.nv]
        if natural == list(model.joint_names):
            return
        element = self.add(self.root, f"{_DIALECT_PREFIX}order")
        for name in model.joint_names:
            self.add(element, f"{_DIALECT_PREFIX}joint", name=name)


__all__ = ["export_urdf"]
