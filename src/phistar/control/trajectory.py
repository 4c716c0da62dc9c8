# SPDX-License-Identifier: BSD-3-Clause
"""Trajectories: motions in time with the joint forces between knots; rollouts, minimum jerk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.loop_paths import follow_on_loops
from phistar.errors import ArgumentError, DivergenceError, NotFiniteError, SampleError, ShapeError
from phistar.model.bad_samples import bad_samples, check_on_error
from phistar.model.configuration import Coordinates
from phistar.model.joint_physics import Passive
from phistar.model.kinematic_loops import active_loops
from phistar.robot import Robot
from phistar.sim.divergence import diverged_samples, not_finite, park_lost, surely_finite
from phistar.sim.joint_rows import used_parts

_END_TOLERANCE = 1e-6
"""Distance from the end that was asked for that counts as there [rad, m]."""

Policy = Callable[[int, Array, Array], Array]
"""Joint forces (..., nv) at step k in a state: ``policy(k, q, v)``."""


@dataclass(frozen=True)
class Trajectory:
    """N steps of motion; time is the first axis, batch axes follow.

    Attributes:
        t: (N + 1,) times of the knots [s].
        q: (N + 1, ..., nq) configurations.
        v: (N + 1, ..., nv) velocities.
        tau: (N, ..., nv) joint forces, each held from its knot to the next [N m, N].
        diverged: (...) the first knot at which a sample is not finite, NaN from there on, or -1;
            None if every sample is finite.
    """

    t: Array
    q: Array
    v: Array
    tau: Array
    diverged: Array | None = None

    def __post_init__(self) -> None:
        for name in ("t", "q", "v", "tau"):
            array = np.asarray(getattr(self, name), dtype=float)
            samples = array if name == "t" or self.diverged is None else array[:, self.ok]
            if not np.isfinite(samples).all():
                raise ArgumentError(f"{name} of the trajectory is not finite")
            object.__setattr__(self, name, array)
        if self.t.ndim != 1 or len(self.t) < 2:
            raise ShapeError("t", self.t.shape, "(N + 1,) with N of at least 1", "a trajectory")
        if not (np.diff(self.t) > 0).all():
            at = int(np.argmin(np.diff(self.t)))
            raise ArgumentError(
                f"t of the trajectory does not increase: t[{at}] is {self.t[at]:.6g}, "
                f"t[{at + 1}] is {self.t[at + 1]:.6g}"
            )
        knots = len(self.t)
        for name, rows in (("q", knots), ("v", knots), ("tau", knots - 1)):
            array = getattr(self, name)
            if array.ndim < 2 or len(array) != rows:
                expected = f"({rows}, ..., n): {knots} times were given"
                raise ShapeError(name, array.shape, expected, "a trajectory")

    def __repr__(self) -> str:
        gaps = np.diff(self.t)
        even = np.ptp(gaps) <= 1e-6 * gaps.mean()
        length = f"{gaps.mean():.6g} s" if even else f"{gaps.min():.4g} to {gaps.max():.4g} s"
        batch = f", batch {self.q.shape[1:-1]}" if self.q.ndim > 2 else ""
        lost = self.ok.size - np.count_nonzero(self.ok)
        more = f", {lost} of {self.ok.size} diverged" if lost else ""
        shapes = ", ".join(f"{name} {getattr(self, name).shape}" for name in ("q", "v", "tau"))
        return f"<Trajectory: {self.steps} steps of {length}{batch}{more}, {shapes}>"

    @property
    def ok(self) -> Array:
        """(...) of booleans: which samples are finite to the end."""
        if self.diverged is None:
            return np.ones(self.q.shape[1:-1], dtype=bool)
        return np.asarray(self.diverged < 0)

    @property
    def steps(self) -> int:
        """N, the number of steps."""
        return len(self.t) - 1

    @property
    def dt(self) -> float:
        """The length of every step [s].

        Raises:
            ArgumentError: The steps are not of one length.
        """
        gaps = np.diff(self.t)
        step = float((self.t[-1] - self.t[0]) / self.steps)
        if np.abs(gaps - step).max() > 1e-6 * step:
            raise ArgumentError(
                f"steps of the trajectory last from {gaps.min():.6g} to {gaps.max():.6g} s, "
                "expected one length; sample it evenly"
            )
        return step


def rollout(
    robot: Robot,
    q: Coordinates,
    v: Coordinates,
    policy: Policy,
    dt: float,
    steps: int,
    *,
    forces: Mapping[str, ArrayLike] | None = None,
    reference: str = "world_aligned",
    passive: Passive = False,
    on_error: str = "raise",
) -> Trajectory:
    """The motion of a robot under a policy, by semi-implicit Euler steps.

    The scheme of ``robot.discretize``: v' = v + dt v̇(q, v, τ), q' = integrate(q, dt v'). With loops
    each step ends on them, as ``robot.step`` does.

    Args:
        robot: The robot.
        q: (..., nq) initial configuration.
        v: (..., nv) initial velocity.
        policy: ``policy(k, q, v)`` gives the joint forces (..., nv) of step k.
        dt: Length of a step [s].
        steps: Number of steps.
        forces: External wrenches (..., 6) on named frames, as in ``robot.forward_dynamics``,
            constant in time.
        reference: Axes and point of those wrenches.
        passive: What the plant's joints do by themselves, as in ``robot.step``: True, or some of
            ``{"springs", "damping", "friction", "limits"}``; by default nothing, as the laws and
            ``robot.discretize`` have it.
        on_error: ``"raise"``, or ``"nan"``: samples that are or become not finite are NaN from
            there on and the others continue; see ``ok`` and ``diverged`` of the result. The policy
            gets them at rest in a harmless configuration.

    Raises:
        DivergenceError: The motion, or a force of the policy, is not finite.
        ArgumentError: A number that comes in is not finite; steps of no length.
        LoopOpenError, LoopVelocityError: The start is not on the loops.
    """
    if not (np.isfinite(dt) and dt > 0):
        raise ArgumentError(f"dt is {dt}, expected a time greater than zero [s]")
    if steps < 1:
        raise ArgumentError(f"steps is {steps}, expected at least 1")
    check_on_error(on_error)
    wrenches = (forces, reference)
    motion = _Rollout(robot, (q, v), float(dt), steps, wrenches, on_error, passive)
    return motion.run(policy)


class _Rollout:
    """The knots of a motion while they are filled.

    Args:
        robot: The robot.
        start: Configuration and velocity.
        dt: Length of a step [s].
        steps: Number of steps.
        wrenches: On frames, and their reference.
        on_error, passive: As of ``rollout``.
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
    ) -> None:
        self.robot, self.dt, self.on_error = robot, dt, on_error
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
            scheme="semi_implicit",
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

    def run(self, policy: Policy) -> Trajectory:
        """All steps; lost samples are NaN from the knot on at which they were lost."""
        qs, vs, taus, steps = self.qs, self.vs, self.taus, len(self.taus)
        for k in range(steps):
            self._step(k, policy)
        for index in np.argwhere(self.lost):
            at = (slice(self.first[*index], None), *index)
            qs[at], vs[at], taus[at] = np.nan, np.nan, np.nan
        times = self.dt * np.arange(steps + 1)
        return Trajectory(times, qs, vs, taus, self.first if self.on_error == "nan" else None)

    def _step(self, k: int, policy: Policy) -> None:
        q, v = self.qs[k], self.vs[k]
        if not self.all_finite:
            q, v = park_lost(self.robot.model, q, v, self.lost)
        self.taus[k] = _policy_forces(self.robot, policy, k, q, v)
        diverged = None if surely_finite(self.taus[k]) else self._bad_forces(k)
        if self.plain and self.all_finite and diverged is None:
            ahead = _finite_step(self.robot, q, v, self.taus[k], self.dt, self.passive)
            if ahead is not None:
                self.qs[k + 1], self.vs[k + 1] = ahead
                return
        self._careful_step(k, q, v, diverged)

    def _bad_forces(self, k: int) -> Array:
        """Samples whose forces are not finite; these become zero."""
        tau = self.taus[k]
        diverged = not_finite(tau)
        if diverged.any():
            if self.on_error == "raise":
                _reject_forces(self.robot, tau, diverged, k, k * self.dt)
            self.taus[k] = np.where(diverged[..., None], 0.0, tau)
        return diverged

    def _careful_step(self, k: int, q: Array, v: Array, diverged: Array | None) -> None:
        """A step after which samples may be lost."""
        moved: Array | None = None
        if self.closed or self.passive is not False:
            given = (q, v, self.taus[k])
            moved, ahead = _step_on_loops(
                self.robot, self.whole_step, given, self.dt, k, self.on_error
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
            _reject_step(self.robot, diverged, k, (k + 1) * self.dt)
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


def _finite_step(
    robot: Robot, q: Array, v: Array, tau: Array, dt: float, passive: Passive
) -> tuple[Array, Array] | None:
    """The next state, or None if a sample has none that is surely finite."""
    try:
        ahead = robot.step(q, v, tau, dt, "semi_implicit", passive=passive)
    except SampleError:
        # Which samples have no next state, and what is to be done, is found out by the caller.
        return None
    return ahead if surely_finite(ahead[0]) and surely_finite(ahead[1]) else None


def _step_on_loops(
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


def _reject_step(robot: Robot, diverged: Array, k: int, t: float) -> None:
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


def minimum_jerk(
    robot: Robot,
    q0: Coordinates,
    q1: Coordinates,
    duration: float,
    steps: int,
    *,
    actuated: Sequence[str] | None = None,
) -> tuple[Trajectory, Array]:
    """A smooth motion from rest to rest, with the joint forces of inverse dynamics.

    Every joint goes along its own geodesic from q0 to q1 with the fifth-order polynomial that ends
    without velocity and acceleration. With loops the joints of ``robot.minimal(q0)`` do, the others
    follow, and forces are the shortest that give the motion.

    Args:
        robot: The robot.
        q0: (..., nq) start; (nq,) on the loops of a robot that has some.
        q1: (..., nq) end, likewise.
        duration: [s].
        steps: Number of steps N.
        actuated: Names of the joints that have motors; by default all.

    Returns:
        The trajectory, and its accelerations (N + 1, ..., nv).

    Raises:
        UnderactuatedError: The motors cannot drive the motion.
        LoopOpenError: An end is not on the loops, or loops open on the way.
        ArgumentError: The loops lead from q0 to another assembly than q1.
    """
    if not (np.isfinite(duration) and duration > 0):
        raise ArgumentError(f"duration is {duration}, expected a time greater than zero [s]")
    if steps < 1:
        raise ArgumentError(f"steps is {steps}, expected at least 1")
    closed = bool(active_loops(robot.model.loops))
    free = robot.minimal(q0) if closed else None
    step = robot.difference(q0, q1)
    step = step if free is None else step[..., free.entries]
    s = np.linspace(0.0, 1.0, steps + 1).reshape(-1, *(1,) * step.ndim)
    fraction = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    rate = 30.0 * s**2 * (1.0 - s) ** 2 / duration
    growth = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / duration**2
    if free is None:
        q, v, vdot = robot.integrate(q0, fraction * step), rate * step, growth * step
    else:
        q, v, vdot = follow_on_loops(robot, free, fraction * step, rate * step, growth * step)
        _require_end(robot, free.independent, q[-1], q1)
    if closed or actuated is not None:
        driven = robot.joint_names if actuated is None else actuated
        tau = robot.constrained_inverse_dynamics(q[:-1], v[:-1], vdot[:-1], actuated=driven).tau
    else:
        tau = robot.inverse_dynamics(q[:-1], v[:-1], vdot[:-1])
    return Trajectory(duration * s.reshape(-1), q, v, tau), vdot


def _require_end(robot: Robot, moved: Sequence[str], q: Array, wanted: Coordinates) -> None:
    missed = np.abs(robot.difference(q, wanted)).max()
    if not missed <= _END_TOLERANCE:
        raise ArgumentError(
            f"minimum_jerk of robot '{robot.name}': moving {', '.join(moved)} from q0 to q1, the "
            f"loops lead to another assembly, {missed:.3g} away from q1 [rad, m]; choose ends of "
            "one branch, on the loops, or go through a configuration between"
        )


def work(robot: Robot, trajectory: Trajectory) -> tuple[Array, Array]:
    """Energy gained and work done by the joint forces since the first knot, both (N + 1, ...) [J].

    The work of a step is τ · v at its middle, (v + v') / 2. The two agree within the accuracy of
    the steps, O(dt), whatever the controller: a check of robot, simulation and controller at once.
    Loops do no work.
    """
    energy = robot.kinetic_energy(trajectory.q, trajectory.v)
    energy = energy + robot.potential_energy(trajectory.q)
    middle = (trajectory.v[1:] + trajectory.v[:-1]) / 2
    lasting = np.diff(trajectory.t).reshape(-1, *(1,) * (trajectory.tau.ndim - 2))
    work_done = np.cumsum(lasting * (trajectory.tau * middle).sum(axis=-1), axis=0)
    return energy - energy[0], np.concatenate([np.zeros_like(work_done[:1]), work_done])
