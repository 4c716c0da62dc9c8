# SPDX-License-Identifier: BSD-3-Clause
"""Joints that are held where they are: they become fixed joints, their coordinates go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, kind_of
from phistar.model.components import Coupling, Joint, Loop, frozen
from phistar.model.configuration import configuration
from phistar.model.editing.edited_actuators import with_held_joints
from phistar.model.editing.parts import Edit, Parts, by_joint
from phistar.model.joints import Fixed
from phistar.model.model import Model
from phistar.model.tree import resolve_mimics
from phistar.spatial import pose_product

COUPLING_TOLERANCE = 1e-9
"""How far [rad or m] two locked joints may be from the coupling between them."""


def lock(model: Model, joints: Mapping[str, ArrayLike]) -> Edit:
    """The model with joints fixed at values in their own coordinates; see ``Edited.lock``."""
    held = _held_values(model, joints)
    made = []
    for joint in model.joints.values():
        made.append(_fixed(joint, held[joint.name]) if joint.name in held else joint)
    parts = Parts.of(model)
    loops = tuple(x for loop in parts.loops for x in _coupling_after(model, loop, held))
    actuators = with_held_joints(parts.actuators, held)
    edited = replace(parts, joints=tuple(made), loops=loops, actuators=actuators).build()
    texts = [f"{name} = {_text(value)}" for name, value in held.items()]
    return Edit(edited, "locked joints", f"{', '.join(texts)}, by lock")


def _held_values(model: Model, joints: Mapping[str, ArrayLike]) -> dict[str, Array]:
    """Values by name of what was asked for, and of mimic joints that follow it."""
    if not isinstance(joints, Mapping):
        raise ArgumentError(
            f"lock takes a dict from joint names to values, got {kind_of(joints)}; "
            "lock({'joint': 0.3})"
        )
    laws = resolve_mimics(tuple(model.joints.values()))
    for name in joints:
        joint = model.joint(name)
        if joint.joint_kind.nv == 0:
            raise ArgumentError(f"joint '{name}' of '{model.name}' is fixed already")
        if joint.mimic is not None:
            leader = laws[name].joint
            raise ArgumentError(
                f"joint '{name}' of '{model.name}' follows '{leader}': lock '{leader}', or load "
                "the robot with mimic='independent'"
            )
    q = configuration(model, joints, "the value of lock")
    if q.ndim != 1:
        raise ArgumentError(f"lock takes one value for each joint, got a batch of {q.shape[:-1]}")
    values = by_joint(model, q)
    held = {name: values[name] for name in joints}
    for name, law in laws.items():
        if law.joint in held:
            held[name] = law.multiplier * held[law.joint] + law.offset
    return held


def _fixed(joint: Joint, value: Array) -> Joint:
    """A joint where it is at a value."""
    moved = joint.joint_kind.transform(value - joint.reference if joint.reference else value)
    origin = frozen(pose_product(joint.origin, moved), (4, 4))
    return Joint(
        joint.name, Fixed(), joint.parent, joint.child, origin, joint.child_pose, where=joint.where
    )


def _coupling_after(model: Model, loop: Loop, held: Mapping[str, Array]) -> tuple[Loop, ...]:
    """A loop of the robot with locked joints: none where nothing is left to couple."""
    if not isinstance(loop, Coupling):
        return (loop,)
    y_held, x_held = loop.joint in held, loop.source in held
    if not (y_held or x_held):
        return (loop,)
    if y_held and loop.source and not x_held:
        raise ArgumentError(
            f"coupling '{loop.name}' of '{model.name}' lets '{loop.joint}' follow "
            f"'{loop.source}': lock '{loop.source}' instead, or both, or switch the coupling off "
            f"with robot.with_loops(off=['{loop.name}'])"
        )
    y0, x0 = loop.references
    x = float(held[loop.source][0]) - x0 if x_held else 0.0
    wanted = sum(c * x**k for k, c in enumerate(loop.coefficients))
    if not y_held:
        return (replace(loop, source="", coefficients=(wanted,), references=(y0, 0.0)),)
    gap = float(held[loop.joint][0]) - y0 - wanted
    if loop.active and not abs(gap) <= COUPLING_TOLERANCE:
        raise ArgumentError(
            f"coupling '{loop.name}' of '{model.name}' is open by {gap:g} at the values of lock; "
            f"lock '{loop.joint}' at {y0 + wanted:g}"
        )
    return ()


def _text(value: Array) -> str:
    numbers = [f"{x:.6g}" for x in np.ravel(value)]
    return numbers[0] if len(numbers) == 1 else f"[{', '.join(numbers)}]"
