# SPDX-License-Identifier: BSD-3-Clause
"""Links taken off a robot, with everything that hangs on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from phistar.errors import ArgumentError
from phistar.model.components import Coupling, Loop
from phistar.model.editing.edited_actuators import without_joints
from phistar.model.editing.parts import Edit, Parts
from phistar.model.model import Model


def without(model: Model, links: Sequence[str]) -> Edit:
    """The model without links and what hangs on them; see ``Edited.without``."""
    gone, lost = _hanging_on(model, links)
    if len(gone) == len(model.links):
        raise ArgumentError(
            f"without({', '.join(map(repr, links))}) would leave nothing of '{model.name}': "
            "everything hangs on it"
        )
    _refuse_lost_leaders(model, lost)
    parts = Parts.of(model)
    made = replace(
        parts,
        links=tuple(link for link in parts.links if link.name not in gone),
        joints=tuple(joint for joint in parts.joints if joint.name not in lost),
        frames=tuple(frame for frame in parts.frames if frame.link not in gone),
        loops=tuple(loop for loop in parts.loops if _stays(model, loop, gone, lost)),
        actuators=without_joints(parts.actuators, lost, model.name),
    ).build()
    names = [link.name for link in model.links if link.name in gone and not link.virtual]
    return Edit(made, "links", f"{', '.join(names)}, taken off by without")


def _hanging_on(model: Model, links: Sequence[str]) -> tuple[set[str], set[str]]:
    """Links with all that hangs on them, and the joints that carry these."""
    for name in links:
        model.link(name)
    gone = set(links)
    joints = model.joints.values()  # parents first
    for joint in joints:
        if joint.parent in gone:
            gone.add(joint.child)
    return gone, {joint.name for joint in joints if joint.child in gone}


def _refuse_lost_leaders(model: Model, lost: set[str]) -> None:
    """A mimic joint that stays needs the joint that it follows."""
    for joint in model.joints.values():
        if joint.mimic is not None and joint.name not in lost and joint.mimic.joint in lost:
            raise ArgumentError(
                f"joint '{joint.name}' of '{model.name}' follows '{joint.mimic.joint}', which "
                f"would go: lock the joint that both follow, or take off '{joint.child}', too"
            )


def _stays(model: Model, loop: Loop, gone: set[str], lost: set[str]) -> bool:
    """Whether a loop stays; one that goes off whole, or is switched off, may go."""
    if isinstance(loop, Coupling):
        ends = [loop.joint in lost, *([loop.source in lost] if loop.source else [])]
    else:
        ends = [loop.predecessor in gone, loop.successor in gone]
    if any(ends) and not all(ends) and loop.active:
        raise ArgumentError(
            f"loop '{loop.name}' of '{model.name}' connects what would go with what stays: open it "
            f"first, robot.with_loops(off=['{loop.name}'])"
        )
    return not any(ends)
