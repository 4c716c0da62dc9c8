# SPDX-License-Identifier: BSD-3-Clause
"""Straight lines of regressors and of log det 𝓜, against inverse dynamics and dense matrices."""

import numpy as np
import pytest

from phistar import dynamics
from phistar.compile import joint_map, kernel
from phistar.derivatives import parameters
from phistar.model import Model
from phistar.model.configuration import random_configuration
from phistar.scalar.interpret import run
from phistar.scalar.trace.determinant_programs import log_determinant
from phistar.scalar.trace.kinematics_programs import RESULT_OUTPUT
from phistar.scalar.trace.regressor_programs import regressor
from phistar.scalar.verify import verify

CASES = ["helical", "mixed tree", "forest", "free base", "panda_hand", "small base"]


@pytest.mark.parametrize("case", CASES)
def test_regressor(models: dict[str, Model], case: str) -> None:
    """The matrix that products of sweeps give, mimic joints summed into their leaders."""
    model, rng = models[case], np.random.default_rng(8)
    q = random_configuration(model, rng, (2,))
    v, vdot = (rng.normal(size=(2, model.nv)) for _ in range(2))
    program = regressor(model)
    verify(program)
    found = run(program, {"q": q, "v": v, "vdot": vdot})[RESULT_OUTPUT].reshape(2, model.nv, -1)
    known = parameters.regressor(model, q, v, vdot)
    np.testing.assert_allclose(found, known, rtol=0, atol=1e-13 * np.abs(known).max())


def test_the_regressor_gives_joint_forces(models: dict[str, Model]) -> None:
    """Times the robot's own parameters it is inverse dynamics, rotors apart."""
    model, rng = models["arms"], np.random.default_rng(9)
    q = random_configuration(model, rng, (2,))
    v, vdot = (rng.normal(size=(2, model.nv)) for _ in range(2))
    rows = run(regressor(model), {"q": q, "v": v, "vdot": vdot})[RESULT_OUTPUT]
    found = rows.reshape(2, model.nv, -1) @ parameters.parameters(model)
    rotors = joint_map(model).gather(
        np.concatenate([body.armature for body in model.bodies]) * joint_map(model).spread(vdot)
    )
    known = dynamics.inverse_dynamics(model, q, v, vdot) - rotors
    np.testing.assert_allclose(found, known, rtol=0, atol=1e-12 * np.abs(known).max())


@pytest.mark.parametrize("case", ["helical", "mixed tree", "forest", "free base", "small base"])
def test_log_determinant(models: dict[str, Model], case: str) -> None:
    """That of the dense mass matrix."""
    model, rng = models[case], np.random.default_rng(10)
    q = random_configuration(model, rng, (3,))
    program = log_determinant(model, kernel("hinge_inertias").schedule)
    verify(program)
    found = run(program, {"q": q})[RESULT_OUTPUT][:, 0]
    sign, known = np.linalg.slogdet(dynamics.mass_matrix(model, q))
    assert (sign > 0).all()
    np.testing.assert_allclose(found, known, rtol=0, atol=1e-11 * model.nv)
