# SPDX-License-Identifier: BSD-3-Clause
"""How quantities cross the joints of a robot, and the frames that they are written in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from phistar.compile import Kernel
from phistar.explain.layout import capped, columns, number, triple
from phistar.model.joints import JointKind
from phistar.model.model import Model
from phistar.model.parts import GROUND, Body
from phistar.spatial import rotation_to_rpy

MOST_KINDS = 12
"""Joints with different maps that are listed."""

_CROSSINGS = {
    "shout": "φ*(p,k) y      a motion, parent to link: by the joint's fixed placement, then X(q)",
    "shin": "φ(k,j) x       a force, child to link: turned and moved back the same way",
    "cong": "φ(k,j) S φ*    an inertia, child to link: moved on both sides",
    "H": "H x            the joint's share of a force x = [n; f], moment and force",
    "Ht": "H* x           the motion of the link when its joint moves by x",
    "outcong": "φ* S φ         a compliance, parent to link: moved on both sides",
    "give": "(I - G H) and its adjoint on both sides let a compliance through a joint that yields",
    "turn": "δ ×* P⁺ - P⁺ δ ×   how P⁺ changes in the axes of the parent as the joint moves by δ",
    "through": "(I - G H) and its adjoint on both sides let a change of inertia through the joint",
    "outsim": "φ* S φ*⁻¹      motions per motion, parent to link",
    "bend": "S + H* B*      a joint that yields adds its own motion",
    "down": "P⁺ = P - G U*  what is left of P across a joint that yields: U = P H*, G = U D⁻¹",
}
"""What happens at a joint, by the operation of ``sweeps.ir`` that does it."""

_COMPONENTS = ("nx", "ny", "nz", "fx", "fy", "fz")


def crossing(program: Kernel, model: Model | None) -> Iterator[str]:
    """The crossings that a program does, then each joint of the robot that is unlike the others."""
    streams = program.schedule.program
    used = {streams.nodes[stream].op for stream in streams.live()}
    if not used & set(_CROSSINGS):
        yield "nothing crosses a joint"
    yield from (line for op, line in _CROSSINGS.items() if op in used)
    if model is None:
        return
    alike = Counter((body.motion, any(body.armature)) for body in model.bodies)
    kinds: Counter[tuple[str, ...]] = Counter()
    for (motion, rotors), times in alike.items():
        kinds[_kind(motion, rotors, articulated="down" in used)] += times
    for (title, *lines), times in kinds.most_common(MOST_KINDS):
        yield from (f"{times} x {title}", *lines)
    if len(kinds) > MOST_KINDS:
        yield f"... and joints with {len(kinds) - MOST_KINDS} other maps"


def _kind(motion: JointKind, rotors: bool, articulated: bool) -> tuple[str, ...]:
    """What a joint lets pass: a title and indented lines."""
    size = motion.nv
    about = " ".join((type(motion).__doc__ or "").split()).split(". ")[0].rstrip(".")
    lines = [f"{motion.name}, d = {size}: {about.replace('``', '')}", f"  H x = {_rows(motion)}"]
    if articulated:
        own = "a number" if size == 1 else f"{size} x {size}"
        inertia = f"  D is {own}{', rotor inertia included' if rotors else ''}; G is 6 x {size}"
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
    size = "" if abs(x) == 1 else f"{number(abs(x))} "
    if first:
        return f"{'-' if x < 0 else ''}{size}{name}"
    return f"{'-' if x < 0 else '+'} {size}{name}"


def frames(program: Kernel, model: Model | None) -> Iterator[str]:
    """The conventions, then each link's frame in its parent's with its axis."""
    assert model is not None
    yield "vectors are [angular; linear], at the origin and in the axes of each link's own frame"
    yield "a link's frame is its joint's frame moved by X(q); the latter sits in the parent at"
    names = link_labels(model)
    rows = [("link", "parent", "xyz [m]", "roll, pitch, yaw [rad]", "axis")]
    rows += [_frame(names, body) for body in model.bodies]
    yield from capped([f"  {line}" for line in columns(rows)])
    yield f"the ground is the world frame; gravity {triple(model.gravity)} m/s² in its axes"


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
    axis = getattr(body.motion, "axis", None)
    xyz, turn = body.placement[:3, 3], rotation_to_rpy(body.placement[:3, :3])
    return names[body.index], parent, triple(xyz), triple(turn), triple(axis) if axis else "-"
