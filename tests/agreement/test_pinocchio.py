# SPDX-License-Identifier: BSD-3-Clause
"""Bundled robots against Pinocchio where ``test_dynamics`` does not look: 𝓜⁻¹, C, momentum, J."""

import numpy as np
import pinocchio as pin
import pytest

import phistar
from phistar.algorithms.operational_space import compliance
from phistar.conventions import Convention, swap_rows

NAMES = ["double_pendulum", "panda", "panda_hand", "ur5", "quadruped", "humanoid"]
Pair = tuple[phistar.Robot, "pin.Model", Convention, np.ndarray, np.ndarray]


@pytest.fixture(scope="module", params=NAMES)
def pair(request: pytest.FixtureRequest) -> Pair:
    """A robot on both sides, in a state of ours."""
    name = request.param
    base = [pin.JointModelFreeFlyer()] if phistar.robots.floats(name) else []
    robot = phistar.load(name, mimic="independent")
    peer = pin.buildModelFromUrdf(str(phistar.robots.path(name)), *base)
    rng = np.random.default_rng(1)
    q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
    return robot, peer, phistar.conventions.pinocchio(robot, peer), q, v


def _close(ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> None:
    assert np.shape(ours) == np.shape(theirs)
    assert np.abs(ours - theirs).max() <= tolerance * np.abs(theirs).max()


def test_inverse_of_the_mass_matrix(pair: Pair) -> None:
    """𝓜⁻¹ from the factors is ``computeMinverse``; relative 1e-9."""
    robot, peer, convert, q, _ = pair
    theirs = pin.computeMinverse(peer, peer.createData(), convert.q_to_peer(q))
    turn = convert.velocity_matrix(q)
    _close(turn @ robot.mass_matrix_inverse(q) @ turn.T, theirs, 1e-9)


def test_coriolis_matrix(pair: Pair) -> None:
    """The same matrix, not only the same product with v; relative 1e-10."""
    robot, peer, convert, q, v = pair
    data = peer.createData()
    theirs = pin.computeCoriolisMatrix(peer, data, convert.q_to_peer(q), convert.v_to_peer(q, v))
    _close(convert.matrix_to_peer(q, robot.coriolis_matrix(q, v)), theirs, 1e-10)
    ours = robot.operators(q, v).C
    _close(convert.matrix_to_peer(q, ours.T.dense()), theirs.T, 1e-10)


def test_momentum(pair: Pair) -> None:
    """Momentum about the world's origin is the centroidal one, moved there; relative 1e-10."""
    robot, peer, convert, q, v = pair
    data = peer.createData()
    theirs = pin.computeCentroidalMomentum(
        peer, data, convert.q_to_peer(q), convert.v_to_peer(q, v)
    )
    angular = theirs.angular + np.cross(data.com[0], theirs.linear)
    _close(robot.momentum(q, v), np.concatenate([angular, theirs.linear]), 1e-10)


@pytest.mark.parametrize(
    ("reference", "theirs"),
    [("local", pin.LOCAL), ("world", pin.WORLD), ("world_aligned", pin.LOCAL_WORLD_ALIGNED)],
)
def test_jacobians(pair: Pair, reference: str, theirs: "pin.ReferenceFrame") -> None:
    """The operator J of every third link, stacked, and its transpose; relative 1e-11."""
    robot, peer, convert, q, _ = pair
    data, frames = peer.createData(), list(robot.link_names[1::3])
    pin.computeJointJacobians(peer, data, convert.q_to_peer(q))
    pin.updateFramePlacements(peer, data)
    rows = [pin.getFrameJacobian(peer, data, peer.getFrameId(f), theirs) for f in frames]
    expected = np.concatenate([convert.jacobian_from_peer(q, row) for row in rows])
    operator = robot.operators(q).J(frames, reference)
    _close(operator.dense(), expected, 1e-11)
    _close(operator.T.dense(), expected.T, 1e-11)


def test_operational_inertia(pair: Pair) -> None:
    """J 𝓜⁻¹ J* of a frame by sweeps is the product of Pinocchio's matrices; relative 1e-9."""
    robot, peer, convert, q, _ = pair
    data, frame, theirs = peer.createData(), robot.link_names[-1], convert.q_to_peer(q)
    jacobian = pin.computeFrameJacobian(peer, data, theirs, peer.getFrameId(frame), pin.LOCAL)
    inverse = pin.computeMinverse(peer, peer.createData(), theirs)
    rows = swap_rows(jacobian @ inverse @ jacobian.T)
    ours = robot.operators(q).operator(compliance, frames=[frame])
    _close(ours.dense(), swap_rows(rows.T).T, 1e-9)


def test_matrices_of_a_long_chain() -> None:
    """𝓜 and 𝓜⁻¹ of 100 links, whose code is loops, are ``crba`` and ``computeMinverse``."""
    robot = phistar.robots.chain(100, axes="xyz")
    peer = pin.buildModelFromXML(robot.to_urdf())
    convert = phistar.conventions.pinocchio(robot, peer)
    for q in robot.random_configuration(np.random.default_rng(2), 2):
        theirs = np.triu(pin.crba(peer, peer.createData(), convert.q_to_peer(q)))
        theirs += np.triu(theirs, 1).T
        _close(convert.matrix_to_peer(q, robot.mass_matrix(q)), theirs, 1e-12)
        inverse = pin.computeMinverse(peer, peer.createData(), convert.q_to_peer(q))
        inverse = np.triu(inverse) + np.triu(inverse, 1).T
        turn = convert.velocity_matrix(q)
        _close(turn @ robot.mass_matrix_inverse(q) @ turn.T, inverse, 1e-9)
