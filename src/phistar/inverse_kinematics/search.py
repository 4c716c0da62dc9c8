# SPDX-License-Identifier: BSD-3-Clause
"""The search: Levenberg–Marquardt steps of many samples at once, and new starts for those stuck.

A call of the step's program tells the error where a sample stands and where to go from there. If
the error has grown, the sample goes back to the best place so far with more damping. Samples that
are done leave the batch, so that each costs only its own steps. Those that did not get there start
again, in rounds of several starts at once; nothing that a sample does depends on another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from phistar.arrays import Array
from phistar.inverse_kinematics.step_row import StepKey, take_step
from phistar.model.model import Model
from phistar.model.target_rows import TargetRows

FIRST_MU, LEAST_MU, MOST_MU = 0.3, 0.2, 1e12
"""Factor of the damping: at first, at least, and where no step helps any more."""
MU_DOWN, MU_UP = 0.5, 4.0
"""What a good and a bad step make of it."""
SLOW_PROGRESS, SLOW_STEPS = 1e-2, 5
"""Relative gain of a step below which it counts as slow, and how many of them end a start."""
FAR_MERIT = 5e-7
"""Lower priorities may disturb the first one by this meanwhile [rad² and m², halved]."""
STILL = 1e-9
"""Length of a step [rad and m] below which lower priorities are where they can be."""
LAST_STEPS = 20
"""Steps of the first priority alone, at the end."""
FIRST_ROUND = 3
"""Random starts of the first round; each further round has twice as many."""


@dataclass(frozen=True)
class SearchProblem:
    """What is searched for.

    Attributes:
        model: The robot.
        rows: The targets.
        scales: (groups,) square roots of their weights.
        fixed: Joints that do not move.
        limited: Whether limits are kept.
        tolerance: Largest residual of the first priority.
        max_iterations: Steps from each start.
    """

    model: Model
    rows: tuple[TargetRows, ...]
    scales: Array
    fixed: tuple[str, ...]
    limited: bool
    tolerance: float
    max_iterations: int

    @property
    def key(self) -> StepKey:
        """The program of a step."""
        return ("inverse_kinematics_step", (), self.rows, self.fixed, self.limited)

    @property
    def first(self) -> list[int]:
        """Numbers of the targets of the first priority."""
        return [i for i, row in enumerate(self.rows) if row.priority == 0]

    @property
    def priorities(self) -> int:
        """How many there are."""
        return len({row.priority for row in self.rows})

    def step(self, q: Array, goals: Array, mu: Array) -> dict[str, Array]:
        """The program at samples (m, nq), (m, numbers), (m, 1)."""
        scales = np.repeat(self.scales[None], len(q), axis=0)
        return take_step(self.model, self.key, q, goals, scales, mu)

    def first_alone(self, goals: Array) -> tuple[SearchProblem, Array]:
        """The problem of the first priority alone, and its goals."""
        from phistar.scalar.trace.target_programs import goal_slices

        columns, groups = goal_slices(self.model, self.rows)
        alone = replace(
            self,
            rows=tuple(self.rows[i] for i in self.first),
            scales=np.concatenate([self.scales[groups[i]] for i in self.first]),
            max_iterations=LAST_STEPS,
        )
        return alone, np.concatenate([goals[:, columns[i]] for i in self.first], axis=1)

    def reached(self, squares: Array) -> Array:
        """Whether squared residuals (m, targets) are those of a success, (m,)."""
        return np.asarray((squares[:, self.first] <= self.tolerance**2).all(axis=1))


@dataclass
class Places:
    """What searches ended with, one row each.

    Attributes:
        q: (m, nq) the best place.
        merit: (m,) half the squared error of the first priority there, weighted.
        reached: (m,) whether that is a success.
        iterations: (m,) steps.
        unfinished: (m,) whether it was still getting better.
    """

    q: Array
    merit: Array
    reached: Array
    iterations: Array
    unfinished: Array


def attempt(problem: SearchProblem, starts: Array, goals: Array) -> Places:
    """Search from one start (m, nq) for each row of goals (m, numbers).

    Lower priorities move the first one by little while they move: a few steps of it alone, the
    least motion that makes up for that, come last.
    """
    found = descend(problem, starts, goals)
    near = np.flatnonzero(~found.reached & (found.merit <= FAR_MERIT))
    if problem.priorities == 1 or not len(near):
        return found
    alone, wanted = problem.first_alone(goals[near])
    better = descend(alone, found.q[near], wanted)
    found.q[near], found.reached[near] = better.q, better.reached
    found.iterations[near] += better.iterations
    return found


def descend(problem: SearchProblem, starts: Array, goals: Array) -> Places:
    """Steps from one start (m, nq) for each row of goals (m, numbers)."""
    count = len(starts)
    found = Places(
        starts.copy(),
        np.full(count, np.inf),
        np.zeros(count, bool),
        np.zeros(count, int),
        np.ones(count, bool),
    )
    batch = _Batch.of(problem, found, starts, goals)
    for _ in range(problem.max_iterations):
        if not len(batch.rows):
            break
        batch.step()
    batch.leave(np.ones(len(batch.rows), bool))
    return found


@dataclass
class _Batch:
    """Samples that are still searching.

    Attributes:
        problem, found: What is searched for, and where they report.
        rows: (m,) their rows there.
        q: (m, nq) where each stands; ``best`` where it was best, with ``merit`` (m,) and
            ``reached`` (m,) there.
        mu: (m, 1) damping.
        slow: (m,) slow steps one after another.
        again: (m,) whether it went back to where it was best.
        goals: (m, numbers).
    """

    problem: SearchProblem
    found: Places
    rows: Array
    q: Array
    best: Array
    merit: Array
    reached: Array
    mu: Array
    slow: Array
    again: Array
    goals: Array

    @classmethod
    def of(cls, problem: SearchProblem, found: Places, starts: Array, goals: Array) -> _Batch:
        count = len(starts)
        return cls(
            problem, found, np.arange(count), starts.copy(), starts.copy(), found.merit.copy(),
            np.zeros(count, bool), np.full((count, 1), FIRST_MU), np.zeros(count, int),
            np.zeros(count, bool), goals,
        )  # fmt: skip

    def step(self) -> None:
        """One step of all; those that are done leave."""
        problem, mu = self.problem, self.mu[:, 0]
        found = problem.step(self.q, self.goals, self.mu)
        self.found.iterations[self.rows] += 1
        merit, reached = found["merit"][:, 0], problem.reached(found["squares"])
        several = problem.priorities > 1
        better = self.again | (merit < self.merit)
        if several:
            better |= merit <= FAR_MERIT
        slow = ~better | (self.merit - merit <= SLOW_PROGRESS * merit)
        if several:
            slow &= merit > FAR_MERIT
        self.slow = np.where(self.again, self.slow, np.where(slow, self.slow + 1, 0))
        self.best[better] = self.q[better]
        self.merit = np.where(better, merit, self.merit)
        self.reached = np.where(better, reached, self.reached)
        changed = np.where(better, np.maximum(mu * MU_DOWN, LEAST_MU), mu * MU_UP)
        self.mu = np.where(self.again, mu, changed)[:, None]
        self.again = ~better
        self.q = np.where(better[:, None], found["q_next"], self.best)
        stuck = self.slow >= SLOW_STEPS
        if several:
            # Lower priorities go on while the first one stays.
            still = found["length"][:, 0] <= STILL
            done = better & np.where(reached, still, stuck)
        else:
            done = (better & reached) | stuck
        done |= (self.mu[:, 0] > MOST_MU) | ~np.isfinite(merit)
        if done.any():
            self.found.unfinished[self.rows[done]] = False
            self.leave(done)

    def leave(self, done: Array) -> None:
        """Report samples, and go on without them."""
        rows = self.rows[done]
        self.found.q[rows] = self.best[done]
        self.found.merit[rows] = self.merit[done]
        self.found.reached[rows] = self.reached[done]
        left = ~done
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(self, name, value[left])


def search(
    problem: SearchProblem, q0: Array, goals: Array, drawn: Callable[[], Array], restarts: int
) -> tuple[Places, Array]:
    """Search from q0 (m, nq), then from random starts where it does not work.

    Args:
        problem: What is searched for.
        q0: (m, nq).
        goals: (m, numbers).
        drawn: Gives the next start (nq); NaN entries are those of q0.
        restarts: How many.

    Returns:
        The best places, and how many starts each took (m,). Of the starts of a round that get
        there the first one counts; of those that do not, the one with the least error.
    """
    best = attempt(problem, q0, goals)
    starts = np.ones(len(q0), int)
    for count in rounds(restarts):
        tried = np.array([drawn() for _ in range(count)])
        left = np.flatnonzero(~best.reached)
        if not len(left):
            break
        own = np.repeat(q0[left], count, axis=0)
        free = np.tile(tried, (len(left), 1))
        found = attempt(
            problem, np.where(np.isnan(free), own, free), np.repeat(goals[left], count, axis=0)
        )
        _keep(best, starts, left, found, count)
    return best, starts


def rounds(restarts: int) -> Iterator[int]:
    """How many starts each round has."""
    size = FIRST_ROUND
    while restarts > 0:
        yield min(size, restarts)
        restarts, size = restarts - size, 2 * size


def _keep(best: Places, starts: Array, left: Array, found: Places, count: int) -> None:
    """Take over what a round found, where that is better."""
    merit = found.merit.reshape(-1, count)
    reached = found.reached.reshape(-1, count)
    first = np.where(reached.any(axis=1), reached.argmax(axis=1), merit.argmin(axis=1))
    row = np.arange(len(left)) * count + first
    starts[left] += np.where(found.reached[row], first + 1, count)
    best.iterations[left] += found.iterations.reshape(-1, count).sum(axis=1)
    better = found.reached[row] | (found.merit[row] < best.merit[left])
    kept, source = left[better], row[better]
    for name in ("q", "merit", "reached", "unfinished"):
        getattr(best, name)[kept] = getattr(found, name)[source]
