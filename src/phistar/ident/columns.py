# SPDX-License-Identifier: BSD-3-Clause
"""Columns of the regressor: what is identified, each with a name and a unit.

Joint forces are linear in ten inertial parameters of each body and in a few numbers of each joint,

    τ = Y(q, v, v̇) π + B v + F sign(v) + b + A v̇ + K e(q) + known,

with damping B, dry friction F, an offset b (of sensor or motor), rotor inertia A and springs K.
``Columns`` says which of them are wanted and evaluates those; the rest is known from the robot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phistar.arrays import Array
from phistar.errors import ArgumentError, LoopError, UnknownNameError
from phistar.joint_physics.passive_forces import stretch
from phistar.model.joint_physics import passive_numbers
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.robot import Robot
from phistar.spatial import PARAMETER_NAMES

INERTIA_UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)
"""Units of ``PARAMETER_NAMES``."""
PER_BODY = len(PARAMETER_NAMES)


@dataclass(frozen=True)
class JointColumn:
    """A number of each joint that forces are linear in.

    Attributes:
        units: For rotations and for translations.
        signal: What it is multiplied by, of model, q, v, vdot: (..., nv).
        positive: Whether nature has it positive.
    """

    units: tuple[str, str]
    signal: Callable[[Model, Array, Array, Array], Array]
    positive: bool = True


JOINT_COLUMNS: Mapping[str, JointColumn] = {
    "viscous": JointColumn(("N m s/rad", "N s/m"), lambda model, q, v, a: v),
    "coulomb": JointColumn(("N m", "N"), lambda model, q, v, a: np.sign(v)),
    "offset": JointColumn(("N m", "N"), lambda model, q, v, a: np.ones_like(v), positive=False),
    "rotor": JointColumn(("kg m^2", "kg"), lambda model, q, v, a: a),
    "spring": JointColumn(("N m/rad", "N/m"), lambda model, q, v, a: _stretch_of_all(model, q)),
}
"""Kinds of joint columns by name."""
FRICTION = ("viscous", "coulomb", "offset")
"""Those that ``friction=`` chooses from."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a robot's regressor that are identified.

    Attributes:
        robot: The robot; what is not identified is known from it.
        bodies: Indices of the bodies whose inertia is identified.
        kinds: Of ``JOINT_COLUMNS``, in their order.
        joints: (n,) entries of v that have joint columns.
    """

    robot: Robot
    bodies: tuple[int, ...]
    kinds: tuple[str, ...]
    joints: tuple[int, ...]

    @classmethod
    def of(
        cls,
        robot: Robot,
        *,
        friction: Sequence[str] | bool = True,
        rotors: bool = True,
        springs: bool = False,
        bodies: Sequence[str] | None = None,
    ) -> Columns:
        """The columns of a robot.

        Args:
            robot: Without closed loops.
            friction: True, False, or some of ``"viscous"``, ``"coulomb"``, ``"offset"``.
            rotors: Whether inertia of rotors is identified.
            springs: Whether stiffness of joints is identified.
            bodies: Names of links whose bodies are identified; default: all that have mass.

        Raises:
            LoopError: The robot has closed loops.
            UnknownNameError: No such kind of friction, or link.
            ArgumentError: A body without mass is named.
        """
        model = robot.model
        if active_loops(model.loops):
            cure = "Identify robot.tree where its loops are open"
            raise LoopError(robot.name, "identification", model.loops, cure)
        _require_names("friction", friction, "True, False or several names")
        _require_names("bodies", bodies, "several names")
        chosen = set(FRICTION if friction is True else friction or ())
        for name in chosen:
            if name not in FRICTION:
                raise UnknownNameError("kind of friction", name, FRICTION)
        chosen |= ({"rotor"} if rotors else set()) | ({"spring"} if springs else set())
        single = [
            model.joints[name].v_slice.start
            for name in model.joint_names
            if model.joints[name].joint_kind.nv == 1
        ]
        kinds = tuple(kind for kind in JOINT_COLUMNS if kind in chosen)
        return cls(robot, _bodies(model, bodies), kinds, tuple(single) if kinds else ())

    @property
    def inertial(self) -> int:
        """Number of inertial columns; they come first."""
        return PER_BODY * len(self.bodies)

    def __len__(self) -> int:
        return self.inertial + len(self.kinds) * len(self.joints)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """``Ixx.upper_arm_link``, ``viscous.elbow_joint``."""
        links = [self.robot.model.bodies[k].link for k in self.bodies]
        joints = [joint_of(self.robot.model, entry) for entry in self.joints]
        return (
            *(f"{name}.{link}" for link in links for name in PARAMETER_NAMES),
            *(f"{kind}.{joint}" for kind in self.kinds for joint in joints),
        )

    def of_kind(self, kind: str) -> Array:
        """(joints,) indices of the joint columns of a kind; none if it is not identified."""
        if kind not in self.kinds:
            return np.zeros(0, dtype=int)
        start = self.inertial + self.kinds.index(kind) * len(self.joints)
        return np.arange(start, start + len(self.joints))

    @cached_property
    def units(self) -> tuple[str, ...]:
        """A unit for each column."""
        model = self.robot.model
        slides = [
            int(model.joints[joint_of(model, entry)].joint_kind.q_units[0] == "m")
            for entry in self.joints
        ]
        return (
            *INERTIA_UNITS * len(self.bodies),
            *(JOINT_COLUMNS[kind].units[slide] for kind in self.kinds for slide in slides),
        )

    @cached_property
    def positive(self) -> Array:
        """(columns,) whether a column is a joint's number that nature has positive."""
        joint = [JOINT_COLUMNS[kind].positive for kind in self.kinds for _ in self.joints]
        return np.array([False] * self.inertial + joint, dtype=bool)

    @cached_property
    def values(self) -> Array:
        """(columns,) the robot's own numbers."""
        numbers = joint_numbers(self.robot.model)
        parts = [np.asarray(self.robot.model.bodies[k].inertia) for k in self.bodies]
        parts += [numbers[kind][list(self.joints)] for kind in self.kinds]
        return np.concatenate(parts) if parts else np.zeros(0)

    @cached_property
    def inertial_entries(self) -> Array:
        """(inertial,) where the columns of the bodies are in ``robot.regressor``."""
        starts = PER_BODY * np.array(self.bodies, dtype=int)
        return np.asarray((starts[:, None] + np.arange(PER_BODY)).reshape(-1))

    @cached_property
    def support(self) -> tuple[Array, ...]:
        """For each entry of v the columns that its force may depend on."""
        model = self.robot.model
        felt = [np.zeros(len(self), dtype=bool) for _ in range(model.nv)]
        for place, k in enumerate(self.bodies):
            for ancestor in model.ancestors(k):
                entries = range(model.nv)[model.bodies[ancestor].v_slice]
                for entry in entries:
                    felt[entry][PER_BODY * place : PER_BODY * (place + 1)] = True
        for kind in range(len(self.kinds)):
            for place, entry in enumerate(self.joints):
                felt[entry][self.inertial + kind * len(self.joints) + place] = True
        return tuple(np.flatnonzero(each) for each in felt)

    def at(self, q: Array, v: Array, vdot: Array) -> Evaluated:
        """The columns at states (N, nq), (N, nv), (N, nv)."""
        model = self.robot.model
        bodies = self.robot.regressor(q, v, vdot)
        signals = [JOINT_COLUMNS[kind].signal(model, q, v, vdot) for kind in self.kinds]
        return Evaluated(self, bodies, signals)

    def known_force(self, q: Array, v: Array, vdot: Array) -> Array:
        """(N, nv) joint forces of all that is not identified: the robot less its own columns."""
        whole = self.robot.inverse_dynamics(q, v, vdot, passive=True)
        return np.asarray(whole - self.at(q, v, vdot).force(self.values))


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Columns at N states.

    Attributes:
        columns: Which.
        bodies: (N, nv, 10 bodies) the robot's regressor.
        signals: (N, nv) for each kind of joint column.
    """

    columns: Columns
    bodies: Array
    signals: Sequence[Array]

    def row(self, entry: int, wanted: Array) -> Array:
        """(N, len(wanted)) some columns, in ascending order, of the force of one entry of v."""
        columns = self.columns
        inertial = wanted[wanted < columns.inertial]
        result = np.empty((len(self.bodies), len(wanted)))
        result[:, : len(inertial)] = self.bodies[:, entry, columns.inertial_entries[inertial]]
        for k, column in enumerate(wanted[len(inertial) :], len(inertial)):
            kind, place = divmod(int(column) - columns.inertial, len(columns.joints))
            own = columns.joints[place] == entry
            result[:, k] = self.signals[kind][:, entry] if own else 0.0
        return result

    def dense(self) -> Array:
        """(N, nv, columns)."""
        every = np.arange(len(self.columns))
        rows = [self.row(entry, every) for entry in range(self.columns.robot.nv)]
        return np.stack(rows, axis=1)

    def force(self, theta: Array) -> Array:
        """(N, nv) joint forces of parameters (columns,)."""
        columns = self.columns
        whole = np.zeros(self.bodies.shape[-1])
        whole[columns.inertial_entries] = theta[: columns.inertial]
        result = np.asarray(self.bodies @ whole)
        joints = list(columns.joints)
        for signal, own in zip(
            self.signals, theta[columns.inertial :].reshape(-1, len(joints) or 1), strict=True
        ):
            result[:, joints] += signal[:, joints] * own
        return result


def joint_numbers(model: Model) -> dict[str, Array]:
    """The robot's own numbers of joint columns, (nv,) each; followers count with their leaders."""
    passive = passive_numbers(model)
    rotor = np.zeros(model.nv)
    for body in model.bodies:
        if body.joint_kind.nv == 1 and body.armature:
            rotor[body.v_slice] += body.scale**2 * body.armature[0]
    return {
        "viscous": passive.damping,
        "coulomb": passive.friction,
        "offset": np.zeros(model.nv),
        "rotor": rotor,
        "spring": passive.stiffness,
    }


def joint_of(model: Model, entry: int) -> str:
    """Name of the joint that an entry of v belongs to."""
    for name in model.joint_names:
        if entry in range(model.nv)[model.joints[name].v_slice]:
            return name
    raise ArgumentError(f"v has {model.nv} entries, and entry {entry} is none of them")


def _require_names(argument: str, given: object, wanted: str) -> None:
    """Raise for one name, of which each letter would be taken, and for what has no names."""
    if isinstance(given, str):
        raise ArgumentError(f"{argument} is {given!r}, expected several names: [{given!r}]")
    if not isinstance(given, Iterable | bool | None):
        raise ArgumentError(f"{argument} is {given!r:.80}, expected {wanted}")


def _bodies(model: Model, wanted: Sequence[str] | None) -> tuple[int, ...]:
    """Indices of bodies with mass, of all links or of those named."""
    massive = [body.index for body in model.bodies if body.inertia[0] > 0.0]
    if wanted is None:
        return tuple(massive)
    found = []
    for name in wanted:
        index = model.frame(name).body
        if index not in massive:
            raise ArgumentError(
                f"'{name}' has no mass to begin with; give it one, for instance by with_parameters"
            )
        found.append(index)
    return tuple(sorted(set(found)))


def _stretch_of_all(model: Model, q: Array) -> Array:
    """How far joints are from where springs rest, also those that have none yet."""
    numbers = passive_numbers(model)
    result = stretch(model, q)
    for entry, coordinate in enumerate(numbers.coordinates):
        if coordinate >= 0:
            result[..., entry] = q[..., coordinate] - numbers.spring_reference[coordinate]
    return result
