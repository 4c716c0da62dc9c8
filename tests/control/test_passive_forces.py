# SPDX-License-Identifier: BSD-3-Clause
"""Laws that make up for springs and damping of the joints: as without these, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phistar
from phistar import control
from phistar.errors import ArgumentError, UnknownNameError

ARM = b"""<mujoco><worldbody><body><joint axis="0 1 0" stiffness="20" springref="20" damping=".5"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/><body pos=".3 0 0"><joint axis="0 1 0"
stiffness="10" damping=".2"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/></body>
</body></worldbody></mujoco>"""
GOAL = np.array([0.3, 0.2])
LAWS: dict[str, Callable[..., Any]] = {
    "gravity_compensation": lambda robot, **how: control.gravity_compensation(robot, **how),
    "pd_gravity": lambda robot, **how: control.pd_gravity(robot, GOAL, **how),
    "computed_torque": lambda robot, **how: control.computed_torque(robot, GOAL, **how),
    "rate_feedback": lambda robot, **how: control.rate_feedback(robot, **how),
}


@pytest.fixture(scope="module")
def arm() -> phistar.Robot:
    """Two links with springs and dampers."""
    return phistar.load(ARM)


@pytest.mark.parametrize("name", LAWS)
def test_the_closed_loop_is_that_of_an_arm_without_springs(arm: phistar.Robot, name: str) -> None:
    """Accelerations of the arm with its springs under the law that makes up for them, and of rigid
    bodies under the plain law; 1e-12. Some of them are left where only others are named."""
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(2, 5, 2))
    plain, whole = LAWS[name](arm), LAWS[name](arm, passive=True)
    found = arm.forward_dynamics(q, v, whole.forces(q, v), passive=True)
    known = arm.forward_dynamics(q, v, plain.forces(q, v))
    np.testing.assert_allclose(found, known, atol=1e-11 * np.abs(known).max())
    springs = LAWS[name](arm, passive={"springs"}).forces(q, v) - plain.forces(q, v)
    rest = np.array([np.radians(20.0), 0.0])
    np.testing.assert_allclose(springs, np.array([20.0, 10.0]) * (q - rest), atol=1e-9)


@pytest.mark.parametrize("name", LAWS)
def test_wrong_choices_are_refused_at_once(arm: phistar.Robot, name: str) -> None:
    """By name, where the law is made, as in ``simulate``."""
    with pytest.raises(UnknownNameError, match="'springz'"):
        LAWS[name](arm, passive={"springz"})
    for wrong in (3, None):
        with pytest.raises(ArgumentError, match=f"passive is {wrong}"):
            LAWS[name](arm, passive=wrong)
