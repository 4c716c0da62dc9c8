# SPDX-License-Identifier: BSD-3-Clause
"""Random robots of every joint kind and shape of tree, for tests, demos and fuzzing.

The same generator state gives the same ``Model``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model.builder import ModelBuilder, make_pose
from phistar.model.components import Coupling, Mimic, Shape
from phistar.model.configuration import neutral, random_configuration
from phistar.model.joints import JOINT_KINDS, JointKind
from phistar.model.kinematic_loops import WORLD
from phistar.model.loop_kinds import LOWER_PAIRS
from phistar.model.model import STANDARD_GRAVITY, Model
from phistar.model.numpy_kinematics import link_poses
from phistar.model.tree import GROUND_NAME
from phistar.spatial import (
    box_inertia,
    pose_inverse,
    pose_product,
    quat_to_rotation,
    random_quaternion,
    rotate_inertia,
)

ParentRule = Callable[[np.random.Generator, int], int]


def _three_arms(rng: np.random.Generator, link: int) -> int:
    """A trunk of three links, each of which carries an arm."""
    return link - 3 if link > 3 else link - 1


TOPOLOGIES: dict[str, ParentRule] = {
    "serial": lambda rng, link: link - 1,
    "star": lambda rng, link: 0,
    "binary": lambda rng, link: (link - 1) // 2,
    "arms": _three_arms,
    "tree": lambda rng, link: int(rng.integers(link)),
    "forest": lambda rng, link: int(rng.integers(-1, link)),
}
"""Shapes of trees: the number of the parent link of link 1, 2, ...; -1 starts another tree."""


def random_model(
    rng: np.random.Generator,
    n: int = 6,
    *,
    kinds: Sequence[str] | None = None,
    topology: str = "tree",
    floating_base: bool = False,
    fixed: float = 0.0,
    mimic: float = 0.0,
    massless: float = 0.0,
    armature: float = 0.0,
    anchors: float = 0.0,
    frames: int = 0,
    loops: int = 0,
    configurations: int = 0,
    gravity: ArrayLike = STANDARD_GRAVITY,
    name: str = "random",
) -> Model:
    """A random robot with valid, well-conditioned inertias.

    Args:
        rng: Source of all randomness.
        n: Number of joints drawn from ``kinds``; ``fixed`` and ``floating_base`` add others.
        kinds: Names of joint kinds, drawn evenly; default every kind that moves.
        topology: One of ``TOPOLOGIES``. A ``"forest"`` has trees on fixed links and trees whose
            first joint is on the ground.
        floating_base: Put a free joint named ``root_joint`` under the root link.
        fixed: Probability of a welded link between a joint and its parent, and of one at its tip.
        mimic: Probability that a joint with one degree of freedom follows another; chains occur.
        massless: Probability that a link between two joints of one degree of freedom has no mass
            (other massless links would leave a joint without inertia to move).
        armature: Probability that a joint has armature, rotor and gear, damping, friction and a
            spring.
        anchors: Probability that a joint moves its child about a point away from the link frame,
            and that its coordinate is not zero there.
        frames: Number of extra frames.
        loops: Number of loop joints, closed at the neutral configuration, and couplings.
        configurations: Number of named configurations.
        gravity: (3,) [m/s^2].
        name: Name of the robot.

    Returns:
        The model; links are ``link0``, ``link1``, ..., and ``joint1`` carries ``link1``.

    Raises:
        ArgumentError: ``n`` is negative, or ``floating_base`` with a forest.
        UnknownNameError: No such topology or joint kind.
    """
    if n < 0:
        raise ArgumentError(f"n must be at least 0, got {n}")
    if topology not in TOPOLOGIES:
        raise UnknownNameError("topology", topology, TOPOLOGIES)
    sketch = _RandomBuilder(rng, name, gravity)
    motions = _draw_kinds(rng, n, kinds)
    parents = [TOPOLOGIES[topology](rng, link) for link in range(1, n + 1)]
    hollow = _massless_links(rng, motions, parents, massless)
    laws = _mimic_laws(rng, motions, mimic)
    sketch.add_link("link0", hollow=False)
    for link, (motion, parent) in enumerate(zip(motions, parents, strict=True), start=1):
        carrier = sketch.carrier(link, parent, fixed)
        sketch.add_link(f"link{link}", hollow=link in hollow)
        sketch.add_joint(link, motion, carrier, laws.get(link), armature, anchors)
        if rng.random() < fixed:
            sketch.weld(f"link{link}", f"tip{link}")
    sketch.add_frames(frames)
    sketch.add_loops(loops, floating_base)
    sketch.add_configurations(configurations, floating_base)
    return sketch.builder.build(floating_base=floating_base)


def _draw_kinds(rng: np.random.Generator, n: int, kinds: Sequence[str] | None) -> list[JointKind]:
    """``n`` kinds with random parameters, each name as often as the others, in random order."""
    names = [k for k, cls in JOINT_KINDS.items() if cls.nv] if kinds is None else list(kinds)
    for unknown in (name for name in names if name not in JOINT_KINDS):
        raise UnknownNameError("joint kind", unknown, JOINT_KINDS)
    if n and not names:
        raise ArgumentError("kinds is empty; name at least one joint kind")
    names_drawn: list[str] = []
    while len(names_drawn) < n:
        names_drawn += [names[k] for k in rng.permutation(len(names))]
    return [JOINT_KINDS[name].random_kind(rng) for name in names_drawn[:n]]


def _massless_links(
    rng: np.random.Generator, motions: Sequence[JointKind], parents: Sequence[int], share: float
) -> set[int]:
    """Links between single-axis joints; each has a massive child, so every joint moves inertia."""
    chosen: set[int] = set()
    for motion, parent in zip(motions, parents, strict=True):
        simple = parent > 0 and motion.nv == 1 and motions[parent - 1].nv == 1
        lonely = parent > 0 and parents[parent - 1] not in chosen
        if simple and lonely and rng.random() < share:
            chosen.add(parent)
    return chosen


def _mimic_laws(
    rng: np.random.Generator, motions: Sequence[JointKind], share: float
) -> dict[int, Mimic]:
    """Laws by link number; joints follow earlier ones of a random order, so there is no cycle."""
    single = [link for link, motion in enumerate(motions, start=1) if motion.nv == 1]
    order = [single[k] for k in rng.permutation(len(single))]
    laws: dict[int, Mimic] = {}
    for position, link in enumerate(order):
        if position and rng.random() < share:
            leader = order[int(rng.integers(position))]
            factor = float(rng.uniform(0.3, 1.5) * rng.choice([-1.0, 1.0]))
            laws[link] = Mimic(f"joint{leader}", factor, float(rng.uniform(-0.5, 0.5)))
    return laws


class _RandomBuilder:
    """A builder that draws random numbers for what it adds."""

    def __init__(self, rng: np.random.Generator, name: str, gravity: ArrayLike) -> None:
        self.rng = rng
        self.builder = ModelBuilder(name, gravity)

    def uniform(self, low: float, high: float, count: int) -> tuple[float, ...]:
        return tuple(float(x) for x in self.rng.uniform(low, high, count))

    def pose(self, reach: float) -> Array:
        return make_pose(
            self.rng.uniform(-reach, reach, 3),
            rotation=quat_to_rotation(random_quaternion(self.rng)),
        )

    def add_link(self, name: str, *, hollow: bool) -> None:
        """A solid box that is also drawn, or a link without mass and shape."""
        if hollow:
            self.builder.link(name)
            return
        mass, size = float(self.rng.uniform(0.5, 3.0)), self.uniform(0.1, 0.5, 3)
        seat = self.pose(0.2)
        rotation = seat[:3, :3]
        inertia = rotate_inertia(rotation, box_inertia(mass, size))
        rgba = (*self.uniform(0.2, 1.0, 3), 1.0)
        box = Shape("box", size, seat, (rgba[0], rgba[1], rgba[2], rgba[3]))
        self.builder.link(name, mass, seat[:3, 3], inertia, visuals=[box], collisions=[box])

    def carrier(self, link: int, parent: int, fixed: float) -> str:
        """Name of the link that carries the joint of ``link``; may start a new tree."""
        if parent < 0:
            if self.rng.random() < 0.5:
                return GROUND_NAME
            self.add_link(f"root{link}", hollow=False)
            return f"root{link}"
        if self.rng.random() < fixed:
            self.weld(f"link{parent}", f"mount{link}")
            return f"mount{link}"
        return f"link{parent}"

    def weld(self, parent: str, child: str) -> None:
        self.add_link(child, hollow=False)
        self.builder.joint(f"{child}_weld", "fixed", parent, child, origin=self.pose(0.3))

    def add_joint(
        self,
        link: int,
        motion: JointKind,
        parent: str,
        law: Mimic | None,
        armature: float,
        anchors: float,
    ) -> None:
        rng = self.rng
        lower, upper = self._position_limits(motion)
        velocity, effort = self._size_limits(motion), self._size_limits(motion)
        drive = self._drive(motion) if rng.random() < armature else {}
        anchor = self.pose(0.2) if rng.random() < anchors else None
        shifted = motion.nv == 1 and rng.random() < anchors
        self.builder.joint(
            f"joint{link}",
            motion,
            parent,
            f"link{link}",
            origin=self.pose(0.4),
            child_pose=anchor,
            lower=lower,
            upper=upper,
            velocity=velocity,
            effort=effort,
            reference=float(rng.uniform(-0.5, 0.5)) if shifted else 0.0,
            mimic=law,
            **drive,
        )

    def _position_limits(self, motion: JointKind) -> tuple[list[float], list[float]]:
        """Limits about zero for half of the joints; none for continuous joints and quaternions."""
        lower, upper = [-math.inf] * motion.nq, [math.inf] * motion.nq
        if motion.unlimited or self.rng.random() < 0.5:
            return lower, upper
        for k, unit in enumerate(motion.q_units):
            if unit:
                largest = 2.5 if unit == "rad" else 1.0
                low, high = self.uniform(0.3, largest, 2)
                lower[k], upper[k] = -low, high
        return lower, upper

    def _size_limits(self, motion: JointKind) -> tuple[float, ...]:
        if self.rng.random() < 0.5:
            return (math.inf,) * motion.nv
        return self.uniform(1.0, 50.0, motion.nv)

    def _drive(self, motion: JointKind) -> dict[str, Any]:
        nv, unlimited = motion.nv, np.full(motion.nq, math.inf)
        return {
            "armature": self.uniform(0.01, 0.1, nv),
            "rotor_inertia": self.uniform(1e-5, 1e-4, nv),
            "gear_ratio": self.uniform(5.0, 30.0, nv),
            "damping": self.uniform(0.1, 1.0, nv),
            "friction": self.uniform(0.01, 0.1, nv),
            "stiffness": self.uniform(0.0, 5.0, nv),
            "spring_reference": motion.random(self.rng, -unlimited, unlimited, ()),
        }

    def _some_link(self) -> str:
        links = self.builder.links
        return links[int(self.rng.integers(len(links)))].name

    def add_frames(self, count: int) -> None:
        for k in range(1, count + 1):
            self.builder.frame(f"frame{k}", self._some_link(), pose=self.pose(0.3))

    def add_loops(self, count: int, floating_base: bool) -> None:
        """Loop joints and, where two independent joints of one coordinate exist, couplings."""
        if not count:
            return
        model = self.builder.build(floating_base=floating_base)
        poses = link_poses(model, neutral(model))
        single = [name for name in model.joint_names if model.joints[name].joint_kind.nv == 1]
        for k in range(1, count + 1):
            if k % 3 == 0 and len(single) > 1:
                self._couple(f"coupling{k}", single)
            else:
                self._close(f"loop{k}", poses)

    def _close(self, name: str, poses: dict[str, Array]) -> None:
        """A loop joint between two links whose frames coincide at ``poses``."""
        names = list(poses)
        first, second = (names[k] for k in self.rng.choice(len(names), 2, len(names) < 2))
        seat, there = self.pose(0.3), poses[first]
        if first == second:
            first, there = WORLD, np.eye(4)
        between = pose_product(pose_inverse(there), poses[second])
        kinds = LOWER_PAIRS
        self.builder.loop(
            name,
            kinds[int(self.rng.integers(len(kinds)))],
            first,
            second,
            predecessor_pose=pose_product(between, seat),
            successor_pose=seat,
            axis=self.rng.normal(size=3).tolist(),
            active=bool(self.rng.random() < 0.8),
        )

    def _couple(self, name: str, joints: Sequence[str]) -> None:
        dependent, source = (joints[k] for k in self.rng.permutation(len(joints))[:2])
        y0, x0 = self.uniform(-0.5, 0.5, 2)
        self.builder.couple(Coupling(name, dependent, source, self.uniform(-1, 1, 3), (y0, x0)))

    def add_configurations(self, count: int, floating_base: bool) -> None:
        if not count:
            return
        model = self.builder.build(floating_base=floating_base)
        for k in range(1, count + 1):
            self.builder.configurations[f"pose{k}"] = random_configuration(model, self.rng)


__all__ = ["TOPOLOGIES", "random_model"]
