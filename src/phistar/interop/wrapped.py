# SPDX-License-Identifier: BSD-3-Clause
"""A robot whose methods take and give arrays of another package: what all adapters share.

Methods have the names and arguments of ``Robot``. Those of ``QUANTITIES`` come from that table;
some more are made of them here, in arithmetic of the package: steps of time, wrenches on frames,
second derivatives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from phistar.errors import ArgumentError, ShapeError, UnknownNameError, kind_of
from phistar.interop import derivative_rules as rules
from phistar.interop.quantities import QUANTITIES, Quantity
from phistar.joint_physics.passive_forces import force_parts
from phistar.model.joint_physics import Passive
from phistar.robot import Robot

Values = Any
COMPOSED_SCHEMES = ("semi_implicit", "euler")
"""Schemes of ``step`` that are made of forward dynamics and ``integrate``."""


def require_robot(robot: object) -> None:
    """Raise unless it is one."""
    if not isinstance(robot, Robot):
        raise ArgumentError(
            f"wrap takes a phistar.Robot, got {kind_of(robot)}; phistar.load makes one"
        )


class WrappedRobot(ABC):
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

    def __init__(self, robot: Robot, field: Any) -> None:
        self.robot = robot
        self.field = field
        self.nq, self.nv = robot.nq, robot.nv

    def __repr__(self) -> str:
        return f"<{self.robot!r:.{len(repr(self.robot)) - 1}} in {self.package}>".replace("<<", "<")

    @abstractmethod
    def _array(self, value: Any, name: str) -> Values:
        """A user's value as an array of the package, in its own precision."""

    @abstractmethod
    def _promoted(self, arrays: Mapping[str, Values]) -> list[Values]:
        """Arrays in one precision."""

    # -- what is not a row

    def inverse_dynamics(
        self,
        q: Values,
        v: Values,
        vdot: Values,
        forces: Mapping[str, Values] | None = None,
        reference: str = "world_aligned",
    ) -> Values:
        """Joint forces (..., nv) that give the accelerations ``vdot``, with wrenches on frames."""
        q, v, vdot = self._read(q=q, v=v, vdot=vdot)
        (tau,) = self.field.call("inverse_dynamics", q, v, vdot)
        pushed = self._pushed(q, forces, reference)
        return tau if pushed is None else tau - pushed

    def forward_dynamics(
        self,
        q: Values,
        v: Values,
        tau: Values,
        forces: Mapping[str, Values] | None = None,
        reference: str = "world_aligned",
    ) -> Values:
        """Joint accelerations (..., nv) under ``tau`` and wrenches (..., 6) on frames."""
        q, v, tau = self._read(q=q, v=v, tau=tau)
        pushed = self._pushed(q, forces, reference)
        return self.field.call("forward_dynamics", q, v, tau if pushed is None else tau + pushed)[0]

    def integrate(self, q: Values, dv: Values) -> Values:
        """The configuration (..., nq) reached from q by a tangent step ``dv`` (..., nv)."""
        q, dv = self._read(q=q, dv=dv)
        return self.field.space.integrated(q, dv)

    def step(
        self,
        q: Values,
        v: Values,
        tau: Values,
        dt: Values,
        *,
        scheme: str = "semi_implicit",
        passive: Passive = False,
        forces: Mapping[str, Values] | None = None,
        reference: str = "world_aligned",
    ) -> tuple[Values, Values]:
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
        h = self._time(dt, q)
        if scheme not in COMPOSED_SCHEMES or self.field.on_loops:
            ends = self.field.call("step", q, v, tau, h, scheme=scheme, parts=parts)
            return ends[0], ends[1]
        if parts:
            tau = tau + self.field.call("passive_force", q, v, parts=parts)[0]
        ahead = v + h * self.field.call("forward_dynamics", q, v, tau)[0]
        moved = h * (v if scheme == "euler" else ahead)
        return self.field.space.integrated(q, moved), ahead

    def link_poses(self, q: Values) -> dict[str, Values]:
        """Poses (..., 4, 4) of all links by name."""
        (found,) = self.field.call("link_poses", *self._read(q=q))
        names = self.robot.model.link_names
        return {name: found[..., i, :, :] for i, name in enumerate(names)}

    def mass_matrix_q(self, q: Values) -> Values:
        """∂𝓜/∂q (..., nv, nv, nv) along tangent steps."""
        return rules.mass_matrix_q(self.field, *self._read(q=q))

    def inverse_dynamics_second(self, q: Values, v: Values, vdot: Values) -> Any:
        """Second derivatives of joint forces: ``.qq .qv .vv .q_vdot``, as of the robot."""
        found = rules.inverse_second(self.field, *self._read(q=q, v=v, vdot=vdot))
        return _named("inverse_dynamics_second", ("qq", "qv", "vv", "q_vdot"))(*found)

    def forward_dynamics_second(self, q: Values, v: Values, tau: Values) -> Any:
        """Second derivatives of joint accelerations: ``.qq .qv .vv .q_tau``, as of the robot."""
        _, by = rules.linearize(self.field, "linearize", {}, tuple(self._read(q=q, v=v, tau=tau)))
        found = (by[1][0], by[1][1], by[2][1], by[1][2])
        return _named("forward_dynamics_second", ("qq", "qv", "vv", "q_tau"))(*found)

    rnea = inverse_dynamics
    aba = forward_dynamics

    # -- what comes in

    def _read(self, **given: Any) -> list[Values]:
        """Arrays whose shapes are checked, in one precision."""
        arrays = {}
        for name, value in given.items():
            if isinstance(value, Mapping):
                raise ArgumentError(
                    f"{name} is a dict by joint name; {self.package} takes arrays: "
                    "robot.configuration(q) and robot.tangent(v) make such"
                )
            array = self._array(value, name)
            size = self.nq if name in ("q", "q0", "q1") else self.nv
            if array.ndim == 0 or array.shape[-1] != size:
                owner = f"robot '{self.robot.name}'"
                raise ShapeError(name, tuple(array.shape), f"(..., {size})", owner)
            arrays[name] = array
        return self._promoted(arrays)

    def _time(self, dt: Any, like: Values) -> Values:
        """A length of time as an array (..., 1), in the precision of another one."""
        array = self._array(dt, "dt")
        _, array = self._promoted({"q": like, "dt": array})
        return array[..., None]

    def _pushed(
        self, q: Values, forces: Mapping[str, Values] | None, reference: str
    ) -> Values | None:
        """J* f of wrenches on frames."""
        total = None
        for frame, wrench in (forces or {}).items():
            _, f = self._promoted({"q": q, "f": self._array(wrench, f"forces['{frame}']")})
            if f.shape[-1:] != (6,):
                raise ShapeError(f"forces['{frame}']", tuple(f.shape), "(..., 6)", "a wrench")
            (J,) = self.field.call("jacobian", q, frame=frame, reference=reference)
            term = (J * f[..., None]).sum(-2)
            total = term if total is None else total + term
        return total


@cache
def _named(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name, fields)


def _method(row: Quantity) -> Any:
    """The method of a row: arrays first, then choices, by position or by name."""
    names = (*row.arguments, *row.choices)

    def call(self: WrappedRobot, *args: Any, **given: Any) -> Any:
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
        found = self.field.call(row.name, *arrays, **everything)
        return _named(row.name, row.results)(*found) if row.results else found[0]

    call.__name__ = row.name
    call.__qualname__ = f"WrappedRobot.{row.name}"
    call.__doc__ = f"{row.doc}\n\nArguments: {', '.join(names)}, as of ``Robot.{row.name}``."
    return call


for _row in QUANTITIES.values():
    if not hasattr(WrappedRobot, _row.name):
        setattr(WrappedRobot, _row.name, _method(_row))
WrappedRobot.crba = WrappedRobot.mass_matrix  # type: ignore[attr-defined]

METHODS: Sequence[str] = tuple(QUANTITIES)
