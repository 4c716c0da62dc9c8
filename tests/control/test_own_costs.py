# SPDX-License-Identifier: BSD-3-Clause
"""Costs of one's own: what they need, what is said when it is missing, and their check."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import phistar
from phistar import control
from phistar.control import Actuation, Expansion
from phistar.errors import ArgumentError, DerivativeError, ShapeError


class Effort:
    """The size of forces, and of the state at the end: a cost with the least that it needs."""

    def __init__(self, robot: phistar.Robot, **changes: Any) -> None:
        self.actuation = Actuation.of(robot)
        self.changes = changes

    def value(self, q: np.ndarray, v: np.ndarray, u: np.ndarray, dt: float) -> np.ndarray:
        """(...)."""
        end = (q[-1] ** 2).sum(axis=-1) + (v[-1] ** 2).sum(axis=-1)
        return end / 2 + dt / 2 * (u**2).sum(axis=(0, -1))

    def expansion(self, q: np.ndarray, v: np.ndarray, u: np.ndarray, dt: float) -> Expansion:
        """Its derivatives, with what the test changes."""
        n, m = v.shape[-1], u.shape[-1]
        x, xx = np.zeros((*v.shape[:-1], 2 * n)), np.zeros((*v.shape[:-1], 2 * n, 2 * n))
        x[-1] = np.concatenate([q[-1], v[-1]], axis=-1)
        xx[-1] = np.eye(2 * n)
        uu = np.broadcast_to(dt * np.eye(m), (*u.shape, m))
        right = Expansion(x, xx, dt * u, uu)
        return replace(right, **{name: f(getattr(right, name)) for name, f in self.changes.items()})


@pytest.fixture(scope="module")
def robot() -> phistar.Robot:
    """A cart with a pole."""
    return phistar.load("cartpole")


def solve(cost: Any) -> control.Solution:
    """A short problem."""
    return control.ilqr(cost, [[0.1, 0.2], [0.0, 0.3]], dt=0.05, steps=4)


def test_an_own_cost_is_minimised(robot: phistar.Robot) -> None:
    """The least that a cost needs will do, with the exported class of its motors."""
    assert solve(Effort(robot)).converged.all()


@pytest.mark.parametrize("missing", ["actuation", "value", "expansion"])
def test_what_is_missing_is_named(robot: phistar.Robot, missing: str) -> None:
    """An object without one of the three is refused with the way to make it."""
    whole = Effort(robot)
    parts = {name: getattr(whole, name) for name in ("actuation", "value", "expansion")}
    del parts[missing]
    with pytest.raises(ArgumentError, match=rf"has no {missing}; .*control\.Cost"):
        solve(SimpleNamespace(**parts))
    with pytest.raises(ArgumentError, match=r"expected control\.Actuation\.of\(robot\)"):
        solve(SimpleNamespace(**{**parts, missing: parts.get(missing), "actuation": robot}))


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("x", lambda x: x[:-1]),
        ("xx", lambda x: x[..., 0]),
        ("u", lambda x: x[:, :1]),
        ("uu", lambda x: x[0]),
    ],
)
def test_wrong_shapes_are_named(robot: phistar.Robot, part: str, wrong: Any) -> None:
    """Parts of an expansion of another shape: which one, its shape, the right one."""
    with pytest.raises(ShapeError, match=rf"cost\.expansion\(\.\.\.\)\.{part} has shape"):
        solve(Effort(robot, **{part: wrong}))


def test_wrong_numbers_are_named(robot: phistar.Robot) -> None:
    """NaN, an indefinite uu, something else than an Expansion, and values of a wrong shape."""
    with pytest.raises(ArgumentError, match=r"\.xx is not finite"):
        solve(Effort(robot, xx=lambda x: np.nan * x))
    with pytest.raises(ArgumentError, match=r"\.uu is not positive definite"):
        solve(Effort(robot, uu=lambda x: 0.0 * x))
    cost = Effort(robot)
    cost.expansion = lambda *_: (1, 2)  # type: ignore[method-assign,assignment]
    with pytest.raises(ArgumentError, match=r"gives a tuple, expected a control\.Expansion"):
        solve(cost)
    cost = Effort(robot)
    cost.value = lambda q, v, u, dt: 1.0  # type: ignore[method-assign,assignment]
    with pytest.raises(ShapeError, match=r"cost\.value\(\.\.\.\) has shape \(\)"):
        solve(cost)


def test_check_cost(robot: phistar.Robot) -> None:
    """Right costs pass, also on a free base; a gradient that is off by 1e-3 is named."""
    found = control.check_cost(Effort(robot))
    assert set(found) == {"x", "u"}
    assert max(found.values()) < 1e-6
    for part in ("x", "u"):
        with pytest.raises(DerivativeError, match=rf"{part} by 1\.\de-03") as error:
            control.check_cost(Effort(robot, **{part: lambda x: 1.001 * x}))
        assert error.value.errors[part] > 1e-4
    with pytest.raises(ArgumentError, match=r"\.xx is not symmetric"):
        control.check_cost(Effort(robot, xx=lambda x: x + np.triu(np.ones(x.shape[-2:]), 1)))
    free = phistar.load("quadruped")
    pose = free.frame_pose(free.neutral(), "FL_FOOT")
    goal = control.FrameGoal("FL_FOOT", pose)
    legs = [name for name in free.joint_names if name != "root_joint"]
    cost = control.QuadraticCost(free, free.neutral(), frames=[goal], actuated=legs)
    assert max(control.check_cost(cost, steps=2).values()) < 1e-5
