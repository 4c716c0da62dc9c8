# SPDX-License-Identifier: BSD-3-Clause
"""Trajectories: a motion in time with the joint forces between its knots, and how to get one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.errors import ArgumentError, ShapeError
from phistar.model.configuration import Coordinates
from phistar.robot import Robot

Array = NDArray[Any]

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
    """

    t: Array
    q: Array
    v: Array
    tau: Array

    def __post_init__(self) -> None:
        for name in ("t", "q", "v", "tau"):
            array = np.asarray(getattr(self, name), dtype=float)
            if not np.isfinite(array).all():
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
    robot: Robot, q: Coordinates, v: Coordinates, policy: Policy, dt: float, steps: int
) -> Trajectory:
    """The motion of a robot under a policy, by semi-implicit Euler steps.

    The scheme of ``robot.discretize``: v' = v + dt v̇(q, v, τ), q' = integrate(q, dt v').

    Args:
        robot: The robot.
        q: (..., nq) where it starts.
        v: (..., nv) how fast.
        policy: ``policy(k, q, v)`` gives the joint forces (..., nv) of step k.
        dt: Length of a step [s].
        steps: How many.

    Raises:
        ArgumentError: The motion leaves the range of numbers.
    """
    if not (np.isfinite(dt) and dt > 0):
        raise ArgumentError(f"dt is {dt}, expected a time greater than zero [s]")
    if steps < 1:
        raise ArgumentError(f"steps is {steps}, expected at least 1")
    place, rate = robot.configuration(q), robot.tangent(v)
    batch = np.broadcast_shapes(place.shape[:-1], rate.shape[:-1])
    qs, vs = np.empty((steps + 1, *batch, robot.nq)), np.empty((steps + 1, *batch, robot.nv))
    taus = np.empty((steps, *batch, robot.nv))
    qs[0], vs[0] = place, rate
    for k in range(steps):
        taus[k] = policy(k, qs[k], vs[k])
        with np.errstate(over="ignore", invalid="ignore"):
            vs[k + 1] = vs[k] + dt * robot.forward_dynamics(qs[k], vs[k], taus[k])
            qs[k + 1] = robot.integrate(qs[k], dt * vs[k + 1])
        if not (np.isfinite(qs[k + 1]).all() and np.isfinite(vs[k + 1]).all()):
            raise ArgumentError(
                f"the motion of robot '{robot.name}' diverges: not finite after step {k} "
                f"({(k + 1) * dt:.4g} s); use smaller steps or another controller"
            )
    return Trajectory(dt * np.arange(steps + 1), qs, vs, taus)


def minimum_jerk(
    robot: Robot, q0: Coordinates, q1: Coordinates, duration: float, steps: int
) -> tuple[Trajectory, Array]:
    """A smooth motion from rest to rest, with the joint forces that inverse dynamics asks for.

    Every joint goes along its own geodesic from q0 to q1 with the fifth-order polynomial that ends
    without velocity and acceleration.

    Args:
        robot: The robot.
        q0: (..., nq) start.
        q1: (..., nq) end.
        duration: [s].
        steps: Number of steps N.

    Returns:
        The trajectory, and its accelerations (N + 1, ..., nv).
    """
    if not (np.isfinite(duration) and duration > 0):
        raise ArgumentError(f"duration is {duration}, expected a time greater than zero [s]")
    if steps < 1:
        raise ArgumentError(f"steps is {steps}, expected at least 1")
    way = robot.difference(q0, q1)
    s = np.linspace(0.0, 1.0, steps + 1).reshape(-1, *(1,) * way.ndim)
    share = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    rate = 30.0 * s**2 * (1.0 - s) ** 2 / duration
    growth = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / duration**2
    q, v, vdot = robot.integrate(q0, share * way), rate * way, growth * way
    tau = robot.inverse_dynamics(q[:-1], v[:-1], vdot[:-1])
    return Trajectory(duration * s.reshape(-1), q, v, tau), vdot


def work(robot: Robot, trajectory: Trajectory) -> tuple[Array, Array]:
    """Energy gained and work done by the joint forces since the first knot, both (N + 1, ...) [J].

    The work of a step is τ · v at its middle, (v + v') / 2. The two agree within the accuracy of
    the steps, O(dt), whatever the controller: a check of robot, simulation and controller at once.
    """
    energy = robot.kinetic_energy(trajectory.q, trajectory.v)
    energy = energy + robot.potential_energy(trajectory.q)
    middle = (trajectory.v[1:] + trajectory.v[:-1]) / 2
    lasting = np.diff(trajectory.t).reshape(-1, *(1,) * (trajectory.tau.ndim - 2))
    done = np.cumsum(lasting * (trajectory.tau * middle).sum(axis=-1), axis=0)
    return energy - energy[0], np.concatenate([np.zeros_like(done[:1]), done])
