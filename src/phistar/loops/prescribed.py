# SPDX-License-Identifier: BSD-3-Clause
"""Prescribed motion in time: position, velocity and acceleration from functions, arrays, numbers.

Between the steps that arrays tell of, the velocity is the cubic with the velocities and the
accelerations of both ends. In the middle of a step the acceleration of that cubic is of the fourth
order, so that Runge-Kutta steps keep theirs. At the steps the position is the one told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.errors import ArgumentError, ShapeError
from phistar.loops.held import Motion
from phistar.loops.system import coordinate, loop_system, rows_at
from phistar.model.model import Model
from phistar.model.numpy_kinematics import frame_pose
from phistar.spatial import exp_se3, log_se3, pose_inverse, pose_product

if TYPE_CHECKING:
    from phistar.constraints import Prescribed

CONSISTENCY = 1e-2
"""Fraction of a motion by which its rate may miss the change it stands for."""
LOOKS = 8
"""Instants at which a function's rates are compared with its changes."""
LOOK_SHARE = 1e-5
"""Length of a comparison, as a fraction of the duration."""


def motion_in_time(
    told: Prescribed, model: Model, q: Array, duration: float, steps: int | None
) -> Motion:
    """What a constraint tells over the time of a simulation.

    Args:
        told: The constraint.
        model: The robot.
        q: (B, nq) at the start.
        duration: Of the simulation [s].
        steps: Their number, if they are of equal length; None: they are chosen.

    Raises:
        ArgumentError: Numbers do not belong together, or do not say all.
        ShapeError: Arrays do not fit the steps, the joint or the frame.
    """
    size = 1 if told.what in model.joints else 6
    if told.motion is None:
        return _at_constant_rates(told, model, q, size)
    if callable(told.motion):
        return _by_function(told.what, told.motion, size, duration)
    return _by_arrays(told.what, told.motion, size, duration, steps)


def held_at_start(model: Model, name: str, q: Array) -> Motion:
    """A loop joint that each sample holds where it is at the start.

    Args:
        model: The robot.
        name: Of the loop.
        q: (B, nq) at the start.
    """
    ((number, rows),) = [(n, r) for n, loop, r in loop_system(model).joints() if loop.name == name]
    place, rest = (
        rows_at(model, q).relative[..., number, :, :],
        np.zeros((1, rows.stop - rows.start)),
    )

    def stay(t: float) -> tuple[Array, Array, Array]:
        return place, rest, rest

    return stay


def _at_constant_rates(told: Prescribed, model: Model, q: Array, size: int) -> Motion:
    velocity, acceleration = told.drive(model)
    place = told.place(model)
    if size == 1:
        start = coordinate(model, told.what, q) if place is None else place[None]

        def turn(t: float) -> tuple[Array, Array, Array]:
            place = start + velocity * t + acceleration * t**2 / 2
            return place, (velocity + acceleration * t)[None], acceleration[None]

        return turn
    if acceleration.any():
        raise ArgumentError(
            f"Prescribed({told.what!r}) is a frame with an acceleration, which does not say where "
            "it goes; pass motion=f with f(t) its pose, velocity and acceleration"
        )
    pose = frame_pose(model, q, told.what) if place is None else place[None]

    def move(t: float) -> tuple[Array, Array, Array]:
        place = pose_product(pose, exp_se3(velocity * t))
        return place, velocity[None], np.zeros((1, 6))

    return move


def _by_function(
    what: str, function: Callable[[float], tuple[ArrayLike, ...]], size: int, duration: float
) -> Motion:
    def motion(t: float) -> tuple[Array, Array, Array]:
        found = function(t)
        if not isinstance(found, (tuple, list)) or len(found) != 3:
            raise ArgumentError(
                f"motion of Prescribed({what!r}) gives {found!r} at {t:.6g} s, expected position, "
                "velocity and acceleration"
            )
        return _instant(what, found, size, f"at {t:.6g} s")

    half = LOOK_SHARE * duration
    times = np.linspace(half, duration - half, LOOKS)
    before, after = ([motion(float(t)) for t in times + sign * half] for sign in (-1, 1))
    _require_consistent(what, _stacked(before), _stacked(after), 2 * half)
    return motion


def _by_arrays(
    what: str, told: tuple[ArrayLike, ...], size: int, duration: float, steps: int | None
) -> Motion:
    if steps is None:
        raise ArgumentError(
            f"motion of Prescribed({what!r}) is arrays, and this scheme chooses its steps; pass "
            "a function of time"
        )
    if len(told) != 3:
        raise ArgumentError(
            f"motion of Prescribed({what!r}) has {len(told)} arrays, expected positions, "
            "velocities and accelerations"
        )
    shapes = [(steps + 1, *shape) for shape in _shapes(size)]
    arrays = [np.asarray(x, dtype=float) for x in told]
    for array, shape, name in zip(arrays, shapes, _NAMES, strict=True):
        if array.shape != shape:
            whole = f"{shape}: one for each end of a step"
            raise ShapeError(f"{name} of Prescribed({what!r})", array.shape, whole, "the motion")
        if not np.isfinite(array).all():
            raise ArgumentError(f"{name} of Prescribed({what!r}) is not finite")
    place, velocity, acceleration = arrays[0], *(x.reshape(steps + 1, size) for x in arrays[1:])
    h = duration / steps
    first, last = ([x[k] for x in (place, velocity, acceleration)]
                   for k in (slice(None, -1), slice(1, None)))  # fmt: skip
    _require_consistent(what, first, last, h)

    def motion(t: float) -> tuple[Array, Array, Array]:
        k = min(int(t / h + 1e-6), steps)
        s = t / h - k
        if k == steps or s <= 1e-6:
            return place[k : k + 1], velocity[k : k + 1], acceleration[k : k + 1]
        (v0, v1), (a0, a1) = velocity[k : k + 2], h * acceleration[k : k + 2]
        rise = v1 - v0
        rate = v0 + s * s * (3 - 2 * s) * rise + s * (1 - s) * ((1 - s) * a0 - s * a1)
        slope = (6 * s * (1 - s) * rise + (1 - s) * (1 - 3 * s) * a0 - s * (2 - 3 * s) * a1) / h
        return place[k : k + 1], rate[None], slope[None]

    return motion


_NAMES = ("position", "velocity", "acceleration")


def _shapes(size: int) -> tuple[tuple[int, ...], ...]:
    """Of position, velocity and acceleration of a joint or of a frame."""
    return ((), (), ()) if size == 1 else ((4, 4), (6,), (6,))


def _instant(
    what: str, told: tuple[ArrayLike, ...], size: int, when: str
) -> tuple[Array, Array, Array]:
    arrays = [np.asarray(x, dtype=float) for x in told]
    for array, shape, name in zip(arrays, _shapes(size), _NAMES, strict=True):
        if array.shape != shape:
            expected = "a number" if size == 1 else f"{shape}"
            raise ShapeError(f"{name} of Prescribed({what!r}) {when}", array.shape, expected, what)
        if not np.isfinite(array).all():
            raise ArgumentError(f"{name} of Prescribed({what!r}) {when} is not finite")
    return arrays[0][None], arrays[1].reshape(1, size), arrays[2].reshape(1, size)


def _stacked(instants: list[tuple[Array, Array, Array]]) -> list[Array]:
    return [np.concatenate(x) for x in zip(*instants, strict=True)]


def _require_consistent(what: str, first: list[Array], last: list[Array], h: float) -> None:
    """Raise if velocities are not the rate of positions, or accelerations not that of velocities.

    Args:
        what: The joint or frame.
        first, last: Position, velocity and acceleration at both ends of intervals.
        h: Their length [s].
    """
    if first[0].ndim == 3:
        moved = log_se3(pose_product(pose_inverse(first[0]), last[0]))
    else:
        moved = (last[0] - first[0])[:, None]
    changes = (moved, last[1] - first[1])
    for change, rates, name in zip(changes, ((1, 0), (2, 1)), _NAMES[1:], strict=True):
        mean = h * (first[rates[0]] + last[rates[0]]) / 2
        size = np.abs(change).sum() + np.abs(mean).sum()
        # What is left of the numbers when they are subtracted.
        rounding = 1e-14 * (np.abs(last[rates[1]]).sum() + np.abs(first[rates[1]]).sum())
        if np.abs(change - mean).sum() > CONSISTENCY * size + rounding:
            raise ArgumentError(
                f"{name} of Prescribed({what!r}) is not the rate of its "
                f"{_NAMES[rates[1]]}: over {h:.3g} s that changes by "
                f"{np.abs(change).mean():.3g}, not by {np.abs(mean).mean():.3g}, on average"
            )
