# SPDX-License-Identifier: BSD-3-Clause
"""What tests of all adapters share: robots, arguments of quantities, derivatives by differences."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import phistar
from benchmarks import mechanisms
from phistar.arrays import Array
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.interop.quantities import QUANTITIES
from phistar.model.random import random_model
from tests.helpers import SHARED

TREES = ("cartpole", "double_pendulum", "humanoid", "panda", "panda_hand", "quadruped", "ur5")
LOOPED = ("delta", "four_bar", "humanoid_ankles")

SHARED_ROBOTS = (
    "arm/brax__brax__envs__assets__inverted_double_pendulum.xml",
    "arm/dex_urdf__robots__arms__xarm7__xarm7.urdf",
    "arm/differentiable_robot_model__diff_robot_data__kinova_description__urdf__jaco.urdf",
    "arm/moveit_resources__fanuc_description__urdf__fanuc.urdf",
    "arm/rigidbodydynamics_jl__test__urdf__Acrobot.urdf",
    "drone/example_robot_data__robots__hextilt_description__urdf__hextilt_flying_arm_5.urdf",
    "humanoid/mujoco_menagerie__unitree_h1__h1.xml",
    "mjcf-feature/mujoco__test__engine__testdata__core_smooth__ten_J2.xml",
    "mjcf-feature/mujoco__test__engine__testdata__rotations.xml",
    "mjcf-feature/mujoco__test__engine__testdata__sleep__smooth.xml",
    "mobile/mujoco__model__car__car.xml",
    "quadruped/brax__brax__envs__assets__ant.xml",
)
"""Twelve of ../shared/robots: arms, free bases, balls, slides, mimic joints."""


def load(name: str) -> phistar.Robot:
    """A bundled robot, one of ../shared/robots, or ``"mixed"``; without its loops."""
    if name == "mixed":
        return mixed()
    path = SHARED / "robots" / name if Path(name).suffix else name
    return phistar.load(str(path)).tree


def mixed() -> phistar.Robot:
    """A small floating tree with joints of many kinds."""
    kinds = ["revolute", "spherical", "planar", "helical"]
    model = random_model(np.random.default_rng(8), 4, kinds=kinds, floating_base=True)
    return phistar.load(model)


def state(robot: phistar.Robot, shape: tuple[int, ...] = (), seed: int = 0) -> list[Array]:
    """q, v and a joint vector."""
    rng = np.random.default_rng(seed)
    return [robot.random_configuration(rng, shape), *rng.normal(size=(2, *shape, robot.nv))]


def arguments(robot: phistar.Robot, name: str, shape: tuple[int, ...] = (), seed: int = 0):
    """Arrays of a quantity by name, and its choices."""
    row = QUANTITIES[name]
    rng = np.random.default_rng(seed)
    q, v, x = state(robot, shape, seed + 1)
    known = {
        "q": q,
        "q0": q,
        "q1": robot.integrate(q, 0.3 * x / np.sqrt(robot.nv)),
        "dv": 0.2 * rng.normal(size=v.shape),
        "dt": np.full((*shape, 1), 0.01),
    }
    arrays = {each: known.get(each, v if each == "v" else x) for each in row.arguments}
    frame = robot.frame_names[-1]
    chosen = {"frame": frame, "frames": (frame,)}
    return arrays, {each: chosen[each] for each in row.choices if each in chosen}


def directions(robot: phistar.Robot, arrays: dict[str, Array], seed: int = 9) -> dict[str, Array]:
    """A random direction for each array; tangent steps for configurations."""
    rng = np.random.default_rng(seed)
    sizes = {n: robot.nv if n in ("q", "q0", "q1") else x.shape[-1] for n, x in arrays.items()}
    return {n: rng.normal(size=(*x.shape[:-1], sizes[n])) for n, x in arrays.items()}


def moved(robot: phistar.Robot, arrays: dict[str, Array], along: dict[str, Array], h: float):
    """Arrays after a step h along directions."""
    return [
        robot.integrate(x, h * along[n]) if n in ("q", "q0", "q1") else x + h * along[n]
        for n, x in arrays.items()
    ]


def coordinate_rates(robot: phistar.Robot, q: Array, dq: Array) -> Array:
    """How the numbers of q change along a tangent, by complex steps of ``integrate``."""
    return robot.integrate(q, 1e-30j * dq).imag / 1e-30


def change(
    function: Callable[..., Array | Sequence[Array]],
    robot: phistar.Robot,
    arrays: dict[str, Array],
    along: dict[str, Array],
    h: float = 1e-4,
) -> list[Array]:
    """Derivatives of all results along directions, by differences of fourth order."""
    total: list[Array] = []
    for step, weight in ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0)):
        found = function(*moved(robot, arrays, along, step * h))
        found = found if isinstance(found, (list, tuple)) else [found]
        terms = [weight / (12.0 * h) * np.asarray(x) for x in found]
        total = terms if not total else [a + b for a, b in zip(total, terms, strict=True)]
    return total


def looped(name: str) -> phistar.Robot:
    """A bundled robot with its loops, or ``"bricard"``, whose rows depend on each other."""
    return mechanisms.bricard() if name == "bricard" else phistar.load(name)


def on_loops(robot: phistar.Robot, count: int, seed: int = 0):
    """Curves t -> (q, v, tau) on the loops of a robot, arrays (count, ...), and weights."""
    rng = np.random.default_rng(seed)
    m = robot.minimal(robot.assemble(robot.neutral()))
    start = m.coordinates(robot.assemble(robot.neutral()))
    size = len(m.independent)
    speeds, turns = 0.3 * rng.normal(size=(2, count, size))
    tau, push = rng.normal(size=(2, count, robot.nv))

    def at(t: float) -> list[Array]:
        ends = [m.expand(start + t * a, 0.5 * b + t * c) for a, b, c in
                zip(speeds, turns, turns[::-1], strict=True)]  # fmt: skip
        return [np.stack(x) for x in zip(*ends, strict=True)] + [tau + t * push]

    return at, rng.normal(size=(count, robot.nv))


def slope_at_zero(function: Callable[[float], list[Array]], h: float = 1e-3) -> list[Array]:
    """Derivatives of arrays that follow a number, by differences of sixth order."""
    total: list[Array] = []
    for step, weight in ((1, 45.0), (2, -9.0), (3, 1.0)):
        for sign in (1, -1):
            found = [sign * weight / (60 * h) * np.asarray(x) for x in function(sign * step * h)]
            total = found if not total else [a + b for a, b in zip(total, found, strict=True)]
    return total


def bend_at_zero(function: Callable[[float], Array], h: float = 5e-3) -> Array:
    """The second derivative of an array that follows a number, by differences of sixth order."""
    weights = ((0, -490.0), (1, 270.0), (2, -27.0), (3, 2.0))
    ends = ((w, s * k * h) for k, w in weights for s in ((1, -1) if k else (1,)))
    total = sum(w * np.asarray(function(t)) for w, t in ends)
    return np.asarray(total) / (180.0 * h * h)


def close(ours, theirs, bound: float) -> None:
    """Of the largest entry."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    worst = np.abs(ours - theirs).max(initial=0.0)
    assert worst <= bound * max(np.abs(theirs).max(initial=0.0), 1e-2), worst


def check_wrong_arguments(wrapped, q, v, tau) -> None:
    """One clear error each, the same of all adapters; arrays of a Panda."""
    with pytest.raises(ShapeError, match=r"v has shape \(2, 7\).*broadcast with \(3,\)"):
        wrapped.forward_dynamics(*(np.stack([np.asarray(x)] * n) for x, n in ((q, 3), (v, 2))), tau)
    with pytest.raises(ShapeError, match=r"dt has shape \(2, 1\).*broadcast with \(3,\)"):
        wrapped.step(np.stack([np.asarray(q)] * 3), v, tau, np.ones(2))
    for wrong in ("x", None, [[1, 2], [3]], np.array([None] * 7)):
        with pytest.raises(ArgumentError, match="v is not an array of numbers"):
            wrapped.forward_dynamics(q, wrong, tau)
    masked = np.ma.masked_array(np.asarray(q), mask=np.arange(7) == 2)
    with pytest.raises(ArgumentError, match="q is a masked array"):
        wrapped.mass_matrix(masked)
    frame = "panda_link8"
    with pytest.raises(ArgumentError, match="reference must be one of 'local'"):
        wrapped.jacobian(q, frame, reference="body")
    with pytest.raises(ArgumentError, match="reference must be one of 'local'"):
        wrapped.forward_dynamics(q, v, tau, reference="body")
    with pytest.raises(UnknownNameError, match=r"no scheme 'heun'\. Known: euler"):
        wrapped.step(q, v, tau, 0.01, scheme="heun")
    with pytest.raises(ArgumentError, match="frame is 8, expected a name"):
        wrapped.frame_pose(q, 8)
    with pytest.raises(ArgumentError, match="fixed is 'no', expected True or False"):
        wrapped.center_of_mass(q, fixed="no")
    with pytest.raises(ArgumentError, match=r"forces is .*expected wrenches"):
        wrapped.forward_dynamics(q, v, tau, forces=np.ones(6))
    with pytest.raises(ShapeError, match=r"forces\['panda_link8'\] has shape \(5,\)"):
        wrapped.forward_dynamics(q, v, tau, forces={frame: np.ones(5)})
