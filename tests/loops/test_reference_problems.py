# SPDX-License-Identifier: BSD-3-Clause
"""Published problems with loops, within the digits of their references, and linkages that are
over-constrained; the runs that take long are those of ``make bench-drift``."""

import json
import math
from typing import Any

import numpy as np
import pytest

import phistar
from benchmarks import mechanisms
from benchmarks.mechanisms import in_motion, windows
from phistar.robot import Robot
from tests.helpers import SHARED
from tests.loops.mechanisms import error, mechanism, needs_loops

needs_reference = pytest.mark.skipif(
    not mechanisms.REFERENCE.is_file(), reason="needs ../shared/reference-problems"
)


def reference(name: str) -> dict[str, Any]:
    """A problem with its solution."""
    found: dict[str, Any] = json.loads(mechanisms.REFERENCE.read_text())[name]
    return found


def test_both_look_in_the_same_place() -> None:
    """Tests and benchmarks find the problems where PHISTAR_SHARED says."""
    assert SHARED / "reference-problems" / "reference.json" == mechanisms.REFERENCE


@needs_reference
def test_pendulum_on_a_row() -> None:
    """IFToMM A01, 10 s: a point that a distance row holds, to the 1e-9 of the problem's setting."""
    given = reference("A01")
    robot, q, v = mechanisms.pendulum()
    sim = robot.simulate(q, v, dt=1e-3, duration=10.0, every=100, passive=False)
    assert np.abs(sim.q[:, 0] - given["x"]).max() < 1e-9
    assert np.abs(sim.q[:, 1] - given["y"]).max() < 1e-9
    assert np.ptp(sim.energy()) < 1e-9
    assert np.abs(sim.loop_error()).max() < 1e-14


@needs_reference
def test_two_windows() -> None:
    """IFToMM A02, N = 2: 10 s through singular configurations, which are events; to 1e-9."""
    given = reference("A02_N2")
    robot, q, v = windows(2)
    sim = robot.simulate(q, v, dt=1e-3, duration=10.0, every=100, passive=False)
    angle = sim.q[:, 0]
    assert np.abs(-np.sin(angle) - given["B0_x"]).max() < 1e-9
    assert np.abs(np.cos(angle) - given["B0_y"]).max() < 1e-9
    assert np.ptp(sim.energy()) < 1e-8 * given["energy0"]
    assert np.abs(sim.loop_error()).max() < 1e-12
    assert sim.events
    assert "singular" in str(sim.events[0])


@needs_reference
@pytest.mark.parametrize("count", [2, 40])
def test_windows_accelerate_as_one_pendulum(count: int) -> None:
    """IFToMM A02: energy of the reference, v̇ of the reduced pendulum to 1e-10; one sample each.

    All rods turn alike, so N + 1 rods of m l²/3 and N bars that do not turn are one inertia. The
    motion of N = 40 over 10 s is a row of ``make bench-drift``.
    """
    robot, q, v = windows(count)
    energy = robot.kinetic_energy(q, v) + robot.potential_energy(q)
    assert energy == pytest.approx(reference(f"A02_N{count}")["energy0"], rel=1e-12)
    inertia = (count + 1) / 3 + count
    turns = robot.tangent({name: 1.0 if name[0] == "f" else -1.0 for name in robot.joint_names})
    for angle in (-0.7, 2.5):
        at, rate = q + angle * turns, 1.3 * turns
        expected = 9.81 * math.sin(angle) * ((count + 1) / 2 + count) / inertia
        found = robot.forward_dynamics(at, rate, np.zeros(robot.nv))
        assert error(found, expected * turns) < 1e-10


@needs_reference
@needs_loops
def test_andrews_mechanism() -> None:
    """IFToMM A03 after 0.03 s: 1e-8 rad and 3e-7 of the rates, as far as others got again.

    Published accelerations at rest and the force in a pin to 1e-10.
    """
    given = reference("A03_andrews")
    names = given["order"].split()
    q, v = mechanisms.andrews(names, given["q0"], 1500)
    assert np.abs(q - given["q"]).max() < 1e-8
    assert np.abs(v / given["v"] - 1.0).max() < 3e-7
    robot = phistar.load(mechanisms.ANDREWS)
    start = robot.assemble(dict(zip(names, given["q0"], strict=True)))
    drive = robot.tangent({**dict.fromkeys(names, 0.0), "beta": 0.033})
    vdot = robot.tangent_dict(robot.forward_dynamics(start, np.zeros(7), drive))
    assert vdot["beta"] == pytest.approx(14222.443919954114, rel=1e-10)
    assert vdot["theta"] == pytest.approx(-10666.832939965585, rel=1e-10)
    # LOOPS.md, from the multipliers of the test set: with the spring, as its equations have it.
    drive[robot.joint_names.index("gamma")] = mechanisms.spring_of_andrews(given["q0"][2])
    forces = robot.constrained_dynamics(start, np.zeros(7), drive).wrenches
    pins = [np.linalg.norm(wrench[3:]) for wrench in dict(forces).values()]
    assert min(abs(pin / 98.756849141061 - 1.0) for pin in pins) < 1e-9


def twenty_seconds(robot: Robot, dt: float) -> None:
    """Loop errors of rounding, and no more energy lost or won in the second half than before."""
    robot, q, v = in_motion(robot)
    sim = robot.simulate(q, v, dt=dt, duration=20.0, every=10, passive=False)
    error = np.abs(sim.loop_error()).max(axis=-1)
    half = len(error) // 2
    assert error.max() < 1e-13
    assert error[half:].max() < 2.0 * error[:half].max() + 1e-15
    energy = sim.energy()
    swing = np.ptp(robot.kinetic_energy(sim.q, sim.v))
    assert swing > 1.0
    assert np.ptp(energy) < 1e-6 * swing
    assert np.ptp(energy[half:]) < 2.0 * np.ptp(energy[:half])


@pytest.mark.parametrize("make", [mechanisms.bricard, mechanisms.bennett])
def test_over_constrained_linkages_for_twenty_seconds(make: Any) -> None:
    """Bricard's and Bennett's linkages at 10 ms: nothing grows."""
    robot = make()
    found = robot.mobility(robot.neutral())
    assert found.degrees_of_freedom == 1
    assert found.redundant == {"bricard": 1, "bennett": 3}[robot.name]
    twenty_seconds(robot, 1e-2)


@needs_loops
def test_bricard_from_a_file() -> None:
    """The same linkage with goldens, from one of its states, for 5 s."""
    case = mechanism("bricard")
    q, v, _ = case.state
    sim = case.robot.simulate(q[1], v[1], dt=1e-2, duration=5.0, every=10, passive=False)
    assert np.abs(sim.loop_error()).max() < 1e-12
    energy = sim.energy()
    half = len(energy) // 2
    assert np.abs(energy - energy[0]).max() < 1e-4 * np.abs(energy[0])
    assert np.ptp(energy[half:]) < 3 * np.ptp(energy[:half]) + 1e-12
