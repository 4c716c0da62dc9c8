# SPDX-License-Identifier: BSD-3-Clause
"""Checks of users' costs: members, shapes, values, derivatives."""

from __future__ import annotations

import numpy as np

from phistar.arrays import Array
from phistar.control.actuation import Actuation, require_positive
from phistar.control.cost import Cost, Expansion
from phistar.errors import ArgumentError, DerivativeError, ShapeError, kind_of
from phistar.robot import Robot

_STEP = 1e-6
"""Step of central differences."""
_MIN_RELATIVE_SCALE = 1e-3
"""Errors are relative to the largest entry, but to no less than this fraction of the cost:
derivatives may be zero."""


def checked_actuation(cost: Cost) -> Actuation:
    """The robot and motors of a cost, checked to be complete.

    Raises:
        ArgumentError: Something is missing; the message says how to add it.
    """
    kind = kind_of(cost)
    for name in ("actuation", "value", "expansion"):
        if not hasattr(cost, name):
            raise ArgumentError(
                f"the cost, {kind}, has no {name}; a cost has actuation = "
                "control.Actuation.of(robot), value(q, v, u, dt) and expansion(q, v, u, dt), see "
                "control.Cost"
            )
    actuation: object = cost.actuation
    if not isinstance(actuation, Actuation):
        given = kind_of(actuation)
        raise ArgumentError(
            f"actuation of the cost, {kind}, is {given}, expected control.Actuation.of(robot) "
            "or, with names of the driven joints, control.Actuation.of(robot, names)"
        )
    return actuation


def checked_value(cost: Cost, q: Array, v: Array, u: Array, dt: float) -> Array:
    """Cost (...) of motions, its shape checked."""
    value = np.asarray(cost.value(q, v, u, dt))
    if value.shape != u.shape[1:-1]:
        expected = f"{u.shape[1:-1]}: a number for each motion of the batch"
        raise ShapeError("cost.value(...)", value.shape, expected, "ilqr")
    return value


def checked_expansion(
    cost: Cost, q: Array, v: Array, u: Array, dt: float, *, definite: bool = False
) -> Expansion:
    """The derivatives of a cost, their shapes checked.

    Args:
        cost: The cost.
        q: (N + 1, ..., nq).
        v: (N + 1, ..., nv).
        u: (N, ..., nu).
        dt: [s].
        definite: Whether to check that uu is positive definite.
    """
    expansion = cost.expansion(q, v, u, dt)
    if not isinstance(expansion, Expansion):
        raise ArgumentError(
            f"cost.expansion(...) gives {kind_of(expansion)}, expected a control.Expansion"
        )
    n, m = 2 * v.shape[-1], u.shape[-1]
    shapes = {
        "x": (*v.shape[:-1], n),
        "xx": (*v.shape[:-1], n, n),
        "u": u.shape,
        "uu": (*u.shape, m),
    }
    for name, shape in shapes.items():
        array = np.asarray(getattr(expansion, name))
        if array.shape != shape:
            raise ShapeError(f"cost.expansion(...).{name}", array.shape, f"{shape}", "ilqr")
        if not np.isfinite(array).all():
            raise ArgumentError(f"cost.expansion(...).{name} is not finite")
    if definite and np.linalg.eigvalsh(expansion.uu).min(initial=1.0) <= 0.0:
        raise ArgumentError(
            "cost.expansion(...).uu is not positive definite: forces must cost something"
        )
    return expansion


def check_cost(
    cost: Cost, *, dt: float = 0.01, steps: int = 3, seed: int = 0, tolerance: float = 1e-5
) -> dict[str, float]:
    """Compare the gradients of a cost with central differences of its value, at a random motion.

    Second derivatives may be approximate (those of Gauss and Newton are); they are checked to be
    symmetric, and uu to be positive definite.

    Args:
        cost: ``QuadraticCost`` or your own.
        dt: Length of a step [s].
        steps: Number of steps, N.
        seed: Seed of the random motion.
        tolerance: Largest relative error that passes.

    Returns:
        The largest errors of ``x`` and ``u``, relative to the largest entry.

    Raises:
        DerivativeError: An error is above the tolerance.
        ShapeError, ArgumentError: Something has a wrong shape, is missing, not finite or not
            symmetric.
    """
    actuation = checked_actuation(cost)
    robot = actuation.robot
    require_positive("dt", dt)
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng, (steps + 1,))
    v, u = rng.normal(size=(steps + 1, robot.nv)), rng.normal(size=(steps, actuation.size))
    at = checked_expansion(cost, q, v, u, dt, definite=True)
    for name in ("xx", "uu"):
        array = getattr(at, name)
        if np.abs(array - np.swapaxes(array, -1, -2)).max() > tolerance * np.abs(array).max():
            raise ArgumentError(f"cost.expansion(...).{name} is not symmetric")
    scale = _MIN_RELATIVE_SCALE * float(np.abs(cost.value(q, v, u, dt)))
    errors = {
        "x": _error(at.x, _state_slopes(cost, robot, q, v, u, dt), scale),
        "u": _error(at.u, _force_slopes(cost, q, v, u, dt), scale),
    }
    if not max(errors.values()) <= tolerance:
        text = f"gradients of the cost, {kind_of(cost)}, differ from those of its value"
        raise DerivativeError(robot.name, errors, tolerance, text)
    return errors


def _error(gradient: Array, slopes: Array, scale: float) -> float:
    largest = max(float(np.abs(slopes).max()), scale, np.finfo(float).tiny)
    return float(np.abs(gradient - slopes).max()) / largest


def _state_slopes(cost: Cost, robot: Robot, q: Array, v: Array, u: Array, dt: float) -> Array:
    """(N + 1, 2 nv) by central differences; all steps are one batch."""
    knots, n = v.shape
    moves = np.zeros((knots, knots, n, n))
    moves[range(knots), range(knots)] = _STEP * np.eye(n)
    # (knot, knot that moves, coordinate, n)
    q, v, u = (
        np.broadcast_to(x[:, None, None], (len(x), knots, n, x.shape[-1])) for x in (q, v, u)
    )
    along_q = [checked_value(cost, robot.integrate(q, s * moves), v, u, dt) for s in (1, -1)]
    along_v = [checked_value(cost, q, v + s * moves, u, dt) for s in (1, -1)]
    slopes = [(after - before) / (2 * _STEP) for after, before in (along_q, along_v)]
    return np.concatenate(slopes, axis=-1)


def _force_slopes(cost: Cost, q: Array, v: Array, u: Array, dt: float) -> Array:
    """(N, nu) by central differences."""
    steps, m = u.shape
    moves = np.zeros((steps, steps, m, m))
    moves[range(steps), range(steps)] = _STEP * np.eye(m)
    q, v, u = (
        np.broadcast_to(x[:, None, None], (len(x), steps, m, x.shape[-1])) for x in (q, v, u)
    )
    ends = [checked_value(cost, q, v, u + s * moves, dt) for s in (1, -1)]
    return np.asarray((ends[0] - ends[1]) / (2 * _STEP))
