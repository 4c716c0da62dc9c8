# SPDX-License-Identifier: BSD-3-Clause
"""Which results are the same bits, as docs/performance.md says."""

import numpy as np
import pytest

import phistar
from tests.helpers import patch_policy


@pytest.mark.parametrize("tier", ["wait", "rolled"])
def test_alone_and_in_a_batch(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample simulated first, alone, with nothing on disk, is the same in a large batch after."""
    monkeypatch.setenv("PHISTAR_TIER", tier)
    monkeypatch.setenv("PHISTAR_CACHE", "off")
    patch_policy(monkeypatch, max_link_streams_at_once=0, min_evaluations_to_wait=100)
    robot = phistar.robots.chain(4).with_gravity((0.0, 0.5, -4.0))  # nobody else has it
    q = robot.random_configuration(1, (7,))
    v = np.linspace(-1.0, 1.0, 28).reshape(7, 4)
    alone = robot.simulate(q[3], v[3], dt=1e-3, steps=5, passive=False)
    batch = robot.simulate(q, v, dt=1e-3, steps=20, passive=False)
    assert alone.engine == batch.engine == "machine code"
    np.testing.assert_array_equal(batch.q[:6, 3], alone.q)
    np.testing.assert_array_equal(batch.v[:6, 3], alone.v)
