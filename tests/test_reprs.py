# SPDX-License-Identifier: BSD-3-Clause
"""What is printed of results, laws and costs: a few lines for people, whatever their size."""

import inspect
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import phistar
from phistar import control
from phistar.reprs import one_line_repr

LINES, WIDTH = 14, 400
"""The most that a result may print."""


@pytest.fixture(scope="module")
def things() -> list[Any]:
    """An instance of every public result, for a batch of 50 where there can be one."""
    robot = phistar.load("cartpole")
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(scale=0.1, size=(3, 50, 2))
    frame = robot.link_names[-1]
    laws = [
        control.rate_feedback(robot, limits=100.0),
        control.pose_control(robot, frame, np.broadcast_to(np.eye(4), (50, 4, 4))),
        control.pd_gravity(robot, q),
        control.computed_torque(robot, q),
        control.gravity_compensation(robot),
        control.follow(control.pd_gravity(robot, q[0]), q),
        control.operational_space(phistar.load("ur5"), "tool0", np.eye(4)),
    ]
    goal = control.FrameGoal(frame, np.eye(4))
    cost = control.QuadraticCost(robot, q[0], actuated=["slider"], frames=[goal])
    motion, _ = control.minimum_jerk(robot, q, q + 0.1, 0.1, 5)
    with warnings.catch_warnings(action="ignore"):
        solution = control.ilqr(cost, q, dt=0.02, steps=3, max_iterations=1)
    trajectory, _ = control.minimum_jerk(robot, q[0], q[1], 0.1, 5)
    return [
        *laws,
        goal,
        cost,
        cost.actuation,
        cost.expansion(motion.q, motion.v, motion.tau[..., :1], 0.01),
        motion,
        solution,
        solution.feedback,
        control.lqr(robot, robot.neutral(), actuated=["slider"]),
        control.tv_lqr(robot, trajectory),
        control.regulate(laws[2], q, duration=0.01, dt=0.005),
        robot.simulate(q, v, dt=1e-3, steps=2),
        robot.simulate(q, v, dt=1e-3, steps=2).drift(),
        robot.linearize(q, v, tau),
        robot.linearize_inverse(q, v, tau),
        robot.linearize_hybrid(q, v, tau, tau, ["slider"]),
        robot.discretize(q, v, tau, 0.01),
        robot.inverse_dynamics_second(q, v, tau),
        robot.forward_dynamics_second(q, v, tau),
        robot.diagonalize(q, v),
        robot.christoffel(q),
        robot.curvature(q),
        robot.is_flat(),
    ]


def test_nothing_prints_pages(things: list[Any]) -> None:
    """``print`` and ``repr`` of each: at most 14 lines of at most 400 characters in all."""
    for thing in things:
        for text in (str(thing), repr(thing)):
            kind = type(thing).__name__
            assert len(text.splitlines()) <= LINES, f"{kind}:\n{text}"
            assert max(map(len, text.splitlines())) <= WIDTH, f"{kind}:\n{text}"
            assert "array(" not in text, f"{kind}:\n{text}"
            assert " object at 0x" not in text, f"{kind}:\n{text}"


def test_every_public_class_is_looked_at(things: list[Any]) -> None:
    """What ``phistar.control`` offers to be printed is in the list above."""
    public = (getattr(control, name) for name in control.__all__)
    classes = {each for each in public if inspect.isclass(each)}
    protocols = {each for each in classes if inspect.isabstract(each) or each is control.Cost}
    assert classes - protocols <= {type(thing) for thing in things}


def test_words(things: list[Any]) -> None:
    """Names, shapes, short values and what a thing belongs to are there."""
    by_kind = {type(thing).__name__: str(thing) for thing in things}
    assert by_kind["Trajectory"].startswith("<Trajectory: 5 steps of 0.02 s, batch (50,)")
    assert by_kind["Linearization"] == (
        "<Linearization: vdot (50, 2), vdot_q (50, 2, 2), vdot_v (50, 2, 2), vdot_tau (50, 2, 2)>"
    )
    assert "of robot 'cartpole'" in by_kind["Regulator"]
    assert "slider" in by_kind["Regulator"]
    assert "K (1, 4)" in by_kind["Regulator"]
    assert "stiffness (50, 2)" in by_kind["PDGravity"]
    assert "Q (4, 4)" in by_kind["QuadraticCost"]
    assert "and 40 more" in by_kind["Regulation"]
    assert "and 40 more" in by_kind["Solution"]


def test_fields() -> None:
    """Short arrays are written out, long ones by their shape, hidden fields not at all."""

    @one_line_repr
    @dataclass
    class Thing:
        a: np.ndarray
        b: np.ndarray
        name: str
        hidden: int = field(default=3, repr=False)

    text = repr(Thing(np.array([1.0, 2.5]), np.zeros((3, 4)), "x" * 1000))
    assert text.startswith("<Thing: a [1.  2.5], b (3, 4), name 'xxx")
    assert len(text) < 150
