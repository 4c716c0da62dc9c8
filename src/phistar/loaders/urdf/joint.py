# SPDX-License-Identifier: BSD-3-Clause
"""``<joint>`` elements -> joints: kind, placement, limits, drive, mimic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

from phistar.errors import ArgumentError, close_matches
from phistar.loaders.urdf.context import Context, quote, split_tag
from phistar.loaders.urdf.dialect import DRAKE_KIND_OF_TYPE, DRAKE_NAMESPACE, KIND_OF_TYPE, qname
from phistar.loaders.urdf.drive import (
    DYNAMICS,
    LIMITS,
    Rotor,
    read_drive,
    read_limits,
    without_effect,
)
from phistar.loaders.urdf.fast_elements import fast_joint, fast_name
from phistar.loaders.urdf.values import (
    Vector,
    check_attributes,
    children_by_tag,
    read_axis,
    read_number,
    read_pose,
)
from phistar.model.builder import ModelBuilder
from phistar.model.components import Joint, Mimic
from phistar.model.joints import JOINT_KINDS, Axis, JointKind, make_kind

if TYPE_CHECKING:
    from lxml.etree import _Element

_AXIS2, _PITCH = qname("axis2"), qname("pitch")
_CHILD_ORIGIN, _REFERENCE = qname("child_origin"), qname("reference")
_THREAD_PITCH = f"{{{DRAKE_NAMESPACE}}}screw_thread_pitch"

_ENDS = frozenset({"parent", "child"})
_CHILDREN = _ENDS | {"origin", "axis", "limit", "dynamics", "mimic", _AXIS2, _PITCH, LIMITS}
_CHILDREN |= {_CHILD_ORIGIN, _REFERENCE, DYNAMICS, _THREAD_PITCH}
_JOINT_ATTRIBUTES = frozenset({"name", "type"})
_LINK_ATTRIBUTE = frozenset({"link"})
_MIMIC_ATTRIBUTES = frozenset({"joint", "multiplier", "offset"})
_FAST_KINDS = frozenset({"revolute", "prismatic"})
_DEFAULT_AXIS = (1.0, 0.0, 0.0)
_PARAMETERS = {name: len(fields(cls)) for name, cls in JOINT_KINDS.items()}
_KINDS_WITHOUT_PARAMETERS = {
    name: make_kind(name) for name, count in _PARAMETERS.items() if count == 0
}


class JointReader:
    """Converts ``<joint>`` elements to joints of a builder.

    Attributes:
        rotors: Motors by joint name, from the transmissions.
        grounds: Names of links that are the ground -> the ground's own name.
    """

    def __init__(
        self,
        context: Context,
        builder: ModelBuilder,
        rotors: Mapping[str, Rotor],
        grounds: Mapping[str, str],
    ) -> None:
        self.context = context
        self.builder = builder
        self.rotors = rotors
        self.grounds = grounds
        self._kinds: dict[tuple[str, Axis], JointKind] = {}

    def read(self, element: _Element) -> None:
        """Add the joint of one element."""
        if (plain := self._plain(element)) is not None:
            self.builder.joints.append(plain)
            return
        context = self.context
        name = context.name(element)
        label = f'joint "{name or "(unnamed)"}"'
        check_attributes(context, element, _JOINT_ATTRIBUTES, label)
        children, _ = children_by_tag(context, element, _CHILDREN, label, fatal=_ENDS)
        parent = self._end(element, children, "parent", label)
        child = self._end(element, children, "child", label)
        motion = self._joint_kind(element, children, label)
        limits = read_limits(context, element, motion, children, label)
        drive = read_drive(context, motion, children, self.rotors.get(name or ""), label)
        origin = read_pose(context, children.pop("origin", None), label)
        child_pose = read_pose(context, children.pop(_CHILD_ORIGIN, None), label)
        reference = self._value(children.pop(_REFERENCE, None), label)
        mimic = self._mimic(children.pop("mimic", None), motion, label)
        for unused in children.values():
            note = f"a {motion.name} joint has none"
            context.ignore(unused, f"{label}: <{split_tag(unused.tag)[1]}>", note)
        if not (name and parent and child):
            context.incomplete = True
            return
        self.builder.joints.append(
            Joint(
                name,
                motion,
                self.grounds.get(parent, parent),
                child,
                origin,
                child_pose,
                reference,
                limits,
                drive,
                mimic,
                where=context.where(element),
            )
        )

    def _plain(self, element: _Element) -> Joint | None:
        """A revolute or prismatic joint with an origin, an axis and limits, and nothing else."""
        name, kind = fast_name(element, others=1), element.get("type")
        if name is None or kind not in _FAST_KINDS or element.tag != "joint" or name in self.rotors:
            return None
        children = fast_joint(element)
        if children is None:
            return None
        motion = self._kind(kind, children["axis"])
        parent, where = children["parent"], self.context.where(element)
        return Joint(
            name,
            motion,
            self.grounds.get(parent, parent),
            children["child"],
            children["origin"],
            limits=children["limit"],
            drive=without_effect(type(motion))[1],
            where=where,
        )

    def _kind(self, name: str, axis: Axis) -> JointKind:
        """A joint kind with one parameter."""
        kind = self._kinds.get((name, axis))
        if kind is None:
            kind = self._kinds[name, axis] = make_kind(name, axis)
        return kind

    def _end(
        self, joint: _Element, children: dict[str, _Element], side: str, label: str
    ) -> str | None:
        """Name of the parent or child link."""
        element = children.pop(side, None)
        if element is None:
            what = f"{label}: element <{side}> is missing."
            self.context.error(f"no-{side}", joint, what, f'Add <{side} link="..."/>.')
            return None
        check_attributes(self.context, element, _LINK_ATTRIBUTE, label)
        link = element.get("link")
        if not link:
            what = f"{label}: <{side}> names no link."
            self.context.error(f"no-{side}", element, what, f'Write <{side} link="..."/>.')
        return link

    def _value(self, element: _Element | None, label: str) -> float:
        """The ``value`` of an element that must have one; zero if there is no element."""
        if element is None:
            return 0.0
        name = split_tag(element.tag)[1]
        if element.get("value") is None:
            what = f"{label}: <{name}> without value."
            self.context.error("no-value", element, what, 'Write value="...".')
        return read_number(self.context, element, "value", label, thing=name) or 0.0

    def _kind_name(self, element: _Element, label: str) -> str:
        """Kind named by the type attribute; fixed if it is missing or unknown, after an error."""
        kinds = DRAKE_KIND_OF_TYPE if element.tag != "joint" else KIND_OF_TYPE
        text = element.get("type")
        if not text:
            what = f"{label} has no type."
            self.context.error("no-type", element, what, f"Types: {', '.join(kinds)}.")
            return "fixed"
        kind = kinds.get(text.removeprefix("phistar:"))
        if kind is None:
            close = close_matches(text, kinds, 1)
            hint = f"Did you mean '{close[0]}'? " if close else ""
            what = f"{label} has unknown type {quote(text)}."
            self.context.error("unknown-type", element, what, f"{hint}Types: {', '.join(kinds)}.")
            return "fixed"
        return kind

    def _joint_kind(
        self, element: _Element, children: dict[str, _Element], label: str
    ) -> JointKind:
        name = self._kind_name(element, label)
        parameters = _PARAMETERS[name]
        if not parameters:
            return _KINDS_WITHOUT_PARAMETERS[name]
        drake = element.tag != "joint"
        axis = self._axis(element, children.pop("axis", None), label, name, drake)
        if parameters == 1:
            return self._kind(name, axis)
        if name == "helical":
            return make_kind(name, axis, pitch=self._pitch(element, children, label))
        return self._universal(element, axis, children.pop(_AXIS2, None), label, drake)

    def _axis(
        self, joint: _Element, element: _Element | None, label: str, kind: str, drake: bool
    ) -> tuple[float, float, float]:
        if element is not None:
            return read_axis(self.context, element, label) or _DEFAULT_AXIS
        # Drake's planar joints move in the joint frame's own x-y plane.
        axis = (0.0, 0.0, 1.0) if drake and kind == "planar" else _DEFAULT_AXIS
        text = " ".join(f"{x:g}" for x in axis)
        self.context.default(joint, label, f"no <axis>: {text}")
        if kind == "planar" and not drake:
            what = f"{label}: a planar joint without <axis> moves in the plane normal to x."
            cure = 'So the specification says, other programs take z; add <axis xyz="0 0 1"/>.'
            self.context.warn("planar-axis", joint, what, cure)
        return axis

    def _pitch(self, joint: _Element, children: dict[str, _Element], label: str) -> float:
        """Advance of a helical joint [m/rad]; Drake gives it per turn."""
        value, per_turn = children.pop(_PITCH, None), children.pop(_THREAD_PITCH, None)
        if value is not None:
            return self._value(value, label)
        if per_turn is not None:
            return self._value(per_turn, label) / (2 * math.pi)
        what = f"{label}: a helical joint needs a pitch."
        self.context.error("no-pitch", joint, what, 'Add <phistar:pitch value="..."/> in m/rad.')
        return 0.0

    def _universal(
        self, joint: _Element, axis: Vector, second: _Element | None, label: str, drake: bool
    ) -> JointKind:
        axis2 = (0.0, 1.0, 0.0)
        if second is not None:
            axis2 = read_axis(self.context, second, label) or axis2
        elif not drake:
            what = f"{label}: a universal joint needs a second axis."
            self.context.error("no-axis2", joint, what, 'Add <phistar:axis2 xyz="..."/>.')
        try:
            return make_kind("universal", axis, axis2=axis2)
        except ArgumentError as error:
            self.context.error("parallel-axes", joint, f"{label}: {error}.", "Change one of them.")
            return make_kind("fixed")

    def _mimic(self, element: _Element | None, motion: JointKind, label: str) -> Mimic | None:
        if element is None:
            return None
        context = self.context
        check_attributes(context, element, _MIMIC_ATTRIBUTES, label)
        leader = element.get("joint")
        if not leader:
            what = f"{label}: <mimic> without joint."
            context.error("mimic-no-joint", element, what, "Name the joint it follows.")
            return None
        multiplier = read_number(context, element, "multiplier", label, thing="mimic multiplier")
        offset = read_number(context, element, "offset", label, thing="mimic offset")
        if motion.nv == 0:
            context.ignore(element, f"{label}: <mimic>", "a fixed joint follows nothing")
            return None
        return Mimic(leader, 1.0 if multiplier is None else multiplier, offset or 0.0)
