# SPDX-License-Identifier: BSD-3-Clause
"""What formulas of joints call besides arithmetic, so that they run on arrays and on scalar graphs.

``Ops`` is asked for by transforms and steps, ``LogOps`` by differences as well. ``ARRAY_OPS`` is
NumPy's, for any dtype; that of scalar graphs is in ``scalar.robot.joint_transforms``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from phistar.arrays import Array, DType
from phistar.spatial import pose, quat_log, quat_to_rotation, rotation_about
from phistar.spatial._elementary import (
    cosine,
    cotangent_defect,
    sine_defect,
    sine_ratio,
    versine_ratio,
)
from phistar.spatial.any_namespace import namespace
from phistar.spatial.entries import Entries, Number
from phistar.spatial.pose import wrapped_angle


@dataclass(frozen=True)
class Turn:
    """A rotation about axis 0, 1 or 2 by an angle [rad]."""

    axis: int
    angle: Number


@dataclass(frozen=True)
class QuaternionTurn:
    """The rotation of a unit quaternion x, y, z, w."""

    quaternion: Entries


JointRotation = tuple[Turn | QuaternionTurn, ...]
"""Factors of a rotation, the one nearest the parent first."""


class ArcFunctions(Protocol):
    """Functions of an angle θ ≥ 0 that are right at zero, too."""

    @property
    def half_cosine(self) -> Number:
        """cos(θ/2)."""

    @property
    def half_sine_ratio(self) -> Number:
        """sin(θ/2) / θ."""

    @property
    def sine_ratio(self) -> Number:
        """sin θ / θ."""

    @property
    def versine_ratio(self) -> Number:
        """(1 - cos θ) / θ²."""

    @property
    def sine_defect(self) -> Number:
        """(θ - sin θ) / θ³, for products with θ²."""


class Ops(Protocol):
    """For transforms and steps."""

    def cos_sin(self, angle: Number) -> tuple[Number, Number]:
        """Cosine and sine of an angle [rad]."""

    def sqrt(self, x: Number) -> Number:
        """Square root."""

    def arc(self, square: Number) -> ArcFunctions:
        """Functions of the angle with this square."""


class LogOps(Ops, Protocol):
    """For differences: what undoes steps."""

    def wrapped(self, angle: Number) -> Number:
        """An angle [rad] less whole turns, in (-π, π]."""

    def rotation_vector(self, quaternion: Entries) -> list[Number]:
        """The logarithm of a unit quaternion xyzw, the shorter way round."""

    def cotangent_defect(self, square: Number) -> Number:
        """(1 - (θ/2) cot(θ/2)) / θ² of the angle with this square, for products with θ²."""


class ArrayArc:
    """``ArcFunctions`` of an array of squares."""

    def __init__(self, square: Array) -> None:
        self._square = square

    @property
    def half_cosine(self) -> Array:
        return cosine(self._square / 4)

    @property
    def half_sine_ratio(self) -> Array:
        return sine_ratio(self._square / 4) / 2

    @property
    def sine_ratio(self) -> Array:
        return sine_ratio(self._square)

    @property
    def versine_ratio(self) -> Array:
        return versine_ratio(self._square)

    @property
    def sine_defect(self) -> Array:
        return sine_defect(self._square)


class SampleOps:
    """``LogOps`` on arrays with one entry per sample."""

    def cos_sin(self, angle: Number) -> tuple[Number, Number]:
        xp = namespace(angle)
        return xp.cos(angle), xp.sin(angle)

    def sqrt(self, x: Number) -> Number:
        return namespace(x).sqrt(x)

    def arc(self, square: Number) -> ArrayArc:
        return ArrayArc(np.asarray(square))

    def wrapped(self, angle: Number) -> Array:
        return wrapped_angle(np.asarray(angle))

    def rotation_vector(self, quaternion: Entries) -> list[Number]:
        return split_entries(quat_log(np.stack(np.broadcast_arrays(*quaternion), axis=-1)))

    def cotangent_defect(self, square: Number) -> Array:
        return cotangent_defect(np.asarray(square))


ARRAY_OPS = SampleOps()


def split_entries(x: Array) -> list[Array]:
    """(..., n) as n arrays (...)."""
    return [x[..., i] for i in range(x.shape[-1])]


def join_entries(entries: Entries, like: Sequence[Array]) -> Array:
    """n arrays or constants as (..., n), in the batch and dtype of the arrays they came from."""
    batch = np.broadcast_shapes(*(each.shape[:-1] for each in like))
    result = np.empty((*batch, len(entries)), dtype=np.result_type(*like))
    for i, entry in enumerate(entries):
        result[..., i] = entry
    return result


def multiplied_out(
    rotation: JointRotation, offset: Entries, direction: Callable[[int], Array], like: Array
) -> Array:
    """The pose (..., 4, 4) of factors and an offset that are given in some axes.

    Args:
        rotation, offset: Of the child in the parent, as ``JointKind.placement`` gives them.
        direction: Unit vector of axis 0, 1 or 2.
        like: The coordinates (..., nq), for batch and dtype.
    """
    precision = np.result_type(like, np.float32)
    matrices = [_matrix(factor, direction, precision) for factor in rotation]
    R = matrices[0] if matrices else np.eye(3, dtype=precision)
    for factor in matrices[1:]:
        R = R @ factor
    p = np.zeros((*like.shape[:-1], 3), dtype=precision)
    for axis, entry in enumerate(offset):
        if type(entry) is not float or entry != 0.0:
            p += np.multiply.outer(entry, direction(axis).astype(precision))
    return pose(R, p)


def _matrix(
    factor: Turn | QuaternionTurn, direction: Callable[[int], Array], precision: DType
) -> Array:
    if isinstance(factor, Turn):
        angle = np.asarray(factor.angle, dtype=precision)
        return rotation_about(direction(factor.axis).astype(precision), angle)
    R = quat_to_rotation(np.stack(np.broadcast_arrays(*factor.quaternion), axis=-1))
    basis = np.stack([direction(axis) for axis in range(3)], axis=-1)
    if np.array_equal(basis, np.eye(3)):
        return R
    basis = basis.astype(precision)
    return np.asarray(basis @ R @ basis.T)
