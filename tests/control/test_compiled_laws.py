# SPDX-License-Identifier: BSD-3-Clause
"""Laws in machine code: the same motions as by calls of Python, for every law, robot and scheme."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import phistar
from phistar import control
from phistar.errors import ArgumentError, DivergenceError, ShapeError
from phistar.model.builder import ModelBuilder
from phistar.model.joint_map import joint_map
from phistar.sim.schemes import SCHEMES
from tests.control.arms import READY, TIPS, goal, goal_pose

Law = Callable[[phistar.Robot], Any]
DT, STEPS, COUNT = 0.002, 4, 3


@cache
def robot_named(name: str) -> phistar.Robot:
    """One of each name; ``tree`` has joints of several kinds, not in the order of its links."""
    if name != "tree":
        return phistar.load(name)
    builder = ModelBuilder("tree")
    builder.link("ground")
    for k, (kind, parent) in enumerate(
        (("spherical", "ground"), ("revolute", "link0"), ("planar", "ground"), ("free", "link2"))
    ):
        builder.link(f"link{k}", 1.0, (0.1, 0.2, 0.3), (0.2, 0.3, 0.4))
        rubs = {"damping": 0.5} if kind == "revolute" else {}
        builder.joint(f"joint{k}", kind, parent, f"link{k}", xyz=(0.2, 0.1, 0.3), **rubs)
    model = builder.build(order=("joint3", "joint0", "joint2", "joint1"))
    assert not joint_map(model).is_identity
    return phistar.load(model)


def rest_of(robot: phistar.Robot) -> np.ndarray:
    """A configuration to be near."""
    return READY.get(robot.name, robot.home)


def states(robot: phistar.Robot, shape: tuple[int, ...] = (COUNT,)) -> tuple[np.ndarray, ...]:
    """Random ones around it."""
    rng = np.random.default_rng(1)
    away, v = 0.3 * rng.normal(size=(2, *shape, robot.nv))
    return robot.integrate(rest_of(robot), away), v


def target(robot: phistar.Robot) -> np.ndarray:
    """Another configuration."""
    rng = np.random.default_rng(2)
    return robot.integrate(rest_of(robot), 0.4 * rng.normal(size=robot.nv))


def path(robot: phistar.Robot, shape: tuple[int, ...] = ()) -> tuple[np.ndarray, ...]:
    """Goals, their velocities and accelerations, (STEPS, *shape, n)."""
    rng = np.random.default_rng(3)
    away, v, vdot = 0.4 * rng.normal(size=(3, STEPS, *shape, robot.nv))
    return robot.integrate(rest_of(robot), away), v, vdot


def along(robot: phistar.Robot) -> control.Trajectory:
    """A motion to stay near."""
    q, v, tau = path(robot)
    return control.Trajectory(DT * np.arange(STEPS + 1), np.append(q, q[:1], 0),
                              np.append(v, v[:1], 0), tau)  # fmt: skip


def gains(robot: phistar.Robot) -> control.Feedback:
    """Any gains, for some of the motors, within limits that matter."""
    driven = control.Actuation.of(robot, robot.joint_names[-4:])
    K = np.random.default_rng(4).normal(size=(STEPS, driven.size, 2 * robot.nv))
    return control.Feedback(driven, along(robot), K, *driven.bounds(1.0))


def hold(robot: phistar.Robot) -> control.Regulator:
    """The same at one place."""
    driven = control.Actuation.of(robot)
    K = np.random.default_rng(4).normal(size=(robot.nv, 2 * robot.nv))
    known: Any = (None, None, None, None)
    return control.Regulator(driven, target(robot), np.ones(robot.nv), K, *known)


EVERYWHERE: dict[str, Law] = {
    "pd": lambda robot: control.pd_gravity(robot, target(robot)),
    "pd, gains alike, limits": lambda robot: control.pd_gravity(
        robot, target(robot), 30.0, 2.0, gravity=False, limits=3.0, passive=True
    ),
    "computed torque": lambda robot: control.computed_torque(robot, target(robot)),
    "computed torque, limits": lambda robot: control.computed_torque(
        robot, target(robot), np.linspace(9, 25, robot.nv), limits=5.0
    ),
    "gravity": lambda robot: control.gravity_compensation(robot, 0.3),
    "rate": lambda robot: control.rate_feedback(robot, 2.0),
    "rate, no gravity": lambda robot: control.rate_feedback(robot, 2.0, gravity=False, limits=2.0),
    "regulator": hold,
    "feedback": gains,
    "pd follows": lambda robot: control.follow(
        control.pd_gravity(robot, target(robot)), *path(robot)[:2]
    ),
    "computed torque follows": lambda robot: control.follow(
        control.computed_torque(robot, target(robot)), *path(robot, (COUNT,))
    ),
}
"""Laws of every robot."""


def by_calls(controller: Any) -> Any:
    """A function that machine code knows nothing of."""
    return lambda k, q, v: controller.at_step(k, q, v)


def assert_same(ours: control.Trajectory, theirs: control.Trajectory, tolerance: float) -> None:
    """Two motions agree, relative to the largest number."""
    assert ours.engine == "machine code", ours.engine_reason
    assert theirs.engine == "one call a step"
    for name in ("t", "q", "v", "tau"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert mine.shape == other.shape
        assert np.abs(mine - other).max() <= tolerance * np.abs(other).max(), name


@pytest.mark.parametrize("law", EVERYWHERE)
@pytest.mark.parametrize("name", ["ur5", "quadruped", "tree"])
def test_machine_code_moves_as_the_law_does(name: str, law: str) -> None:
    """Semi-implicit steps of a batch; 1e-12."""
    robot = robot_named(name)
    controller, (q, v) = EVERYWHERE[law](robot), states(robot)
    ours = control.rollout(robot, q, v, controller, DT, STEPS)
    assert_same(ours, control.rollout(robot, q, v, by_calls(controller), DT, STEPS), 1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["ur5", "quadruped"])
def test_every_scheme(name: str, scheme: str) -> None:
    """Forces are held during a step whatever its stages are; 1e-12."""
    robot = robot_named(name)
    controller, (q, v) = control.computed_torque(robot, target(robot)), states(robot)
    how: dict[str, Any] = {"scheme": scheme, "passive": {"springs", "damping"}}
    ours = control.rollout(robot, q, v, controller, DT, STEPS, **how)
    theirs = control.rollout(robot, q, v, by_calls(controller), DT, STEPS, **how)
    assert_same(ours, theirs, 1e-12)


def test_implicit_steps_in_an_order_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs in the robot's coordinates beside those in the order of its links; 1e-12."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    robot = robot_named("tree")
    q, v = states(robot)
    for controller in (control.computed_torque(robot, target(robot)), hold(robot)):
        how: dict[str, Any] = {"scheme": "implicit", "passive": True}
        ours = control.rollout(robot, q, v, controller, DT, STEPS, **how)
        theirs = control.rollout(robot, q, v, by_calls(controller), DT, STEPS, **how)
        assert_same(ours, theirs, 1e-12)


def test_laws_of_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operational space and pose control, at rest and moving; 1e-12. They wait for their code."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    robot = phistar.load("ur5")
    frame, pose, (q, v) = TIPS["ur5"], goal_pose(robot), states(robot)
    poses = robot.frame_pose(path(robot)[0], frame)
    rates = np.random.default_rng(5).normal(size=(2, STEPS, COUNT, 6))
    task = control.operational_space(robot, frame, pose, limits=40.0)
    draw = control.pose_control(robot, frame, pose)
    for controller in (task, control.follow(task, poses, *rates), control.follow(draw, poses)):
        ours = control.rollout(robot, q, v, controller, DT, STEPS)
        assert_same(ours, control.rollout(robot, q, v, by_calls(controller), DT, STEPS), 1e-12)
    stretched = np.zeros(6)
    with pytest.raises(ArgumentError, match="singular pose"):
        control.rollout(robot, [q[0], stretched], v[:2], task, DT, STEPS)
    lost = control.rollout(robot, [q[0], stretched], v[:2], task, DT, STEPS, on_error="nan")
    assert lost.ok.tolist() == [True, False]


def test_errors_towards_a_moving_goal_obey_their_equation() -> None:
    """δ̈ + k_d δ̇ + k_p δ = 0 on a free base, by differences along both motions; 1e-6."""
    robot = robot_named("quadruped")
    (q, v), start = states(robot, ()), target(robot)
    turn = 0.5 * np.random.default_rng(6).normal(size=robot.nv)
    # Along one direction, at the speed 1 + t: its velocity and acceleration are both the direction.
    law = control.computed_torque(robot, start, 7.0, 3.0)
    tau = control.follow(law, start[None], turn[None], turn[None])(0, q, v)
    vdot = robot.forward_dynamics(q, v, tau)

    def error(t: float) -> np.ndarray:
        there = robot.integrate(start, (t + t * t / 2) * turn)
        return robot.difference(robot.integrate(q, t * v + t * t / 2 * vdot), there)

    h = 1e-3
    before, now, after = error(-h), error(0.0), error(h)
    second, first = (after - 2 * now + before) / h**2, (after - before) / (2 * h)
    left = second + 3.0 * first + 7.0 * now
    assert np.abs(left).max() < 1e-5 * np.abs(second).max()


def test_a_frame_has_the_acceleration_that_is_asked_for() -> None:
    """Operational space: V̇ = a° + k_p e + k_d (V° - V), by forward dynamics; 1e-9."""
    robot = robot_named("ur5")
    frame, (q, v) = TIPS["ur5"], states(robot)
    law = control.operational_space(robot, frame, goal_pose(robot), 5.0, 2.0)
    rates = np.random.default_rng(7).normal(size=(2, 1, 6))
    moving = control.follow(law, goal_pose(robot)[None], *rates).at(0)
    found = robot.frame_acceleration(q, v, robot.forward_dynamics(q, v, moving.forces(q, v)), frame)
    speed = robot.frame_velocity(q, v, frame)
    wanted = rates[1] + 5.0 * law.error(q, v) + 2.0 * (rates[0] - speed)
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())


def hinges(**physics: float) -> phistar.Robot:
    """Two links in a row."""
    builder = ModelBuilder("hinges")
    builder.link("base")
    for k, parent in enumerate(("base", "link0")):
        builder.link(f"link{k}", 1.0, (0.0, 0.0, -0.5), (0.1, 0.1, 0.01))
        builder.joint(f"hinge{k}", "revolute", parent, f"link{k}", axis=(0, 1, 0),
                      xyz=(0, 0, -1.0 if k else 0.0), **physics)  # fmt: skip
    return phistar.load(builder.build())


@pytest.mark.parametrize("physics", [{"lower": -0.3, "upper": 0.3}, {"friction": 2.0}])
def test_joints_that_stop_and_rub(
    physics: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Driven against limits and friction: the forces of the law, and the steps of ``simulate``."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    robot = hinges(**physics)
    law = control.pd_gravity(robot, [0.6, -0.6], 40.0, 1.0)
    q, v = np.array([[0.0, 0.1], [0.29, 0.0]]), np.array([[0.0, 0.0], [1.0, -1.0]])
    motion = control.rollout(robot, q, v, law, 0.01, 40, passive=True)
    assert motion.engine == "machine code", motion.engine_reason
    np.testing.assert_allclose(motion.tau, law.forces(motion.q[:-1], motion.v[:-1]), rtol=1e-12)
    simulated = robot.simulate(
        q, v, dt=0.01, steps=40, tau_steps=motion.tau, scheme="semi_implicit", passive=True
    )
    np.testing.assert_array_equal(motion.q, simulated.q)
    np.testing.assert_array_equal(motion.v, simulated.v)
    free = control.rollout(robot, q, v, law, 0.01, 40)
    assert np.abs(motion.q - free.q).max() > 0.1
    if "upper" in physics:
        assert np.abs(motion.q).max() <= 0.3
        called = control.rollout(robot, q, v, by_calls(law), 0.01, 40, passive=True)
        assert_same(motion, called, 1e-9)


def test_lanes_keep_to_themselves() -> None:
    """Samples that are lost leave the others the same bits, and knots can be left out."""
    robot = robot_named("ur5")
    law = control.computed_torque(robot, goal("ur5"))
    q, v = states(robot, (2, 2))
    q[0, 1, 0], v[1, 0, 2] = np.nan, 1e200
    motion = control.rollout(robot, q, v, law, DT, 6, on_error="nan")
    assert motion.engine == "machine code"
    assert motion.diverged.tolist() == [[-1, 0], [1, -1]]
    assert np.isnan(motion.q[:, 0, 1]).all()
    assert np.isnan(motion.tau[1:, 1, 0]).all()
    for index in ((0, 0), (1, 1)):
        alone = control.rollout(robot, q[index], v[index], law, DT, 6)
        np.testing.assert_array_equal(motion.q[:, *index], alone.q)
        np.testing.assert_array_equal(motion.tau[:, *index], alone.tau)
    kept = control.rollout(robot, q, v, law, DT, 6, every=3, on_error="nan")
    np.testing.assert_array_equal(kept.q[:, 0, 0], motion.q[::3, 0, 0])
    np.testing.assert_array_equal(kept.tau[:, 0, 0], motion.tau[2::3, 0, 0])
    np.testing.assert_array_equal(kept.t, motion.t[::3])
    called = control.rollout(robot, q, v, by_calls(law), DT, 6, every=3, on_error="nan")
    assert called.diverged.tolist() == kept.diverged.tolist() == [[-1, 0], [1, -1]]
    np.testing.assert_allclose(called.tau[:, 0, 0], kept.tau[:, 0, 0], rtol=1e-12)


def test_what_goes_wrong_is_told() -> None:
    """Too strong gains, more steps than goals, goals of another batch, goals that none has."""
    robot = robot_named("ur5")
    wild = control.pd_gravity(robot, goal("ur5"), 1e9, 1e9)
    q, v = states(robot)
    with pytest.raises(DivergenceError, match=r"diverges|not finite") as error:
        control.rollout(robot, q, v, wild, 0.1, 200, every=4)
    assert error.value.knot > 1
    law = control.computed_torque(robot, goal("ur5"))
    moving = control.follow(law, path(robot)[0])
    with pytest.raises(ArgumentError, match=f"goals for {STEPS} steps"):
        control.rollout(robot, q, v, moving, DT, STEPS + 1)
    with pytest.raises(ArgumentError, match=f"not one of the {STEPS}"):
        moving(STEPS, q, v)
    with pytest.raises(ShapeError, match="batch of the law"):
        control.rollout(robot, q, v, control.follow(law, path(robot, (2,))[0]), DT, STEPS)
    with pytest.raises(ArgumentError, match="'rate' has no goal"):
        control.follow(control.rate_feedback(robot), path(robot)[0])
    with pytest.raises(ArgumentError, match="does not know the goal's acceleration"):
        control.follow(control.pd_gravity(robot, goal("ur5")), *path(robot))
    with pytest.raises(ShapeError, match="goal_velocity"):
        control.follow(law, path(robot)[0], path(robot)[1][1:])
    with pytest.raises(ShapeError, match="time as its first axis"):
        control.follow(law, goal("ur5"))
    with pytest.raises(phistar.errors.UnknownNameError, match="scheme"):
        control.rollout(robot, q, v, law, DT, STEPS, scheme="leapfrog")


def test_the_route_is_told() -> None:
    """Functions, laws of others, loops, mimic joints: calls, with the reason."""

    class Louder(control.ComputedTorque):
        def require(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            return 2.0 * super().require(q, v)

    robot = robot_named("ur5")
    (q, v), law = states(robot), control.computed_torque(robot, goal("ur5"))
    loud = Louder(robot, None, None, True, law.goal, law.stiffness, law.damping)
    motion = control.rollout(robot, q, v, loud, DT, 1)
    assert (motion.engine, motion.engine_reason) == ("one call a step", "a Louder is Python")
    np.testing.assert_allclose(motion.tau[0], 2.0 * law.forces(q, v), rtol=1e-12)
    bars = phistar.load("four_bar")
    start = bars.assemble([0.7, 0.0, 0.0], fixed=["crank_joint"])
    motion = control.rollout(bars, start, np.zeros(3), control.pd_gravity(bars, start), DT, 1)
    assert "closed loops" in motion.engine_reason
    assert "one call a step" in repr(motion)
    hand = phistar.load("panda_hand")
    home = np.zeros(hand.nv)
    motion = control.rollout(hand, hand.home, home, control.pd_gravity(hand, hand.home), DT, 1)
    assert "mimic joints" in motion.engine_reason
    assert control.minimum_jerk(robot, q[0], q[1], 1.0, 3)[0].engine == ""


def test_the_simulator_takes_laws() -> None:
    """The same motion as by forces that are given; goals count from resets of each sample."""
    robot = robot_named("ur5")
    law, (q, v) = control.computed_torque(robot, goal("ur5")), states(robot)
    sim = robot.simulator(COUNT, dt=DT, ground=False, passive=False)
    sim.reset(q=q, v=v)
    found = sim.step(law, substeps=2)
    assert sim.law_engine == "machine code"
    motion = control.rollout(robot, q, v, law, DT, 2)
    np.testing.assert_allclose(found.q, motion.q[-1], rtol=1e-12)
    np.testing.assert_allclose(found.v, motion.v[-1], rtol=1e-12)
    moving = control.follow(law, *path(robot))
    sim.reset(q=q, v=v)
    sim.step(moving)
    sim.reset([1], q=q, v=v)
    ahead = sim.step(moving, substeps=2)
    motion = control.rollout(robot, q, v, moving, DT, 3)
    for sample, steps in enumerate((3, 2, 3)):
        np.testing.assert_allclose(ahead.q[sample], motion.q[steps, sample], rtol=1e-12)
    with pytest.raises(ArgumentError, match="step 4 since the last reset"):
        sim.step(moving, substeps=2)
    sim.reset(q=q, v=v)
    held = sim.run(law, 1, substeps=2)
    sim.reset(q=q, v=v)
    np.testing.assert_array_equal(held.q, sim.step(law.forces(q, v), substeps=2).q)
