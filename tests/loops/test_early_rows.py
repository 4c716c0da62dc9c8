# SPDX-License-Identifier: BSD-3-Clause
"""Rows of loops with the ground that are solved at the trunk: the same numbers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import phistar
from benchmarks.loops import FEET, QUADRUPED, operations, robot
from phistar.arrays import Array
from phistar.compile import TRACED, traced_executable
from phistar.constraints import Point, Weld
from phistar.loops.early_rows import early_rows
from phistar.loops.traced_rows import dynamics_key
from phistar.model import ModelBuilder
from phistar.robot import Robot
from phistar.scalar import interpret
from phistar.scalar.program import count_arithmetic
from tests.loops.mechanisms import error, mechanism, needs_loops


def _where(one: Robot) -> dict[str, int]:
    """Links at which rows are solved early, and how many."""
    found: dict[str, int] = {}
    for each in early_rows(one.model):
        link = one.model.bodies[each.link].link
        found[link] = found.get(link, 0) + 1
    return found


def _count(one: Robot, regular: bool) -> int:
    return count_arithmetic(TRACED["loop_dynamics"].trace(one.model, "double", (), regular).count())


def test_feet_are_solved_at_the_trunk() -> None:
    """All twelve rows of four feet; loops between links, and rows that depend on each other, are
    solved where they end."""
    assert _where(robot(QUADRUPED)) == {"base_link": 12}
    assert _where(phistar.load("humanoid_ankles")) == {}
    two_of_a_foot = phistar.load("quadruped").with_loops(
        Point("FL_FOOT"), Weld("FL_FOOT"), q=phistar.load("quadruped").random_configuration(1)
    )
    assert _where(two_of_a_foot) == {}


def test_costs_less_than_twice_the_tree() -> None:
    """Additions, subtractions and multiplications; with all rows on the ground it is 2.5 times."""
    feet = robot(QUADRUPED)
    early, late = _count(feet, True), _count(feet, False)
    assert early < 2.0 * operations(feet.tree) < late


@needs_loops
def test_costs_less_than_twice_the_tree_on_the_reference() -> None:
    """The same of the quadruped of ../shared/loops, whose links are turned."""
    stand = mechanism("quadruped_stand").robot
    assert _count(stand, True) < 1.9 * operations(stand.tree)


def _legged(rng: np.random.Generator, legs: int, joints: int) -> Robot:
    """A free trunk with a neck and some legs of hinges and a slider."""
    builder = ModelBuilder("bug")
    builder.link("ground")
    builder.link("trunk", 4.0, rng.normal(size=3) / 10, np.full(3, 0.4))
    builder.joint("root", "free", "ground", "trunk")
    builder.link("head", 1.0, rng.normal(size=3) / 10, np.full(3, 0.1))
    builder.joint("neck", "revolute", "trunk", "head", xyz=rng.normal(size=3), axis=(0, 1, 0))
    for leg in range(legs):
        inner = "trunk"
        for k in range(joints):
            name = f"leg{leg}_{k}"
            builder.link(name, 1.0 + rng.random(), rng.normal(size=3) / 10, np.full(3, 0.1))
            kind = "prismatic" if k == 2 else "revolute"
            xyz, axis = rng.normal(size=3), rng.normal(size=3)
            builder.joint(f"{name}_joint", kind, inner, name, xyz=xyz, axis=axis, armature=0.1)
            inner = name
    return phistar.load(builder.build())


@pytest.mark.parametrize(("kind", "joints"), [(Point, 3), (Point, 5), (Weld, 7)])
def test_random_legs(kind: type, joints: int) -> None:
    """Points and welds on the ground, early and late, against the equations as one matrix."""
    rng = np.random.default_rng(joints)
    tree = _legged(rng, 2, joints)
    q = tree.random_configuration(joints)
    feet = tree.with_loops(*(kind(f"leg{i}_{joints - 1}") for i in range(2)), q=q)
    assert set(_where(feet)) <= {"trunk", *(f"leg{i}_{k}" for i in range(2) for k in range(joints))}
    assert sum(_where(feet).values()) == len(np.asarray(feet.loop_jacobian(q)))
    q, v = feet.project(q, rng.normal(size=feet.nv))
    tau = rng.normal(size=feet.nv)
    expected = feet.forward_dynamics(q, v, tau, method="kkt")
    given = {"q": q[None], "v": v[None], "tau": tau[None]}
    for regular in (True, False):
        program = TRACED["loop_multipliers"].trace(feet.model, "double", (), regular)
        found = interpret.run(program, given)
        assert error(found["vdot"][0], expected) < 1e-9
        reference = feet.constrained_dynamics(q, v, tau, method="kkt").multipliers
        assert error(found["multipliers"][0], reference) < 1e-9


@cache
def _straight() -> tuple[Robot, Array, Array, Array]:
    """Four feet; every other sample has one leg that is straight."""
    legs = phistar.load("quadruped")
    bent = {"HAA": 0.1, "HFE": 0.7, "KFE": -1.4}
    angles = {f"{foot[:2]}_{joint}": x for foot in FEET for joint, x in bent.items()}
    base = {"root_joint": legs.neutral()[:7]}
    stretched = {"FL_HFE": 0.2, "FL_KFE": 0.0}
    start = legs.configuration(base | angles | stretched)
    feet = legs.with_loops(*(Point(foot) for foot in FEET), q=start)
    rng = np.random.default_rng(0)
    q = np.stack([start] * 8)
    q[::2] = feet.assemble(feet.integrate(q[::2], 0.1 * rng.normal(size=(4, feet.nv))))
    q, v = feet.project(q, rng.normal(size=(8, feet.nv)))
    code = traced_executable(feet.model, dynamics_key("double"))
    assert code is not None
    assert code.scalars.count()
    assert code.wait_for_others()
    return feet, q, v, rng.normal(size=(8, feet.nv))


def test_straight_legs_are_solved_on_the_ground() -> None:
    """Machine code alone has no result for them; users have, and the others keep their bits."""
    feet, q, v, tau = _straight()
    program = TRACED["loop_dynamics"].trace(feet.model, "double", (), True)
    alone = interpret.run(program, {"q": q, "v": v, "tau": tau})["vdot"]
    assert np.isnan(alone).any(axis=-1).tolist() == [False, True] * 4
    found = feet.forward_dynamics(q, v, tau)
    assert error(found, feet.forward_dynamics(q, v, tau, method="kkt")) < 1e-9
    np.testing.assert_array_equal(found[::2], feet.forward_dynamics(q[::2], v[::2], tau[::2]))
    for i in range(len(q)):
        np.testing.assert_array_equal(found[i], feet.forward_dynamics(q[i], v[i], tau[i]))
    called = feet.compile("forward_dynamics")(q, v=v, tau=tau)
    np.testing.assert_array_equal(called, found)


def test_decision_prints_both_counts() -> None:
    """The quicker program's, and that of the one which has all results."""
    feet, *_ = _straight()
    text = str(feet.compile("forward_dynamics").decision)
    assert f"{_count(feet, True)} operations" in text
    assert f"straight legs: {_count(feet, False)}" in text


def test_a_leg_may_pass_through_straight() -> None:
    """A simulation in which one does, against the same with half the steps."""
    feet, q, _, _ = _straight()
    knee = feet.joints["FL_KFE"]
    v = np.zeros(feet.nv)
    v[knee.v_slice], v[feet.joints["FL_HFE"].v_slice] = -2.0, 1.0
    back = feet.simulate(*feet.project(q[1], v), dt=1e-3, steps=20, progress=False, passive=False)
    q0, v0 = feet.project(back.q[-1], -back.v[-1])
    coarse = feet.simulate(q0, v0, dt=1e-3, steps=40, progress=False, passive=False)
    fine = feet.simulate(q0, v0, dt=5e-4, steps=80, progress=False, passive=False)
    angles = coarse.q[:, knee.q_slice.start]
    assert angles.min() < -1e-3
    assert angles.max() > 1e-3
    assert np.abs(coarse.loop_error()).max() < 1e-12
    assert error(coarse.q[-1], fine.q[-1]) < 1e-8


def test_c_has_all_results() -> None:
    """C and NumPy run the program that has results on straight legs."""
    feet, q, v, tau = _straight()
    numpy = feet.compile("forward_dynamics", backend="numpy")
    expected = feet.forward_dynamics(q, v, tau, method="kkt")
    assert error(numpy(q, v=v, tau=tau), expected) < 1e-9
    row = TRACED["loop_dynamics"]
    assert row.everywhere(feet.model, "double", (), True) == ("double", (), False)
