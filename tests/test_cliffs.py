# SPDX-License-Identifier: BSD-3-Clause
"""The table of ``make bench-cliffs``: what is within its bound, beyond it, or not there at all."""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

import phistar
from benchmarks import cliffs, timing
from benchmarks.cliffs import Row, draw_state, measure, quantities, rows


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times and ratios are compared with their bounds; what raises is missed and says why."""
    now = [0.0]
    clock = SimpleNamespace(perf_counter=lambda: now[0])
    for module in (cliffs, timing):
        monkeypatch.setattr(module, "time", clock)

    def lasting(seconds: float) -> Callable[[], None]:
        def act() -> None:
            now[0] += seconds

        return act

    assert not measure(Row("slow", 1.0, "us", lasting(1e-4)), 0.0).met
    assert measure(Row("fast", 1e6, "us", lasting(1e-4)), 0.0).met
    assert not measure(Row("twice", 1.2, "x", lasting(4e-3), lasting(1e-3)), 0.0).met
    assert measure(Row("half", 1.2, "x", lasting(1e-3), lasting(2e-3)), 0.0).met
    missing = measure(Row("missing", 1e6, "us", lambda: np.zeros(1).no_such_method()), 0.0)  # type: ignore[attr-defined]
    assert not missing.met
    assert "no_such_method" in missing.found


def test_every_method_has_a_row() -> None:
    """Each quantity that is called once has its bound, and no row has the name of another."""
    robot = phistar.load("quadruped")
    names = [row.what for row in rows(robot)]
    assert len(set(names)) == len(names)
    for name in quantities(draw_state(robot, ())):
        assert f"{name}, single" in names
