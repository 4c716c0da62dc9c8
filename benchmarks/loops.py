# SPDX-License-Identifier: BSD-3-Clause
"""Closed loops: dynamics and linearization beside ``pin.constraintDynamics``, many four-bars beside
MuJoCo's ``rollout``, all on one thread and in one run.

The same loops are points of Pinocchio. Results are compared before anything is timed: accelerations
as such, derivatives along the loops. The tree's forward dynamics runs in the same rounds, so that
what loops cost on top of it is a ratio of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec

import numpy as np

import phistar
from benchmarks.cases import MAIN
from benchmarks.loop_peers import MuJoCoLoops, PinocchioLoops
from benchmarks.stepping import PEER_BATCH, PEER_STEPS, QUICK_STEPS, STEPS, Stepping
from benchmarks.timing import TRIES, Act, Ratio, Timing, best_of, interleaved
from phistar import Robot
from phistar.arrays import Array
from phistar.constraints import Point

FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
QUADRUPED, HUMANOID = "quadruped, four feet pinned", "humanoid, closed ankles"
ROBOTS = (QUADRUPED, HUMANOID)
QUANTITIES = ("forward_dynamics", "linearize")
DISTINCT = 256
"""States; they come again in a batch."""
CHECKED = 4
TOLERANCE = 1e-9
"""Relative, of accelerations."""
ALONG = 1e-8
"""The same of derivatives along the loops."""
LONGEST_CALL = 0.5
"""Seconds; batches are smaller where a call would take longer."""
SOFT = 1e-4
"""Absolute, between our states of a four-bar and MuJoCo's, whose loops are soft [rad]."""
DT = 1e-3


@dataclass(frozen=True)
class LoopRow:
    """What was found of a quantity on a robot.

    Attributes:
        robot, quantity: What was timed.
        nv, rows: Coordinates and rows of loops.
        batch: Samples in a call of ours.
        ours: Seconds a sample.
        over_tree: How many times longer than the tree's forward dynamics; of dynamics alone.
        operations, tree_operations: Additions, subtractions and multiplications of a sample, with
            loops and of the tree alone; of dynamics alone.
        theirs: Seconds a sample of Pinocchio; None if it is not there.
        ratio: How many times faster ours is.
        error: Relative difference of the results.
        missing: Why there is no Pinocchio.
    """

    robot: str
    quantity: str
    nv: int
    rows: int
    batch: int
    ours: Timing
    over_tree: float | None = None
    operations: int | None = None
    tree_operations: int | None = None
    theirs: Timing | None = None
    ratio: Ratio | None = None
    error: float = 0.0
    missing: str = ""


@lru_cache(maxsize=2)
def robot(name: str) -> Robot:
    """One of ``ROBOTS``."""
    if name == HUMANOID:
        return phistar.load("humanoid_ankles")
    legs = phistar.load("quadruped")
    return legs.with_loops(*(Point(foot) for foot in FEET), q=_standing(legs))


def _standing(legs: Robot) -> Array:
    """Knees bent: with straight legs the feet could not move towards the body."""
    bent = {"HAA": 0.1, "HFE": 0.7, "KFE": -1.4}
    angles = {f"{foot[:2]}_{joint}": x for foot in FEET for joint, x in bent.items()}
    base = {"root_joint": legs.neutral()[:7]}
    return legs.configuration(base | angles)


def states(one: Robot, count: int) -> tuple[Array, Array, Array]:
    """(count, n) on the loops; beyond ``DISTINCT`` rows they come again."""
    rng = np.random.default_rng(0)
    start = _standing(one.tree) if one.name == "quadruped" else one.neutral()
    distinct = min(count, DISTINCT)
    q = one.assemble(one.integrate(start, 0.1 * rng.normal(size=(distinct, one.nv))))
    q, v = one.project(q, rng.normal(size=(distinct, one.nv)))
    arrays = (q, v, rng.normal(size=(distinct, one.nv)))
    q, v, tau = (np.ascontiguousarray(np.resize(x, (count, x.shape[1]))) for x in arrays)
    return q, v, tau


def measure(budget: float, peer_seconds: float) -> tuple[list[LoopRow], list[str]]:
    """All rows, and disagreements.

    Args:
        budget: Seconds for a row.
        peer_seconds: A peer runs as many samples as fit in.
    """
    rows, faults = [], []
    for name in ROBOTS:
        for quantity in QUANTITIES:
            row, fault = _row(name, quantity, budget, peer_seconds)
            rows.append(row)
            faults += [fault] if fault else []
    return rows, faults


def _row(name: str, quantity: str, budget: float, peer_seconds: float) -> tuple[LoopRow, str]:
    one = robot(name)
    method = getattr(one, quantity)
    cost = _cost(method, states(one, 64))
    batch = int(min(MAIN, max(64, LONGEST_CALL / cost)))
    given = states(one, batch)
    acts: dict[str, Act] = {"ours": lambda: method(*given)}
    samples = {"ours": batch}
    dynamics = quantity == "forward_dynamics"
    if dynamics:
        acts["tree"] = lambda: one.tree.forward_dynamics(*given)
        samples["tree"] = batch
    missing = "" if find_spec("pinocchio") else "not installed"
    error = 0.0
    if not missing:
        peer = PinocchioLoops(one)
        few = tuple(x[:CHECKED] for x in given)
        error = disagreement(one, peer, quantity, *few)
        acts["theirs"], samples["theirs"] = _peer_act(peer, quantity, given, peer_seconds)
    rounds = interleaved(acts, budget, least=3, tries=TRIES if cost * batch < 0.1 else 1)
    times = {key: [t / samples[key] for t in found] for key, found in rounds.items()}
    row = LoopRow(
        name,
        quantity,
        one.nv,
        np.asarray(one.loop_jacobian(given[0][:1])).shape[-2],
        batch,
        Timing.of(times["ours"]),
        Ratio.of(times["tree"], times["ours"]).median if dynamics else None,
        operations(one) if dynamics else None,
        operations(one.tree) if dynamics else None,
        None if missing else Timing.of(times["theirs"]),
        None if missing else Ratio.of(times["ours"], times["theirs"]),
        error,
        missing,
    )
    wrong = error > (TOLERANCE if dynamics else ALONG)
    return row, f"{name}, {quantity}: pinocchio disagrees by {error:.1e}" if wrong else ""


def _cost(method: Callable[..., object], few: tuple[Array, ...]) -> float:
    """Seconds a sample, at most; compiles what is needed."""
    method(*few)
    start = time.perf_counter()
    method(*few)
    return (time.perf_counter() - start) / len(few[0])


def _peer_act(
    peer: PinocchioLoops, quantity: str, given: tuple[Array, ...], seconds: float
) -> tuple[Act, int]:
    """Calls from Python, as many as fit in; its results are not collected."""
    call = peer.dynamics if quantity == "forward_dynamics" else peer.derivatives
    rows = peer.rows(*(x[:DISTINCT] for x in given))

    def run(count: int) -> None:
        for row in rows[:count]:
            call(*row)

    cost = best_of(lambda: run(CHECKED)) / CHECKED
    count = max(1, min(len(rows), int(seconds / cost)))
    return lambda: run(count), count


def disagreement(
    one: Robot, peer: PinocchioLoops, quantity: str, q: Array, v: Array, tau: Array
) -> float:
    """Relative difference of Pinocchio's result and ours.

    Off the loops its rows are not ours: derivatives are compared along directions that stay on
    them, and with respect to τ.
    """
    if quantity == "forward_dynamics":
        theirs, _ = peer.forward_dynamics(q, v, tau)
        return _relative(one.forward_dynamics(q, v, tau), theirs)
    by_q, by_v, by_tau = np.moveaxis(peer.linearize(q, v, tau), 1, 0)
    at = one.linearize(q, v, tau)  # type: ignore[attr-defined]
    reduced = at.reduced()
    steps = np.random.default_rng(1).normal(size=(2, len(reduced.independent)))
    dq, dv = (x[..., None] for x in reduced.expand(*steps))
    along = _relative(at.vdot_q @ dq + at.vdot_v @ dv, by_q @ dq + by_v @ dv)
    return max(along, _relative(at.vdot_tau, by_tau))


def _relative(ours: Array, theirs: Array) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def operations(one: Robot) -> int:
    """Of forward dynamics as it runs."""
    cost = one.compile("forward_dynamics").cost
    return cost.multiplications + cost.additions


# -- simulation


def simulate_four_bars(quick: bool = False) -> tuple[Stepping, str]:
    """4096 four-bars for some steps of Runge-Kutta 4; the second result names a disagreement."""
    one = phistar.load("four_bar")
    q, v, _ = _four_bars(one)
    steps = QUICK_STEPS if quick else STEPS
    acts: dict[str, Act] = {
        "ours": lambda: one.simulate(
            q, v, dt=DT, steps=steps, threads=1, progress=False, passive=False
        )
    }
    acts["ours"]()
    missing = "" if find_spec("mujoco") else "not installed"
    error = 0.0
    if not missing:
        peer = MuJoCoLoops(one, "RK4", DT, stiff=True)
        begin = peer.starts(q[:PEER_BATCH], v[:PEER_BATCH])
        acts["theirs"] = lambda: peer.rollout(begin, PEER_STEPS)
        theirs, _ = peer.ours(peer.rollout(begin, PEER_STEPS))
        ours = one.simulate(
            q[:PEER_BATCH], v[:PEER_BATCH], dt=DT, steps=PEER_STEPS, progress=False, passive=False
        )
        error = float(np.abs(np.swapaxes(theirs, 0, 1) - ours.q[1:]).max())
    rounds = interleaved(acts, 1.0 if quick else 6.0, least=3, most=6, tries=1)
    mine = [t / (MAIN * steps) for t in rounds["ours"]]
    if missing:
        return Stepping(one.name, MAIN, steps, Timing.of(mine), missing=missing), ""
    other = [t / (PEER_BATCH * PEER_STEPS) for t in rounds["theirs"]]
    ratio = Ratio.of(mine, other)
    row = Stepping(one.name, MAIN, steps, Timing.of(mine), Timing.of(other), ratio, error)
    return row, f"four-bar, simulate: mujoco disagrees by {error:.1e}" if error > SOFT else ""


def _four_bars(one: Robot) -> tuple[Array, Array, Array]:
    """``MAIN`` states all around."""
    rng = np.random.default_rng(0)
    q = one.assemble(one.integrate(one.neutral(), 0.3 * rng.normal(size=(MAIN, one.nv))))
    q, v = one.project(q, rng.normal(size=(MAIN, one.nv)))
    return q, v, np.zeros_like(v)
