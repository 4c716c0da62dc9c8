# SPDX-License-Identifier: BSD-3-Clause
"""Transforms of quantities across the joints of a robot, and the frames of expression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from phistar.compile import Kernel
from phistar.explain.text_layout import align_columns, format_number, format_vector, truncate_lines
from phistar.model.components import GROUND, Body
from phistar.model.joints import JointKind
from phistar.model.model import Model
from phistar.spatial import rotation_to_rpy
from phistar.sweeps.ops import OPS

MAX_JOINT_KINDS_LISTED = 12
"""Largest number of different joint maps listed."""

_COMPONENTS = ("nx", "ny", "nz", "fx", "fy", "fz")


def crossing_lines(program: Kernel, model: Model | None) -> Iterator[str]:
    """The crossings of a program, then each different joint of the robot."""
    streams = program.schedule.program
    used = {streams.nodes[stream].op for stream in streams.live()}
    crossings = [row for row in OPS.values() if row.name in used and row.crossing]
    if not crossings:
        yield "nothing crosses a joint"
    yield from (row.crossing for row in sorted(crossings, key=lambda row: row.shift is None))
    if model is None:
        return
    counts = Counter((body.joint_kind, any(body.armature)) for body in model.bodies)
    kinds: Counter[tuple[str, ...]] = Counter()
    for (motion, rotors), times in counts.items():
        kinds[_kind(motion, rotors, articulated="articulated_downdate" in used)] += times
    for (title, *lines), times in kinds.most_common(MAX_JOINT_KINDS_LISTED):
        yield from (f"{times} x {title}", *lines)
    if len(kinds) > MAX_JOINT_KINDS_LISTED:
        yield f"... and joints with {len(kinds) - MAX_JOINT_KINDS_LISTED} other maps"


def _kind(motion: JointKind, rotors: bool, articulated: bool) -> tuple[str, ...]:
    """A joint kind: a title and indented lines."""
    size = motion.nv
    about = " ".join((type(motion).__doc__ or "").split()).split(". ")[0].rstrip(".")
    lines = [f"{motion.name}, d = {size}: {about.replace('``', '')}", f"  H x = {_rows(motion)}"]
    if articulated:
        shape = "a number" if size == 1 else f"{size} x {size}"
        inertia = f"  D is {shape}{', rotor inertia included' if rotors else ''}; G is 6 x {size}"
        if size == 6 and not rotors:
            lines.append(f"{inertia}: G = I and P⁺ = 0, no inertia crosses")
        else:
            lines.append(f"{inertia}; P⁺ is P less a part of rank {size}")
    return tuple(lines)


def _rows(motion: JointKind) -> str:
    """The rows of H as combinations of the components of a force."""
    rows = []
    for column in motion.motion_map().T:
        terms = [(x, name) for x, name in zip(column, _COMPONENTS, strict=True) if x]
        rows.append(" ".join(_term(x, name, k == 0) for k, (x, name) in enumerate(terms)))
    return rows[0] if len(rows) == 1 else f"({', '.join(rows)})"


def _term(x: float, name: str, first: bool) -> str:
    size = "" if abs(x) == 1 else f"{format_number(abs(x))} "
    if first:
        return f"{'-' if x < 0 else ''}{size}{name}"
    return f"{'-' if x < 0 else '+'} {size}{name}"


def frame_lines(program: Kernel, model: Model | None) -> Iterator[str]:
    """The conventions, then each link's frame in its parent's with its axis."""
    assert model is not None
    yield "vectors are [angular; linear], at the origin and in the axes of each link's own frame"
    yield "a link's frame is its joint's frame moved by X(q); the latter is placed in the parent at"
    names = link_labels(model)
    rows = [("link", "parent", "xyz [m]", "roll, pitch, yaw [rad]", "axis")]
    rows += [_frame(names, body) for body in model.bodies]
    yield from truncate_lines([f"  {line}" for line in align_columns(rows)])
    yield f"the ground is the world frame; gravity {format_vector(model.gravity)} m/s² in its axes"


def link_labels(model: Model) -> list[str]:
    """Names of the bodies; those in the middle of a compound joint are numbered."""
    last = {body.link: body.index for body in model.bodies}
    first: dict[str, int] = {}
    for body in model.bodies:
        first.setdefault(body.link, body.index)
    return [
        b.link if b.index == last[b.link] else f"{b.link}, part {b.index - first[b.link] + 1}"
        for b in model.bodies
    ]


def _frame(names: list[str], body: Body) -> tuple[str, str, str, str, str]:
    parent = "ground" if body.parent == GROUND else names[body.parent]
    axis = getattr(body.joint_kind, "axis", None)
    xyz, angles = body.placement[:3, 3], rotation_to_rpy(body.placement[:3, :3])
    return (
        names[body.index],
        parent,
        format_vector(xyz),
        format_vector(angles),
        format_vector(axis) if axis else "-",
    )
