# SPDX-License-Identifier: BSD-3-Clause
"""Straight lines of steps of time with their derivatives, against ``derivatives.discrete``."""

import numpy as np
import pytest

from phistar.derivatives.discrete import discretize
from phistar.derivatives.first import linearize
from phistar.model import Model
from phistar.model.configuration import random_configuration
from phistar.scalar.interpret import run
from phistar.scalar.trace.discretization_programs import discretization
from phistar.scalar.verify import verify


@pytest.mark.parametrize("scheme", ["euler", "semi_implicit"])
@pytest.mark.parametrize("case", ["arms", "spherical", "planar", "free base"])
def test_discretization(models: dict[str, Model], case: str, scheme: str) -> None:
    """The step and both matrices, of joints that add their steps and of those that turn."""
    model, rng, dt = models[case], np.random.default_rng(12), 0.01
    q = random_configuration(model, rng, (2,))
    v, tau = (rng.normal(size=(2, model.nv)) for _ in range(2))
    program = discretization(model, scheme)
    verify(program)
    at = linearize(model, q, v, tau)
    inputs = {"q": q, "v": v, "dt": np.full((2, 1), dt), "vdot": at.vdot}
    inputs |= {n: getattr(at, n).reshape(2, -1) for n in ("vdot_q", "vdot_v", "vdot_tau")}
    found = run(program, inputs)
    known = discretize(model, q, v, tau, dt, scheme)
    for name, expected in {
        "q_next": known.q,
        "v_next": known.v,
        "A": known.A,
        "B": known.B,
    }.items():
        scale = np.abs(expected).max()
        np.testing.assert_allclose(
            found[name].reshape(expected.shape), expected, rtol=0, atol=1e-14 * scale, err_msg=name
        )
