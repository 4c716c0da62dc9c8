# SPDX-License-Identifier: BSD-3-Clause
"""A batch of one sample keeps its axis, on robots of one joint too, where all sizes are one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phistar
from phistar import Robot
from tests.helpers import patch_policy

METHODS: dict[str, Callable[..., Any]] = {
    "inverse_dynamics": lambda r, q: r.inverse_dynamics(q, q, q),
    "forward_dynamics": lambda r, q: r.forward_dynamics(q, q, q),
    "mass_matrix": lambda r, q: r.mass_matrix(q),
    "kinetic_energy": lambda r, q: r.kinetic_energy(q, q),
    "log_determinant": lambda r, q: r.log_determinant(q),
    "jacobian": lambda r, q: r.jacobian(q, r.link_names[-1]),
    "regressor": lambda r, q: r.regressor(q, q, q),
    "linearize": lambda r, q: r.linearize(q, q, q).vdot_q,
    "discretize": lambda r, q: r.discretize(q, q, q, 1e-3).A,
    "link_poses": lambda r, q: r.link_poses(q)[r.link_names[-1]],
}


@pytest.mark.parametrize("joints", [1, 2])
@pytest.mark.parametrize("method", METHODS)
def test_shapes(method: str, joints: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """(1, n) in, (1, ...) out; (n,) in, (...) out: by the general path and by entries."""
    monkeypatch.setenv("PHISTAR_TIER", "wait")
    patch_policy(monkeypatch, samples_before_compile=0)
    robot: Robot = phistar.robots.chain(joints)
    q = np.full(joints, 0.3)
    call = METHODS[method]
    for _ in range(2):
        single = call(robot, q)
        for batch in (1, 3):
            many = call(robot, np.tile(q, (batch, 1)))
            assert many.shape == (batch, *single.shape)
            np.testing.assert_array_equal(many, np.broadcast_to(single, many.shape))
