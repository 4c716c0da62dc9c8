# SPDX-License-Identifier: BSD-3-Clause
"""Frames, loops, couplings, gravity, orders and configurations of the URDF dialect."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from phistar.arrays import Array
from phistar.errors import pluralize
from phistar.loaders.urdf.context import Context, prefixed_tag, quote
from phistar.loaders.urdf.dialect import LOOP_KINDS, qname
from phistar.loaders.urdf.values import (
    ORIGIN_ATTRIBUTES,
    Vector,
    check_attributes,
    children_by_tag,
    read_axis,
    read_flag,
    read_number,
    read_numbers,
    read_pose,
)
from phistar.model.builder import ModelBuilder
from phistar.model.components import Coupling
from phistar.model.tree import NameHints

if TYPE_CHECKING:
    from lxml.etree import _Element

WORLD = "world"
_ORIGIN = frozenset({"origin"})
_FRAME_ATTRIBUTES = frozenset({"name", "link"})
_ENDS = (qname("predecessor"), qname("successor"))
_LOOP_CHILDREN = frozenset({*_ENDS, "axis"})
_LOOP_ATTRIBUTES = frozenset({"name", "type", "active"})
_ACTUATOR_ATTRIBUTES = frozenset({"name", "gain", "bias", "ctrlrange", "forcerange"})
_COUPLING_ATTRIBUTES = frozenset(
    {"name", "joint", "source", "coefficients", "references", "active"}
)


class ExtensionReader:
    """Adds the dialect's other elements to a builder, after all links and joints."""

    def __init__(self, context: Context, builder: ModelBuilder) -> None:
        self.context = context
        self.builder = builder
        self.links: set[str] = set()
        self.joints: set[str] = set()
        self.hints: dict[str, NameHints] = {}
        self.frames: set[str] = set()
        self.order: list[str] | None = None
        self.bases: dict[str, Vector] = {}
        self.handlers = {
            "frame": self._plain_frame,
            qname("frame"): self._frame,
            qname("loop"): self._loop,
            qname("coupling"): self._coupling,
            qname("gravity"): self._gravity,
            qname("order"): self._order,
            qname("configuration"): self._configuration,
            qname("actuator"): self._actuator,
        }

    def start(self) -> None:
        """Register the links and joints, which must all have been read."""
        self.links = {link.name for link in self.builder.links}
        self.joints = {joint.name for joint in self.builder.joints}
        self.hints = {"link": NameHints(self.links), "joint": NameHints(self.joints)}

    def read(self, element: _Element) -> None:
        """Add one top-level element; its tag is a key of ``handlers``."""
        self.context.report.read[f"{prefixed_tag(element.tag)} elements"] += 1
        self.handlers[element.tag](element)

    def _known(
        self, element: _Element, attribute: str, kind: str, names: Iterable[str], label: str
    ) -> str | None:
        """The name in an attribute, if it is one of ``names``."""
        name = element.get(attribute) or ""
        if name in names:
            return name
        what = f"{label} refers to unknown {kind} {quote(name)}."
        cure = self.hints[kind].hint(name, f"Name a {kind} of the robot.")
        self.context.error(f"unknown-{kind}", element, what, cure)
        return None

    def _frame(self, element: _Element) -> None:
        """``<phistar:frame>``, placed by its ``<origin>``."""
        label = f"frame {quote(element.get('name') or '')}"
        check_attributes(self.context, element, _FRAME_ATTRIBUTES, label)
        children, _ = children_by_tag(self.context, element, _ORIGIN, label)
        pose = read_pose(self.context, children.get("origin"), label)
        name, link = self._frame_names(element, label)
        if name in self.frames or name in self.links:
            what = f"{label} has the name of another frame or link."
            self.context.error("duplicate-frame", element, what, "Rename it.")
        elif name and link:
            self.frames.add(name)
            self.builder.frame(name, link, pose=pose)

    def _plain_frame(self, element: _Element) -> None:
        """Drake's ``<frame>``, placed by its own attributes."""
        label = f"frame {quote(element.get('name') or '')}"
        pose = read_pose(self.context, element, label, _FRAME_ATTRIBUTES | ORIGIN_ATTRIBUTES)
        name, link = self._frame_names(element, label)
        if name in self.frames or name in self.links:
            self.context.ignore(element, label, "another frame or link has that name")
        elif name and link:
            self.frames.add(name)
            self.builder.frame(name, link, pose=pose)

    def _frame_names(self, element: _Element, label: str) -> tuple[str | None, str | None]:
        name = self.context.name(element)
        return name, self._known(element, "link", "link", self.links, label)

    def _loop(self, element: _Element) -> None:
        context = self.context
        name = self.context.name(element)
        label = f"loop {quote(name or '')}"
        check_attributes(context, element, _LOOP_ATTRIBUTES, label)
        kind = element.get("type") or ""
        if kind not in LOOP_KINDS:
            what = f"{label} has unknown type {quote(kind)}."
            context.error("loop-type", element, what, f"Types: {', '.join(LOOP_KINDS)}.")
        children, _ = children_by_tag(context, element, _LOOP_CHILDREN, label)
        ends = [self._loop_end(element, children.get(tag), tag, label) for tag in _ENDS]
        axis = read_axis(context, children["axis"], label) if "axis" in children else None
        if name and all(link is not None for link, _ in ends):
            (first, first_pose), (second, second_pose) = ends
            self.builder.loop(
                name,
                kind,
                first or "",
                second or "",
                predecessor_pose=first_pose,
                successor_pose=second_pose,
                axis=axis or (0.0, 0.0, 1.0),
                active=read_flag(context, element, "active", label) is not False,
                where=context.where(element),
            )

    def _loop_end(
        self, loop: _Element, element: _Element | None, tag: str, label: str
    ) -> tuple[str | None, Array | None]:
        if element is None:
            side = tag.partition("}")[2]
            what = f"{label}: element <phistar:{side}> is missing."
            self.context.error("loop-end", loop, what, "A loop joins two links.")
            return None, None
        names = self.links if element.get("link") != WORLD else {WORLD}
        link = self._known(element, "link", "link", names, label)
        children, _ = children_by_tag(self.context, element, _ORIGIN, label)
        return link, read_pose(self.context, children.get("origin"), label)

    def _coupling(self, element: _Element) -> None:
        context = self.context
        name = self.context.name(element)
        label = f"coupling {quote(name or '')}"
        check_attributes(context, element, _COUPLING_ATTRIBUTES, label)
        joint = self._known(element, "joint", "joint", self.joints, label)
        source: str | None = ""
        if element.get("source"):
            source = self._known(element, "source", "joint", self.joints, label)
        coefficients = read_numbers(
            context, element, "coefficients", (), label, thing="coefficients"
        )
        pair = read_numbers(context, element, "references", (2,), label, thing="references")
        if not coefficients:
            what = f"{label} has no coefficients."
            context.error("coupling", element, what, 'Add coefficients="0 1".')
        elif name and joint and source is not None:
            references = (pair[0], pair[1]) if pair else (0.0, 0.0)
            active = read_flag(context, element, "active", label) is not False
            where = context.where(element)
            self.builder.couple(
                Coupling(name, joint, source, coefficients, references, active, where)
            )

    def _actuator(self, element: _Element) -> None:
        """``<phistar:actuator>``: what drives joints, see ``model.actuators.Actuator``."""
        context, name = self.context, self.context.name(element)
        label = f"actuator {quote(name or '')}"
        check_attributes(context, element, _ACTUATOR_ATTRIBUTES, label)
        if name in {each.name for each in self.builder.actuators}:
            what = f"{label} has the name of another actuator."
            context.error("duplicate-actuator", element, what, "Rename it.")
            return
        kinds = {joint.name: joint.joint_kind for joint in self.builder.joints}
        driven: dict[str, float] = {}
        for row in (child for child in element if child.tag == qname("joint")):
            joint = self._known(row, "name", "joint", self.joints, label)
            if joint is not None and kinds[joint].nv != 1:
                what = f'{label} drives the {kinds[joint].name} joint "{joint}".'
                cure = "Actuators are on joints with one coordinate."
                context.error("actuator-joint", row, what, cure)
            elif joint is not None:
                gear = read_number(context, row, "gear", label, thing="gear")
                driven[joint] = 1.0 if gear is None else gear
        numbers = self._actuator_numbers(element, label)
        if not driven:
            what = f"{label} drives no joint."
            context.error("actuator-joint", element, what, 'Add <phistar:joint name="..."/>.')
        elif name:
            where = context.where(element)
            self.builder.actuator(
                name, tuple(driven), gear=tuple(driven.values()), where=where, **numbers
            )

    def _actuator_numbers(self, element: _Element, label: str) -> dict[str, Vector]:
        """Gain, bias and ranges, as far as they are given."""
        found: dict[str, Vector] = {}
        for name, size in {"gain": 3, "bias": 3, "ctrlrange": 2, "forcerange": 2}.items():
            values = read_numbers(
                self.context, element, name, (size,), label, thing=name, infinite=size == 2
            )
            if values is None:
                continue
            if size == 2 and not values[0] <= values[1]:
                what = f"{label}: {name} is from {values[0]:g} to {values[1]:g}."
                self.context.error("actuator-range", element, what, "Swap or correct them.")
                continue
            found[name] = values
        return found

    def _gravity(self, element: _Element) -> None:
        gravity = read_numbers(self.context, element, "xyz", (3,), "robot", thing="gravity")
        if gravity is not None:
            self.builder.gravity = gravity

    def _order(self, element: _Element) -> None:
        independent = [j.name for j in self.builder.joints if j.joint_kind.nv and j.mimic is None]
        rows = [child for child in element if child.tag == qname("joint")]
        names = [row.get("name") or "" for row in rows]
        if sorted(names) != sorted(independent):
            listed = pluralize(len(names), "joint")
            what = f"phistar:order lists {listed}, not every independent joint once."
            cure = f"The independent joints are: {', '.join(independent[:12])}."
            self.context.error("order", element, what, cure)
        else:
            self.order = names

    def _configuration(self, element: _Element) -> None:
        name = self.context.name(element)
        label = f"configuration {quote(name or '')}"
        values = read_numbers(self.context, element, "values", (), label, thing="values")
        size = sum(joint.nq for joint in self.builder.joints)
        if values is None or len(values) != size:
            count = 0 if values is None else len(values)
            what = f"{label} needs {size} values, got {count}."
            self.context.error("configuration", element, what, "One per coordinate, in order.")
        elif name:
            self.builder.configurations[name] = values
            base = read_numbers(self.context, element, "base", (7,), label, thing="base")
            if base is not None:
                self.bases[name] = base
