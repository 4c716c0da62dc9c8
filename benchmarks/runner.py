# SPDX-License-Identifier: BSD-3-Clause
"""Times cells: ours through a robot's public methods, next to peers where they can be run."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks import cases, counts, peers
from benchmarks.cases import MAIN, MOST_BYTES, SINGLES, Cell
from benchmarks.results import Rival, Row
from benchmarks.timing import TRIES, Act, Ratio, Timing, best_of, interleaved
from phistar.arrays import Array

THREADS = "PHISTAR_THREADS"
LONGEST_CALL = 3.0
"""Seconds; a cell whose call would take longer is left out."""

LONGEST_PROBE = 10.0
"""Seconds that a first look may take if a batch gains nothing; it mostly gains much."""

LONG = 1.0
"""Seconds; longer calls are not repeated more than needed."""

LONG_ELSEWHERE = 0.1
"""The same for cells that are not of the comparison."""

MOST_REPEATS = 100
"""Of our call in a run, to make it as long as those of the peers."""

SINGLE_SECONDS = 0.02
"""The same for single samples, ours and theirs."""

SLOWER = 1.2
"""Ways of a peer that are slower than its best by more than this are not followed up."""

CHECKED = 8
"""Samples on which a peer must agree."""

OURS = "ours"
PEERS_ELSEWHERE = ("pinocchio",)
"""Those that are compared at all batches, not at those of the comparison alone."""


@dataclass
class Runner:
    """Times cells and remembers what it needs again.

    Attributes:
        budget: Seconds for a cell.
        main_budget: Seconds for a cell of the comparison.
        peer_seconds: A peer runs as many samples as fit in; it gains nothing from more.
        deadline: On the clock of ``time.perf_counter``; cells after it are left out.
        faults: Disagreements that were found.
    """

    budget: float
    main_budget: float
    peer_seconds: float
    deadline: float
    faults: list[str] = field(default_factory=list)
    _peers: dict[tuple[str, str], peers.Peer | str] = field(default_factory=dict)
    _agreed: dict[tuple[str, str, str], str] = field(default_factory=dict)
    _costs: dict[tuple[str, str, str], tuple[int, float]] = field(default_factory=dict)

    def run(self, cell: Cell) -> Row:
        """Time a cell, or say why not."""
        why = self._why_not(cell)
        if why:
            return Row(cell, why=why)
        os.environ[THREADS] = "1"
        cost = self._cost(cell)
        if cost * cell.batch > LONGEST_CALL and cell.batch > 1:
            return Row(cell, why=f"{cost * cell.batch:.0f} s a call")
        arrays = cases.arguments(cell)
        count = cell.batch
        if cell.batch == 1:
            count = _portion(cost, SINGLE_SECONDS, SINGLES)
            arrays = tuple(x[:count] for x in arrays)
        ours = _ours(cell, arrays)
        # Of a long call a guess will do: the first look at smaller batches is at hand.
        seconds = best_of(ours, 1) if cost * count < LONG_ELSEWHERE else cost * count
        rivals, missing = [], {}
        if cell.threads > 1:
            rivals.append(_Act("one thread", "", ours, count, seconds))
            ours = _on_threads(ours, cell.threads)
        elif not cell.alone:
            for peer in peers.PEERS if cell.batch in (1, MAIN) else PEERS_ELSEWHERE:
                ways, missing[peer] = self._ways(peer, cell, arrays)
                rivals += ways
            # Where the machine is shared, a short run slips through more often than a long one.
            longest = max((each.seconds for each in rivals), default=0.0)
            repeats = max(1, min(MOST_REPEATS, round(longest / seconds)))
            ours, count, seconds = _repeated(ours, repeats), repeats * count, repeats * seconds
        acts = [_Act(OURS, "", ours, count, seconds), *rivals]
        return self._row(cell, acts, {k: v for k, v in missing.items() if v})

    def _why_not(self, cell: Cell) -> str:
        if time.perf_counter() > self.deadline:
            return "out of time"
        if cases.bytes_of(cell) > MOST_BYTES:
            return f"{cases.bytes_of(cell) / 1e9:.1f} GB of arrays"
        if cell.threads > (os.cpu_count() or 1):
            return f"{os.cpu_count()} processors"
        known = self._costs.get((cell.robot, cell.quantity, "float64"))
        if known and known[1] > LONGEST_CALL and cell.real != "float64":
            return f"{known[1]:.0f} s a call"
        return ""

    # -- ours

    def _cost(self, cell: Cell) -> float:
        """Seconds a sample, at most: known from smaller batches. Compiles what is needed."""
        key = (cell.robot, cell.quantity, cell.real)
        for batch in (1, 64):
            done, cost = self._costs.get(key, (0, 0.0))
            if done < batch <= cell.batch and cost * batch <= LONGEST_PROBE:
                probe = Cell(cell.robot, cell.quantity, batch, 1, cell.real)
                rows = tuple(x[:batch] for x in cases.arguments(probe))
                act = _ours(probe, rows)
                act()
                start = time.perf_counter()
                act()
                self._costs[key] = (batch, (time.perf_counter() - start) / batch)
        return self._costs[key][1]

    # -- peers

    def _ways(self, name: str, cell: Cell, arrays: Sequence[Array]) -> tuple[list[_Act], str]:
        """The ways of a peer that may be its fastest, or why there is none."""
        peer = self._peer(name, cell.robot)
        if isinstance(peer, str):
            return [], peer
        single = cell.batch == 1
        few = tuple(x[:CHECKED] for x in arrays)
        probes = peer.ways(cell.quantity, few, single)
        if not probes:
            return [], "does not offer it"
        wrong = self._disagreement(peer, cell)
        if wrong:
            return [], wrong
        cost = min(best_of(way) for way in probes.values()) / len(few[0])
        most = len(arrays[0]) if single else min(cell.batch, MAIN)
        count = _portion(cost, self.peer_seconds, most)
        ways = peer.ways(cell.quantity, [x[:count] for x in arrays], single)
        found = [_Act(name, how, way, count, best_of(way, 1)) for how, way in ways.items()]
        close = SLOWER * min(each.seconds for each in found)
        return [each for each in found if each.seconds <= close], ""

    def _peer(self, name: str, robot: str) -> peers.Peer | str:
        """A peer on a robot, or why there is none."""
        key = (name, robot)
        if key not in self._peers:
            for other in [k for k in self._peers if k[0] == name and k[1] != robot]:
                del self._peers[other]
            self._peers[key] = peers.why_not(name, robot) or peers.make(name, robot)
        return self._peers[key]

    def _disagreement(self, peer: peers.Peer, cell: Cell) -> str:
        """What is wrong with a peer's results; empty if nothing is."""
        key = (peer.name, cell.robot, cell.quantity)
        if key not in self._agreed:
            probe = Cell(cell.robot, cell.quantity, CHECKED)
            arrays = cases.arguments(probe)
            theirs = peer.result(cell.quantity, arrays)
            robot = cases.robot(cell.robot)
            error = peers.disagreement(robot, cell.quantity, arrays, theirs)
            self._agreed[key] = "" if error <= peers.TOLERANCE else f"disagrees by {error:.1e}"
            if self._agreed[key]:
                self.faults.append(
                    f"{cell.robot}, {cell.quantity}: {peer.name} {self._agreed[key]}"
                )
        return self._agreed[key]

    # -- rounds

    def _row(self, cell: Cell, acts: Sequence[_Act], missing: dict[str, str]) -> Row:
        main = cell.batch in (1, MAIN) and not cell.alone
        seconds = acts[0].seconds
        rounds = interleaved(
            {str(number): act.run for number, act in enumerate(acts)},
            self.main_budget if main else self.budget,
            least=1 if seconds > (LONG if main else LONG_ELSEWHERE) else 5 if main else 3,
            tries=1 if seconds > LONG / 10 else TRIES,
        )
        ours, *theirs = (
            [t / act.samples for t in times]
            for act, times in zip(acts, rounds.values(), strict=True)
        )
        rivals: dict[str, Rival] = {}
        for act, times in zip(acts[1:], theirs, strict=True):
            rival = Rival(act.name, act.how, act.samples, Timing.of(times), Ratio.of(ours, times))
            known = rivals.get(act.name)
            if known is None or rival.timing.median < known.timing.median:
                rivals[act.name] = rival
        decision = counts.decision(cell).line
        return Row(cell, Timing.of(ours), tuple(rivals.values()), missing, decision=decision)


@dataclass(frozen=True)
class _Act:
    """Something to time: whose and how, samples in a run, and about how long that takes."""

    name: str
    how: str
    run: Act
    samples: int
    seconds: float


def _repeated(act: Act, times: int) -> Act:
    def run() -> None:
        for _ in range(times):
            act()

    return run if times > 1 else act


def _portion(cost: float, seconds: float, most: int) -> int:
    """How many samples fit into some seconds, at least one."""
    return max(1, min(most, int(seconds / cost)))


def _ours(cell: Cell, arrays: Sequence[Array]) -> Act:
    """The public method: on all rows at once, or on one after the other."""
    method = getattr(cases.robot(cell.robot), cell.quantity)
    if cell.batch > 1:
        return lambda: method(*arrays)
    rows = [tuple(row) for row in zip(*arrays, strict=True)]

    def run() -> None:
        for row in rows:
            method(*row)

    return run


def _on_threads(act: Act, threads: int) -> Act:
    def run() -> object:
        os.environ[THREADS] = str(threads)
        try:
            return act()
        finally:
            os.environ[THREADS] = "1"

    return run
