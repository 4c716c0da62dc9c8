# SPDX-License-Identifier: BSD-3-Clause
"""What callers of the C code see: its name, its arrays, and a comment that says what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

import numpy as np

from phistar.backends.c.tokens import CPrecision, IdentifierScope, comment_safe, identifier
from phistar.model.configuration import quaternion_tolerances
from phistar.model.joints import JointLabels
from phistar.model.model import Model
from phistar.scalar.program import ScalarProgram, Signature
from phistar.thresholds import POLICY

_ARRAY_MEANINGS = {
    "q": "configuration",
    "v": "velocities",
    "vdot": "accelerations, rates of v",
    "tau": "generalised forces",
    "f_ext": "external forces on the links in their own axes, moment [N m] then force [N]",
}
_JOINT_ARRAYS = ("v", "vdot", "tau")
"""Arrays with one entry for each degree of freedom."""


@dataclass(frozen=True)
class JointInfo:
    """A joint: its name, its kind, where its coordinates are and what they are."""

    name: str
    kind: str
    q: slice
    v: slice
    labels: JointLabels


@dataclass(frozen=True)
class RobotInfo:
    """What the C files tell about a robot.

    Attributes:
        name: As its file says; any text.
        nq, nv: Sizes of configurations and of joint vectors.
        joints: Independent joints in the order of their coordinates.
        links: Names of the moving links, in the order of vectors over links.
        gravity: [m/s²].
    """

    name: str
    nq: int
    nv: int
    joints: Sequence[JointInfo] = ()
    links: Sequence[str] = ()
    gravity: Sequence[float] = ()

    @staticmethod
    def of(model: Model) -> RobotInfo:
        """What a model tells."""
        joints = []
        for name in model.joint_names:
            joint = model.joints[name]
            joints.append(
                JointInfo(name, joint.kind, joint.q_slice, joint.v_slice, joint.joint_kind.labels)
            )
        links = [body.link for body in model.bodies]
        gravity = [float(x) for x in model.gravity]
        return RobotInfo(model.name, model.nq, model.nv, joints, links, gravity)


@dataclass(frozen=True)
class Origin:
    """Where a program comes from, for the comment above it.

    Attributes:
        title: Its name, e.g. ``forward_dynamics``.
        formula: The operator expression as text; several lines are fine.
        reference: The paper and the place in it.
        notes: More that callers should know, a line each.
        robot: The robot it is for.
        meanings: What arrays hold that their names and sizes do not say.
    """

    title: str = ""
    formula: str = ""
    reference: str = ""
    notes: Sequence[str] = ()
    robot: RobotInfo | None = None
    meanings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Interface:
    """A C function as its callers see it.

    Attributes:
        name: Of the function.
        real: Precision.
        inputs, outputs: (name in the program, name in C, size).
        work_entries: Numbers of workspace that the caller gives; 0 if none.
        work_name: What it is called.
        sizes: Names of sizes, e.g. ``{"q": "PANDA_NQ"}``; others are written as numbers.
        has_quaternions: Whether q has quaternions.
    """

    name: str
    real: CPrecision
    inputs: Sequence[tuple[str, str, int]]
    outputs: Sequence[tuple[str, str, int]]
    work_entries: int
    work_name: str
    sizes: dict[str, str] = field(default_factory=dict)
    has_quaternions: bool = False

    @property
    def work_size_macro(self) -> str:
        """The macro that tells the size of the workspace."""
        return f"{self.name.upper()}_WORK"

    @property
    def arguments(self) -> list[str]:
        """Names in C, in order."""
        names = [c for _, c, _ in (*self.inputs, *self.outputs)]
        return [*names, self.work_name] if self.work_entries else names

    def prototype(self) -> str:
        """The declaration, without what ends it."""
        listed = [f"const {self._array(*each)}" for each in self.inputs]
        listed += [self._array(*each) for each in self.outputs]
        if self.work_entries:
            listed.append(f"{self.real.type} {self.work_name}[{self.work_size_macro}]")
        lead = f"void {self.name}("
        one = f"{lead}{', '.join(listed) or 'void'})"
        return one if len(one) <= 96 else lead + (",\n" + " " * len(lead)).join(listed) + ")"

    def _array(self, name: str, c: str, size: int) -> str:
        # An array of nothing is not C; nothing is read from or written to it.
        return f"{self.real.type} {c}[{self.sizes.get(name, max(size, 1))}]"


def interface(
    name: str,
    program: ScalarProgram,
    real: CPrecision,
    work: int,
    robot: RobotInfo | None = None,
    stem: str = "",
) -> Interface:
    """The C function of a program.

    Args:
        name: Name of the function, an identifier.
        program: The program.
        real: Precision.
        work: Numbers of workspace that it needs.
        robot: Whose sizes may stand in the prototype.
        stem: What size macros begin with; empty for numbers.
    """
    signature = program.signature
    names = IdentifierScope([name])
    inputs = [
        (n, names.unique_name(identifier(n, "in")), size) for n, size in signature.inputs.items()
    ]
    outputs = [
        (n, _output_name(names, n, signature), size) for n, size in signature.outputs.items()
    ]
    sizes = {}
    if robot is not None and stem:
        for each, size in (*signature.inputs.items(), *signature.outputs.items()):
            if each == "q" and size == robot.nq > 0:
                sizes[each] = f"{stem.upper()}_NQ"
            elif each in _JOINT_ARRAYS and size == robot.nv > 0:
                sizes[each] = f"{stem.upper()}_NV"
    given = work if work * real.bytes > POLICY.max_c_stack_bytes else 0
    work_name = names.unique_name("work")
    quaternions = bool(signature.quaternions)
    return Interface(name, real, inputs, outputs, given, work_name, sizes, quaternions)


def _output_name(names: IdentifierScope, name: str, signature: Signature) -> str:
    suffix = "_out" if name in signature.inputs else ""
    return names.unique_name(f"{identifier(name, 'out')}{suffix}")


def generator_version() -> str:
    """The generator and its version."""
    return f"phistar {version('phistar')}"


def function_comment(face: Interface, origin: Origin, operations: int) -> list[str]:
    """Lines of the comment above a function."""
    robot = origin.robot
    title = comment_safe(origin.title) or face.name
    lines = [f'{title} of the robot "{comment_safe(robot.name)}".' if robot else f"{title}.", ""]
    if origin.formula:
        lines += [f"    {comment_safe(line)}" for line in origin.formula.splitlines()] + [""]
    if origin.reference:
        lines += [f"Reference: {comment_safe(origin.reference)}.", ""]
    for label, arrays in (("in ", face.inputs), ("out", face.outputs)):
        lines += [
            f"  {label} {c}[{size}]{_meaning(name, size, origin)}" for name, c, size in arrays
        ]
    if face.work_entries:
        kilobytes = -(-face.work_entries * face.real.bytes // 1024)
        lines.append(
            f"  tmp {face.work_name}[{face.work_entries}]: {kilobytes} KB, need not be set"
        )
    lines += ["", "Arrays must not overlap. Nothing is allocated, no state is kept."]
    lines.append(f"It takes {operations} arithmetic operations, sines and cosines.")
    if face.has_quaternions:
        lines.append(quaternion_note(face.real))
    return [*lines, *map(comment_safe, origin.notes)]


def _meaning(name: str, size: int, origin: Origin) -> str:
    known = origin.meanings.get(name) or _ARRAY_MEANINGS.get(name)
    if known:
        return f": {comment_safe(known)}"
    shown = f" {comment_safe(name)}" if name != identifier(name) else ""
    if is_over_links(name, size, origin):
        return f":{shown} a vector over links"
    return f":{shown}" if shown else ""


def is_over_links(name: str, size: int, origin: Origin) -> bool:
    """Whether an array has six entries for each link."""
    known = ("q", *_JOINT_ARRAYS, *origin.meanings)
    links = () if origin.robot is None else origin.robot.links
    return name not in known and size == 6 * len(links) > 0


def length_tolerances(real: CPrecision) -> tuple[float, float]:
    """``quaternion_tolerances`` of a precision."""
    return quaternion_tolerances(np.dtype(np.float32 if real.bytes == 4 else np.float64))


def quaternion_note(real: CPrecision) -> str:
    """What callers should know about quaternions."""
    most = length_tolerances(real)[1] / 2
    return (
        f"Quaternions in q whose length is one within {most:.1g} are made unit first; "
        "with others, what depends on them is not a number."
    )


def joint_layout(robot: RobotInfo) -> Iterator[str]:
    """Lines that say where each joint's coordinates are, in which units."""
    yield "Joint vectors (v, rates of it, forces) are ordered as v. SI units, angles in radians."
    yield ""
    for joint in robot.joints:
        what, unit, rate, force = joint.labels
        start = f"  q{_index_range(joint.q)}  v{_index_range(joint.v)}  "
        start += f"{comment_safe(joint.name)}, {joint.kind}"
        yield f"{start}: {what} [{unit}], v [{rate}], force [{force}]"
    if robot.gravity:
        yield ""
        yield f"Where gravity acts it is {', '.join(f'{g:g}' for g in robot.gravity)} m/s^2."


def link_order(robot: RobotInfo) -> Iterator[str]:
    """Lines that say which six entries of a vector over links belong to which link."""
    yield "Vectors over links have six entries a link, angular before linear, in link axes:"
    for k, link in enumerate(robot.links):
        yield f"  [{6 * k}..{6 * k + 5}]  {comment_safe(link)}"


def _index_range(part: slice) -> str:
    last = part.stop - 1
    return f"[{part.start}]" if last <= part.start else f"[{part.start}..{last}]"
