# SPDX-License-Identifier: BSD-3-Clause
"""A larger or smaller robot of the same build.

Lengths are multiplied by one factor, masses by another. Everything else follows, so that the robot
moves in the same way in the same gravity, slower by the square root of the length (Froude):

    time √l    inertia m l²    force m    moment m l    angles and their configurations 1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.components import (
    Coupling,
    Drive,
    Frame,
    Joint,
    Limits,
    Link,
    Loop,
    Shape,
    frozen,
)
from phistar.model.editing import edited_actuators
from phistar.model.editing.parts import Edit, Parts, by_joint, finite_number
from phistar.model.joints import JointKind
from phistar.model.model import Model

_LENGTHS = frozenset({"pitch"})
"""Numbers of joint kinds that are lengths [m, m/rad]."""


class Scale:
    """Factors of a scaled robot.

    Attributes:
        length, mass: The given ones.
        time: Of durations in the same gravity.
    """

    def __init__(self, length: float, mass: float) -> None:
        self.length = length
        self.mass = mass
        self.time = math.sqrt(length)

    def of_unit(self, unit: str) -> float:
        """Of a coordinate or velocity: lengths grow, angles and quaternions do not."""
        return self.length if unit.startswith("m") else 1.0

    def position(self, vector: Array) -> Array:
        """A vector of lengths."""
        return frozen(self.length * vector, vector.shape)

    def pose(self, pose: Array) -> Array:
        """A pose at the scaled place."""
        moved = pose.copy()
        moved[:3, 3] *= self.length
        return frozen(moved, (4, 4))


def scaled(model: Model, length: float, mass: float | None) -> Edit:
    """The model with other lengths and masses; see ``Edited.scaled``."""
    size = _factor(length, "length")
    weight = size**3 if mass is None else _factor(mass, "mass")
    scale = Scale(size, weight)
    parts = Parts.of(model)
    named = {
        key: {
            name: frozen(value * _coordinates(model.joints[name], scale), value.shape)
            for name, value in by_joint(model, q).items()
        }
        for key, q in model.configurations.items()
    }
    made = replace(
        parts,
        links=tuple(_link(link, scale) for link in parts.links),
        joints=tuple(_joint(model, joint, scale) for joint in parts.joints),
        frames=tuple(Frame(f.name, f.link, scale.pose(f.pose)) for f in parts.frames),
        loops=tuple(_loop(model, loop, scale) for loop in parts.loops),
        configurations=named,
        actuators=edited_actuators.scaled(
            parts.actuators, lambda name: _one(model.joints[name], scale), weight * size, scale.time
        ),
    ).build()
    note = f"lengths times {size:g}, masses times {weight:g}, by scaled"
    # What was doubtful before is so in any size.
    return Edit(made, "size", note, frozenset(problem.code for problem in model.problems))


def _factor(value: float, name: str) -> float:
    factor = finite_number(value, f"{name} of scaled")
    if factor <= 0.0:
        raise ArgumentError(f"{name} of scaled is {factor:g}, expected a factor above 0")
    return factor


def _coordinates(joint: Joint, scale: Scale) -> Sequence[float]:
    return [scale.of_unit(unit) for unit in joint.joint_kind.q_units]


def _one(joint: Joint, scale: Scale) -> float:
    """The factor of a joint with one coordinate."""
    return scale.of_unit(joint.joint_kind.q_units[0])


def _link(link: Link, scale: Scale) -> Link:
    inertia = scale.mass * scale.length**2
    return replace(
        link,
        mass=link.mass * scale.mass,
        com=scale.position(link.com),
        inertia=frozen(inertia * link.inertia, (3, 3)),
        visuals=tuple(_shape(shape, scale) for shape in link.visuals),
        collisions=tuple(_shape(shape, scale) for shape in link.collisions),
    )


def _shape(shape: Shape, scale: Scale) -> Shape:
    plain = (1.0, 1.0, 1.0) if shape.kind == "mesh" and not shape.size else shape.size
    size = tuple(scale.length * x for x in plain)
    return replace(shape, size=size, pose=scale.pose(shape.pose))


def _joint(model: Model, joint: Joint, scale: Scale) -> Joint:
    mimic = joint.mimic
    if mimic is not None:
        own, leader = _one(joint, scale), _one(model.joints[mimic.joint], scale)
        factor, offset = mimic.multiplier * own / leader, mimic.offset * own
        mimic = replace(mimic, multiplier=factor, offset=offset)
    reference = joint.reference * _one(joint, scale) if joint.reference else 0.0
    return replace(
        joint,
        joint_kind=_kind(joint, scale),
        origin=scale.pose(joint.origin),
        child_pose=scale.pose(joint.child_pose),
        reference=reference,
        limits=_limits(joint, scale),
        drive=_drive(joint, scale),
        mimic=mimic,
    )


def _kind(joint: Joint, scale: Scale) -> JointKind:
    kind = joint.joint_kind
    lengths = {}
    for each in fields(kind):
        value = getattr(kind, each.name)
        if isinstance(value, float):
            if each.name not in _LENGTHS:
                raise ArgumentError(
                    f"joint '{joint.name}' is of kind '{kind.name}', of which scaled does not know "
                    f"whether '{each.name}' is a length; lock it, or build the robot anew"
                )
            lengths[each.name] = value * scale.length
    return replace(kind, **lengths) if lengths else kind


def _rows(joint: Joint, values: Sequence[float], factors: Sequence[float]) -> tuple[float, ...]:
    return tuple(x * factor for x, factor in zip(values, factors, strict=True))


def _limits(joint: Joint, scale: Scale) -> Limits:
    limits, places = joint.limits, _coordinates(joint, scale)
    speeds = [scale.of_unit(unit) for unit in joint.joint_kind.v_units]
    if not limits.velocity:
        return limits
    return Limits(
        _rows(joint, limits.lower, places),
        _rows(joint, limits.upper, places),
        _rows(joint, limits.velocity, [x / scale.time for x in speeds]),
        _rows(joint, limits.effort, [scale.mass * scale.length / x for x in speeds]),
    )


def _drive(joint: Joint, scale: Scale) -> Drive:
    """A force is a moment m l by the length of its coordinate; the rest are ratios of it."""
    drive = joint.drive
    if not drive.armature:
        return drive
    lengths = [scale.of_unit(unit) for unit in joint.joint_kind.v_units]
    moment = scale.mass * scale.length
    forces = [moment / x for x in lengths]
    inertias = [f * scale.length / x for f, x in zip(forces, lengths, strict=True)]
    return replace(
        drive,
        armature=_rows(joint, drive.armature, inertias),
        rotor_inertia=tuple(x * moment * scale.length for x in drive.rotor_inertia),
        gear_ratio=_rows(joint, drive.gear_ratio, [1.0 / x for x in lengths]),
        damping=_rows(
            joint, drive.damping, [f * scale.time / x for f, x in zip(forces, lengths, strict=True)]
        ),
        friction=_rows(joint, drive.friction, forces),
        stiffness=_rows(
            joint, drive.stiffness, [f / x for f, x in zip(forces, lengths, strict=True)]
        ),
        spring_reference=_rows(joint, drive.spring_reference, _coordinates(joint, scale)),
    )


def _loop(model: Model, loop: Loop, scale: Scale) -> Loop:
    if isinstance(loop, Coupling):
        own = _one(model.joints[loop.joint], scale)
        other = _one(model.joints[loop.source], scale) if loop.source else 1.0
        y0, x0 = loop.references
        return replace(
            loop,
            coefficients=tuple(c * own / other**k for k, c in enumerate(loop.coefficients)),
            references=(y0 * own, x0 * other),
        )
    return replace(
        loop,
        predecessor_pose=scale.pose(loop.predecessor_pose),
        successor_pose=scale.pose(loop.successor_pose),
        size=loop.size * scale.length,
    )
