# SPDX-License-Identifier: BSD-3-Clause
"""Equations over all links against recursions, dense operators and each other."""

from __future__ import annotations

import numpy as np
import pytest

import phistar
from phistar import robots
from phistar.arrays import Array
from phistar.constraints import Gear, Point, Weld
from phistar.errors import (
    ArgumentError,
    LoopOpenError,
    LoopVelocityError,
    RedundantWrenchWarning,
    SingularHingeError,
    UnknownNameError,
)
from phistar.model import ModelBuilder
from phistar.model.components import GROUND
from phistar.model.random import random_model
from phistar.robot import Robot
from phistar.whole_system.block_cyclic_reduction import rounds
from phistar.whole_system.link_blocks import workless_forces
from phistar.whole_system.sparse_ltdl import sparse_ltdl

TREES = ["panda", "quadruped", "humanoid", "cartpole"]
CLOSED = ["four_bar", "delta", "humanoid_ankles"]


def _state(robot: Robot, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    v, tau = rng.normal(size=(2, robot.nv))
    if robot.loops:
        q, v = robot.project(robot.assemble(robot.neutral()), v)
        return q, v, tau
    return robot.random_configuration(seed), v, tau


def _error(found: Array, expected: Array) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("name", TREES + CLOSED)
def test_solution_is_the_recursive_one(name: str) -> None:
    """Accelerations with forces on a frame, 1e-10; the matrix is symmetric and indefinite."""
    robot = phistar.load(name)
    q, v, tau = _state(robot)
    forces = {robot.link_names[-1]: np.arange(6.0)}
    system = robot.system(q, v, tau, forces=forces)
    found = system.solve()
    assert _error(found.vdot, robot.forward_dynamics(q, v, tau, forces=forces)) < 1e-10
    assert np.abs(system.matrix - system.matrix.T).max() < 1e-12 * np.abs(system.matrix).max()
    if system.matrix.shape[0] < 200:
        signs = np.linalg.eigvalsh(system.matrix.toarray())
        assert (signs > 0).any()
        assert (signs < 0).any()


@pytest.mark.parametrize("seed", range(4))
def test_random_robots_of_every_joint_kind(seed: int) -> None:
    """Balls, free bodies, sliders, rotors, forests: accelerations and forces, 1e-9."""
    rng = np.random.default_rng(seed)
    robot = phistar.load(random_model(rng, 12, topology="forest", armature=0.5))
    q, v, tau = _state(robot, seed)
    found = robot.system(q, v, tau).solve()
    vdot = robot.forward_dynamics(q, v, tau)
    assert _error(found.vdot, vdot) < 1e-9
    for name, force in robot.reaction_forces(q, v, vdot).items():
        assert np.abs(found.forces[name] - force).max() < 1e-9 * (1 + np.abs(force).max()), name


@pytest.mark.parametrize("name", TREES)
def test_reaction_forces(name: str) -> None:
    """Sweeps against multipliers, 1e-10; along the joint they are its torque."""
    robot = phistar.load(name)
    q, v, tau = _state(robot)
    vdot = robot.forward_dynamics(q, v, tau)
    found = robot.system(q, v, tau).solve()
    forces = robot.reaction_forces(q, v, vdot)
    largest = max(np.abs(x).max() for x in forces.values())
    for body in robot.model.bodies:
        force = forces[body.joint]
        assert np.abs(found.forces[body.joint] - force).max() < 1e-10 * largest
        rotor = np.asarray(body.armature or 0.0) * vdot[body.v_slice]
        along = body.motion_map().T @ force + rotor
        assert np.abs(along - tau[body.v_slice]).max() < 1e-9 * (1 + largest)
    batch = robot.reaction_forces(np.stack([q, q]), v, vdot)
    assert all(x.shape == (2, 6) for x in batch.values())


def test_weight_on_the_base() -> None:
    """At rest the first joint carries what the robot weighs."""
    robot = phistar.load("panda")
    rest = np.zeros(robot.nv)
    first = robot.reaction_forces(robot.random_configuration(1), rest, rest)["panda_joint1"]
    moving = sum(body.inertia[0] for body in robot.model.bodies)
    assert np.linalg.norm(first[3:]) == pytest.approx(9.81 * moving, rel=1e-9)


def test_names_of_blocks() -> None:
    """An inertia stands where its link is named; unknown names are refused."""
    robot = phistar.load("panda")
    system = robot.system(*_state(robot))
    link, joint = ("acceleration", "panda_link3"), ("force", "panda_joint3")
    mass = system.block(link, link)
    assert mass[3, 3] > 0
    assert np.allclose(mass, mass.T)
    assert np.count_nonzero(system.block(joint, joint)) == 0
    assert system.block(link, joint).shape == (6, 5)
    covered = sorted(i for s in system.blocks.values() for i in range(s.start, s.stop))
    assert covered == list(range(system.matrix.shape[0]))
    with pytest.raises(UnknownNameError, match="panda_link3"):
        system.block(("acceleration", "panda_link33"), link)
    assert "7 links" in repr(system)


@pytest.mark.parametrize("name", [*TREES, "chain20"])
def test_elimination_fills_no_block(name: str) -> None:
    """Every number of the factor is in a block of the tree; their count is foretold."""
    robot = robots.chain(20) if name == "chain20" else phistar.load(name)
    system = robot.system(*_state(robot))
    factor = system.factor.L.tocoo()
    row, column = factor.coords
    below = (row > column) & (factor.data != 0.0)
    assert 0 < below.sum() <= system.factor_nonzeros
    number = np.empty(system.matrix.shape[0], dtype=int)
    for body in robot.model.bodies:
        for key in (("acceleration", body.link), ("force", body.joint)):
            number[system.blocks[key]] = body.index
    parents = {body.index: body.parent for body in robot.model.bodies}
    for i, j in zip(number[row[below]], number[column[below]], strict=True):
        assert i == j or parents[j] == i


def test_numbers_of_the_factor_grow_with_the_links() -> None:
    """Exactly: each link more adds as many as the one before."""
    counts = [robots.chain(n).system(*np.zeros((3, n))).factor_nonzeros for n in (10, 20, 40)]
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])


@pytest.mark.parametrize("links", [1, 2, 3, 7, 16, 33])
def test_constraint_forces_alone(links: int) -> None:
    """Eq. (28) on chains, at once and by cyclic reduction, is block tridiagonal: 1e-10."""
    robot = robots.chain(links)
    q, v, tau = _state(robot, links)
    system = robot.system(q, v, tau)
    expected = system.solve()
    for method in ("forces", "cyclic_reduction"):
        found = system.solve(method)
        assert _error(found.vdot, expected.vdot) < 1e-10, method
        largest = max(np.abs(x).max() for x in expected.forces.values())
        for joint, force in expected.forces.items():
            assert np.abs(found.forces[joint] - force).max() < 1e-9 * largest
    matrix = system.force_equations[0].toarray()
    far = np.abs(np.subtract.outer(np.arange(len(matrix)) // 5, np.arange(len(matrix)) // 5)) > 1
    assert not matrix[far].any()
    assert rounds(links) == int(np.ceil(np.log2(links)))


def test_incidence_inverts_to_the_shifts() -> None:
    """Eq. (29): the inverse of the incidence matrix is φ*."""
    robot = phistar.load("quadruped")
    q, v, tau = _state(robot)
    found = np.linalg.inv(robot.system(q, v, tau).incidence.toarray())
    x = np.random.default_rng(0).normal(size=6 * len(robot.model.bodies))
    assert _error(found @ x, robot.operators(q).phi.T @ x) < 1e-12


@pytest.mark.parametrize("name", ["panda", "quadruped", "humanoid"])
def test_sparse_factors_are_the_innovations(name: str) -> None:
    """𝓜 = L*DL, D is the articulated inertia at the joints, and L is zero but at ancestors."""
    robot = phistar.load(name)
    q = robot.random_configuration(0)
    L, D = sparse_ltdl(robot.model, robot.mass_matrix(q))
    assert _error(L.T @ D @ L, robot.mass_matrix(q)) < 1e-12
    vectors = np.eye(robot.nv)
    innovations = np.stack([robot.operators(q).D @ x for x in vectors], axis=-1)
    assert _error(D, innovations) < 1e-10
    for body in robot.model.bodies:
        allowed = np.zeros(robot.nv, dtype=bool)
        for k in robot.model.ancestors(body.index):
            allowed[robot.model.bodies[k].v_slice] = True
        assert not L[body.v_slice][:, ~allowed].any()


def test_loops_are_rows_before_the_link_where_they_end() -> None:
    """Points on the ground and gears; rows of the ground come last."""
    robot = phistar.load("quadruped")
    q = robot.random_configuration(0)
    hinges = [name for name in robot.joint_names if robot.joints[name].nv == 1]
    gear = Gear(hinges[0], hinges[4], ratio=0.5, offset=float(q[7] - 0.5 * q[11]))
    closed = robot.with_loops(gear, Point("HR_FOOT"), q=q)
    q, v = closed.project(q, np.random.default_rng(1).normal(size=robot.nv))
    tau = np.linspace(-1, 1, robot.nv)
    system = closed.system(q, v, tau)
    found = system.solve()
    result = closed.constrained_dynamics(q, v, tau)
    assert _error(found.vdot, result.vdot) < 1e-10
    assert _error(np.sort(found.multipliers), np.sort(result.multipliers)) < 1e-9
    factor = system.factor.L.tocoo()
    row, column = factor.coords
    assert 0 < ((row > column) & (factor.data != 0.0)).sum() <= system.factor_nonzeros
    tree = robot.system(q, v, tau).factor_nonzeros
    assert tree < system.factor_nonzeros < 2 * tree
    with pytest.raises(LoopOpenError, match="system of robot"):
        closed.system(robot.neutral(), v, tau)
    rows = [s for (kind, _), s in system.blocks.items() if kind == "loop"]
    assert max(s.stop for s in rows) == system.matrix.shape[0]
    carried = closed.reaction_forces(q, v, result.vdot, tau=tau)
    largest = max(np.abs(x).max() for x in carried.values())
    for joint, force in carried.items():
        assert np.abs(found.forces[joint] - force).max() < 1e-9 * largest, joint
    with pytest.raises(ArgumentError, match=r"closed loops|inertia"):
        system.force_equations  # noqa: B018


def test_reaction_forces_on_loops() -> None:
    """The least efforts by default; batches, forces on frames; tau of another motion refused."""
    robot = phistar.load("quadruped")
    q = robot.random_configuration(0)
    closed = robot.with_loops(Point("FL_FOOT"), Point("HR_FOOT"), q=q)
    q, v = closed.project(q, np.random.default_rng(1).normal(size=robot.nv))
    tau = np.linspace(-1, 1, robot.nv)
    push = {"FR_FOOT": np.array([0.1, -0.2, 0.3, 1.0, 2.0, -1.0])}
    vdot = closed.forward_dynamics(q, v, tau, forces=push)
    one = closed.reaction_forces(q, v, vdot, tau=tau, forces=push)
    found = closed.system(q, v, tau, forces=push).solve()
    for joint, force in found.forces.items():
        assert np.abs(one[joint] - force).max() < 1e-9 * (1 + np.abs(force).max()), joint
    many = closed.reaction_forces(np.stack([q, q]), v, vdot, tau=tau, forces=push)
    assert all(_error(many[joint][1], one[joint]) < 1e-12 for joint in one)
    least = closed.constrained_inverse_dynamics(q, v, vdot, forces=push).tau
    default = closed.reaction_forces(q, v, vdot, forces=push)
    told = closed.reaction_forces(q, v, vdot, tau=least, forces=push)
    assert all(np.array_equal(default[joint], told[joint]) for joint in default)
    assert any(_error(default[joint], one[joint]) > 1e-3 for joint in one)
    with pytest.raises(ArgumentError, match=r"does not move with this vdot.*leave tau out"):
        closed.reaction_forces(q, v, vdot, tau=tau + 1.0, forces=push)
    with pytest.raises(LoopVelocityError, match="reaction_forces"):
        closed.reaction_forces(q, v, vdot + 1.0)
    with pytest.raises(ArgumentError, match="no loops"):
        closed.tree.reaction_forces(q, v, vdot, tau=tau)


def test_reaction_forces_that_loops_leave_open_are_said() -> None:
    """Four welded feet hold each other in tension."""
    robot = phistar.load("quadruped")
    feet = [Weld(f"{leg}_FOOT") for leg in ("FL", "FR", "HL", "HR")]
    q = robot.neutral()
    closed = robot.with_loops(*feet, q=q)
    rest = np.zeros(robot.nv)
    with pytest.warns(RedundantWrenchWarning, match="not determined"):
        closed.reaction_forces(q, rest, rest)


def test_what_cannot_be_is_refused() -> None:
    """Batches, branches, massless links, unknown methods: one clear error each."""
    robot = phistar.load("quadruped")
    q, v, tau = _state(robot)
    with pytest.raises(ArgumentError, match="one state"):
        robot.system(np.stack([q, q]), v, tau)
    with pytest.raises(ArgumentError, match="branches"):
        robot.system(q, v, tau).solve("cyclic_reduction")
    with pytest.raises(UnknownNameError, match="sparse"):
        robot.system(q, v, tau).solve("spars")
    with pytest.raises(phistar.errors.PhistarError, match=r"nan|NaN|finite"):
        robot.system(q, np.full(robot.nv, np.nan), tau)
    builder = ModelBuilder("massless")
    builder.link("ground")
    builder.link("frame")
    builder.joint("pan", "revolute", "ground", "frame", axis=(0, 0, 1))
    builder.link("head", 1.0, (0.1, 0, 0), (0.1, 0.1, 0.1))
    builder.joint("tilt", "revolute", "frame", "head", xyz=(0, 0, 0.1), axis=(0, 1, 0))
    light = phistar.load(builder.build())
    state = (np.array([0.3, 0.4]), np.array([1.0, 2.0]), np.array([0.5, -0.2]))
    assert _error(light.system(*state).solve().vdot, light.forward_dynamics(*state)) < 1e-10
    with pytest.raises(ArgumentError, match="'frame'"):
        light.system(*state).solve("forces")


def test_forces_that_do_no_work() -> None:
    """An orthonormal complement of any motions, the same in every process."""
    B = np.random.default_rng(0).normal(size=(6, 2))
    T = workless_forces(B)
    assert np.abs(B.T @ T).max() < 1e-14
    assert np.abs(T.T @ T - np.eye(4)).max() < 1e-14
    assert workless_forces(np.eye(6)).shape == (6, 0)
    assert GROUND == -1


def test_a_joint_without_inertia_is_named() -> None:
    """Not the equations are to blame."""
    builder = ModelBuilder("loose")
    builder.link("base")
    builder.link("tip")
    builder.joint("hinge", "revolute", "base", "tip")
    with pytest.raises(SingularHingeError, match=r"hinge.*armature"):
        Robot(builder.build()).system([0.0], [0.0], [0.0]).solve()
