# SPDX-License-Identifier: BSD-3-Clause
"""Straight lines of accelerations and of rates of Jacobians, against complex steps in time.

Along v a robot moves by ``integrate``, which is analytic: the numbers of ``jacobian`` and
``frame_velocity`` have their rates in the imaginary parts.
"""

import numpy as np
import pytest

from phistar.derivatives import kinematic_rates
from phistar.model import Model
from phistar.model import numpy_kinematics as witness
from phistar.model.configuration import integrate_unchecked, random_configuration
from phistar.model.random import random_model
from phistar.scalar.interpret import run
from phistar.scalar.program import Unrolled
from phistar.scalar.trace import rate_programs as programs
from phistar.scalar.trace.kinematics_programs import RESULT_OUTPUT
from phistar.scalar.verify import verify

REFERENCES = ("local", "world", "world_aligned")
CASES = ["helical", "universal", "mixed tree", "forest", "free base", "panda_hand", "mimics"]
STEP = 1e-40


@pytest.fixture(scope="module")
def robots(models: dict[str, Model]) -> dict[str, Model]:
    """Those of all scalar tests, and one with more mimic joints, fixed joints and frames."""
    rng = np.random.default_rng(30)
    return {**models, "mimics": random_model(rng, 9, fixed=0.3, mimic=0.4, anchors=0.4, frames=3)}


def given(model: Model) -> dict[str, np.ndarray]:
    """Two random states."""
    rng = np.random.default_rng(5)
    q = random_configuration(model, rng, (2,))
    return {"q": q, **{name: rng.normal(size=(2, model.nv)) for name in ("v", "vdot")}}


def close(program: Unrolled, expected: np.ndarray, inputs: dict[str, np.ndarray]) -> None:
    """Well formed, and equal to 1e-13 of the largest number."""
    verify(program)
    read = {name: inputs[name] for name in program.signature.inputs}
    found = run(program, read)[RESULT_OUTPUT].reshape(expected.shape)
    scale = max(np.abs(expected).max(initial=0.0), 1.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * scale)


def moved(model: Model, inputs: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """q and v a complex step of time later."""
    q = integrate_unchecked(model, inputs["q"].astype(complex), 1j * STEP * inputs["v"])
    return q, inputs["v"] + 1j * STEP * inputs["vdot"]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("reference", REFERENCES)
def test_rates(robots: dict[str, Model], case: str, reference: str) -> None:
    """Each frame, also those at rest, in each reference."""
    model = robots[case]
    inputs = given(model)
    q, v = moved(model, inputs)
    for frame in model.frame_names[:8]:
        jacobian = witness.jacobian(model, q, frame, reference).imag / STEP
        close(programs.jacobian_rate(model, frame, reference), jacobian, inputs)
        velocity = witness.frame_velocity(model, q, v, frame, reference).imag / STEP
        close(programs.frame_acceleration(model, frame, reference), velocity, inputs)


def test_the_functions_of_robots_agree(robots: dict[str, Model]) -> None:
    """What ``Robot`` gives today, from sweeps, is the same."""
    model = robots["free base"]
    inputs = given(model)
    frame = model.frame_names[-1]
    for reference in REFERENCES:
        known = kinematic_rates.frame_acceleration(
            model, **inputs, frame=frame, reference=reference
        )
        close(programs.frame_acceleration(model, frame, reference), known, inputs)
        known = kinematic_rates.jacobian_rate(model, inputs["q"], inputs["v"], frame, reference)
        close(programs.jacobian_rate(model, frame, reference), known, inputs)
