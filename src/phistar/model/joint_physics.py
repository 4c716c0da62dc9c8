# SPDX-License-Identifier: BSD-3-Clause
"""Springs, damping, dry friction and limits of all joints as arrays over a robot's coordinates."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.components import Joint
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model

PASSIVE_PARTS = ("springs", "damping", "friction", "limits")
"""What ``passive=`` chooses from."""
FORCE_PARTS = PASSIVE_PARTS[:3]
"""Those that are forces at a state; limits are constraints."""

Passive = bool | str | Iterable[str]
"""What a user may say: all of it, nothing, or some of ``PASSIVE_PARTS``."""


def passive_parts(passive: Passive) -> tuple[str, ...]:
    """What a user chooses, in the order of ``PASSIVE_PARTS``.

    Raises:
        UnknownNameError: A name that is none of them.
        ArgumentError: Neither a bool nor names.
    """
    if isinstance(passive, (bool, np.bool_)):
        return PASSIVE_PARTS if passive else ()
    try:
        names: set[object] = {passive} if isinstance(passive, str) else set(passive)
    except TypeError:
        names = {None}
    if not all(isinstance(name, str) for name in names):
        raise ArgumentError(
            f"passive is {passive!r}, expected True, False or some of {set(PASSIVE_PARTS)}"
        )
    for name in names:
        if name not in PASSIVE_PARTS:
            raise UnknownNameError("part of the joint physics", str(name), PASSIVE_PARTS)
    return tuple(part for part in PASSIVE_PARTS if part in names)


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits and physics of the independent joints, one number per coordinate.

    What a joint does not have is infinite (limits: -inf, inf) or zero (damping, friction,
    stiffness). No number is NaN. Joints that follow others are not among them: ``robot.joints``.

    Attributes:
        lower, upper: (nq,) [rad, m], infinite for quaternions.
        velocity: (nv,) largest speed [rad/s, m/s].
        effort: (nv,) largest joint force [N m, N].
        damping: (nv,) [N m s/rad, N s/m].
        friction: (nv,) dry friction [N m, N].
        stiffness: (nv,) [N m/rad, N/m].
        spring_reference: (nq,) where springs are at rest [rad, m].
    """

    lower: Array
    upper: Array
    velocity: Array
    effort: Array
    damping: Array
    friction: Array
    stiffness: Array
    spring_reference: Array

    def __repr__(self) -> str:
        given = {
            "lower": np.isfinite(self.lower).sum(),
            "upper": np.isfinite(self.upper).sum(),
            "velocity": np.isfinite(self.velocity).sum(),
            "effort": np.isfinite(self.effort).sum(),
            "damping": np.count_nonzero(self.damping),
            "friction": np.count_nonzero(self.friction),
            "stiffness": np.count_nonzero(self.stiffness),
        }
        told = ", ".join(f"{name} {count}" for name, count in given.items() if count)
        nq, nv = len(self.lower), len(self.velocity)
        return f"<JointLimits of nq={nq}, nv={nv}: {told or 'none'}>"


@cached_on_model
def joint_limits(model: Model) -> JointLimits:
    """The numbers of a model's joints, read-only."""
    sizes = dict.fromkeys(("lower", "upper", "spring_reference"), model.nq)
    arrays = {each.name: np.zeros(sizes.get(each.name, model.nv)) for each in fields(JointLimits)}
    for joint in (model.joints[name] for name in model.joint_names):
        for name, array in arrays.items():
            values = getattr(joint.limits, name, None)
            values = getattr(joint.drive, name) if values is None else values
            array[joint.q_slice if name in sizes else joint.v_slice] = values
    for array in arrays.values():
        array.flags.writeable = False
    return JointLimits(**arrays)


@dataclass(frozen=True, eq=False)
class PassiveNumbers:
    """What joints resist with, over a robot's coordinates; mimic joints are added to their leaders.

    A follower with q' = m q + o adds m² of its damping and stiffness and |m| of its friction, and
    two springs on one coordinate are one spring. Its range is not used.

    Attributes:
        damping, friction, stiffness: (nv,).
        spring_reference: (nq,).
        lower, upper: (nv,) range of coordinates that are added to, infinite for all others.
        coordinates: (nv,) the entry of q that a velocity moves, -1 on rotations.
    """

    damping: Array
    friction: Array
    stiffness: Array
    spring_reference: Array
    lower: Array
    upper: Array
    coordinates: Array

    def has(self, part: str) -> bool:
        """Whether some joint has one of ``PASSIVE_PARTS``."""
        if part == "limits":
            return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())
        name = "stiffness" if part == "springs" else part
        return bool(getattr(self, name).any())

    def given(self, parts: Iterable[str]) -> tuple[str, ...]:
        """Those of some parts that the robot has."""
        return tuple(part for part in parts if self.has(part))


@cached_on_model
def passive_numbers(model: Model) -> PassiveNumbers:
    """Those of a model, read-only."""
    limits = joint_limits(model)
    damping, friction, stiffness = (
        np.array(x) for x in (limits.damping, limits.friction, limits.stiffness)
    )
    rest = np.array(limits.spring_reference)
    lower, upper = np.full(model.nv, -math.inf), np.full(model.nv, math.inf)
    coordinates = np.full(model.nv, -1)
    for joint in (model.joints[name] for name in model.joint_names):
        if joint.joint_kind.is_euclidean:
            coordinates[joint.v_slice] = range(joint.q_slice.start, joint.q_slice.stop)
            lower[joint.v_slice] = limits.lower[joint.q_slice]
            upper[joint.v_slice] = limits.upper[joint.q_slice]
    for joint in model.joints.values():
        if joint.mimic is not None and joint.joint_kind.nv:
            _add_follower(model, joint, (damping, friction, stiffness, rest))
    arrays = (damping, friction, stiffness, rest, lower, upper, coordinates)
    for array in arrays:
        array.flags.writeable = False
    return PassiveNumbers(*arrays)


def _add_follower(model: Model, joint: Joint, arrays: tuple[Array, ...]) -> None:
    """Add what a joint that follows another resists with to its leader's numbers."""
    assert joint.mimic is not None
    damping, friction, stiffness, rest = arrays
    body = model.bodies[joint.bodies[0]]
    m, offset = body.scale, body.offset + joint.reference
    damping[joint.v_slice] += m * m * np.array(joint.drive.damping)
    friction[joint.v_slice] += abs(m) * np.array(joint.drive.friction)
    own = m * m * np.array(joint.drive.stiffness)
    if own.any():
        at = (np.array(joint.drive.spring_reference) - offset) / m
        total = stiffness[joint.v_slice] + own
        before = stiffness[joint.v_slice] * rest[joint.q_slice]
        rest[joint.q_slice] = (before + own * at) / np.where(total == 0.0, 1.0, total)
        stiffness[joint.v_slice] = total
