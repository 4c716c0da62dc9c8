# SPDX-License-Identifier: BSD-3-Clause
"""Targets of inverse kinematics: what a user wants, as numbers that a program reads.

Each target is one class: what it asks of a frame or of the whole robot, with a weight among the
targets of the same priority. Targets of priority 1 use only the freedom that those of priority 0
leave, and so on.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, ShapeError
from phistar.model.components import frozen
from phistar.model.configuration import Coordinates, as_numbers, read_coordinates
from phistar.model.model import Model
from phistar.model.target_rows import TargetRows
from phistar.spatial import is_rotation

ROTATION_TOLERANCE = 1e-6
"""How far a given rotation may be from orthonormal."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Target(ABC):
    """What all targets have.

    Attributes:
        weight: Of its squared error among targets of the same priority, above 0.
        priority: 0 is the first; None: 0, and for a posture the one after all others.
        frame: Name of the frame it is about; None: the name under which it is given.
    """

    weight: float = 1.0
    priority: int | None = None
    frame: str | None = None
    kind: ClassVar[str]
    about_frame: ClassVar[bool] = True

    @abstractmethod
    def goal(self, model: Model, label: str) -> Array:
        """Its numbers (..., size); values are not checked to be finite."""

    @property
    def weights(self) -> tuple[float, ...]:
        """One for each group of errors."""
        return (self.weight,)

    def vector(self, label: str) -> Array:
        """(3,) point or axis in the frame."""
        return np.zeros(3)


@dataclass(frozen=True, eq=False)
class Pose(Target):
    """The pose (..., 4, 4) of a frame in the world.

    Attributes:
        pose: Where the frame is wanted.
        rotation_weight: Weight of the rotation vector that is left [rad²]; None: ``weight``, that
            of the distance [m²].
    """

    pose: ArrayLike = field(repr=False)
    rotation_weight: float | None = field(default=None, kw_only=True)
    kind = "pose"

    def goal(self, model: Model, label: str) -> Array:
        """The first three rows."""
        given = _array(self.pose, (4, 4), f"the pose of target '{label}'")
        _check_rotations(given[..., :3, :3], label)
        return given[..., :3, :].reshape(*given.shape[:-2], 12)

    @property
    def weights(self) -> tuple[float, ...]:
        """Of rotation and position."""
        turn = self.weight if self.rotation_weight is None else self.rotation_weight
        return (turn, self.weight)


@dataclass(frozen=True, eq=False)
class Position(Target):
    """The position (..., 3) of a frame's origin, or of another point of it, in the world [m].

    Attributes:
        position: Where it is wanted.
        point: (3,) in the frame [m].
    """

    position: ArrayLike = field(repr=False)
    point: ArrayLike = field(default=(0.0, 0.0, 0.0), kw_only=True)
    kind = "position"

    def goal(self, model: Model, label: str) -> Array:
        """Three numbers."""
        return _array(self.position, (3,), f"the position of target '{label}'")

    def vector(self, label: str) -> Array:
        """The point."""
        return frozen(self.point, (3,), f"point of target '{label}'")


@dataclass(frozen=True, eq=False)
class Orientation(Target):
    """The rotation (..., 3, 3) from a frame's axes to those of the world."""

    rotation: ArrayLike = field(repr=False)
    kind = "orientation"

    def goal(self, model: Model, label: str) -> Array:
        """Nine numbers."""
        given = _array(self.rotation, (3, 3), f"the rotation of target '{label}'")
        _check_rotations(given, label)
        return given.reshape(*given.shape[:-2], 9)


@dataclass(frozen=True, eq=False)
class Axis(Target):
    """An axis of a frame that is to point along a direction of the world.

    Attributes:
        direction: (..., 3) of any length but zero, world axes.
        axis: (3,) in the frame; default z.
    """

    direction: ArrayLike = field(repr=False)
    axis: ArrayLike = field(default=(0.0, 0.0, 1.0), kw_only=True)
    kind = "axis"

    def goal(self, model: Model, label: str) -> Array:
        """A unit vector; NaN of a zero vector."""
        given = _array(self.direction, (3,), f"the direction of target '{label}'")
        length = np.sqrt((given * given).sum(axis=-1, keepdims=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(length > 0.0, given / length, np.nan))

    def vector(self, label: str) -> Array:
        """A unit vector."""
        axis = frozen(self.axis, (3,), f"axis of target '{label}'")
        length = math.sqrt(float(axis @ axis))
        if not 0.0 < length < math.inf:
            raise ArgumentError(
                f"axis of target '{label}' is {axis.tolist()}, expected a vector with a direction"
            )
        return np.asarray(axis / length)


@dataclass(frozen=True, eq=False)
class CenterOfMass(Target):
    """The centre of mass (..., 3) of all links in the world [m], as ``robot.center_of_mass``."""

    position: ArrayLike = field(repr=False)
    kind = "center_of_mass"
    about_frame = False

    def goal(self, model: Model, label: str) -> Array:
        """Three numbers."""
        if not float(model.inertias[:, 0].sum()) > 0.0:
            raise ArgumentError(
                f"target '{label}': nothing that moves on robot '{model.name}' has mass"
            )
        return _array(self.position, (3,), f"the position of target '{label}'")


@dataclass(frozen=True, eq=False)
class Posture(Target):
    """A configuration (..., nq) to be close to, e.g. ``robot.home``."""

    q: Coordinates = field(repr=False)
    kind = "posture"
    about_frame = False

    def goal(self, model: Model, label: str) -> Array:
        """A configuration."""
        given = read_coordinates(model, self.q, "q", f"the posture of target '{label}'")
        return np.asarray(given, dtype=np.float64)


@dataclass(frozen=True)
class Wanted:
    """All targets of a call.

    Attributes:
        labels: Names of the targets.
        rows: What each asks for, priorities from 0 on without gaps.
        goals: (samples, numbers) of all of them, one after the other.
        scales: (groups,) square roots of weights.
        batch: Batch shape of all goals together.
    """

    labels: tuple[str, ...]
    rows: tuple[TargetRows, ...]
    goals: Array
    scales: Array
    batch: tuple[int, ...]


def read_targets(
    model: Model, targets: Mapping[str, Target | ArrayLike], batch: tuple[int, ...]
) -> Wanted:
    """A user's targets, checked.

    Args:
        model: The robot.
        targets: By name; arrays (..., 4, 4) are poses.
        batch: Batch shape of what else is given.

    Raises:
        UnknownNameError: No such frame.
        ArgumentError: No target, a bad weight, priority or rotation.
        ShapeError: A goal of another shape, or batches that do not fit.
    """
    if not isinstance(targets, Mapping) or not targets:
        raise ArgumentError(
            f"targets are {targets!r}, expected a dict from frame names to poses or targets"
        )
    found = {label: _as_target(label, value) for label, value in targets.items()}
    goals = {label: target.goal(model, label) for label, target in found.items()}
    try:
        shape = np.broadcast_shapes(batch, *(goal.shape[:-1] for goal in goals.values()))
    except ValueError:
        sizes = ", ".join(f"'{label}' {goal.shape[:-1]}" for label, goal in goals.items())
        raise ShapeError(
            "targets", batch, f"batches that fit those of the targets: {sizes}", "q0"
        ) from None
    flat = [np.broadcast_to(goal, (*shape, goal.shape[-1])) for goal in goals.values()]
    numbers = np.ascontiguousarray(np.concatenate(flat, axis=-1))
    weights = [_weight(label, w) for label, target in found.items() for w in target.weights]
    return Wanted(
        tuple(found),
        _rows(model, found),
        numbers.reshape(-1, numbers.shape[-1]),
        np.sqrt(np.array(weights)),
        shape,
    )


def _as_target(label: str, value: Target | ArrayLike) -> Target:
    if isinstance(value, Target):
        return value
    if np.shape(value)[-2:] == (4, 4):
        return Pose(value)
    raise ShapeError(
        f"target '{label}'",
        np.shape(value),
        "(..., 4, 4), a pose; else say what is meant: Position(...), Orientation(...), Axis(...), "
        "CenterOfMass(...) or Posture(...) of phistar.inverse_kinematics",
        "inverse_kinematics",
    )


def _rows(model: Model, targets: Mapping[str, Target]) -> tuple[TargetRows, ...]:
    """What targets ask for, with priorities that are numbered on."""
    asked = _priorities(targets)
    numbered = {priority: k for k, priority in enumerate(sorted(set(asked)))}
    found = []
    for (label, target), priority in zip(targets.items(), asked, strict=True):
        frame = (target.frame or label) if target.about_frame else ""
        if frame:
            model.frame(frame)
        x, y, z = (float(value) for value in target.vector(label))
        found.append(TargetRows(target.kind, frame, numbered[priority], (x, y, z)))
    return tuple(found)


def _priorities(targets: Mapping[str, Target]) -> list[int]:
    """Of each target, as it says; else the first, and of postures the last.

    Raises:
        ArgumentError: One is no whole number from 0 on.
    """
    given = [t.priority for t in targets.values() if t.priority is not None]
    default = [0 for t in targets.values() if t.priority is None and t.kind != "posture"]
    last = max([*given, *default], default=-1) + 1
    asked: list[int] = []
    for label, target in targets.items():
        priority = target.priority
        if priority is None:
            priority = last if target.kind == "posture" else 0
        if not isinstance(priority, (int, np.integer)) or priority < 0:
            raise ArgumentError(
                f"priority of target '{label}' is {priority!r}, expected 0, 1, 2 or so on"
            )
        asked.append(int(priority))
    return asked


def _weight(label: str, weight: float) -> float:
    try:
        number = float(weight)
    except (TypeError, ValueError):
        number = math.nan
    if not 0.0 < number < math.inf:
        raise ArgumentError(
            f"weight of target '{label}' is {weight!r}, expected a number above 0; leave out what "
            "is not wanted"
        )
    return number


def _array(values: ArrayLike, tail: tuple[int, ...], name: str) -> Array:
    """Numbers (..., *tail)."""
    array = as_numbers(values, name)
    if array.shape[max(array.ndim - len(tail), 0) :] != tail or array.dtype.kind == "c":
        expected = f"real numbers (..., {', '.join(map(str, tail))})"
        raise ShapeError(name, array.shape, expected, "inverse_kinematics")
    return np.asarray(array, dtype=np.float64)


def _check_rotations(rotations: Array, label: str) -> None:
    """Raise for a matrix that is no rotation; NaN is judged elsewhere."""
    numbers = np.asarray(np.isfinite(rotations).all(axis=(-1, -2)))
    sound = is_rotation(
        np.where(numbers[..., None, None], rotations, np.eye(3)), ROTATION_TOLERANCE
    )
    if not sound.all():
        index = tuple(int(i) for i in np.argwhere(~sound)[0])
        where = f" of sample {list(index)}" if index else ""
        raise ArgumentError(
            f"target '{label}': the rotation{where} is "
            f"{rotations[index].tolist()}, expected an orthonormal matrix of determinant 1"
        )
