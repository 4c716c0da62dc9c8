# SPDX-License-Identifier: BSD-3-Clause
"""Simulators, identification, loops: copied, sent to processes, printed, refused as all else is."""

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phistar
from phistar import ident
from phistar.errors import ArgumentError
from phistar.scale.work import Work
from phistar.viewer.web_server import free_port

ARM = phistar.robots.chain(2, name="arm")
LEGS = phistar.load("quadruped")
MIXED = phistar.load("four_bar")
TIMES = np.arange(400) / 100.0
LINES, WIDTH = 6, 400


def _motion() -> tuple[np.ndarray, ...]:
    """q, v, vdot, tau of an arm that swings for four seconds."""
    rates = np.array([2.0, 3.0])
    q = np.sin(np.outer(TIMES, rates))
    v, vdot = rates * np.cos(np.outer(TIMES, rates)), -(rates**2) * q
    return q, v, vdot, ARM.inverse_dynamics(q, v, vdot)


def _simulator(**options: Any) -> phistar.sim.Simulator:
    sim = LEGS.simulator(2, **{"dt": 1e-3, **options})
    sim.step(np.zeros(LEGS.nv))
    return sim


THINGS: dict[str, Callable[[], Any]] = {
    "derivatives": lambda: ident.differentiate(_motion()[0], 0.01),
    "identification": lambda: ident.identify(ARM, *_motion()),
    "rows of loops": lambda: MIXED.loop_error(np.zeros((50, MIXED.nq))),
    "inverse kinematics": lambda: ARM.inverse_kinematics(
        {"link2": np.broadcast_to(np.eye(4), (50, 4, 4))}
    ),
    "mobility": lambda: MIXED.mobility(MIXED.assemble(MIXED.neutral())),
    "state": lambda: _simulator().state,
    "contacts": lambda: _simulator().contacts,
    "simulator": _simulator,
}


@pytest.mark.parametrize("name", THINGS)
def test_they_print_for_people_and_travel(name: str) -> None:
    """A few lines, whatever their size; by pickle and copies."""
    thing = THINGS[name]()
    assert len(repr(thing).splitlines()) <= LINES
    assert max(map(len, repr(thing).splitlines())) <= WIDTH
    for way in (lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy):
        assert repr(way(thing)) == repr(thing)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_simulator_goes_on_elsewhere(way: Callable[[Any], Any]) -> None:
    """A copy takes the same steps to the bit, and the original notices nothing."""
    rng = np.random.default_rng(0)
    sim = _simulator(on_error="freeze", seed=3)
    above = sim.q[0] + np.eye(LEGS.nq)[2]
    sim.reset([1], q=above, spread=0.1)
    forces = rng.normal(size=(3, 2, LEGS.nv))
    sim.step(forces[0])
    other, kept = way(sim), sim.state
    for tau in forces[1:]:
        other.step(tau)
    np.testing.assert_array_equal(sim.q, kept.q)
    for tau in forces[1:]:
        sim.step(tau)
    for name in ("q", "v", "time", "frozen"):
        np.testing.assert_array_equal(getattr(sim.state, name), getattr(other.state, name))
    np.testing.assert_array_equal(sim.accelerometer("FL_FOOT"), other.accelerometer("FL_FOOT"))
    fresh = [each.reset(q=above, spread=0.1).q for each in (sim, other)]
    np.testing.assert_array_equal(*fresh)


def _stepped(sim: phistar.sim.Simulator) -> np.ndarray:
    return sim.step(np.zeros(LEGS.nv)).q


def test_a_simulator_in_another_process() -> None:
    """One that was just born."""
    sim = _simulator()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.apply(_stepped, (sim,))
    np.testing.assert_allclose(there, _stepped(sim), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dt": "1ms"}, r"dt is '1ms', expected a time greater than zero \[s\]"),
        ({"sweeps": 1.5}, "sweeps is 1.5, expected 1 or more"),
        ({"seed": -1}, "seed is -1, expected a whole number, 0 or more"),
        ({"seed": "x"}, "seed is 'x', expected a whole number, 0 or more"),
        ({"threads": 0}, "threads is 0, expected 1 or more"),
        ({"threads": "2"}, "threads is '2', expected 1 or more"),
    ],
)
def test_options_of_simulators(options: dict[str, Any], said: str) -> None:
    """Each is refused by name and value."""
    with pytest.raises(ArgumentError, match=f"^{said}"):
        _simulator(**options)


def test_complex_numbers_are_not_cut_off() -> None:
    """Neither by simulators nor by identification."""
    sim = _simulator()
    with pytest.raises(ArgumentError, match=r"tau is complex"):
        sim.step(np.zeros(LEGS.nv) + 0j)
    with pytest.raises(ArgumentError, match=r"[qv] is complex"):
        sim.reset(q=LEGS.neutral() + 0j)
    q, v, vdot, tau = _motion()
    for k, name in enumerate(("q", "v", "vdot", "tau")):
        given = [q, v, vdot, tau]
        given[k] = given[k] + 0j
        with pytest.raises(ArgumentError, match=f"{name} is complex"):
            ident.identify(ARM, *given)


def test_a_large_mask_is_not_printed() -> None:
    """Its shape says enough."""
    with pytest.raises(ArgumentError, match=r"^mask is an array \(3, 100\) of float64") as caught:
        _simulator().reset(np.ones((3, 100)))
    assert len(str(caught.value)) < WIDTH


def test_wrong_calls_of_identification() -> None:
    """Each says what was given and what to give."""
    q, v, vdot, tau = _motion()
    with pytest.raises(ArgumentError, match=r"^q has no samples"):
        ident.identify(ARM, q[:0], v[:0], vdot[:0], tau[:0])
    with pytest.raises(ArgumentError, match=r"^robot is None, expected a phistar\.Robot"):
        ident.identify(None, q, v, vdot, tau)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"^robot is 'arm', expected a phistar\.Robot"):
        ident.excitation("arm")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"^period is -1, expected a time greater"):
        ident.excitation(ARM, period=-1)
    for name in ("harmonics", "starts", "samples"):
        with pytest.raises(ArgumentError, match=f"^{name} is 0, expected 1 or more"):
            ident.excitation(ARM, **{name: 0})  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"^dt is 'x', expected a time greater than zero \[s\]"):
        ident.differentiate(q, "x")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"^x is not an array of numbers: dtype <U"):
        ident.differentiate("abc", 0.01)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"x is not finite: x\[3, 1\] is nan"):
        ident.differentiate(np.where(np.arange(800).reshape(400, 2) == 7, np.nan, q), 0.01)


def test_loops_are_given_one_by_one() -> None:
    """A list of them, or something else, is refused with what to write."""
    for given in ([phistar.constraints.Point("link2")], "pin", None):
        with pytest.raises(ArgumentError, match=r"^with_loops got (an? |None).*one by one"):
            ARM.with_loops(given)  # type: ignore[arg-type]


def test_damaged_motions(tmp_path: Path) -> None:
    """Whatever stands in a file, it is no simulation."""
    for suffix in (".npz", ".csv", ".mcap"):
        for text in (b"", b"garbage", bytes(range(256)) * 8):
            path = tmp_path / f"motion{suffix}"
            path.write_bytes(text)
            with pytest.raises(ArgumentError, match=r"motion\.\w+' is (no|a motion|damaged)"):
                phistar.sim.Simulation.load(path, ARM)


def test_ports_of_viewers() -> None:
    """Before anything is opened."""
    for port in ("x", 65536, 1.5):
        with pytest.raises(ArgumentError, match=r"^port is .*, expected a number from 0"):
            free_port(port)  # type: ignore[arg-type]


def test_work_for_other_processes() -> None:
    """The robot is looked at first."""
    with pytest.raises(ArgumentError, match=r"^robot is None, expected a phistar\.Robot"):
        Work(None, "inverse_dynamics", 3)  # type: ignore[arg-type]


def test_costs_of_motions() -> None:
    """A function is no cost, and the message says what is one."""
    sim = ARM.simulate(np.zeros(2), np.zeros(2), dt=1e-3, steps=3)
    with pytest.raises(ArgumentError, match=r"^cost is a function.*control\.Cost"):
        sim.gradient(lambda motion: 0.0)  # type: ignore[arg-type]


ARM_STATE = np.zeros(2)

NO_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "steps": lambda x: ARM.simulate(ARM_STATE, ARM_STATE, dt=1e-3, steps=x),
    "every": lambda x: ARM.simulate(ARM_STATE, ARM_STATE, dt=1e-3, steps=4, every=x),
    "threads": lambda x: ARM.simulate(ARM_STATE, ARM_STATE, dt=1e-3, steps=4, threads=x),
    "forces": lambda x: ARM.simulate(ARM_STATE, ARM_STATE, dt=1e-3, steps=4, forces=x),
    "tolerance": lambda x: ARM.inverse_kinematics({"link2": np.eye(4)}, tolerance=x),
    "max_iterations": lambda x: ARM.inverse_kinematics({"link2": np.eye(4)}, max_iterations=x),
    "restarts": lambda x: ARM.inverse_kinematics({"link2": np.eye(4)}, restarts=x),
    "fixed": lambda x: ARM.inverse_kinematics({"link2": np.eye(4)}, fixed=x),
    "seed": lambda x: ARM.inverse_kinematics({"link2": np.eye(4)}, seed=x),
    "rng": lambda x: ARM.random_configuration(x),
    "shape": lambda x: ARM.random_configuration(0, x),
    "samples": lambda x: ARM.is_flat(samples=x),
    "damping": lambda x: ARM.operational_inertia(ARM_STATE, ["link2"], damping=x),
    "prescribed": lambda x: ARM.hybrid_dynamics(*[ARM_STATE] * 4, prescribed=x),
    "wrt": lambda x: ARM.linearize(*[ARM_STATE] * 3, wrt=x),
    "friction": lambda x: LEGS.simulator(2, dt=1e-3, friction=x),
    "restitution": lambda x: LEGS.simulator(2, dt=1e-3, restitution=x),
}


@pytest.mark.parametrize("name", NO_NUMBERS)
def test_what_is_no_number_is_refused_by_name(name: str) -> None:
    """Of another kind, negative or not a number: never an error of Python's or NumPy's own."""
    for value in (object(), -1.5, float("nan")):
        with pytest.raises(ArgumentError, match=rf"^{name}\b.* (is|expected) "):
            NO_NUMBERS[name](value)
