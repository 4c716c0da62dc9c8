# SPDX-License-Identifier: BSD-3-Clause
"""The table of ``make bench-cliffs``: what is within its bound, beyond it, or not there at all."""

import time

import numpy as np

import phistar
from benchmarks.cliffs import Row, draw_state, measure, quantities, rows


def test_bounds() -> None:
    """Times and ratios are compared with their bounds; what raises is missed and says why."""
    slow = Row("slow", 1.0, "us", lambda: time.sleep(1e-4))
    assert not measure(slow, 0.0).met
    assert measure(Row("fast", 1e6, "us", lambda: None), 0.0).met
    both = Row("twice", 1.2, "x", lambda: time.sleep(4e-3), lambda: time.sleep(1e-3))
    assert not measure(both, 0.0).met
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
