# SPDX-License-Identifier: BSD-3-Clause
"""Rates of steps between configurations as scalars, against series of matrices."""

import numpy as np
import pytest

from phistar.derivatives import lie_jacobians
from phistar.model.builder import ModelBuilder
from phistar.model.model import Model
from phistar.scalar import interpret
from phistar.scalar.graph import Graph
from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled
from phistar.scalar.trace.step_rates import StepRates

SIZES = (0.0, 1e-9, 1e-6, 1e-4, 1e-2, 0.3, 0.99, 1.01, 2.0, 3.0)
"""Angles [rad] between the two configurations."""


def body(kind: str) -> Model:
    """One link on a joint."""
    builder = ModelBuilder("body")
    builder.link("ground")
    builder.link("body", 1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    builder.joint("joint", kind, "ground", "body")
    return builder.build()


@pytest.mark.parametrize("kind", ["revolute", "spherical", "planar", "free"])
def test_rates_of_steps_are_those_of_the_series(kind: str) -> None:
    """E, E*, J u̇, J̇ u̇ and Ad(exp(-u)) from zero to near half a turn; 1e-12 relative to 1 + |u|."""
    model = body(kind)
    n, g = model.nv, Graph()
    u, x = ([g.load(name, i) for i in range(n)] for name in "ux")
    rates = StepRates(model.bodies[0].joint_kind, list(u))
    found = {
        "rate": rates.rate(list(x)),
        "rate_adjoint": rates.rate_adjoint(list(x)),
        "velocity": rates.velocity(list(x)),
        "bend": rates.bend(list(x)),
        "carried": rates.carried(list(x)),
    }
    stores = [Store(name, i, "", y) for name, row in found.items() for i, y in enumerate(row)]
    outputs = {name: len(row) for name, row in found.items()}
    program = Unrolled(Signature({"u": n, "x": n}, outputs), BasicBlock(g, stores))
    rng = np.random.default_rng(0)
    angles = np.repeat(SIZES, 4)
    steps = rng.normal(size=(len(angles), n))
    turning = slice(2, 3) if kind == "planar" else slice(0, 3)
    steps[:, turning] *= (angles / np.linalg.norm(steps[:, turning], axis=1))[:, None]
    speeds = rng.normal(size=steps.shape)
    ours = interpret.run(program, {"u": steps, "x": speeds})
    J = lie_jacobians.right_jacobian(model, steps)
    bent = lie_jacobians.right_jacobian_rate(model, steps, speeds)
    expected = {
        "rate": np.linalg.solve(J, speeds[..., None])[..., 0],
        "rate_adjoint": np.linalg.solve(np.swapaxes(J, 1, 2), speeds[..., None])[..., 0],
        "velocity": (J @ speeds[..., None])[..., 0],
        "bend": (bent @ speeds[..., None])[..., 0],
        "carried": (lie_jacobians.step_adjoint(model, steps) @ speeds[..., None])[..., 0],
    }
    size = 1.0 + np.linalg.norm(steps, axis=1, keepdims=True)
    for name, value in expected.items():
        scale = size**2 * (1.0 + np.abs(value).max(axis=1, keepdims=True))
        assert (np.abs(ours[name] - value) / scale).max() < 1e-14 * 20, name
