# SPDX-License-Identifier: BSD-3-Clause
"""Tasks on the simulator, without Gymnasium: starts, random numbers, bounds, ends."""

import gc
import weakref

import numpy as np
import pytest

import phistar
from phistar.envs.batch import TaskBatch
from phistar.envs.random_numbers import uniform
from phistar.envs.task import Task
from phistar.envs.tasks import TASKS, task_of
from phistar.errors import ArgumentError, ShapeError, UnknownNameError


def test_random_numbers_of_a_key_are_its_own() -> None:
    """They do not depend on who else is asked; they are uniform and not correlated."""
    keys = np.arange(2000, dtype=np.uint64)
    counts = np.zeros(2000, dtype=np.uint64)
    found = uniform(keys, counts, 4)
    np.testing.assert_array_equal(found[7:9], uniform(keys[7:9], counts[7:9], 4))
    assert not np.array_equal(found, uniform(keys, counts + np.uint64(1), 4))
    assert 0.0 <= found.min() < found.max() < 1.0
    np.testing.assert_allclose(found.mean(axis=0), 0.5, atol=0.03)
    np.testing.assert_allclose(np.corrcoef(found.T), np.eye(4), atol=0.08)
    neighbours = np.corrcoef(found[:-1, 0], found[1:, 0])[0, 1]
    assert abs(neighbours) < 0.08


@pytest.mark.parametrize("name", TASKS)
def test_tasks_begin_where_their_robots_can(name: str) -> None:
    """Within limits, above the ground, observations within their bounds."""
    task = task_of(name, {})
    begun = task.begin(uniform(np.arange(16, dtype=np.uint64), np.zeros(16, np.uint64), task.draws))
    limits = task.loaded.limits
    assert (begun.q >= limits.lower).all()
    assert (begun.q <= limits.upper).all()
    task.loaded.forward_dynamics(begun.q, begun.v, np.zeros_like(begun.v))


def test_a_dropped_task_leaves_no_robot() -> None:
    """What is known of a robot that stands goes with it."""
    task = task_of("phistar/QuadrupedStand-v0", {})
    task.begin(np.full((1, task.draws), 0.5))
    robot = weakref.ref(task.loaded)
    del task
    gc.collect()
    assert robot() is None


def test_cart_pole_falls_and_ends_in_time() -> None:
    """Steps give rewards of the batch; all are cut off at the horizon."""
    batch = TaskBatch(task_of("phistar/CartPoleSwingUp-v0", {"horizon": 3}), 5, np.float64)
    batch.seed(np.arange(5))
    batch.reset()
    still = np.zeros((5, 1))
    cut = [batch.step(still).truncated.all() for _ in range(3)]
    assert cut == [False, False, True]
    batch.reset(np.array([True, False, False, False, False]))
    np.testing.assert_array_equal(batch.elapsed, [0, 3, 3, 3, 3])


def test_actions_are_clipped_to_limits() -> None:
    """What a motor cannot do is not done."""
    robot = phistar.load("cartpole")
    task = Task(robot, reward=lambda before, after: np.zeros(len(after.q)))
    batch = TaskBatch(task, 1, np.float64)
    batch.reset()
    np.testing.assert_array_equal(batch.checked([[50.0]]), [[10.0]])


def test_wrong_tasks() -> None:
    """One clear error each."""
    pay = {"reward": lambda before, after: np.zeros(len(after.q))}
    with pytest.raises(UnknownNameError, match="slider"):
        TaskBatch(Task("cartpole", actuated=["slyder"], **pay), 1, np.float64)
    with pytest.raises(ArgumentError, match="effort limit"):
        TaskBatch(Task("double_pendulum", **pay), 1, np.float64)
    with pytest.raises(ArgumentError, match="divisor of 4"):
        Task("cartpole", substeps=4, hold=3, **pay)
    wrong = TaskBatch(Task("cartpole", reward=lambda before, after: 1.0), 2, np.float64)
    wrong.reset()
    with pytest.raises(ShapeError, match="reward"):
        wrong.step(np.zeros((2, 1)))
