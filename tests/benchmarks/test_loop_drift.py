# SPDX-License-Identifier: BSD-3-Clause
"""The dense runs of the drift tables: what they say of ranks and stabilisation, on short runs."""

import numpy as np
import pytest

from benchmarks import mechanisms
from benchmarks.loop_drift import RANKS, DenseRun, opened, simulated, stabilisations
from benchmarks.mechanisms import in_motion


@pytest.fixture(scope="module")
def bennett() -> mechanisms.State:
    """Bennett's linkage, over-constrained, in motion."""
    return in_motion(mechanisms.bennett())


@pytest.mark.parametrize("name", [name for name in RANKS if name.startswith("fixed")])
def test_fixed_numbers_of_rows_take_the_steps_of_simulate(
    bennett: mechanisms.State, name: str
) -> None:
    """The same Runge-Kutta steps by other code, to 1e-9."""
    robot, q, v = bennett
    found, rates = DenseRun(robot, RANKS[name]).run(q, v, 1e-2, 20)
    expected = simulated(robot, q, v, 1e-2, 20)
    assert np.abs(found - expected[0]).max() < 1e-9
    assert np.abs(rates - expected[1]).max() < 1e-8


def test_rank_by_a_small_tolerance_is_wrong(bennett: mechanisms.State) -> None:
    """At the stages of an integrator dependent rows seem not to be: the linkage tears."""
    robot, q, v = bennett
    found, _ = DenseRun(robot, RANKS["rank by tolerance 1e-10, projection"]).run(q, v, 1e-2, 60)
    expected, _ = simulated(robot, q, v, 1e-2, 60)
    assert not np.abs(found - expected).max() < 1e-3


def test_stabilisations_are_ordered_as_in_the_table() -> None:
    """Projection of all, of v alone, Baumgarte with 10/s and, 30 times worse, with 1/h."""
    robot, q, v = in_motion(mechanisms.bricard())
    ways = stabilisations(1e-2)
    order = ("q and v projected", "v projected", "Baumgarte, 10/s", "Baumgarte, 1/h")
    errors = [opened(robot, DenseRun(robot, ways[name]).run(q, v, 1e-2, 60)[0]) for name in order]
    assert errors[0] < 1e-14
    assert errors[0] < errors[1] < errors[2] < errors[3]
    assert errors[3] > 30 * errors[2]
