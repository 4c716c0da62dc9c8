# SPDX-License-Identifier: BSD-3-Clause
"""Peers of the benchmarks compute what we compute, and are left out where they cannot."""

import importlib.util

import numpy as np
import pytest

from benchmarks import cases, peers
from benchmarks.cases import QUANTITIES, VECTORS, Cell
from benchmarks.results import Row
from benchmarks.runner import THREADS, Runner


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner sets the number of threads; other tests shall not see that."""
    monkeypatch.setenv(THREADS, "1")


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("name", ["panda", "quadruped", "chain10"])
def test_peers_agree(name: str, quantity: str) -> None:
    """What is timed gives the same numbers; relative 1e-9."""
    arrays = cases.arguments(Cell(name, quantity, 4))
    asked = 0
    for peer in peers.PEERS:
        engine = peers.make(peer, name)
        if engine.ways(quantity, arrays, single=False):
            found = engine.result(quantity, arrays)
            assert peers.disagreement(cases.robot(name), quantity, arrays, found) <= 1e-9
            asked += 1
    assert asked == (2 if quantity in VECTORS else 1)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_disagreement_is_seen(quantity: str) -> None:
    """Numbers that are wrong by 1e-6 are refused."""
    arrays = cases.arguments(Cell("panda", quantity, 4))
    right = getattr(cases.robot("panda"), quantity)(*arrays)
    right = peers.stacked(quantity, right) if quantity in cases.DERIVATIVES else right
    assert peers.disagreement(cases.robot("panda"), quantity, arrays, right) <= 1e-12
    wrong = right * (1 + 1e-6)
    assert peers.disagreement(cases.robot("panda"), quantity, arrays, wrong) > peers.TOLERANCE


@pytest.mark.parametrize("quantity", VECTORS)
def test_the_pool_gives_what_the_loop_gives(quantity: str) -> None:
    """Pinocchio's own loop and calls from Python agree to rounding."""
    arrays = cases.arguments(Cell("quadruped", quantity, 4))
    engine = peers.make("pinocchio", "quadruped")
    columns = engine.ways(quantity, arrays, single=False)["pool"]().T
    convert, q = engine.convert, arrays[0]
    if quantity == "inverse_dynamics":
        found = convert.tau_from_peer(q, columns)
    else:
        found = convert.vdot_from_peer(q, arrays[1], columns)
    np.testing.assert_allclose(found, engine.result(quantity, arrays), rtol=1e-10, atol=1e-10)


def test_no_pool_for_single_samples() -> None:
    """One sample a call is compared with calls from Python."""
    arrays = cases.arguments(Cell("panda", "inverse_dynamics", 1))
    engine = peers.make("pinocchio", "panda")
    assert "pool" not in engine.ways("inverse_dynamics", arrays, single=True)


def test_long_chains_are_not_given_to_peers() -> None:
    """Pinocchio's data would take all memory."""
    assert "200 links" in peers.why_not("pinocchio", "chain1000")
    assert not peers.why_not("pinocchio", "chain100")


def test_a_peer_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row says so and ours is timed all the same."""
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    row = _runner().run(Cell("panda", "inverse_dynamics", 1))
    assert row.missing == {"pinocchio": "not installed", "mujoco": "not installed"}
    assert row.ours is not None
    assert not row.rivals
    assert importlib.util.find_spec("pinocchio") is not None


def test_a_row_with_peers() -> None:
    """Ours and the peers, each with time and ratio."""
    row = _runner().run(Cell("panda", "forward_dynamics"))
    assert [rival.name for rival in row.rivals] == ["pinocchio", "mujoco"]
    assert row.ours is not None
    for rival in row.rivals:
        assert rival.how
        assert 1 <= rival.samples <= 4096
        assert 0 < rival.ratio.low <= rival.ratio.median <= rival.ratio.high
        expected = rival.timing.best / row.ours.best
        assert rival.ratio.best == pytest.approx(expected, rel=1e-12)


def test_a_peer_that_disagrees_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not timed, and the run ends with an error."""
    monkeypatch.setattr(peers, "disagreement", lambda *given: 1e-3)
    runner = _runner()
    row = runner.run(Cell("panda", "inverse_dynamics"))
    assert row.missing["pinocchio"] == "disagrees by 1.0e-03"
    assert len(runner.faults) == 2


def test_threads_are_compared_with_one_thread() -> None:
    """Two threads next to one, nobody else."""
    row = _runner().run(Cell("panda", "inverse_dynamics", 64, threads=2))
    assert row.why == "1 processors" or [r.name for r in row.rivals] == ["one thread"]


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        (Cell("chain1000", "mass_matrix"), "32.8 GB of arrays"),
        (Cell("humanoid", "mass_matrix_inverse", 1_000_000), "13.8 GB of arrays"),
    ],
)
def test_large_arrays_are_left_out(cell: Cell, why: str) -> None:
    """And the row says how large they would be."""
    assert _runner().run(cell).why == why


def test_out_of_time() -> None:
    """Nothing starts after the deadline."""
    cell = Cell("panda", "inverse_dynamics")
    assert Runner(0.0, 0.0, 1e-4, deadline=0.0).run(cell) == Row(cell, why="out of time")


def _runner() -> Runner:
    return Runner(budget=0.0, main_budget=0.0, peer_seconds=1e-3, deadline=float("inf"))
