# SPDX-License-Identifier: BSD-3-Clause
"""Two robots joined: one is mounted on a frame of the other, tool on arm or arm on cart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.components import Coupling, Frame, Joint, Link, Loop, frozen
from phistar.model.configuration import neutral
from phistar.model.editing.edited_actuators import renamed
from phistar.model.editing.frames import checked_pose
from phistar.model.editing.parts import Edit, Parts, by_joint
from phistar.model.joints import Fixed
from phistar.model.kinematic_loops import WORLD
from phistar.model.model import Model
from phistar.model.tree import GROUND_NAME
from phistar.spatial import pose_product

MOUNT = "mount"
"""Name, after the prefix, of the fixed joint that carries the root link of what is attached."""


def attach(model: Model, other: Model, frame: str, pose: ArrayLike | None, prefix: str) -> Edit:
    """The model with another one on a frame; see ``Edited.attach``."""
    if not isinstance(prefix, str):
        raise ArgumentError(f"prefix is {prefix!r}, expected a text")
    offset = checked_pose(pose, "pose of what is attached")
    if frame == WORLD and frame not in model.frames:
        link, seat = GROUND_NAME, frozen(offset, (4, 4))
    else:
        carrier = model.frame(frame)
        link, seat = carrier.link, frozen(pose_product(carrier.pose, offset), (4, 4))
    added = _on_seat(_prefixed(Parts.of(other), prefix), link, seat, prefix)
    parts = Parts.of(model)
    _refuse_equal_names(model, parts, added, prefix)
    made = Parts(
        parts.name,
        (*parts.links, *added.links),
        (*parts.joints, *added.joints),
        (*parts.frames, *added.frames),
        (*parts.loops, *added.loops),
        parts.gravity,
        _configurations(model, other, prefix),
        (*parts.order, *added.order),
        (*parts.actuated, *added.actuated),
        (*parts.actuators, *added.actuators),
    ).build()
    note = f"'{other.name}' on '{frame}', added by attach"
    return Edit(made, "robot", note)


def _prefixed(parts: Parts, prefix: str) -> Parts:
    """The parts with a prefix to all names but those of the ground.

    ``"world"`` is one of them unless a link has that name, as in every MJCF file.
    """
    own = {link.name for link in parts.links}
    ground = {GROUND_NAME, WORLD, ""} - own

    def new(name: str) -> str:
        return name if name in ground else prefix + name

    joints = [
        replace(
            joint,
            name=new(joint.name),
            parent=new(joint.parent),
            child=new(joint.child),
            mimic=joint.mimic and replace(joint.mimic, joint=new(joint.mimic.joint)),
        )
        for joint in parts.joints
    ]
    return replace(
        parts,
        links=tuple(_prefixed_link(link, prefix) for link in parts.links),
        joints=tuple(joints),
        frames=tuple(Frame(new(f.name), new(f.link), f.pose) for f in parts.frames),
        loops=tuple(_prefixed_loop(loop, new(loop.name), prefix) for loop in parts.loops),
        order=tuple(new(name) for name in parts.order),
        actuated=tuple(new(name) for name in parts.actuated),
        actuators=renamed(parts.actuators, prefix),
    )


def _prefixed_link(link: Link, prefix: str) -> Link:
    """A link whose shapes have the prefix, too, if they have names: contacts are known by them."""
    visuals, collisions = (
        tuple(replace(x, name=prefix + x.name) if x.name else x for x in shapes)
        for shapes in (link.visuals, link.collisions)
    )
    excluded = tuple(prefix + name for name in link.excluded)
    return replace(
        link, name=prefix + link.name, visuals=visuals, collisions=collisions, excluded=excluded
    )


def _prefixed_loop(loop: Loop, name: str, prefix: str) -> Loop:
    if isinstance(loop, Coupling):
        source = loop.source and prefix + loop.source
        return replace(loop, name=name, joint=prefix + loop.joint, source=source)
    ends = (loop.predecessor, loop.successor)
    first, second = (end if end == WORLD else prefix + end for end in ends)
    return replace(loop, name=name, predecessor=first, successor=second)


def _on_seat(parts: Parts, link: str, seat: Array, prefix: str) -> Parts:
    """The parts with the ground replaced by a place on a link."""
    joints = [
        replace(j, parent=link, origin=_moved(seat, j.origin)) if j.parent == GROUND_NAME else j
        for j in parts.joints
    ]
    carried = {joint.child for joint in joints}
    roots = [x.name for x in parts.links if x.name not in carried]
    for root in roots:
        name = f"{prefix}{MOUNT}" if len(roots) == 1 else f"{root}_{MOUNT}"
        joints.append(Joint(name, Fixed(), link, root, seat))
    loops = tuple(_loop_on_seat(loop, link, seat) for loop in parts.loops)
    return replace(parts, joints=tuple(joints), loops=loops)


def _loop_on_seat(loop: Loop, link: str, seat: Array) -> Loop:
    if isinstance(loop, Coupling):
        return loop
    if loop.predecessor == WORLD:
        moved = _moved(seat, loop.predecessor_pose)
        loop = replace(loop, predecessor=link, predecessor_pose=moved)
    if loop.successor == WORLD:
        loop = replace(loop, successor=link, successor_pose=_moved(seat, loop.successor_pose))
    return loop


def _moved(seat: Array, pose: Array) -> Array:
    return frozen(pose_product(seat, pose), (4, 4))


def _refuse_equal_names(model: Model, parts: Parts, added: Parts, prefix: str) -> None:
    """Names must stay unique: say which one is not."""
    frames = [*(link.name for link in added.links), *(frame.name for frame in added.frames)]
    rows = (
        ("frame", {*model.frames, *model.link_table}, frames),
        ("joint", set(model.joints), [x.name for x in added.joints]),
        ("loop", {x.name for x in parts.loops}, [x.name for x in added.loops]),
        ("actuator", {x.name for x in parts.actuators}, [x.name for x in added.actuators]),
    )
    for kind, taken, names in rows:
        if twice := [name for name in names if name in taken]:
            cure = "give another prefix" if prefix else "give a prefix, such as prefix='tool_'"
            raise ArgumentError(
                f"both robots have a {kind} named '{twice[0]}' ({len(twice)} such names); {cure}"
            )


def _configurations(model: Model, other: Model, prefix: str) -> Mapping[str, Mapping[str, Array]]:
    """Configurations that either robot has; where one of them has none, it is at home."""
    result = {}
    for name in dict.fromkeys((*model.configurations, *other.configurations)):
        own = by_joint(model, _named(model, name))
        theirs = by_joint(other, _named(other, name))
        result[name] = {**own, **{prefix + joint: value for joint, value in theirs.items()}}
    return result


def _named(model: Model, name: str) -> Array:
    named = model.configurations
    return np.asarray(named[name] if name in named else named.get("home", neutral(model)))
