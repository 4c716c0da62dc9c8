# SPDX-License-Identifier: BSD-3-Clause
"""Loops of many joints: rows of all joints at once, and dynamics that forms no matrix n by n."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import pytest

from phistar import dynamics, robots
from phistar.arrays import Array
from phistar.compile import traced_results
from phistar.constraints import Gear, Point
from phistar.loops.long_chains import LongChain, chain_results
from phistar.model.components import Coupling, LoopJoint
from phistar.model.configuration import random_configuration
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.robot import Robot
from tests.loops.test_rows import with_all_kinds

LINKS = 310


def _chains(model: Model) -> list[LongChain | Coupling]:
    loops = active_loops(model.loops)
    return [LongChain.of(model, x) if isinstance(x, LoopJoint) else x for x in loops]


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_those_of_the_program(seed: int) -> None:
    """Of every kind, couplings and mimic joints among them, single and in batches: 1e-12."""
    model = with_all_kinds(seed)
    rng = np.random.default_rng(seed)
    for batch in ((), (3, 2)):
        q, v = random_configuration(model, rng, batch), rng.normal(size=(*batch, model.nv))
        found = chain_results(_chains(model), model, q, v)
        expected = traced_results(model, ("loop_motion",), q, v)
        assert np.abs(found["poses"][..., :3, :] - expected["poses"]).max() < 1e-12
        for name in ("rows", "rate", "bias"):
            size = np.abs(expected[name]).max()
            assert found[name].shape == expected[name].shape
            assert np.abs(found[name] - expected[name]).max() < 1e-12 * size, name


def _pinned() -> tuple[Robot, Array, Array, Array]:
    chain = robots.chain(LINKS, axes="xyz")
    rng = np.random.default_rng(0)
    q = 0.1 * rng.normal(size=LINKS)
    robot = chain.with_loops(Point(chain.link_names[-1]), Gear("joint7", "joint9", 2.0), q=q)
    v, tau = 0.01 * rng.normal(size=(2, LINKS))
    return robot, *robot.project(q, v), tau


def _refuse(*_: Any) -> NoReturn:
    raise AssertionError("a matrix of all coordinates")


def test_no_matrix_of_all_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dynamics, projection and multipliers of a long chain on a pin; kkt agrees to 1e-8."""
    robot, q, v, tau = _pinned()
    assert np.abs(np.asarray(robot.loop_error(q))).max() < 1e-11
    assert np.abs(np.asarray(robot.loop_jacobian(q)) @ v).max() < 1e-10 * np.abs(v).max()
    expected = robot.constrained_dynamics(q, v, tau, method="kkt")
    for name in ("mass_matrix", "mass_matrix_inverse"):
        monkeypatch.setattr(dynamics, name, _refuse)
    calls: dict[str, Callable[[], Array]] = {
        "vdot": lambda: robot.forward_dynamics(q, v, tau),
        "multipliers": lambda: robot.constrained_dynamics(q, v, tau).multipliers,
    }
    for name, call in calls.items():
        wanted = getattr(expected, name)
        assert np.abs(call() - wanted).max() < 1e-8 * np.abs(wanted).max(), name
    moved, rate = robot.project(q + 1e-3 * np.sin(np.arange(LINKS)), v)
    assert np.abs(np.asarray(robot.loop_error(moved))).max() < 1e-11
    assert np.abs(np.asarray(robot.loop_jacobian(moved)) @ rate).max() < 1e-10 * np.abs(v).max()
