# SPDX-License-Identifier: BSD-3-Clause
"""A mobile base (Rodriguez & Kreutz-Delgado 1992, section VIII) is one more joint: H = I there."""

from operator import attrgetter

import numpy as np
import pinocchio as pin
import pytest

import phistar
from phistar.algebra.dense import Dense
from phistar.algebra.numerical_check import RELATIVE_TOLERANCE
from phistar.algebra.proof import Theorem
from phistar.algebra.random_examples import random_loops, random_vectors
from phistar.algebra.symbols import D, G, H, P, composite, mass_matrix, vdot
from phistar.algorithms.articulated_body import P_plus
from phistar.algorithms.catalogue import catalogue
from phistar.algorithms.inverse_dynamics import bias_force, f, inverse_dynamics
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model

BASE = slice(0, 6)


def _free(seed: int, topology: str = "tree", armature: float = 0.0) -> Dense:
    """A robot on a free base, with random values for all vectors of inverse dynamics."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, 6, topology=topology, floating_base=True, armature=armature)
    assert model.bodies[0].joint_kind.name == "free"
    exprs = (inverse_dynamics.definition, inverse_dynamics.result)
    values = random_vectors(rng, model, exprs)
    return Dense(model, random_configuration(model, rng), vectors=values)


def test_the_base_is_a_joint_with_all_axes() -> None:
    """(74): H of the base is the identity; so D = P, G = I, and nothing is passed to the ground."""
    dense = _free(1)
    eye = np.eye(6)
    assert np.array_equal(dense(H)[BASE, BASE], eye)
    assert np.abs(dense(D)[BASE, BASE] - dense(P)[BASE, BASE]).max() < 1e-12
    assert np.abs(dense(G)[BASE, BASE] - eye).max() < 1e-10
    scale = np.abs(dense(P)[BASE, BASE]).max()
    assert np.abs(dense(P_plus)[BASE, BASE]).max() < 1e-10 * scale


def test_the_force_on_the_base_is_its_joint_force() -> None:
    """(77): T(N+1) = f(N+1), as the equations of motion (79) have it in their base rows."""
    dense = _free(2)
    torque = dense(inverse_dynamics.definition)
    assert np.abs(torque[BASE] - dense(f)[BASE]).max() < 1e-11 * np.abs(torque).max()


def test_partition_of_the_mass_matrix() -> None:
    """(79): the base's block is R, and that of the inverse is the inverse of its P."""
    dense = _free(3, armature=0.5)
    mass = dense(mass_matrix)
    arm = slice(6, mass.shape[0])
    base, coupling, joints = mass[BASE, BASE], mass[BASE, arm], mass[arm, arm]
    rotor = np.diag(dense.model.bodies[0].armature)
    assert np.abs(base - dense(composite)[BASE, BASE] - rotor).max() < 1e-12 * np.abs(base).max()
    articulated = base - coupling @ np.linalg.solve(joints, coupling.T)
    assert np.abs(dense(D)[BASE, BASE] - articulated).max() < 1e-10 * np.abs(base).max()
    inverse = dense(catalogue()["mass_matrix_inverse"].result)
    expected = np.linalg.inv(articulated)
    assert np.abs(inverse[BASE, BASE] - expected).max() < 1e-9 * np.abs(expected).max()
    moving = np.linalg.inv(joints - coupling.T @ np.linalg.solve(base, coupling))
    assert np.abs(inverse[arm, arm] - moving).max() < 1e-9 * np.abs(moving).max()


def test_equations_of_motion_are_inverted() -> None:
    """(79): accelerations of joints and base from forces on both, by the factored inverse."""
    dense = _free(4, armature=0.5)
    torque = dense(inverse_dynamics.result)
    inverse = dense(catalogue()["mass_matrix_inverse"].result)
    found = inverse @ (torque - dense(bias_force))
    expected = dense(vdot)
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize(
    "theorem",
    [known for known in catalogue().values() if "one_dof" not in known.needs],
    ids=attrgetter("name"),
)
def test_every_theorem_holds_with_a_mobile_base(theorem: Theorem) -> None:
    """Only the dimensions change: both sides agree on free-base robots; relative 1e-9."""
    rng = np.random.default_rng(5)
    topology = "serial" if "serial" in theorem.needs else "tree"
    armature = 0.0 if "unmotored" in theorem.needs else 0.5
    model = random_model(rng, 6, topology=topology, floating_base=True, armature=armature)
    loops = random_loops(np.random.default_rng(7), model, theorem.needs)
    values = random_vectors(rng, model, (theorem.definition, theorem.result), loops)
    q = random_configuration(model, rng)
    dense = Dense(model, q, vectors=values, tasks=("link2",), loops=loops)
    ours, theirs = dense(theorem.definition), dense(theorem.result)
    assert np.abs(ours - theirs).max() < RELATIVE_TOLERANCE * max(1e-2, np.abs(theirs).max())


def test_forward_dynamics_of_a_free_quadruped() -> None:
    """Base and joint accelerations by each of the four algorithms agree with Pinocchio's; 1e-9."""
    robot = phistar.load("quadruped", floating_base=True)
    peer = pin.buildModelFromUrdf(str(phistar.robots.path("quadruped")), pin.JointModelFreeFlyer())
    rng = np.random.default_rng(6)
    q = robot.random_configuration(rng)
    speed, torque = rng.normal(size=(2, robot.nv))
    swap = np.r_[3:6, 0:3, 6 : robot.nv]
    expected = pin.aba(peer, peer.createData(), q, speed[swap], torque[swap])[swap]
    for method in ("1", "2", "3", "4"):
        found = robot.forward_dynamics(q, speed, torque, method=method)
        assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()
