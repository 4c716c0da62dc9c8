# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of what is kept judges a motion as the library does."""

import numpy as np
import pytest

from benchmarks import drift


@pytest.mark.parametrize("case", drift.cases(), ids=lambda case: case.title)
def test_a_motion_is_judged(case: drift.Case) -> None:
    """Runge-Kutta on each case: what is kept is that of ``Simulation.drift``, relative 1e-9."""
    steps = 200
    found = drift.judged(case, drift.engines(case)["phistar rk4"], steps)
    sim = case.robot.simulate(
        case.q, case.v, dt=drift.DURATION / steps, steps=steps, every=2, passive=False
    )
    expected = sim.drift()
    assert found.why == ""
    assert 0.0 < found.energy == pytest.approx(expected.relative_energy, rel=1e-9)
    assert found.momentum == pytest.approx(expected.relative_momentum, rel=1e-9)
    assert np.isfinite(found.momentum).all()
