# SPDX-License-Identifier: BSD-3-Clause
"""Decisions: each limit on both sides, the numbers that are named, and the table itself."""

from __future__ import annotations

import ast
import dataclasses
import inspect

import pytest

from phistar import thresholds
from phistar.backends import policy
from phistar.backends.policy import (
    BundleWork,
    Decision,
    Machine,
    MatrixWork,
    Policy,
    StagesWork,
    StepWork,
    TracedWork,
    VectorWork,
    Work,
    decide,
    decide_linearization,
)
from phistar.thresholds import POLICY
from tests.helpers import patch_policy
from tools import house

LIMITS: list[tuple[Work, int, Work, int, tuple[str, bool], tuple[str, bool]]] = [
    (VectorWork(50), 8, VectorWork(51), 8, ("unrolled", True), ("unrolled", False)),
    (VectorWork(54), 50, VectorWork(54), 51, ("unrolled", False), ("looped", True)),
    (StagesWork(50, 4), 2, StagesWork(50, 4), 3, ("unrolled", True), ("unrolled", False)),
    (StagesWork(50, 4), 30, StagesWork(50, 4), 31, ("unrolled", False), ("NumPy", True)),
    (MatrixWork(10, 100), 20, MatrixWork(10, 100), 21, ("unrolled", True), ("unrolled", False)),
    (MatrixWork(80, 6400), 50, MatrixWork(80, 6400), 51, ("unrolled", False), ("looped", True)),
    (MatrixWork(9, 4_000_000), 9, MatrixWork(9, 4_000_001), 9, ("unrolled", True), ("NumPy", True)),
    (
        MatrixWork(3, 9, 40_000),
        9,
        MatrixWork(3, 9, 40_001),
        9,
        ("unrolled", False),
        ("NumPy", True),
    ),
    (BundleWork(10), 10, BundleWork(10), 11, ("unrolled", True), ("unrolled", False)),
    (BundleWork(50), 50, BundleWork(50), 51, ("unrolled", False), ("NumPy", True)),
    (TracedWork(12), 64, TracedWork(13), 64, ("unrolled", True), ("unrolled", False)),
    (TracedWork(12), 64, TracedWork(12), 65, ("unrolled", True), ("unrolled", False)),
    (TracedWork(150), 150, TracedWork(151), 151, ("unrolled", False), ("NumPy", True)),
    (TracedWork(9, 64), 9, TracedWork(9, 65), 9, ("unrolled", True), ("NumPy", True)),
    (StepWork(20_000), 9, StepWork(19_999), 9, ("unrolled", True), ("unrolled", False)),
    (StepWork(20_000), 120, StepWork(20_000), 121, ("unrolled", True), ("NumPy", True)),
]


@pytest.mark.parametrize(("last", "most", "first", "more", "within", "beyond"), LIMITS)
def test_limits(
    last: Work,
    most: int,
    first: Work,
    more: int,
    within: tuple[str, bool],
    beyond: tuple[str, bool],
) -> None:
    """The last size within a limit and the first one beyond it are decided differently."""
    inside, outside = decide(last, most), decide(first, more)
    assert (inside.shape, inside.eager) == within
    assert (outside.shape, outside.eager) == beyond
    assert inside.why != outside.why


@pytest.mark.parametrize(
    ("work", "bodies", "why"),
    [
        (VectorWork(33), 7, "unrolled: 7 links x 33 streams = 231, at most 2 700 are"),
        (VectorWork(33), 7, "at once: 231 <= 400"),
        (VectorWork(60), 100, "looped: 100 links x 60 streams = 6 000, at most 2 700 are unrolled"),
        (
            StagesWork(37, 4),
            50,
            "NumPy: 7 400 links x streams x stages, at most 6 000 are compiled",
        ),
        (BundleWork(40), 40, "in a background thread: 1 600 > 100"),
        (TracedWork(30), 30, "in a background thread: 30 links, at most 12 are compiled at once"),
        (StepWork(9), 200, "NumPy: 200 bodies, at most 120 have compiled steps"),
        (VectorWork(9), 0, "NumPy: the robot has no moving bodies"),
    ],
)
def test_why(work: Work, bodies: int, why: str) -> None:
    """The numbers compared are named, in one of the sentences."""
    decision = decide(work, bodies)
    assert why in decision.why.split("; ")
    assert why in str(decision)


@pytest.mark.parametrize(
    ("work", "bodies", "expected"),
    [
        (VectorWork(60), 30, {"wait": "at once", "straight": "at once", "rolled": "at once"}),
        (
            VectorWork(60),
            100,
            {"wait": "at once", "straight": "at once", "rolled": "at once"},
        ),
        (
            BundleWork(30),
            30,
            {"wait": "at once", "straight": "at once", "rolled": "in a background thread"},
        ),
    ],
)
def test_tiers(work: Work, bodies: int, expected: dict[str, str]) -> None:
    """Who waits, or names a shape, gets it; nobody compiles what is never used."""
    assert {tier: decide(work, bodies, tier=tier).when for tier in expected} == expected
    shapes = {tier: decide(VectorWork(60), 100, tier=tier).shape for tier in ("wait", "straight")}
    assert shapes == {"wait": "looped", "straight": "unrolled"}
    assert decide(VectorWork(60, "rolled"), 1, tier="straight").shape == "looped"


def test_threads() -> None:
    """As many as the work is worth, and there are; one decision by hand."""
    host = Machine(lanes=4, threads=3)
    # 240 operations at 4 per nanosecond and lane, 4 lanes: 15 ns per sample; 250 µs per thread.
    counts = {
        batch: decide(VectorWork(9), 7, batch, machine=host, operations=240).threads
        for batch in (1, 33_333, 33_334, 50_000, 10**6)
    }
    assert counts == {1: 1, 33_333: 1, 33_334: 2, 50_000: 3, 10**6: 3}
    assert decide(VectorWork(9), 7, 10**6).threads == 1


def test_linearization() -> None:
    """Products below 4n³ = 3·118·n² operations, that is some 89 joints; single samples later."""
    assert decide_linearization(88, 88, 4).strategy == "product"
    assert decide_linearization(89, 89, 4).strategy == "columns"
    assert decide_linearization(354, 354, 1).strategy == "product"
    found = decide_linearization(355, 355, 1)
    assert found.strategy == "columns"
    assert found.why == "columns: 178 955 500 operations of products > 178 451 400 of columns"


def test_changed_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions follow the table."""
    patch_policy(monkeypatch, max_link_streams_unrolled=10)
    assert decide(VectorWork(33), 7).shape == "looped"
    assert Policy().max_link_streams_unrolled == 2700


def test_table() -> None:
    """Every number is a field of one frozen table, with its reason below it."""
    assert isinstance(POLICY, policy.Policy)
    with pytest.raises(dataclasses.FrozenInstanceError):
        POLICY.opt_level = 3  # type: ignore[misc]
    (table,) = ast.parse(inspect.getsource(thresholds.Policy)).body
    assert isinstance(table, ast.ClassDef)
    fields = [each.name for each in dataclasses.fields(POLICY)]
    explained = [
        one.target.id
        for one, reason in zip(table.body, table.body[1:], strict=False)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        and isinstance(reason, ast.Expr) and isinstance(reason.value, ast.Constant)
    ]  # fmt: skip
    assert explained == fields
    assert set(vars(POLICY)) == set(fields)


def test_no_threshold_stands_elsewhere() -> None:
    """A number that decides how something is computed is in the table, where a tuner finds it."""
    assert house.tuning_constants(house.modules()) == {}
    planted = house.Module(house.SOURCE / "sim" / "x.py", "MAX_LINKS = 3\nBERNOULLI = (1, 2)\n")
    assert house.tuning_constants([planted]) == {"sim/x.py": [("MAX_LINKS", "3")]}


def test_what_is_excused_is_no_threshold() -> None:
    """Numbers of formats decide nothing, and each name that is excused exists."""
    found = {module.name: module for module in house.modules()}
    for name in house.FORMATS:
        assert "POLICY" not in found[name].text
        elsewhere = house.Module(house.SOURCE / "backends" / "x.py", found[name].text)
        assert house.tuning_constants([elsewhere]), f"{name}: no number in it"
    names = {name for module in found.values() for name, _ in house.constants(module.tree)}
    excused = {name for names in house.NOT_TUNING.values() for name in names.split()}
    assert excused - names == set()


def test_one_line() -> None:
    """A decision in one line, for tables of benchmarks."""
    found = Decision("looped", "program", True, 2, "looped: 6 000 > 2 700")
    assert found.line == "looped, program, at once, 2 threads (looped: 6 000 > 2 700)"
