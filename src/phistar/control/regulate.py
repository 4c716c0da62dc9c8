# SPDX-License-Identifier: BSD-3-Clause
"""A robot under a law in continuous time: classical Runge-Kutta steps, forces at every stage.

Configurations are stepped in the tangent space of each knot: q = integrate(q₀, u) with u̇ =
difference_q(q₀, q) v, so that rotations are of fourth order too. With loops each step ends with a
projection onto them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from phistar.arrays import Array
from phistar.control.actuation import matvec, require_positive
from phistar.control.law import Law
from phistar.control.loop_states import closes_loops
from phistar.control.regulation import Regulation, record
from phistar.errors import ArgumentError, NotFiniteError
from phistar.loops.constrained_dynamics import require_on_loops
from phistar.loops.system import motion_at
from phistar.model.configuration import Coordinates
from phistar.sim.loop_stepper import loop_accelerations, onto_loops


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
    """The motion of a robot under a law, with the error and the Lyapunov function along it.

    The law acts in continuous time: its forces are evaluated at all four stages of each step. For a
    controller with constant forces in each step use ``rollout``, of which a law is a policy.

    Args:
        law: ``rate_feedback``, ``pose_control``, ``computed_torque``, ``pd_gravity``,
            ``operational_space``, or a ``Law`` of your own.
        q: (..., nq) starts; each is a motion of its own, all are stepped together. On the loops of
            a robot that has some.
        v: (..., nv) velocities there; by default zero.
        duration: [s]; the last step is not shortened, so it may end up to dt later.
        dt: Length of a step [s].
        every: Store one state in so many steps.
        tolerance: Size of the error that counts as reached, in the units of ``law.error``.
        progress: Show a progress bar.

    Raises:
        ArgumentError: The motion diverges, or steps have no length.
        LoopOpenError, LoopVelocityError: A start is not on the loops.
    """
    robot = law.robot
    require_positive("duration", duration)
    require_positive("dt", dt)
    require_positive("tolerance", tolerance)
    if every < 1:
        raise ArgumentError(f"every is {every}, expected at least 1")
    stored = max(1, int(np.ceil(duration / dt / every - 1e-9)))
    q0, v0 = robot.configuration(q), robot.tangent(np.zeros(robot.nv) if v is None else v)
    if closes_loops(robot):
        rows, precision = motion_at(robot.model, q0, v0), float(np.finfo(v0.dtype).eps)
        require_on_loops(robot.model, rows, v0, "regulate", precision)
    pull = law.pull(q0)
    batch = np.broadcast_shapes(q0.shape[:-1], v0.shape[:-1], pull.shape[:-1])
    qs, vs = np.empty((stored + 1, *batch, robot.nq)), np.empty((stored + 1, *batch, robot.nv))
    qs[0], vs[0] = q0, v0
    step = _stepper(law, dt)
    with _bar(progress, law, stored) as show:
        for k in range(stored):
            state = qs[k], vs[k]
            with np.errstate(over="ignore", invalid="ignore"):
                for i in range(every):
                    try:
                        state = step(*state)
                    except NotFiniteError as error:
                        raise ArgumentError(
                            f"the motion of robot '{robot.name}' diverges: not finite after "
                            f"{(k * every + i) * dt:.4g} s; use smaller steps or lower gains"
                        ) from error
            qs[k + 1], vs[k + 1] = state
            show()
    return record(law, dt * every * np.arange(stored + 1), qs, vs, tolerance)


def _stepper(law: Law, dt: float) -> Callable[[Array, Array], tuple[Array, Array]]:
    robot = law.robot
    curved = any(not robot.joints[name].joint_kind.is_euclidean for name in robot.joint_names)
    closed = closes_loops(robot)

    def rates(start: Array, u: Array, v: Array) -> tuple[Array, Array]:
        q = robot.integrate(start, u)
        tau = law.forces(q, v)
        # Between knots loops are a little open.
        vdot = (
            loop_accelerations(robot.model, q, v, tau)
            if closed
            else robot.forward_dynamics(q, v, tau)
        )
        return (matvec(robot.difference_q(start, q), v) if curved else v), vdot

    def step(q: Array, v: Array) -> tuple[Array, Array]:
        u1, a1 = rates(q, np.zeros_like(v), v)
        u2, a2 = rates(q, dt / 2 * u1, v + dt / 2 * a1)
        u3, a3 = rates(q, dt / 2 * u2, v + dt / 2 * a2)
        u4, a4 = rates(q, dt * u3, v + dt * a3)
        u, a = u1 + 2 * u2 + 2 * u3 + u4, a1 + 2 * a2 + 2 * a3 + a4
        ahead = robot.integrate(q, dt / 6 * u, on_error="nan"), v + dt / 6 * a
        if closed and all(np.isfinite(x).all() for x in ahead):
            return onto_loops(robot.model, *ahead)
        return ahead

    return step


@contextmanager
def _bar(progress: bool, law: Law, total: int) -> Iterator[Callable[[], None]]:
    """A function to call after each stored step, which moves a bar with ``progress``."""
    if not progress:
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(law.name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.update(task, advance=1)
