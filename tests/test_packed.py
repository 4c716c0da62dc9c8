# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of which only some entries are kept: the same numbers, and arithmetic with them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import phistar
from phistar.compile import entry_pattern
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.model.random import random_model
from phistar.packed import EntryPattern, PackedMatrix, SparseMatrix
from phistar.robot import Robot

QUADRUPED = phistar.load("quadruped")


def _states(robot: Robot, *batch: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng, batch)
    return q, rng.standard_normal((*batch, robot.nv)), rng.standard_normal((*batch, robot.nv))


def test_numbers_of_the_issue() -> None:
    """Entries on the humanoid and the quadruped, counted by hand from their trees."""
    for name, counts in (("humanoid", (458, 875, 752)), ("quadruped", (117, 216, 162))):
        model = phistar.load(name).model
        kinds = ("packed", "related", "shifted")
        assert tuple(len(entry_pattern(model, kind)) for kind in kinds) == counts


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_left_out(seed: int) -> None:
    """On random robots of all joint kinds, what is not kept is zero, mimic joints included."""
    robot = Robot(random_model(np.random.default_rng(seed), 6, mimic=0.3))
    q, v, vdot = _states(robot, 3, seed=seed)
    mass, packed = robot.mass_matrix(q), robot.mass_matrix(q, form="packed")
    assert np.abs(packed.to_dense() - mass).max() <= 1e-13 * np.abs(mass).max()
    whole = robot.linearize_inverse(q, v, vdot)
    sparse = robot.linearize_inverse(q, v, vdot, form="sparse")
    for name in ("tau_q", "tau_v", "tau_vdot"):
        dense = getattr(whole, name)
        assert np.abs(getattr(sparse, name).to_dense() - dense).max() <= 1e-13 * np.abs(dense).max()
    assert np.abs(sparse.tau - whole.tau).max() <= 1e-13 * np.abs(whole.tau).max()


@pytest.mark.parametrize("batch", [(), (5,), (2, 3)])
def test_arithmetic(batch: tuple[int, ...]) -> None:
    """Products and solutions against NumPy's with the dense matrix."""
    q, x, _ = _states(QUADRUPED, *batch)
    packed = QUADRUPED.mass_matrix(q, form="packed")
    mass = QUADRUPED.mass_matrix(q)
    assert packed.shape == (18, 18)
    assert packed.values.shape == (*batch, 117)
    product = (mass @ x[..., None])[..., 0]
    assert np.abs(packed @ x - product).max() <= 1e-13 * np.abs(product).max()
    for _ in range(2):  # the second time by the factors of the first
        found = packed.solve(product)
        assert np.abs(found - x).max() <= 1e-9 * np.abs(x).max()
    one = np.ones(18)
    assert np.allclose(packed.solve(one), np.linalg.solve(mass, one[:, None])[..., 0], rtol=1e-9)


def test_reordered_and_mimic_robots() -> None:
    """Coordinates in another order are eliminated in that of the tree; shared ones densely."""
    other = QUADRUPED.reorder(QUADRUPED.joint_names[::-1])
    q, x, _ = _states(other)
    packed, mass = other.mass_matrix(q, form="packed"), other.mass_matrix(q)
    assert len(packed.pattern) == 117
    assert np.abs(packed.to_dense() - mass).max() <= 1e-13 * np.abs(mass).max()
    assert np.abs(packed.solve(mass @ x) - x).max() <= 1e-9
    no_order = PackedMatrix(EntryPattern.of(np.tril(np.ones((2, 2), bool))), np.array([2.0, 1, 3]))
    assert np.allclose(no_order.solve([3.0, 4.0]), np.linalg.solve([[2, 1], [1, 3]], [3.0, 4.0]))


def test_single_precision() -> None:
    """Values are float32 if the configuration is."""
    q, v, vdot = (x.astype(np.float32) for x in _states(QUADRUPED, 64))
    packed, mass = QUADRUPED.mass_matrix(q, form="packed"), QUADRUPED.mass_matrix(q)
    assert packed.values.dtype == packed.solve(v).dtype == (packed @ v).dtype == np.float32
    assert np.abs(packed.to_dense() - mass).max() <= 1e-6 * np.abs(mass).max()
    assert QUADRUPED.linearize_inverse(q, v, vdot, form="sparse").tau_q.values.dtype == np.float32
    assert QUADRUPED.linearize(q, v, vdot, wrt="v").vdot_v.dtype == np.float32


def test_scipy_takes_sparse_matrices() -> None:
    """Of one sample; a batch has one pattern for all."""
    q, v, vdot = _states(QUADRUPED, 4)
    found = QUADRUPED.linearize_inverse(q, v, vdot, form="sparse").tau_v
    assert isinstance(found, SparseMatrix)
    dense = QUADRUPED.linearize_inverse(q, v, vdot).tau_v
    taken = scipy.sparse.csr_array(found[2].csr, shape=found.shape)
    assert np.abs(taken.toarray() - dense[2]).max() <= 1e-13 * np.abs(dense).max()
    product = np.einsum("bij,bj->bi", dense, v)
    assert np.abs(found @ v - product).max() <= 1e-13 * np.abs(product).max()
    with pytest.raises(ArgumentError, match=r"m\[0\]\.csr"):
        _ = found.csr


def test_a_row_without_entries() -> None:
    """Is zero in products."""
    pattern = EntryPattern.of(np.array([[True, False], [False, False], [True, True]]))
    matrix = SparseMatrix(pattern, np.array([2.0, 3.0, 4.0]))
    assert (matrix @ [1.0, 10.0] == [2.0, 0.0, 43.0]).all()
    assert (matrix.to_dense() == [[2, 0], [0, 0], [3, 4]]).all()
    with pytest.raises(ShapeError):
        _ = matrix @ [1.0]


def test_samples_without_result() -> None:
    """NaN is confined to them."""
    q, _, _ = _states(QUADRUPED, 40)
    q[3, 0] = np.nan
    values = QUADRUPED.mass_matrix(q, form="packed", on_error="nan").values
    assert np.isnan(values[3]).all()
    assert np.isfinite(np.delete(values, 3, axis=0)).all()


def test_unknown_forms() -> None:
    """Are refused, and so are parts of sparse matrices."""
    q, v, vdot = _states(QUADRUPED)
    with pytest.raises(UnknownNameError, match="packed"):
        QUADRUPED.mass_matrix(q, form="compact")  # type: ignore[call-overload]
    with pytest.raises(UnknownNameError, match="sparse"):
        QUADRUPED.linearize_inverse(q, v, vdot, form="packed")  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match="whole"):
        QUADRUPED.linearize_inverse(q, v, vdot, form="sparse", wrt="q")  # type: ignore[call-overload]
