# SPDX-License-Identifier: BSD-3-Clause
"""Derivatives of simulated motions beside differences of them, forward ones beside adjoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phistar
from phistar import Robot
from phistar.arrays import Array
from phistar.control import QuadraticCost
from phistar.errors import ArgumentError, UnknownNameError
from phistar.model import ModelBuilder
from phistar.sim import Simulation
from phistar.thresholds import POLICY

STEPS, DT = 8, 2e-3
CASES = [
    *(("double_pendulum", scheme) for scheme in ("euler", "semi_implicit", "midpoint", "implicit")),
    *(("quadruped", scheme) for scheme in ("semi_implicit", "rk4")),
]


def _sprung(joint: str = "", field: str = "", more: float = 0.0) -> Robot:
    """A pendulum on a slide with springs, dampers and rotors, one number of which is changed."""
    builder = ModelBuilder("sprung")
    builder.link("ground")
    builder.link("cart", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    builder.link("pole", 0.5, (0, 0, -0.4), (0.05, 0.05, 0.01))
    for name, kind, parent, child, axis in (
        ("slide", "prismatic", "ground", "cart", (1, 0, 0)),
        ("hinge", "revolute", "cart", "pole", (0, 1, 0)),
    ):
        physics: dict[str, Any] = {"damping": 0.3, "stiffness": 5.0, "armature": 0.02}
        if name == joint:
            physics[field] += more
        builder.joint(name, kind, parent, child, axis=axis, **physics)
    return Robot(builder.build())


class Motion:
    """Two samples of a robot, simulated again from nearby starts, forces or parameters."""

    def __init__(self, robot: Robot, scheme: str, passive: Any = False) -> None:
        rng = np.random.default_rng(1)
        self.robot, self.rng = robot, rng
        self.q = robot.random_configuration(rng, 2)
        self.v = 0.3 * rng.normal(size=(2, robot.nv))
        self.tau = 0.1 * rng.normal(size=(STEPS, 2, robot.nv))
        self.options = {"dt": DT, "steps": STEPS, "scheme": scheme, "passive": passive}

    def run(self, robot: Robot | None = None, **changed: Array) -> Simulation:
        """A simulation with something changed."""
        at = {"q": self.q, "v": self.v, "tau": self.tau, **changed}
        chosen = self.robot if robot is None else robot
        return chosen.simulate(
            at["q"], at["v"], tau_steps=at["tau"], progress=False, **self.options
        )

    def difference(self, moved: Callable[[float], Simulation], h: float) -> Array:
        """(2, 2 nv) the change of the last state per unit, by four simulations, error h⁴."""
        base = self.run()

        def slope(length: float) -> Array:
            ahead, back = moved(length), moved(-length)
            steps = [self.robot.difference(base.q[-1], each.q[-1]) for each in (ahead, back)]
            rates = ahead.v[-1] - back.v[-1]
            return np.concatenate([steps[0] - steps[1], rates], axis=-1) / (2 * length)

        return (4 * slope(h) - slope(2 * h)) / 3


def _agree(found: Array, expected: Array, relative: float) -> None:
    assert np.abs(found - expected).max() < relative * np.abs(expected).max()


@pytest.mark.parametrize(("name", "scheme"), CASES)
def test_start_and_inertia(name: str, scheme: str) -> None:
    """A change of the start, 1e-7; one of all inertial parameters, 1e-6."""
    robot = phistar.load(name)
    motion = Motion(robot, scheme)
    found = motion.run().sensitivity("inertia")
    nv = robot.nv
    way = motion.rng.normal(size=(2, 2 * nv))
    expected = motion.difference(
        lambda h: motion.run(
            q=robot.integrate(motion.q, h * way[:, :nv]), v=motion.v + h * way[:, nv:]
        ),
        1e-4,
    )
    start = np.concatenate([found.q_start[-1], found.v_start[-1]], axis=-2)
    _agree((start @ way[..., None])[..., 0], expected, 1e-7)
    own = robot.parameters
    np.testing.assert_array_equal(found.values, own)
    change = 0.01 * own * motion.rng.normal(size=own.shape)
    expected = motion.difference(
        lambda h: motion.run(robot.with_parameters(own + h * change)), 0.05
    )
    _agree(np.concatenate([found.q[-1] @ change, found.v[-1] @ change], axis=-1), expected, 1e-6)


@pytest.mark.parametrize("scheme", ["semi_implicit", "implicit", "rk4"])
def test_numbers_of_joints(scheme: str) -> None:
    """Dampers, springs, rotors and offsets, one by one, 1e-7."""
    robot = _sprung()
    motion = Motion(robot, scheme, passive={"springs", "damping"})
    groups = ["viscous", "spring", "rotor", "offset"]
    found = motion.run().sensitivity(groups)
    assert found.names == tuple(f"{g}.{j}" for g in groups for j in ("slide", "hinge"))
    np.testing.assert_array_equal(found.values, [0.3] * 2 + [5.0] * 2 + [0.02] * 2 + [0.0] * 2)
    for place, name in enumerate(found.names):
        expected = motion.difference(lambda h, name=name: _changed(motion, name, h), 1e-3)
        own = np.concatenate([found.q[-1, ..., place], found.v[-1, ..., place]], axis=-1)
        _agree(own, expected, 1e-7)


def _changed(motion: Motion, name: str, h: float) -> Simulation:
    kind, joint = name.split(".")
    if kind == "offset":
        entry = motion.robot.joint_names.index(joint)
        return motion.run(tau=motion.tau - h * np.eye(2)[entry])
    field = {"viscous": "damping", "spring": "stiffness", "rotor": "armature"}[kind]
    return motion.run(_sprung(joint, field, h))


RUBBING = {"slide": 0.4, "hinge": 9.0}
"""Dry friction: the slide keeps sliding, the hinge comes to rest within a few steps."""


@pytest.mark.parametrize("scheme", ["semi_implicit", "implicit", "rk4"])
def test_dry_friction(scheme: str) -> None:
    """Joints that slide and joints that come to rest and are held: start, forces, parameters, 1e-6;
    adjoint as forward, 1e-12.
    """
    robot = _sprung().with_joint_physics(friction=RUBBING)
    motion = Motion(robot, scheme, passive={"springs", "damping", "friction"})
    motion.q, motion.v = 0.1 * motion.q, np.array([[0.4, 0.3], [-0.5, 0.25]])
    sim = motion.run()
    rates = np.abs(sim.v[1:])
    assert (rates[..., 0] > 1e-3).all()
    assert (rates[-1, :, 1] < 1e-4).all()
    assert (rates[0, :, 1] > 1e-3).any()
    groups = ["coulomb", "viscous", "rotor", "m.pole"]
    found = sim.sensitivity(groups)
    assert found.names[:2] == ("coulomb.slide", "coulomb.hinge")
    np.testing.assert_array_equal(found.values[:2], [0.4, 9.0])
    way = motion.rng.normal(size=(2, 4))
    expected = motion.difference(
        lambda h: motion.run(q=motion.q + h * way[:, :2], v=motion.v + h * way[:, 2:]), 1e-4
    )
    start = np.concatenate([found.q_start[-1], found.v_start[-1]], axis=-2)
    _agree((start @ way[..., None])[..., 0], expected, 1e-6)
    for place, name in enumerate(found.names):
        expected = motion.difference(lambda h, name=name: _rubbing(motion, name, h), 1e-4)
        own = np.concatenate([found.q[-1, ..., place], found.v[-1, ..., place]], axis=-1)
        _agree(own, expected, 1e-6)
    cost = QuadraticCost(robot, robot.neutral(), tau=np.zeros(robot.nv))
    back = sim.gradient(cost, groups)
    slopes = cost.expansion(sim.q, sim.v, sim.tau, DT).x
    whole = np.concatenate([found.q, found.v], axis=-2)
    expected = (np.swapaxes(whole, -1, -2) @ slopes[..., None])[..., 0].sum(axis=0)
    _agree(back.parameters, expected, 1e-12)
    way = motion.rng.normal(size=motion.tau.shape)

    def value(h: float) -> Array:
        moved = motion.run(tau=motion.tau + h * way)
        return cost.value(moved.q, moved.v, moved.tau, DT)

    _agree((back.tau * way).sum(axis=(0, 2)), (value(1e-5) - value(-1e-5)) / 2e-5, 1e-6)


def _rubbing(motion: Motion, name: str, h: float) -> Simulation:
    """The motion with one parameter changed."""
    kind, where = name.split(".")
    robot = motion.robot
    if kind == "m":
        more = np.zeros(20)
        more[10] = h
        return motion.run(robot.with_parameters(robot.parameters + more))
    field = {"coulomb": "friction", "viscous": "damping", "rotor": "armature"}[kind]
    own = {"friction": RUBBING, "damping": {where: 0.3}, "armature": {where: 0.02}}[field]
    return motion.run(robot.with_joint_physics(**{field: {where: own[where] + h}}))


def test_the_first_bit_of_dry_friction() -> None:
    """Of a robot without friction: the slope towards having some, 1e-5 by a difference."""
    motion = Motion(_sprung(), "semi_implicit", passive={"springs", "damping", "friction"})
    found = motion.run().sensitivity("coulomb")
    little = 1e-6
    for place, joint in enumerate(("slide", "hinge")):
        moved = motion.run(motion.robot.with_joint_physics(friction={joint: little}))
        slope = (moved.v[-1] - motion.run().v[-1]) / little
        _agree(found.v[-1, ..., place], slope, 1e-5)


@pytest.mark.parametrize("name", ["double_pendulum", "quadruped"])
def test_adjoint(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sweep back gives what all forward derivatives give, 1e-12, in pieces too; forces 1e-6."""
    robot = phistar.load(name)
    motion = Motion(robot, "rk4")
    cost = QuadraticCost(robot, robot.neutral(), tau=np.zeros(robot.nv))
    sim = motion.run()
    forward, back = sim.sensitivity("inertia"), sim.gradient(cost, "inertia")
    slopes = cost.expansion(sim.q, sim.v, sim.tau, DT).x
    for along, found in (
        ((forward.q, forward.v), back.parameters),
        ((forward.q_start, forward.v_start), np.concatenate([back.q, back.v], axis=-1)),
    ):
        whole = np.concatenate(along, axis=-2)
        expected = (np.swapaxes(whole, -1, -2) @ slopes[..., None])[..., 0].sum(axis=0)
        _agree(found, expected, 1e-12)
    np.testing.assert_allclose(back.value, cost.value(sim.q, sim.v, sim.tau, DT), rtol=1e-14)
    way = motion.rng.normal(size=motion.tau.shape)

    def value(h: float) -> Array:
        moved = motion.run(tau=motion.tau + h * way)
        return cost.value(moved.q, moved.v, moved.tau, DT)

    _agree((back.tau * way).sum(axis=(0, 2)), (value(1e-4) - value(-1e-4)) / 2e-4, 1e-6)
    monkeypatch.setitem(vars(POLICY), "step_tangent_numbers", 1)
    again = sim.gradient(cost, "inertia")
    np.testing.assert_allclose(again.parameters, back.parameters, rtol=1e-12, atol=1e-14)


def test_what_has_no_derivative_here() -> None:
    """Unknown parameters, steps that are not kept, other variables and schemes, a limit."""
    robot = phistar.load("double_pendulum")
    q, v = robot.neutral(), np.ones(2)
    options: dict[str, Any] = {"dt": 1e-3, "steps": 4, "progress": False}
    sim = robot.simulate(q, v, **options)
    with pytest.raises(UnknownNameError, match="viscus"):
        sim.sensitivity("viscus")
    with pytest.raises(ArgumentError, match="keeps 2 of 4 steps"):
        robot.simulate(q, v, every=2, **options).sensitivity()
    with pytest.raises(ArgumentError, match="variable 'eta'"):
        robot.simulate(q, v, variables="eta", **options).sensitivity()
    with pytest.raises(ArgumentError, match="scheme 'dopri5'"):
        robot.simulate(q, v, scheme="dopri5", duration=0.1, progress=False).sensitivity()
    stopped = robot.with_limits(lower=-1.0, upper=1e-3).simulate(q, v, passive=True, **options)
    with pytest.raises(ArgumentError, match="limits of joints acted"):
        stopped.sensitivity()
