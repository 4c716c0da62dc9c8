# SPDX-License-Identifier: BSD-3-Clause
"""A program at work, statement by statement."""

import numpy as np
import pytest

import phistar
from phistar.compile import kernel
from phistar.errors import ArgumentError
from phistar.explain.sweep_steps import sweep_steps


@pytest.mark.parametrize("name", ["panda", "quadruped"])
def test_steps_are_the_program_on_all_links(name: str) -> None:
    """Each statement comes once per link; lines are the printed ones; the last give the result."""
    robot = phistar.load(name)
    rng = np.random.default_rng(0)
    q, v, tau = robot.random_configuration(0), *rng.normal(size=(2, robot.nv))
    work = sweep_steps("forward_dynamics", robot.model, q, v=v, tau=tau)
    assert "\n".join(work.lines) == kernel("forward_dynamics", robot.model).sweeps
    assert {"z", "ε", "ν", "α"} <= {step.name for step in work.steps}
    written = [line for line in range(len(work.lines)) if work.lines[line].startswith(" ")]
    bodies = len(robot.model.bodies)
    assert sorted(step.line for step in work.steps) == sorted(written * bodies)
    assert all(f"{s.name} = " in work.lines[s.line] for s in work.steps)
    found = np.empty(robot.nv)
    for step in work.steps:
        if step.name == "v̇":
            found[robot.model.bodies[step.body].v_slice] = step.value
    assert found == pytest.approx(robot.forward_dynamics(q, v, tau), rel=1e-9, abs=1e-9)


def test_links_are_walked_in_the_order_of_their_sweep() -> None:
    """Outward parents first, inward children first."""
    robot = phistar.load("double_pendulum")
    work = sweep_steps("inverse_dynamics", robot.model, [0.1, 0.2], v=[1.0, 2.0], vdot=[0.0, 0.0])
    first, last = work.steps[0], work.steps[-1]
    assert work.lines[0].startswith("outward")
    assert (first.body, last.body) == (0, 0)
    inward = next(k for k, line in enumerate(work.lines) if line.startswith("inward"))
    assert next(s.body for s in work.steps if s.line > inward) == 1


def test_mimic_joints_have_no_steps() -> None:
    """Links that move together are refused by the robot's name."""
    robot = phistar.load("panda_hand")
    with pytest.raises(ArgumentError, match=r"panda_hand.*mimic"):
        sweep_steps("forward_dynamics", robot.model, robot.home, v=np.zeros(robot.nv))
