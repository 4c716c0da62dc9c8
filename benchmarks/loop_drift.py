# SPDX-License-Identifier: BSD-3-Clause
"""Loops in ``make bench-drift``: what keeps them closed, and what a wrong rank does.

Ways to decide the rank and to stabilise are compared with dense matrices by the same Runge-Kutta
steps; the last row of each table is ``robot.simulate``. Then published problems and long runs, and
a four-bar beside Pinocchio and MuJoCo.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.table import Table

import phistar
from benchmarks import mechanisms
from benchmarks.loop_peers import MuJoCoLoops, PinocchioLoops
from benchmarks.mechanisms import State, in_motion
from phistar import Robot
from phistar.arrays import Array
from phistar.loops.assembly import nearest_velocity, projection_step, usual_rank
from phistar.loops.rank import factored, independent_rows, singular_values, take_rows
from phistar.loops.routes import solve_saddle
from phistar.loops.system import LoopMotion, loop_system, motion_at, rows_at

BLOWN = 1e3
"""Velocities beyond which a run is given up."""


@dataclass(frozen=True)
class Way:
    """How a run goes about its loops.

    Attributes:
        tolerance: Of singular values of L, with which each evaluation decides the rank; 0: it is
            the usual one, always.
        rows: ``"svd"``, all of them; ``"step"`` or ``"start"``, independent ones chosen on each
            step or once; ``"proximal"``, all, with Δ + μI.
        baumgarte: Rate [1/s] with which errors are made to fade.
        ggl: Rate with which q is pushed towards the loops [1/s].
        project_q, project_v: Whether states are projected after each step.
    """

    tolerance: float = 0.0
    rows: str = "svd"
    baumgarte: float = 0.0
    ggl: float = 0.0
    project_q: bool = True
    project_v: bool = True


RANKS = {
    "rank by tolerance 1e-10, no projection": Way(1e-10, project_q=False, project_v=False),
    "rank by tolerance 1e-10, projection": Way(1e-10),
    "rank by tolerance 1e-6, projection": Way(1e-6),
    "rank by tolerance 1e-3, projection": Way(1e-3),
    "proximal, μ = 1e-6, 3 times, projection": Way(rows="proximal"),
    "fixed number, rows of the start, projection": Way(rows="start"),
    "fixed number, rows afresh each step, projection": Way(rows="step"),
    "fixed number, SVD, projection": Way(),
}
"""Those of LOOPS.md, section 4."""

_OPEN = Way(project_q=False, project_v=False)


def stabilisations(h: float) -> dict[str, Way]:
    """Those of LOOPS.md, section 7, for a step [s]; the rank is the usual one in all of them."""
    return {
        "nothing": _OPEN,
        "Baumgarte, 10/s": replace(_OPEN, baumgarte=10.0),
        "Baumgarte, 0.3/h": replace(_OPEN, baumgarte=0.3 / h),
        "Baumgarte, 1/h": replace(_OPEN, baumgarte=1.0 / h),
        "GGL, κ = 10/s": replace(_OPEN, ggl=10.0),
        "v projected": Way(project_q=False),
        "q and v projected": Way(),
    }


class DenseRun:
    """A robot in one of these ways, in NumPy."""

    def __init__(self, robot: Robot, way: Way) -> None:
        self.robot, self.way = robot, way
        self.model = robot.model
        self.system = loop_system(self.model)
        self.rank = usual_rank(self.model)
        self._rows: Array | None = None

    def run(self, q: Array, v: Array, h: float, steps: int) -> tuple[Array, Array]:
        """States (steps + 1, n), NaN from where it blows up."""
        qs, vs = np.full((steps + 1, len(q)), np.nan), np.full((steps + 1, len(v)), np.nan)
        qs[0], vs[0] = q, v
        for k in range(steps):
            if self.way.rows == "step" or not k:
                self._rows = self._choose(q)
            q, v = self._step(q, v, h)
            if not np.abs(v).max() < BLOWN:
                break
            qs[k + 1], vs[k + 1] = q, v
        return qs, vs

    def _choose(self, q: Array) -> Array | None:
        if self.way.rows not in ("step", "start"):
            return None
        return independent_rows(self.system, rows_at(self.model, q).L, self.rank)

    def _step(self, q: Array, v: Array, h: float) -> tuple[Array, Array]:
        """Runge-Kutta 4; joints of these mechanisms have angles, so q is a vector."""
        with np.errstate(all="ignore"):
            w1, a1 = self._rates(q, v)
            w2, a2 = self._rates(q + h / 2 * w1, v + h / 2 * a1)
            w3, a3 = self._rates(q + h / 2 * w2, v + h / 2 * a2)
            w4, a4 = self._rates(q + h * w3, v + h * a3)
            q = q + h / 6 * (w1 + 2 * w2 + 2 * w3 + w4)
            v = v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
            if not np.abs(v).max() < BLOWN:
                return q, np.full_like(v, np.inf)
            if self.way.project_q:
                for _ in range(2):
                    q, v, _ = projection_step(self.model, q, v, self.rank)
            elif self.way.project_v:
                v = nearest_velocity(self.model, q, v, self.rank)
        return q, v

    def _rates(self, q: Array, v: Array) -> tuple[Array, Array]:
        if not (np.isfinite(q).all() and np.abs(v).max() < BLOWN):
            return np.full_like(v, np.inf), np.full_like(v, np.inf)
        at, way = motion_at(self.model, q, v), self.way
        alpha = way.baumgarte
        c = -at.bias
        if alpha:
            c = c - 2 * alpha * at.rate - alpha**2 * at.error
        mass, force = self.robot.tree.mass_matrix(q), -self.robot.tree.bias_force(q, v)
        if way.rows == "proximal":
            return v, self._proximal(mass, force, at.L, c)
        L = at.L
        if self._rows is not None:
            L, c = take_rows(L, self._rows), c[self._rows]
        factor = factored(L, self._rank(at))
        push = v
        if way.ggl:
            push = v - way.ggl * solve_saddle(mass, factor, np.zeros_like(v), at.error)[0]
        return push, solve_saddle(mass, factor, force, c)[0]

    def _rank(self, at: LoopMotion) -> int:
        if not self.way.tolerance:
            return self.rank
        values = singular_values(self.system, at.L)
        return int((values > self.way.tolerance * values[0]).sum())

    def _proximal(self, mass: Array, force: Array, L: Array, c: Array) -> Array:
        free = np.linalg.solve(mass, force)
        carried = np.linalg.solve(mass, L.T)
        delta = L @ carried
        damping = 1e-6 * np.trace(delta) / len(delta)
        whole = delta + damping * np.eye(len(delta))
        multipliers = np.zeros(len(delta))
        for _ in range(3):
            multipliers = np.linalg.solve(whole, c - L @ free + damping * multipliers)
        return np.asarray(free + carried @ multipliers)


def simulated(robot: Robot, q: Array, v: Array, h: float, steps: int) -> tuple[Array, Array]:
    """States (steps + 1, n) of ``robot.simulate``."""
    sim = robot.simulate(q, v, dt=h, steps=steps, progress=False, passive=False)
    return sim.q, sim.v


# -- tables

TOLD = "robot.simulate"


def _table(title: str, *columns: str) -> Table:
    result = Table(title=title, title_justify="left", title_style="bold")
    for number, name in enumerate(columns):
        result.add_column(name, justify="right" if number else "left")
    return result


def ranks(duration: float = 2.0, h: float = 0.01) -> Table:
    """What ways to decide the rank do to over-constrained linkages: the largest error of q."""
    steps = round(duration / h)
    title = f"Rank of over-constrained loops: error of q after {duration:g} s, RK4, {1e3 * h:g} ms"
    states = [in_motion(mechanisms.bricard()), in_motion(mechanisms.bennett())]
    found = _table(title, "rank and projection", *(robot.name for robot, _, _ in states))
    exact = [simulated(*state, h / 20, 20 * steps)[0][-1] for state in states]
    for name, way in RANKS.items():
        last = [DenseRun(s[0], way).run(*s[1:], h, steps)[0][-1] for s in states]
        found.add_row(name, *(_error(x, y) for x, y in zip(last, exact, strict=True)))
    last = [simulated(*state, h, steps)[0][-1] for state in states]
    found.add_row(TOLD, *(_error(x, y) for x, y in zip(last, exact, strict=True)))
    return found


def _error(found: Array, exact: Array) -> str:
    error = np.abs(found - exact).max()
    return f"{error:.1e}" if np.isfinite(error) else "blows up"


def stabilised(duration: float = 3.0) -> Table:
    """What keeps loops closed: the largest loop error and the drift of the energy."""
    cases = [
        (in_motion(phistar.load("four_bar"), speed=2.0), 0.01),
        (in_motion(mechanisms.bricard()), 0.01),
        (in_motion(mechanisms.six_bar()), 0.005),
    ]
    title = f"Stabilisation over {duration:g} s, RK4: loop error / drift of the energy"
    names = [f"{state[0].name}, {1e3 * h:g} ms" for state, h in cases]
    found = _table(title, "after each step, or in the rates", *names)
    for name in stabilisations(1.0):
        cells = []
        for (robot, q, v), h in cases:
            dense = DenseRun(robot, stabilisations(h)[name])
            cells.append(_kept(robot, *dense.run(q, v, h, round(duration / h))))
        found.add_row(name, *cells)
    cells = [_kept(state[0], *simulated(*state, h, round(duration / h))) for state, h in cases]
    found.add_row(TOLD, *cells)
    return found


def _kept(robot: Robot, q: Array, v: Array) -> str:
    if not np.isfinite(q).all():
        return "blows up"
    return f"{opened(robot, q):.1e} / {energy_drift(robot, q, v):.0e}"


def opened(robot: Robot, q: Array) -> float:
    """The largest loop error of states (knots, nq) [rad, m]."""
    return float(np.abs(np.asarray(robot.loop_error(q))).max())


def energy_drift(robot: Robot, q: Array, v: Array) -> float:
    """The largest change of the energy, as a part of the largest kinetic energy."""
    kinetic = robot.kinetic_energy(q, v)
    energy = kinetic + robot.potential_energy(q)
    return float(np.abs(energy - energy[0]).max() / kinetic.max())


@dataclass(frozen=True)
class Long:
    """A long run: error against its reference, loop errors of both halves, drift of the energy."""

    error: str
    loops: tuple[float, float]
    energy: float
    seconds: float


def long_runs() -> Table:
    """Published problems against their solutions, and over-constrained linkages for 20 s."""
    title = "Published problems and long runs, robot.simulate with RK4"
    columns = ("problem", "step", "error", "loop error", "in 2nd half", "energy", "time")
    found = _table(title, *columns)
    for name, h, run in _problems():
        got = run()
        found.add_row(
            name,
            f"{1e3 * h:g} ms",
            got.error,
            f"{max(got.loops):.1e}",
            f"{got.loops[1]:.1e}",
            f"{got.energy:.0e}" if np.isfinite(got.energy) else "",
            f"{got.seconds:.1f} s",
        )
    return found


def _problems() -> Iterator[tuple[str, float, Callable[[], Long]]]:
    if mechanisms.REFERENCE.is_file():
        known = json.loads(mechanisms.REFERENCE.read_text())
        h = 1e-3
        yield "IFToMM A01, 10 s", h, partial(_run, mechanisms.pendulum(), h, 10.0, known["A01"])
        for count, h in ((2, 1e-3), (40, 2.5e-3)):
            windows = mechanisms.windows(count)
            run = partial(_run, windows, h, 10.0, known[f"A02_N{count}"])
            yield f"IFToMM A02, N = {count}, 10 s", h, run
        if mechanisms.ANDREWS.is_file():
            andrews = known["A03_andrews"]
            yield "IFToMM A03 (Andrews), 0.03 s", 1.5e-5, partial(_andrews, andrews, 2000)
    four_bar = in_motion(phistar.load("four_bar"), speed=2.0)
    yield "four-bar, 10 s", 5e-4, partial(_run, four_bar, 5e-4, 10.0)
    for make in (mechanisms.bricard, mechanisms.bennett):
        state = in_motion(make())
        for h in (1e-2, 1e-3):
            yield f"{state[0].name}, 20 s", h, partial(_run, state, h, 20.0)


def _run(state: State, h: float, duration: float, known: dict[str, Any] | None = None) -> Long:
    """A simulation, and where B0 or the mass is against the reference."""
    robot, q, v = state
    begin = time.perf_counter()
    sim = robot.simulate(
        q, v, dt=h, duration=duration, every=round(0.1 / h), progress=False, passive=False
    )
    seconds = time.perf_counter() - begin
    half = len(sim.q) // 2
    error = ""
    if known is not None:
        there = np.stack([known[k] for k in (("x", "y") if "x" in known else ("B0_x", "B0_y"))], -1)
        angle = sim.q[:, 0]
        here = sim.q if "x" in known else np.stack([-np.sin(angle), np.cos(angle)], -1)
        error = f"{np.abs(here - there).max():.1e} m"
    loops = opened(robot, sim.q[:half]), opened(robot, sim.q[half:])
    return Long(error, loops, energy_drift(robot, sim.q, sim.v), seconds)


def _andrews(known: dict[str, Any], steps: int) -> Long:
    begin = time.perf_counter()
    q, v = mechanisms.andrews(known["order"].split(), known["q0"], steps)
    seconds = time.perf_counter() - begin
    rates = np.abs(v / known["v"] - 1.0).max()
    error = f"{np.abs(q - known['q']).max():.1e} rad, {rates:.0e} of rates"
    robot = phistar.load(mechanisms.ANDREWS)
    at = robot.configuration(dict(zip(known["order"].split(), q, strict=True)))
    gap = opened(robot, at)
    return Long(error, (gap, gap), np.nan, seconds)


# -- beside the peers

_Run = Callable[[float, int], tuple[Array, Array]]


def beside_peers(duration: float = 0.5, h: float = 2e-3, budget: float = 0.1) -> Table:
    """A four-bar by everyone: with the same steps, and as many as fit into the same time."""
    title = f"four-bar, {duration:g} s, loop error / drift of the energy"
    found = _table(title, "engine and scheme", "CPU", f"{1e3 * h:g} ms", "steps", "equal time")
    robot, q, v = in_motion(phistar.load("four_bar"), speed=3.0)
    for name, run in _engines(robot, q, v).items():
        steps = round(duration / h)
        run(h, steps)
        begin = time.process_time()
        same = run(h, steps)
        seconds = time.process_time() - begin
        many = int(min(100_000, max(20, budget * steps / max(seconds, 1e-9))))
        cells = [_kept(robot, *x) for x in (same, run(duration / many, many))]
        found.add_row(name, f"{1e3 * seconds:.1f} ms", cells[0], str(many), cells[1])
    return found


def _engines(robot: Robot, q: Array, v: Array) -> dict[str, _Run]:
    def ours(scheme: str) -> _Run:
        def run(h: float, steps: int) -> tuple[Array, Array]:
            sim = robot.simulate(
                q, v, dt=h, steps=steps, scheme=scheme, progress=False, passive=False
            )
            return sim.q, sim.v

        return run

    found = {f"phistar {x}": ours(x) for x in ("rk4", "midpoint", "semi_implicit")}
    if find_spec("pinocchio"):
        found["Pinocchio RK4, Python loop"] = _pinocchio(robot, q, v)
    if find_spec("mujoco"):
        for integrator in ("RK4", "Euler", "implicit"):
            for stiff in (True, False):
                how = f"MuJoCo {integrator}, {'stiff' if stiff else 'as set by default'}"
                found[how] = partial(_mujoco, robot, q, v, integrator, stiff)
    return found


def _pinocchio(robot: Robot, q: Array, v: Array) -> _Run:
    """Its constraint dynamics, nothing stabilised; rows that depend on each other damped."""
    peer = PinocchioLoops(robot, 1e-8, 10, planar=True)
    assert (peer.q_order == np.arange(robot.nq)).all()
    none = np.zeros(robot.nv)

    def rate(q: Array, v: Array) -> Array:
        return peer.dynamics(q, v, none).copy()

    def step(q: Array, v: Array, h: float) -> tuple[Array, Array]:
        a1 = rate(q, v)
        v2 = v + h / 2 * a1
        a2 = rate(q + h / 2 * v, v2)
        v3 = v + h / 2 * a2
        a3 = rate(q + h / 2 * v2, v3)
        v4 = v + h * a3
        a4 = rate(q + h * v3, v4)
        return q + h / 6 * (v + 2 * v2 + 2 * v3 + v4), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)

    def run(h: float, steps: int) -> tuple[Array, Array]:
        states = [(q, v)]
        for _ in range(steps):
            states.append(step(*states[-1], h))
        return np.array([x for x, _ in states]), np.array([x for _, x in states])

    return run


def _mujoco(
    robot: Robot, q: Array, v: Array, integrator: str, stiff: bool, h: float, steps: int
) -> tuple[Array, Array]:
    peer = MuJoCoLoops(robot, integrator, h, stiff)
    places, rates = peer.ours(peer.rollout(peer.starts(q[None], v[None]), steps))
    return np.concatenate([q[None], places[0]]), np.concatenate([v[None], rates[0]])


def tables() -> Iterator[Table]:
    """All of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for make in (beside_peers, ranks, stabilised, long_runs):
            yield make()


NOTES = """\
Rank and stabilisation: LOOPS.md, sections 4 and 7, by the same dense Runge-Kutta steps; in the
second all rows have the right rank. Energies: largest change as a part of the largest kinetic
energy. Errors of q against steps a twentieth as long."""
