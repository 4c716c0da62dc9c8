# SPDX-License-Identifier: BSD-3-Clause
"""Mechanisms with loops for long runs: as drawn, q = 0 closes all of them.

Also the problems of the IFToMM library of benchmarks: a pendulum on a row that keeps its length
(A01), four-bar windows in a row (A02), Andrews' squeezing mechanism (A03).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

import phistar
from benchmarks.starts import SHARED
from phistar import Robot
from phistar.arrays import Array
from phistar.compile import traced_executable
from phistar.constraints import Distance
from phistar.loops.traced_rows import ANYWHERE, dynamics_key
from phistar.model import ModelBuilder
from phistar.sim.loop_stepper import loop_accelerations, onto_loops
from phistar.spatial import pose

State = tuple[Robot, Array, Array]
"""A robot, q and v."""

REFERENCE = SHARED / "reference-problems" / "reference.json"
ANDREWS = SHARED / "loops" / "andrews.xml"


def in_motion(robot: Robot, seed: int = 0, speed: float = 1.0) -> State:
    """A robot from its drawn configuration at velocities on the loops, at random."""
    rng = np.random.default_rng(seed)
    q, v = robot.project(robot.neutral(), rng.normal(size=robot.nv))
    return robot, q, speed * v / np.abs(v).max()


def _rod(builder: ModelBuilder, name: str, end: Array) -> None:
    """A rod of 1 kg from its origin to a point (3,), a little thick."""
    along = np.outer(end, end)
    inertia = (np.trace(along) * np.eye(3) - along) / 12 + 0.002 * np.eye(3)
    builder.link(name, 1.0, end / 2, inertia)


def ring(name: str, points: ArrayLike, axes: ArrayLike) -> Robot:
    """Rods from point to point (n, 3), hinged about axes (n, 3), the last hinge on the ground."""
    corners, hinges = np.asarray(points, dtype=float), np.asarray(axes, dtype=float)
    builder = ModelBuilder(name)
    builder.link("ground")
    parent, place = "ground", corners[0]
    for i, end in enumerate(np.diff(corners, axis=0)):
        _rod(builder, f"rod{i}", end)
        builder.joint(
            f"hinge{i}", "continuous", parent, f"rod{i}", xyz=place, axis=hinges[i].tolist()
        )
        parent, place = f"rod{i}", end
    builder.loop(
        "last",
        "revolute",
        "ground",
        parent,
        predecessor_pose=pose(translation=corners[-1]),
        successor_pose=pose(translation=place),
        axis=hinges[-1].tolist(),
    )
    return Robot(builder.build())


def bricard() -> Robot:
    """Bricard's linkage, six hinges on the edges of a cube: five rows, of which four count."""
    x, y, z = np.eye(3)
    points = np.cumsum([0 * x, x, -y, z, -x, y], axis=0)
    return ring("bricard", points, [y, z, x, y, z, x])


def bennett(twist: float = 1.0, ratio: float = 0.6, angle: float = 0.9) -> Robot:
    """Bennett's linkage, four hinges askew: five rows, of which two count.

    Args:
        twist: Between the axes of the first and third rod, which are 1 m long [rad].
        ratio: Length of the others; the sines of the twists have the same ratio.
        angle: Of the first hinge.
    """
    other = math.asin(ratio * math.sin(twist))
    tangent = math.sin((other + twist) / 2) / math.sin((other - twist) / 2) / math.tan(angle / 2)
    second = 2 * math.atan(tangent)
    turns = (angle, second, -angle, -second)
    at, points, axes = np.eye(4), [], []
    for turn, length, skew in zip(turns, (1.0, ratio) * 2, (twist, other) * 2, strict=True):
        points.append(at[:3, 3])
        axes.append(at[:3, 2])
        at = at @ _about(2, turn) @ pose(translation=(length, 0, 0)) @ _about(0, skew)
    assert np.abs(at - np.eye(4)).max() < 1e-12, "the ring is closed"
    return ring("bennett", points, axes)


def _about(axis: int, angle: float) -> Array:
    """A turn about x, y or z, (4, 4)."""
    result = np.eye(4)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    cosine, sine = math.cos(angle), math.sin(angle)
    result[i, i] = result[j, j] = cosine
    result[i, j], result[j, i] = -sine, sine
    return result


def six_bar() -> Robot:
    """Watt's linkage in the x-z plane: a four-bar whose rocker drives two more bars."""
    builder = ModelBuilder("six_bar")
    builder.link("ground")
    corners = {
        "crank": ("ground", (0, 0, 0), (0.3, 0, 0.4)),
        "coupler": ("crank", (0.3, 0, 0.4), (1.5, 0, 1.0)),
        "rocker": ("ground", (1.6, 0, 0), (1.5, 0, 1.0)),
        "bar": ("rocker", (1.9, 0, 0.8), (2.9, 0, 1.1)),
        "follower": ("ground", (2.8, 0, 0.1), (2.9, 0, 1.1)),
    }
    origins = {"ground": np.zeros(3)}
    for name, (parent, first, last) in corners.items():
        origins[name] = np.array(first)
        _rod(builder, name, np.subtract(last, first))
        place = np.subtract(first, origins[parent])
        builder.joint(f"{name}_joint", "continuous", parent, name, xyz=place, axis=(0, 1, 0))
    for one, two in (("rocker", "coupler"), ("follower", "bar")):
        ends = (np.subtract(corners[k][2], origins[k]) for k in (one, two))
        first_pose, second_pose = (pose(translation=x) for x in ends)
        builder.loop(
            f"{two}_pin",
            "revolute",
            one,
            two,
            predecessor_pose=first_pose,
            successor_pose=second_pose,
            axis=(0, 1, 0),
        )
    return Robot(builder.build())


# -- problems with published solutions


def pendulum() -> State:
    """IFToMM A01 in Cartesian coordinates: 1 kg that slides along x and y, held at 1 m by a row."""
    builder = ModelBuilder("pendulum")
    builder.link("ground")
    builder.link("slide")
    builder.link("mass", 1.0)
    builder.joint("x", "prismatic", "ground", "slide", axis=(1, 0, 0))
    builder.joint("y", "prismatic", "slide", "mass", axis=(0, 1, 0))
    tree = Robot(builder.build().with_gravity((0, -9.81, 0)))
    robot = tree.with_loops(Distance("mass", at=(0, 0, 0), length=1.0))
    return robot, np.array([-1.0, 0.0]), np.zeros(2)


def windows(count: int, turn: float = 0.0) -> State:
    """IFToMM A02: ``count`` four-bar windows of rods of 1 m and 1 kg, upright, B0 at 1 m/s.

    Args:
        count: N.
        turn: Of the axes of rows about z [rad], which changes nothing but them. With 0 some rows
            vanish where the windows lie flat, otherwise they then depend on each other.
    """
    builder = ModelBuilder("windows")
    builder.link("ground")
    for i in range(count + 1):
        builder.link(f"rod{i}", 1.0, (0, 0.5, 0), (1 / 12, 1e-9, 1 / 12))
        builder.joint(f"foot{i}", "revolute", "ground", f"rod{i}", xyz=(i, 0, 0), axis=(0, 0, 1))
    for i in range(count):
        builder.link(f"bar{i}", 1.0, (0.5, 0, 0), (1e-9, 1 / 12, 1 / 12))
        builder.joint(f"top{i}", "revolute", f"rod{i}", f"bar{i}", xyz=(0, 1, 0), axis=(0, 0, 1))
        builder.loop(
            f"pin{i}",
            "revolute",
            f"rod{i + 1}",
            f"bar{i}",
            predecessor_pose=pose(translation=(0, 1, 0)) @ _about(2, turn),
            successor_pose=pose(translation=(1, 0, 0)) @ _about(2, turn),
        )
    robot = phistar.load(builder.build()).with_gravity((0, -9.81, 0))
    v = robot.tangent({name: -1.0 if name[0] == "f" else 1.0 for name in robot.joint_names})
    return robot, robot.neutral(), v


def spring_of_andrews(gamma: float) -> float:
    """Moment about gamma of the spring from C to point D of the body that carries it.

    Numbers of the IVP test set: D = B + (sd cos γ + sc sin γ, sd sin γ - sc cos γ).
    """
    sc, sd, stiffness, rest = 0.018, 0.02, 4530.0, 0.07785
    cosine, sine = math.cos(gamma), math.sin(gamma)
    x = -0.03635 + sd * cosine + sc * sine - 0.014
    y = 0.03273 + sd * sine - sc * cosine - 0.072
    length = math.hypot(x, y)
    pull = -stiffness * (length - rest) / length
    return pull * (x * (sc * cosine - sd * sine) + y * (sd * cosine + sc * sine))


def andrews(order: Sequence[str], start: Sequence[float], steps: int) -> tuple[Array, Array]:
    """IFToMM A03: angles and rates (7,) after 0.03 s of Runge-Kutta 4, projected after each step.

    Args:
        order: Names of the angles.
        start: Their values at rest.
        steps: How many.
    """
    robot = phistar.load(ANDREWS)
    model = robot.model
    for key in (dynamics_key(ANYWHERE), ("loop_projection",)):
        code = traced_executable(model, key)
        assert code is not None
        assert code.scalars is not None  # waits for it
    q = robot.assemble(dict(zip(order, start, strict=True)))
    v, h = np.zeros(robot.nv), 0.03 / steps
    motor, spring = (robot.joint_names.index(name) for name in ("beta", "gamma"))

    def rate(q: Array, v: Array) -> Array:
        tau = np.zeros(robot.nv)
        tau[motor] = 0.033
        tau[spring] = spring_of_andrews(q[spring])
        return loop_accelerations(model, q, v, tau)

    for _ in range(steps):
        a1 = rate(q, v)
        v2 = v + h / 2 * a1
        a2 = rate(q + h / 2 * v, v2)
        v3 = v + h / 2 * a2
        a3 = rate(q + h / 2 * v2, v3)
        v4 = v + h * a3
        a4 = rate(q + h * v3, v4)
        q, v = q + h / 6 * (v + 2 * v2 + 2 * v3 + v4), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        q, v = onto_loops(model, q, v)
    places = [robot.joint_names.index(name) for name in order]
    return q[places], v[places]
