# SPDX-License-Identifier: BSD-3-Clause
"""Robots with loops: said at load, listed as not used, refused where motion depends on them."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import phistar
from phistar import control
from phistar.errors import LoopError, LoopWarning
from phistar.model import Model, ModelBuilder
from phistar.model.components import Coupling
from phistar.robot import Robot


def bars() -> Robot:
    """The bundled four-bar linkage, its warning expected."""
    with pytest.warns(LoopWarning):
        return phistar.load("four_bar")


def ring(*, active: bool = True) -> Model:
    """Two links in the plane, the second tied to the ground, and a coupling of their joints."""
    builder = ModelBuilder("ring")
    builder.link("ground")
    for number, (joint, parent) in enumerate((("j1", "ground"), ("j2", "a"))):
        child = "ab"[number]
        builder.link(child, 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1))
        builder.joint(joint, "revolute", parent, child, xyz=(number, 0, 0), axis=(0, 0, 1))
    builder.loop("tie", "revolute", "ground", "b", active=active)
    builder.couple(Coupling("gear", "j2", "j1", (0.0, 2.0), active=active))
    return builder.build()


def test_loading_warns_of_loops_by_name() -> None:
    """The warning names the loop and its links, says what dynamics do and names the way out."""
    with pytest.warns(LoopWarning) as caught:
        phistar.load("four_bar")
    (text,) = [str(each.message) for each in caught]
    for part in ("coupler_closure", "rocker", "coupler", "tree", "robot.tree"):
        assert part in text


@pytest.mark.parametrize("make", [phistar.load, Robot])
def test_built_robots_warn_as_well(make: Callable[[Model], Robot]) -> None:
    """Loops of a model made in Python warn where it becomes a robot; couplings count as loops."""
    with pytest.warns(LoopWarning, match=r'loop "tie" .*; .*coupling "gear"'):
        make(ring())


def test_the_robot_is_known_to_warn_once() -> None:
    """Robots made from one that has warned are silent."""
    robot = bars()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot.with_gravity((0, 0, 0))
        robot.reorder(robot.joint_names[::-1])
        _ = robot.tree


def test_report_lists_loops_as_not_used() -> None:
    """The loop stands under what dynamics do not use, not under what is used."""
    report = bars().load_report
    assert not any("loop" in str(entry) for entry in report.used)
    (loop,) = [str(entry) for entry in report.unused if "loop" in str(entry)]
    assert "coupler_closure" in loop
    assert "not used by dynamics" in str(report)


def test_tree_is_the_robot_without_its_loops() -> None:
    """Same names, coordinates, limits, numbers; no loops; asked twice it is the same object."""
    robot = bars()
    tree = robot.tree
    assert tree.loops == ()
    assert (tree.name, tree.joint_names, tree.link_names) == (
        robot.name,
        robot.joint_names,
        robot.link_names,
    )
    q, v = robot.random_configuration(0), np.ones(robot.nv)
    assert np.array_equal(tree.inverse_dynamics(q, v, v), robot.inverse_dynamics(q, v, v))
    assert robot.tree is tree
    assert tree.tree is tree
    assert tree.simulate(q, v, dt=1e-3, steps=2).q.shape == (3, robot.nq)
    assert not any(issubclass(p.category, LoopWarning) for p in tree.model.problems)


def test_a_robot_without_loops_is_its_own_tree() -> None:
    """Nothing to cut."""
    robot = phistar.load("double_pendulum")
    assert robot.tree is robot


def test_loops_that_are_switched_off_change_nothing() -> None:
    """A file may declare loops inactive: the tree is then right, so no warning and no refusal."""
    robot = phistar.load(ring(active=False))
    robot.simulate(np.zeros(2), np.zeros(2), dt=1e-3, steps=1)
    assert len(robot.loops) == 2
    assert robot.tree.loops == ()


ZERO = np.zeros(3)
REFUSED: dict[str, Callable[[Robot], object]] = {
    "simulate": lambda r: r.simulate(ZERO, ZERO, dt=1e-3, steps=1),
    "linearize": lambda r: r.linearize(ZERO, ZERO, ZERO),
    "linearize_inverse": lambda r: r.linearize_inverse(ZERO, ZERO, ZERO),
    "linearize_hybrid": lambda r: r.linearize_hybrid(ZERO, ZERO, ZERO, ZERO, ["crank_joint"]),
    "linearize_along": lambda r: r.linearize_along(np.zeros((2, 3)), ZERO[None], ZERO[None]),
    "discretize": lambda r: r.discretize(ZERO, ZERO, ZERO, 1e-3),
    "pd_gravity": lambda r: control.pd_gravity(r, ZERO),
    "computed_torque": lambda r: control.computed_torque(r, ZERO),
    "rate_feedback": lambda r: control.rate_feedback(r),
    "pose_control": lambda r: control.pose_control(r, "rocker", np.eye(4)),
    "operational_space": lambda r: control.operational_space(r, "rocker", np.eye(4)),
    "lqr": lambda r: control.lqr(r, ZERO, Q=1.0, R=1.0),
    "tv_lqr": lambda r: control.tv_lqr(r, motion(), Q=1.0, R=1.0),
    "QuadraticCost": lambda r: control.QuadraticCost(r, ZERO, Q=1.0, R=1.0),
    "rollout": lambda r: control.rollout(r, ZERO, ZERO, lambda k, q, v: ZERO, 1e-3, 1),
    "feedforward": lambda r: control.feedforward(r, motion(), np.zeros((2, 3))),
    "minimum_jerk": lambda r: control.minimum_jerk(r, ZERO, ZERO, 1.0, 2),
    "work": lambda r: control.work(r, motion()),
}


def motion() -> control.Trajectory:
    """Three knots at rest."""
    return control.Trajectory(np.arange(3) * 1e-3, *np.zeros((2, 3, 3)), np.zeros((2, 3)))


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_the_loops_refuses(name: str) -> None:
    """The error names the loop and ``robot.tree``, and keeps the loops."""
    robot = bars()
    for _ in range(2):
        with pytest.raises(LoopError, match=r"coupler_closure.*robot\.tree") as caught:
            REFUSED[name](robot)
    assert [loop.name for loop in caught.value.loops] == ["coupler_closure"]


def test_regulate_refuses_a_law_of_another_making() -> None:
    """A user's own law on a robot with loops is refused where it runs."""

    class Limp(control.RateFeedback):
        pass

    law = Limp(bars(), None, None, False, 1.0)
    with pytest.raises(LoopError):
        control.regulate(law, ZERO, ZERO, duration=0.1)


def test_warnings_carry_the_users_line(tmp_path: Path) -> None:
    """File and line of a warning are those of the call outside phistar, however deep it comes."""
    with pytest.warns(LoopWarning) as caught:
        phistar.load("four_bar")
    assert caught[0].filename == __file__
    with pytest.warns(LoopWarning) as caught:
        Robot(ring())
    assert caught[0].filename == __file__
    script = tmp_path / "user.py"
    script.write_text("import phistar\n\nphistar.load(model)\n")
    with pytest.warns(LoopWarning) as caught:
        exec(compile(script.read_text(), str(script), "exec"), {"model": ring()})
    assert (caught[0].filename, caught[0].lineno) == (str(script), 3)
