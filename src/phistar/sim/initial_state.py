# SPDX-License-Identifier: BSD-3-Clause
"""Start of a simulation: the user's states, joint forces and wrenches, checked, one batch axis."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from phistar.arguments import check_shapes, require_count, require_time
from phistar.arrays import Array, DType
from phistar.errors import ArgumentError, ShapeError
from phistar.model.configuration import (
    Coordinates,
    normalize_quaternions,
    read_coordinates,
    require_finite,
    require_unit_quaternions,
)
from phistar.model.model import Model
from phistar.model.wrenches import Forces, require_wrenches_by_name
from phistar.sim.divergence import not_finite, park_lost


@dataclass(frozen=True)
class InitialState:
    """Start of a simulation in float64; the batch is one axis of B samples.

    Attributes:
        q: (B, nq).
        v: (B, nv).
        tau: (B, nv), or (steps, B, nv): joint forces of each step.
        forces: Wrenches (6,) or (B, 6) on frames.
        batch: The user's batch axes.
        dtype: Precision of the results.
        lost: (B,) samples without a valid state, not finite or with quaternions that are not unit;
            they are parked here.
    """

    q: Array
    v: Array
    tau: Array
    forces: dict[str, Array]
    batch: tuple[int, ...]
    dtype: DType
    lost: Array

    def to_user_shape(self, array: Array, lead: int = 1) -> Array:
        """(knots, B, n) in the user's axes and precision; ``lead`` axes precede B."""
        shape = (*array.shape[:lead], *self.batch, array.shape[-1])
        return array.reshape(shape).astype(self.dtype, copy=False)

    def forces_at_knots(self, knots: int, every: int) -> Array:
        """Joint forces (knots, ..., nv) in the first step after each knot."""
        if self.tau.ndim == 3:
            return self.to_user_shape(self.tau[::every])
        tau = self.to_user_shape(self.tau, 0)
        return np.broadcast_to(tau, (knots, *tau.shape))


def read_initial_state(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates | None,
    tau_steps: ArrayLike | None,
    forces: Forces | None,
    count: int,
    on_error: str,
) -> InitialState:
    """The arguments, checked, with one batch axis.

    Args:
        model: The robot.
        q, v, tau, tau_steps, forces: As of ``Robot.simulate``.
        count: Number of steps, for ``tau_steps``.
        on_error: What happens to samples that are not finite.
    """
    _check_joint_forces(tau, tau_steps)
    given = {"q": q, "v": v} | ({} if tau is None else {"tau": tau})
    arrays = check_shapes(model, **given)
    leads = {name: array.shape[:-1] for name, array in arrays.items()}
    if tau_steps is not None:
        steps = read_coordinates(model, tau_steps, "v", "tau_steps")
        if steps.ndim < 2 or len(steps) != count:
            expected = f"({count}, ..., {model.nv}): one for each step"
            raise ShapeError("tau_steps", steps.shape, expected, f"robot '{model.name}'")
        arrays["tau_steps"], leads["tau_steps, after its first axis,"] = steps, steps.shape[1:-1]
    for frame, wrench in _wrenches(model, forces).items():
        name = f"forces[{frame!r}]"
        arrays[name], leads[name] = wrench, wrench.shape[:-1]
    for name, array in arrays.items():
        if array.dtype.kind == "c":
            raise ArgumentError(f"{name} is complex; a simulation takes real numbers")
        if on_error == "raise":
            require_finite(name, array)
    if on_error == "raise":
        arrays["q"] = require_unit_quaternions(model, arrays["q"])
    return _flat(model, arrays, _common(leads), tuple(forces or ()))


def _check_joint_forces(tau: Coordinates | None, tau_steps: ArrayLike | None) -> None:
    """Raise for two of them, and for functions."""
    if tau is not None and tau_steps is not None:
        raise ArgumentError("both tau and tau_steps are given; pass one of them")
    for name, forces in (("tau", tau), ("tau_steps", tau_steps)):
        if callable(forces):
            raise ArgumentError(
                f"{name} is a function, and simulate takes arrays of joint forces; a feedback "
                "law runs by phistar.control.rollout(robot, q, v, policy, dt, "
                "steps), or in continuous time by phistar.control.regulate"
            )


def _wrenches(model: Model, forces: Forces | None) -> dict[str, Array]:
    if forces is None:
        return {}
    require_wrenches_by_name(forces)
    wrenches = {}
    for frame, value in forces.items():
        _ = model.frames[frame]
        wrench = np.asarray(value)
        wrench = wrench.astype(float) if wrench.dtype.kind in "biu" else wrench
        name = f"forces[{frame!r}]"
        if wrench.dtype.kind not in "fc":
            raise ArgumentError(f"{name} is not an array of numbers: dtype {wrench.dtype}")
        if wrench.shape[-1:] != (6,):
            raise ShapeError(name, wrench.shape, "(..., 6)", f"robot '{model.name}'")
        wrenches[frame] = wrench
    return wrenches


def _common(leads: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The common batch axes after broadcasting."""
    try:
        return np.broadcast_shapes(*leads.values())
    except ValueError:
        listed = ", ".join(f"{name} {lead}" for name, lead in leads.items())
        raise ArgumentError(f"batch axes do not broadcast: {listed}") from None


def _flat(
    model: Model,
    arrays: dict[str, Array],
    batch: tuple[int, ...],
    frames: tuple[str, ...],
) -> InitialState:
    size = math.prod(batch)
    single = all(array.dtype.itemsize <= 4 for array in arrays.values())
    dtype = np.dtype(np.float32 if single else np.float64)

    def rows(name: str) -> Array:
        array = arrays[name]
        wide = np.broadcast_to(array, (*batch, array.shape[-1]))
        return wide.reshape(size, array.shape[-1]).astype(float)

    q, v = rows("q"), rows("v")
    if "tau_steps" in arrays:
        steps = arrays["tau_steps"]
        ones = (1,) * (len(batch) + 2 - steps.ndim)
        steps = steps.reshape(len(steps), *ones, *steps.shape[1:])
        steps = np.broadcast_to(steps, (len(steps), *batch, model.nv))
        tau = steps.reshape(len(steps), size, model.nv).astype(float)
        lost = ~np.isfinite(tau).all(axis=(0, 2))
    else:
        tau = rows("tau") if "tau" in arrays else np.zeros((size, model.nv))
        lost = not_finite(tau)
    names = {frame: f"forces[{frame!r}]" for frame in frames}
    forces = {
        frame: arrays[name].astype(float) if arrays[name].ndim == 1 else rows(name)
        for frame, name in names.items()
    }
    wide = {frame: np.broadcast_to(wrench, (size, 6)) for frame, wrench in forces.items()}
    lost |= not_finite(q, v, *wide.values())
    q, deviating = normalize_quaternions(model, q)
    for bad in deviating.values():
        lost |= bad
    start = InitialState(q, v, tau, forces, batch, dtype, np.zeros_like(lost))
    return without_lost(model, start, lost) if lost.any() else start


def without_lost(model: Model, start: InitialState, lost: Array) -> InitialState:
    """A start with more samples (B,) lost."""
    lost = lost | start.lost
    q, v = park_lost(model, start.q, start.v, lost)
    away = lost[:, None]
    tau = np.where(away, 0.0, start.tau)
    forces = {
        frame: np.where(away, 0.0, np.broadcast_to(wrench, (len(lost), 6)))
        for frame, wrench in start.forces.items()
    }
    return replace(start, q=q, v=v, tau=tau, forces=forces, lost=lost)


def count_of_steps(dt: float, steps: int | None, duration: float | None, every: int) -> int:
    """Number of steps.

    Raises:
        ArgumentError: Neither or both of steps and duration are given, or the number is not whole.
    """
    require_time("dt", dt)
    if (steps is None) == (duration is None):
        both = "both" if steps is not None else "neither"
        raise ArgumentError(f"{both} of steps and duration are given; pass one of them")
    if duration is not None:
        require_time("duration", duration)
        steps = round(duration / dt)
        if steps < 1 or abs(steps * dt - duration) > 1e-9 * duration:
            raise ArgumentError(
                f"duration {duration:.9g} s is {duration / dt:.9g} steps of {dt:.9g} s, expected a "
                f"whole number; dt={duration / max(math.ceil(duration / dt), 1):.9g} would do"
            )
    given: object = steps
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    count = require_count("steps", given, "a whole number of at least 1")
    divisor = f"a divisor of the number of steps, {count}"
    if count % require_count("every", every, divisor):
        raise ArgumentError(f"every is {every}, expected {divisor}")
    return count


def duration_of(dt: float | None, steps: int | None, duration: float | None) -> float:
    """Duration of a simulation that chooses its steps [s]."""
    if dt is not None:
        return dt * count_of_steps(dt, steps, duration, 1)
    if duration is None or not (np.isfinite(duration) and duration > 0) or steps is not None:
        raise ArgumentError(
            f"duration is {duration} and steps {steps}; without dt pass a duration greater than "
            "zero [s], and no steps"
        )
    return float(duration)
