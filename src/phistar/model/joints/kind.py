# SPDX-License-Identifier: BSD-3-Clause
"""What every joint kind answers, kinds by name, and the kind that does not move."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from phistar.errors import ArgumentError, UnknownNameError

Array = NDArray[Any]

JOINT_KINDS: dict[str, type[JointKind]] = {}
"""Every joint kind by name; filled as the classes are defined."""


@dataclass(frozen=True)
class JointKind(ABC):
    """What all joint kinds can do. Arrays may have leading batch axes; the last axis is q or v."""

    name: ClassVar[str]
    nq: ClassVar[int]
    nv: ClassVar[int]
    q_units: ClassVar[tuple[str, ...]]
    v_units: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            JOINT_KINDS[cls.name] = cls

    @property
    def parts(self) -> tuple[JointKind, ...]:
        """The simple joints that realise this one, from the parent outward."""
        return (self,)

    @property
    def is_euclidean(self) -> bool:
        """Whether stepping a configuration is plain addition."""
        return True

    @classmethod
    def random_kind(cls, rng: np.random.Generator) -> JointKind:
        """A kind of this class with random parameters."""
        return cls()

    @abstractmethod
    def transform(self, q: Array) -> Array:
        """Pose of the child side in the parent side, (..., nq) -> (..., 4, 4)."""

    @abstractmethod
    def motion_map(self) -> Array:
        """H*: (6, nv) relative spatial velocity per unit v, child axes, [angular; linear]."""

    def neutral(self) -> Array:
        """The configuration at which the transform is the identity, (nq,)."""
        return np.zeros(self.nq)

    def integrate(self, q: Array, dv: Array) -> Array:
        """Configuration reached from q along the tangent dv: X_J(q) exp(H* dv)."""
        return q + dv

    def difference(self, q0: Array, q1: Array) -> Array:
        """Tangent dv with integrate(q0, dv) = q1; the shortest one on rotations."""
        return q1 - q0

    def normalize(self, q: Array) -> Array:
        """q with unit quaternions; other coordinates unchanged."""
        return q

    def random(
        self, rng: np.random.Generator, lower: Array, upper: Array, shape: tuple[int, ...]
    ) -> Array:
        """Random configurations (*shape, nq), uniform inside the limits.

        Unlimited angles are drawn from [-pi, pi), unlimited lengths from [-1, 1) m; a joint
        limited on one side only is drawn from the same width beside its limit.
        """
        width = np.where(np.array(self.q_units) == "rad", math.pi, 1.0)
        low, high = finite_range(lower, upper, width)
        return rng.uniform(low, high, (*shape, self.nq))


_NO_LIMIT = 1e9
"""Files write "no limit" as a large number; nothing is drawn from out there [rad or m]."""


def finite_range(lower: Array, upper: Array, width: Array) -> tuple[Array, Array]:
    """Where to draw from: the limits, and ``width`` beside zero or a single limit without them."""
    below, above = np.abs(lower) < _NO_LIMIT, np.abs(upper) < _NO_LIMIT
    low = np.where(below, lower, np.where(above, upper - width, -width))
    high = np.where(above, upper, np.where(below, lower + width, width))
    return low, high


def make_kind(
    name: str,
    axis: Sequence[float] | None = None,
    *,
    pitch: float | None = None,
    axis2: Sequence[float] | None = None,
) -> JointKind:
    """A joint kind by name.

    Args:
        name: One of ``JOINT_KINDS``.
        axis: Axis in the joint frame; kinds without an axis refuse it. Default z.
        pitch: Advance per radian of a helical joint [m/rad].
        axis2: Second axis of a universal joint.

    Raises:
        UnknownNameError: No such kind.
        ArgumentError: A parameter that this kind does not have, or a bad axis.
    """
    if name not in JOINT_KINDS:
        raise UnknownNameError("joint kind", name, JOINT_KINDS)
    cls = JOINT_KINDS[name]
    given = {"axis": axis, "pitch": pitch, "axis2": axis2}
    parameters = {k: v for k, v in given.items() if v is not None}
    unknown = [k for k in parameters if k not in cls.__dataclass_fields__]
    if unknown:
        raise ArgumentError(f"a {name} joint has no {' or '.join(unknown)}")
    return cls(**parameters)


@dataclass(frozen=True)
class Fixed(JointKind):
    """No motion: the child is merged into its parent's body, its frame survives."""

    name: ClassVar[str] = "fixed"
    nq: ClassVar[int] = 0
    nv: ClassVar[int] = 0
    q_units: ClassVar[tuple[str, ...]] = ()
    v_units: ClassVar[tuple[str, ...]] = ()

    def transform(self, q: Array) -> Array:
        return np.broadcast_to(np.eye(4, dtype=q.dtype), (*q.shape[:-1], 4, 4))

    def motion_map(self) -> Array:
        return np.zeros((6, 0))
