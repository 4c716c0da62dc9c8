# SPDX-License-Identifier: BSD-3-Clause
"""Robots to differentiate, and the witness: Im f(x + ih) / h, exact for h that vanishes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import phistar
from phistar.model.random import random_model

Array = np.ndarray
TINY = 1e-30

ROBOTS: dict[str, dict[str, Any]] = {
    "serial": {"topology": "serial", "armature": 0.5},
    "tree": {"topology": "tree", "armature": 0.5, "fixed": 0.3, "massless": 0.2},
    "forest": {"topology": "forest", "armature": 0.5, "anchors": 0.5},
    "free base": {"topology": "binary", "floating_base": True, "frames": 2},
}
"""Each has every joint kind that moves."""


@dataclass(frozen=True)
class State:
    """A robot, a batch of states and of directions."""

    robot: phistar.Robot
    q: Array
    v: Array
    x: Array
    """Accelerations or forces."""
    dq: Array
    dv: Array
    dx: Array
    w: Array


def state(
    name: str = "tree", seed: int = 3, batch: tuple[int, ...] = (2,), n: int = 10, **options: Any
) -> State:
    """A random robot in random states."""
    rng = np.random.default_rng(seed)
    chosen = {**ROBOTS[name], **options}
    robot = phistar.Robot(random_model(rng, n, gravity=(0.7, -1.1, -9.3), **chosen))
    q = robot.random_configuration(rng, batch)
    return State(robot, q, *rng.normal(size=(6, *batch, robot.nv)))


def close(ours: Any, theirs: Any, tolerance: float = 1e-11) -> None:
    """The same shape, and the same numbers relative to the largest, or to 1e-2 if all are less."""
    assert np.shape(ours) == np.shape(theirs)
    assert np.abs(ours - theirs).max(initial=0.0) <= tolerance * max(
        np.abs(theirs).max(initial=0.0), 1e-2
    )


def times(matrix: Array, x: Array) -> Array:
    """Matrices times vectors."""
    return (matrix @ x[..., None])[..., 0]


def flip(matrix: Array) -> Array:
    """Transposed matrices."""
    return np.swapaxes(matrix, -1, -2)


def steps(
    robot: phistar.Robot, function: Callable[..., Array], arguments: Sequence[Array]
) -> list[Array]:
    """Derivatives of a function of (q, v, ...), an array a argument; directions come last."""
    found = []
    for place, argument in enumerate(arguments):
        units = TINY * 1j * np.eye(robot.nv)
        units = units.reshape(robot.nv, *(1 for _ in argument.shape[:-1]), robot.nv)
        moved = robot.integrate(argument[None], units) if place == 0 else argument[None] + units
        here = [moved if k == place else x[None] for k, x in enumerate(arguments)]
        found.append(np.moveaxis(function(*here).imag / TINY, 0, -1))
    return found


def along(
    robot: phistar.Robot,
    function: Callable[..., Array],
    arguments: Sequence[Array],
    moves: Sequence[Array],
) -> Array:
    """The derivative of a function of (q, v, ...) along one direction."""
    q, *rest = arguments
    dq, *others = (TINY * 1j * move for move in moves)
    moved = [x + dx for x, dx in zip(rest, others, strict=True)]
    return function(robot.integrate(q, dq), *moved).imag / TINY
