# SPDX-License-Identifier: BSD-3-Clause
"""One step as a straight line, against steps in NumPy."""

import numpy as np
import pytest

import phistar
from phistar.backends import OPTIONAL_INPUTS
from phistar.compile import cheapest_equivalent, kernel
from phistar.model import Model
from phistar.model.builder import ModelBuilder
from phistar.model.configuration import random_configuration
from phistar.model.random import random_model
from phistar.scalar.interpret import run
from phistar.scalar.lower import to_unrolled
from phistar.scalar.program import Unrolled
from phistar.scalar.verify import verify
from phistar.sim.numpy_stepper import NumpyStepper
from phistar.sim.schemes import SCHEMES
from phistar.sim.step_program import step_program
from phistar.sim.stepper import SteppingOptions, StepSpan
from phistar.sim.variables import Velocity


def rates(model: Model) -> Unrolled:
    """Forward dynamics."""
    scheduled = kernel(cheapest_equivalent("forward_dynamics"), model).schedule
    return to_unrolled(scheduled, model, frozenset(OPTIONAL_INPUTS))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("robot", ["tree", "pendulum"])
def test_steps(robot: str, scheme: str) -> None:
    """Every scheme, on joints of all kinds in an order of their own."""
    if robot == "tree":
        model = random_model(np.random.default_rng(13), 4, floating_base=True, armature=0.3)
    else:
        model = phistar.robots.chain(3).model
    rng, dt = np.random.default_rng(14), 0.02
    q = random_configuration(model, rng, (2,))
    v, tau = (0.3 * rng.normal(size=(2, model.nv)) for _ in range(2))
    program = step_program(model, SCHEMES[scheme], rates(model))
    verify(program)
    found = run(program, {"q": q, "v": v, "tau": tau, "dt": np.full((2, 1), dt)})
    known = np.empty((1, 2, model.nq)), np.empty((1, 2, model.nv))
    stepper = NumpyStepper(model, Velocity(model), SteppingOptions(SCHEMES[scheme]))
    stepper.run(StepSpan.of_batch((q, v), tau, dt, 1, 1, known))
    for name, expected in zip(("q_next", "v_next"), known, strict=True):
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(found[name], expected[0], rtol=0, atol=1e-12 * scale)


def test_steps_beyond_a_limit_have_no_result() -> None:
    """So that whoever reads it takes the step again with the limit; steps inside are as they are.

    A joint that begins outside may go no farther.
    """
    builder = ModelBuilder("hinge")
    builder.link("base")
    builder.link("arm", 1.0, (0.0, 0.0, -0.5), (0.1, 0.1, 0.01))
    builder.joint("hinge", "revolute", "base", "arm", axis=(0, 1, 0), lower=-0.3, upper=0.3)
    model = builder.build()
    program = step_program(model, SCHEMES["semi_implicit"], rates(model), ("limits",))
    q = np.array([[0.0], [0.29], [-0.29], [0.4], [0.4]])
    v = np.array([[1.0], [3.0], [-3.0], [3.0], [-3.0]])
    still = {"tau": np.zeros((5, 1)), "dt": np.full((5, 1), 0.01)}
    found = run(program, {"q": q, "v": v, **still})["q_next"][:, 0]
    assert np.isnan(found).tolist() == [False, True, True, True, False]
