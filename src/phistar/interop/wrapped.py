# SPDX-License-Identifier: BSD-3-Clause
"""A robot whose methods take and give arrays of another package: what all adapters share.

Methods have the names and arguments of ``Robot``. Those of ``QUANTITIES`` come from that table;
some more are made of them here, in arithmetic of the package: steps of time, wrenches on frames,
second derivatives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, NamedTuple, TypeAlias, cast

from numpy.typing import ArrayLike

from phistar.arrays import has_no_precision
from phistar.errors import ArgumentError, ShapeError, UnknownNameError, kind_of
from phistar.interop import derivative_rules as rules
from phistar.interop.array_values import Choice, V, Values
from phistar.interop.package_field import Calculated, PackageField
from phistar.interop.quantities import QUANTITIES, Quantity
from phistar.joint_physics.passive_forces import force_parts
from phistar.model.configuration import Space, as_numbers, read_coordinates
from phistar.model.joint_physics import Passive
from phistar.model.numpy_kinematics import check_reference
from phistar.robot import Robot

Given: TypeAlias = V | ArrayLike
"""What users pass as an array: one of the package, or what it makes one of."""
COMPOSED_SCHEMES = ("semi_implicit", "euler")
"""Schemes of ``step`` that are made of forward dynamics and ``integrate``."""


def require_robot(robot: object) -> None:
    """Raise unless it is one."""
    if not isinstance(robot, Robot):
        raise ArgumentError(
            f"wrap takes a phistar.Robot, got {kind_of(robot)}; phistar.load makes one"
        )


class SecondOfInverseDynamics(NamedTuple, Generic[V]):
    """Second derivatives (..., nv, nv, nv) of joint forces: [force, first, second argument]."""

    qq: V
    qv: V
    vv: V
    q_vdot: V


class SecondOfForwardDynamics(NamedTuple, Generic[V]):
    """Second derivatives (..., nv, nv, nv) of accelerations: [entry, first, second argument]."""

    qq: V
    qv: V
    vv: V
    q_tau: V


class WrappedRobot(ABC, Generic[V]):
    """A robot on arrays of another package; ``robot`` is the robot itself.

    Leading axes of all arrays are batches, which broadcast. Derivatives with respect to q are those
    with respect to its nq numbers, quaternions made unit first: the component along a quaternion is
    zero, and steps along tangents agree with ``robot.linearize`` (``interop.tangents``).

    Attributes:
        robot: The robot.
        field: Its quantities, and the package's arithmetic.
        nq, nv: Numbers of a configuration, and of a joint vector.
    """

    package: str

    def __init__(self, robot: Robot, field: PackageField[V, Calculated]) -> None:
        self.robot = robot
        self.field = field
        self.nq, self.nv = robot.nq, robot.nv

    def __repr__(self) -> str:
        return f"<{self.robot!r:.{len(repr(self.robot)) - 1}} in {self.package}>".replace("<<", "<")

    @abstractmethod
    def _is_own(self, value: object) -> bool:
        """Whether a value is an array of the package already."""

    @abstractmethod
    def _array(self, value: object, name: str) -> V:
        """A user's value as an array of the package, in its own precision."""

    @abstractmethod
    def _promoted(self, arrays: Mapping[str, V], plain: Collection[str] = ()) -> list[V]:
        """Arrays in one precision, which those that are named as plain do not have."""

    # -- what is not a row

    def inverse_dynamics(
        self,
        q: Given[V],
        v: Given[V],
        vdot: Given[V],
        forces: Mapping[str, Given[V]] | None = None,
        reference: str = "world_aligned",
    ) -> V:
        """Joint forces (..., nv) that give the accelerations ``vdot``, with wrenches on frames."""
        q, v, vdot = self._read(q=q, v=v, vdot=vdot)
        (tau,) = self.field.call("inverse_dynamics", q, v, vdot)
        pushed = self._pushed(q, forces, reference)
        return tau if pushed is None else tau - pushed

    def forward_dynamics(
        self,
        q: Given[V],
        v: Given[V],
        tau: Given[V],
        forces: Mapping[str, Given[V]] | None = None,
        reference: str = "world_aligned",
    ) -> V:
        """Joint accelerations (..., nv) under ``tau`` and wrenches (..., 6) on frames."""
        q, v, tau = self._read(q=q, v=v, tau=tau)
        pushed = self._pushed(q, forces, reference)
        return self.field.call("forward_dynamics", q, v, tau if pushed is None else tau + pushed)[0]

    def integrate(self, q: Given[V], dv: Given[V]) -> V:
        """The configuration (..., nq) reached from q by a tangent step ``dv`` (..., nv)."""
        q, dv = self._read(q=q, dv=dv)
        return self.field.space.integrated(q, dv)

    def step(
        self,
        q: Given[V],
        v: Given[V],
        tau: Given[V],
        dt: Given[V],
        *,
        scheme: str = "semi_implicit",
        passive: Passive = False,
        forces: Mapping[str, Given[V]] | None = None,
        reference: str = "world_aligned",
    ) -> tuple[V, V]:
        """q and v after a step of time ``dt`` [s], a number or an array (...).

        It is the smooth step: ``passive`` adds springs and damping of the joints; dry friction and
        limits, whose steps have kinks, are left to ``robot.step`` and ``robot.simulator``.

        Raises:
            UnknownNameError: No such scheme.
        """
        q, v, tau = self._read(q=q, v=v, tau=tau)
        pushed = self._pushed(q, forces, reference)
        tau = tau if pushed is None else tau + pushed
        parts = force_parts(self.robot.model, passive) if passive is not False else ()
        parts = tuple(each for each in parts if each in ("springs", "damping"))
        h = self._time(dt, q=q, v=v, tau=tau)
        if scheme not in COMPOSED_SCHEMES or self.field.on_loops:
            ends = self.field.call("step", q, v, tau, h, scheme=scheme, parts=parts)
            return ends[0], ends[1]
        if parts:
            tau = tau + self.field.call("passive_force", q, v, parts=parts)[0]
        ahead = v + h * self.field.call("forward_dynamics", q, v, tau)[0]
        moved = h * (v if scheme == "euler" else ahead)
        return self.field.space.integrated(q, moved), ahead

    def link_poses(self, q: Given[V]) -> dict[str, V]:
        """Poses (..., 4, 4) of all links by name."""
        (found,) = self.field.call("link_poses", *self._read(q=q))
        names = self.robot.model.link_names
        return {name: found[..., i, :, :] for i, name in enumerate(names)}

    def mass_matrix_q(self, q: Given[V]) -> V:
        """∂𝓜/∂q (..., nv, nv, nv) along tangent steps."""
        return rules.mass_matrix_q(self.field, *self._read(q=q))

    def inverse_dynamics_second(
        self, q: Given[V], v: Given[V], vdot: Given[V]
    ) -> SecondOfInverseDynamics[V]:
        """Second derivatives of joint forces: ``.qq .qv .vv .q_vdot``, as of the robot."""
        found = rules.inverse_second(self.field, *self._read(q=q, v=v, vdot=vdot))
        return SecondOfInverseDynamics(*found)

    def forward_dynamics_second(
        self, q: Given[V], v: Given[V], tau: Given[V]
    ) -> SecondOfForwardDynamics[V]:
        """Second derivatives of joint accelerations: ``.qq .qv .vv .q_tau``, as of the robot."""
        _, by = rules.linearize(self.field, "linearize", {}, tuple(self._read(q=q, v=v, tau=tau)))
        found = [each for each in (by[1][0], by[1][1], by[2][1], by[1][2]) if each is not None]
        return SecondOfForwardDynamics(*found)

    rnea = inverse_dynamics
    aba = forward_dynamics

    # -- what comes in

    def _read(self, **given: object) -> list[V]:
        """Arrays whose shapes are checked, in one precision."""
        arrays: dict[str, V] = {}
        plain: list[str] = []
        for name, value in given.items():
            if isinstance(value, Mapping):
                raise ArgumentError(
                    f"{name} is a dict by joint name; {self.package} takes arrays: "
                    "robot.configuration(q) and robot.tangent(v) make such"
                )
            space: Space = "q" if name in ("q", "q0", "q1") else "v"
            array, is_plain = self._taken(name, value, space)
            if is_plain:
                plain.append(name)
            size = self.nq if space == "q" else self.nv
            if array.ndim == 0 or array.shape[-1] != size:
                raise ShapeError(name, tuple(array.shape), f"(..., {size})", self._owner)
            arrays[name] = array
        self._require_one_batch(arrays)
        return self._promoted(arrays, plain)

    def _taken(self, name: str, value: object, space: Space | None = None) -> tuple[V, bool]:
        """A value as an array of the package, and whether it has no precision of its own."""
        plain = self._is_plain(value)
        if not plain and not self._is_own(value):
            given = cast(ArrayLike, value)
            if space is None:
                value = as_numbers(given, name)
            else:
                value = read_coordinates(self.robot.model, given, space, name)
        return self._array(value, name), plain

    def _is_plain(self, value: object) -> bool:
        """Whether a value is numbers that have no precision of their own."""
        return not self._is_own(value) and has_no_precision(value)

    @property
    def _owner(self) -> str:
        return f"robot '{self.robot.name}'"

    def _require_one_batch(self, arrays: Mapping[str, V]) -> None:
        """Raise unless leading axes broadcast; names the first array that does not fit."""
        common: list[int] = []
        for name, array in arrays.items():
            axes = array.shape[:-1]
            for i in range(len(axes)):
                size = axes[-1 - i]
                if i == len(common):
                    common.append(size)
                elif common[i] == 1:
                    common[i] = size
                elif size not in (1, common[i]):
                    expected = f"leading axes that broadcast with {tuple(common[::-1])}"
                    raise ShapeError(name, tuple(array.shape), expected, self._owner)

    def _time(self, dt: object, **state: V) -> V:
        """A length of time as an array (..., 1), in the precision of a state."""
        array, plain = self._taken("dt", dt)
        like = next(iter(state.values()))
        _, array = self._promoted({"state": like, "dt": array}, ["dt"] if plain else [])
        array = array[..., None]
        self._require_one_batch({**state, "dt": array})
        return array

    def _pushed(self, q: V, forces: Mapping[str, Given[V]] | None, reference: str) -> V | None:
        """J* f of wrenches on frames."""
        check_reference(reference)
        if forces is None:
            return None
        if not isinstance(forces, Mapping):
            raise ArgumentError(
                f"forces is {kind_of(forces)}, expected wrenches (..., 6) by name of a frame: "
                "{'tip': f}"
            )
        total = None
        for frame, wrench in forces.items():
            name = f"forces['{frame}']"
            array, plain = self._taken(name, wrench)
            _, f = self._promoted({"q": q, name: array}, [name] if plain else [])
            if f.shape[-1:] != (6,):
                raise ShapeError(name, tuple(f.shape), "(..., 6)", "a wrench")
            self._require_one_batch({"q": q, name: f})
            (J,) = self.field.call("jacobian", q, frame=frame, reference=reference)
            term = (J * f[..., None]).sum(-2)
            total = term if total is None else total + term
        return total


def _method(row: Quantity) -> Callable[..., object]:
    """The method of a row: arrays first, then choices, by position or by name."""
    names = (*row.arguments, *row.choices)
    several: Callable[..., Sequence[Values]] | None = (
        namedtuple(row.name, row.results) if row.results else None
    )

    def call(self: WrappedRobot[V], *args: object, **given: object) -> Values | Sequence[Values]:
        if len(args) > len(names):
            raise TypeError(f"{row.name} takes {', '.join(names)}; got {len(args)} arguments")
        everything = dict(zip(names, args, strict=False))
        for name, value in given.items():
            if name in everything:
                raise TypeError(f"{row.name} got two values for {name}")
            if name not in names:
                raise UnknownNameError("argument", name, names, row.name)
            everything[name] = value
        missing = [name for name in row.arguments if name not in everything]
        if missing:
            raise TypeError(f"{row.name} needs {', '.join(missing)}")
        arrays = self._read(**{name: everything.pop(name) for name in row.arguments})
        # What is left are choices, which ``calculation`` examines.
        found = self.field.call(row.name, *arrays, **cast(dict[str, Choice], everything))
        return found[0] if several is None else several(*found)

    call.__name__ = row.name
    call.__qualname__ = f"WrappedRobot.{row.name}"
    call.__doc__ = f"{row.doc}\n\nArguments: {', '.join(names)}, as of ``Robot.{row.name}``."
    return call


for _row in QUANTITIES.values():
    if not hasattr(WrappedRobot, _row.name):
        setattr(WrappedRobot, _row.name, _method(_row))
WrappedRobot.crba = WrappedRobot.mass_matrix  # type: ignore[attr-defined]

METHODS: Sequence[str] = tuple(QUANTITIES)
