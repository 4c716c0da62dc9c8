# SPDX-License-Identifier: BSD-3-Clause
"""The linearization on loops as one program, against dense matrices and differences."""

from __future__ import annotations

import numpy as np
import pytest

import phistar
from phistar.arrays import Array
from phistar.compile import TRACED, compile_request, traced_executable
from phistar.constraints import Point
from phistar.derivatives.discrete import Discretization
from phistar.errors import LoopOpenError
from phistar.loops import constrained_dynamics, linearization
from phistar.loops.traced_rows import (
    dynamics_key,
    linearization_key,
    multipliers_key,
    step_rates_key,
)
from phistar.model.model import Model
from phistar.model.model_cache import entries
from phistar.robot import Robot
from phistar.scalar import interpret
from tests.loops.mechanisms import (
    NAMES,
    error,
    four_bar,
    four_bar_state,
    mechanism,
    needs_loops,
    windows,
)

FIELDS = ("vdot_q", "vdot_v", "vdot_tau", "multipliers_q", "multipliers_v", "multipliers_tau")
NO_PROGRAM = {
    "massless_coupler": "a hinge without inertia",
}


def _program(model: Model) -> object:
    return TRACED["loop_linearization"].trace(model, "double", ())


def _interpreted(model: Model, q: Array, v: Array, tau: Array) -> dict[str, Array]:
    """What the program gives, in the names of the result, for samples (count, size)."""
    found = interpret.run(_program(model), {"q": q, "v": v, "tau": tau})
    nv = model.nv
    result = {"vdot": found["vdot"], "multipliers": found["multipliers"]}
    for name in ("q", "v", "tau"):
        change = found[f"change_{name}"].reshape(len(q), -1, nv)
        result[f"vdot_{name}"], result[f"multipliers_{name}"] = change[:, :nv], change[:, nv:]
    if "along_q" in found:
        # Rows depend on each other: along the loops.
        result["vdot_q"] = found["along_q"].reshape(len(q), -1, nv)[:, :nv]
    return result


def _compiled(robot: Robot) -> None:
    for key in (linearization_key("double"), dynamics_key("double")):
        code = traced_executable(robot.model, key)
        assert code is not None
        assert code.scalars is not None  # waits for it


@needs_loops
@pytest.mark.parametrize("name", NAMES)
def test_program_agrees_with_dense_matrices(name: str) -> None:
    """Relative to the largest entry, all derivatives of accelerations and multipliers: 1e-8."""
    robot = mechanism(name).robot
    works = TRACED["loop_linearization"].work(robot.model, "double", ()) is not None
    assert works == (name not in NO_PROGRAM), NO_PROGRAM.get(name)
    if not works:
        return
    q, v, tau = mechanism(name).state
    expected = robot.linearize(q, v, tau, method="null")
    found = _interpreted(robot.model, q, v, tau)
    for field in ("vdot", "multipliers", *FIELDS):
        assert error(found[field], getattr(expected, field)) < 1e-8, field


def test_program_agrees_with_differences() -> None:
    """Of accelerations along the loop, by the dense route: 1e-6."""
    robot, (q, v, tau) = four_bar(), four_bar_state()
    at = {name: x[0] for name, x in _interpreted(robot.model, q[None], v[None], tau[None]).items()}
    X, h = robot.minimal(q).X[:, 0], 1e-5

    def moved(step: float) -> Array:
        near, speed = robot.project(robot.integrate(q, step * X), v)
        return robot.forward_dynamics(near, speed, tau, method="kkt")

    speeds = [robot.project(robot.integrate(q, step * X), v)[1] for step in (h, -h)]
    by_q = (moved(h) - moved(-h)) / (2 * h)
    turned = (speeds[0] - speeds[1]) / (2 * h)
    assert error(at["vdot_q"] @ X + at["vdot_v"] @ turned, by_q) < 1e-6


def test_machine_code_is_what_the_robot_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches and broadcasting; off the loop NumPy names what is wrong, or NaN."""
    robot, (q, v, tau) = four_bar(), four_bar_state()
    _compiled(robot)
    batch = np.stack([tau, 2 * tau, -tau])
    expected = robot.linearize(q, v, batch, method="kkt")
    calls = []
    inside = linearization._by_code

    def watched(*arguments: object) -> object:
        calls.append(inside(*arguments))  # type: ignore[arg-type]
        return calls[-1]

    monkeypatch.setattr(linearization, "_by_code", watched)
    found = robot.linearize(q, v, batch)
    assert calls[-1] is not None
    for field in ("vdot", "multipliers", *FIELDS):
        assert getattr(found, field).shape == getattr(expected, field).shape
        assert error(getattr(found, field), getattr(expected, field)) < 1e-9, field
    assert error(found.reduced().A, expected.reduced().A) < 1e-9
    (loop,) = found.wrench_q
    assert error(found.wrench_q[loop], expected.wrench_q[loop]) < 1e-9
    opened = np.stack([q, q + 0.1, q])
    with pytest.raises(Exception, match="open"):
        robot.linearize(opened, v, tau)
    assert calls[-1] is None
    kept = robot.linearize(opened, v, tau, on_error="nan")
    assert np.isnan(kept.vdot_q[1]).all()
    assert error(kept.vdot_q[[0, 2]], np.stack([expected.vdot_q[0]] * 2)) < 1e-9


@pytest.mark.parametrize("reference", ["world_aligned", "local"])
def test_wrenches_on_frames_go_through_machine_code(
    monkeypatch: pytest.MonkeyPatch, reference: str
) -> None:
    """Against the dense route, forces held in the world and in the link: 1e-9."""
    robot, (q, v, tau) = four_bar(), four_bar_state()
    _compiled(robot)
    frame = robot.link_names[-1]
    given = {"forces": {frame: (0.1, 0.2, 0.3, 1.0, -2.0, 3.0)}, "reference": reference}
    expected = robot.linearize(q, v, tau, method="kkt", **given)
    fall = robot.forward_dynamics(q, v, tau, method="kkt", **given)
    robot.forward_dynamics(q, v, tau)
    for module in (linearization, constrained_dynamics):
        monkeypatch.setattr(module, "posed", None)  # what the dense routes begin with
    assert error(robot.forward_dynamics(q, v, tau, **given), fall) < 1e-9
    found = robot.linearize(q, v, tau, **given)
    for field in ("vdot", "multipliers", *FIELDS):
        assert error(getattr(found, field), getattr(expected, field)) < 1e-9, field


def test_reactions_are_machine_code_too() -> None:
    """Accelerations, multipliers and wrenches of rows that are all independent, 1e-9."""
    robot = phistar.load("quadruped")
    q = robot.random_configuration(0)
    feet = robot.with_loops(Point("FL_FOOT"), Point("HR_FOOT"), q=q)
    code = traced_executable(feet.model, multipliers_key("double"))
    assert code is not None
    assert code.scalars is not None  # waits for it
    rng = np.random.default_rng(0)
    q, v = feet.project(q, rng.normal(size=robot.nv))
    tau = rng.normal(size=(3, robot.nv))
    forces = {"base_link": np.arange(6.0)}
    for given in ({}, {"forces": forces}):
        found = feet.constrained_dynamics(q, v, tau, **given)
        expected = feet.constrained_dynamics(q, v, tau, method="null", **given)
        for field in ("vdot", "multipliers", "joint_forces"):
            assert error(getattr(found, field), getattr(expected, field)) < 1e-9, field
        for loop, wrench in expected.wrenches.items():
            assert error(found.wrenches[loop], wrench) < 1e-9
        assert all(np.all(x) for x in found.unique.values())
        assert found.rank == 6
    ran = code.try_run({"q": q, "v": v, "tau": tau})
    assert ran is not None
    assert ran[1]


def test_rows_that_are_always_zero_do_not_restrict_directions() -> None:
    """A planar four-bar with five rows of rank two: derivatives exist in every direction."""
    robot, (q, v, tau) = four_bar(), four_bar_state()
    for method in ("auto", "null"):
        assert not robot.linearize(q, v, tau, method=method).tangential
    if NAMES:
        case = mechanism("bricard")
        assert case.robot.linearize(*(x[0] for x in case.state)).tangential


def test_many_loops_are_products_of_matrices() -> None:
    """Large programs keep their matrices in slots; the numbers are those of the dense route."""
    robot, q, v = windows(5)
    program = _program(robot.model)
    assert program.products  # type: ignore[attr-defined]
    tau = np.linspace(-1.0, 1.0, robot.nv)
    q, v = robot.project(robot.integrate(q, 0.3 * v), v)
    expected = robot.linearize(q, v, tau, method="null")
    found = _interpreted(robot.model, q[None], v[None], tau[None])
    for field in FIELDS:
        assert error(found[field][0], getattr(expected, field)) < 1e-8, field
    row, choices = TRACED["loop_linearization"], linearization_key("double")[1:]
    code = compile_request(row).build(robot.model, backend="numpy", choices=choices)
    assert code is not None
    ran = code.try_run({"q": q, "v": v, "tau": tau})
    assert ran is not None
    assert error(ran[0]["change_q"][: robot.nv], expected.vdot_q) < 1e-8


def _plain_step(
    monkeypatch: pytest.MonkeyPatch, robot: Robot, q: Array, v: Array, tau: Array, dt: float
) -> Discretization:
    """``discretize`` by NumPy, which solves with dense matrices."""
    nothing = (None, np.zeros((), dtype=bool))
    with monkeypatch.context() as patched:
        patched.setattr(linearization, "_step_by_code", lambda *_: nothing)
        return robot.discretize(q, v, tau, dt)


@needs_loops
@pytest.mark.parametrize("name", ["bricard", "gear_train", "quadruped_stand"])
def test_steps_agree_with_dense_matrices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two programs of a step that keeps the loops, its ends and derivatives: 1e-8."""
    robot, dt = mechanism(name).robot, 2e-3
    q, v, tau = mechanism(name).state
    expected = _plain_step(monkeypatch, robot, q, v, tau, dt)
    time = np.full((len(q), 1), dt)
    model, given = robot.model, {"q": q, "v": v, "tau": tau, "dt": time}
    rates = interpret.run(TRACED["loop_step_rates"].trace(model, "double", ()), given)
    del rates["multipliers"]
    program = TRACED["loop_discretization"].trace(model)
    found = interpret.run(program, {"q": q, "v": v, "dt": time, **rates})
    for name, want in (("q_next", "q"), ("v_next", "v"), ("A", "A"), ("B", "B")):
        wanted = getattr(expected, want)
        assert error(found[name].reshape(wanted.shape), wanted) < 1e-8, name


@pytest.mark.users_code
def test_steps_by_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single calls, batches, wrenches; where a sample is open the others have their bits."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    # A robot that no other test has had code made for in another tier.
    robot, (q, v, tau) = four_bar().with_gravity((0.0, 0.3, -9.7)), four_bar_state()
    for key in (step_rates_key("double"), ("loop_discretization",)):
        code = traced_executable(robot.model, key)
        assert code is not None
        assert code.scalars is not None
    states = [np.stack([x] * 3) for x in (q, v, tau)]
    found = robot.discretize(*states, 1e-3)
    single = robot.discretize(q, v, tau, 1e-3)
    expected = _plain_step(monkeypatch, robot, q, v, tau, 1e-3)
    for name in ("q", "v", "A", "B"):
        assert error(getattr(single, name), getattr(expected, name)) < 1e-10
        np.testing.assert_array_equal(getattr(found, name)[1], getattr(single, name))
    assert ("discretize", "semi_implicit") in entries(robot.model)
    pushed = {robot.link_names[-1]: np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])}
    by_code = robot.discretize(q, v, tau, 1e-3, forces=pushed)
    with monkeypatch.context() as patched:
        patched.setattr(linearization, "_step_by_code", lambda *_: (None, np.zeros((), bool)))
        plain = robot.discretize(q, v, tau, 1e-3, forces=pushed)
    assert error(by_code.A, plain.A) < 1e-9
    states[0][1, 0] += 0.3
    with pytest.raises(LoopOpenError):
        robot.discretize(*states, 1e-3)
    rest = robot.discretize(*states, 1e-3, on_error="nan")
    np.testing.assert_array_equal(rest.A[[0, 2]], found.A[[0, 2]])
    assert np.isnan(rest.A[1]).all()
