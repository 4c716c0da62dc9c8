# SPDX-License-Identifier: BSD-3-Clause
"""Rollouts under any policy: one call of it a step, for the whole batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.trajectory import Trajectory
from phistar.errors import DivergenceError, NotFiniteError, SampleError, ShapeError
from phistar.model.bad_samples import bad_samples
from phistar.model.configuration import Coordinates
from phistar.model.joint_physics import Passive
from phistar.model.kinematic_loops import active_loops
from phistar.robot import Robot
from phistar.sim.divergence import diverged_samples, not_finite, park_lost, surely_finite
from phistar.sim.joint_rows import used_parts
from phistar.sim.schemes import SEMI_IMPLICIT

CALLS = "one call a step"
"""The engine of these."""

Policy = Callable[[int, Array, Array], Array]
"""Joint forces (..., nv) at step k in a state: ``policy(k, q, v)``."""


class PolicyRollout:
    """The knots of a motion while they are filled.

    Args:
        robot: The robot.
        start: Configuration and velocity.
        dt: Length of a step [s].
        steps: Number of steps.
        wrenches: On frames, and their reference.
        on_error, passive, scheme: As of ``rollout``.
        begin: Number of the first step, for the policy and for messages.
    """

    def __init__(
        self,
        robot: Robot,
        start: tuple[Coordinates, Coordinates],
        dt: float,
        steps: int,
        wrenches: tuple[Mapping[str, ArrayLike] | None, str],
        on_error: str,
        passive: Passive,
        scheme: str = SEMI_IMPLICIT.name,
        begin: int = 0,
    ) -> None:
        self.robot, self.dt, self.on_error = robot, dt, on_error
        self.begin, self.scheme = begin, scheme
        self.passive = passive if any(used_parts(robot.model, passive)) else False
        forces, reference = wrenches
        (q, no_q), (v, no_v) = (
            _numbers(robot, name, x, on_error) for name, x in zip("qv", start, strict=True)
        )
        self.qs, self.vs, self.taus = _allocate_knots(robot, q, v, forces, steps)
        self.lost = np.broadcast_to(no_q | no_v, self.qs.shape[1:-1]).copy()
        self.first = np.where(self.lost, 0, -1)
        self.all_finite = not self.lost.any()
        self.plain = not forces and reference == "world_aligned"
        self.closed = bool(active_loops(robot.model.loops))
        self.whole_step = partial(
            robot.step,
            scheme=scheme,
            forces=forces,
            reference=reference,
            passive=self.passive,
            on_error=on_error,
        )
        self.dynamics = robot.forward_dynamics
        if forces or on_error == "nan":
            self.dynamics = partial(
                self.dynamics, forces=forces, reference=reference, on_error=on_error
            )

    def run(self, policy: Policy, reason: str = "") -> Trajectory:
        """All steps; lost samples are NaN from the knot on at which they were lost.

        Args:
            policy: Called once a step.
            reason: Why machine code does not do it.
        """
        qs, vs, taus, steps = self.qs, self.vs, self.taus, len(self.taus)
        for k in range(steps):
            self._step(k, policy)
        for index in np.argwhere(self.lost):
            at = (slice(self.first[*index], None), *index)
            qs[at], vs[at], taus[at] = np.nan, np.nan, np.nan
        times = self.dt * np.arange(steps + 1)
        diverged = self.first if self.on_error == "nan" else None
        return Trajectory(times, qs, vs, taus, diverged, CALLS, reason)

    def _step(self, k: int, policy: Policy) -> None:
        q, v = self.qs[k], self.vs[k]
        if not self.all_finite:
            q, v = park_lost(self.robot.model, q, v, self.lost)
        self.taus[k] = self._forces(k, policy, q, v)
        diverged = None if surely_finite(self.taus[k]) else self._bad_forces(k)
        if self.plain and self.all_finite and diverged is None:
            ahead = self._finite_step(q, v, self.taus[k])
            if ahead is not None:
                self.qs[k + 1], self.vs[k + 1] = ahead
                return
        self._careful_step(k, q, v, diverged)

    def _forces(self, k: int, policy: Policy, q: Array, v: Array) -> Array:
        """Forces of the policy, NaN for samples for which a law finds none that are finite."""
        step = self.begin + k
        try:
            return _policy_forces(self.robot, policy, step, q, v)
        except NotFiniteError as error:
            lost = np.broadcast_to(error.bad, v.shape[:-1])
            if self.on_error == "raise" or not lost.any() or lost.all():
                raise DivergenceError(
                    f"the policy of robot '{self.robot.name}' fails at step {step} "
                    f"({step * self.dt:.4g} s): {error}",
                    _first(lost) if lost.any() else (),
                    step,
                    step * self.dt,
                ) from error
        parked = park_lost(self.robot.model, q, v, lost)
        return np.where(lost[..., None], np.nan, self._forces(k, policy, *parked))

    def _finite_step(self, q: Array, v: Array, tau: Array) -> tuple[Array, Array] | None:
        """The next state, or None if a sample has none that is surely finite."""
        try:
            ahead = self.robot.step(q, v, tau, self.dt, self.scheme, passive=self.passive)
        except SampleError:
            # Which samples have no next state, and what is to be done, is found out by the caller.
            return None
        return ahead if surely_finite(ahead[0]) and surely_finite(ahead[1]) else None

    def _bad_forces(self, k: int) -> Array:
        """Samples whose forces are not finite; these become zero."""
        tau = self.taus[k]
        diverged = not_finite(tau)
        if diverged.any():
            if self.on_error == "raise":
                k += self.begin
                _reject_forces(self.robot, tau, diverged, k, k * self.dt)
            self.taus[k] = np.where(diverged[..., None], 0.0, tau)
        return diverged

    def _careful_step(self, k: int, q: Array, v: Array, diverged: Array | None) -> None:
        """A step after which samples may be lost."""
        moved: Array | None = None
        step = self.begin + k
        if self.closed or self.passive is not False or self.scheme != SEMI_IMPLICIT.name:
            given = (q, v, self.taus[k])
            moved, ahead = _whole_step(
                self.robot, self.whole_step, given, self.dt, step, self.on_error
            )
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                ahead = v + self.dt * self.dynamics(q, v, self.taus[k])
        if diverged is not None or not surely_finite(ahead):
            diverged = diverged_samples(ahead) | (False if diverged is None else diverged)
            ahead = np.where(diverged[..., None], 0.0, ahead)
        if moved is None:
            moved = self.robot.integrate(q, self.dt * ahead)
        self.qs[k + 1], self.vs[k + 1] = moved, ahead
        if diverged is None and surely_finite(moved):
            return
        diverged = diverged_samples(moved) | (False if diverged is None else diverged)
        diverged &= ~self.lost
        if diverged.any() and self.on_error == "raise":
            reject_step(self.robot, diverged, step, (step + 1) * self.dt)
        self.first[diverged] = k + 1
        self.lost |= diverged
        self.all_finite = not self.lost.any()


def _numbers(robot: Robot, name: str, x: Coordinates, on_error: str) -> tuple[Array, Array]:
    """Coordinates of a start, and which samples are invalid; these are replaced by neutral ones."""
    read: Callable[[Coordinates], Array] = robot.configuration if name == "q" else robot.tangent
    fill = robot.neutral() if name == "q" else np.zeros(robot.nv)
    array = read(x) if isinstance(x, Mapping) else np.asarray(x)
    if array.dtype.kind != "f" or not array.ndim or array.shape[-1] != fill.size:
        array = read(array)
    if on_error == "raise":
        return read(array), np.zeros(array.shape[:-1], dtype=bool)
    lost = bad_samples(robot.model, **{name: array})
    return read(np.where(lost[..., None], fill, array)), lost


def _allocate_knots(
    robot: Robot, q: Array, v: Array, forces: Mapping[str, ArrayLike] | None, steps: int
) -> tuple[Array, Array, Array]:
    """Arrays for all knots, with the start in the first."""
    pushes = [np.shape(wrench)[:-1] for wrench in (forces or {}).values()]
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], *pushes)
    qs, vs = np.empty((steps + 1, *batch, robot.nq)), np.empty((steps + 1, *batch, robot.nv))
    qs[0], vs[0] = q, v
    return qs, vs, np.empty((steps, *batch, robot.nv))


def _policy_forces(robot: Robot, policy: Policy, k: int, q: Array, v: Array) -> Array:
    """Forces of a policy, in a shape that broadcasts to that of v."""
    tau = np.asarray(policy(k, q, v))
    if tau.shape[-1:] != (robot.nv,) or tau.ndim > v.ndim:
        raise ShapeError("policy(k, q, v)", tau.shape, f"{v.shape}", f"robot '{robot.name}'")
    return tau


def _whole_step(
    robot: Robot,
    step: Callable[..., tuple[Array, Array]],
    at: tuple[Array, Array, Array],
    dt: float,
    k: int,
    on_error: str,
) -> tuple[Array, Array]:
    """Step k as a whole; a motion that leaves its loops in later steps diverges."""
    try:
        return step(*at, dt)
    except SampleError as error:
        if on_error == "nan":  # no sample has a next state
            return np.full_like(at[0], np.nan), np.full_like(at[1], np.nan)
        if k == 0 and not isinstance(error, NotFiniteError):
            raise
        lost = np.broadcast_to(error.bad, at[0].shape[:-1])
        raise DivergenceError(
            f"the motion of robot '{robot.name}' diverges in step {k} ({k * dt:.4g} s): {error}; "
            "use smaller steps or another controller",
            _first(lost) if lost.any() else (),
            k + 1,
            (k + 1) * dt,
        ) from error


def _reject_forces(robot: Robot, tau: Array, diverged: Array, k: int, t: float) -> None:
    index = tuple(int(i) for i in np.argwhere(~np.isfinite(tau))[0])
    raise DivergenceError(
        f"the policy of robot '{robot.name}' asks for forces that are not finite at step {k} "
        f"({t:.4g} s): tau{list(index)} is {tau[index]}; look at its gains and at the states "
        "before",
        _first(diverged),
        k,
        t,
    )


def reject_step(robot: Robot, diverged: Array, k: int, t: float) -> None:
    """Raise for a motion that is not finite after step k, at time t."""
    raise DivergenceError(
        f"the motion of robot '{robot.name}' diverges: not finite after step {k} ({t:.4g} s); use "
        "smaller steps or another controller",
        _first(diverged),
        k + 1,
        t,
    )


def _first(chosen: Array) -> tuple[int, ...]:
    """Index of the first sample that is chosen; () without batch axes."""
    return tuple(int(i) for i in np.argwhere(chosen)[0])
