# SPDX-License-Identifier: BSD-3-Clause
"""Forward dynamics in (q, ζ): complex steps, forward dynamics in (q, v), Pinocchio, energy."""

import numpy as np
import pinocchio as pin
import pytest

import phistar
from phistar.compile import kernel
from phistar.model.joint_map import joint_map
from phistar.sweeps.ir import Direction
from tests.diagonal.witness import ROBOTS, TINY, case, close


def accelerations(
    robot: phistar.Robot, q: np.ndarray, v: np.ndarray, zeta_dot: np.ndarray
) -> np.ndarray:
    """v̇ from ζ̇ = L*v̇ + L̇*v, the last term by a complex step."""
    ahead = robot.diagonalize(robot.integrate(q, 1j * TINY * v))
    return robot.diagonalize(q).from_zeta(zeta_dot - ahead.to_zeta(v).imag / TINY)


@pytest.mark.parametrize("name", ROBOTS)
def test_rates_of_motion(name: str) -> None:
    """ζ̇ is a complex step of L*v along the dense motion, and v is L⁻*ζ; 1e-11."""
    c = case(name)
    zeta = c.robot.diagonalize(c.q).to_zeta(c.v)
    found = c.robot.diagonal_forward_dynamics(c.q, zeta, c.tau)
    close(found.v, c.v)
    for row in range(2):
        w = c.witness(row)
        close(found.zeta_dot[row], joint_map(c.robot.model).gather(w.rate(w.zeta)))


@pytest.mark.parametrize("name", ROBOTS)
def test_is_forward_dynamics(name: str) -> None:
    """Converted to v̇ it is forward dynamics, external forces included; 1e-12."""
    c = case(name)
    rng = np.random.default_rng(0)
    forces = {link: rng.normal(size=6) for link in c.robot.link_names[1::2]}
    zeta = c.robot.diagonalize(c.q).to_zeta(c.v)
    for pushed in (None, forces):
        found = c.robot.diagonal_forward_dynamics(c.q, zeta, c.tau, forces=pushed)
        expected = c.robot.forward_dynamics(c.q, c.v, c.tau, forces=pushed)
        close(accelerations(c.robot, c.q, c.v, found.zeta_dot), expected, 1e-12)


@pytest.mark.parametrize("name", ["ur5", "panda", "quadruped"])
def test_pinocchio(name: str) -> None:
    """The same accelerations as Pinocchio's articulated-body algorithm; 1e-11."""
    base = [pin.JointModelFreeFlyer()] if phistar.robots.floats(name) else []
    robot = phistar.load(name, mimic="independent")
    peer = pin.buildModelFromUrdf(str(phistar.robots.path(name)), *base)
    convert = phistar.conventions.pinocchio(robot, peer)
    rng = np.random.default_rng(1)
    q, (v, tau) = robot.random_configuration(rng), rng.normal(size=(2, robot.nv))
    zeta = robot.diagonalize(q).to_zeta(v)
    found = robot.diagonal_forward_dynamics(q, zeta, tau)
    theirs = pin.aba(
        peer,
        peer.createData(),
        convert.q_to_peer(q),
        convert.v_to_peer(q, v),
        convert.tau_to_peer(q, tau),
    )
    ours = accelerations(robot, q, v, found.zeta_dot)
    close(convert.vdot_to_peer(q, v, ours), theirs)


def test_three_sweeps() -> None:
    """Inertias inward, velocities outward, forces and rates of inertias inward: no more."""
    sweeps = kernel("diagonal_dynamics").schedule.sweeps
    inward, outward = Direction.INWARD, Direction.OUTWARD
    assert [p.direction for p in sweeps] == [inward, outward, inward]


def test_machine_code(machine_code: None) -> None:
    """What users get: ζ̇ of joints of all kinds against a dense complex step; 1e-11."""
    c = case("tree", n=4)
    zeta = c.robot.diagonalize(c.q).to_zeta(c.v)
    found = c.robot.diagonal_forward_dynamics(c.q, zeta, c.tau)
    w = c.witness(0)
    close(found.zeta_dot[0], joint_map(c.robot.model).gather(w.rate(w.zeta)))
    close(found.v, c.v)


def test_batches_broadcast() -> None:
    """Forces may have batch axes of their own."""
    c = case("branched, one axis")
    zeta = c.robot.diagonalize(c.q[0]).to_zeta(c.v[0])
    found = c.robot.diagonal_forward_dynamics(c.q[0], zeta, c.tau)
    assert found.zeta_dot.shape == c.tau.shape
    alone = c.robot.diagonal_forward_dynamics(c.q[0], zeta, c.tau[1])
    close(found.zeta_dot[1], alone.zeta_dot, 1e-14)
