# SPDX-License-Identifier: BSD-3-Clause
"""The examples in CasADi solve what they promise, here in fewer steps."""

import importlib.util
import sys
from types import ModuleType

import numpy as np
import pytest

import phistar
from tests.helpers import ROOT


def load(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_swing_up_in_the_shortest_time() -> None:
    """Full push nearly all the time, and the same push leads to the top by other means."""
    example, robot = load("casadi_swing_up"), phistar.load("cartpole")
    motion = example.swing_up(robot, 30)
    assert 1.5 < motion.t[-1] < 1.8
    assert np.mean(np.abs(motion.push) > 0.99 * example.PUSH) > 0.8
    assert np.abs(example.repeated(robot, motion)).max() < 0.05


@pytest.mark.parametrize("engine", ["callback", "c"])
def test_reach_of_the_panda(engine: str) -> None:
    """The robot itself reaches the goal under the forces that were found, within limits."""
    example, robot = load("casadi_reach"), phistar.load("panda")
    motion = example.reach(robot, 12, engine)
    far, speed = example.missed(robot, motion)
    assert far < 1e-6
    assert speed < 1e-4
    assert (np.abs(motion.tau) <= robot.limits.effort * (1 + 1e-6)).all()
    assert (motion.q <= robot.limits.upper + 1e-6).all()
    assert (motion.q >= robot.limits.lower - 1e-6).all()
