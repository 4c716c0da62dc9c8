# SPDX-License-Identifier: BSD-3-Clause
"""The PPO of the examples learns; all of it takes a minute, here is its beginning."""

import importlib.util
import sys
from types import ModuleType

import numpy as np
import pytest

from tests.helpers import ROOT

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="the example needs PyTorch, which make test-gym does not install",
)


def load(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@needs_torch
def test_rewards_grow() -> None:
    """After ten updates a step pays several times what it paid at first."""
    _, history = load("ppo_swing_up").train(10)
    assert history.shape == (10,)
    assert np.mean(history[-2:]) > 5 * history[0] > 0
