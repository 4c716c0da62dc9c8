# SPDX-License-Identifier: BSD-3-Clause
"""Whole matrices by walks along ancestor paths: composite bodies come out of the split of φMφ*."""

import numpy as np
import pytest

from phistar.algebra.dense import Dense
from phistar.algebra.ir import Expr
from phistar.algebra.symbols import D, H, M, P, composite, mass_matrix, phi
from phistar.algorithms.innovations import mass_matrix_inverse
from phistar.errors import LoweringError
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.sweeps.matrix import lower_matrix, run_matrix
from phistar.sweeps.printing import to_text


@pytest.mark.parametrize(
    "expr",
    [
        mass_matrix,
        H @ phi @ P @ H.T,
        H @ (phi @ M + M @ phi.T - 2 * composite) @ H.T,
        H @ phi @ M @ phi.T @ H.T,
    ],
    ids=repr,
)
@pytest.mark.parametrize("topology", ["serial", "tree", "forest"])
def test_matrices_agree_with_dense_operators(expr: Expr, topology: str) -> None:
    """Every joint kind, rotors, batches; relative 1e-12."""
    rng = np.random.default_rng(1)
    model = random_model(rng, 8, topology=topology, armature=0.5, fixed=0.2)
    q = random_configuration(model, rng, (2,))
    result = run_matrix(lower_matrix(expr), model, q)
    for k in range(2):
        expected = Dense(model, q[k])(expr)
        assert np.abs(result[k] - expected).max() < 1e-12 * np.abs(expected).max()


def test_composite_bodies_come_out() -> None:
    """The mass matrix needs one inward recursion: the composite inertia."""
    program = lower_matrix(mass_matrix)
    assert to_text(program.schedule).splitlines()[1] == "    R = M + Σ φ(k,j) R(j) φ*(k,j)"
    assert program.schedule.directions == ("inward",)
    assert sorted(walk.part for walk in program.walks) == ["diagonal", "diagonal", "lower", "upper"]


def test_other_matrices_are_refused() -> None:
    """What has no such form says so, instead of costing O(n³) in silence."""
    with pytest.raises(LoweringError, match="ancestor paths"):
        lower_matrix(mass_matrix_inverse.result)
    with pytest.raises(LoweringError, match="not a matrix over the joints"):
        lower_matrix(phi)
    with pytest.raises(LoweringError, match="D"):
        lower_matrix(D)
