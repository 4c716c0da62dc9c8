# SPDX-License-Identifier: BSD-3-Clause
"""Dense operators against independent witnesses: Jacobians, mass matrices, Pinocchio."""

import numpy as np
import pinocchio as pin
import pytest

import phistar
from phistar.algebra.dense import Dense, ExpressionFrame
from phistar.algebra.ir import crf, crm
from phistar.algebra.symbols import (
    S_X,
    S_Z,
    A,
    B,
    D,
    D_root,
    E_phi,
    G,
    H,
    M,
    P,
    T,
    Upsilon,
    X,
    Xi,
    composite,
    gravity,
    mass_matrix,
    phi,
    psi,
    tau,
    v,
    vdot,
)
from phistar.errors import ArgumentError
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.robot import Robot
from tools.golden import dense_mass_matrix

FRAMES: tuple[ExpressionFrame, ...] = ("link", "origin", "inertial")


def _robot(seed: int, **options: object) -> Robot:
    rng = np.random.default_rng(seed)
    return Robot(random_model(rng, 8, topology="tree", fixed=0.3, frames=2, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("frame", FRAMES)
def test_mass_matrix_is_the_sum_over_the_bodies(frame: ExpressionFrame) -> None:
    """HφMφ*H* + A equals the sum of J* M J, in every frame; relative 1e-12."""
    robot = _robot(1, armature=0.5)
    q = robot.random_configuration(2)
    expected = dense_mass_matrix(robot, q)
    error = np.abs(Dense(robot.model, q, frame)(mass_matrix) - expected).max()
    assert error < 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("frame", FRAMES)
def test_task_jacobian(frame: ExpressionFrame) -> None:
    """B*φ*H* is the Jacobian of the chosen frames, local to each whatever the links use."""
    robot = _robot(3)
    q = robot.random_configuration(4)
    tasks = ("link5", "frame1", "link2")
    jacobian = Dense(robot.model, q, frame, tasks=tasks)(B.T @ phi.T @ H.T)
    expected = np.concatenate([robot.jacobian(q, name, "local") for name in tasks])
    assert np.abs(jacobian - expected).max() < 1e-12


@pytest.mark.parametrize("frame", ["link", "inertial"])
def test_inverse_dynamics_of_pinocchio(frame: ExpressionFrame) -> None:
    """τ = Hφ(M α + crf[V]MV), α = φ*(H*v̇ + crm[V]H*v + γ): gravity is a leaf."""
    robot = phistar.load("panda")
    peer = pin.buildModelFromUrdf(str(phistar.robots.path("panda")))
    rng = np.random.default_rng(5)
    q, speed, acceleration = robot.random_configuration(rng), *rng.normal(size=(2, 7))
    dense = Dense(robot.model, q, frame, vectors={"v": speed, "vdot": acceleration})
    V = phi.T @ H.T @ v
    # Spatial accelerations have this bias in both frames; with fixed axes at moving origins it is
    # another one (MATH 1.4), so "origin" is left out.
    alpha = phi.T @ (H.T @ vdot + crm(V) @ H.T @ v + gravity)
    torque = dense(H @ phi @ (M @ alpha + crf(V) @ M @ V))
    expected = pin.rnea(peer, peer.createData(), q, speed, acceleration)
    assert np.abs(torque - expected).max() < 1e-10 * np.abs(expected).max()


def test_articulated_inertia_is_what_a_hinge_feels() -> None:
    """D(k) is the inverse of the k-th diagonal block of (𝓜 of joint k and those beyond it)⁻¹."""
    robot = _robot(6, armature=0.5)
    q = robot.random_configuration(7)
    dense = Dense(robot.model, q)
    matrix, d = dense(mass_matrix), dense(D)
    for body in robot.model.bodies:
        beyond = [
            k for k in range(body.index, len(robot.model.bodies)) if _descends(robot, k, body.index)
        ]
        rows = np.concatenate([np.r_[dense.joint_slices[k]] for k in beyond])
        own = np.r_[dense.joint_slices[body.index]]
        inverse = np.linalg.inv(matrix[np.ix_(rows, rows)])[: own.size, : own.size]
        block = d[np.ix_(own, own)]
        assert np.abs(np.linalg.inv(inverse) - block).max() < 1e-9 * np.abs(block).max()


def _descends(robot: Robot, k: int, ancestor: int) -> bool:
    return ancestor in robot.model.ancestors(k)


def test_composite_inertia_at_the_roots_is_the_whole_tree() -> None:
    """The composite inertia of a free base is the inertia of everything it carries."""
    robot = _robot(8, floating_base=True)
    q = robot.random_configuration(9)
    block = Dense(robot.model, q)(composite)[:6, :6]
    assert block[3, 3] == pytest.approx(robot.model.inertias[:, 0].sum(), rel=1e-12)
    world = robot.frame_pose(q, "link0")
    com = world[:3, :3].T @ (robot.center_of_mass(q, fixed=False) - world[:3, 3])
    skew_part = block[:3, 3:] / block[3, 3]
    assert np.allclose([skew_part[2, 1], skew_part[0, 2], skew_part[1, 0]], com, atol=1e-12)


def test_gain_reads_its_definition() -> None:
    """G = P H* D⁻¹ and D = H P H* + A as matrices."""
    robot = _robot(10, armature=0.5)
    dense = Dense(robot.model, robot.random_configuration(11))
    assert np.allclose(dense(G), dense(P) @ dense(H).T @ np.linalg.inv(dense(D)), atol=1e-12)
    assert np.allclose(dense(D), dense(H) @ dense(P) @ dense(H).T + dense(A), atol=1e-12)


def test_shift_is_nilpotent() -> None:
    """A tree has no cycles: a high power of E_phi vanishes."""
    robot = _robot(12)
    shift = Dense(robot.model, robot.random_configuration(13))(E_phi)
    assert not np.linalg.matrix_power(shift, len(robot.model.bodies)).any()


def test_complex_configurations_are_differentiable() -> None:
    """The complex step of φ equals its central difference."""
    model = random_model(np.random.default_rng(14), 4, kinds=["revolute", "prismatic"])
    q = random_configuration(model, np.random.default_rng(15))
    step = np.zeros(4)
    step[1] = 1.0
    exact = Dense(model, q + 1e-30j * step)(mass_matrix).imag / 1e-30
    ahead, behind = (Dense(model, q + s * step)(mass_matrix) for s in (1e-6, -1e-6))
    assert np.abs(exact - (ahead - behind) / 2e-6).max() < 1e-7 * np.abs(exact).max()


def test_missing_values_are_named() -> None:
    """A vector without a value, and an unknown frame of expression, are clear errors."""
    model = random_model(np.random.default_rng(16), 3)
    q = random_configuration(model, np.random.default_rng(17))
    with pytest.raises(ArgumentError, match="tau"):
        Dense(model, q)(tau)
    with pytest.raises(ArgumentError, match="inertial"):
        Dense(model, q, "body")  # type: ignore[arg-type]


def test_root_is_the_cholesky_factor() -> None:
    """√D has the Cholesky factors of the blocks of D, multi-dof joints included."""
    robot = _robot(18, armature=0.5)
    dense = Dense(robot.model, robot.random_configuration(19))
    d, root = dense(D), dense(D_root)
    for rows in dense.joint_slices:
        assert np.allclose(root[rows, rows], np.linalg.cholesky(d[rows, rows]), rtol=1e-12)
    assert np.abs(root @ root.T - d).max() < 1e-12 * np.abs(d).max()


def test_root_is_analytic() -> None:
    """The complex step of √D equals its central difference."""
    model = random_model(np.random.default_rng(20), 5, kinds=["revolute", "cylindrical"])
    q = random_configuration(model, np.random.default_rng(21))
    step = np.random.default_rng(22).normal(size=q.shape)
    exact = Dense(model, q + 1e-30j * step)(D_root).imag / 1e-30
    ahead, behind = (Dense(model, q + s * step)(D_root) for s in (1e-6, -1e-6))
    assert np.abs(exact - (ahead - behind) / 2e-6).max() < 1e-7 * np.abs(exact).max()


@pytest.mark.parametrize("frame", FRAMES)
def test_constraint_forces_span_what_the_axes_leave(frame: ExpressionFrame) -> None:
    """T has 6 - d independent columns a joint, none of which does work along its axes."""
    robot = _robot(23)
    dense = Dense(robot.model, robot.random_configuration(24), frame)
    held, axes = dense(T), dense(H)
    assert np.abs(axes @ held).max() < 1e-12 * np.abs(axes).max() * np.abs(held).max()
    whole = np.concatenate([axes.T, held], axis=1)
    assert whole.shape[0] == whole.shape[1]
    assert np.linalg.matrix_rank(held) == held.shape[1]


def test_links_on_different_branches_meet_in_a_common_ancestor() -> None:
    """A block of ψ*Ξψ is ψ*(c,i) Υ(c) ψ(c,j), c the nearest common ancestor; zero on one path."""
    model = random_model(np.random.default_rng(25), 10, topology="binary")
    dense = Dense(model, random_configuration(model, np.random.default_rng(26)))
    cross, free, give = dense(psi.T @ Xi @ psi), dense(psi), dense(Upsilon)
    met = 0
    for i in range(len(model.bodies)):
        for j in range(len(model.bodies)):
            block = cross[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]
            expected = np.zeros((6, 6))
            mine, other = model.ancestors(i), model.ancestors(j)
            common = set(mine) & set(other)
            if common and i not in other and j not in mine:
                c = slice(6 * max(common), 6 * max(common) + 6)
                to_i, to_j = (free[c, 6 * k : 6 * k + 6] for k in (i, j))
                expected = to_i.T @ give[c, c] @ to_j
                met += 1
            assert np.abs(block - expected).max() < 1e-10 * np.abs(cross).max()
    assert met > 10


def test_outward_sums_are_plain_sums_in_the_inertial_frame() -> None:
    """There E_phi is a pure shift, so S_Z is Z summed over a link and its ancestors."""
    robot = _robot(27)
    count = len(robot.model.bodies)
    blocks = np.random.default_rng(28).normal(size=(count, 6, 6))
    given = np.zeros((6 * count, 6 * count))
    for k in range(count):
        given[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] = blocks[k]
    q = robot.random_configuration(29)
    sums = Dense(robot.model, q, "inertial", {"Z": given})(S_Z)
    for k in range(count):
        expected = sum(blocks[i] for i in robot.model.ancestors(k))
        assert np.allclose(sums[6 * k : 6 * k + 6, 6 * k : 6 * k + 6], expected, atol=1e-12)


def test_given_operators_are_asked_for() -> None:
    """What hangs on X cannot be evaluated without X."""
    model = random_model(np.random.default_rng(30), 3)
    with pytest.raises(ArgumentError, match=f"no value was given for {X.name}"):
        Dense(model, random_configuration(model, np.random.default_rng(31)))(S_X)
