# SPDX-License-Identifier: BSD-3-Clause
"""Mechanisms with goldens of 512-bit arithmetic in maximal coordinates: limits of their README."""

import numpy as np
import pytest

from phistar.errors import ArgumentError, SingularHingeError
from phistar.loops.routes import ROUTES
from phistar.loops.system import loop_system
from phistar.model.joint_map import joint_map
from tests.loops.mechanisms import NAMES, error, mechanism, needs_loops

pytestmark = [needs_loops, pytest.mark.parametrize("name", NAMES)]


def test_accelerations_by_every_route(name: str) -> None:
    """All routes give the goldens to 1e-8; those that need inertias of the tree say so."""
    case = mechanism(name)
    for method in ("auto", *ROUTES):
        if method in ("range", "proximal", "join") and case.robot.singular_hinges:
            with pytest.raises(SingularHingeError, match="coupler"):
                case.robot.forward_dynamics(*case.state, method=method)
        elif method == "join" and not joint_map(case.robot.model).one_to_one:
            with pytest.raises(ArgumentError, match="mimic"):
                case.robot.forward_dynamics(*case.state, method=method)
        else:
            found = case.robot.forward_dynamics(*case.state, method=method)
            assert error(found, case.golden["vdot"]) < 1e-8, method


def test_wrenches_and_joint_forces(name: str) -> None:
    """L*λ is always unique; wrenches where the goldens say they are, and only there."""
    case = mechanism(name)
    found = case.robot.constrained_dynamics(*case.state)
    assert error(found.joint_forces, case.golden["tau_c"]) < 1e-8
    assert found.rank == case.facts["rank"]
    loops = zip(case.facts["active_loops"], case.facts["wrench_unique"], strict=True)
    for i, (loop, unique) in enumerate(loops):
        assert bool(found.unique[loop].all()) == unique
        if unique:
            assert error(found.wrenches[loop], case.golden["wrench"][:, i]) < 1e-7, loop


def test_external_wrench(name: str) -> None:
    """A wrench on a link, in world axes at its frame."""
    case = mechanism(name)
    forces = {case.facts["external_body"]: case.golden["ext_wrench"]}
    found = case.robot.forward_dynamics(*case.state, forces=forces)
    assert error(found, case.golden["vdot_ext"]) < 1e-8


def test_inverse_dynamics_and_statics(name: str) -> None:
    """Least-norm efforts of the actuated joints, in motion and at rest."""
    case = mechanism(name)
    q, v, _ = case.state
    actuated = case.facts["actuated"]
    accelerations = case.golden["id_vdot"]
    found = case.robot.constrained_inverse_dynamics(q, v, accelerations, actuated=actuated)
    assert error(found.effort, case.golden["id_effort"]) < 1e-8
    assert error(case.robot.inverse_dynamics(q, v, accelerations), case.golden["id_tree"]) < 1e-8
    # The efforts give the motion they were asked for.
    assert error(case.robot.forward_dynamics(q, v, found.tau), accelerations) < 1e-8
    still = case.golden["static_ok"].astype(bool)
    if still.any():
        rest = np.zeros_like(v[still])
        held = case.robot.constrained_inverse_dynamics(q[still], rest, rest, actuated=actuated)
        assert error(held.effort, case.golden["static_effort"][still]) < 1e-8


def test_derivatives_along_the_loops(name: str) -> None:
    """∂v̇/∂τ, and two directions along the loops at samples 1 and 2."""
    case = mechanism(name)
    at = case.robot.linearize(*case.state)
    assert error(at.vdot_tau, case.golden["vdot_tau"]) < 1e-8
    for i, sample in enumerate((1, 2)):
        dq, dv, dtau = (np.atleast_2d(case.golden[key][i]) for key in ("dq", "dv", "dtau"))
        found = dq @ at.vdot_q[sample].T + dv @ at.vdot_v[sample].T + dtau @ at.vdot_tau[sample].T
        assert error(found, np.atleast_2d(case.golden["dvdot"][i])) < 1e-6


def test_reduced_linearization_is_consistent(name: str) -> None:
    """Expanded directions are on the loops, and A and B say what the full matrices say of them."""
    case = mechanism(name)
    at = case.robot.linearize(*case.state)
    reduced = at.reduced()
    rng = np.random.default_rng(0)
    count = len(reduced.independent)
    assert count == case.facts["mobility"]
    dq, dv, dtau = rng.normal(size=count), rng.normal(size=count), rng.normal(size=case.robot.nv)
    full_q, full_v = reduced.expand(dq, dv)
    L = np.asarray(case.robot.loop_jacobian(case.state[0]))
    assert np.abs(L @ full_q[..., None]).max() < 1e-9 * np.abs(L).max() * np.abs(full_q).max()
    expected = (
        at.vdot_q @ full_q[..., None] + at.vdot_v @ full_v[..., None] + at.vdot_tau @ dtau[:, None]
    )[..., reduced.entries, 0]
    rates = reduced.A @ np.concatenate([dq, dv]) + reduced.B @ dtau
    assert error(rates[..., count:], expected) < 1e-9


def test_assembly_and_mobility(name: str) -> None:
    """From unassembled guesses onto the loops, to 1e-10 of the size; counts are exact."""
    case = mechanism(name)
    closed = case.robot.assemble(case.golden["start"])
    size = loop_system(case.robot.model).size
    assert np.abs(np.asarray(case.robot.loop_error(closed))).max() < 1e-10 * max(size, 1.0)
    for q in case.golden["q"][1:]:
        found = case.robot.mobility(q)
        assert (found.rows, found.rank) == (case.facts["rows"], case.facts["rank"])
        assert found.degrees_of_freedom == case.facts["mobility"]
        assert found.redundant == case.facts["redundant"]
        assert not found.singular
        stress = found.self_stress
        rows = np.asarray(case.robot.loop_jacobian(q))
        assert np.abs(rows.T @ stress).max(initial=0.0) < 1e-9 * max(1.0, np.abs(rows).max())


def test_trajectory(name: str) -> None:
    """The state after T seconds without joint forces, to 1e-6; the loops stay closed.

    The scheme is of fourth order: two step lengths, extrapolated, show the rest of the error.
    """
    case = mechanism(name)
    robot, duration = case.robot, float(case.golden["traj_T"])
    q, v, _ = case.state
    coarse, fine = (
        robot.simulate(
            q[1], v[1], dt=duration / steps, steps=steps, every=steps // 4, passive=False
        )
        for steps in ((300, 600) if name == "quadruped_stand" else (100, 200))
    )
    assert np.abs(fine.loop_error()).max() < 1e-11
    rest = robot.difference(coarse.q[-1], fine.q[-1]) / 15
    final_q = robot.integrate(fine.q[-1], rest)
    final_v = fine.v[-1] + (fine.v[-1] - coarse.v[-1]) / 15
    assert np.abs(robot.difference(case.golden["traj_q"], final_q)).max() < 1e-6
    assert error(final_v, case.golden["traj_v"]) < 1e-6


def test_minimal_coordinates(name: str) -> None:
    """There and back: q_R and v_R give the state, and v̇ = X v̇_R + x̄."""
    case = mechanism(name)
    q, v = case.golden["q"][1], case.golden["v"][1]
    found = case.robot.minimal(q)
    assert len(found.independent) == case.facts["mobility"]
    again, rates = found.expand(found.coordinates(q), found.velocities(v))
    assert np.abs(case.robot.difference(q, again)).max() < 1e-8
    assert error(rates, v) < 1e-8
    vdot = case.golden["vdot"][1]
    assert error(found.X @ vdot[found.entries] + found.bias(q, v), vdot) < 1e-8
