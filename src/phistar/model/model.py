# SPDX-License-Identifier: BSD-3-Clause
"""A robot as an immutable tree or forest of links, joints and frames with coordinates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, ModelError, Problem, UnknownNameError
from phistar.model.actuators import Actuator, check_actuators
from phistar.model.assemble import assemble
from phistar.model.components import GROUND, Body, Frame, Joint, Link, Loop, frozen
from phistar.model.fingerprint import fingerprint
from phistar.model.problems import (
    body_problems,
    joint_problems,
    link_problems,
    loop_problems,
    mass_problems,
)
from phistar.model.rotors import has_gyroscopic_rotors
from phistar.model.tree import mimic_problems, structure_problems, zero_multiplier_problems
from phistar.spatial import pose_product

T = TypeVar("T")

_MAPPINGS = ("joints", "frames", "configurations")

STANDARD_GRAVITY = frozen([0.0, 0.0, -9.81], (3,))


class HasModel(Protocol):
    """A robot, or anything that has a model."""

    @property
    def model(self) -> Model:
        """Its model."""
        ...


@dataclass(frozen=True, eq=False)
class Model:
    """An immutable robot: build one with ``Model.build`` or ``ModelBuilder``.

    Attributes:
        name: Name of the robot.
        links: Every link in file order, those merged by fixed joints included.
        joints: Every joint by name, parents first, depth first, siblings in file order.
        frames: Every frame by name: all links, then the extra frames.
        loops: Joints and couplings that close loops; stored, not part of the tree.
        bodies: The moving bodies of the algorithms, parents first.
        joint_names: The independent moving joints in the order of their coordinates.
        gravity: (3,) [m/s^2], world axes.
        configurations: Named configurations (nq,) such as a file's keyframes.
        problems: Warnings and notes of the build.
        actuated: Joints that a file gives motors, in its order; none if it says nothing of motors.
        actuators: What makes joint forces out of control signals, as far as a file says it.
    """

    name: str
    links: tuple[Link, ...] = field(repr=False)
    joints: Mapping[str, Joint] = field(repr=False)
    frames: Mapping[str, Frame] = field(repr=False)
    loops: tuple[Loop, ...] = field(repr=False)
    bodies: tuple[Body, ...] = field(repr=False)
    joint_names: tuple[str, ...]
    gravity: Array = field(repr=False)
    configurations: Mapping[str, Array] = field(repr=False)
    problems: tuple[Problem, ...] = field(repr=False)
    actuated: tuple[str, ...] = field(default=(), repr=False)
    actuators: tuple[Actuator, ...] = field(default=(), repr=False)

    @classmethod
    def build(
        cls,
        name: str,
        links: Sequence[Link],
        joints: Sequence[Joint],
        *,
        frames: Sequence[Frame] = (),
        loops: Sequence[Loop] = (),
        gravity: ArrayLike = STANDARD_GRAVITY,
        configurations: Mapping[str, ArrayLike] | None = None,
        order: Sequence[str] | None = None,
        single_root: bool = False,
        actuated: Sequence[str] = (),
        actuators: Sequence[Actuator] = (),
    ) -> Model:
        """A model from links, joints and frames.

        Args:
            name: Name of the robot.
            links, joints: In file order.
            frames: Extra frames (name, link and pose are read, the body is found).
            loops: Loop joints and couplings.
            gravity: (3,) [m/s^2].
            configurations: Named configurations, each (nq,).
            order: Independent moving joints in the order of coordinates.
            single_root: Reject forests.
            actuated: Names of moving joints that have motors.
            actuators: What drives joints, if more is known of it.

        Raises:
            ModelError: With every problem found, if one of them is an error.
            UnknownNameError: An actuated joint that there is not.
            ArgumentError: An actuator makes no sense, see ``check_actuators``.
        """
        problems = structure_problems(links, joints, single_root=single_root)
        problems += mimic_problems(joints) + link_problems(links) + joint_problems(joints)
        problems += loop_problems(links, joints, loops)
        if errors := [problem for problem in problems if problem.severity == "error"]:
            raise ModelError(errors)
        problems += zero_multiplier_problems(joints) + mass_problems(links, name)
        if order is not None:
            _check_order(name, [j.name for j in joints if j.nv], order)
        _check_actuated(name, joints, actuated)
        assembled = assemble(links, joints, order)
        indefinite = body_problems(problems, links, assembled.frames, assembled.bodies)
        if indefinite:
            raise ModelError(indefinite)
        all_frames = dict(assembled.frames)
        for frame in frames:
            all_frames[frame.name] = _attach(frame, all_frames)
        model = cls(
            name=name,
            links=tuple(links),
            joints=MappingProxyType(assembled.joints),
            frames=MappingProxyType(all_frames),
            loops=tuple(loops),
            bodies=assembled.bodies,
            joint_names=assembled.order,
            gravity=_gravity(gravity),
            configurations=MappingProxyType({}),
            problems=tuple(problems),
            actuated=tuple(dict.fromkeys(actuated)),
            actuators=check_actuators(actuators, assembled.joints, name),
        )
        return model.with_configurations(configurations or {})

    @cached_property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.joints[self.joint_names[-1]].q_slice.stop if self.joint_names else 0

    @cached_property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return self.joints[self.joint_names[-1]].v_slice.stop if self.joint_names else 0

    @cached_property
    def link_names(self) -> tuple[str, ...]:
        """Every link of the file in file order."""
        return tuple(link.name for link in self.links if not link.virtual)

    @cached_property
    def frame_names(self) -> tuple[str, ...]:
        """Every named frame: links first, then extra frames."""
        return tuple(self.frames)

    @cached_property
    def total_mass(self) -> float:
        """Mass of all links, those fixed to the ground included [kg]."""
        return float(sum(link.mass for link in self.links))

    @cached_property
    def parents(self) -> Array:
        """(bodies,) index of each body's parent, -1 for the ground."""
        return np.array([body.parent for body in self.bodies], dtype=int)

    @cached_property
    def inertias(self) -> Array:
        """(bodies, 10) inertia parameters about the body frames' origins."""
        parameters = [body.inertia for body in self.bodies]
        return np.concatenate([np.zeros(0), *parameters]).reshape(-1, 10)

    @cached_property
    def turning_rotors(self) -> bool:
        """Whether a joint with several axes has rotor inertia that rotates with it."""
        return any(has_gyroscopic_rotors(body) for body in self.bodies)

    @cached_property
    def link_table(self) -> Mapping[str, Link]:
        """Links by name."""
        return MappingProxyType({link.name: link for link in self.links})

    def link(self, name: str) -> Link:
        """The link called ``name``."""
        return _lookup("link", name, self.link_table, self.name)

    def joint(self, name: str) -> Joint:
        """The joint called ``name``."""
        return _lookup("joint", name, self.joints, self.name)

    def frame(self, name: str) -> Frame:
        """The frame called ``name``."""
        return _lookup("frame", name, self.frames, self.name)

    def ancestors(self, body: int) -> list[int]:
        """Indices of ``body`` and its ancestors, from the root outward."""
        path: list[int] = []
        while body != GROUND:
            path.append(body)
            body = self.bodies[body].parent
        return path[::-1]

    def with_gravity(self, gravity: ArrayLike) -> Model:
        """The same robot in another gravity field (3,) [m/s^2]."""
        return replace(self, gravity=_gravity(gravity))

    def without_loops(self) -> Model:
        """The same robot without loops and couplings: the tree that dynamics works on."""
        return replace(self, loops=()) if self.loops else self

    def with_loops(self, loops: Sequence[Loop]) -> Model:
        """The same robot with other loops.

        Raises:
            ModelError: A loop is not possible, or two have one name.
        """
        problems = loop_problems(self.links, tuple(self.joints.values()), loops)
        counts = Counter(loop.name for loop in loops)
        twice = [name for name, count in counts.items() if count > 1]
        if problems or twice:
            raise ModelError(problems or f"two loops of '{self.name}' are called {twice[0]!r}")
        return replace(self, loops=tuple(loops))

    def with_configurations(self, configurations: Mapping[str, ArrayLike]) -> Model:
        """The same robot with other named configurations, each (nq,)."""
        named = {
            name: frozen(q, (self.nq,), f"configuration '{name}'")
            for name, q in configurations.items()
        }
        return replace(self, configurations=MappingProxyType(named))

    def reorder(self, names: Sequence[str]) -> Model:
        """The same robot with the coordinates of its independent joints in the given order.

        Args:
            names: Every name of ``joint_names``, once each.

        Raises:
            UnknownNameError: A name that is no independent moving joint.
            ModelError: A name is missing or given twice.
        """
        _check_order(self.name, self.joint_names, names)
        named = {
            key: np.concatenate([q[self.joints[name].q_slice] for name in names])
            for key, q in self.configurations.items()
        }
        extra = [f for f in self.frames.values() if f.name not in self.link_table]
        return Model.build(
            self.name,
            self.links,
            tuple(self.joints.values()),
            frames=extra,
            loops=self.loops,
            gravity=self.gravity,
            configurations=named,
            order=names,
            actuated=self.actuated,
            actuators=self.actuators,
        )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that defines the robot; equal robots have equal fingerprints."""
        return fingerprint(self)

    def __getstate__(self) -> dict[str, object]:
        """Its data, without caches."""
        state = {each.name: getattr(self, each.name) for each in fields(self)}
        return state | {name: dict(state[name]) for name in _MAPPINGS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore it as ``build`` made it, read-only."""
        named = state["configurations"].items()
        state["configurations"] = {name: frozen(q, q.shape) for name, q in named}
        state["gravity"] = frozen(state["gravity"], (3,))
        vars(self).update(state, **{name: MappingProxyType(state[name]) for name in _MAPPINGS})

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: object) -> Model:
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        return self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)


def _gravity(values: ArrayLike) -> Array:
    gravity = frozen(values, (3,), "gravity")
    if not np.isfinite(gravity).all():
        raise ArgumentError(f"gravity is {gravity.tolist()}, expected finite numbers [m/s^2]")
    return gravity


def _attach(frame: Frame, frames: Mapping[str, Frame]) -> Frame:
    if frame.name in frames:
        raise ModelError(f'frame "{frame.name}" has the name of another frame or link; rename it')
    carrier = _lookup("link", frame.link, frames, "the robot")
    body_pose = frozen(pose_product(carrier.body_pose, frame.pose), (4, 4))
    return replace(frame, body=carrier.body, body_pose=body_pose)


def _check_actuated(owner: str, joints: Sequence[Joint], actuated: Sequence[str]) -> None:
    """Reject motors at joints that there are not, or that do not move."""
    moving = {joint.name for joint in joints if joint.joint_kind.nv} if actuated else set()
    for name in actuated:
        if name not in moving:
            raise UnknownNameError("moving joint", name, moving, f"'{owner}'")


def _check_order(owner: str, independent: Sequence[str], order: Sequence[str]) -> None:
    """Reject an order that does not have every independent joint once."""
    known, counts = set(independent), Counter(order)
    for name in counts:
        if name not in known:
            raise UnknownNameError("independent joint", name, independent, f"'{owner}'")
    missing = [name for name in independent if name not in counts]
    twice = [name for name, count in counts.items() if count > 1]
    if missing or twice:
        raise ModelError(
            f"an order of coordinates needs every independent joint of '{owner}' once: "
            f"missing {missing}, given twice {twice}"
        )


def _lookup(kind: str, name: str, table: Mapping[str, T], owner: str) -> T:
    try:
        return table[name]
    except (KeyError, TypeError):
        raise UnknownNameError(kind, name, table, f"'{owner}'") from None


__all__ = ["STANDARD_GRAVITY", "Model"]
