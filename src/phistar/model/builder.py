# SPDX-License-Identifier: BSD-3-Clause
"""Building a robot in Python; also used by the loaders."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError
from phistar.model.actuators import UNLIMITED, Actuator, actuator_kind
from phistar.model.components import (
    IDENTITY,
    Coupling,
    Drive,
    Frame,
    Joint,
    Limits,
    Link,
    Loop,
    LoopJoint,
    Mimic,
    Shape,
    frozen,
)
from phistar.model.configuration import configuration
from phistar.model.joints import Axis, Free, JointKind, make_kind, unit_axis
from phistar.model.model import STANDARD_GRAVITY, Model
from phistar.model.tree import GROUND_NAME
from phistar.spatial import pose
from phistar.spatial.reproducible_math import sincos

MimicMode = Literal["reduce", "independent"]
PerDof = float | Sequence[float]

ROOT_JOINT = "root_joint"
"""Name of the free joint that ``floating_base=True`` adds."""


def make_pose(
    xyz: ArrayLike = (0.0, 0.0, 0.0),
    rpy: ArrayLike = (0.0, 0.0, 0.0),
    rotation: ArrayLike | None = None,
) -> Array:
    """A read-only (4, 4) pose from a position [m] and roll-pitch-yaw [rad] or a 3x3 rotation."""
    if rotation is not None:
        return frozen(pose(np.asarray(rotation), np.asarray(xyz, float)), (4, 4))
    (x, y, z), (roll, pitch, yaw) = _triple(xyz, "xyz"), _triple(rpy, "rpy")
    if roll == pitch == yaw == 0.0:
        if x == y == z == 0.0:
            return IDENTITY
        return _translated(x, y, z)
    (sr, cr), (sp, cp), (sy, cy) = sincos(roll), sincos(pitch), sincos(yaw)
    rows = (
        (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr, x),
        (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr, y),
        (-sp, cp * sr, cp * cr, z),
        (0.0, 0.0, 0.0, 1.0),
    )
    return frozen(rows, (4, 4))


def _pose(
    pose: ArrayLike | None,
    name: str,
    xyz: ArrayLike = (0.0, 0.0, 0.0),
    rpy: ArrayLike = (0.0, 0.0, 0.0),
) -> Array:
    """A given pose, or one from a position and angles."""
    return make_pose(xyz, rpy) if pose is None else frozen(pose, (4, 4), name)


def _translated(x: float, y: float, z: float) -> Array:
    """A read-only pose without rotation."""
    result = IDENTITY.copy()
    result[0, 3], result[1, 3], result[2, 3] = x, y, z
    result.flags.writeable = False
    return result


def _triple(values: ArrayLike, name: str) -> tuple[float, float, float]:
    """Three floats; arithmetic on them is far cheaper than on arrays of three."""
    plain = isinstance(values, tuple) and len(values) == 3
    x, y, z = cast("Iterable[float]", values) if plain else frozen(values, (3,), name).tolist()
    return float(x), float(y), float(z)


class ModelBuilder:
    """Collects links, joints, frames and loops, and builds a ``Model``.

    Example:
        >>> arm = ModelBuilder("arm")
        >>> arm.link("base")
        >>> arm.link("upper", mass=1.0, com=(0, 0, 0.5), inertia=(0.1, 0.1, 0.01))
        >>> arm.joint("shoulder", "revolute", "base", "upper", axis=(0, 1, 0))
        >>> model = arm.build()
    """

    def __init__(self, name: str = "robot", gravity: ArrayLike = STANDARD_GRAVITY) -> None:
        self.name = name
        self.gravity = gravity
        self.links: list[Link] = []
        self.joints: list[Joint] = []
        self.frames: list[Frame] = []
        self.loops: list[Loop] = []
        self.actuated: list[str] = []
        self.actuators: list[Actuator] = []
        self.configurations: dict[str, Mapping[str, ArrayLike] | ArrayLike] = {}

    def link(
        self,
        name: str,
        mass: float = 0.0,
        com: ArrayLike = (0.0, 0.0, 0.0),
        inertia: ArrayLike = (0.0, 0.0, 0.0),
        *,
        visuals: Sequence[Shape] = (),
        collisions: Sequence[Shape] = (),
        virtual: bool = False,
        where: str = "",
        excluded: Sequence[str] = (),
    ) -> Link:
        """Add a link.

        Args:
            name: Unique name.
            mass: [kg].
            com: (3,) centre of mass in the link frame [m].
            inertia: About the centre of mass in link axes [kg m^2]: (3, 3), or
                (ixx, ixy, ixz, iyy, iyz, izz), or (ixx, iyy, izz).
            visuals, collisions: Shapes.
            virtual: Massless link that only realises a joint; not listed among the links.
            where: ``file:line``.
            excluded: Names of links that it does not touch.
        """
        link = Link(
            name,
            float(mass),
            frozen(com, (3,), f"com of link '{name}'"),
            frozen(inertia_rows(inertia, name), (3, 3), f"inertia of link '{name}'"),
            tuple(visuals),
            tuple(collisions),
            virtual,
            where,
            tuple(excluded),
        )
        self.links.append(link)
        return link

    def joint(
        self,
        name: str,
        kind: str | JointKind,
        parent: str,
        child: str,
        *,
        xyz: ArrayLike = (0.0, 0.0, 0.0),
        rpy: ArrayLike = (0.0, 0.0, 0.0),
        origin: ArrayLike | None = None,
        child_pose: ArrayLike | None = None,
        axis: Sequence[float] | None = None,
        axis2: Sequence[float] | None = None,
        pitch: float | None = None,
        lower: PerDof = -math.inf,
        upper: PerDof = math.inf,
        velocity: PerDof = math.inf,
        effort: PerDof = math.inf,
        armature: PerDof = 0.0,
        rotor_inertia: PerDof = 0.0,
        gear_ratio: PerDof = 1.0,
        damping: PerDof = 0.0,
        friction: PerDof = 0.0,
        stiffness: PerDof = 0.0,
        spring_reference: Sequence[float] | float | None = None,
        reference: float = 0.0,
        mimic: Mimic | None = None,
        where: str = "",
    ) -> Joint:
        """Add a joint.

        Args:
            name: Unique name.
            kind: Name of a joint kind (then ``axis``, ``axis2``, ``pitch`` apply) or a kind.
            parent, child: Link names; the parent ``"(ground)"`` is the world itself.
            xyz, rpy: Joint frame in the parent link's frame [m, rad]; or ``origin`` (4, 4).
            child_pose: (4, 4) child link's frame in the joint's moved frame.
            lower, upper: Limits per configuration coordinate [rad or m].
            velocity, effort: Limits per velocity coordinate.
            armature, rotor_inertia, gear_ratio: See ``Drive``; a scalar holds for every dof.
            damping, friction, stiffness, spring_reference: Likewise.
            reference: Coordinate value at which the joint's transform is the identity.
            mimic: Follow another joint.
            where: ``file:line``.
        """
        if isinstance(kind, JointKind):
            motion = kind
        else:
            motion = make_kind(kind, axis, pitch=pitch, axis2=axis2)
        nq, nv = motion.nq, motion.nv
        spring_rest = motion.neutral() if spring_reference is None else spring_reference
        per_coordinate = partial(_per_coordinate, f"joint '{name}'")
        joint = Joint(
            name,
            motion,
            parent,
            child,
            _pose(origin, f"origin of joint '{name}'", xyz, rpy),
            _pose(child_pose, f"child_pose of joint '{name}'"),
            float(reference),
            Limits(
                per_coordinate(lower, nq, "lower"),
                per_coordinate(upper, nq, "upper"),
                per_coordinate(velocity, nv, "velocity"),
                per_coordinate(effort, nv, "effort"),
            ),
            Drive(
                per_coordinate(armature, nv, "armature"),
                per_coordinate(rotor_inertia, nv, "rotor_inertia"),
                per_coordinate(gear_ratio, nv, "gear_ratio"),
                per_coordinate(damping, nv, "damping"),
                per_coordinate(friction, nv, "friction"),
                per_coordinate(stiffness, nv, "stiffness"),
                per_coordinate(spring_rest, nq, "spring_reference"),
            ),
            mimic,
            where=where,
        )
        self.joints.append(joint)
        return joint

    def frame(
        self,
        name: str,
        link: str,
        *,
        xyz: ArrayLike = (0.0, 0.0, 0.0),
        rpy: ArrayLike = (0.0, 0.0, 0.0),
        pose: ArrayLike | None = None,
    ) -> None:
        """Add a named frame fixed to ``link``, at ``xyz``, ``rpy`` or a (4, 4) ``pose`` in it."""
        frame_pose = _pose(pose, f"pose of frame '{name}'", xyz, rpy)
        self.frames.append(Frame(name, link, frame_pose))

    def loop(
        self,
        name: str,
        kind: str,
        predecessor: str,
        successor: str,
        *,
        predecessor_pose: ArrayLike | None = None,
        successor_pose: ArrayLike | None = None,
        axis: Sequence[float] = (0.0, 0.0, 1.0),
        active: bool = True,
        where: str = "",
    ) -> None:
        """Add a loop joint between frames of two links (see ``LoopJoint``)."""
        first = _pose(predecessor_pose, f"predecessor_pose of loop '{name}'")
        second = _pose(successor_pose, f"successor_pose of loop '{name}'")
        direction: Axis = unit_axis(axis)
        self.loops.append(
            LoopJoint(name, kind, predecessor, successor, first, second, direction, active, where)
        )

    def couple(self, coupling: Coupling) -> None:
        """Add a polynomial coupling between two joints; it is stored with the loops."""
        self.loops.append(coupling)

    def actuate(self, *joints: str) -> None:
        """Say which joints have motors; by default nothing is known of motors."""
        self.actuated += joints

    def actuator(
        self,
        name: str,
        joints: str | Sequence[str],
        *,
        gear: PerDof = 1.0,
        gain: Sequence[float] = (1.0, 0.0, 0.0),
        bias: Sequence[float] = (0.0, 0.0, 0.0),
        ctrlrange: Sequence[float] = UNLIMITED,
        forcerange: Sequence[float] = UNLIMITED,
        where: str = "",
    ) -> Actuator:
        """Add an actuator (see ``Actuator``) on a joint, or on a sum of joints; a motor by default.

        Args:
            name: Unique name.
            joints: Name of a joint with one coordinate, or several.
            gear: Length per unit of the joints' coordinates, one number or one for each.
            gain, bias: Coefficients of 1, length and its rate. A servo for positions with
                stiffness k and damping d has gain ``(k, 0, 0)`` and bias ``(0, -k, -d)``, one for
                velocities with gain ``(d, 0, 0)`` and bias ``(0, 0, -d)``.
            ctrlrange, forcerange: Least and largest control signal and force.
            where: ``file:line``.
        """
        names = (joints,) if isinstance(joints, str) else tuple(joints)
        numbers = partial(_per_coordinate, f"actuator '{name}'")
        gains, biases = (
            cast("tuple[float, float, float]", numbers(np.asarray(x, dtype=float), 3, what))
            for x, what in ((gain, "gain"), (bias, "bias"))
        )
        signals, forces = (
            cast("tuple[float, float]", numbers(np.asarray(x, dtype=float), 2, what))
            for x, what in ((ctrlrange, "ctrlrange"), (forcerange, "forcerange"))
        )
        gears = numbers(gear, len(names), "gear")
        kind = actuator_kind(gains, biases)
        made = Actuator(name, kind, names, gears, gains, biases, signals, forces, where)
        self.actuators.append(made)
        self.actuated += names
        return made

    def build(
        self,
        *,
        floating_base: bool = False,
        mimic: MimicMode = "reduce",
        single_root: bool = False,
        order: Sequence[str] | None = None,
    ) -> Model:
        """The model.

        Args:
            floating_base: Put a free joint named ``root_joint`` under the (only) root link.
            mimic: ``"reduce"`` lets mimic joints share their leader's coordinates,
                ``"independent"`` gives them coordinates of their own.
            single_root: Reject forests.
            order: Independent joints in the order of coordinates.

        Raises:
            ModelError: With every problem found.
        """
        joints = list(self.joints)
        if mimic == "independent":
            joints = [replace(joint, mimic=None) for joint in joints]
        elif mimic != "reduce":
            raise ArgumentError(f"mimic must be 'reduce' or 'independent', got {mimic!r}")
        if floating_base:
            joints.insert(0, self._root_joint())
        model = Model.build(
            self.name,
            self.links,
            joints,
            frames=self.frames,
            loops=self.loops,
            gravity=self.gravity,
            order=order,
            single_root=single_root,
            actuated=self.actuated,
            actuators=self.actuators,
        )
        named = {k: configuration(model, q, k) for k, q in self.configurations.items()}
        return model.with_configurations(named) if named else model

    def _root_joint(self) -> Joint:
        children = {joint.child for joint in self.joints}
        roots = [link.name for link in self.links if link.name not in children]
        if len(roots) != 1:
            raise ArgumentError(
                f"floating_base=True needs exactly one root link, '{self.name}' has "
                f"{len(roots)}: {', '.join(roots[:5])}"
            )
        if any(joint.name == ROOT_JOINT for joint in self.joints):
            raise ArgumentError(f"'{self.name}' already has a joint named '{ROOT_JOINT}'")
        kind = Free()
        limits, drive = Limits.unlimited(kind), Drive.passive_free(kind)
        return Joint(ROOT_JOINT, kind, GROUND_NAME, roots[0], limits=limits, drive=drive)


def _per_coordinate(owner: str, value: PerDof | Array, count: int, name: str) -> tuple[float, ...]:
    """One number per coordinate; a scalar is repeated."""
    if isinstance(value, float):
        return (float(value),) * count
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        array = np.zeros((0, 0))
    if array.ndim == 0:
        return (float(array),) * count
    if array.shape != (count,):
        expected = "one number" if count == 1 else f"one number or {count}"
        raise ArgumentError(f"{name} of {owner} is {value!r}, expected {expected}")
    return tuple(float(x) for x in array)


def inertia_rows(inertia: ArrayLike, link: str) -> ArrayLike:
    """The rows of an inertia in any form of ``ModelBuilder.link``."""
    if isinstance(inertia, tuple) and len(inertia) == 6:
        ixx, ixy, ixz, iyy, iyz, izz = inertia
        return (ixx, ixy, ixz), (ixy, iyy, iyz), (ixz, iyz, izz)
    try:
        array = np.asarray(inertia, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"inertia of link '{link}' is {inertia!r}, expected numbers") from None
    if array.shape == (3,):
        return np.diag(array)
    if array.shape == (6,):
        return inertia_rows(tuple(array.tolist()), link)
    if array.shape == (3, 3):
        # The halves of a rotated matrix differ by rounding; a real difference is kept and reported.
        slip = np.abs(array - array.T).max() <= 1e-12 * np.abs(array).max()
        return (array + array.T) / 2 if slip else array
    raise ArgumentError(
        f"inertia of link '{link}' has shape {array.shape}, expected (3,), (6,) or (3, 3)"
    )
