# SPDX-License-Identifier: BSD-3-Clause
"""Sides of capsules and cylinders, crossing edges of boxes: gaps by MuJoCo, laws at every step."""

from __future__ import annotations

from itertools import product

import mujoco
import numpy as np
import pytest

import phistar
from phistar.sim import Box, Plane
from tests.sim.contact_laws import LawfulSteps

DT = 1e-3
SIZES = {"sphere": ".12", "capsule": ".07 .2", "cylinder": ".1 .2", "box": ".2 .15 .1"}


def _xml(*bodies: tuple[str, str]) -> str:
    made = "".join(
        f'<body name="b{i}"><freejoint/><geom name="g{i}" type="{kind}" size="{size}"/></body>'
        for i, (kind, size) in enumerate(bodies)
    )
    return f"<mujoco><worldbody>{made}</worldbody></mujoco>"


def _load(*bodies: tuple[str, str]) -> phistar.Robot:
    return phistar.load(_xml(*bodies).encode())


def _distances(xml: str, q: np.ndarray) -> np.ndarray:
    """Of the two geoms, by MuJoCo, (batch,)."""
    model = mujoco.MjModel.from_xml_string(xml)
    data, found = mujoco.MjData(model), []
    for each in q.reshape(-1, 2, 7):
        data.qpos[:] = np.concatenate([each[:, :3], each[:, 6:], each[:, 3:6]], axis=1).ravel()
        mujoco.mj_kinematics(model, data)
        found.append(mujoco.mj_geomDistance(model, data, 0, 1, 10.0, None))
    return np.array(found)


def _scattered(count: int, apart: float) -> np.ndarray:
    rng = np.random.default_rng(3)
    q = np.zeros((count, 2, 7))
    q[..., 3:] = rng.normal(size=(count, 2, 4))
    q[..., 3:] /= np.linalg.norm(q[..., 3:], axis=-1, keepdims=True)
    way = rng.normal(size=(count, 3))
    q[:, 1, :3] = apart * way / np.linalg.norm(way, axis=-1, keepdims=True)
    return q.reshape(count, 14)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (a, b)
        for a, b in product(["sphere", "capsule"], SIZES)
        if (a, b) not in (("sphere", "sphere"), ("capsule", "sphere"))
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_gaps_are_those_of_mujoco(first: str, second: str, turned: bool) -> None:
    """The smallest gap of two shapes anywhere near each other is their distance: 1e-5 m, the
    accuracy of MuJoCo's search, 2e-3 m of a capsule 20 cm above a cylinder's rim; both ways
    round."""
    kinds = (second, first) if turned else (first, second)
    bodies = [(kind, SIZES[kind]) for kind in kinds]
    q = _scattered(60, 0.5)
    sim = _load(*bodies).simulator(len(q), dt=DT, ground=[])
    sim.reset(q=q)
    known = _distances(_xml(*bodies), q)
    apart = known > 1e-3
    assert apart.sum() > 30
    slack = 2e-3 if kinds.count("cylinder") and kinds.count("capsule") else 1e-5
    np.testing.assert_allclose(sim.contacts.gap.min(axis=1)[apart], known[apart], atol=slack)


def test_gaps_of_boxes_and_cylinders_are_not_below_their_distance() -> None:
    """Boxes on boxes and cylinders: what is found is the distance by MuJoCo where edges cross or
    sides touch, and never a penetration where there is none."""
    for kinds in (("box", "box"), ("cylinder", "box")):
        bodies = [(kind, SIZES[kind]) for kind in kinds]
        q = _scattered(200, 0.42)
        sim = _load(*bodies).simulator(len(q), dt=DT, ground=[])
        sim.reset(q=q)
        known, gaps = _distances(_xml(*bodies), q), sim.contacts.gap
        reached = gaps.min(axis=1) < 100.0
        apart = (known > 1e-3) & reached
        nearest = gaps.min(axis=1)[apart] - known[apart]
        assert apart.sum() > 50
        assert (gaps.min(axis=1)[apart] > 0.0).all()
        assert (np.abs(nearest) < 1e-5).sum() > 15


def _at(*places: tuple[float, ...]) -> np.ndarray:
    """Coordinates of bodies at places, turned about axes: (x, y, z, rotation vector)."""
    found = []
    for place in places:
        turn = np.array(place[3:] or (0.0, 0.0, 0.0))
        angle = np.linalg.norm(turn)
        found += [*place[:3], *(0.5 * np.sinc(angle / (2 * np.pi)) * turn), np.cos(0.5 * angle)]
    return np.array(found)


RESTING = {
    # Two planks across each other: no corner of one is over the other.
    "planks": ((("box", ".5 .1 .05"), ("box", ".1 .5 .05")), ((0, 0, 0.05), (0, 0, 0.15))),
    # Turned by 45 degrees: four of the eight crossings carry it.
    "octagon": (
        (("box", ".2 .2 .05"), ("box", ".2 .2 .05")),
        ((0, 0, 0.05), (0, 0, 0.15, 0, 0, np.pi / 4)),
    ),
    # A capsule that lies over both edges of a box, and a box on a lying capsule's middle.
    "capsule over a box": (
        (("box", ".1 .3 .2"), ("capsule", ".05 .3")),
        ((0, 0, 0.2), (0, 0, 0.45, 0, np.pi / 2, 0)),
    ),
    "cylinder over a box": (
        (("box", ".1 .3 .2"), ("cylinder", ".05 .3")),
        ((0, 0, 0.2), (0, 0, 0.45, 0, np.pi / 2, 0)),
    ),
    "box over two capsules": (
        (("capsule", ".1 .3"), ("capsule", ".1 .3"), ("box", ".3 .1 .05")),
        ((0.2, 0, 0.1, np.pi / 2, 0, 0), (-0.2, 0, 0.1, np.pi / 2, 0, 0), (0, 0, 0.25)),
    ),
    "capsules across": (
        (("capsule", ".1 .3"), ("capsule", ".1 .3"), ("capsule", ".05 .4")),
        (
            (0.2, 0, 0.1, np.pi / 2, 0, 0),
            (-0.2, 0, 0.1, np.pi / 2, 0, 0),
            (0, 0, 0.25, 0, np.pi / 2, 0),
        ),
    ),
}


@pytest.mark.parametrize("name", RESTING)
def test_what_lies_on_the_middle_of_others_stays(name: str) -> None:
    """One second on each other: within 0.1 mm, by the laws at every step; the weight is carried."""
    bodies, places = RESTING[name]
    robot = _load(*bodies)
    sim = robot.simulator(1, dt=2 * DT, sweeps=60)
    start = _at(*places)
    sim.reset(q=start)
    motion = LawfulSteps(robot, sim)
    motion.take(steps=500)
    motion.require_laws(energy_slack=1e-5, solved=0.05)
    assert np.abs(sim.q[0] - start).max() < 1e-4
    last, total = len(bodies) - 1, sum(link.mass for link in robot.model.links) * 9.81
    weight = robot.model.links[-1].mass * 9.81
    for top in (f"g{last}", f"b{last}"):
        held = sim.contact_force(top)[0]
        np.testing.assert_allclose(held, [0.0, 0.0, weight], atol=2e-3 * weight)
    np.testing.assert_allclose(sim.contact_force("ground")[0, 2], -total, rtol=2e-3)


def test_edges_of_two_boxes_meet() -> None:
    """A box comes edge first onto the edge of one in free fall: they go on together, at the height
    where both edges meet, with half of the speed each; without edges it went through."""
    robot = _load(("box", ".3 .1 .1"), ("box", ".1 .3 .1"))
    sim = robot.simulator(1, dt=DT, ground=Plane(offset=-10.0), sweeps=60)
    up = 0.1 * np.sqrt(2.0)
    quarter = np.pi / 4
    sim.reset(q=_at((0, 0, 0, quarter, 0, 0), (0, 0, 2 * up + 1e-3, 0, quarter, 0)), v=_down(1.0))
    motion = LawfulSteps(robot, sim)
    motion.take(steps=20)
    motion.require_laws(energy_slack=1e-5)
    apart = sim.q[0, 9] - sim.q[0, 2]
    assert apart == pytest.approx(2 * up, abs=1e-5)
    speeds = sim.frame_velocity("b0")[0, 5], sim.frame_velocity("b1")[0, 5]
    np.testing.assert_allclose(speeds, -0.5 - 9.81 * 0.02, rtol=1e-9)


def _down(speed: float) -> np.ndarray:
    """The second body comes down; velocities are seen from its axes, turned about y by 45°."""
    v = np.zeros(12)
    v[[9, 11]] = speed * np.sqrt(0.5), -speed * np.sqrt(0.5)
    return v


def test_a_plank_on_a_block_of_the_world() -> None:
    """Over both sides of a block, whose corners carry it, and across a beam, edges over edges."""
    for size, turn in (((0.2, 0.1, 0.2), 0.0), ((0.2, 2.0, 0.2), 0.0), ((0.2, 2.0, 0.2), 0.4)):
        robot = _load(("box", ".5 .15 .05"))
        block = Box(size)
        sim = robot.simulator(1, dt=2 * DT, ground=[block])
        start = _at((0.02, 0, 0.15, 0, 0, turn))
        sim.reset(q=start)
        motion = LawfulSteps(robot, sim)
        motion.take(steps=300)
        motion.require_laws(energy_slack=1e-5, solved=1e-3)
        assert np.abs(sim.q[0] - start).max() < 1e-4


ARM = """<mujoco><worldbody><body name="base" pos="0 0 2">{free}
<geom name="base" type="box" size=".2 .1 .1" contype="{bits}" conaffinity="{bits}"/>
<body name="upper" pos=".2 0 0"><joint axis="0 1 0" range="-170 170"/>
<geom name="upper" type="capsule" fromto="0 0 0 .4 0 0" size=".05"/>
<body name="lower" pos=".4 0 0"><joint axis="0 1 0"/><joint axis="1 0 0"/>
<geom name="lower" type="capsule" fromto=".1 0 0 .5 0 0" size=".05" mass=".5"/></body></body></body>
</worldbody>{more}</mujoco>"""


def _arm(free: str = "", bits: int = 1, more: str = "") -> phistar.Robot:
    return phistar.load(ARM.format(free=free, bits=bits, more=more).encode())


def test_links_of_one_robot_touch_if_asked_for() -> None:
    """A floating arm folds until its end hits its base: laws at every step, no force on the whole;
    by default it goes through. Links that a joint connects never touch."""
    robot = _arm("<freejoint/>")
    names = {}
    for wanted in (False, True, [("lower", "base")]):
        sim = robot.simulator(1, dt=DT, ground=False, self_contact=wanted, sweeps=400)
        q = robot.neutral()
        q[2], q[-3:] = 5.0, [0.3, 2.2, 0.1]
        v = np.zeros(robot.nv)
        v[-2] = 4.0
        sim.reset(q=q, v=v)
        motion = LawfulSteps(robot, sim)
        if wanted:
            names[str(wanted)] = set(zip(sim.contacts.names, sim.contacts.surfaces, strict=True))
            motion.take(steps=250)
            motion.require_laws(energy_slack=2e-3, solved=1e-5)
            assert max(np.abs(x).max() for x in motion._impulses) > 0.01
            assert sim.contacts.gap.min() > -1e-4
        else:
            sim.step(substeps=250)
            through = sim.q[0, -2]
            continue
        assert sim.q[0, -2] < through - 0.1
        h, first = robot.momentum(sim.q, sim.v)[0], robot.momentum(q, v)
        fall = robot.model.total_mass * 9.81 * sim.state.time[0]
        np.testing.assert_allclose(h[3:] - first[3:], [0.0, 0.0, -fall], atol=2e-3 * fall)
    assert names["True"] == {("lower", "base")} == names["[('lower', 'base')]"]


def test_what_the_file_excludes_does_not_touch() -> None:
    """``<exclude>``, and bits of contype and conaffinity; the pairs are MuJoCo's."""
    without = '<contact><exclude body1="lower" body2="base"/></contact>'
    free = "<freejoint/>"
    cases = ((_arm(free), 3), (_arm(free, more=without), 0), (_arm(free, bits=2), 0))
    for robot, many in cases:
        assert len(robot.simulator(1, dt=DT, ground=False, self_contact=True)._pairs) == many
    first, _, _ = (case[0] for case in cases)
    both = first.attach(_arm(more=without), "world", np.eye(4), prefix="b_")
    assert {link.name: link.excluded for link in both.model.links}["b_base"] == ("b_lower",)
    with pytest.raises(phistar.errors.ArgumentError, match="self_contact is 'base'"):
        first.simulator(1, dt=DT, self_contact="base")
    with pytest.raises(phistar.errors.UnknownNameError, match="bas"):
        first.simulator(1, dt=DT, self_contact=[("bas", "lower")])
