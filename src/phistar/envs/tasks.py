# SPDX-License-Identifier: BSD-3-Clause
"""Tasks by name, each a row of ``TASKS``: bundled robots, and what they are paid for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from phistar.arrays import Array
from phistar.envs.task import Bounds, Moment, Start, Task
from phistar.errors import ArgumentError, UnknownNameError, kind_of
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.robot import Robot
from phistar.spatial import quat_to_rotation


def _centred(uniform: Array, spread: float) -> Array:
    """Random numbers between -spread and spread."""
    return spread * (2.0 * uniform - 1.0)


# -- cart-pole: from hanging to standing

_TRACK = 2.4


def _hanging(robot: Robot, uniform: Array) -> Start:
    away = _centred(uniform, 1.0)
    q = np.stack([0.2 * away[:, 0], np.pi + 0.2 * away[:, 1]], axis=-1)
    return Start(q, 0.1 * away[:, 2:4])


def _cart_pole_seen(moment: Moment) -> Array:
    """Cart [m], cosine and sine of the pole's angle from upright, rates of both."""
    angle = moment.q[:, 1]
    return np.stack(
        [moment.q[:, 0], np.cos(angle), np.sin(angle), moment.v[:, 0], moment.v[:, 1]], axis=-1
    )


def _standing_reward(before: Moment, after: Moment) -> Array:
    """Near 1 where the pole stands still in the middle of the track, near 0 where it hangs."""
    upright = 0.5 * (1.0 + np.cos(after.q[:, 1]))
    centred = np.exp(-0.5 * after.q[:, 0] ** 2)
    calm = 0.5 + 0.5 * np.exp(-0.1 * after.v[:, 1] ** 2)
    easy = 1.0 - 0.05 * (after.action[:, 0] / 10.0) ** 2
    return np.asarray(upright * (0.5 + 0.5 * centred) * calm * easy)


def _off_track(moment: Moment) -> Array:
    return np.asarray(np.abs(moment.q[:, 0]) > _TRACK - 0.05)


def _cart_pole() -> Task:
    speed = np.inf
    return Task(
        "cartpole",
        reward=_standing_reward,
        start=_hanging,
        terminated=_off_track,
        observe=_cart_pole_seen,
        actuated=["slider"],
        observation_bounds=Bounds(
            np.array([-_TRACK - 0.1, -1.0, -1.0, -speed, -speed]),
            np.array([_TRACK + 0.1, 1.0, 1.0, speed, speed]),
        ),
        draws=4,
        simulator={"ground": False},
    )


# -- acrobot: two rods, a motor between them

_REACH, _SWING = 0.9, 0.45


def _at_rest(robot: Robot, uniform: Array) -> Start:
    away = _centred(uniform, 0.1)
    return Start(away[:, :2], away[:, 2:4])


def _acrobot_seen(moment: Moment) -> Array:
    """Cosines and sines of both angles, their rates."""
    return np.concatenate([np.cos(moment.q), np.sin(moment.q), moment.v], axis=-1)


def _tip_height(moment: Moment) -> Array:
    height: Array = moment.robot.frame_pose(moment.q, "tip", on_error="nan")[:, 2, 3]
    return np.nan_to_num(height, nan=-_REACH)


def _height_reward(before: Moment, after: Moment) -> Array:
    return _tip_height(after) / _REACH - 1.0


def _up(moment: Moment) -> Array:
    return np.asarray(_tip_height(moment) > _SWING)


def _acrobot() -> Task:
    most = np.array([2.0])
    wide = np.array([1.0, 1.0, 1.0, 1.0, np.inf, np.inf])
    return Task(
        "double_pendulum",
        reward=_height_reward,
        start=_at_rest,
        terminated=_up,
        observe=_acrobot_seen,
        actuated=["elbow"],
        action_bounds=Bounds(-most, most),
        observation_bounds=Bounds(-wide, wide),
        draws=4,
        dt=0.01,
        substeps=5,
        simulator={"ground": False},
    )


# -- Panda: the hand to a random place

_HAND = "panda_link8"
_READY = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
_SHARE = 0.2
"""Of the effort limits: what an action may add to gravity."""


def _before_goal(robot: Robot, uniform: Array) -> Start:
    q = _READY + _centred(uniform[:, :7], 0.1)
    goal = robot.frame_pose(_READY + _centred(uniform[:, 7:14], 0.5), _HAND)[:, :3, 3]
    return Start(q, np.zeros((len(q), 7)), goal)


def _hand(moment: Moment) -> Array:
    place: Array = moment.robot.frame_pose(moment.q, _HAND, on_error="nan")[:, :3, 3]
    return np.nan_to_num(place)


def _panda_seen(moment: Moment) -> Array:
    """q, v, the hand's place and that of the goal [m]."""
    return np.concatenate([moment.q, moment.v, _hand(moment), moment.goal], axis=-1)


def _near_reward(before: Moment, after: Moment) -> Array:
    far = np.linalg.norm(_hand(after) - after.goal, axis=-1)
    slow = 0.01 * np.square(after.v).sum(axis=-1)
    return np.asarray(np.exp(-5.0 * far) - 0.1 * np.minimum(slow, 1.0))


def _held_up(moment: Moment, action: Array) -> Array:
    effort = moment.robot.limits.effort
    gravity: Array = moment.robot.gravity_force(moment.q, on_error="nan")
    return np.nan_to_num(gravity) + _SHARE * effort * action


def _panda_reach() -> Task:
    one = np.ones(7)
    return Task(
        "panda",
        reward=_near_reward,
        start=_before_goal,
        observe=_panda_seen,
        forces=_held_up,
        action_bounds=Bounds(-one, one),
        draws=14,
        dt=0.002,
        substeps=10,
        hold=5,
        horizon=150,
        simulator={"ground": False},
    )


# -- quadruped: stand, and walk

_LEGS = np.tile([0.0, 0.7, -1.4], 4)
_FOOT, _FOOT_RADIUS = "FL_FOOT", 0.0125
_KP, _KD, _LEG_RANGE = 5.0, 0.15, 0.5  # N m/rad, N m s/rad, rad
_SPEED = 0.4  # m/s, of a walk


def _standing_height(robot: Robot) -> float:
    return _height_on_feet(robot.model)


@cached_on_model
def _height_on_feet(model: Model) -> float:
    robot = Robot(model)
    q = robot.neutral()
    q[7:] = _LEGS
    return float(_FOOT_RADIUS - robot.frame_pose(q, _FOOT)[2, 3])


def _on_feet(robot: Robot, uniform: Array) -> Start:
    q = np.tile(robot.neutral(), (len(uniform), 1))
    q[:, 7:] = _LEGS + _centred(uniform[:, :12], 0.05)
    # Bent legs may be a little longer: nothing begins inside the ground.
    q[:, 2] = _standing_height(robot) + 0.01
    return Start(q, np.zeros((len(q), robot.nv)))


def _down(moment: Moment) -> Array:
    """The world's downward direction in axes of the trunk (batch, 3)."""
    return np.asarray(-quat_to_rotation(moment.q[:, 3:7])[:, 2])


def _quadruped_seen(moment: Moment) -> Array:
    """Down in the trunk's axes, height, velocity of the trunk, angles of legs, their rates."""
    height = moment.q[:, 2:3]
    return np.concatenate(
        [_down(moment), height, moment.v[:, :6], moment.q[:, 7:] - _LEGS, moment.v[:, 6:]], axis=-1
    )


def _legs_to(moment: Moment, action: Array) -> Array:
    """Forces towards angles: actions are steps from a stance, within the motors' limits."""
    tau = np.zeros_like(moment.v)
    wanted = _LEGS + _LEG_RANGE * action
    most = moment.robot.limits.effort[6:]
    tau[:, 6:] = np.clip(_KP * (wanted - moment.q[:, 7:]) - _KD * moment.v[:, 6:], -most, most)
    return tau


def _stand_reward(before: Moment, after: Moment) -> Array:
    low = after.q[:, 2] - _standing_height(after.robot)
    moving = np.square(after.v[:, :6]).sum(axis=-1)
    upright = -_down(after)[:, 2]
    return np.asarray(upright * np.exp(-200.0 * low**2) * np.exp(-0.5 * moving))


def _walk_reward(before: Moment, after: Moment) -> Array:
    spent = np.maximum(after.time - before.time, 1e-9)
    speed = (after.q[:, 0] - before.q[:, 0]) / spent
    aside = (after.q[:, 1] - before.q[:, 1]) / spent
    paid = np.exp(-10.0 * (speed - _SPEED) ** 2 - 10.0 * aside**2)
    eager = 0.002 * np.square(after.action).sum(axis=-1)
    return np.asarray(-_down(after)[:, 2] * paid - eager)


def _fallen(moment: Moment) -> Array:
    low = moment.q[:, 2] < 0.5 * _standing_height(moment.robot)
    return np.asarray(low | (-_down(moment)[:, 2] < 0.5))


def _quadruped(reward: Callable[[Moment, Moment], Array], horizon: int) -> Task:
    one = np.ones(12)
    return Task(
        "quadruped",
        reward=reward,
        start=_on_feet,
        terminated=_fallen,
        observe=_quadruped_seen,
        forces=_legs_to,
        action_bounds=Bounds(-one, one),
        draws=12,
        dt=0.002,
        substeps=10,
        hold=1,
        horizon=horizon,
    )


TASKS: Mapping[str, Callable[[], Task]] = {
    "phistar/CartPoleSwingUp-v0": _cart_pole,
    "phistar/Acrobot-v0": _acrobot,
    "phistar/PandaReach-v0": _panda_reach,
    "phistar/QuadrupedStand-v0": lambda: _quadruped(_stand_reward, 250),
    "phistar/QuadrupedWalk-v0": lambda: _quadruped(_walk_reward, 500),
}
"""Tasks by the names under which Gymnasium makes them."""


def task_of(task: Task | str, options: Mapping[str, Any]) -> Task:
    """A task, or the one of a name, with other fields.

    Raises:
        UnknownNameError: There is no such task or field.
    """
    if isinstance(task, str):
        if task not in TASKS:
            raise UnknownNameError("task", task, TASKS)
        task = TASKS[task]()
    if not isinstance(task, Task):
        raise ArgumentError(f"task is {kind_of(task)}, expected a Task or a name")
    return task.with_options(**options)
