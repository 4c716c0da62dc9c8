# SPDX-License-Identifier: BSD-3-Clause
"""Environments of Gymnasium; the only file that imports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from phistar.arrays import Array
from phistar.envs.batch import TaskBatch
from phistar.envs.task import Task
from phistar.envs.tasks import task_of
from phistar.errors import ArgumentError, MissingExtraError, ShapeError, require_version
from phistar.model.configuration import as_numbers
from phistar.sim.simulator import Simulator

OLDEST = (1, 1)
"""The first version that has autoreset modes."""

try:
    import gymnasium
except ImportError:
    raise MissingExtraError("gymnasium", "gym", "phistar.envs") from None
require_version("gymnasium", gymnasium.__version__, OLDEST, "gym")
from gymnasium.spaces import Box  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402 - not in older versions
from gymnasium.vector.utils import batch_space  # noqa: E402

_MOST_SEEDS = 2**63


def _key(seed: int | np.integer[Any]) -> np.uint64:
    """A seed of any size as a key of random numbers."""
    return np.uint64(int(seed) % 2**64)


def _spaces(batch: TaskBatch) -> tuple[Box, Box]:
    """Spaces of single observations and actions."""
    seen = batch.task.observations(batch.observation_size)
    boxes = []
    for bounds in (seen, batch.actions):
        low, high = (x.astype(batch.dtype) for x in (bounds.low, bounds.high))
        boxes.append(Box(low, high, dtype=batch.dtype.type))
    return boxes[0], boxes[1]


def _task(task: Task | str, options: Mapping[str, Any]) -> Task:
    """A task with other fields, which Gymnasium may call by names of its own.

    Raises:
        ArgumentError: Pictures are asked for, or the length of an episode twice.
    """
    fields = dict(options)
    if fields.pop("render_mode", None) is not None:
        raise ArgumentError(
            f"render_mode is {options['render_mode']!r}, and environments draw no pictures: leave "
            "it out; env.simulator.view() shows the robots in a browser"
        )
    steps = fields.pop("max_episode_steps", None)
    if steps is not None:
        if "horizon" in fields:
            raise ArgumentError("horizon and max_episode_steps are the same thing: give one")
        fields["horizon"] = steps
    return task_of(task, fields)


class RobotEnv(gymnasium.Env):  # type: ignore[misc]
    """One robot with a task, as Gymnasium's ``Env``.

    Args:
        task: A ``Task``, or the name of a registered one, see ``phistar.envs.TASKS``.
        dtype: Of observations and actions: float32 or float64.
        options: Other fields of the task, e.g. ``horizon=200``; Gymnasium calls that
            ``max_episode_steps``.
    """

    metadata: Mapping[str, object] = {"render_modes": []}
    render_mode = None

    def __init__(self, task: Task | str, *, dtype: DTypeLike = np.float32, **options: Any) -> None:
        self._batch = TaskBatch(_task(task, options), 1, dtype, threads=1)
        self.observation_space, self.action_space = _spaces(self._batch)
        self._seeded = self._begun = self._over = False

    @property
    def task(self) -> Task:
        """What it asks."""
        return self._batch.task

    @property
    def simulator(self) -> Simulator:
        """The simulator, a batch of one."""
        return self._batch.simulator

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, object] | None = None
    ) -> tuple[Array, dict[str, object]]:
        """Begin anew; the same seed begins the same sequence of starts."""
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            self._batch.seed(self.np_random.integers(_MOST_SEEDS) if seed is None else _key(seed))
            self._seeded = True
        self._batch.reset()
        self._begun, self._over = True, False
        return self._batch.observed()[0], {}

    def step(self, action: ArrayLike) -> tuple[Array, float, bool, bool, dict[str, object]]:
        """One step: observation, reward, terminated, truncated, info."""
        if not self._begun:
            raise ArgumentError("step before reset: call env.reset() first")
        if self._over:
            raise ArgumentError("step after the end of an episode: call env.reset() first")
        given = as_numbers(action, "action")
        if given.shape != self.action_space.shape:
            raise ShapeError("action", given.shape, str(self.action_space.shape), "one environment")
        found = self._batch.step(self._batch.checked(given[None]))
        ended, cut = bool(found.terminated[0]), bool(found.truncated[0])
        self._over = ended or cut
        info: dict[str, object] = {"diverged": True} if found.diverged[0] else {}
        return found.observation[0], float(found.reward[0]), ended, cut, info


class RobotVectorEnv(gymnasium.vector.VectorEnv):  # type: ignore[misc]
    """Many robots with a task, as Gymnasium's ``VectorEnv``; each step is one call for all.

    Environment i after ``reset(seed=s)`` does what a ``RobotEnv`` does after ``reset(seed=s + i)``.

    Args:
        task: A ``Task``, or the name of a registered one.
        num_envs: Number of robots.
        autoreset_mode: ``"NextStep"`` (the default of Gymnasium): robots that ended begin anew in
            the next step, whose action and reward do not count. ``"SameStep"``: at once, what was
            seen last is ``info["final_obs"]``. ``"Disabled"``: by
            ``reset(options={"reset_mask": mask})``.
        dtype: Of observations and actions: float32 or float64.
        threads: Of the simulator; by the work by default.
        options: Other fields of the task, as of ``RobotEnv``.
    """

    def __init__(
        self,
        task: Task | str,
        num_envs: int,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        dtype: DTypeLike = np.float32,
        threads: int | None = None,
        **options: Any,
    ) -> None:
        self.num_envs = num_envs
        try:
            self._mode = AutoresetMode(autoreset_mode)
        except ValueError:
            known = ", ".join(repr(mode.value) for mode in AutoresetMode)
            raise ArgumentError(
                f"autoreset_mode is {autoreset_mode!r}, expected one of {known}"
            ) from None
        self.metadata = {"render_modes": [], "autoreset_mode": self._mode}
        self._batch = TaskBatch(_task(task, options), num_envs, dtype, threads)
        self.single_observation_space, self.single_action_space = _spaces(self._batch)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._over = np.zeros(num_envs, dtype=bool)
        self._seeded = self._begun = False

    @property
    def task(self) -> Task:
        """What it asks."""
        return self._batch.task

    @property
    def simulator(self) -> Simulator:
        """The simulator of all robots."""
        return self._batch.simulator

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> tuple[Array, dict[str, object]]:
        """Begin anew: all, or those of ``options["reset_mask"]`` (num_envs,)."""
        first = seed if isinstance(seed, int | np.integer) else None
        super().reset(seed=first)
        mask = None if options is None else options.get("reset_mask")
        if mask is not None:
            mask = np.asarray(mask)
            if mask.shape != (self.num_envs,) or mask.dtype != bool:
                expected = f"({self.num_envs},) booleans"
                raise ShapeError("reset_mask", mask.shape, expected, f"dtype {mask.dtype}")
        if not self._seeded:
            self._batch.seed(self.np_random.integers(_MOST_SEEDS, size=self.num_envs))
            self._seeded = True
        if seed is not None:
            keys, seeded = self._keys(seed)
            self._batch.seed(keys, seeded if mask is None else seeded & mask)
        self._batch.reset(mask)
        self._over[slice(None) if mask is None else mask] = False
        self._begun = True
        return self._batch.observed(), {}

    def _keys(self, seed: int | Sequence[int | None]) -> tuple[Array, Array]:
        """Keys (num_envs,), and which of them are given: None in a list leaves a robot its own."""
        if isinstance(seed, int | np.integer):
            return _key(seed) + np.arange(self.num_envs, dtype=np.uint64), np.array(True)
        given = list(seed) if isinstance(seed, Sequence | np.ndarray) else []
        whole = all(
            each is None or (isinstance(each, int | np.integer) and each >= 0) for each in given
        )
        if len(given) != self.num_envs or not whole:
            expected = f"a whole number, 0 or more, or {self.num_envs} of them"
            raise ArgumentError(f"seed is {seed!r}, expected {expected}")
        keys = [_key(0 if each is None else each) for each in given]
        return np.array(keys), np.array([each is not None for each in given])

    def step(self, actions: ArrayLike) -> tuple[Array, Array, Array, Array, dict[str, object]]:
        """One step of all: observations, rewards, terminations, truncations, infos."""
        if not self._begun:
            raise ArgumentError("step before reset: call envs.reset() first")
        if self._mode is AutoresetMode.DISABLED and self._over.any():
            first = int(np.argmax(self._over))
            raise ArgumentError(
                f"environment {first} has ended and autoreset is disabled: reset it first, "
                "envs.reset(options={'reset_mask': mask})"
            )
        begins = self._over.copy()
        found = self._batch.step(self._batch.checked(actions))
        info: dict[str, object] = {}
        if found.diverged.any():
            info |= {"diverged": found.diverged & ~begins, "_diverged": found.diverged & ~begins}
        reward, ended, cut = found.reward, found.terminated, found.truncated
        seen = found.observation
        if begins.any():
            self._batch.reset(begins)
            seen = self._batch.observed()
            reward = np.where(begins, 0.0, reward)
            ended, cut = ended & ~begins, cut & ~begins
        self._over = ended | cut
        if self._mode is AutoresetMode.SAME_STEP and self._over.any():
            over = self._over.copy()
            last = {name: x for name, x in info.items() if name in ("diverged", "_diverged")}
            info |= {"final_obs": seen, "_final_obs": over}
            info |= {"final_info": last, "_final_info": over.copy()}
            self._batch.reset(self._over)
            seen = self._batch.observed()
            self._over = np.zeros(self.num_envs, dtype=bool)
        return seen, reward, ended, cut, info


def register() -> None:
    """Make all tasks known to ``gymnasium.make`` and ``make_vec``, once."""
    from phistar.envs.tasks import TASKS

    for name in TASKS:
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="phistar.envs:RobotEnv",
                vector_entry_point="phistar.envs:RobotVectorEnv",
                kwargs={"task": name},
            )
