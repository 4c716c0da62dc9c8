# SPDX-License-Identifier: BSD-3-Clause
"""Floors of kernels, the kernels that measure the machine, and the page made of them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks import cases, floors_page, roofline, targets
from benchmarks.report import FLOOR_TITLES, floor_rows
from benchmarks.results import Results, Row
from benchmarks.roofline import Dot
from benchmarks.timing import Timing
from phistar.backends.policy import Machine

DOTS = [
    Dot("quadruped", "mass_matrix", 256, 80e-9, 1600e-9, 500, 2592, 50e9, 64.8e9),
    Dot("humanoid", "linearize", 64, 6e-6, math.nan, 185_000, 40_344, 50e9, 40e9),
]


def test_floors() -> None:
    """The longer of stores and arithmetic."""
    stores, arithmetic = DOTS
    assert stores.floor == pytest.approx(2592 / 64.8e9)
    assert (stores.limit, arithmetic.limit) == ("stores", "arithmetic")
    assert arithmetic.floor == pytest.approx(185_000 / 50e9)
    assert stores.distance == pytest.approx(2.0)


def test_the_machine_is_measured() -> None:
    """Rates are positive numbers; nothing is said about how large they are."""
    assert math.isfinite(roofline.peak_operations())
    assert roofline.peak_operations() > 0
    for past in (False, True):
        assert 0 < roofline._store_rate(4096, past) < math.inf


def test_one_kernel() -> None:
    """Bytes and operations of the quadruped's packed mass matrix are those of its program."""
    packed = next(k for k in roofline.KERNELS if k.title == "mass_matrix packed")
    operations, size = roofline._counted("quadruped", packed)
    assert size == 8 * 117
    dense = next(k for k in roofline.KERNELS if k.title == "mass_matrix")
    # The code that runs may still be loops, which do more.
    counted, whole = roofline._counted("quadruped", dense)
    assert counted >= operations > 0
    assert whole == 8 * 324
    arrays = cases.arguments(cases.Cell("quadruped", "mass_matrix", 3))
    assert packed.call(cases.robot("quadruped"), *arrays).values.shape == (3, 117)


def test_the_page(tmp_path: Path) -> None:
    """Is written between its marks, again and again."""
    page = tmp_path / "page.md"
    marks = [f"{begin}\nold\n{end}" for begin, end in floors_page.MARKS.values()]
    page.write_text("\n".join(["before", *marks, "after\n"]))
    timing = Timing(1e-6, 2e-6, 3)
    row = Row(cases.Cell("panda", "mass_matrix", 65_536), timing)
    for _ in range(2):
        floors_page.write(Results("make bench", rows=[row], roofline=DOTS), page)
    text = page.read_text()
    assert "old" not in text
    assert text.startswith("before")
    assert text.endswith("after\n")
    assert text.count("| quadruped |") == 1
    assert "Peak 50 GFLOP/s" in text
    assert "| panda | mass matrix |  |  |  |  | 2.00 µs |" in text
    assert all(len(row) == len(FLOOR_TITLES) for row in floor_rows(DOTS))
    assert [row[4] for row in floor_rows(DOTS)] == ["20x", ""]


def test_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    """By batch and robot, three quarters with registers of four numbers; none without Pinocchio."""
    found = Results("make bench", roofline=DOTS)
    for lanes, goal in ((8, ">= 12x"), (4, ">= 9x")):
        monkeypatch.setattr(targets, "this_machine", lambda lanes=lanes: Machine(lanes))
        (verdict,) = targets._matrices(found)
        assert (verdict.goal, verdict.found) == (goal, "20.0x")
        assert "quadruped mass matrix, batch 256" in verdict.what
    part = Dot("humanoid", "linearize by v", 64, 3.5e-6, math.nan, 1, 1, 1.0, 1.0)
    verdict = targets._matrices(Results("make bench", roofline=[*DOTS, part]))[-1]
    assert (verdict.found, verdict.met) == ("1.7x", False)
