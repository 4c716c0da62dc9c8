# SPDX-License-Identifier: BSD-3-Clause
"""Rates, forces, Coriolis terms: dense operators and complex steps in time, both roots, 1e-11."""

import numpy as np
import pytest

from phistar.algebra.symbols import D
from phistar.algorithms.innovations import L
from phistar.diagonal.roots import ROOTS
from phistar.model.joint_map import joint_map
from tests.diagonal.witness import ROBOTS, Case, case, close


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request: pytest.FixtureRequest) -> Case:
    """A random robot in two states."""
    return case(request.param)


@pytest.mark.parametrize("root", ROOTS)
def test_inertias_and_roots(robot: Case, root: str) -> None:
    """D is the dense one, R R* = D, and their rates are complex steps in time."""
    here, joints = robot.witness(0), joint_map(robot.robot.model)
    d = robot.robot.diagonalize(robot.q, robot.v, root=root)
    order = np.ix_(joints.v_indices, joints.v_indices)
    close(d.D[0][order], here.here(D))
    close(d.R @ np.swapaxes(d.R, -1, -2), d.D)
    close(d.R[0][order], here.root(here.here, root))
    close(d.D_rate[0][order], here.rate(lambda at: at(D)))
    close(d.R_rate[0][order], here.rate(lambda at: here.root(at, root)))


@pytest.mark.parametrize("root", ROOTS)
def test_rates_and_forces(robot: Case, root: str) -> None:
    """ζ = L*v, η = R*ζ, κ = L⁻¹τ, ε = R⁻¹κ, those of gravity, and all the ways back."""
    d = robot.robot.diagonalize(robot.q, robot.v, root=root)
    gather = joint_map(robot.robot.model).gather
    for row in range(2):
        w = robot.witness(row)
        R, factor = w.root(w.here, root), w.here(L)
        kappa, held = (
            np.linalg.solve(factor, joint_map(robot.robot.model).spread(x))
            for x in (w.tau, gather(w.gravity))
        )
        close(d.zeta[row], gather(w.zeta(w.here)))
        close(d.eta[row], gather(w.eta(w.here, root)))
        close(d.to_kappa(robot.tau)[row], gather(kappa))
        close(d.to_epsilon(robot.tau)[row], gather(np.linalg.solve(R, kappa)))
        close(d.gravity_kappa[row], gather(held))
        close(d.gravity_epsilon[row], gather(np.linalg.solve(R, held)))
    for there, back in (("to_zeta", "from_zeta"), ("to_eta", "from_eta")):
        close(getattr(d, back)(getattr(d, there)(robot.v)), robot.v)
    for there, back in (("to_kappa", "from_kappa"), ("to_epsilon", "from_epsilon")):
        close(getattr(d, back)(getattr(d, there)(robot.tau)), robot.tau)
    close(d.to_zeta(robot.v), d.zeta)
    close(d.to_eta(robot.v), d.eta)


@pytest.mark.parametrize("root", ROOTS)
def test_equations_of_motion(robot: Case, root: str) -> None:
    """η̇ + C + ε_g = ε and Dζ̇ + C_ζ + κ_g = κ with rates that are complex steps in time."""
    d = robot.robot.diagonalize(robot.q, robot.v, root=root)
    gather = joint_map(robot.robot.model).gather
    left = d.to_epsilon(robot.tau) - d.coriolis - d.gravity_epsilon
    total = d.to_kappa(robot.tau) - d.coriolis_zeta - d.gravity_kappa
    for row in range(2):
        w = robot.witness(row)
        close(left[row], gather(w.rate(lambda at, w=w: w.eta(at, root))))
        zeta_dot = gather(w.rate(w.zeta))
        close(total[row], d.D[row] @ zeta_dot)


@pytest.mark.parametrize("root", ROOTS)
def test_coriolis_forces_do_no_work(robot: Case, root: str) -> None:
    """η*C = 0 and ζ*C_ζ = ½ζ*Ḋζ, relative to the sizes of the factors; they are not zero."""
    d = robot.robot.diagonalize(robot.q, robot.v, root=root)
    sizes = np.linalg.norm(d.eta, axis=-1) * np.linalg.norm(d.coriolis, axis=-1)
    assert (sizes > 0.1).all()
    assert (np.abs((d.eta * d.coriolis).sum(axis=-1)) <= 1e-12 * sizes).all()
    work = (d.zeta * d.coriolis_zeta).sum(axis=-1)
    close(work, np.einsum("bi,bij,bj->b", d.zeta, d.D_rate, d.zeta) / 2)


def test_power_balance(robot: Case) -> None:
    """½η*η is the kinetic energy; its rate η*(ε - ε_g) is the power of the forces, τ and weight."""
    d = robot.robot.diagonalize(robot.q, robot.v)
    close(d.kinetic_energy, robot.robot.kinetic_energy(robot.q, robot.v))
    epsilon = d.to_epsilon(robot.tau) - d.gravity_epsilon
    power = (robot.v * (robot.tau - robot.robot.gravity_force(robot.q))).sum(axis=-1)
    close((d.eta * epsilon).sum(axis=-1), power)


def test_roots_differ_for_several_axes_only() -> None:
    """With one axis a joint there is one positive root; with several there are many."""
    for name, differs in (("branched, one axis", False), ("free base", True)):
        c = case(name)
        lower, even = (c.robot.diagonalize(c.q, c.v, root=root).eta for root in ROOTS)
        assert (np.abs(lower - even).max() > 1e-3) == differs


def test_batches_broadcast() -> None:
    """One configuration with many velocities, and the other way round."""
    c = case("tree")
    many = c.robot.diagonalize(c.q[0], c.v)
    each = [c.robot.diagonalize(c.q[0], v) for v in c.v]
    for name in ("eta", "zeta", "coriolis", "coriolis_zeta"):
        close(getattr(many, name), np.stack([getattr(d, name) for d in each]), 1e-13)
    assert many.D.shape == (c.robot.nv, c.robot.nv)
    still = c.robot.diagonalize(c.q[:, None], c.v[0])
    assert still.eta.shape == (2, 1, c.robot.nv)
    assert still.to_epsilon(c.tau).shape == (2, 2, c.robot.nv)


def test_dicts_by_joint_name() -> None:
    """Coordinates may come by name."""
    c = case("branched, one axis")
    by_name = c.robot.diagonalize(c.robot.configuration_dict(c.q), c.robot.tangent_dict(c.v))
    close(by_name.eta, c.robot.diagonalize(c.q, c.v).eta, 1e-15)


def test_machine_code(machine_code: None) -> None:
    """What users get: the same as above, in float64 and in float32."""
    c = case("free base", n=4)
    d = c.robot.diagonalize(c.q, c.v)
    close(d.coriolis[0], _coriolis(c))
    half = c.robot.diagonalize(c.q.astype(np.float32), c.v.astype(np.float32))
    assert half.eta.dtype == half.coriolis.dtype == np.float32
    close(half.coriolis, d.coriolis, 1e-2)


def _coriolis(c: Case) -> np.ndarray:
    """C of the first state by a complex step."""
    w = c.witness(0)
    R, factor = w.root(w.here, "cholesky"), w.here(L)
    forces = joint_map(c.robot.model).spread(w.tau) - w.gravity
    rate = w.rate(lambda at: w.eta(at, "cholesky"))
    return joint_map(c.robot.model).gather(
        np.linalg.solve(R, np.linalg.solve(factor, forces)) - rate
    )
