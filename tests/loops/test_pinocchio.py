# SPDX-License-Identifier: BSD-3-Clause
"""Pinocchio's ``constraintDynamics`` as a witness: accelerations, wrenches and derivatives.

It knows points and welds. Relative limits: 1e-9, for derivatives along the loops 1e-8. Off the
loops its rows of points are not ours, so derivatives across them are not compared.
"""

import numpy as np
import pytest

import phistar
from benchmarks.loop_peers import PinocchioLoops
from phistar.arrays import Array
from phistar.constraints import Constraint, Hinge, Point, Weld
from phistar.errors import ArgumentError
from phistar.loops.linearization import LoopLinearization
from phistar.loops.rank import singular_values
from phistar.loops.system import loop_system
from phistar.model.random import random_model
from phistar.robot import Robot
from tests.loops.mechanisms import error, four_bar, mechanism, needs_loops

pytest.importorskip("pinocchio")

SAMPLES = 3
BASES = {
    "quadruped on its feet": ("quadruped", [Point(f"{x}_FOOT") for x in ("FL", "FR", "HL", "HR")]),
    "quadruped, trot": ("quadruped", [Point("FL_FOOT"), Point("HR_FOOT")]),
    "humanoid on its soles": ("humanoid", [Weld("left_sole"), Weld("right_sole")]),
    "humanoid, hands welded": ("humanoid", [Weld("left_palm", "right_palm")]),
    "humanoid, hands touch": ("humanoid", [Point("left_palm", "right_palm")]),
    "humanoid, hand at its hip": ("humanoid", [Weld("left_palm", "pelvis"), Point("right_sole")]),
    "arm, tool pinned": ("panda", [Point("panda_link8")]),
}
"""Bundled robots with constraints; most have free bases."""


def states(robot: Robot, near: Array, seed: int = 0) -> tuple[Array, Array, Array]:
    """States (samples, n) on the loops near a configuration, and joint forces, at random."""
    rng = np.random.default_rng(seed)
    steps = 0.1 * rng.normal(size=(SAMPLES, robot.nv))
    q = robot.assemble(robot.integrate(near, steps))
    q, v = robot.project(q, rng.normal(size=(SAMPLES, robot.nv)))
    return q, v, 3.0 * rng.normal(size=(SAMPLES, robot.nv))


def compare(robot: Robot, q: Array, v: Array, tau: Array, peer: PinocchioLoops) -> None:
    """v̇ and wrenches; by machine code as well."""
    vdot, wrenches = peer.forward_dynamics(q, v, tau)
    found = robot.constrained_dynamics(q, v, tau)
    assert error(found.vdot, vdot) < 1e-9
    assert error(robot.forward_dynamics(q, v, tau), vdot) < 1e-9
    for loop, unique in found.unique.items():
        if unique.all():
            assert error(found.wrenches[loop], wrenches[loop]) < 1e-9, loop


def compare_derivatives(robot: Robot, q: Array, v: Array, tau: Array, peer: PinocchioLoops) -> None:
    """∂v̇/∂τ, and changes of v̇ along directions that stay on the loops."""
    by_q, by_v, by_tau = np.moveaxis(peer.linearize(q, v, tau), 1, 0)
    at = robot.linearize(q, v, tau)
    assert error(at.vdot_tau, by_tau) < 1e-8
    dq, dv = (x[..., None] for x in directions(at))
    assert error(at.vdot_q @ dq + at.vdot_v @ dv, by_q @ dq + by_v @ dv) < 1e-8


def directions(at: LoopLinearization) -> tuple[Array, Array]:
    """A direction (..., nv) of q and of v that stays on the loops."""
    reduced = at.reduced()
    steps = np.random.default_rng(1).normal(size=(2, len(reduced.independent)))
    return reduced.expand(*steps)


@pytest.mark.parametrize("case", BASES)
def test_bundled_robots(case: str) -> None:
    """Feet, soles and hands held, on the ground and on each other."""
    name, constraints = BASES[case]
    robot = phistar.load(name)
    near = robot.random_configuration(2)
    held = robot.with_loops(*constraints, q=near)
    state = states(held, near)
    peer = PinocchioLoops(held)
    compare(held, *state, peer)
    compare_derivatives(held, *state, peer)


def test_humanoid_with_closed_ankles() -> None:
    """Four balls that close loops between shanks and feet."""
    robot = phistar.load("humanoid_ankles")
    state = states(robot, robot.assemble(robot.neutral()))
    peer = PinocchioLoops(robot)
    compare(robot, *state, peer)
    compare_derivatives(robot, *state, peer)


@needs_loops
@pytest.mark.parametrize(
    "name", ["two_arms", "stewart_leg", "delta_ball", "quadruped_stand", "humanoid_ankles"]
)
def test_mechanisms_with_independent_rows(name: str) -> None:
    """Those of ../shared/loops that are closed by points and welds."""
    case = mechanism(name)
    peer = PinocchioLoops(case.robot)
    compare(case.robot, *case.state, peer)
    if name != "stewart_leg":
        compare_derivatives(case.robot, *case.state, peer)


@needs_loops
def test_differences_of_its_accelerations() -> None:
    """A Stewart platform, relative 1e-7: its own derivatives are wrong there, by 84 %.

    Its accelerations are right, and their differences along the loops are our derivatives.
    """
    case = mechanism("stewart_leg")
    robot, (q, v, tau) = case.robot, case.state
    peer = PinocchioLoops(robot)
    at = robot.linearize(q, v, tau)
    dq, dv = directions(at)
    size = 1e-5
    ends = []
    for step in (size, -size):
        moved = robot.project(robot.integrate(q, step * dq), v + step * dv)
        ends.append(peer.forward_dynamics(*moved, tau)[0])
    found = (at.vdot_q @ dq[..., None] + at.vdot_v @ dv[..., None])[..., 0]
    assert error(found, (ends[0] - ends[1]) / (2 * size)) < 1e-7


@needs_loops
@pytest.mark.parametrize("name", ["fourbar_crank_rocker", "slider_crank", "fivebar", "andrews"])
def test_planar_mechanisms_by_its_proximal_way(name: str) -> None:
    """A point in a plane has a row too many: Pinocchio needs damping, and then agrees.

    Its multipliers of such rows are not unique, accelerations are.
    """
    case = mechanism(name)
    vdot, _ = PinocchioLoops(case.robot, 1e-8, 50).forward_dynamics(*case.state)
    assert error(case.robot.forward_dynamics(*case.state), vdot) < 1e-9


def draw(seed: int) -> tuple[Robot, Array] | None:
    """A random robot with one or two points and welds, if these are independent where it is."""
    rng = np.random.default_rng(seed)
    model = random_model(
        rng,
        7,
        kinds=["revolute", "continuous", "prismatic", "spherical"],
        topology="arms",
        floating_base=bool(rng.integers(2)),
        fixed=0.2,
    )
    robot = Robot(model)
    near = robot.random_configuration(rng)
    tips = rng.permutation([4, 5, 6, 7])
    constraints: list[Constraint] = []
    for kind in (Point, Weld)[: int(rng.integers(1, 3))]:
        one, two, tips = tips[0], tips[1], tips[1:]
        constraints.append(kind(f"link{one}", "world" if rng.integers(2) else f"link{two}"))
    held = robot.with_loops(*constraints, q=near)
    system = loop_system(held.model)
    values = singular_values(system, np.asarray(held.loop_jacobian(near)))
    independent = system.count < held.nv and values[-1] > 1e-2 * values[0]
    return (held, near) if independent else None


def test_random_robots() -> None:
    """Trees with free bases, balls and slides, loops between links and with the ground."""
    found = [case for case in map(draw, range(10)) if case is not None]
    assert len(found) >= 5
    assert {robot.model.bodies[0].joint_kind.name == "free" for robot, _ in found} == {True, False}
    for robot, near in found[:5]:
        rng = np.random.default_rng(0)
        q, v = robot.project(near, rng.normal(size=robot.nv))
        compare(robot, q[None], v[None], rng.normal(size=(1, robot.nv)), PinocchioLoops(robot))


def test_what_it_does_not_know_is_refused() -> None:
    """Hinges have no counterpart: a witness must not leave rows out."""
    with pytest.raises(ArgumentError, match="points and welds"):
        PinocchioLoops(four_bar())
    robot = phistar.load("panda")
    with pytest.raises(ArgumentError, match="points and welds"):
        PinocchioLoops(robot.with_loops(Hinge("panda_link8"), q=robot.random_configuration(0)))
