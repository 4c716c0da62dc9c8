# SPDX-License-Identifier: BSD-3-Clause
"""Motions on the loops of a robot of which the independent coordinates are given.

The coordinates are entries R of the step d = difference(q₀, q) from a configuration, on joints of
every kind; d changes at the rate E v and the second rate E v̇ + (Ėv). With the rows of the loops

    [E_R; L] v = (ḋ_R, 0)        [E_R; L] v̇ = (d̈_R - (Ėv)_R, -L̇v)

and configurations are found by Newton's method with the same matrix.
"""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.control.actuation import matvec
from phistar.loops.assembly import ASSEMBLED_TOLERANCE, open_loop_error
from phistar.loops.minimal import MinimalCoordinates
from phistar.loops.system import loop_system, motion_at, rows_at
from phistar.robot import Robot

_LONGEST_PIECE = 0.1
"""Longest way of a coordinate between configurations that are found one from the other [rad, m]."""
_MAX_ITERATIONS = 20
_ROUNDING = 1e-13
"""Errors without units below this are rounding."""


def follow_on_loops(
    robot: Robot, free: MinimalCoordinates, way: Array, rate: Array, growth: Array
) -> tuple[Array, Array, Array]:
    """q (..., nq), v and v̇ (..., nv) of steps of independent coordinates from ``free.q``.

    Args:
        robot: The robot.
        free: Its independent coordinates.
        way: (..., n) steps.
        rate: (..., n) their rates.
        growth: (..., n) their second rates.

    Raises:
        LoopOpenError: The mechanism does not reach there.
    """
    q = np.array(np.broadcast_to(free.q, (*way.shape[:-1], robot.nq)))
    pieces = max(1, int(np.ceil(np.abs(way).max(initial=0.0) / _LONGEST_PIECE)))
    for k in range(1, pieces + 1):
        q = _reach(robot, free, q, way * (k / pieces))
    _require_closed(robot, q)
    no_rows = np.zeros((*way.shape[:-1], loop_system(robot.model).count))
    inverse = np.linalg.pinv(_matrix(robot, free, q), rcond=1e-10)
    v = matvec(inverse, np.concatenate([rate, no_rows], axis=-1))
    bias = robot.difference_bias(free.q, q, v)[..., free.entries]
    right_side = np.concatenate([growth - bias, -motion_at(robot.model, q, v).bias], axis=-1)
    return q, v, matvec(inverse, right_side)


def _matrix(robot: Robot, free: MinimalCoordinates, q: Array) -> Array:
    """[E_R; L] (..., n + rows, nv)."""
    E = robot.difference_q(free.q, q)[..., free.entries, :]
    return np.concatenate([E, rows_at(robot.model, q).L], axis=-2)


def _reach(robot: Robot, free: MinimalCoordinates, q: Array, way: Array) -> Array:
    """Newton's method to a step of the independent coordinates on the loops, from nearby."""
    system = loop_system(robot.model)
    for _ in range(_MAX_ITERATIONS):
        short = way - robot.difference(free.q, q)[..., free.entries]
        error = rows_at(robot.model, q).error
        if max(np.abs(short).max(), np.abs(system.row_scale * error).max()) < _ROUNDING:
            break
        inverse = np.linalg.pinv(_matrix(robot, free, q), rcond=1e-10)
        q = robot.integrate(q, matvec(inverse, np.concatenate([short, -error], axis=-1)))
    return q


def _require_closed(robot: Robot, q: Array) -> None:
    system, error = loop_system(robot.model), rows_at(robot.model, q).error
    bad = ~(np.abs(system.row_scale * error).max(axis=-1) <= ASSEMBLED_TOLERANCE)
    if bad.any():
        raise open_loop_error(
            robot.model,
            error,
            np.asarray(bad),
            "a motion on the loops",
            "the mechanism does not reach there: choose another end, or other independent joints",
        )
