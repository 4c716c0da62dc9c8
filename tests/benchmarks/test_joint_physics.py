# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of joint physics compares the same motion."""

import numpy as np
import pytest

import phistar
from benchmarks import joint_physics


def test_both_take_the_same_damped_steps() -> None:
    """Away from limits, states agree; and the file has the damping it says."""
    pytest.importorskip("mujoco")
    text = joint_physics.damped_text()
    robot = phistar.load(text.encode())
    assert (robot.limits.damping == joint_physics.DAMPING).all()
    q, v = joint_physics.starts(robot, 3, 0.5)
    how = {"dt": joint_physics.DT, "steps": joint_physics.STEPS, "scheme": "implicit"}
    ours = robot.simulate(q, v, **how)
    assert ours.passive == ("damping", "limits")
    theirs = joint_physics.rolled(robot, text, q, v)()[0][:, -1, 1:]
    known = np.concatenate([ours.q[-1], ours.v[-1]], axis=-1)
    assert np.abs(theirs - known).max() <= joint_physics.TOLERANCE * np.abs(known).max()
