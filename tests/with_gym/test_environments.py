# SPDX-License-Identifier: BSD-3-Clause
"""Environments of Gymnasium: its own checks, seeding, autoreset modes, spaces, errors."""

import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import phistar
from phistar.envs import TASKS, Bounds, Moment, RobotEnv, RobotVectorEnv, Start, Task
from phistar.errors import ArgumentError, NotFiniteError, ShapeError, UnknownNameError

MODES = ("NextStep", "SameStep", "Disabled")
CART = "phistar/CartPoleSwingUp-v0"


def actions(envs: Any, seed: int, steps: int) -> np.ndarray:
    """Random actions (steps, envs, n) within their bounds."""
    high = envs.single_action_space.high
    rng = np.random.default_rng(seed)
    return (rng.uniform(-1, 1, size=(steps, envs.num_envs, len(high))) * high).astype(np.float32)


@pytest.mark.parametrize("name", TASKS)
def test_gymnasium_checks_it(name: str) -> None:
    """``check_env`` finds nothing but what it recommends: bounded and normalised spaces."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check_env(gymnasium.make(name).unwrapped, skip_render_check=True)
    texts = [str(each.message) for each in said]
    recommended = ("infinity", "symmetric and normalized")
    assert [text for text in texts if not any(part in text for part in recommended)] == []


@pytest.mark.parametrize("name", TASKS)
def test_batch_does_what_single_ones_do(name: str) -> None:
    """Robot i of seed s is a single one of seed s + i, step by step; observations fit the space."""
    envs = gymnasium.make_vec(name, num_envs=4, dtype=np.float64)
    singles = [RobotEnv(name, dtype=np.float64) for _ in range(4)]
    seen, _ = envs.reset(seed=7)
    apart = [single.reset(seed=7 + k)[0] for k, single in enumerate(singles)]
    np.testing.assert_array_equal(seen, apart)
    running = np.ones(4, dtype=bool)
    for action in actions(envs, 0, 30):
        seen, reward, ended, cut, _ = envs.step(action)
        assert envs.observation_space.contains(seen)
        for k in np.flatnonzero(running):
            found = singles[k].step(action[k])
            np.testing.assert_allclose(seen[k], found[0], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(reward[k], found[1], rtol=1e-9, atol=1e-12)
            assert (ended[k], cut[k]) == found[2:4]
        running &= ~(ended | cut)


def test_same_seed_same_numbers() -> None:
    """Two environments with one seed agree in all numbers; another seed gives others."""
    runs = []
    for seed in (3, 3, 4):
        envs = RobotVectorEnv(CART, 8)
        first, _ = envs.reset(seed=seed)
        for action in actions(envs, 1, 20):
            last = envs.step(action)[0]
        runs.append((first, last))
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0][0], runs[2][0])
    assert len(np.unique(runs[0][0][:, 0])) == 8
    again = RobotVectorEnv(CART, 8)
    starts = [again.reset(seed=3)[0], again.reset()[0], again.reset(seed=3)[0]]
    np.testing.assert_array_equal(starts[0], starts[2])
    assert not np.array_equal(starts[0], starts[1])


def test_seeds_of_some() -> None:
    """None in a list, or outside of a mask: that robot goes on with the numbers that it had."""
    envs, other = (RobotVectorEnv(CART, 3, autoreset_mode="Disabled") for _ in range(2))
    for each in (envs, other):
        each.reset(seed=[1, 2, 3])
    first, _ = envs.reset(seed=[7, None, 9])
    np.testing.assert_array_equal(first[1], other.reset()[0][1])
    alone = RobotEnv(CART).reset(seed=7)[0]
    np.testing.assert_array_equal(first[0], alone)
    mask = np.array([True, False, False])
    masked, _ = envs.reset(seed=7, options={"reset_mask": mask})
    np.testing.assert_array_equal(masked[0], alone)
    np.testing.assert_array_equal(envs.reset()[0][1], other.reset()[0][1])
    huge = RobotVectorEnv(CART, 2).reset(seed=2**70 + 5)[0]
    np.testing.assert_array_equal(huge[0], RobotEnv(CART).reset(seed=2**70 + 5)[0])


def test_what_gymnasium_says_of_the_last_step() -> None:
    """``SameStep``: the same keys and observations as Gymnasium's own vector environment."""
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    ours = RobotVectorEnv(CART, 2, autoreset_mode=mode, horizon=2)
    theirs = gymnasium.make_vec(CART, num_envs=2, vectorization_mode="sync",
                                vector_kwargs={"autoreset_mode": mode}, horizon=2)  # fmt: skip
    for envs in (ours, theirs):
        envs.reset(seed=0)
    for _ in range(2):
        a, b = (envs.step(np.zeros((2, 1)))[4] for envs in (ours, theirs))
    assert sorted(a) == sorted(b)
    np.testing.assert_array_equal(a["final_obs"], np.stack(list(b["final_obs"])))
    np.testing.assert_array_equal(a["_final_info"], b["_final_info"])


@pytest.mark.parametrize("mode", MODES)
def test_autoreset(mode: str) -> None:
    """What ends begins anew as each mode says; the others go on undisturbed."""
    envs = RobotVectorEnv(CART, 3, autoreset_mode=mode, horizon=5, dtype=np.float64)
    assert envs.metadata["autoreset_mode"].value == mode
    envs.reset(seed=0)
    still = np.zeros((3, 1))
    for _ in range(4):
        _, _, ended, cut, info = envs.step(still)
        assert not (ended | cut).any()
    last, reward, ended, cut, info = envs.step(still)
    assert cut.all()
    assert not ended.any()
    begun, _ = RobotVectorEnv(CART, 3, dtype=np.float64).reset(seed=0)
    if mode == "SameStep":
        assert info["_final_obs"].all()
        assert np.abs(info["final_obs"] - last).max() > 1e-3
        assert (np.abs(last[:, 3:]) <= 0.1).all()
        after = envs.step(still)
        assert not after[3].any()
        assert (after[1] > 0).all()
    elif mode == "NextStep":
        fresh, reward, ended, cut, _ = envs.step(still + 10.0)
        assert not (ended | cut).any()
        np.testing.assert_array_equal(reward, 0.0)
        assert (np.abs(fresh[:, 0]) <= 0.2).all()
        assert (np.abs(fresh[:, 3:]) <= 0.1).all()
        assert not np.array_equal(fresh, begun)
    else:
        with pytest.raises(ArgumentError, match="autoreset is disabled: reset it first"):
            envs.step(still)
        mask = np.array([True, True, True])
        envs.reset(options={"reset_mask": mask})
        envs.step(still)


def test_reset_of_some() -> None:
    """A mask resets its robots, the others stay where they are."""
    envs = RobotVectorEnv(CART, 4, autoreset_mode="Disabled", dtype=np.float64)
    envs.reset(seed=0)
    for action in actions(envs, 0, 5):
        before = envs.step(action)[0]
    mask = np.array([False, True, False, True])
    after, _ = envs.reset(options={"reset_mask": mask})
    np.testing.assert_array_equal(after[~mask], before[~mask])
    assert (after[mask] != before[mask]).any(axis=-1).all()


def test_spaces_come_from_limits() -> None:
    """Forces of the file bound actions, limits of joints bound angles."""
    robot = phistar.load("panda")
    env = RobotEnv(Task(robot, reward=lambda before, after: np.zeros(len(after.q))))
    np.testing.assert_allclose(env.action_space.high, robot.limits.effort)
    np.testing.assert_allclose(env.observation_space.low[:7], robot.limits.lower - 0.05, rtol=1e-6)
    assert np.isinf(env.observation_space.high[7:]).all()
    env.reset(seed=0)
    for _ in range(50):
        seen, *_ = env.step(env.action_space.high)
        assert env.observation_space.contains(seen)


def test_own_task() -> None:
    """Reward, end, start and goal are functions of whole batches, called once a step."""
    calls = []

    def reward(before: Moment, after: Moment) -> np.ndarray:
        calls.append(len(after.q))
        return after.q[:, 0] - before.q[:, 0] + after.goal[:, 0]

    def start(robot: phistar.Robot, uniform: np.ndarray) -> Start:
        q = np.tile(robot.home, (len(uniform), 1))
        return Start(q, np.zeros_like(q), goal=uniform)

    task = Task(
        "ur5",
        reward=reward,
        start=start,
        terminated=lambda moment: moment.time > 0.05,
        actuated=["elbow_joint"],
        action_bounds=Bounds(np.array([-1.0]), np.array([1.0])),
        draws=1,
    )
    envs = RobotVectorEnv(task, 16)
    envs.reset(seed=1)
    results = [envs.step(np.ones((16, 1))) for _ in range(4)]
    assert calls == [16] * 4
    assert [bool(r[2].all()) for r in results] == [False, False, True, False]
    assert len(np.unique(results[0][1])) == 16


def test_one_that_diverges_does_not_end_the_others() -> None:
    """TRIALS 31: it is terminated, named in info, and begins anew."""
    task = Task(
        "double_pendulum",
        reward=lambda before, after: np.ones(len(after.q)),
        action_bounds=Bounds(np.full(2, -1e300), np.full(2, 1e300)),
        actuated=["shoulder", "elbow"],
        simulator={"ground": False},
    )
    envs = RobotVectorEnv(task, 3, dtype=np.float64)
    envs.reset(seed=0)
    strong = np.zeros((3, 2))
    strong[1] = 1e300
    for _ in range(5):
        seen, reward, ended, _, info = envs.step(strong)
        if ended.any():
            break
    np.testing.assert_array_equal(ended, [False, True, False])
    np.testing.assert_array_equal(info["diverged"], [False, True, False])
    np.testing.assert_array_equal(reward, [1.0, 0.0, 1.0])
    assert np.isfinite(seen).all()
    seen, _, ended, _, _ = envs.step(np.zeros((3, 2)))
    assert not ended.any()
    np.testing.assert_array_equal(envs.simulator.state.frozen, False)


@pytest.mark.parametrize("name", ["phistar/QuadrupedStand-v0", "phistar/QuadrupedWalk-v0"])
def test_quadrupeds_stand_on_their_feet(name: str) -> None:
    """Without actions the stance holds: contacts carry the weight, nothing ends."""
    envs = RobotVectorEnv(name, 4)
    envs.reset(seed=0)
    for _ in range(60):
        _, _, ended, _, _ = envs.step(np.zeros((4, 12)))
        assert not ended.any()
    weight = 9.81 * envs.task.loaded.total_mass
    carried = envs.simulator.contacts.normal_force.sum(axis=-1)
    np.testing.assert_allclose(carried, weight, rtol=0.02)


def test_upright_pole_is_paid_best() -> None:
    """The reward of cart-pole is near 1 standing, near 0 hanging."""
    env = RobotEnv(CART)
    env.reset(seed=0)
    env.simulator.reset(q=[0.0, 0.0])
    assert env.step([0.0])[1] > 0.95
    env.reset(seed=0)
    assert env.step([0.0])[1] < 0.05


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        (lambda env: env.step(np.zeros(3)), ShapeError, "action"),
        (lambda env: env.step([np.nan]), NotFiniteError, "is not finite"),
        (lambda env: RobotEnv("phistar/Cart"), UnknownNameError, "CartPole"),
        (lambda env: RobotEnv(CART, horizen=3), UnknownNameError, "horizon"),
        (lambda env: RobotEnv(CART, horizon=0), ArgumentError, "horizon is 0"),
        (lambda env: RobotEnv(CART, dtype=np.int32), ArgumentError, "float32 or float64"),
        (lambda env: RobotVectorEnv(CART, 2, autoreset_mode="x"), ArgumentError, "'SameStep'"),
        (lambda env: RobotVectorEnv(CART, 0), ArgumentError, "batch is 0"),
        (lambda env: RobotEnv(CART).step([0.0]), ArgumentError, "step before reset"),
        (lambda env: RobotEnv("phistar/Acrobot-v0", action_bounds=None), ArgumentError, "effort"),
        (lambda env: RobotEnv(CART, render_mode="rgb_array"), ArgumentError, "simulator.view"),
        (lambda env: RobotEnv(CART, horizon=3, max_episode_steps=4), ArgumentError, "same thing"),
        (lambda env: RobotVectorEnv(CART, 2).reset(seed=[1]), ArgumentError, "or 2 of them"),
        (lambda env: RobotVectorEnv(CART, 2).reset(seed=[1, "2"]), ArgumentError, "seed is"),
        (lambda env: env.step("left"), ArgumentError, "action is not an array of numbers"),
        (lambda env: env.step(None), ArgumentError, "action is not an array of numbers"),
        (lambda env: RobotVectorEnv(CART, 2).reset(seed=[1, -1]), ArgumentError, "0 or more"),
        (lambda env: RobotVectorEnv(CART, 2).reset(seed=0.5), ArgumentError, "seed is 0.5"),
    ],
)
def test_wrong_use(change: Any, kind: type[Exception], text: str) -> None:
    """One clear error each."""
    env = RobotEnv(CART)
    env.reset(seed=0)
    with pytest.raises(kind, match=text):
        change(env)


def test_gymnasiums_name_of_the_horizon() -> None:
    """``max_episode_steps`` of ``make_vec`` and ``make`` cuts episodes off; no pictures is fine."""
    envs = gymnasium.make_vec(CART, num_envs=2, max_episode_steps=3, render_mode=None)
    envs.reset(seed=0)
    cut = [envs.step(np.zeros((2, 1)))[3].tolist() for _ in range(3)]
    assert cut == [[False, False], [False, False], [True, True]]
    single = gymnasium.make(CART, max_episode_steps=2, render_mode=None)
    single.reset(seed=0)
    assert [single.step([0.0])[3] for _ in range(2)] == [False, True]


def test_step_after_the_end() -> None:
    """A single environment does not reset itself."""
    env = RobotEnv(CART, horizon=1)
    env.reset(seed=0)
    env.step([0.0])
    with pytest.raises(ArgumentError, match=r"call env\.reset"):
        env.step([0.0])


def test_missing_package() -> None:
    """Without Gymnasium tasks can be written, and the error says how to get it."""
    script = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "import phistar, phistar.envs as envs\n"
        "print(len(envs.TASKS))\n"
        "try:\n    envs.RobotEnv\n"
        "except phistar.errors.MissingExtraError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert 'pip install "phistar[gym]"' in done.stdout, done.stderr


def test_old_package() -> None:
    """Said by its version; tasks can still be written."""
    script = (
        "import gymnasium; gymnasium.__version__ = '0.29.1'\n"
        "import phistar, phistar.envs as envs\n"
        "print(len(envs.TASKS))\n"
        "try:\n    envs.RobotVectorEnv\n"
        "except phistar.errors.PackageVersionError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "'gymnasium' is version 0.29.1, and phistar needs 1.1 or newer" in done.stdout, (
        done.stderr
    )


def test_observations_that_are_changed() -> None:
    """They belong to whom they are given: neither rewards nor the next step see changes of them."""
    task = Task(
        "cartpole",
        reward=lambda before, after: after.q[:, 1] - before.q[:, 1],
        observe=lambda moment: moment.q,
    )
    found = []
    for spoils in (False, True):
        envs = RobotVectorEnv(task, 4, dtype=np.float64)
        seen = [envs.reset(seed=0)[0]]
        kept, rewards = [], []
        for _ in range(3):
            if spoils:
                seen[-1][:] = 7.0
            after, reward, *_ = envs.step(np.ones(envs.action_space.shape))
            seen.append(after)
            kept.append(after.copy())
            rewards.append(reward)
        found.append((np.stack(kept), np.stack(rewards)))
    for with_changes, without in zip(*found, strict=True):
        assert np.array_equal(with_changes, without)
