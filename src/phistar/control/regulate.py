# SPDX-License-Identifier: BSD-3-Clause
"""A robot under a law in continuous time: classical Runge-Kutta steps, forces at every stage.

Configurations are stepped in the tangent space of each knot: q = integrate(q₀, u) with
u̇ = difference_q(q₀, q) v, so that rotations keep fourth order as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.control.law import Law
from phistar.control.regulation import Regulation, record
from phistar.control.setting import positive, times
from phistar.errors import ArgumentError
from phistar.model.configuration import Coordinates
from phistar.robot import Robot

Array = NDArray[Any]


def regulate(
    law: Law,
    q: Coordinates,
    v: Coordinates | None = None,
    *,
    duration: float,
    dt: float = 0.002,
    every: int = 1,
    tolerance: float = 1e-3,
    progress: bool = False,
) -> Regulation:
    """The motion of a robot under a law, with what became of the error and the Lyapunov function.

    The law acts in continuous time: its forces are evaluated at all four stages of each step. For a
    controller that holds its forces between samples take ``rollout``, of which a law is a policy.

    Args:
        law: ``rate_feedback``, ``pose_control``, ``computed_torque``, ``pd_gravity``,
            ``operational_space``, or a ``Law`` of your own.
        q: (..., nq) starts; each is a motion of its own, all are stepped together.
        v: (..., nv) velocities there; by default zero.
        duration: How long [s]; the last step is not shortened, so it may end up to dt later.
        dt: Length of a step [s].
        every: Keep each so many-th state.
        tolerance: Size of the error that counts as reached, in the units of ``law.error``.
        progress: Show a progress bar.

    Raises:
        ArgumentError: The motion leaves the range of numbers; steps of no length.
    """
    robot = law.robot
    positive("duration", duration)
    positive("dt", dt)
    positive("tolerance", tolerance)
    if every < 1:
        raise ArgumentError(f"every is {every}, expected at least 1")
    kept = max(1, int(np.ceil(duration / dt / every - 1e-9)))
    place, rate = robot.configuration(q), robot.tangent(np.zeros(robot.nv) if v is None else v)
    pull = law.pull(place)
    batch = np.broadcast_shapes(place.shape[:-1], rate.shape[:-1], pull.shape[:-1])
    qs, vs = np.empty((kept + 1, *batch, robot.nq)), np.empty((kept + 1, *batch, robot.nv))
    qs[0], vs[0] = place, rate
    step = _stepper(law, dt)
    with _bar(progress, law, kept) as show:
        for k in range(kept):
            state = qs[k], vs[k]
            with np.errstate(over="ignore", invalid="ignore"):
                for i in range(every):
                    state = step(*state)
                    _refuse_divergence(robot, state, (k * every + i) * dt)
            qs[k + 1], vs[k + 1] = state
            show()
    return record(law, dt * every * np.arange(kept + 1), qs, vs, tolerance)


def _stepper(law: Law, dt: float) -> Callable[[Array, Array], tuple[Array, Array]]:
    robot = law.robot
    curved = any(not robot.joints[name].motion.is_euclidean for name in robot.joint_names)

    def rates(start: Array, u: Array, v: Array) -> tuple[Array, Array]:
        q = robot.integrate(start, u)
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            # The step comes out as not finite, and the caller knows when that was.
            return np.full_like(v, np.nan), np.full_like(v, np.nan)
        vdot = robot.forward_dynamics(q, v, law.forces(q, v))
        return (times(robot.difference_q(start, q), v) if curved else v), vdot

    def step(q: Array, v: Array) -> tuple[Array, Array]:
        u1, a1 = rates(q, np.zeros_like(v), v)
        u2, a2 = rates(q, dt / 2 * u1, v + dt / 2 * a1)
        u3, a3 = rates(q, dt / 2 * u2, v + dt / 2 * a2)
        u4, a4 = rates(q, dt * u3, v + dt * a3)
        u, a = u1 + 2 * u2 + 2 * u3 + u4, a1 + 2 * a2 + 2 * a3 + a4
        return robot.integrate(q, dt / 6 * u), v + dt / 6 * a

    return step


def _refuse_divergence(robot: Robot, state: tuple[Array, Array], t: float) -> None:
    if not all(np.isfinite(x).all() for x in state):
        raise ArgumentError(
            f"the motion of robot '{robot.name}' diverges: not finite after {t:.4g} s; use "
            "smaller steps or lower gains"
        )


@contextmanager
def _bar(progress: bool, law: Law, total: int) -> Iterator[Callable[[], None]]:
    """Something to call after each kept step; with ``progress`` it moves a bar."""
    if not progress:
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(law.name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.update(task, advance=1)
