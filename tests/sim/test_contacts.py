# SPDX-License-Identifier: BSD-3-Clause
"""Contacts: closed forms of sliding, rolling, resting, bouncing; laws at every step."""

import numpy as np
import pytest

import phistar
from phistar.sim import Box, HeightField, Plane
from phistar.sim.simulator import Simulator
from tests.sim.contact_laws import LawfulSteps

GRAVITY = 9.81
DT = 1e-3
HALF = (0.2, 0.15, 0.1)
BOX = '<body name="box"><freejoint/><geom name="crate" type="box" size=".2 .15 .1"/></body>'
BALL = '<body name="ball"><freejoint/><geom name="ball" type="sphere" size=".1"/></body>'


def _robot(*bodies: str) -> phistar.Robot:
    xml = f"<mujoco><worldbody>{''.join(bodies)}</worldbody></mujoco>"
    return phistar.load(xml.encode())


def _on_slope(angle: float, height: float) -> np.ndarray:
    """A body that lies on a slope which goes down along x."""
    half = 0.5 * angle
    place = height * np.array([np.sin(angle), 0.0, np.cos(angle)])
    return np.r_[place, 0.0, np.sin(half), 0.0, np.cos(half)]


def _lawful(robot: phistar.Robot, sim: Simulator, steps: int, **slack: float) -> np.ndarray:
    """Configurations (steps + 1, batch, nq) of a free motion whose every step was looked at."""
    motion = LawfulSteps(robot, sim)
    motion.take(steps=steps)
    motion.require_laws(**slack)
    return motion.q


@pytest.fixture(scope="module")
def crate() -> phistar.Robot:
    """A box of 12 kg on 24 litres."""
    return _robot(BOX)


@pytest.fixture(scope="module")
def ball() -> phistar.Robot:
    """A full ball."""
    return _robot(BALL)


def test_a_box_slides_as_coulomb_says(crate: phistar.Robot) -> None:
    """Beyond the cone: g(sin θ - μ cos θ), relative 1e-3; energy goes down, laws at every step."""
    angle, mu = np.radians(25.0), 0.3
    sim = crate.simulator(1, dt=DT, ground=Plane.slope(angle), friction=mu)
    sim.reset(q=_on_slope(angle, HALF[2]))
    _lawful(crate, sim, 200)
    down = np.array([np.cos(angle), 0.0, -np.sin(angle)])
    speed = sim.frame_velocity("box")[0, 3:] @ down
    expected = GRAVITY * (np.sin(angle) - mu * np.cos(angle)) * sim.state.time[0]
    assert abs(speed - expected) <= 1e-3 * expected
    np.testing.assert_allclose(sim.contacts.slip, speed, rtol=1e-6)


def test_a_box_rests_below_the_cone(crate: phistar.Robot) -> None:
    """10 s on a slope: it moves by less than a micrometre, and sticks: 1e-6 rad."""
    angle = np.radians(25.0)
    sim = crate.simulator(1, dt=4 * DT, ground=Plane.slope(angle), friction=0.6)
    start = _on_slope(angle, HALF[2])
    sim.reset(q=start)
    _lawful(crate, sim, 2500)
    q = sim.q[0]
    assert np.linalg.norm(q[:3] - start[:3]) < 1e-6
    assert np.abs(crate.difference(start, q)[:3]).max() < 1e-6
    weight = crate.model.links[-1].mass * GRAVITY
    total = sim.contact_force("crate")[0]
    np.testing.assert_allclose(total, [0.0, 0.0, weight], atol=1e-6 * weight)


def test_a_ball_bounces_to_e2_h(ball: phistar.Robot) -> None:
    """Relative 3e-3 with steps of 0.2 ms, once and twice."""
    e, height = np.array(0.7), 1.0
    sim = ball.simulator(1, dt=2e-4, ground=Plane(restitution=float(e)))
    sim.reset(q=[0.0, 0.0, 0.1 + height, 0.0, 0.0, 0.0, 1.0])
    h = _lawful(ball, sim, 6750)[:, 0, 2] - 0.1
    turns = np.flatnonzero((h[1:-1] < h[:-2]) & (h[1:-1] <= h[2:])) + 1
    first = h[turns[0] : turns[1]].max()
    second = h[turns[1] :].max()
    assert abs(first - e**2 * height) < 3e-3 * height
    assert abs(second - e**4 * height) < 3e-3 * height


def test_a_ball_rolls_down(ball: phistar.Robot) -> None:
    """A full ball that does not slip: 5/7 g sin θ, relative 1e-3; one on ice: g sin θ."""
    angle = np.radians(10.0)
    for mu, factor in ((0.5, 5.0 / 7.0), (0.0, 1.0)):
        sim = ball.simulator(1, dt=DT, ground=Plane.slope(angle), friction=mu)
        sim.reset(q=_on_slope(angle, 0.1))
        _lawful(ball, sim, 300)
        speed = np.linalg.norm(sim.frame_velocity("ball")[0, 3:])
        assert abs(speed - factor * GRAVITY * np.sin(angle) * 0.3) < 1e-3 * speed


def test_a_rolling_ball_keeps_its_speed(ball: phistar.Robot) -> None:
    """Without slip it rolls on for ever, a fast one, too; pushed, it ends with 5/7 of its speed and
    has lost 2/7 of its energy: relative 1e-9, by the laws at every step."""
    sim = ball.simulator(2, dt=DT, ground=True, friction=0.5)
    flat = np.array([0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0])
    start = np.zeros((2, 6))
    start[0, [1, 3]] = 70.0, 7.0
    start[1, 3] = 7.0
    sim.reset(q=flat, v=start)
    before = sim.energy()
    _lawful(ball, sim, 1000)
    speed = sim.frame_velocity("ball")
    expected = np.zeros((2, 6))
    expected[:, 1], expected[:, 3] = [70.0, 50.0], [7.0, 5.0]
    np.testing.assert_allclose(speed, expected, atol=7e-8)
    rest = ball.potential_energy(flat)
    np.testing.assert_allclose((sim.energy() - rest) / (before - rest), [1.0, 5 / 7], rtol=1e-9)
    assert sim.q[0, 0] == pytest.approx(7.0, rel=1e-9)


@pytest.mark.parametrize("ground", [False, True])
def test_a_thrown_box_keeps_its_momentum(ground: bool) -> None:
    """A box that tumbles about its middle axis, which is not its frame's origin: linear momentum
    but for gravity and that about the centre of mass, relative 1e-8 and 1e-4 (steps of first
    order turn it, and do not make it longer: 1e-9); energy does not rise."""
    xml = """<mujoco><option gravity="0 0 {}"/><worldbody><body name="box"><freejoint/>
    <geom name="crate" type="box" size=".2 .15 .1" pos=".1 -.2 .3"/></body></worldbody></mujoco>"""
    box = phistar.load(xml.format(0).encode())
    sim = box.simulator(1, dt=DT, ground=ground)
    sim.reset(q=[0, 0, 50.0, 0, 0, 0, 1.0], v=[1.0, 30.0, 0.5, 2.0, 1.0, 3.0])
    energy, first = sim.energy(), _own_momentum(box, sim)
    for _ in range(10):
        sim.step(substeps=100)
        now, last = _own_momentum(box, sim), sim.energy()
        assert np.abs(now[3:] - first[3:]).max() <= 1e-8 * np.linalg.norm(first[3:])
        assert np.abs(now[:3] - first[:3]).max() <= 2e-3 * np.linalg.norm(first[:3])
        assert np.linalg.norm(now[:3]) == pytest.approx(np.linalg.norm(first[:3]), rel=1e-9)
        assert last <= energy * (1.0 + 1e-12)
        energy = last
    falls = phistar.load(xml.format(-GRAVITY).encode())
    sim = falls.simulator(1, dt=DT, ground=ground)
    sim.reset(q=[0, 0, 50.0, 0, 0, 0, 1.0], v=[1.0, 30.0, 0.5, 2.0, 1.0, 3.0])
    before = _own_momentum(falls, sim)
    sim.step(substeps=500)
    weight = falls.model.links[-1].mass * GRAVITY
    gained = _own_momentum(falls, sim)[3:] - before[3:]
    np.testing.assert_allclose(gained, [0.0, 0.0, -0.5 * weight], atol=1e-8 * weight)


def _own_momentum(robot: phistar.Robot, sim: Simulator) -> np.ndarray:
    """About the centre of mass, and linear, in the world: of the only sample."""
    h = robot.momentum(sim.q, sim.v)[0]
    return np.concatenate([h[:3] - np.cross(robot.center_of_mass(sim.q)[0], h[3:]), h[3:]])


def test_three_boxes_stand() -> None:
    """A tower of equal boxes for 10 s: within 0.1 mm; the lowest carries three weights."""
    box = '<body name="b{0}"><freejoint/><geom name="g{0}" type="box" size=".1 .1 .1"/></body>'
    robot = _robot(*(box.format(i) for i in range(3)))
    sim = robot.simulator(1, dt=5e-3)
    start = np.concatenate([[0.0, 0.0, z, 0.0, 0.0, 0.0, 1.0] for z in (0.1, 0.3, 0.5)])
    sim.reset(q=start)
    # It sinks by 4 µm while the impulses of the tower are found, and is lifted again.
    _lawful(robot, sim, 2000, energy_slack=5e-6, solved=0.03)
    assert np.abs(sim.q[0] - start).max() < 1e-4
    weight = robot.model.links[-1].mass * GRAVITY
    on_ground = sim.contacts["ground"].force.sum(axis=1)[0]
    np.testing.assert_allclose(on_ground, [0.0, 0.0, 3 * weight], atol=1e-4 * weight)
    # Newton's third law: what a box feels from below and above is its weight.
    for i in range(3):
        own = sim.contacts
        felt = sum(f for f, n in zip(own.force[0], own.names, strict=True) if n == f"g{i}")
        felt = felt - sum(
            f for f, s in zip(own.force[0], own.surfaces, strict=True) if s == f"g{i}"
        )
        np.testing.assert_allclose(felt, [0.0, 0.0, weight], atol=1e-3 * weight)


def test_boxes_and_height_fields_of_the_world(ball: phistar.Robot) -> None:
    """A ball comes to rest on a box and on a field's slope at the right height; 1e-6 m."""
    place = [0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0]
    pose = np.eye(4)
    pose[:3, 3] = [0.0, 0.0, 0.1]
    on_box = ball.simulator(1, dt=DT, ground=[Plane(), Box([1.0, 1.0, 0.2], pose, name="step")])
    on_box.reset(q=place)
    _lawful(ball, on_box, 600)
    assert abs(on_box.q[0, 2] - 0.3) < 1e-6
    assert on_box.contacts["step"].touching.all()
    assert not on_box.contacts["ground"].touching.any()
    y, x = np.mgrid[0:5, 0:9]
    field = HeightField(0.1 * x * 0.5, 0.5, (-2.0, -1.0), friction=0.5)
    sim = ball.simulator(1, dt=DT, ground=field)
    sim.reset(q=[0.0, 0.0, 0.2 + 0.1 * np.hypot(1.0, 0.1), 0.0, 0.0, 0.0, 1.0])
    _lawful(ball, sim, 200)
    speed = np.linalg.norm(sim.frame_velocity("ball")[0, 3:])
    slope = np.arctan(0.1)
    assert abs(speed - 5.0 / 7.0 * GRAVITY * np.sin(slope) * 0.2) < 1e-3 * speed
    assert abs(sim.contacts.gap).max() < 1e-6
    assert y.shape == field.heights.shape


def test_a_ball_on_the_corner_of_a_box(ball: phistar.Robot) -> None:
    """Gap and normal are those of the nearest point; inside, of the nearest face."""
    box = Box([2.0, 2.0, 0.4], friction=0.5)
    sim = ball.simulator(3, dt=DT, ground=box)
    places = np.array([[1.3, 1.4, 0.2], [0.2, 0.1, 0.35], [0.9, 0.0, 0.0]])
    sim.reset(q=np.concatenate([places, np.tile([0.0, 0.0, 0.0, 1.0], (3, 1))], axis=1))
    c = sim.contacts
    np.testing.assert_allclose(c.gap[:, 0], [0.5 - 0.1, 0.15 - 0.1, -0.1 - 0.1], atol=1e-12)
    np.testing.assert_allclose(
        c.normal[:, 0], [[0.6, 0.8, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], atol=1e-12
    )


def _stand(robot: phistar.Robot) -> tuple[np.ndarray, np.ndarray]:
    """A standing configuration, and joint forces that hold it: gravity and the feet's forces."""
    q = robot.neutral()
    q[7:] = np.tile([0.0, 0.7, -1.4], 4)
    feet = [n for n in robot.frame_names if n.endswith("FOOT")]
    q[2] = 0.0125 - min(robot.frame_pose(q, f)[2, 3] for f in feet)
    hold = robot.gravity_force(q)
    weight = sum(link.mass for link in robot.model.links) * GRAVITY
    for f in feet:
        hold = hold - robot.jacobian(q, f, "world_aligned")[5] * weight / 4
    hold[:6] = 0.0
    return q, hold


def test_the_quadruped_stands_and_is_pushed() -> None:
    """10 s under PD and gravity compensation: it stands; pushed, it stays finite and comes back."""
    robot = phistar.load("quadruped")
    sim = robot.simulator(2, dt=4e-3)
    start, hold = _stand(robot)
    sim.reset(q=start)

    def pd(q: np.ndarray, v: np.ndarray, t: np.ndarray) -> np.ndarray:
        tau = np.tile(hold, (len(q), 1))
        tau[:, 6:] += 4.0 * (start[7:] - q[:, 7:]) - 0.05 * v[:, 6:]
        push = (t > 4.0) & (t < 4.1)
        tau[1, 3:6] += [0.0, 5.0, 0.0] * push[1:2]
        return tau

    weight = sum(link.mass for link in robot.model.links) * GRAVITY
    steps = LawfulSteps(robot, sim)
    for _ in range(2500):
        steps.take(pd(sim.q, sim.v, sim.state.time))
    steps.require_laws()
    assert np.abs(sim.q[0] - start).max() < 0.02
    np.testing.assert_allclose(
        sim.contacts["ground"].force.sum(axis=1)[0], [0, 0, weight], atol=1e-3 * weight
    )
    assert abs(sim.q[1, 2] - start[2]) < 0.02
    assert np.abs(sim.v).max() < 0.1


@pytest.mark.parametrize(("sweeps", "steps", "solved"), [(20, 1000, 5.0), (400, 300, 4e-3)])
def test_a_dropped_quadruped_gains_no_energy(sweeps: int, steps: int, solved: float) -> None:
    """Unactuated, it falls on its feet and collapses, joints hitting their stops: laws at every
    step, and energy rises by no more than first-order steps of fast legs make of it. 20 rounds do
    not solve the hardest impacts, which then lose energy; 400 do."""
    robot = phistar.load("quadruped")
    sim = robot.simulator(1, dt=1e-3, sweeps=sweeps)
    start, _ = _stand(robot)
    start[2] += 0.05
    sim.reset(q=start)
    motion = LawfulSteps(robot, sim)
    motion.take(steps=steps)
    motion.require_laws(energy_slack=1e-4, solved=solved)
    energy = motion.energy()[:, 0]
    assert energy[-1] < energy[0] - 0.1 * motion.weight
    stops = [np.abs(x[0, : len(sim._bounded)]).max() for x in motion._impulses]
    assert max(stops) > 0.0


def test_impulses_that_no_longer_fit_add_no_energy(crate: phistar.Robot) -> None:
    """A start that is far too large, and one round of the solver: energy does not rise."""
    sim = crate.simulator(1, dt=DT, sweeps=1)
    sim.reset(q=[0.0, 0.0, HALF[2], 0.0, 0.0, 0.0, 1.0], v=[0.0, 0.0, 0.0, 0.3, 0.0, 0.0])
    sim._state.impulses[:] = np.tile([5.0, -1.0, 1.0], 4)
    motion = LawfulSteps(crate, sim)
    motion.take()
    motion.require_laws(solved=5.0)  # one round does not solve it


def test_balls_of_two_trees_collide() -> None:
    """Head on, without ground: momentum is kept, an inelastic impact leaves a common speed, and
    what one feels the other feels the other way; a capsule's end, too."""
    other = '<body name="rod"><freejoint/><geom name="rod" type="capsule" size=".05 .2"/></body>'
    robot = _robot(BALL, other)
    sim = robot.simulator(1, dt=DT, ground=[], friction=0.4)
    # The rod lies along x, its end at -0.2 - 0.05.
    turn = np.sqrt(0.5)
    q = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.4, 0.0, 0.0, 0.0, turn, 0.0, turn]
    sim.reset(q=q, v=[0, 0, 0, 1.0, 0, 0] + [0.0] * 6)
    assert sorted(set(sim.contacts.surfaces)) == ["rod"]
    assert sim.contacts.gap.min() == pytest.approx(0.4 - 0.2 - 0.05 - 0.1, abs=1e-12)
    before = robot.momentum(sim.q, sim.v)[0]
    time = 0.1
    motion = LawfulSteps(robot, sim)
    motion.take(steps=round(time / DT))
    motion.require_laws(energy_slack=1e-9)
    masses = [link.mass for link in robot.model.links[1:]]
    after = robot.momentum(sim.q, sim.v)[0]
    fallen = -sum(masses) * GRAVITY * time
    np.testing.assert_allclose(after[3:] - before[3:], [0.0, 0.0, fallen], atol=1e-9)
    common = masses[0] / sum(masses)
    speeds = [sim.frame_velocity(name)[0, 3] for name in ("ball", "rod")]
    np.testing.assert_allclose(speeds, common, rtol=1e-9)


def test_a_robot_and_a_free_body_in_one_forest() -> None:
    """An arm swings into a box on the ground and shoves it: laws at every step for both trees."""
    arm = """<body name="arm" pos="0 0 1"><joint name="shoulder" axis="0 1 0"/>
    <geom name="club" type="capsule" size=".05 .4" pos="0 0 -.4"/></body>"""
    crate = """<body name="box"><freejoint/>
    <geom name="crate" type="box" size=".1 .1 .15" mass="0.5"/></body>"""
    robot = _robot(arm, crate)
    sim = robot.simulator(1, dt=DT, friction=0.3, sweeps=40)
    sim.reset(q=[0.9, -0.2, 0.0, 0.15, 0.0, 0.0, 0.0, 1.0])
    motion = LawfulSteps(robot, sim)
    motion.take(steps=700)
    motion.require_laws(energy_slack=5e-5, solved=1e-4)  # of first order, by the swing
    felt = [np.abs(x[0]).max() for x in motion._impulses]
    assert max(felt) > 0.01
    assert sim.q[0, 1] > 0.2
    names = set(zip(sim.contacts.names, sim.contacts.surfaces, strict=True))
    assert names == {("club", "ground"), ("crate", "ground"), ("club", "crate")}


def test_two_robots_of_two_files_touch() -> None:
    """Put beside each other by ``attach``: one arm swings into the other, which gives way; what one
    feels the other feels the other way, by the laws at every step."""
    swing = """<body name="arm" pos="0 0 1"><joint name="shoulder" axis="0 1 0"/>
    <geom name="club" type="capsule" size=".05 .4" pos="0 0 -.4"/></body>"""
    gate = """<body name="door" pos="0 0 1"><joint name="pin" axis="0 1 0" damping="0"/>
    <geom name="board" type="box" size=".02 .2 .45" pos="0 0 -.5"/></body>"""
    beside = np.eye(4)
    beside[0, 3] = -0.4
    robot = _robot(swing).attach(_robot(gate), "world", beside, prefix="b_")
    assert robot.joint_names == ("shoulder", "b_pin")
    assert robot.frame_pose(robot.home, "b_door")[0, 3] == pytest.approx(-0.4)
    sim = robot.simulator(1, dt=DT, ground=[], friction=0.3)
    assert set(sim.contacts.surfaces) == {"b_board"}
    sim.reset(q=[-1.0, 0.0])
    motion = LawfulSteps(robot, sim)
    motion.take(steps=600)
    motion.require_laws(energy_slack=3e-4)  # of first order, by the swing
    assert max(np.abs(x).max() for x in motion._impulses) > 0.1
    assert np.abs(motion.q[:, 0, 1]).max() > 0.05


CAN = '<body name="can"><freejoint/><geom name="can" type="cylinder" size=".1 .2"/></body>'


@pytest.fixture(scope="module")
def can() -> phistar.Robot:
    """A full cylinder, 0.1 m in radius and 0.4 m long."""
    return _robot(CAN)


def test_gaps_of_cylinders(can: phistar.Robot) -> None:
    """However it lies: the least gap to a plane and to a box's face is that of the nearest of many
    points of its rims; the chosen points are on the rims; 1e-12 and the fineness of the points."""
    rng = np.random.default_rng(3)
    places = np.array([0.0, 0.0, 1.0]) + rng.uniform(-0.05, 0.05, (24, 3))
    turns = rng.normal(size=(24, 4))
    turns[0], turns[1] = [0.0, 0.0, 0.0, 1.0], [0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5)]
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    box = Box([4.0, 4.0, 0.2], name="table")
    sim = can.simulator(24, dt=DT, ground=[Plane((0.1, 0.2, 1.0), 0.05), box])
    sim.reset(q=np.concatenate([places, turns], axis=1))
    pose = can.frame_pose(sim.q, "can")
    angle = np.linspace(0.0, 2 * np.pi, 2001)
    rim = 0.1 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=-1)
    local = np.concatenate([rim + np.array([0.0, 0.0, z]) for z in (-0.2, 0.2)])
    points = np.einsum("bij,kj->bki", pose[:, :3, :3], local) + pose[:, None, :3, 3]
    n = np.array([0.1, 0.2, 1.0]) / np.linalg.norm([0.1, 0.2, 1.0])
    for name, gaps in (("ground", points @ n - 0.05), ("table", points[..., 2] - 0.1)):
        c = sim.contacts[name]
        np.testing.assert_allclose(c.gap.min(axis=1), gaps.min(axis=1), atol=1e-6)
        seen = np.einsum("bji,bkj->bki", pose[:, :3, :3], c.position - pose[:, None, :3, 3])
        rims = slice(0, 6)  # and the side, which touches boxes
        np.testing.assert_allclose(np.abs(seen[:, rims, 2]), 0.2, atol=1e-12)
        np.testing.assert_allclose(np.hypot(*seen[:, rims, :2].T), 0.1, atol=1e-12)


def test_a_cylinder_rolls_stands_and_slides(can: phistar.Robot) -> None:
    """Rolling 2/3 g sin θ, sliding on its end g (sin θ - μ cos θ), relative 1e-3; standing on a
    box it does not move by a micrometre in 2 s; laws at every step."""
    angle, mu = np.radians(15.0), 0.1
    lying = _on_slope(angle, 0.1)
    axis_across = np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])
    half = 0.5 * angle
    tilt = np.array([0.0, np.sin(half), 0.0, np.cos(half)])
    lying[3:] = _product(tilt, axis_across)
    for friction, start, gain in (
        (0.6, lying, 2.0 / 3.0 * np.sin(angle)),
        (mu, _on_slope(angle, 0.2), np.sin(angle) - mu * np.cos(angle)),
    ):
        sim = can.simulator(1, dt=DT, ground=Plane.slope(angle), friction=friction)
        sim.reset(q=start)
        _lawful(can, sim, 200, energy_slack=1e-7, solved=4e-3)
        speed = np.linalg.norm(sim.frame_velocity("can")[0, 3:])
        assert abs(speed - gain * GRAVITY * 0.2) < 1e-3 * speed
    sim = can.simulator(1, dt=4 * DT, ground=Box([1.0, 1.0, 0.2], friction=0.5))
    start = [0.1, 0.2, 0.3, 0.0, 0.0, 0.0, 1.0]
    sim.reset(q=start)
    # It sinks by 26 nm while the impulses of five points are found, and is lifted again.
    _lawful(can, sim, 500, energy_slack=5e-8, solved=1e-3)
    assert np.abs(sim.q[0] - start).max() < 1e-6


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of quaternions (x, y, z, w)."""
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.r_[vector, a[3] * b[3] - a[:3] @ b[:3]]
