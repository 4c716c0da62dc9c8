# SPDX-License-Identifier: BSD-3-Clause
"""Loops as matrices: rows against Jacobians, partitions against singular values, nodes by hand."""

import numpy as np
import pytest

from phistar.algebra.dense import Dense, ExpressionFrame
from phistar.algebra.dense_loops import LoopRows, node_numbers, partition
from phistar.algebra.ir import I
from phistar.algebra.loop_identities import on_nodes
from phistar.algebra.loop_symbols import (
    D_a,
    H_a,
    coupling,
    embedding,
    loop_compliance,
    loop_jacobian,
    mass_matrix_a,
    phi_a,
    self_stress,
)
from phistar.algebra.random_examples import random_loops, random_model_with, random_vectors
from phistar.algebra.spaces import MINIMAL
from phistar.algebra.symbols import D, H, mass_matrix, phi, tau, vector
from phistar.model.components import GROUND
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.robot import Robot
from phistar.spatial import motion_transform, pose_inverse

FRAMES: tuple[ExpressionFrame, ...] = ("link", "origin", "inertial")


def _robot(seed: int) -> Robot:
    return Robot(random_model(np.random.default_rng(seed), 8, topology="tree", frames=3))


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("ends", [("link2", "frame1"), ("world", "frame2"), ("link6", "world")])
def test_rows_are_relative_velocities(ends: tuple[str, str], frame: ExpressionFrame) -> None:
    """L = N*(J₂ - X₂₁J₁) with the Jacobians of the two frames; relative 1e-12."""
    robot = _robot(1)
    q = robot.random_configuration(2)
    jacobians, poses, bodies, placed = [], [], [], []
    for name in ends:
        ground = name == "world"
        jacobians.append(np.zeros((6, robot.nv)) if ground else robot.jacobian(q, name, "local"))
        poses.append(np.eye(4) if ground else robot.frame_pose(q, name))
        bodies.append(GROUND if ground else robot.model.frame(name).body)
        placed.append(np.eye(4) if ground else robot.model.frame(name).body_pose)
    forces = np.random.default_rng(3).normal(size=(6, 4))
    relative = jacobians[1] - motion_transform(pose_inverse(poses[1]) @ poses[0]) @ jacobians[0]
    rows = LoopRows(bodies[0], bodies[1], forces, successor_pose=placed[1])
    ours = Dense(robot.model, q, frame, loops=[rows])(loop_jacobian)
    assert np.abs(ours - forces.T @ relative).max() < 1e-12 * np.abs(ours).max()


def test_couplings_and_loops_are_stacked_in_order() -> None:
    """A gear's rows stand between those of two loops and act on joint rates."""
    robot = _robot(4)
    q, rng = robot.random_configuration(5), np.random.default_rng(6)
    gear = rng.normal(size=(1, robot.nv))
    loops = [
        LoopRows(0, 3, rng.normal(size=(6, 2))),
        LoopRows(GROUND, GROUND, np.zeros((6, 1)), gear),
        LoopRows(GROUND, 5, rng.normal(size=(6, 3))),
    ]
    dense = Dense(robot.model, q, loops=loops)
    assert dense(loop_jacobian).shape == (6, robot.nv)
    assert np.array_equal(dense(loop_jacobian)[2], gear[0])
    assert np.array_equal(np.flatnonzero(np.abs(dense(coupling)).max(axis=1)), [2])


def test_without_loops_there_are_no_rows() -> None:
    """L is empty, every rate is independent and nodes are links."""
    robot = _robot(7)
    dense = Dense(robot.model, robot.random_configuration(8))
    assert dense(loop_jacobian).shape == (0, robot.nv)
    assert np.array_equal(dense(embedding), np.eye(robot.nv))
    assert np.allclose(dense(mass_matrix_a), dense(mass_matrix), rtol=1e-12)
    assert np.allclose(dense(D_a), dense(D), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("rows", "rank"), [(3, 3), (6, 4), (9, 2), (0, 0), (4, 0)])
def test_partition(rows: int, rank: int) -> None:
    """As many dependent rates as singular values; what it says of L holds, relative 1e-10."""
    rng = np.random.default_rng(rows)
    matrix = rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, 7))
    ours = partition(matrix)
    assert len(ours.rows) == len(ours.dependent) == rank
    assert sorted([*ours.dependent, *ours.independent]) == list(range(7))
    x, r, s = ours.embedding(), ours.independent_rates(), ours.particular_rates()
    scale = 1e-10 * max(1.0, np.abs(matrix).max(initial=0.0))
    assert np.abs(matrix @ x).max(initial=0.0) < scale
    assert np.abs(x @ r + s @ matrix - np.eye(7)).max() < 1e-10
    assert np.abs(matrix @ s @ matrix - matrix).max(initial=0.0) < scale
    stress = ours.self_stress()
    assert np.abs(matrix.T @ stress).max(initial=0.0) < 1e-9
    assert bool(stress.any()) == (rows > rank)


def test_partition_takes_complex_steps() -> None:
    """The embedding is an analytic function of L: complex step against central differences."""
    rng = np.random.default_rng(0)
    matrix, change = rng.normal(size=(2, 3, 6))
    step = partition(matrix + 1e-30j * change).embedding().imag / 1e-30
    ends = [partition(matrix + h * change).embedding() for h in (1e-6, -1e-6)]
    assert np.abs(step - (ends[0] - ends[1]) / 2e-6).max() < 1e-6 * np.abs(step).max()


PARENTS = [GROUND, 0, 1, 1, 3, 0, 5, GROUND]
"""0 carries 1 and 5; 1 carries 2 and 3; 3 carries 4; 5 carries 6; 7 stands alone."""


@pytest.mark.parametrize(
    ("ends", "coupled", "nodes"),
    [
        ([(2, 4)], [], [0, 1, 2, 2, 2, 5, 6, 7]),
        ([(1, 4)], [], [0, 1, 2, 3, 3, 5, 6, 7]),
        ([(4, 6)], [], [0, 1, 2, 1, 1, 1, 1, 7]),
        ([(2, 4), (4, 6)], [], [0, 1, 1, 1, 1, 1, 1, 7]),
        ([(2, 4), (5, 6)], [], [0, 1, 2, 2, 2, 5, 6, 7]),
        ([(GROUND, 2)], [], [0, 0, 0, 3, 4, 5, 6, 7]),
        ([(7, 2)], [], [0, 0, 0, 3, 4, 5, 6, 0]),
        ([], [(3, 4)], [0, 1, 2, 3, 3, 5, 6, 7]),
        ([], [(2, 3)], [0, 1, 2, 2, 4, 5, 6, 7]),
        ([], [(4, 6)], [0, 1, 2, 1, 1, 1, 1, 7]),
        ([], [(5,)], [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_nodes_are_links_that_share_loops(
    ends: list[tuple[int, int]], coupled: list[tuple[int, ...]], nodes: list[int]
) -> None:
    """Paths up to, without, the common ancestor; overlapping ones are united."""
    loops = [LoopRows(*pair, np.ones((6, 1))) for pair in ends]
    for joints in coupled:
        row = np.isin(np.arange(8), joints)[None].astype(float)
        loops.append(LoopRows(GROUND, GROUND, np.zeros((6, 1)), row))
    assert node_numbers(PARENTS, loops, np.arange(8)) == nodes


def test_expressions_on_nodes() -> None:
    """Operators, identities and spaces change; vectors as one says."""
    assert on_nodes(H @ phi) is H_a @ phi_a
    assert on_nodes(I + mass_matrix @ D.inv) is I + mass_matrix_a @ D_a.inv
    assert on_nodes(mass_matrix.inv @ tau, {tau: embedding.T @ tau}) is (
        mass_matrix_a.inv @ embedding.T @ tau
    )


@pytest.mark.parametrize("seed", range(8))
def test_random_loops_meet_their_hypotheses(seed: int) -> None:
    """Rows are redundant unless that is excluded, coupled unless that is; some motion is left."""
    for needs in ((), ("independent",), ("uncoupled",), ("independent", "uncoupled")):
        rng = np.random.default_rng(seed)
        model = random_model_with(rng, needs)
        loops = random_loops(rng, model, needs)
        dense = Dense(model, random_configuration(model, rng), loops=loops)
        rows, left = dense(loop_jacobian).shape[0], dense(embedding).shape
        redundant = rows - (left[0] - left[1])
        assert bool(redundant) == ("independent" not in needs)
        assert bool(dense(self_stress).any()) == ("independent" not in needs)
        assert bool(dense(coupling).any()) == ("uncoupled" not in needs)
        assert left[1] > 0
        if not redundant:
            assert np.linalg.cond(dense(loop_compliance)) < 1e10


def test_random_minimal_vectors_have_the_size_of_the_motion_left() -> None:
    """A user's theorem may have vectors of minimal rates."""
    y = vector("minimal_test_vector", MINIMAL)
    rng = np.random.default_rng(1)
    model = random_model_with(rng, ())
    loops = random_loops(rng, model, ())
    values = random_vectors(rng, model, [embedding @ y], loops)
    q = random_configuration(model, rng)
    assert Dense(model, q, vectors=values, loops=loops)(embedding @ y).shape == (model.nv,)
