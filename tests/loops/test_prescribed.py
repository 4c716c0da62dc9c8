# SPDX-License-Identifier: BSD-3-Clause
"""Motion that is prescribed in time: joints and frames, by functions, arrays and numbers."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phistar
from phistar.arrays import Array
from phistar.constraints import Distance, Point, Prescribed, Weld
from phistar.errors import (
    ArgumentError,
    DivergenceError,
    LoopOpenError,
    LoopVelocityError,
    ShapeError,
    UnknownNameError,
)
from phistar.model import ModelBuilder
from phistar.robot import Robot
from phistar.spatial import exp_se3, pose_product
from tests.loops.mechanisms import error, four_bar

CRANK = "crank_joint"
SPEED = 3.0


def turning() -> tuple[Robot, Array, Array]:
    """The four-bar with its crank at 0.4 rad, turning at a given speed."""
    robot = four_bar()
    q = robot.assemble(robot.configuration({CRANK: 0.4}), fixed=[CRANK])
    q, v = robot.project(q, np.zeros(3), constraints=[Prescribed(CRANK, SPEED)])
    return robot, q, v


def test_projection_gives_the_velocity_that_is_told() -> None:
    """And the position, if that is told; the rest stays on the loops."""
    robot, q, v = turning()
    assert v[0] == pytest.approx(SPEED, rel=1e-12)
    assert np.abs(np.asarray(robot.loop_jacobian(q)) @ v).max() < 1e-12
    told = Prescribed(CRANK, SPEED, position=0.42)
    at, rate = robot.project(q, v, constraints=[told])
    assert at[0] == pytest.approx(0.42, abs=1e-12)
    assert rate[0] == pytest.approx(SPEED, rel=1e-12)
    assert np.abs(np.asarray(robot.loop_error(at))).max() < 1e-12
    found = robot.constrained_dynamics(at, rate, np.zeros(3), constraints=[told])
    assert found.vdot[0] == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(LoopOpenError, match=f"drive of {CRANK}"):
        robot.constrained_dynamics(q, v, np.zeros(3), constraints=[told])


@pytest.mark.parametrize("scheme", ["rk4", "midpoint", "dopri5"])
def test_a_crank_at_constant_speed(scheme: str) -> None:
    """The four-bar has one freedom, so geometry is the witness: angles from assembling, the
    torque from inverse dynamics with the crank as motor; the drive's work is the energy gained."""
    robot, q, v = turning()
    sim = robot.simulate(
        q,
        v,
        dt=2e-3,
        duration=1.0,
        scheme=scheme,
        constraints=[Prescribed(CRANK, SPEED)],
        passive=False,
    )
    assert np.abs(sim.q[:, 0] - (0.4 + SPEED * sim.t)).max() < 1e-12
    assert np.abs(sim.v[:, 0] - SPEED).max() < 1e-11
    assert np.abs(sim.loop_error()).max() < 1e-12
    assert np.abs(np.asarray(robot.loop_error(sim.q))).max() < 1e-12
    rates = np.asarray(robot.loop_jacobian(sim.q)) @ sim.v[..., None]
    assert np.abs(rates).max() < 1e-11
    # v̇ on the loops with the crank's acceleration zero.
    vdot = robot.hybrid_dynamics(sim.q, sim.v, np.zeros(3), np.zeros(3), [CRANK])[0]
    wanted = robot.constrained_inverse_dynamics(sim.q, sim.v, vdot, actuated=[CRANK])
    force = sim.drive_force(CRANK)
    assert force.shape == (500,)
    assert error(force, wanted.effort[:-1, 0]) < 1e-9
    power = SPEED * wanted.effort[:, 0]
    work = np.cumsum((power[1:] + power[:-1]) / 2) * 2e-3
    energy = sim.energy()
    gained = energy[1:] - energy[0]
    assert np.abs(gained).max() > 1e-3
    assert np.abs(gained - work).max() < 1e-4 * np.abs(gained).max()
    assert sim.drift().kept.energy is False


def cart(friction: tuple[float, float] = (0.0, 0.0), reach: float = np.inf) -> Robot:
    """A pendulum of 1 kg, 0.7 m below a cart of 3 kg, with 0.1 kg m² about its centre.

    Args:
        friction: Of rail and pin [N, N m].
        reach: Largest angle of the pin.
    """
    builder = ModelBuilder("cart")
    builder.link("rail")
    builder.link("cart", 3.0, inertia=(1, 1, 1))
    builder.link("pole", 1.0, com=(0, 0, -0.7), inertia=(0.1, 0.1, 0.1))
    builder.joint("slide", "prismatic", "rail", "cart", axis=(1, 0, 0), friction=friction[0])
    turning = "revolute" if np.isfinite(reach) else "continuous"
    ends = {"lower": -reach, "upper": reach, "friction": friction[1]}
    builder.joint("pin", turning, "cart", "pole", axis=(0, 1, 0), **ends)
    return phistar.load(builder.build())


def shaken(t: float) -> tuple[float, float, float]:
    """The cart's position, velocity and acceleration."""
    return (
        0.2 * np.sin(5.0 * t) + 0.1 * t * t,
        np.cos(5.0 * t) + 0.2 * t,
        -5.0 * np.sin(5.0 * t) + 0.2,
    )


def pendulum(
    duration: float, steps: int, start: tuple[float, float] = (0.3, -0.5), torque: float = 0.0
) -> Array:
    """Angles (steps + 1,) of the pendulum on the shaken cart, by its own equation.

    (I + m l²)θ̈ = -m g l sin θ + m l ẍ cos θ + torque, as a positive angle turns the bob to -x.
    """
    total, moment = 0.1 + 0.7**2, 0.7

    def rate(t: float, y: Array) -> Array:
        pull = -9.81 * np.sin(y[0]) + shaken(t)[2] * np.cos(y[0])
        return np.array([y[1], (moment * pull + torque) / total])

    h, y = duration / steps / 10, np.array(start)
    found = [y[0]]
    for k in range(10 * steps):
        t = k * h
        a = rate(t, y)
        b = rate(t + h / 2, y + h / 2 * a)
        c = rate(t + h / 2, y + h / 2 * b)
        d = rate(t + h, y + h * c)
        y = y + h / 6 * (a + 2 * b + 2 * c + d)
        if k % 10 == 9:
            found.append(y[0])
    return np.array(found)


def by_arrays(motion: Callable[[float], tuple[float, float, float]], t: Array) -> tuple[Array, ...]:
    """Three arrays of a motion at times."""
    return tuple(np.array(x) for x in zip(*map(motion, t), strict=True))


@pytest.mark.parametrize("kind", ["function", "arrays", "adaptive"])
def test_a_pendulum_on_a_driven_cart(kind: str) -> None:
    """Against its equation; with arrays, too, at 5 ms to 1e-7. The force is m Σẍ of both."""
    robot, steps = cart(), 400
    q, v = np.array([0.0, 0.3]), np.array([1.0, -0.5])
    expected = pendulum(2.0, steps)
    arrays = by_arrays(shaken, np.linspace(0.0, 2.0, steps + 1))
    told = Prescribed("slide", motion=arrays if kind == "arrays" else shaken)  # type: ignore[arg-type]
    scheme = "dopri5" if kind == "adaptive" else "rk4"
    sim = robot.simulate(
        q,
        v,
        dt=5e-3,
        steps=steps,
        scheme=scheme,
        tolerance=1e-10,
        constraints=[told],
        passive=False,
    )
    assert np.abs(sim.q[:, 0] - arrays[0]).max() < 1e-12
    assert np.abs(sim.v[:, 0] - arrays[1]).max() < 1e-11
    assert np.abs(sim.q[:, 1] - expected).max() < 1e-7
    assert np.abs(sim.loop_error()).max() < 1e-12
    # Momentum along the rail changes by the drive's force alone.
    angle, rate = sim.q[:-1, 1], sim.v[:-1, 1]
    turn = 0.7 * (-9.81 * np.sin(angle) + arrays[2][:-1] * np.cos(angle)) / (0.1 + 0.7**2)
    bob = arrays[2][:-1] - 0.7 * (turn * np.cos(angle) - rate**2 * np.sin(angle))
    assert error(sim.drive_force("slide"), 3.0 * arrays[2][:-1] + bob) < 1e-6


def test_a_driven_cart_whose_joints_rub() -> None:
    """Pendulums that turn one way all the time feel a constant torque; the drive of the cart
    overcomes the rail's friction, too."""
    robot, steps = cart((2.0, 0.3)), 200
    starts = [(0.3, -9.0), (0.3, 9.0), (1.0, 12.0)]
    q, v = np.array([[0.0, x] for x, _ in starts]), np.array([[1.0, x] for _, x in starts])
    told = [Prescribed("slide", motion=shaken)]
    sim = robot.simulate(q, v, dt=2e-3, steps=steps, scheme="rk4", constraints=told)
    assert sim.passive == ("friction",)
    assert set(np.sign(sim.v[:, 0, 0]).tolist()) == {-1.0, 1.0}
    for k, start in enumerate(starts):
        expected = pendulum(0.4, steps, start, -0.3 * np.sign(start[1]))
        assert np.abs(sim.q[:, k, 1] - expected).max() < 1e-7
        angle, rate = sim.q[:-1, k, 1], sim.v[:-1, k, 1]
        pull = by_arrays(shaken, sim.t[:-1])[2]
        turn = (0.7 * (-9.81 * np.sin(angle) + pull * np.cos(angle)) - 0.3 * np.sign(start[1])) / (
            0.1 + 0.7**2
        )
        bob = pull - 0.7 * (turn * np.cos(angle) - rate**2 * np.sin(angle))
        force = sim.drive_force("slide")[:, k]
        assert error(force, 3.0 * pull + bob + 2.0 * np.sign(sim.v[1:, k, 0])) < 1e-9
        alone = robot.simulate(q[k], v[k], dt=2e-3, steps=steps, scheme="rk4", constraints=told)
        assert np.abs(sim.q[:, k] - alone.q).max() < 1e-12


@pytest.mark.parametrize("on_error", ["raise", "nan"])
def test_batches_whose_driven_robots_reach_limits(on_error: str) -> None:
    """Of four, two pendulums stop; each moves as it does alone, from where its own cart is."""
    robot = cart(reach=0.8)
    q = np.array([[[0.0, 0.1], [0.3, 0.7]], [[-0.2, 0.2], [0.1, -0.75]]])
    v = np.array([[[0.5, 0.0], [0.5, 3.0]], [[0.5, 0.5], [0.5, -2.0]]])
    told = [Prescribed("slide", velocity=0.5, acceleration=1.0)]
    given = {
        "dt": 5e-3,
        "steps": 40,
        "scheme": "semi_implicit",
        "constraints": told,
        "on_error": on_error,
    }
    sim = robot.simulate(q, v, **given)
    assert np.abs(sim.q[..., 1]).max() < 0.8 + 1e-4
    reached = (np.abs(sim.q[..., 1]) > 0.8 - 1e-4).any(axis=0)
    assert reached.tolist() == [[False, True], [False, True]]
    expected = q[..., 0] + 0.5 * sim.t[:, None, None] + sim.t[:, None, None] ** 2 / 2
    assert np.abs(sim.q[..., 0] - expected).max() < 1e-12
    for k in np.ndindex(2, 2):
        alone = robot.simulate(q[k], v[k], **given)
        assert np.abs(sim.q[:, *k] - alone.q).max() < 1e-9
    assert sim.drive_force("slide").shape == (40, 2, 2)


def test_lost_samples_of_driven_robots() -> None:
    """One that is not finite and one that moves otherwise than told are NaN, whatever is asked
    of the motion; the others are as without them."""
    robot, told = cart(reach=0.8), [Prescribed("slide", velocity=0.5)]
    q = np.array([[0.0, 0.1], [0.1, np.nan], [0.2, 0.7], [0.3, 0.0]])
    v = np.array([[0.5, 0.0], [0.5, 0.0], [0.5, 2.0], [0.6, 0.0]])
    with pytest.raises(LoopVelocityError, match=r"sample \[2\]"):
        robot.simulate(q[[0, 2, 3]], v[[0, 2, 3]], dt=5e-3, steps=20, constraints=told)
    sim = robot.simulate(q, v, dt=5e-3, steps=20, constraints=told, on_error="nan")
    assert sim.ok.tolist() == [True, False, True, False]
    assert sim.diverged.tolist() == [-1, 0, -1, 0]
    fine = robot.simulate(q[[0, 2]], v[[0, 2]], dt=5e-3, steps=20, constraints=told)
    assert np.array_equal(sim.q[:, [0, 2]], fine.q)
    force = sim.drive_force("slide")
    assert error(force[:, [0, 2]], fine.drive_force("slide")) < 1e-12
    assert np.isnan(force[:, [1, 3]]).all()
    none = robot.simulate(q[1], v[1], dt=5e-3, steps=20, constraints=told, on_error="nan")
    assert np.isnan(none.drive_force("slide")).all()


def test_each_sample_keeps_its_distance() -> None:
    """Without a length a rod is as long as it is at the start of each sample; as for good, 1e-9."""
    arm = phistar.load("panda")
    q = np.stack([arm.random_configuration(k) for k in range(2)])
    v, rod = np.zeros((2, arm.nv)), Distance(arm.frame_names[-1])
    given = {"dt": 1e-3, "steps": 5, "passive": False}
    sim = arm.simulate(q, v, constraints=[rod], **given)
    for k in range(2):
        alone = arm.with_loops(rod, q=q[k]).simulate(q[k], v[k], **given)
        assert error(sim.q[:, k], alone.q) < 1e-9
        place = arm.frame_pose(sim.q[:, k], rod.frame)[:, :3, 3]
        length = np.linalg.norm(place, axis=-1)
        assert np.abs(length - length[0]).max() < 1e-12
    assert np.abs(sim.loop_error()).max() < 1e-12


def test_steps_keep_their_order_with_arrays() -> None:
    """Half the step, a sixteenth of the error: positions, velocities and accelerations suffice."""
    robot = cart()
    q, v = np.array([0.0, 0.3]), np.array([1.0, -0.5])
    left = []
    for steps in (50, 100):
        arrays = by_arrays(shaken, np.linspace(0.0, 2.0, steps + 1))
        told = Prescribed("slide", motion=arrays)  # type: ignore[arg-type]
        sim = robot.simulate(q, v, duration=2.0, dt=2.0 / steps, constraints=[told], passive=False)
        left.append(abs(sim.q[-1, 1] - pendulum(2.0, 100)[-1]))
    assert left[0] > 1e-7
    assert left[1] < left[0] / 12


def test_a_frame_moves_as_it_is_told() -> None:
    """The hand of an arm along a screw, in a batch; the wrench does the work."""
    arm = phistar.load("ur5")
    q = np.array([[0.1, -1.2, 1.5, -0.8, 1.0, 0.3], [0.3, -1.0, 1.3, -0.6, 1.1, 0.1]])
    twist = (0.2, -0.1, 0.3, 0.1, 0.2, -0.1)
    told = Prescribed("tool0", twist)
    q, v = arm.project(q, np.zeros((2, 6)), constraints=[told])
    speed = arm.frame_velocity(q, v, "tool0", "local")
    assert np.abs(speed - twist).max() < 1e-9
    sim = arm.simulate(q, v, dt=5e-3, steps=100, constraints=[told], passive=False)
    start = arm.frame_pose(q, "tool0")
    for k in (50, 100):
        expected = pose_product(start, exp_se3(np.array(twist) * sim.t[k]))
        assert np.abs(arm.frame_pose(sim.q[k], "tool0") - expected).max() < 1e-11
    wrench = sim.drive_force("tool0")
    assert wrench.shape == (100, 2, 6)
    assert np.array_equal(wrench, sim.wrenches("drive of tool0"))
    power = wrench @ np.array(twist)
    work = 5e-3 * (power[:-1] + power[1:]).sum(axis=0) / 2
    energy = sim.energy()
    assert (
        np.abs(work - (energy[-2] - energy[0])).max() < 1e-4 * np.abs(np.ptp(energy, axis=0)).max()
    )
    # The same by a function, one robot, chosen steps.
    function = Prescribed(
        "tool0",
        motion=lambda t: (pose_product(start[0], exp_se3(np.array(twist) * t)), twist, np.zeros(6)),
    )
    again = arm.simulate(
        q[0],
        v[0],
        dt=0.1,
        duration=0.5,
        scheme="dopri5",
        tolerance=1e-11,
        constraints=[function],
        passive=False,
    )
    assert np.abs(again.q[-1] - sim.q[-1, 0]).max() < 1e-8
    assert np.abs(again.loop_error()).max() < 1e-12


def test_a_function_at_an_instant() -> None:
    """``at(t)`` of a motion is a constraint for a call then; without it the call says so."""
    robot = cart()
    told = Prescribed("slide", motion=shaken)
    place, rate, push = shaken(0.3)
    found = robot.constrained_dynamics(
        [place, 0.2], [rate, 0.0], np.zeros(2), constraints=[told.at(0.3)]
    )
    assert found.vdot[0] == pytest.approx(push, rel=1e-12)
    with pytest.raises(ArgumentError, match=r"\.at\(t\)"):
        robot.constrained_dynamics([place, 0.2], [rate, 0.0], np.zeros(2), constraints=[told])


def test_other_constraints_hold_where_frames_are() -> None:
    """A point held at the start's place next to a driven joint; events and pickles know both."""
    arm = phistar.load("panda")
    rng = np.random.default_rng(1)
    q = arm.random_configuration(rng)
    hand, joint = arm.frame_names[-1], arm.joint_names[0]
    q, v = arm.project(
        q, np.zeros(arm.nv), constraints=[Point(hand), Prescribed(joint, velocity=0.2)]
    )
    place = arm.frame_pose(q, hand)[:3, 3]
    sim = arm.simulate(
        q,
        v,
        dt=2e-3,
        steps=50,
        constraints=[Point(hand), Prescribed(joint, 0.2, name="motor")],
        passive=False,
    )
    assert np.abs(arm.frame_pose(sim.q, hand)[:, :3, 3] - place).max() < 1e-11
    assert np.abs(sim.q[:, 0] - q[0] - 0.2 * sim.t).max() < 1e-11
    again = pickle.loads(pickle.dumps(sim))
    assert np.array_equal(again.drive_force("motor"), sim.drive_force("motor"))
    assert again.events == ()


def test_motions_that_cannot_be_are_refused() -> None:
    """Starts off the motion, rates that are none, wrong shapes, loops that do not allow it."""
    robot, q, v = turning()
    held = [Prescribed(CRANK, SPEED)]
    with pytest.raises(LoopVelocityError, match=r"project\(q, v, constraints"):
        robot.simulate(q, 0.5 * v, dt=1e-3, steps=2, constraints=held, passive=False)
    early = Prescribed(CRANK, motion=lambda t: (0.5 + SPEED * t, SPEED, 0.0))
    with pytest.raises(LoopOpenError, match=f"drive of {CRANK}"):
        robot.simulate(q, v, dt=1e-3, steps=2, constraints=[early], passive=False)
    wrong = Prescribed(CRANK, motion=lambda t: (0.4 + SPEED * t, 2.0, 0.0))
    with pytest.raises(ArgumentError, match=r"velocity of .* is not the rate of its position"):
        robot.simulate(q, v, dt=1e-3, steps=2, constraints=[wrong], passive=False)
    t = np.linspace(0.0, 0.01, 11)
    jerky = Prescribed(CRANK, motion=(0.4 + SPEED * t, 0 * t + SPEED, 0 * t + 1.0))
    with pytest.raises(ArgumentError, match=r"acceleration of .* is not the rate of its velocity"):
        robot.simulate(q, v, dt=1e-3, steps=10, constraints=[jerky], passive=False)
    with pytest.raises(ShapeError, match="one for each end of a step"):
        robot.simulate(q, v, dt=1e-3, steps=9, constraints=[jerky], passive=False)
    with pytest.raises(ArgumentError, match="function of time"):
        robot.simulate(q, v, duration=0.01, scheme="dopri5", constraints=[jerky], passive=False)
    lone = Prescribed(CRANK, motion=lambda t: t)  # type: ignore[arg-type,return-value]
    with pytest.raises(ArgumentError, match="expected position"):
        robot.simulate(q, v, dt=1e-3, steps=2, constraints=[lone], passive=False)
    arm, dog = phistar.load("ur5"), phistar.load("quadruped")
    pushed = Prescribed("tool0", (0.0,) * 6, (1.0,) * 6)
    with pytest.raises(ArgumentError, match="does not say where"):
        arm.simulate(arm.home, np.zeros(6), dt=1e-3, steps=2, constraints=[pushed], passive=False)
    rest, root = np.zeros(dog.nv), [Prescribed("root_joint")]
    with pytest.raises(ArgumentError, match="one coordinate"):
        dog.simulate(dog.home, rest, dt=1e-3, steps=2, constraints=root, passive=False)
    with pytest.raises(ArgumentError, match="expected a number for a joint"):
        robot.project(q, v, constraints=[Prescribed(CRANK, position=np.eye(4))])
    sim = robot.simulate(q, v, dt=1e-3, steps=2, constraints=held, passive=False)
    with pytest.raises(UnknownNameError):
        sim.drive_force("rocker_joint")
    rocker = robot.joint_names[2]
    both = [*held, Prescribed(rocker, float(v[2]))]
    with pytest.raises(DivergenceError, match="cannot move as prescribed"):
        robot.simulate(q, v, dt=1e-2, steps=100, constraints=both, passive=False)


def test_bad_samples_leave_the_others_alone() -> None:
    """One NaN sample of a batch."""
    robot, q, v = turning()
    held = [Prescribed(CRANK, SPEED)]
    alone = robot.simulate(q, v, dt=2e-3, steps=20, constraints=held, passive=False)
    both = np.stack([np.full(3, np.nan), q])
    sim = robot.simulate(
        both, v, dt=2e-3, steps=20, on_error="nan", constraints=held, passive=False
    )
    assert sim.ok.tolist() == [False, True]
    assert np.abs(sim.q[:, 1] - alone.q).max() < 1e-13


@pytest.mark.parametrize("scheme", ["rk4", "semi_implicit"])
def test_each_sample_stands_where_it_starts(scheme: str) -> None:
    """A batch of dogs that hold two feet, each where it stands: motions and forces are those of the
    samples alone, and the feet stay."""
    dog = phistar.load("quadruped")
    rng = np.random.default_rng(2)
    feet = [Point("FL_FOOT"), Weld("HR_FOOT")]
    q = dog.integrate(np.stack([dog.home] * 2), 0.2 * rng.normal(size=(2, dog.nv)))
    q, v = dog.project(q, rng.normal(size=(2, dog.nv)), constraints=feet)
    options: dict[str, Any] = {"dt": 2e-3, "steps": 10, "scheme": scheme, "passive": False}
    sim = dog.simulate(q, v, constraints=feet, **options)
    assert np.abs(sim.loop_error()).max() < 1e-12
    alone = dog.simulate(q[1], v[1], constraints=feet, **options)
    assert np.abs(sim.q[:, 1] - alone.q).max() < 1e-12
    for foot in ("spherical of FL_FOOT", "weld of HR_FOOT"):
        assert error(sim.wrenches(foot)[:, 1], alone.wrenches(foot)) < 1e-9
    places = dog.frame_pose(sim.q, "FL_FOOT")[..., :3, 3]
    assert np.abs(places - places[0]).max() < 1e-12
    assert np.abs(places[0, 0] - places[0, 1]).max() > 1e-2
