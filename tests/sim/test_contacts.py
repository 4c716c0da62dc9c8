# SPDX-License-Identifier: BSD-3-Clause
"""Contacts: closed forms of sliding, rolling, resting, bouncing; laws at every step."""

import numpy as np
import pytest

import phistar
from phistar.sim import Box, HeightField, Plane
from phistar.sim.simulator import Simulator

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


def _require_laws(sim: Simulator) -> None:
    """Forces push and stay in the cone; with the weight they are the rate of the momentum."""
    c = sim.contacts
    assert (c.normal_force >= -1e-9).all()
    slack = 1e-9 * (1.0 + c.normal_force)
    assert (c.tangential_force <= c.friction * c.normal_force + slack).all()


def _momentum(robot: phistar.Robot, sim: Simulator) -> np.ndarray:
    return np.asarray(robot.momentum(sim.q, sim.v))


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
    mass = crate.model.links[-1].mass
    energy = sim.energy()
    for _ in range(200):
        before = _momentum(crate, sim)
        sim.step()
        _require_laws(sim)
        assert (sim.energy() <= energy + 1e-9).all()
        energy = sim.energy()
        # Newton: what the ground gives, with the weight, is the change of momentum.
        c = sim.contacts
        force = c.force.sum(axis=1) + mass * crate.model.gravity
        change = (_momentum(crate, sim) - before)[:, 3:] / DT
        np.testing.assert_allclose(change, force, atol=1e-6 * mass * GRAVITY)
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
    q = sim.step(substeps=2500).q[0]
    assert np.linalg.norm(q[:3] - start[:3]) < 1e-6
    assert np.abs(crate.difference(start, q)[:3]).max() < 1e-6
    weight = crate.model.links[-1].mass * GRAVITY
    total = sim.contact_force("crate")[0]
    np.testing.assert_allclose(total, [0.0, 0.0, weight], atol=1e-6 * weight)


def test_a_ball_bounces_to_e2_h(ball: phistar.Robot) -> None:
    """Relative 2e-3 with steps of 0.1 ms, once and twice; energy never rises."""
    e, height = np.array(0.7), 1.0
    sim = ball.simulator(1, dt=1e-4, ground=Plane(restitution=float(e)))
    sim.reset(q=[0.0, 0.0, 0.1 + height, 0.0, 0.0, 0.0, 1.0])
    heights, energies = [], []
    for _ in range(2700):
        sim.step(substeps=5)
        heights.append(sim.q[0, 2] - 0.1)
        energies.append(sim.energy()[0])
    assert (np.diff(energies) <= 1e-9).all()
    h = np.array(heights)
    turns = np.flatnonzero((h[1:-1] < h[:-2]) & (h[1:-1] <= h[2:])) + 1
    first = h[turns[0] : turns[1]].max()
    second = h[turns[1] :].max()
    assert abs(first - e**2 * height) < 2e-3 * height
    assert abs(second - e**4 * height) < 2e-3 * height


def test_a_ball_rolls_down(ball: phistar.Robot) -> None:
    """A full ball that does not slip: 5/7 g sin θ, relative 1e-3; one on ice: g sin θ."""
    angle = np.radians(10.0)
    for mu, factor in ((0.5, 5.0 / 7.0), (0.0, 1.0)):
        sim = ball.simulator(1, dt=DT, ground=Plane.slope(angle), friction=mu)
        sim.reset(q=_on_slope(angle, 0.1))
        sim.step(substeps=300)
        _require_laws(sim)
        speed = np.linalg.norm(sim.frame_velocity("ball")[0, 3:])
        assert abs(speed - factor * GRAVITY * np.sin(angle) * 0.3) < 1e-3 * speed


def test_three_boxes_stand() -> None:
    """A tower of equal boxes for 10 s: within 0.1 mm; the lowest carries three weights."""
    box = '<body name="b{0}"><freejoint/><geom name="g{0}" type="box" size=".1 .1 .1"/></body>'
    robot = _robot(*(box.format(i) for i in range(3)))
    sim = robot.simulator(1, dt=5e-3)
    start = np.concatenate([[0.0, 0.0, z, 0.0, 0.0, 0.0, 1.0] for z in (0.1, 0.3, 0.5)])
    sim.reset(q=start)
    for _ in range(4):
        sim.step(substeps=500)
        _require_laws(sim)
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
    on_box.step(substeps=600)
    assert abs(on_box.q[0, 2] - 0.3) < 1e-6
    assert on_box.contacts["step"].touching.all()
    assert not on_box.contacts["ground"].touching.any()
    y, x = np.mgrid[0:5, 0:9]
    field = HeightField(0.1 * x * 0.5, 0.5, (-2.0, -1.0), friction=0.5)
    sim = ball.simulator(1, dt=DT, ground=field)
    sim.reset(q=[0.0, 0.0, 0.2 + 0.1 * np.hypot(1.0, 0.1), 0.0, 0.0, 0.0, 1.0])
    sim.step(substeps=200)
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
    for _ in range(10):
        sim.run(pd, 250)
        _require_laws(sim)
        assert np.isfinite(sim.q).all()
    assert np.abs(sim.q[0] - start).max() < 0.02
    np.testing.assert_allclose(
        sim.contacts["ground"].force.sum(axis=1)[0], [0, 0, weight], atol=1e-3 * weight
    )
    assert abs(sim.q[1, 2] - start[2]) < 0.02
    assert np.abs(sim.v).max() < 0.1
