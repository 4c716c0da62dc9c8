# SPDX-License-Identifier: BSD-3-Clause
"""Straight lines of operational inertias, against dense matrices."""

import numpy as np
import pytest

import phistar
from phistar import dynamics
from phistar.algorithms.operational_space import compliance
from phistar.compile import Full, matrix_plan
from phistar.model import Model
from phistar.model import numpy_kinematics as witness
from phistar.model.configuration import random_configuration
from phistar.scalar.interpret import run
from phistar.scalar.lower_matrix import to_unrolled_matrix
from phistar.scalar.program import Unrolled
from phistar.scalar.trace.kinematics_programs import RESULT_OUTPUT
from phistar.scalar.trace.operational_programs import operational_inertia
from phistar.scalar.verify import verify
from phistar.thresholds import POLICY


def program(model: Model, frames: list[str], reference: str, damped: bool = False) -> Unrolled:
    """Ours."""
    form = matrix_plan(compliance, Full(), model, tuple(frames)).form
    giving = to_unrolled_matrix([form], model, frames)
    found = operational_inertia(model, frames, reference, giving, POLICY.singular_roundings, damped)
    verify(found)
    return found


def dense(model: Model, q: np.ndarray, frames: list[str], reference: str) -> np.ndarray:
    """J 𝓜⁻¹ J*."""
    J = np.concatenate([witness.jacobian(model, q, f, reference) for f in frames], axis=-2)
    return J @ np.linalg.solve(dynamics.mass_matrix(model, q), np.swapaxes(J, -1, -2))


@pytest.mark.parametrize("reference", ["local", "world", "world_aligned"])
@pytest.mark.parametrize(("robot", "count"), [("panda", 1), ("quadruped", 1), ("quadruped", 2)])
def test_inverse_of_the_compliance(robot: str, count: int, reference: str) -> None:
    """One frame, and two of a robot with legs, at poses away from singular ones."""
    model = phistar.load(robot).model
    frames = [model.link_names[-1], "FL_FOOT"][:count]
    q = random_configuration(model, np.random.default_rng(11), (3,))
    size = 6 * count
    found = run(program(model, frames, reference), {"q": q})[RESULT_OUTPUT].reshape(3, size, size)
    known = np.linalg.inv(dense(model, q, frames, reference))
    error = np.abs(found - known).max() / np.abs(known).max()
    assert error < 1e-8
    np.testing.assert_array_equal(found, np.swapaxes(found, -1, -2))


def test_damping_and_singular_poses() -> None:
    """A stretched arm has no inertia along itself: not a number, unless there is damping."""
    model = phistar.load("ur5").model
    frame = model.link_names[-1]
    q = np.zeros((1, model.nq))
    assert np.linalg.matrix_rank(dense(model, q, [frame], "local")[0], tol=1e-9) < 6
    found = run(program(model, [frame], "local"), {"q": q})[RESULT_OUTPUT].reshape(6, 6)
    assert np.isnan(np.diag(found)).all()
    damping = np.full((1, 1), 0.25)
    found = run(program(model, [frame], "local", True), {"q": q, "damping": damping})[RESULT_OUTPUT]
    known = np.linalg.inv(dense(model, q, [frame], "local")[0] + 0.25 * np.eye(6))
    np.testing.assert_allclose(found.reshape(6, 6), known, rtol=0, atol=1e-12 * np.abs(known).max())
