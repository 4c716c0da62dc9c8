# SPDX-License-Identifier: BSD-3-Clause
"""Optimal trajectories: iLQR, and DDP with second derivatives, for a batch of starts.

Each iteration linearizes all steps of all problems in one batched call, finds gains from the end
backward, and tries ten step lengths for all problems in one batch. Forces with bounds are handled
inside the backward pass, after Tassa, Mansard and Todorov, Control-limited differential dynamic
programming, ICRA 2014.

Robots with loops go by steps that end on them (``robot.step``); the backward pass is in coordinates
that are independent at each knot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.actuation import Actuation, matvec
from phistar.control.backward import (
    Gains,
    LinearizedSteps,
    backward,
    costates,
    gradient,
    projected_norm,
)
from phistar.control.cost import Cost, Expansion
from phistar.control.dynamics_hessian import dynamics_hessian_times_costate
from phistar.control.feedback import Feedback
from phistar.control.line_search import TrajectoryBatch, roll_out, search
from phistar.control.loop_states import (
    closes_loops,
    holding_force,
    loop_states,
    require_start_on_loops,
)
from phistar.control.loop_steps import reduced_steps
from phistar.control.trajectory import Trajectory
from phistar.control.user_cost import checked_actuation, checked_expansion
from phistar.errors import ArgumentError, ConvergenceWarning, ShapeError, pluralize, warn
from phistar.model.configuration import Coordinates
from phistar.model.joint_physics import Passive
from phistar.model.kinematic_loops import require_tree
from phistar.reprs import truncate_lines
from phistar.robot import Robot

CONVERGED = "converged"
STALLED = "no step lowers the cost"
EXHAUSTED = "iterations used up"

_FIRST_DAMPING, _MIN_DAMPING, _MAX_DAMPING = 10.0, 1e-3, 1e12
"""Damping after a first failure; below which it is zero; above which the search ends."""
_FIRST_ORDER_CURE = "second derivatives through loops are not known; leave second_order off."
_MIN_COST = 1e-20
"""Costs below this count as rounding."""


@dataclass(frozen=True)
class Solution:
    """An optimised motion and how the iteration went; ``print`` it for a report.

    Attributes:
        trajectory: The motion, N steps; batch axes are those of the starts.
        feedback: A policy that tracks it; forces at a bound are not fed back.
        cost: (...) at the end.
        gradient: (...) largest derivative of the cost with respect to a force, bounds respected.
        iterations: (...) number of iterations.
        converged: (...) whether the tolerance was met.
        reason: (...) why each iteration ended, as text.
        history: (iterations + 1, ...) cost after each; it never rises.
    """

    trajectory: Trajectory
    feedback: Feedback
    cost: Array
    gradient: Array
    iterations: Array
    converged: Array
    reason: Array
    history: Array

    def __str__(self) -> str:
        fields = (self.cost, self.gradient, self.iterations, self.reason, self.history[0])
        columns = (np.reshape(x, -1) for x in fields)
        lines = [f"{pluralize(self.trajectory.steps, 'step')} of {self.trajectory.dt:.4g} s"]
        for index, (cost, slope, count, reason, first) in enumerate(zip(*columns, strict=True)):
            name = f"start {index}: " if self.cost.ndim else ""
            lines.append(
                f"{name}{reason} after {count} iterations, cost {first:.6g} -> {cost:.6g}, "
                f"gradient {slope:.2e}"
            )
        return "\n".join(truncate_lines(lines, 11))

    __repr__ = __str__


def ilqr(
    cost: Cost,
    q: Coordinates,
    v: Coordinates | None = None,
    *,
    dt: float,
    steps: int,
    tau: ArrayLike | None = None,
    limits: ArrayLike | str | None = None,
    second_order: bool = False,
    tolerance: float = 1e-8,
    max_iterations: int = 200,
    progress: bool = False,
    passive: Passive = False,
) -> Solution:
    """The joint forces that bring a robot from a start along the cheapest motion.

    Args:
        cost: What to minimise, with the robot and its motors: ``QuadraticCost`` or your own.
        q: (..., nq) starts; each is a problem of its own, all are solved together. On the loops of
            a robot that has some.
        v: (..., nv) velocities there; by default zero.
        dt: Length of a step [s]; steps are semi-implicit, as in ``robot.discretize``.
        steps: Number of steps, N.
        tau: First guess (N, nv) or (N, ..., nv) of the joint forces; by default those that hold the
            start against gravity, as far as there are motors.
        limits: Bounds of forces: a number, (nu,), (2, nu) as lower and upper, or ``"robot"`` for
            those of its file.
        second_order: Use second derivatives of the dynamics too (DDP) wherever the Hessian stays
            positive: fewer iterations near the end, more work in each. For robots without loops
            whose joints have one axis each.
        tolerance: Converged when a full step predicts a decrease below this fraction of the cost.
        max_iterations: Largest number of iterations.
        progress: Show a progress bar.
        passive: As in ``robot.discretize``: springs, damping and sliding friction of the joints, if
            wanted; limits and friction at rest are left out.

    Returns:
        The solution, with a ``ConvergenceWarning`` where it did not converge.

    Raises:
        ArgumentError: A value is not allowed, or the motion of the first guess diverges.
        LoopOpenError, LoopVelocityError: A start is not on the loops.
        LoopError: ``second_order`` with loops, whose second derivatives are not known.
    """
    actuation = checked_actuation(cost)
    robot = actuation.robot
    _check(robot, dt, steps, max_iterations, second_order)
    if second_order and passive is not False:
        raise ArgumentError(
            "second_order and passive are both given, and second derivatives of springs and "
            "damping are not known; leave out one of them"
        )
    start_q, start_v = robot.configuration(q), robot.tangent(np.zeros(robot.nv) if v is None else v)
    batch = np.broadcast_shapes(start_q.shape[:-1], start_v.shape[:-1])
    start_q = np.broadcast_to(start_q, (*batch, robot.nq)).reshape(-1, robot.nq)
    start_v = np.broadcast_to(start_v, (*batch, robot.nv)).reshape(-1, robot.nv)
    low, high = actuation.bounds(limits)
    bounds = (
        np.full(actuation.size, -np.inf) if low is None else low,
        np.full(actuation.size, np.inf) if high is None else high,
    )
    forces = _initial_forces(actuation, start_q, tau, steps, batch)
    guess = np.clip(actuation.pick(forces), *bounds)
    motions = _initial_trajectories(cost, start_q, start_v, guess, dt, bounds, passive)
    solver = _TrajectorySolver(cost, motions, dt, bounds, second_order, tolerance, passive)
    with _bar(progress, max_iterations) as show:
        for _ in range(max_iterations):
            solver.iterate()
            show(solver)
            if not solver.active.size:
                break
    return solver.solution(batch, (low, high))


class _TrajectorySolver:
    """The state of the iteration over a batch of problems."""

    def __init__(
        self,
        cost: Cost,
        motions: TrajectoryBatch,
        dt: float,
        bounds: tuple[Array, Array],
        second_order: bool,
        tolerance: float,
        passive: Passive = False,
    ) -> None:
        self.passive = passive
        self.cost, self.motions, self.dt, self.bounds = cost, motions, dt, bounds
        self.second_order, self.tolerance = second_order, tolerance
        problems = motions.u.shape[1]
        self.active = np.arange(problems)
        self.damping = np.zeros(problems)
        self.blocked = np.zeros(problems, dtype=bool)
        self.iterations = np.zeros(problems, dtype=int)
        self.slope = np.full(problems, np.inf)
        self.reason = np.full(problems, EXHAUSTED, dtype=object)
        self.history = [motions.cost.copy()]

    def iterate(self) -> None:
        """One step for every open problem."""
        now, nominal = self.active, self.motions.at(self.active)
        at = self._linear(nominal)
        costate = costates(at)
        self.slope[now] = projected_norm(at, gradient(at, costate))
        gains = backward(at, self.damping[now])
        if self.second_order:
            hessian = dynamics_hessian_times_costate(
                self.cost.actuation, nominal.q, nominal.v, nominal.u, costate, self.dt
            )
            newton = backward(replace(at, dynamics_hessian=hessian), self.damping[now])
            gains = gains.where(newton.failed | (self.damping[now] > 0), newton)
        gains = gains.of_whole_states(at.pick)
        best, better = search(self.cost, nominal, gains, self.dt, self.bounds, self.passive)
        promised = -(gains.slope + gains.curve)
        close = promised <= self.tolerance * np.maximum(np.abs(nominal.cost), _MIN_COST)
        plain = self.damping[now] == 0
        # Damping hides the distance to the minimum: damped steps do not count as converged.
        converged = close & plain
        self.motions.put(now[better], best.at(better))
        self.iterations[now] += 1
        stalled = self._damp(now, better, close & ~plain, plain)
        self.reason[now[converged]] = CONVERGED
        self.reason[now[stalled & ~converged]] = STALLED
        self.active = now[~(converged | stalled)]
        self.history.append(self.motions.cost.copy())

    def _damp(self, now: Array, better: Array, short: Array, plain: Array) -> Array:
        """More damping after a failure, less after a success; True where the limit is reached.

        Args:
            now: The problems.
            better: Whether a step was found.
            short: Damped so much that a step predicts no decrease.
            plain: Not damped at all.
        """
        self.blocked[now] = ~better & (self.blocked[now] | plain)
        damping = self.damping[now]
        less = np.where(damping / 4 < _MIN_DAMPING, 0.0, damping / 4)
        more = np.where(short, 0.0, np.maximum(10 * damping, _FIRST_DAMPING))
        self.damping[now] = np.where(better, less, more)
        return np.asarray(self.blocked[now] & (short | (more > _MAX_DAMPING)))

    def _linear(self, nominal: TrajectoryBatch) -> LinearizedSteps:
        actuation = self.cost.actuation
        robot, tau = actuation.robot, actuation.spread(nominal.u)
        first = len(self.history) == 1
        cost = checked_expansion(
            self.cost, nominal.q, nominal.v, nominal.u, self.dt, definite=first
        )
        before = nominal.q[:-1], nominal.v[:-1], tau, self.dt
        if not closes_loops(robot):
            step = robot.discretize(*before, passive=self.passive)
            B = step.B[..., actuation.columns]
            return LinearizedSteps(step.A, B, nominal.u, *self.bounds, cost)
        knots = loop_states(robot, nominal.q, nominal.v)
        entries = knots.entries[1:]
        reduced = reduced_steps(robot, *before, knots.at(slice(-1)), entries, self.passive)
        return LinearizedSteps(
            reduced.A,
            reduced.B[..., actuation.columns],
            nominal.u,
            *self.bounds,
            _along_loops(cost, knots.expand),
            pick=knots.at(slice(-1)).pick,
        )

    def solution(
        self, batch: tuple[int, ...], limits: tuple[Array | None, Array | None]
    ) -> Solution:
        """The result, in the shape of the starts."""
        actuation, motions = self.cost.actuation, self.motions
        steps, at = len(motions.u), self._linear(motions)
        slope = projected_norm(at, gradient(at, costates(at)))
        gains = backward(at, np.zeros(len(slope))).of_whole_states(at.pick)

        def shaped(array: Array) -> Array:
            return array.reshape(len(array), *batch, *array.shape[2:])

        trajectory = Trajectory(
            self.dt * np.arange(steps + 1),
            shaped(motions.q),
            shaped(motions.v),
            shaped(actuation.spread(motions.u)),
        )
        reason = self.reason.reshape(batch).astype(str)
        result = Solution(
            trajectory,
            Feedback(actuation, trajectory, shaped(gains.K), *limits),
            motions.cost.reshape(batch),
            slope.reshape(batch),
            self.iterations.reshape(batch),
            np.asarray(reason == CONVERGED),
            reason,
            shaped(np.array(self.history)),
        )
        if not result.converged.all():
            warn(f"iLQR did not converge. {result}", ConvergenceWarning)
        return result


def _along_loops(cost: Expansion, P: Array) -> Expansion:
    """The expansion of a cost in independent changes; P (N + 1, B, 2 nv, 2 n) makes all of them."""
    Pt = np.swapaxes(P, -1, -2)
    return Expansion(matvec(Pt, cost.x), Pt @ cost.xx @ P, cost.u, cost.uu)


def _check(robot: Robot, dt: float, steps: int, max_iterations: int, second_order: bool) -> None:
    if not (np.isfinite(dt) and dt > 0):
        raise ArgumentError(f"dt is {dt}, expected a time greater than zero [s]")
    for name, count in (("steps", steps), ("max_iterations", max_iterations)):
        if count < 1:
            raise ArgumentError(f"{name} is {count}, expected at least 1")
    if second_order:
        require_tree(robot.model, "ilqr with second_order", _FIRST_ORDER_CURE)
    curved = [name for name in robot.joint_names if not robot.joints[name].joint_kind.is_euclidean]
    if second_order and curved:
        raise ArgumentError(
            f"second_order needs joints with one axis each, and {', '.join(curved)} of robot "
            f"'{robot.name}' have more; leave it off"
        )


def _initial_forces(
    actuation: Actuation, q: Array, tau: ArrayLike | None, steps: int, batch: tuple[int, ...]
) -> Array:
    """(N, B, nv)."""
    robot = actuation.robot
    if tau is None:
        return np.broadcast_to(holding_force(actuation, q), (steps, len(q), robot.nv))
    array = robot.tangent(tau)
    if array.ndim < 2 or len(array) != steps:
        raise ShapeError("tau", array.shape, f"({steps}, ..., {robot.nv})", "the horizon")
    array = array.reshape(steps, *(1,) * (len(batch) + 2 - array.ndim), *array.shape[1:])
    return np.broadcast_to(array, (steps, *batch, robot.nv)).reshape(steps, -1, robot.nv)


def _initial_trajectories(
    cost: Cost,
    q: Array,
    v: Array,
    u: Array,
    dt: float,
    bounds: tuple[Array, Array],
    passive: Passive,
) -> TrajectoryBatch:
    """The motions of the first guess.

    Raises:
        LoopOpenError, LoopVelocityError: A start is not on the loops of the robot.
    """
    require_start_on_loops(cost.actuation.robot, q, v)
    steps, problems = u.shape[:2]
    still = TrajectoryBatch(
        np.broadcast_to(q, (steps + 1, *q.shape)),
        np.broadcast_to(v, (steps + 1, *v.shape)),
        u,
        np.zeros(problems),
    )
    none = Gains(
        np.zeros_like(u),
        np.zeros((*u.shape, 2 * v.shape[-1])),
        *(np.zeros(problems) for _ in range(3)),
    )
    motions = roll_out(cost, still, none, dt, bounds, np.ones(1), passive)
    if not np.isfinite(motions.cost).all():
        index = int(np.argmin(np.isfinite(motions.cost[0])))
        raise ArgumentError(
            f"the motion of the first guess runs away from start {index}; pass another tau, or "
            "shorter steps"
        )
    return TrajectoryBatch(motions.q[:, 0], motions.v[:, 0], motions.u[:, 0], motions.cost[0])


@contextmanager
def _bar(progress: bool, total: int) -> Iterator[Callable[[_TrajectorySolver], None]]:
    """A function to call after each iteration, which moves a bar with ``progress``."""
    if not progress:
        yield lambda solver: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("iLQR"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns) as bar:
        task = bar.add_task("", total=total)

        def show(solver: _TrajectorySolver) -> None:
            open_ = solver.active.size
            text = f"cost {solver.motions.cost.sum():.6g}, gradient {solver.slope.max():.1e}"
            text += f", {open_} of {len(solver.slope)} open" if len(solver.slope) > 1 else ""
            bar.update(task, advance=1, description=text)
            if not open_:
                bar.update(task, total=solver.iterations.max())

        yield show
