# SPDX-License-Identifier: BSD-3-Clause
"""URDF document -> model and report: errors for what is wrong, warnings for what is sloppy.

Every problem is collected, with ``file:line``, before any is raised. Meshes are never opened.
Elements beyond plain URDF are described in ``dialect``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from phistar.errors import IgnoredWarning, ModelError, PhistarError, Problem
from phistar.loaders.load_report import Entry, LoadReport
from phistar.loaders.robot_source import Source
from phistar.loaders.urdf.context import (
    XACRO_CURE,
    Context,
    prefixed_tag,
    quote,
    split_tag,
    top_level_lines,
)
from phistar.loaders.urdf.dialect import DRAKE_NAMESPACE, NAMESPACE, qname
from phistar.loaders.urdf.drive import read_motors, read_rotors
from phistar.loaders.urdf.extensions import ExtensionReader
from phistar.loaders.urdf.joint import JointReader
from phistar.loaders.urdf.link import GROUND_ATTRIBUTE, LinkReader, read_materials
from phistar.loaders.urdf.values import Vector, check_attributes, ignore_element, read_flag
from phistar.loaders.xml import parse_xml
from phistar.model.builder import ROOT_JOINT, MimicMode, ModelBuilder
from phistar.model.joints import Free
from phistar.model.model import Model
from phistar.model.problems import joint_problems, link_problems
from phistar.model.tree import GROUND_NAME, mimic_problems, structure_problems

if TYPE_CHECKING:
    from lxml.etree import _Element

FOREST_ATTRIBUTE = qname("forest")
_ROBOT_ATTRIBUTES = frozenset({"name", "version", FOREST_ATTRIBUTE})
_JOINTS = frozenset({"joint", f"{{{DRAKE_NAMESPACE}}}joint"})
# A joint that could not be read leaves a gap in the tree; these codes only restate it.
_CONSEQUENT_CODES = frozenset({"two-roots", "cycle"})
_MASS_SETTINGS = frozenset({"settotalmass", "boundmass", "boundinertia", "inertiafromgeom"})


def read_urdf(
    source: Source,
    *,
    floating_base: bool = False,
    mimic: MimicMode = "reduce",
    gravity: ArrayLike | None = None,
    report: LoadReport | None = None,
) -> tuple[Model, LoadReport]:
    """Read a URDF document.

    Args:
        source: The document.
        floating_base: Put a free joint named ``root_joint`` under the root link.
        mimic: ``"reduce"`` lets mimic joints share their leader's coordinates, ``"independent"``
            gives them coordinates of their own.
        gravity: (3,) [m/s^2]; default: the file's, else (0, 0, -9.81).
        report: Filled even when an error is raised.

    Returns:
        The model, and the report of what was read, used, defaulted and ignored.

    Raises:
        ModelError: With every error found.
        UnsafeFileError: A DOCTYPE, too large or nested too deep.
    """
    report = LoadReport(source.name, "urdf") if report is None else report
    report.format = "urdf"
    reader = _UrdfReader(source, report)
    reader.read(_parsed(source, report))
    if gravity is not None:
        reader.builder.gravity = gravity
    return reader.build(floating_base, mimic), report


def _parsed(source: Source, report: LoadReport) -> _Element:
    try:
        return parse_xml(source, report)
    except ModelError as error:
        report.problems += error.problems
        raise


class _UrdfReader:
    """Reads one document into a builder."""

    def __init__(self, source: Source, report: LoadReport) -> None:
        self.source = source
        self.report = report
        self.context = Context(source, report)
        self.builder = ModelBuilder()
        self.order: list[str] | None = None
        self.bases: dict[str, Vector] = {}
        self.single_root = True

    def read(self, root: _Element) -> None:
        """Add all elements of the document to the builder, or to the report."""
        context = self.context
        self._check_root(root)
        check_attributes(context, root, _ROBOT_ATTRIBUTES, "robot")
        self._name(root)
        self.single_root = not read_flag(context, root, FOREST_ATTRIBUTE, "robot")
        grounds = self._grounds(root)
        links = LinkReader(context, self.builder, read_materials(context, root))
        joints = JointReader(context, self.builder, read_rotors(context, root), grounds)
        extra = ExtensionReader(context, self.builder)
        later: list[tuple[int, _Element]] = []
        motors: list[tuple[int, _Element]] = []
        lines = top_level_lines(self.source)
        for index, element in enumerate(root):
            context.line = lines[index] if lines else 0
            if element.tag == "link":
                if element.get("name") not in grounds:
                    links.read(element)
            elif element.tag in _JOINTS:
                joints.read(element)
            elif element.tag in extra.handlers:
                later.append((context.line, element))
            elif element.tag == "transmission":
                motors.append((context.line, element))
            else:
                self._skip_element(element)
        self._repair_mimics()
        self._actuate(motors)
        extra.start()
        for context.line, element in later:
            extra.read(element)
        self.order, self.bases = extra.order, extra.bases
        context.close()

    def _check_root(self, root: _Element) -> None:
        if root.tag == "robot":
            return
        namespace, local = split_tag(root.tag)
        if local != "robot":
            what = f"the root element is <{prefixed_tag(root.tag)}>, expected <robot>."
            cures = {"mujoco": "Load it as MJCF.", "sdf": "SDF is not supported; convert it."}
            cure = cures.get(local, "Is this the right file?")
            self.context.error("wrong-root", root, what, cure)
            raise ModelError(self.report.errors)
        if namespace:
            # A default namespace is ignored: its elements are those of plain URDF.
            prefix = f"{{{namespace}}}"
            for element in root.iter(f"{prefix}*"):
                element.tag = element.tag.removeprefix(prefix)

    def _name(self, root: _Element) -> None:
        name = root.get("name")
        if not name:
            name = PurePath(self.source.name).stem.strip("<>") or "robot"
            what = "the <robot> has no name."
            self.context.warn("no-robot-name", root, what, f"It is called '{name}'.")
            self.context.default(root, "robot name", name)
        self.builder.name = name

    def _grounds(self, root: _Element) -> dict[str, str]:
        """Names of the links that are the ground."""
        if NAMESPACE.encode() not in self.source.data:
            return {}
        context = self.context
        return {
            link.get("name") or "": GROUND_NAME
            for link in root.iterfind("link")
            if read_flag(context, link, GROUND_ATTRIBUTE, f"link {quote(link.get('name') or '')}")
        }

    def _actuate(self, motors: list[tuple[int, _Element]]) -> None:
        """Give motors to the joints of transmissions."""
        moving = {joint.name for joint in self.builder.joints if joint.joint_kind.nv}
        for self.context.line, element in motors:
            self.report.read["transmission elements"] += 1
            self.builder.actuate(*read_motors(self.context, element, moving))

    def _repair_mimics(self) -> None:
        """Make joints that follow a fixed one independent."""
        joints = self.builder.joints
        if not any(joint.mimic for joint in joints):
            return
        fixed = {joint.name for joint in joints if joint.joint_kind.nv == 0}
        for index, joint in enumerate(joints):
            if joint.mimic is None or joint.mimic.joint not in fixed:
                continue
            joints[index] = replace(joint, mimic=None)
            what = f'joint "{joint.name}" mimics "{joint.mimic.joint}", which is fixed.'
            cure = "It moves on its own; make it fixed, or let it follow a moving joint."
            self.report.add_problem("warning", "mimic-fixed", joint.where, what, cure)

    def _skip_element(self, element: _Element) -> None:
        """List an element without effect on the model."""
        tag = element.tag
        name = f"{prefixed_tag(tag)} elements"
        self.report.read[name] += 1
        if tag in ("gazebo", "mujoco"):
            self._simulator(element)
        elif tag != "material":
            ignore_element(self.context, element, "")

    def _simulator(self, element: _Element) -> None:
        """Settings of Gazebo and MuJoCo: listed, and warned of where they change the dynamics."""
        target = element.get("reference")
        label = f"<{element.tag}>" + (f" of {quote(target)}" if target else "")
        names = sorted({prefixed_tag(child.tag) for child in element})
        self.context.ignore(element, label, f"settings of a simulator: {', '.join(names)}")
        changes = [
            name
            for compiler in element.iterfind("compiler")
            for name in compiler.keys()  # noqa: SIM118  (an lxml element contains its children)
            if name in _MASS_SETTINGS and compiler.get(name) != "false"
        ]
        weightless = {"turnGravityOff": ("true", "1"), "gravity": ("false", "0")}
        changes += [
            tag
            for tag, values in weightless.items()
            for child in element.iterfind(tag)
            if (child.text or "").strip().lower() in values
        ]
        if changes:
            what = f"{label}: {', '.join(changes)} changes the dynamics in that simulator only."
            cure = "It is ignored; every link has its own mass and weight here."
            self.context.warn("simulator", element, what, cure, IgnoredWarning)

    def build(self, floating_base: bool, mimic: MimicMode) -> Model:
        """The model, or every reason why there is none."""
        report, builder = self.report, self.builder
        report.read["links"] += len(builder.links)
        report.read["joints"] += len(builder.joints)
        if report.errors:
            self._explain()
        order = self._coordinates(floating_base, mimic)
        try:
            model = builder.build(
                floating_base=floating_base, mimic=mimic, single_root=self.single_root, order=order
            )
        except PhistarError:
            self._explain()
            raise
        report.problems = _in_file_order([*report.problems, *model.problems])
        _list_used(report, model)
        return model

    def _coordinates(self, floating_base: bool, mimic: MimicMode) -> list[str] | None:
        """The file's order and configurations, adapted to the caller's options."""
        builder = self.builder
        if mimic == "independent" and any(joint.mimic for joint in builder.joints):
            if self.order is not None or builder.configurations:
                note = "made for mimic joints that are reduced"
                entry = Entry(self.source.name, "phistar:order and phistar:configuration", note)
                self.report.ignored.append(entry)
            builder.configurations = {}
            return None
        if not floating_base:
            return self.order
        origin = Free().neutral()
        for name, values in builder.configurations.items():
            base = self.bases.get(name, origin)
            builder.configurations[name] = (*base, *values)  # type: ignore[misc]
        return None if self.order is None else [ROOT_JOINT, *self.order]

    def _explain(self) -> None:
        """Raise every error of the file; returns if there is none."""
        links, joints = self.builder.links, self.builder.joints
        problems: list[Problem] = structure_problems(links, joints, single_root=self.single_root)
        if self.context.incomplete:
            problems = [problem for problem in problems if problem.code not in _CONSEQUENT_CODES]
        problems += mimic_problems(joints) + link_problems(links) + joint_problems(joints)
        if not links and b"xacro" in self.source.data:
            problems = [replace(p, cure=XACRO_CURE) if p.code == "no-link" else p for p in problems]
        source = self.source.name
        problems = [p if p.where else replace(p, where=source) for p in problems]
        self.report.problems = _in_file_order([*self.report.problems, *problems])
        self.report.raise_errors()


def _in_file_order(problems: list[Problem]) -> list[Problem]:
    def line(problem: Problem) -> int:
        number = problem.where.rpartition(":")[2]
        return int(number) if number.isdecimal() else 0

    return sorted(problems, key=line)


def _list_used(report: LoadReport, model: Model) -> None:
    """One line per kind of what went into the model."""
    joints = model.joints.values()
    heavy = sum(link.mass > 0 for link in model.links)
    fixed = sum(joint.joint_kind.nv == 0 for joint in joints)
    followers = sum(joint.mimic is not None for joint in joints)
    shapes = sum(len(link.visuals) + len(link.collisions) for link in model.links)
    rows = {
        "links": f"{len(model.links)}, {heavy} of them with mass, {model.total_mass:g} kg in all",
        "joints": f"{len(model.joint_names)} independent, {followers} mimic, {fixed} fixed",
        "shapes": f"{shapes}, meshes not opened",
    }
    if model.actuated:
        rows["actuated joints"] = f"{len(model.actuated)}, those of transmissions"
    report.used += [Entry("", what, note) for what, note in rows.items()]
