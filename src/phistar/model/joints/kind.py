# SPDX-License-Identifier: BSD-3-Clause
"""What every joint kind answers, and kinds by name.

A kind is written once, over numbers that may be arrays or values of a scalar graph (``ops``):

    columns     the joint map H*: constant in the child's axes, of which z is the joint's axis
    placement   the transform X_J(q), as factors of a rotation and an offset
    step        X_J(q) exp(H* u); the sum of q and u unless said otherwise
    step_between    what leads from one configuration to another by a step
    coordinate_rates    how q changes with v, and ``velocity``, the way back
    bracket     of two joint velocities; from H* unless said otherwise

The rest follows: how the link's frame may be chosen, matrices on arrays, units, random values. A
class with a ``name`` is a kind, wherever it is defined.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.joints.number_ops import (
    ARRAY_OPS,
    JointRotation,
    LogOps,
    Ops,
    join_entries,
    multiplied_out,
    split_entries,
)
from phistar.spatial import crm, quat_normalize, random_quaternion, rotation_between
from phistar.spatial.entries import Entries, Number, minus, plus
from phistar.spatial.reproducible_math import length

Axis = tuple[float, float, float]
Columns = tuple[tuple[tuple[int, Number], ...], ...]
"""A joint map H*: for each joint velocity the (component, factor) pairs that it moves along; the
components are rotations about x, y, z, then translations along them."""

Z_AXIS: Axis = (0.0, 0.0, 1.0)
ABOUT_Z, ALONG_Z = 2, 5
"""Components of the motions that commute with turns about z and slides along it."""
_UNIT_VECTORS = tuple(np.eye(3))
_NO_LIMIT = 1e9
"""Files write "no limit" as a large number; nothing is drawn from out there [rad or m]."""
_FORCE_UNITS = {"rad/s": "N m", "m/s": "N"}
_PACKAGE = __name__.partition(".")[0]

JOINT_KINDS: dict[str, type[JointKind]] = {}
"""Every joint kind by name; filled as the classes are defined."""


class JointLabels(NamedTuple):
    """A joint's coordinates, their units, those of velocities and of forces, as text."""

    coordinates: str
    units: str
    velocity_units: str
    force_units: str


@dataclass(frozen=True)
class JointKind(ABC):
    """What all joint kinds can do. Arrays may have leading batch axes; the last axis is q or v."""

    name: ClassVar[str]
    q_units: ClassVar[tuple[str, ...]]
    """Unit of each coordinate: ``"rad"``, ``"m"``, or ``""`` for entries of a quaternion."""
    v_units: ClassVar[tuple[str, ...]]
    """Unit of each velocity; those of the coordinates per second unless given."""
    coordinate_names: ClassVar[tuple[str, ...]] = ()
    nq: ClassVar[int]
    nv: ClassVar[int]
    quaternion: ClassVar[int | None] = None
    """Entry of q with which a unit quaternion xyzw begins, if there is one."""
    parameters: ClassVar[tuple[str, ...]] = ()
    """Fields that ``columns`` and ``placement`` take as numbers like any other, so that joints that
    differ in them share code; all other fields are constants of the code."""
    unlimited: ClassVar[bool] = False
    """Whether its coordinates never have limits."""
    pinocchio_angle: ClassVar[int | None] = None
    """The coordinate that Pinocchio writes as (cos, sin), if there is one."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__
        if "q_units" in own:
            if "v_units" not in own:
                cls.v_units = tuple(f"{unit}/s" for unit in cls.q_units)
            cls.nq, cls.nv = len(cls.q_units), len(cls.v_units)
        if "name" in own:
            JOINT_KINDS[cls.name] = cls

    # -- what a kind says

    @abstractmethod
    def columns(self) -> Columns:
        """H*: the relative spatial velocity per unit v, constant in the child's axes."""

    @abstractmethod
    def placement(self, q: Entries, ops: Ops) -> tuple[JointRotation, Entries]:
        """Rotation and offset of the child side in the parent side, at its neutral side's axes."""

    def step(self, q: Entries, u: Entries, ops: Ops) -> list[Number]:
        """The configuration reached from q along the tangent u: X_J(q) exp(H* u)."""
        return plus(q, u)

    def step_between(self, q0: Entries, q1: Entries, ops: LogOps) -> list[Number]:
        """The tangent u with step(q0, u) = q1; the shortest one on rotations."""
        return minus(q1, q0)

    def coordinate_rates(self, q: Entries, v: Entries, ops: Ops) -> list[Number]:
        """How fast q changes as the joint moves with v: the derivative of ``step`` at u = 0.

        Raises:
            ArgumentError: The kind steps in its own way and does not say.
        """
        self._require_sum("coordinate_rates")
        return list(v)

    def velocity(self, q: Entries, rates: Entries, ops: Ops) -> list[Number]:
        """The joint velocity with which q changes by ``rates``; what leaves the unit quaternions
        does not count, and quaternions need not be unit.

        Raises:
            ArgumentError: As of ``coordinate_rates``.
        """
        self._require_sum("velocity")
        return list(rates)

    def _require_sum(self, method: str) -> None:
        if not self.is_euclidean:
            raise ArgumentError(
                f"joint kind '{self.name}' has a step of its own, but no {method}(): derivatives "
                "with respect to its coordinates need it"
            )

    def displacement(self, q0: Entries, q1: Entries, ops: LogOps) -> list[Number]:
        """How far a spring that rests at q0 is stretched at q1, in the axes of v.

        Its energy is half the sum of stiffness times squares, where these are alike in all axes
        that turn.
        """
        return self.step_between(q0, q1, ops)

    def bracket(self, a: Entries, b: Entries) -> list[Number]:
        """[a, b] of two joint velocities: how far moves by them do not commute."""
        result: list[Number] = [0.0] * self.nv
        for k, i, j, factor in self.structure_constants:
            result[k] = result[k] + factor * (a[i] * b[j])
        return result

    @property
    def parts(self) -> tuple[JointKind, ...]:
        """The simple joints that realise this one, from the parent outward."""
        return (self,)

    @classmethod
    def random_kind(cls, rng: np.random.Generator) -> JointKind:
        """A kind of this class with random parameters."""
        return cls()

    # -- what follows: motion and frames

    @property
    def is_euclidean(self) -> bool:
        """Whether stepping a configuration is plain addition."""
        return type(self).step is JointKind.step

    @cached_property
    def components(self) -> frozenset[int]:
        """The components of spatial velocity that the joint moves along."""
        return frozenset(component for column in self.columns() for component, _ in column)

    @cached_property
    def commutes_with_axis(self) -> bool:
        """Whether no motion notices that the link's frame is turned about z or slid along it."""
        return bool(self.components) and self.components <= {ABOUT_Z, ALONG_Z}

    @property
    def has_axis(self) -> bool:
        """Whether z is the axis of the joint."""
        return self.commutes_with_axis

    @cached_property
    def turns_about_axis(self) -> bool:
        """Whether a constant turn about z can be part of the joint's own rotation."""
        return self.commutes_with_axis and ABOUT_Z in self.components

    @cached_property
    def slides_only(self) -> bool:
        """Whether it moves along z and in no other way."""
        return self.components == {ALONG_Z}

    @cached_property
    def turns_only(self) -> bool:
        """Whether it turns about z and moves in no other way."""
        return self.components == {ABOUT_Z}

    @cached_property
    def structure_constants(self) -> tuple[tuple[int, int, int, float], ...]:
        """(k, i, j, c) for each c ≠ 0 in [eᵢ, eⱼ] = Σ c eₖ.

        Raises:
            ArgumentError: A bracket is not a motion of the joint. Then its joint map cannot be
                constant.
        """
        H = self.motion_map()
        brackets = np.asarray(crm(H.T) @ H)
        found = np.linalg.pinv(H) @ brackets
        if np.abs(H @ found - brackets).max(initial=0.0) > 1e-12:
            raise ArgumentError(
                f"the motions of a {self.name} joint are not closed: moving by two of them in turn "
                "leads along a third, so its joint map is not constant; use several joints"
            )
        known = np.where(np.abs(found) > 1e-12, found, 0.0)
        places = np.argwhere(known.swapaxes(0, 1)).tolist()
        return tuple((k, i, j, float(known[i, k, j])) for k, i, j in places)

    def canonical(self) -> JointKind:
        """This kind about z with its parameters zero; links with equal ones share code."""
        return self.replaced(dict.fromkeys(self.parameters, 0.0))

    def replaced(self, values: dict[str, object]) -> Self:
        """This kind with other fields, which may be values of a graph; nothing is checked."""
        kind = object.__new__(type(self))
        kept = {each.name: getattr(self, each.name) for each in fields(self)}
        vars(kind).update(kept | values)
        return kind

    # -- what follows: arrays

    def direction(self, axis: int) -> Array:
        """Unit vector of axis 0, 1 or 2 of ``columns`` and ``placement``, in the joint frame."""
        return _UNIT_VECTORS[axis]

    def transform(self, q: Array) -> Array:
        """Pose of the child side in the parent side, (..., nq) -> (..., 4, 4)."""
        rotation, offset = self.placement(split_entries(q), ARRAY_OPS)
        return multiplied_out(rotation, offset, self.direction, q)

    def motion_map(self) -> Array:
        """H*: (6, nv) relative spatial velocity per unit v, child axes, [angular; linear]."""
        H = np.zeros((6, self.nv))
        for j, column in enumerate(self.columns()):
            for component, factor in column:
                half = 3 * (component // 3)
                H[half : half + 3, j] += factor * self.direction(component % 3)
        return H

    def neutral(self) -> Array:
        """The configuration at which the transform is the identity, (nq,)."""
        q = np.zeros(self.nq)
        if self.quaternion is not None:
            q[self.quaternion + 3] = 1.0
        return q

    def integrate(self, q: Array, dv: Array) -> Array:
        """``step`` on arrays: (..., nq), (..., nv) -> (..., nq)."""
        if self.is_euclidean:
            return q + dv
        return join_entries(self.step(split_entries(q), split_entries(dv), ARRAY_OPS), (q, dv))

    def difference(self, q0: Array, q1: Array) -> Array:
        """``step_between`` on arrays: (..., nq), (..., nq) -> (..., nv)."""
        if self.is_euclidean:
            return q1 - q0
        found = self.step_between(split_entries(q0), split_entries(q1), ARRAY_OPS)
        return join_entries(found, (q0, q1))

    def normalize(self, q: Array) -> Array:
        """q with a unit quaternion; other coordinates unchanged."""
        if self.quaternion is None:
            return q
        own, result = slice(self.quaternion, self.quaternion + 4), np.array(q)
        result[..., own] = quat_normalize(q[..., own])
        return result

    def random(
        self, rng: np.random.Generator, lower: Array, upper: Array, shape: tuple[int, ...]
    ) -> Array:
        """Random configurations (*shape, nq), uniform inside the limits; rotations uniform.

        Unlimited angles are drawn from [-pi, pi), unlimited lengths from [-1, 1) m; a joint
        limited on one side only is drawn from the same width beside its limit.
        """
        units = np.array(self.q_units)
        plain = units != ""
        width = np.where(units[plain] == "rad", math.pi, 1.0)
        low, high = _finite_range(lower[plain], upper[plain], width)
        q = np.empty((*shape, self.nq))
        q[..., plain] = rng.uniform(low, high, (*shape, len(width)))
        if self.quaternion is not None:
            q[..., self.quaternion : self.quaternion + 4] = random_quaternion(rng, shape)
        return q

    def behaviour(self) -> bytes:
        """What compiled code of the kind depends on, besides its name, fields and this package.

        A class from outside may change while its name stays: its numbers are sampled.
        """
        if type(self).__module__.partition(".")[0] == _PACKAGE:
            return b""
        rng, free = np.random.default_rng(0), np.full(self.nq, math.inf)
        q, u = self.random(rng, -free, free, (4,)), rng.normal(size=(4, self.nv))
        arrays = self.transform(q), self.motion_map(), self.integrate(q, u)
        return b"".join(each.tobytes() for each in arrays)

    # -- what follows: how others write it

    @property
    def labels(self) -> JointLabels:
        """Coordinates and units as text."""
        moving = "" if self.is_euclidean else "; moving axes"
        return JointLabels(
            ", ".join(self.coordinate_names) or "coordinates",
            _unit_text(self.q_units),
            _unit_text(self.v_units) + moving,
            _unit_text([_FORCE_UNITS.get(unit, "SI") for unit in self.v_units]),
        )

    def velocity_in_pinocchio(self, q: Array) -> Array:
        """S(q): Pinocchio's velocity of the joint is S v, (..., nv, nv)."""
        return _identity_like(q, self.nv)

    def velocity_in_mujoco(self, q: Array) -> Array:
        """S(q): MuJoCo's velocity of the joint is S v, (..., nv, nv)."""
        return _identity_like(q, self.nv)

    def mujoco_bias_velocity(self, q: Array, v: Array) -> Array | None:
        """(dS/dt) v of ``velocity_in_mujoco``, (..., nv); None if S is constant."""
        return None


def _identity_like(q: Array, size: int) -> Array:
    return np.broadcast_to(np.eye(size, dtype=q.dtype), (*q.shape[:-1], size, size))


def _unit_text(units: Iterable[str]) -> str:
    """Units, the same one only once; of more than three, runs of the same."""
    named = [unit or "unit" for unit in units]
    if len(named) > 3 or len(set(named)) == 1:
        named = [unit for k, unit in enumerate(named) if k == 0 or named[k - 1] != unit]
    return ", ".join(named)


def _finite_range(lower: Array, upper: Array, width: Array) -> tuple[Array, Array]:
    """Where to draw from: the limits, and ``width`` beside zero or a single limit without them."""
    below, above = np.abs(lower) < _NO_LIMIT, np.abs(upper) < _NO_LIMIT
    low = np.where(below, lower, np.where(above, upper - width, -width))
    high = np.where(above, upper, np.where(below, lower + width, width))
    return low, high


def unit_axis(axis: ArrayLike) -> Axis:
    """``axis`` as a unit 3-vector; an axis that is unit to rounding is kept bit for bit."""
    a = np.asarray(axis, dtype=float)
    if a.shape != (3,) or not np.all(np.isfinite(a)):
        raise ArgumentError(f"an axis needs 3 finite numbers, got {axis!r}")
    x, y, z = a.tolist()
    size = length(x, y, z)
    if size < 1e-12:
        raise ArgumentError(f"an axis must not be zero, got {axis!r}")
    return (x, y, z) if abs(size - 1.0) <= 1e-15 else (x / size, y / size, z / size)


def random_axis(rng: np.random.Generator) -> Axis:
    """A unit vector, all directions alike."""
    return unit_axis(rng.normal(size=3))


@dataclass(frozen=True)
class AxisKind(JointKind):
    """Shared by the kinds that have an axis, a unit vector in the joint frame.

    It is the z of their formulas; x and y are those of the joint frame, turned by the smallest
    rotation that takes z to the axis.
    """

    axis: Axis = Z_AXIS

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis))

    @classmethod
    def random_kind(cls, rng: np.random.Generator) -> JointKind:
        return cls(random_axis(rng))

    @property
    def has_axis(self) -> bool:
        return True

    def canonical(self) -> JointKind:
        return self.replaced({"axis": Z_AXIS, **dict.fromkeys(self.parameters, 0.0)})

    def direction(self, axis: int) -> Array:
        return np.array(self.axis) if axis == 2 else self._basis[:, axis]

    @cached_property
    def _basis(self) -> Array:
        return rotation_between(Z_AXIS, self.axis)


@dataclass(frozen=True)
class CompoundKind(JointKind):
    """Shared by the kinds that are several joints in a row: their joint map is not constant."""

    def columns(self) -> Columns:
        raise ArgumentError(
            f"the joint map of a {self.name} joint is not constant in the child's axes; "
            "use its parts"
        )

    def placement(self, q: Entries, ops: Ops) -> tuple[JointRotation, Entries]:
        raise ArgumentError(f"a {self.name} joint is placed by its parts")

    def transform(self, q: Array) -> Array:
        result, start = np.eye(4, dtype=q.dtype), 0
        for part in self.parts:
            result = result @ part.transform(q[..., start : start + part.nq])
            start += part.nq
        return result


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
