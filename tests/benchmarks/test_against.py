# SPDX-License-Identifier: BSD-3-Clause
"""Rounds, ratios and the verdict of the comparison of two revisions."""

import numpy as np
import pytest

import phistar
from benchmarks import against, against_worker
from benchmarks.against import LEAST, ROUNDS, Row, alternated, cells, round_count, row_of, verdict


def test_sides_take_turns_in_going_first() -> None:
    """Old new, new old, and so on: a drift of the machine cancels."""
    assert list(alternated(3)) == [("old", "new"), ("new", "old"), ("old", "new")]


@pytest.mark.parametrize("round_seconds", [1e-3, 0.04, 0.6, 10.0])
def test_rounds_fit_into_the_time(round_seconds: float) -> None:
    """An even number within the bounds, in no more than the time unless it is the least."""
    count = round_count(round_seconds, 2.0)
    assert count % 2 == 0
    assert ROUNDS[0] <= count <= ROUNDS[1]
    assert count == ROUNDS[0] or round_seconds * count <= 2.0


def test_ratio_is_old_to_new_round_by_round() -> None:
    """Above 1 the new side is faster; a round that is slow for both leaves the ratio alone."""
    row = row_of("x", {"old": [2.0, 20.0, 2.2, 1.8], "new": [1.0, 10.0, 1.0, 1.0]}, samples=2)
    assert row.ratio is not None
    assert row.ratio.median == pytest.approx(2.0)
    assert row.ratio.low == pytest.approx(1.95)
    assert row.ratio.high == pytest.approx(2.05)
    assert (row.old, row.new) == pytest.approx((1.05, 0.5))
    assert not row.slow


def row(name: str, ratio: float) -> Row:
    """A row with this ratio in all rounds."""
    return row_of(name, {"old": [ratio] * 4, "new": [1.0] * 4})


def test_verdict() -> None:
    """Cells below the least ratio fail the run, and so does what only the old side can run."""
    fine = [row("a", 1.2), row("b", LEAST + 1e-6), Row("c", why="old cannot run it")]
    assert verdict(fine) == ([f"no cell below {LEAST}"], 0)
    lines, code = verdict([*fine, row("slow", 0.9), Row("gone", why="new cannot", lost=True)])
    assert code == 1
    assert [line.split()[0] for line in lines] == ["2", "slow", "gone"]


def test_slow_is_slow_at_its_best_too() -> None:
    """A disturbance of many rounds does not fail a run in which the best is as fast."""
    disturbed = row_of("x", {"old": [1.0, 1.0, 1.0], "new": [1.2, 1.2, 1.0]})
    assert disturbed.ratio is not None
    assert disturbed.ratio.median < LEAST
    assert not disturbed.slow


def test_cells() -> None:
    """Names differ, so that rows are kept apart; a quick run has some of them."""
    every, quick = cells(), cells(quick=True)
    assert len({str(cell) for cell in every}) == len(every)
    assert set(map(str, quick)) < set(map(str, every))
    assert {cell.robot for cell in every} == set(against.SHOWN)


@pytest.mark.parametrize("batch", [1, 3])
def test_worker_calls_the_method(batch: int) -> None:
    """A batch in one call, or single samples; arrays and frames by their ``$`` names."""
    cell = {"robot": "double_pendulum", "method": "jacobian", "batch": batch}
    act = against_worker.prepared({**cell, "arguments": ["$q", "$frame"], "options": {}})
    robot = phistar.load("double_pendulum")
    q = against_worker.values(robot, against_worker.SINGLES if batch == 1 else batch)["q"]
    expected = robot.jacobian(q, robot.frame_names[-1])
    np.testing.assert_allclose(np.asarray(act()), expected, rtol=1e-12, atol=1e-14)


def test_worker_says_what_is_missing() -> None:
    """A method that a revision does not have is an answer, not an end."""
    cell = {"robot": "double_pendulum", "method": "fly", "batch": 1}
    answer = against_worker.Worker().prepare({**cell, "arguments": [], "options": {}})
    assert "fly" in answer["missing"]


def test_options_that_a_revision_does_not_know() -> None:
    """``name?`` is given where the method has it, and left out where it has not."""
    robot = phistar.load("double_pendulum")
    options = {"dt": 1e-3, "passive?": False}
    known = against_worker.options_of(robot.simulate, options)
    assert known == {"dt": 1e-3, "passive": False}
    assert against_worker.options_of(robot.jacobian, options) == {"dt": 1e-3}
