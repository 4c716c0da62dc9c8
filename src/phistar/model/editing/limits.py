# SPDX-License-Identifier: BSD-3-Clause
"""A robot with other limits, or another physics, of its joints: numbers by joint and coordinate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from phistar.errors import ArgumentError, ShapeError
from phistar.model.components import Drive, Joint, Limits
from phistar.model.configuration import Coordinates, as_numbers
from phistar.model.editing.parts import Edit, Parts
from phistar.model.model import Model

Given = Mapping[str, tuple[float, ...]]
_BY_COORDINATE = ("lower", "upper", "spring_reference")
"""Fields with a number per entry of q; the others have one per entry of v."""


def with_limits(model: Model, given: Mapping[str, Coordinates | None]) -> Edit:
    """The model with some limits replaced; see ``Edited.with_limits``.

    Args:
        model: The robot.
        given: Of ``lower``, ``upper``, ``velocity``, ``effort`` those that change.
    """
    changes = _changes(model, given)
    joints = tuple(
        replace(joint, limits=_checked(joint, replace(joint.limits, **changes[joint.name])))
        if joint.name in changes
        else joint
        for joint in model.joints.values()
    )
    return Edit(_with_joints(model, joints), "limits", _note(given, changes, "with_limits"))


def with_joint_physics(model: Model, given: Mapping[str, Coordinates | None]) -> Edit:
    """The model with some of what joints do by themselves replaced.

    Args:
        model: The robot.
        given: Of the fields of ``Drive`` those that change.
    """
    changes = _changes(model, given)
    joints = tuple(
        replace(joint, drive=_checked_drive(joint, replace(joint.drive, **changes[joint.name])))
        if joint.name in changes
        else joint
        for joint in model.joints.values()
    )
    note = _note(given, changes, "with_joint_physics")
    return Edit(_with_joints(model, joints), "joint physics", note)


def _changes(
    model: Model, given: Mapping[str, Coordinates | None]
) -> dict[str, dict[str, tuple[float, ...]]]:
    """New numbers by joint and field."""
    changes: dict[str, dict[str, tuple[float, ...]]] = {}
    for field, values in given.items():
        if values is not None:
            for joint, numbers in _by_joint(model, field, values).items():
                changes.setdefault(joint, {})[field] = numbers
    return changes


def _with_joints(model: Model, joints: tuple[Joint, ...]) -> Model:
    return replace(Parts.of(model), joints=joints).build()


def _note(given: Mapping[str, Coordinates | None], changes: Mapping[str, object], by: str) -> str:
    fields = ", ".join(field for field, values in given.items() if values is not None)
    return f"{fields or 'none'} of {', '.join(changes) or 'no joint'}, changed by {by}"


def _by_joint(model: Model, field: str, values: Coordinates) -> Given:
    """Numbers of each joint that changes: of those in a dict, or of all."""
    in_q = field in _BY_COORDINATE
    if isinstance(values, Mapping):
        return {name: _of_joint(model, name, field, x, in_q) for name, x in values.items()}
    size = model.nq if in_q else model.nv
    array = as_numbers(values, field)
    if array.ndim == 0:
        array = np.full(size, array)
    if array.shape != (size,):
        owner, names = f"robot '{model.name}'", ", ".join(model.joint_names[:12])
        raise ShapeError(field, array.shape, f"({size},) or a number", owner, names)
    joints = [model.joints[name] for name in model.joint_names]
    return {j.name: tuple(array[j.q_slice if in_q else j.v_slice].tolist()) for j in joints}


def _of_joint(model: Model, name: str, field: str, values: object, in_q: bool) -> tuple[float, ...]:
    """One number per coordinate; a single one holds for all of them."""
    kind = model.joint(name).joint_kind
    size = kind.nq if in_q else kind.nv
    array = as_numbers(values, f"{field} of joint '{name}'")  # type: ignore[arg-type]
    if array.ndim == 0:
        return (float(array),) * size
    if array.shape != (size,):
        raise ShapeError(f"{field} of joint '{name}'", array.shape, f"({size},)", kind.name)
    return tuple(array.tolist())


def _checked(joint: Joint, limits: Limits) -> Limits:
    """Limits that a joint can have.

    Raises:
        ArgumentError: One is NaN, or negative where a size is meant.
    """
    for field, values in vars(limits).items():
        sized = field in ("velocity", "effort")
        if any(np.isnan(x) or (sized and x < 0.0) for x in values):
            expected = "no less than 0" if sized else "a number"
            cure = "math.inf means no limit" if sized else "-math.inf and math.inf mean no limit"
            raise ArgumentError(
                f"{field} of joint '{joint.name}' is {list(values)}, expected {expected}; {cure}"
            )
    for low, high in zip(limits.lower, limits.upper, strict=True):
        if low > high:
            raise ArgumentError(
                f"lower limit {low:g} of joint '{joint.name}' is above its upper limit {high:g}; "
                "give both"
            )
    return limits


def _checked_drive(joint: Joint, drive: Drive) -> Drive:
    """What a joint can have.

    Raises:
        ArgumentError: A number is not finite, or negative where a size is meant.
    """
    for field, values in vars(drive).items():
        sized = field not in ("spring_reference", "gear_ratio")
        if any(not np.isfinite(x) or (sized and x < 0.0) for x in values):
            expected = "finite and no less than 0" if sized else "finite"
            raise ArgumentError(
                f"{field} of joint '{joint.name}' is {list(values)}, expected {expected}; "
                "0 means none"
            )
    return drive
