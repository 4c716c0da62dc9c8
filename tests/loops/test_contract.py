# SPDX-License-Identifier: BSD-3-Clause
"""What a robot with loops promises: its tree, errors, batches, precision, constraints by call."""

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.compile import traced_executable
from phistar.constraints import Distance, Gear, Hinge, Point, Prescribed, Weld
from phistar.errors import (
    ArgumentError,
    LoopError,
    LoopOpenError,
    LoopVelocityError,
    ModelError,
    NotFiniteError,
    RedundantWrenchWarning,
    SingularConfigurationWarning,
    SingularHingeError,
    UnderactuatedError,
    UnknownNameError,
)
from phistar.loops.routes import LOOP_METHODS
from phistar.model import Model, ModelBuilder
from phistar.model.components import Coupling
from phistar.model.model_cache import entries
from phistar.robot import LoopedRobot, Robot
from phistar.spatial import pose
from tests.loops.mechanisms import error, four_bar, four_bar_state, windows

LOOP = "coupler_closure"


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


def test_loading_says_nothing_and_closes_the_loops() -> None:
    """No warning: the loops are part of the robot."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = phistar.load("four_bar")
        Robot(ring())
    assert type(robot) is LoopedRobot
    assert [loop.name for loop in robot.loops] == [LOOP]


def test_tree_is_the_robot_without_its_loops() -> None:
    """Same names, coordinates, limits, numbers; no loops; asked twice it is the same object."""
    robot = four_bar()
    tree = robot.tree
    assert type(tree) is Robot
    assert tree.loops == ()
    assert (tree.name, tree.joint_names, tree.link_names) == (
        robot.name,
        robot.joint_names,
        robot.link_names,
    )
    q, v = robot.random_configuration(0), np.ones(robot.nv)
    assert np.array_equal(tree.inverse_dynamics(q, v, v), robot.inverse_dynamics(q, v, v))
    assert np.array_equal(tree.mass_matrix(q), robot.mass_matrix(q))
    assert robot.tree is tree
    assert tree.tree is tree
    assert tree.simulate(q, v, dt=1e-3, steps=2).q.shape == (3, robot.nq)


def test_a_robot_without_loops_is_its_own_tree() -> None:
    """Nothing to cut; questions about loops have empty answers."""
    robot = phistar.load("double_pendulum")
    q = robot.random_configuration(0)
    assert robot.tree is robot
    assert robot.loop_jacobian(q).shape == (0, 2)
    assert np.array_equal(robot.assemble(q), q)
    assert robot.mobility(q).degrees_of_freedom == 2
    state = q, np.ones(2), np.ones(2)
    expected = robot.forward_dynamics(*state)
    for method in LOOP_METHODS:
        found = robot.constrained_dynamics(*state, method=method)
        assert error(found.vdot, expected) < 1e-12
        assert error(robot.forward_dynamics(*state, method=method), expected) < 1e-12
    with pytest.raises(UnknownNameError, match="'jion'"):
        robot.constrained_dynamics(*state, method="jion")


def test_loops_that_are_switched_off_change_nothing() -> None:
    """A file may declare loops inactive: the robot is then a tree."""
    robot = phistar.load(ring(active=False))
    assert type(robot) is Robot
    robot.simulate(np.zeros(2), np.zeros(2), dt=1e-3, steps=1)
    assert len(robot.loops) == 2
    assert robot.tree.loops == ()


def test_open_loops_are_refused_by_name_and_gap() -> None:
    """Forward dynamics of a state that is not on the loops names the loop, the gap and the cure."""
    robot = four_bar()
    q, v, tau = four_bar_state()
    with pytest.raises(LoopOpenError, match=rf"{LOOP}.*open by .* m.*assemble") as caught:
        robot.forward_dynamics(q + 0.1, v, tau)
    assert caught.value.gap > 1e-3
    with pytest.raises(LoopVelocityError, match=rf"{LOOP}.*project"):
        robot.forward_dynamics(q, v + 1.0, tau)
    with pytest.raises(LoopOpenError):
        robot.simulate(q + 0.1, v, dt=1e-3, steps=1)
    with pytest.raises(LoopOpenError):
        robot.step(q + 0.1, v, tau, 1e-3)
    for about in (robot.mobility, robot.minimal):
        with pytest.raises(LoopOpenError, match="assemble"):
            about(q + 0.1)
    with pytest.raises(LoopVelocityError, match="accelerations"):
        robot.constrained_inverse_dynamics(q, v, np.ones(robot.nv))


def test_what_cannot_be_closed_says_how_far_it_is() -> None:
    """Holding every joint leaves nothing to move."""
    robot = four_bar()
    q, _, _ = four_bar_state()
    with pytest.raises(LoopOpenError, match="assemble"):
        robot.assemble(q + 0.1, fixed=robot.joint_names)
    with pytest.raises(UnknownNameError):
        robot.assemble(q, fixed=["nothing"])
    held = robot.joint_names[0]
    moved = robot.assemble(q + 0.02, fixed=[held])
    assert moved[robot.joints[held].q_slice] == pytest.approx(q[robot.joints[held].q_slice] + 0.02)


def test_bad_samples_of_a_batch_leave_the_others_alone() -> None:
    """One sample open, one NaN: the others the same bits, the bad ones named or NaN."""
    robot = four_bar()
    states = [four_bar_state(seed) for seed in range(6)]
    q, v, tau = (np.stack(x) for x in zip(*states, strict=True))
    for _ in range(3):
        good = robot.forward_dynamics(q, v, tau)
    broken = np.array(q)
    broken[1] += 0.3
    broken[4] = np.nan
    with pytest.raises(NotFiniteError):
        robot.forward_dynamics(broken, v, tau)
    found = robot.forward_dynamics(broken, v, tau, on_error="nan")
    assert np.isnan(found[[1, 4]]).all()
    assert np.array_equal(found[[0, 2, 3, 5]], good[[0, 2, 3, 5]])
    fine = np.where(np.isnan(broken), q, broken)
    with pytest.raises(LoopOpenError) as caught:
        robot.forward_dynamics(fine, v, tau)
    assert caught.value.sample == (1,)


def test_batches_without_a_good_sample_are_nan() -> None:
    """``on_error="nan"`` gives NaN of the right shape, single and in batches."""
    robot = four_bar()
    q, v, tau = four_bar_state()
    assert np.isnan(robot.forward_dynamics(q + 0.1, v, tau, on_error="nan")).all()
    many = np.stack([q + 0.1, q + 0.2])
    assert np.isnan(robot.forward_dynamics(many, v, tau, on_error="nan")).all()
    assert np.isnan(robot.linearize(many, v, tau, on_error="nan").vdot_q).all()


def test_a_step_ends_on_the_loops_or_raises() -> None:
    """Under enormous forces, too: a state that was not brought back is never returned."""
    robot = four_bar()
    q, v, _ = four_bar_state()
    for force in (1e4, 1e5, 1e6):
        try:
            ahead, _ = robot.step(q, v, np.array([force, 0.0, 0.0]), 1e-2)
        except LoopOpenError:
            continue
        assert np.abs(np.asarray(robot.loop_error(ahead))).max() < 1e-9


def test_singular_configurations_are_reported_with_their_motion() -> None:
    """Windows of a four-bar lying flat can fold: the motion is named, the result goes on."""
    robot, q, v = windows(2)
    turns = {name: -np.pi / 2 if name[0] == "f" else np.pi / 2 for name in robot.joint_names}
    flat = robot.configuration(turns)
    found = robot.mobility(flat)
    assert found.singular
    assert found.degrees_of_freedom == 1
    assert "Singular here" in str(found)
    with pytest.warns(SingularConfigurationWarning, match="singular.*the motion"):
        robot.forward_dynamics(flat, np.zeros(robot.nv), np.zeros(robot.nv), method="kkt")
    assert not robot.mobility(q).singular
    assert robot.mobility(q).redundant == 6
    assert np.abs(np.asarray(robot.loop_jacobian(q)) @ v).max() < 1e-14


def test_single_precision_stays_single() -> None:
    """Results have the precision of the arguments."""
    robot = four_bar()
    q, v, tau = four_bar_state()
    exact = robot.forward_dynamics(q, v, tau)
    single = [x.astype(np.float32) for x in (q, v, tau)]
    for _ in range(2):
        found = robot.forward_dynamics(*single)
        assert found.dtype == np.float32
        assert error(found, exact) < 1e-3
    assert robot.project(*single[:2])[0].dtype == np.float32
    small = robot.linearize(*single).reduced()
    assert {x.dtype.name for x in (small.A, small.B, small.X, small.Xdot)} == {"float32"}
    assert error(small.A, robot.linearize(q, v, tau).reduced().A) < 1e-3


def test_results_go_where_they_are_wanted() -> None:
    """``out=`` on both paths."""
    robot = four_bar()
    q, v, tau = four_bar_state()
    expected = robot.forward_dynamics(q, v, tau, method="kkt")
    for method in ("auto", "kkt"):
        out = np.zeros(robot.nv)
        assert robot.forward_dynamics(q, v, tau, method=method, out=out) is out
        assert error(out, expected) < 1e-9
    with pytest.raises(UnknownNameError, match="kkt"):
        robot.forward_dynamics(q, v, tau, method="magic")
    with pytest.raises(ArgumentError, match="complex"):
        robot.forward_dynamics(q + 0j, v, tau)


def test_copies_keep_their_loops() -> None:
    """Pickled, reordered and in other gravity a robot with loops is one."""
    robot = four_bar()
    q, v, tau = four_bar_state()
    again = pickle.loads(pickle.dumps(robot))
    assert type(again) is LoopedRobot
    expected = robot.forward_dynamics(q, v, tau, method="kkt")
    assert np.array_equal(again.forward_dynamics(q, v, tau, method="kkt"), expected)
    order = robot.joint_names[::-1]
    turned = robot.reorder(order)
    found = turned.forward_dynamics(q[::-1], v[::-1], tau[::-1], method="kkt")
    assert error(found[::-1], expected) < 1e-10
    assert type(robot.with_gravity((0, 0, 0))) is LoopedRobot


def test_derivative_products_agree_with_the_matrices() -> None:
    """jvp and vjp of forward dynamics; those of inverse dynamics are the tree's."""
    robot = four_bar()
    q, v, tau = four_bar_state()
    at = robot.linearize(q, v, tau)
    rng = np.random.default_rng(0)
    dq, dv, dtau, w = rng.normal(size=(4, robot.nv))
    along = at.vdot_q @ dq + at.vdot_v @ dv + at.vdot_tau @ dtau
    found = robot.jvp("forward_dynamics", q, v, tau, dq=dq, dv=dv, dtau=dtau)
    assert error(found, along) < 1e-10
    gradients = robot.vjp("forward_dynamics", q, v, tau, w)
    assert error(gradients["q"], at.vdot_q.T @ w) < 1e-10
    assert error(gradients["tau"], at.vdot_tau.T @ w) < 1e-10
    tree = robot.tree.jvp("inverse_dynamics", q, v, tau, dq=dq)
    assert error(robot.jvp("inverse_dynamics", q, v, tau, dq=dq), tree) < 1e-14


def test_a_discrete_step_has_exact_derivatives() -> None:
    """A and B against differences along directions that stay on the loops, to 1e-6."""
    robot = four_bar()
    q, v, tau = four_bar_state()
    dt, size = 1e-2, 1e-6
    at = robot.discretize(q, v, tau, dt)
    reduced = robot.linearize(q, v, tau).reduced()
    dq, dv = reduced.expand(np.array([0.7]), np.array([-0.4]))
    dtau = np.array([0.3, -0.2, 0.5])
    ends = []
    for sign in (1, -1):
        moved = robot.project(q + sign * size * dq, v + sign * size * dv)
        ends.append(robot.discretize(*moved, tau + sign * size * dtau, dt))
    change_q = robot.difference(ends[1].q, ends[0].q) / (2 * size)
    change_v = (ends[0].v - ends[1].v) / (2 * size)
    expected = at.A @ np.concatenate([dq, dv]) + at.B @ dtau
    assert error(np.concatenate([change_q, change_v]), expected) < 1e-6
    # The new velocity keeps the loops at the old configuration.
    assert np.abs(np.asarray(robot.loop_jacobian(q)) @ at.v).max() < 1e-12


def test_hybrid_dynamics_drives_a_joint() -> None:
    """The prescribed acceleration comes out, and its force gives it in forward dynamics."""
    robot = four_bar()
    q, v, tau = four_bar_state()
    crank = robot.joint_names[0]
    wanted = np.zeros(robot.nv)
    wanted[robot.joints[crank].v_slice] = 2.5
    vdot, forces = robot.hybrid_dynamics(q, v, tau, wanted, [crank])
    assert vdot[robot.joints[crank].v_slice] == pytest.approx(2.5)
    assert error(robot.forward_dynamics(q, v, forces, method="kkt"), vdot) < 1e-10
    with pytest.raises(LoopVelocityError, match="prescribe fewer"):
        robot.hybrid_dynamics(q, v, tau, np.ones(3) * [1, -2, 3], robot.joint_names)


def test_actuators_that_cannot_drive_a_motion() -> None:
    """A double pendulum whose elbow alone is driven: the motion that is missing is named."""
    robot = phistar.load("double_pendulum")
    q, v = np.array([0.3, 0.4]), np.zeros(2)
    elbow = robot.joint_names[1]
    with pytest.raises(UnderactuatedError, match="cannot drive the motion") as caught:
        robot.constrained_inverse_dynamics(q, v, np.ones(2), actuated=[elbow])
    assert set(caught.value.motion) == set(robot.joint_names)
    found = robot.constrained_inverse_dynamics(
        q, v, np.ones(2), actuated=[elbow], allow_residual=True
    )
    assert np.abs(found.residual).max() > 0.1
    with pytest.raises(UnknownNameError):
        robot.constrained_inverse_dynamics(q, v, v, actuated=["nothing"])


def test_wrenches_that_are_not_determined_warn() -> None:
    """A planar four-bar closed by a hinge: five rows of rank two."""
    robot = four_bar()
    q, v, tau = four_bar_state()
    found = robot.constrained_dynamics(q, v, tau)
    assert not found.unique[LOOP]
    with pytest.warns(RedundantWrenchWarning, match=LOOP):
        assert found.wrenches[LOOP].shape == (6,)
    with pytest.raises(UnknownNameError):
        found.wrenches["nothing"]
    assert pickle.loads(pickle.dumps(found)).wrenches.keys() == found.wrenches.keys()


def test_more_actuators_than_freedoms_can_squeeze() -> None:
    """Internal efforts change the loop's wrench and not the motion."""
    robot = four_bar()
    q, v, _ = four_bar_state()
    vdot = robot.forward_dynamics(q, v, np.zeros(3), method="kkt")
    found = robot.constrained_inverse_dynamics(q, v, vdot)
    assert found.internal.shape == (3, 2)
    for squeeze in found.internal.T:
        again = robot.forward_dynamics(q, v, found.tau + squeeze, method="kkt")
        assert error(again, vdot) < 1e-9


def test_compiled_quantities_are_those_on_the_loops() -> None:
    """``compile`` gives what the method gives, or refuses; never the tree's in silence."""
    robot = four_bar()
    q, v, tau = four_bar_state()
    found = robot.compile("forward_dynamics")(q, v=v, tau=tau)
    found = found["vdot"] if isinstance(found, dict) else found
    assert error(found, robot.forward_dynamics(q, v, tau, method="kkt")) < 1e-9
    assert robot.compile("mass_matrix")(q).shape == (3, 3)
    changes = robot.compile("linearize")(q, v=v, tau=tau)
    at = robot.linearize(q, v, tau, method="kkt")
    assert error(changes["change_q"][:3], at.vdot_q) < 1e-9
    assert error(changes["change_tau"][3:], at.multipliers_tau) < 1e-9
    with pytest.raises(LoopError, match="compile"):
        robot.compile("discretization")
    q, v, tau = four_bar_state()
    for name, more in (("forward_dynamics", {}), ("step", {"dt": 1e-3}), ("linearize", {})):
        k = robot.compile(name)
        with pytest.raises(LoopOpenError, match=LOOP):
            k(q + 0.1, v=v, tau=tau, **more)
        if name != "step":  # which projects velocities
            with pytest.raises(LoopVelocityError, match=LOOP):
                k(q, v=v + 1.0, tau=tau, **more)
        with pytest.raises(NotFiniteError, match=r"tau\[0\] is nan"):
            k(q, v=v, tau=tau * np.nan, **more)


def test_operators_of_the_loops() -> None:
    """op.L and op.Delta against the rows and the mass matrix."""
    robot = four_bar()
    q, v, _ = four_bar_state()
    op = robot.operators(q, v)
    L = np.asarray(robot.loop_jacobian(q))
    weights = np.arange(1.0, 6.0)
    assert np.abs(op.L @ v).max() < 1e-12
    assert error(op.L.T @ weights, L.T @ weights) < 1e-13
    delta = L @ np.linalg.solve(robot.mass_matrix(q), L.T)
    assert error(op.Delta.dense(), delta) < 1e-10
    assert "Delta" in repr(op)
    assert error(op.M @ v, robot.mass_matrix(q) @ v) < 1e-12
    free = robot.tree.operators(q)
    assert (free.L @ v).shape == (0,)
    assert np.array_equal(free.L.T @ np.zeros(0), np.zeros(3))
    assert free.Delta.dense().shape == (0, 0)


FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")


def test_constraints_for_a_call_and_for_good() -> None:
    """Four feet pinned: per call at any configurations, or by ``with_loops`` at one of them."""
    robot = phistar.load("quadruped")
    rng = np.random.default_rng(0)
    q = robot.random_configuration(0)
    tau = rng.normal(size=robot.nv)
    feet = [Point(foot) for foot in FEET]
    pinned = robot.with_loops(*feet, q=q)
    assert pinned.mobility(q).degrees_of_freedom == 6
    q, v = pinned.project(q, rng.normal(size=robot.nv))
    expected = pinned.forward_dynamics(q, v, tau, method="kkt")
    found = robot.forward_dynamics(q, v, tau, constraints=feet)
    assert error(found, expected) < 1e-9
    # Two configurations at once, each pinned where it is.
    other = robot.random_configuration(1)
    both = np.stack([q, other])
    rest = np.zeros((2, robot.nv))
    at_once = robot.forward_dynamics(both, rest, tau, constraints=feet)
    alone = robot.with_loops(*feet, q=other).forward_dynamics(other, rest[1], tau, method="kkt")
    assert error(at_once[1], alone) < 1e-9
    # Machine code takes over, at any configurations, too.
    held = robot._for_call(feet)
    code = traced_executable(held.model, held._dynamics_key)
    assert code is not None
    assert code.scalars is not None  # waits for it
    for _ in range(2):
        assert error(robot.forward_dynamics(both, rest, tau, constraints=feet), at_once) < 1e-9
    assert entries(held.model).get(held._dynamics_key) is not None
    result = robot.constrained_dynamics(q, v, tau, constraints=feet)
    J = [robot.jacobian(q, foot, "local")[3:] for foot in FEET]
    forces = [result.wrenches[f"spherical of {foot}"][3:] for foot in FEET]
    total = sum(j.T @ f for j, f in zip(J, forces, strict=True))
    assert error(total, result.joint_forces) < 1e-9
    with pytest.raises(ArgumentError, match="with_loops"):
        robot.with_loops(*feet)
    with pytest.raises(UnknownNameError):
        robot.with_loops(Point("nose"), q=q)


def test_loops_can_be_switched_off() -> None:
    """``off=`` leaves a tree; two loops of one name are refused."""
    robot = four_bar()
    assert type(robot.with_loops(off=[LOOP])) is Robot
    with pytest.raises(UnknownNameError):
        robot.with_loops(off=["nothing"])
    with pytest.raises(ModelError, match="called"):
        robot.with_loops(Weld("rocker", at=np.eye(4), name=LOOP))


def test_a_weld_holds_a_link_and_a_gear_couples_joints() -> None:
    """Constraints made in Python on an arm: a welded hand leaves null motions, a gear its ratio."""
    arm = phistar.load("panda")
    q = arm.random_configuration(3)
    hand = arm.frame_names[-1]
    welded = arm.with_loops(Weld(hand), q=q)
    assert welded.mobility(q).degrees_of_freedom == arm.nv - 6
    first, second = arm.joint_names[:2]
    first_link, tau = arm.joints[first].child, np.ones(arm.nv)
    geared = arm.with_loops(Gear(second, first, ratio=-2.0))
    closed = geared.assemble(q)
    at = {name: closed[arm.joints[name].q_slice][0] for name in (first, second)}
    assert at[second] == pytest.approx(-2.0 * at[first], abs=1e-10)
    vdot = geared.forward_dynamics(closed, np.zeros(arm.nv), np.ones(arm.nv))
    assert vdot[1] == pytest.approx(-2.0 * vdot[0], rel=1e-9)
    far, both = Distance(hand, first_link), np.stack([q, arm.home])
    for state, found in zip(
        both, arm.forward_dynamics(both, 0 * both, tau, constraints=[far]), strict=True
    ):
        kept = arm.with_loops(far, q=state)
        assert error(found, kept.forward_dynamics(state, 0 * state, tau)) < 1e-9
    hinged = arm.with_loops(Hinge(hand, axis=(0, 0, 2)), q=q)
    assert hinged.mobility(q).degrees_of_freedom == arm.nv - 5


def test_a_loop_on_one_link_is_refused() -> None:
    """Both ends on one link: an error that names the loop."""
    builder = ModelBuilder("knot")
    builder.link("ground")
    builder.link("a", 1.0, (0, 0, 0), (1, 1, 1))
    builder.joint("j", "revolute", "ground", "a", axis=(0, 0, 1))
    builder.loop("self", "weld", "a", "a", successor_pose=pose(translation=(1, 0, 0)))
    with pytest.raises(ModelError, match='"self" has both ends on link "a"'):
        builder.build()


def test_a_motion_without_inertia_is_an_error() -> None:
    """A massless link that no loop holds moves nothing: said for the loops' own motions."""
    builder = ModelBuilder("empty")
    builder.link("ground")
    builder.link("a", 1.0, (0.5, 0, 0), (0.1, 0.1, 0.1))
    builder.joint("j1", "revolute", "ground", "a", axis=(0, 0, 1))
    builder.link("b")
    builder.joint("j2", "revolute", "a", "b", xyz=(1, 0, 0), axis=(0, 0, 1))
    robot = Robot(builder.build())
    looped = robot.with_loops(Hinge("a", at=np.eye(4), name="tie"))
    with pytest.raises(SingularHingeError, match="keeps its loops"):
        looped.forward_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))


@pytest.mark.parametrize("name", ["four_bar", "delta"])
def test_parameters_on_the_loops(name: str) -> None:
    """∂v̇/∂π beside central differences over the parameters, relative 1e-6; NaN where asked for."""
    robot = phistar.load(name)
    rng = np.random.default_rng(3)
    q, v = robot.project(robot.assemble(robot.neutral()), rng.normal(size=robot.nv))
    tau = rng.normal(size=robot.nv)
    given = robot.parameters
    way = rng.normal(size=len(given)) * np.abs(given)
    ahead, behind = (
        robot.with_parameters(given + h * way).forward_dynamics(q, v, tau) for h in (1e-6, -1e-6)
    )
    found = robot.vdot_parameters(q, v, tau)
    expected = (ahead - behind) / 2e-6
    assert np.abs(found @ way - expected).max() < 1e-6 * np.abs(expected).max()
    assert not np.allclose(found, robot.tree.vdot_parameters(q, v, tau), rtol=1e-2)
    both = robot.vdot_parameters(q, np.stack([v, v * np.nan]), tau, on_error="nan")
    assert np.array_equal(both[0], robot.vdot_parameters(q, v[None], tau)[0])
    assert np.isnan(both[1]).all()


def test_rounds_keep_the_loops() -> None:
    """``method="parallel"`` gives what the other routes give; programs in rounds are the tree's,
    and where that would open the loops the error names them."""
    robot = four_bar()
    q, v = robot.project(four_bar_state()[0], np.array([[1.0, 0, 0], [0, -2.0, 1]]))
    tau, push = np.ones(3), {"rocker": np.arange(6.0)}
    found = robot.constrained_dynamics(q, v, tau, forces=push, method="parallel")
    assert error(found.vdot, robot.forward_dynamics(q, v, tau, push, method="null")) < 1e-12
    k = robot.compile("inverse_dynamics", schedule="parallel")
    assert error(k(q, v=v, vdot=found.vdot), robot.inverse_dynamics(q, v, found.vdot)) < 1e-12
    with pytest.raises(LoopError, match=rf"{LOOP}.*robot\.tree") as caught:
        robot.compile("forward_dynamics", schedule="parallel")
    assert [loop.name for loop in caught.value.loops] == [LOOP]


def test_parts_of_a_linearization() -> None:
    """Rows, columns and derivatives by name, as of a tree."""
    robot = four_bar()
    state = four_bar_state()
    whole, (first, _, last) = robot.linearize(*state), robot.joint_names
    part = robot.linearize(*state, wrt=["q", "tau"], rows=[last], columns=[last, first])
    assert np.array_equal(part.vdot_q, whole.vdot_q[[2]][:, [2, 0]])
    assert np.array_equal(part.vdot_tau, whole.vdot_tau[[2]][:, [2, 0]])
    with pytest.raises(AttributeError, match="wrt is"):
        _ = part.vdot_v


def test_names_of_loops_are_looked_up() -> None:
    """Every result by loop names what there is when it is asked for something else."""
    robot = four_bar()
    state = four_bar_state()
    found, at = robot.constrained_dynamics(*state), robot.linearize(*state)
    inverse = robot.constrained_inverse_dynamics(*state[:2], found.vdot)
    for each in (found.unique, found.unique_components, inverse.unique, at.wrench_q, at.wrench_tau):
        with pytest.raises(UnknownNameError, match=f"no active loop 'pin'.*{LOOP}"):
            each["pin"]


def test_prescribed_motion_for_a_call() -> None:
    """A driven joint and a driven frame accelerate as told; the multiplier is the drive's force."""
    arm = phistar.load("ur5")
    rng = np.random.default_rng(4)
    q = arm.random_configuration(2)
    v, tau = rng.normal(size=(2, arm.nv))
    joint, hand = arm.joint_names[2], arm.frame_names[-1]
    told = Prescribed(joint, velocity=float(v[2]), acceleration=1.75)
    found = arm.constrained_dynamics(q, v, tau, constraints=[told])
    assert found.vdot[2] == pytest.approx(1.75, rel=1e-12)
    wanted = np.zeros(arm.nv)
    wanted[2] = 1.75
    vdot, forces = arm.hybrid_dynamics(q, v, tau, wanted, [joint])
    assert error(found.vdot, vdot) < 1e-10
    assert tau[2] + found.multipliers[0] == pytest.approx(forces[2], rel=1e-9)
    speed = arm.frame_velocity(q, v, hand, "local")
    push = rng.normal(size=6)
    driven = Prescribed(hand, tuple(speed), tuple(push))
    vdot = arm.forward_dynamics(q, v, tau, constraints=[driven])
    assert error(arm.frame_acceleration(q, v, vdot, hand, "local"), push) < 1e-8
    with pytest.raises(LoopVelocityError):
        arm.forward_dynamics(q, v, tau, constraints=[Prescribed(joint, velocity=v[2] + 1.0)])
    with pytest.raises(ArgumentError, match="for a call"):
        arm.with_loops(told)


@pytest.mark.parametrize("reference", ["local", "world_aligned", "world"])
def test_operational_inertia_is_that_on_the_loops(reference: str) -> None:
    """Wrenches on frames move them by its inverse; what the loops hold is not moved."""
    robot = phistar.load("delta")
    rng = np.random.default_rng(4)
    q = np.stack([robot.home, robot.integrate(robot.home, 0.05 * rng.normal(size=robot.nv))])
    q = robot.assemble(q)
    rest, frame = np.zeros((2, robot.nv)), "platform"
    still = robot.forward_dynamics(q, rest, rest)
    wrenches = np.eye(6)
    pushed = np.stack(
        [
            robot.forward_dynamics(q, rest, rest, forces={frame: w}, reference=reference) - still
            for w in wrenches
        ],
        axis=-1,
    )
    mobility = robot.jacobian(q, frame, reference) @ pushed
    damping = 0.3
    found = robot.operational_inertia(q, [frame], reference=reference, damping=damping)
    expected = np.linalg.inv(mobility + damping * np.eye(6))
    assert error(found, expected) < 1e-10
    with pytest.raises(ArgumentError, match="3 degrees of freedom"):
        robot.operational_inertia(q, [frame])
    q[1] = robot.integrate(q[1], 0.1 * rng.normal(size=robot.nv))
    with pytest.raises(LoopOpenError, match=r"sample \[1\]"):
        robot.operational_inertia(q, [frame], damping=damping)
    filled = robot.operational_inertia(
        q, [frame], reference=reference, damping=damping, on_error="nan"
    )
    assert np.isnan(filled[1]).all()
    assert np.array_equal(filled[0], found[0])


def test_linearizations_take_constraints_for_a_call() -> None:
    """Those of the robot that has them for good, on trees and with loops; derivatives 1e-10."""
    dog, rng = phistar.load("quadruped"), np.random.default_rng(2)
    feet = [Point("FL_FOOT"), Point("HR_FOOT")]
    held = dog.with_loops(*feet, q=dog.home)
    q, v = held.project(dog.home, rng.normal(size=dog.nv))
    tau = rng.normal(size=dog.nv)
    forces = {"base_link": np.arange(6.0)}
    expected = held.linearize(q, v, tau, forces=forces)
    one = dog.with_loops(feet[0], q=dog.home)
    for found in (
        dog.linearize(q, v, tau, forces=forces, constraints=feet),
        one.linearize(q, v, tau, forces=forces, constraints=feet[1:]),
    ):
        for name in ("vdot", "vdot_q", "vdot_v", "vdot_tau", "multipliers_q"):
            assert error(getattr(found, name), getattr(expected, name)) < 1e-10


def test_gaps_have_the_unit_of_what_is_open() -> None:
    """Of an angle on a robot without lengths in its loops, too; it was said in metres."""
    arm = phistar.load("panda")
    first, second = arm.joint_names[:2]
    geared = arm.with_loops(Gear(first, second))
    q, rest = arm.configuration({first: 0.3}), np.zeros(arm.nv)
    with pytest.raises(LoopOpenError, match=r"open by \S+ rad") as raised:
        geared.forward_dynamics(q, rest, rest)
    assert raised.value.unit == "rad"


def test_constraints_with_wrong_numbers() -> None:
    """One error each that names the constraint; some were errors of Python, or NaN."""
    arm = phistar.load("panda")
    q, rest, hand = arm.random_configuration(0), np.zeros(arm.nv), arm.frame_names[-1]
    joint, other = arm.joint_names[:2]
    wrong = [
        (Point(hand, at=(np.nan, 0.0, 0.0)), "at of Point.* not finite"),
        (Weld(hand, at=(3 * np.eye(4)).tolist()), "at of Weld.* no pose"),
        (Gear(joint, joint), "to itself"),
        (Gear(joint, other, ratio=np.nan), "not finite"),
        (Prescribed(joint, velocity=(1.0,) * 6), "one number for a joint"),
        (Prescribed(hand, velocity=0.1), "6 numbers for a frame"),
        (Prescribed(hand, acceleration=(0.0, 1.0)), "6 numbers for a frame"),
        (Prescribed(joint, velocity=np.nan), "velocity of Prescribed.* not finite"),
        (Prescribed(joint, acceleration=np.inf), "acceleration of Prescribed.* not finite"),
        (Prescribed(joint, velocity="fast"), "expected numbers"),  # type: ignore[arg-type]
        (Prescribed(joint, position=np.nan), "position of Prescribed.* not finite"),
        (Prescribed(hand, position=np.ones((4, 4))), "no pose"),
    ]  # fmt: skip
    for constraint, text in wrong:
        for call in (
            lambda x: arm.forward_dynamics(q, rest, rest, constraints=[x]),
            lambda x: arm.project(q, rest, constraints=[x]),
            lambda x: arm.simulate(q, rest, dt=1e-3, steps=2, constraints=[x]),
        ):
            with pytest.raises(ArgumentError, match=text):
                call(constraint)
    away = Prescribed(joint, position=float(q[0]) + 0.1)
    with pytest.raises(LoopOpenError, match=r"open by 0\.1 rad"):
        arm.simulate(q, rest, dt=1e-3, steps=2, constraints=[away])


@pytest.mark.parametrize("wrong", [["kkt"], None, 3])
def test_methods_that_are_no_names(wrong: Any) -> None:
    """A list was an error of Python's about hashes."""
    for robot in (four_bar(), four_bar().tree):
        rest = np.zeros(3)
        for method in (robot.forward_dynamics, robot.inverse_dynamics, robot.linearize):
            with pytest.raises(UnknownNameError):
                method(rest, rest, rest, method=wrong)


def test_constrained_dynamics_with_what_joints_do_themselves() -> None:
    """``passive=`` is that of forward dynamics, with constraints for a call as well."""
    robot = four_bar().with_joint_physics(damping=[0.3, 0.2, 0.1])
    state = four_bar_state()
    for more in ({}, {"constraints": [Prescribed("crank_joint", velocity=float(state[1][0]))]}):
        expected = robot.forward_dynamics(*state, passive=True, **more)
        found = robot.constrained_dynamics(*state, passive=True, **more)
        assert error(found.vdot, expected) < 1e-10
        damped = np.array([0.3, 0.2, 0.1]) * state[1]
        alone = robot.constrained_dynamics(state[0], state[1], state[2] - damped, **more)
        assert error(found.joint_forces, alone.joint_forces) < 1e-10


@pytest.mark.parametrize("wrong", ["FL_FOOT", Point("FL_FOOT"), ["FL_FOOT"], [Point, 3]])
def test_constraints_that_are_none(wrong: Any) -> None:
    """The message shows what was given and how it is written."""
    dog = phistar.load("quadruped")
    rest = np.zeros(dog.nv)
    for method in (dog.forward_dynamics, dog.constrained_dynamics, dog.linearize):
        with pytest.raises(ArgumentError, match=r"expected .*Point\(\"foot\"\)"):
            method(dog.home, rest, rest, constraints=wrong)
    with pytest.raises(ArgumentError, match=r"expected .*Point\(\"foot\"\)"):
        dog.simulate(dog.home, rest, dt=1e-3, steps=1, constraints=wrong)


def test_linearizations_along_a_motion() -> None:
    """``linearize_along`` keeps the loops at every knot."""
    robot = four_bar()
    q, v, _ = four_bar_state()
    sim = robot.simulate(q, v, dt=1e-3, steps=3)
    along = robot.linearize_along(sim)
    expected = robot.linearize(sim.q[:-1], sim.v[:-1], sim.tau)
    assert np.array_equal(along.vdot_q, expected.vdot_q)
    assert along.reduced().A.shape == (3, 2, 2)
