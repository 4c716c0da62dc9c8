# SPDX-License-Identifier: BSD-3-Clause
"""Trajectories: motions in time with the joint forces between knots; minimum jerk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from phistar.arrays import Array
from phistar.control.loop_paths import follow_on_loops
from phistar.errors import ArgumentError, ShapeError
from phistar.model.configuration import Coordinates
from phistar.model.joint_physics import Passive
from phistar.model.kinematic_loops import active_loops
from phistar.robot import Robot

_END_TOLERANCE = 1e-6
"""Distance from the end that was asked for that counts as there [rad, m]."""


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
        engine: What ``rollout`` took the steps with: ``"machine code"``, or ``"one call a step"``
            of the policy; empty for other trajectories.
        engine_reason: Why it was not machine code.
    """

    t: Array
    q: Array
    v: Array
    tau: Array
    diverged: Array | None = None
    engine: str = ""
    engine_reason: str = ""

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

    @classmethod
    def trusted(cls, **numbers: object) -> Trajectory:
        """A trajectory of arrays that are known to fit and to be finite where ``ok``.

        A look at every number would take as long as some of the steps.
        """
        found = object.__new__(cls)
        for each in fields(cls):
            object.__setattr__(found, each.name, numbers.get(each.name, each.default))
        return found

    def __repr__(self) -> str:
        gaps = np.diff(self.t)
        even = np.ptp(gaps) <= 1e-6 * gaps.mean()
        length = f"{gaps.mean():.6g} s" if even else f"{gaps.min():.4g} to {gaps.max():.4g} s"
        batch = f", batch {self.q.shape[1:-1]}" if self.q.ndim > 2 else ""
        lost = self.ok.size - np.count_nonzero(self.ok)
        more = f", {lost} of {self.ok.size} diverged" if lost else ""
        shapes = ", ".join(f"{name} {getattr(self, name).shape}" for name in ("q", "v", "tau"))
        by = f", {self.engine}" if self.engine else ""
        return f"<Trajectory: {self.steps} steps of {length}{batch}{more}, {shapes}{by}>"

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


def minimum_jerk(
    robot: Robot,
    q0: Coordinates,
    q1: Coordinates,
    duration: float,
    steps: int,
    *,
    actuated: Sequence[str] | None = None,
    passive: Passive = False,
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
        passive: Forces of the joints themselves that the motors make up for, as in
            ``robot.inverse_dynamics``; by default none.

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
        tau = robot.constrained_inverse_dynamics(
            q[:-1], v[:-1], vdot[:-1], actuated=driven, passive=passive
        ).tau
    else:
        tau = robot.inverse_dynamics(q[:-1], v[:-1], vdot[:-1], passive=passive)
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
