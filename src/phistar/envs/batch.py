# SPDX-License-Identifier: BSD-3-Clause
"""A task on the simulator: what single and vector environments have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from phistar.arrays import Array
from phistar.envs.random_numbers import uniform
from phistar.envs.task import Moment, Task
from phistar.errors import ArgumentError, NotFiniteError, ShapeError
from phistar.model.configuration import as_numbers


@dataclass(frozen=True)
class StepOutcome:
    """What a step gave: arrays over the batch."""

    observation: Array
    reward: Array
    terminated: Array
    truncated: Array
    diverged: Array


class TaskBatch:
    """A batch of one task in time.

    Args:
        task: The task.
        batch: Number of robots.
        dtype: Of observations.
        threads: Of the simulator.
    """

    def __init__(
        self, task: Task, batch: int, dtype: DTypeLike, threads: int | None = None
    ) -> None:
        self.task = task
        self.batch = batch
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ArgumentError(f"dtype is {self.dtype}, expected float32 or float64")
        options = {"on_error": "freeze", "threads": threads, **task.simulator}
        self.simulator = task.loaded.simulator(batch, dt=task.dt, **options)
        self.actions = task.actions
        self.keys = np.arange(batch, dtype=np.uint64)
        self.counts = np.zeros(batch, dtype=np.uint64)
        self.elapsed = np.zeros(batch, dtype=int)
        robot = task.loaded
        begun = task.begin(np.zeros((1, task.draws)))
        goals = 0 if begun.goal is None else begun.goal.shape[-1]
        self.moment = Moment(
            robot,
            np.tile(begun.q, (batch, 1)),
            np.zeros((batch, robot.nv)),
            np.zeros(batch),
            np.zeros((batch, len(self.actions.low))),
            np.zeros((batch, goals)),
        )
        size = self.observed().shape
        if len(size) != 2 or size[0] != batch:
            raise ShapeError("observation", size, f"({batch}, n)", "the task's observe")
        self.observation_size = size[1]

    def seed(self, keys: ArrayLike, chosen: ArrayLike = True) -> None:
        """New keys (batch,) of random numbers for chosen samples; counting begins anew."""
        self.keys = np.where(chosen, np.asarray(keys, dtype=np.uint64), self.keys)
        self.counts[np.broadcast_to(chosen, (self.batch,))] = 0

    def reset(self, mask: Array | None = None) -> None:
        """Begin anew: all, or the samples of a mask (batch,)."""
        chosen = np.arange(self.batch) if mask is None else np.flatnonzero(mask)
        if not len(chosen):
            return
        numbers = uniform(self.keys[chosen], self.counts[chosen], self.task.draws)
        self.counts[chosen] += np.uint64(1)
        begun = self.task.begin(numbers)
        state = self.simulator.reset(chosen, q=begun.q, v=begun.v)
        self.elapsed[chosen] = 0
        old = self.moment
        action, goal = old.action.copy(), old.goal.copy()
        action[chosen] = 0.0
        if begun.goal is not None:
            goal[chosen] = begun.goal
        self.moment = Moment(old.robot, state.q, state.v, state.time, action, goal)

    def observed(self) -> Array:
        """Observations (batch, n), which their owner may change."""
        return np.array(self.task.observe(self.moment), dtype=self.dtype)

    def checked(self, actions: ArrayLike) -> Array:
        """Actions (batch, n) as numbers within their bounds.

        Raises:
            ShapeError: Another shape.
            NotFiniteError: One is not a number.
        """
        given = as_numbers(actions, "action").astype(float)
        expected = (self.batch, len(self.actions.low))
        if given.shape != expected:
            raise ShapeError("action", given.shape, str(expected), f"{self.batch} environments")
        if not np.isfinite(given).all():
            bad = ~np.isfinite(given).all(axis=-1)
            raise NotFiniteError(
                f"action of environment {int(np.argmax(bad))} is not finite: "
                f"{given[np.argmax(bad)]}",
                bad,
            )
        return np.asarray(np.clip(given, self.actions.low, self.actions.high))

    def step(self, actions: Array) -> StepOutcome:
        """One step of all; samples that diverge are terminated without a reward."""
        task = self.task
        before = replace(self.moment, action=actions)
        count = task.hold or task.substeps
        now = before
        for _ in range(task.substeps // count):
            state = self.simulator.step(task.drive(now, actions), substeps=count)
            now = replace(now, q=state.q, v=state.v, time=state.time)
        self.moment = now
        self.elapsed += 1
        diverged = state.frozen
        reward = np.asarray(task.reward(before, now), dtype=float)
        ended = np.asarray(task.terminated(now), dtype=bool)
        for name, array in (("reward", reward), ("terminated", ended)):
            if array.shape != (self.batch,):
                raise ShapeError(name, array.shape, f"({self.batch},)", "the task's function")
        reward = np.where(diverged, 0.0, reward)
        cut = (self.elapsed >= task.horizon) & ~ended & ~diverged
        return StepOutcome(self.observed(), reward, ended | diverged, cut, diverged)
