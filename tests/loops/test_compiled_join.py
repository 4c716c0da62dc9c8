# SPDX-License-Identifier: BSD-3-Clause
"""Loops closed one by one in the compiled sweep, against dense solutions."""

from __future__ import annotations

import numpy as np
import pytest

import phistar
from phistar.compile import TRACED
from phistar.constraints import Gear, Point, Weld
from phistar.loops.traced_rows import ANYWHERE
from phistar.model import ModelBuilder
from phistar.model.components import GROUND, Mimic
from phistar.robot import Robot
from phistar.scalar import interpret
from phistar.scalar.graph import Graph
from phistar.scalar.lower import LoweringOptions, link_number_choices
from phistar.scalar.program import Unrolled, count_arithmetic
from phistar.scalar.trace.loop_join import LoopJoin
from phistar.scalar.trace.traced_links import TracedLinks
from phistar.sim import loop_stepper
from tests.loops.mechanisms import error, mechanism, needs_loops


def _program(robot: Robot) -> Unrolled:
    return TRACED["loop_dynamics"].trace(robot.model, ANYWHERE, ())


def _random_tree(rng: np.random.Generator, count: int) -> Robot:
    """Hinges and sliders in all directions, some with rotors, on a ball in the middle."""
    builder = ModelBuilder("bush")
    builder.link("ground")
    names = ["ground"]
    for i in range(count):
        builder.link(f"link{i}", 1.0 + rng.random(), rng.normal(size=3) / 4, np.full(3, 0.3))
        kind = "spherical" if i == count // 2 else ("revolute", "prismatic")[int(i % 4 == 3)]
        axis = {} if kind == "spherical" else {"axis": rng.normal(size=3)}
        parent = names[int(rng.integers(max(0, i - 3), i + 1))]
        rotor = {} if kind == "spherical" else {"armature": 0.1 * (i % 3)}
        builder.joint(
            f"joint{i}", kind, parent, f"link{i}", xyz=rng.normal(size=3), **axis, **rotor
        )
        names.append(f"link{i}")
    return phistar.load(builder.build())


@pytest.mark.parametrize("seed", range(6))
def test_loops_in_and_across_each_other(seed: int) -> None:
    """Gears between any joints of a random tree, and a point on the ground: rows of inner loops are
    solved while outer ones are open. 1e-9 of the largest acceleration."""
    rng = np.random.default_rng(seed)
    tree = _random_tree(rng, 14)
    hinges = [name for name in tree.joint_names if tree.joints[name].nv == 1]
    pairs = rng.permutation(hinges)[:10].reshape(5, 2)
    gears = [Gear(str(a), str(b), ratio=float(rng.normal())) for a, b in pairs]
    q = tree.random_configuration(seed)
    robot = tree.with_loops(*gears, Point("link13"), q=q)
    v, tau = rng.normal(size=(2, robot.nv))
    found = interpret.run(_program(robot), {"q": q[None], "v": v[None], "tau": tau[None]})["vdot"]
    # Off the loops and at any velocity: the equations of motion with Lv̇ = -L̇v.
    L, bias = np.asarray(robot.loop_jacobian(q)), _bias(robot, q, v)
    mass, rows = tree.mass_matrix(q), len(L)
    force = tau - tree.bias_force(q, v)
    system = np.block([[mass, -L.T], [L, np.zeros((rows, rows))]])
    expected = np.linalg.solve(system, np.concatenate([force, -bias]))[: robot.nv]
    assert error(found[0], expected) < 1e-9


def _bias(robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """L̇v, by a central difference."""
    h = 1e-6
    ahead, behind = (robot.loop_jacobian(robot.integrate(q, s * h * v)) @ v for s in (1, -1))
    return (ahead - behind) / (2 * h)


def test_rows_end_where_their_chain_does() -> None:
    """Of a humanoid with closed ankles the shanks; of feet on the ground the ground."""
    ankles = phistar.load("humanoid_ankles")
    assert _ends(ankles) == {"left_shank": 6, "right_shank": 6}
    quadruped = phistar.load("quadruped")
    q = quadruped.neutral()
    pinned = quadruped.with_loops(Point("FL_FOOT"), Point("HR_FOOT"), q=q)
    assert _ends(pinned) == {"ground": 6}


def _ends(robot: Robot) -> dict[str, int]:
    """Where rows are solved, and how many."""
    model = robot.model
    (links, *_) = link_number_choices(model, frozenset(), LoweringOptions(regroup=True))
    traced = TracedLinks(links)
    graph: Graph = traced.graph
    filled = np.asarray(robot.loop_jacobian(robot.random_configuration(0))) != 0.0
    rows = [[graph.load("L", j) if on else 0.0 for j, on in enumerate(row)] for row in filled]
    found = LoopJoin(traced, rows, 0.0)._closing
    names = {body.index: body.link for body in model.bodies} | {GROUND: "ground"}
    return {names[k]: len(numbers) for k, numbers in found.items()}


def test_local_loops_cost_as_many_operations_as_there_are() -> None:
    """A column of windows, each with a loop of its own: twice as many cost twice as much."""
    counts = [count_arithmetic(_program(_windows_on_a_mast(n)).count()) for n in (4, 8, 16)]
    assert counts[1] - counts[0] == pytest.approx((counts[2] - counts[1]) / 2, rel=0.05)


def _windows_on_a_mast(count: int) -> Robot:
    """A chain of hinges, a four-bar on each."""
    builder = ModelBuilder("mast")
    builder.link("ground")
    inner = "ground"
    for i in range(count):
        for name, parent, xyz in (
            (f"mast{i}", inner, (0, 0, 0.5)),
            (f"left{i}", f"mast{i}", (0.1, 0.2, 0)),
            (f"top{i}", f"left{i}", (0, 0.3, 0)),
            (f"right{i}", f"mast{i}", (0.5, 0.2, 0)),
        ):
            builder.link(name, 1.0, (0.1, 0.1, 0.0), (0.1, 0.2, 0.15))
            axis = (0.6, 0.8, 0) if name.startswith("mast") else (0, 0, 1)
            builder.joint(f"{name}_joint", "revolute", parent, name, xyz=xyz, axis=axis)
        builder.loop(
            f"pin{i}",
            "spherical",
            f"right{i}",
            f"top{i}",
            predecessor_pose=np.array(
                [[1.0, 0, 0, 0], [0, 1.0, 0, 0.3], [0, 0, 1.0, 0], [0, 0, 0, 1.0]]
            ),
            successor_pose=np.array(
                [[1.0, 0, 0, 0.4], [0, 1.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1.0]]
            ),
        )
        inner = f"mast{i}"
    return phistar.load(builder.build())


@needs_loops
def test_mimic_joints_and_loops() -> None:
    """A gripper whose joints share a coordinate: rows L R of the loops, inertia over nodes."""
    gripper = mechanism("gripper_mimic")
    robot, (q, v, tau) = gripper.robot, gripper.state
    program = TRACED["loop_multipliers"].trace(robot.model, "double", ())
    found = interpret.run(program, {"q": q, "v": v, "tau": tau})
    assert error(found["vdot"], gripper.golden["vdot"]) < 1e-10
    expected = robot.constrained_dynamics(q, v, tau, method="kkt")
    assert error(found["vdot"], expected.vdot) < 1e-10
    assert error(found["multipliers"], expected.multipliers) < 1e-9


@needs_loops
def test_mimic_joints_and_loops_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps in one call of machine code, against one after the other: 1e-12."""
    gripper = mechanism("gripper_mimic")
    robot, (q, v, _) = gripper.robot, gripper.state
    found = robot.simulate(q, v, dt=1e-3, steps=50, progress=False, passive=False)
    assert found.engine == "machine code"
    assert np.abs(found.loop_error()).max() < 1e-12
    monkeypatch.setattr(loop_stepper, "make_loop_rollouts", lambda *_: ())
    single = robot.simulate(q, v, dt=1e-3, steps=50, progress=False, passive=False)
    assert error(found.q, single.q) < 1e-12


def _mimicking_bug() -> Robot:
    """A free trunk on two legs whose knees follow their hips."""
    rng = np.random.default_rng(3)
    builder = ModelBuilder("bug")
    builder.link("ground")
    builder.link("trunk", 4.0, (0.1, 0.0, 0.0), np.full(3, 0.4))
    builder.joint("root", "free", "ground", "trunk")
    for i in range(2):
        inner = "trunk"
        for k, name in enumerate(("hip", "thigh", "knee", "ankle")):
            link = f"{name}{i}"
            builder.link(link, 1.0, rng.normal(size=3) / 5, np.full(3, 0.1))
            follows = {"mimic": Mimic(f"hip{i}_joint", -0.7, 0.2)} if name == "knee" else {}
            builder.joint(
                f"{link}_joint", "revolute", inner, link, xyz=rng.normal(size=3) / 2,
                axis=np.eye(3)[k % 3], **follows,
            )  # fmt: skip
            inner = link
    return phistar.load(builder.build())


@pytest.mark.parametrize("twice", [False, True])
def test_mimic_joints_on_the_ground(twice: bool) -> None:
    """Rows of feet of which legs share coordinates, one of them twice: 1e-9 of dense equations."""
    rng = np.random.default_rng(0)
    tree = _mimicking_bug()
    assert len(tree.model.bodies) > len(tree.joint_names)
    q = tree.random_configuration(0)
    again = (Point("ankle1"), Weld("ankle1")) if twice else ()
    robot = tree.with_loops(Point("ankle0"), *again, q=q)
    q, v = robot.project(q, rng.normal(size=robot.nv))
    tau = rng.normal(size=robot.nv)
    found = interpret.run(_program(robot), {"q": q[None], "v": v[None], "tau": tau[None]})["vdot"]
    assert error(found[0], robot.forward_dynamics(q, v, tau, method="null")) < 1e-9


def test_single_calls_with_forces() -> None:
    """Wrenches become joint forces by an entry of their own: the same numbers as in batches, and
    those of the dense route; other frames and references as well."""
    robot = phistar.load("four_bar")
    rng = np.random.default_rng(0)
    q = robot.assemble(robot.neutral())
    q, v = robot.project(np.stack([q] * 3), rng.normal(size=(3, robot.nv)))
    tau = rng.normal(size=(3, robot.nv))
    last, first = robot.link_names[-1], robot.link_names[1]
    for link, reference in ((last, "world_aligned"), (first, "local"), (last, "world_aligned")):
        pushed = {"forces": {link: rng.normal(size=6)}, "reference": reference}
        found = robot.forward_dynamics(q, v, tau, **pushed)
        assert error(found, robot.forward_dynamics(q, v, tau, method="kkt", **pushed)) < 1e-10
        for _ in range(3):
            single = robot.forward_dynamics(q[1], v[1], tau[1], **pushed)
            np.testing.assert_array_equal(single, found[1])
    bad = {"forces": {last: np.full(6, np.nan)}}
    with pytest.raises(phistar.errors.PhistarError, match=r"finite|NaN|nan"):
        robot.forward_dynamics(q[1], v[1], tau[1], **bad)
