# SPDX-License-Identifier: BSD-3-Clause
"""``make bench-drift``: what free motions keep, beside Pinocchio with RK4 and MuJoCo's integrators.

A double pendulum in gravity, a tumbling body and the quadruped without contact, both without
gravity, so that their momentum should stay. All states are judged by the same energies and momenta,
ours. First everyone takes the same steps, then as many as fit into the same time of the processor.
Then mechanisms with closed loops, see ``loop_drift``.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from rich.console import Console
from rich.table import Table

import phistar
from benchmarks import loop_drift, peers
from phistar import Robot, robots
from phistar.arrays import Array
from phistar.errors import ArgumentError, PhistarWarning
from phistar.sim import monitors

States = tuple[Array, Array]
Run = Callable[[float, int], States]
"""States (knots, n) of a step length and a number of steps."""

DURATION, DT = 0.5, 2e-3
BUDGET = 0.1
"""Seconds of the processor for the comparison at equal time."""
MOST = 200_000
"""Steps at most; beyond, rounding is all that is seen."""

BODY = """<robot name="body"><link name="body"><inertial><mass value="1"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.3"/></inertial></link></robot>"""

OURS = {
    "phistar rk4": {"scheme": "rk4"},
    "phistar rk4 in ζ": {"scheme": "rk4", "variables": "zeta"},
    "phistar semi-implicit": {"scheme": "semi_implicit"},
    "phistar implicit midpoint in η": {"scheme": "implicit_midpoint"},
}
MUJOCO = {"Euler": "mjINT_EULER", "implicit": "mjINT_IMPLICIT", "RK4": "mjINT_RK4"}


@dataclass(frozen=True)
class Case:
    """A robot, its state, and how the others read it."""

    title: str
    robot: Robot
    q: Array
    v: Array
    urdf: str
    floats: bool


def cases() -> list[Case]:
    """The three motions."""
    rng = np.random.default_rng(0)
    pendulum = phistar.load("double_pendulum")
    body = phistar.load(BODY.encode(), floating_base=True, gravity=(0, 0, 0))
    legs = phistar.load("quadruped", gravity=(0, 0, 0))
    text = robots.path("quadruped").read_text(encoding="utf-8")
    hung = np.array([1.5, 0.5])
    tumble = np.array([0.1, 4.0, 0.1, 0.3, 0.2, 0.1])
    some = rng.normal(size=legs.nv)
    return [
        Case("double pendulum", pendulum, hung, np.zeros(2), pendulum.to_urdf(), False),
        Case("tumbling body, no gravity", body, body.neutral(), tumble, BODY, True),
        Case("quadruped, no gravity", legs, legs.home, some, text, True),
    ]


def engines(case: Case) -> dict[str, Run]:
    """Everyone who can run a case."""
    found: dict[str, Run] = {name: _ours(case, how) for name, how in OURS.items()}
    if find_spec("pinocchio"):
        found["Pinocchio RK4, Python loop"] = _pinocchio(case)
    if find_spec("mujoco"):
        found |= {f"MuJoCo {name}": _mujoco(case, kind) for name, kind in MUJOCO.items()}
    return found


def _ours(case: Case, how: dict[str, str]) -> Run:
    def run(dt: float, steps: int) -> States:
        every = max(1, steps // 100)
        steps -= steps % every
        sim = case.robot.simulate(
            case.q, case.v, dt=dt, steps=steps, every=every, progress=False, **how, passive=False
        )
        return sim.q, sim.v

    return run


def _pinocchio(case: Case) -> Run:
    """Classical Runge-Kutta with steps by ``pin.integrate``."""
    peer = peers.Pinocchio(case.robot, case.urdf, case.floats)
    pin, model, data, convert = peer.pin, peer.model, peer.data, peer.convert
    model.gravity.linear = case.robot.gravity
    none = np.zeros(model.nv)

    def rate(q: Array, v: Array) -> Array:
        return np.array(pin.aba(model, data, q, v, none))

    def step(q: Array, v: Array, h: float) -> States:
        a1 = rate(q, v)
        v2 = v + h / 2 * a1
        a2 = rate(pin.integrate(model, q, h / 2 * v), v2)
        v3 = v + h / 2 * a2
        a3 = rate(pin.integrate(model, q, h / 2 * v2), v3)
        v4 = v + h * a3
        a4 = rate(pin.integrate(model, q, h * v3), v4)
        way = h / 6 * (v + 2 * v2 + 2 * v3 + v4)
        return pin.integrate(model, q, way), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)

    def run(dt: float, steps: int) -> States:
        q, v = convert.q_to_peer(case.q), convert.v_to_peer(case.q, case.v)
        qs, vs = [q], [v]
        for k in range(steps):
            q, v = step(q, v, dt)
            if (k + 1) % max(1, steps // 100) == 0:
                qs.append(q)
                vs.append(v)
        places = convert.q_from_peer(np.array(qs))
        return places, convert.v_from_peer(places, np.array(vs))

    return run


def _mujoco(case: Case, integrator: str) -> Run:
    import mujoco

    peer = peers.MuJoCo(case.robot, case.urdf, case.floats)
    model, data, convert = peer.model, peer.data, peer.convert
    model.opt.gravity[:] = case.robot.gravity
    model.opt.integrator = getattr(mujoco.mjtIntegrator, integrator)

    def run(dt: float, steps: int) -> States:
        mujoco.mj_resetData(model, data)
        model.opt.timestep = dt
        data.qpos[:] = convert.q_to_peer(case.q)
        data.qvel[:] = convert.v_to_peer(case.q, case.v)
        every = max(1, steps // 100)
        qs, vs = [data.qpos.copy()], [data.qvel.copy()]
        for _ in range(steps // every):
            mujoco.mj_step(model, data, every)
            qs.append(data.qpos.copy())
            vs.append(data.qvel.copy())
        places = convert.q_from_peer(np.array(qs))
        return places, convert.v_from_peer(places, np.array(vs))

    return run


@dataclass(frozen=True)
class Kept:
    """What an engine kept: steps, seconds, drifts of energy and momentum; or why it did not run."""

    steps: int
    seconds: float = 0.0
    energy: float = np.nan
    momentum: tuple[float, float] = (np.nan, np.nan)
    why: str = ""


def judged(case: Case, run: Run, steps: int) -> Kept:
    """Run, and compare what is left with what there was."""
    begin = time.process_time()
    try:
        q, v = run(DURATION / steps, steps)
    except ArgumentError:
        return Kept(steps, why="does not converge")
    seconds = time.process_time() - begin
    model = case.robot.model
    times = np.linspace(0.0, DURATION, len(q))
    energies, momenta = monitors.energy(model, q, v), monitors.momentum(model, q, v)
    kept = monitors.conserved_quantities(model, np.zeros(model.nv), external=False)
    radius = monitors.radius_of_gyration(model, q[0])
    drift = monitors.drift(times, energies, momenta, kept, radius)
    return Kept(steps, seconds, drift.relative_energy, drift.relative_momentum)


def table(case: Case) -> Table:
    """Everyone on a case, at equal steps and at equal time."""
    result = Table(title=f"{case.title}, {DURATION:g} s", title_justify="left", title_style="bold")
    result.add_column("engine and scheme")
    kept = ("energy", "ang. mom.", "lin. mom.")
    for heading in ("CPU", *kept, "steps", *kept):
        result.add_column(heading, justify="right")
    free = case.floats
    for name, run in engines(case).items():
        judged(case, run, 50)
        same = judged(case, run, round(DURATION / DT))
        cost = same.seconds / same.steps
        steps = int(min(MOST, max(20, BUDGET / cost))) if cost else MOST
        result.add_row(
            name,
            f"{1e3 * same.seconds:.1f} ms",
            *_cells(same, free),
            str(steps),
            *_cells(judged(case, run, steps), free),
        )
    return result


def _cells(kept: Kept, free: bool) -> list[str]:
    if kept.why:
        return [kept.why, "", ""]
    momenta = [f"{x:.0e}" for x in kept.momentum] if free else ["", ""]
    return [f"{kept.energy:.0e}", *momenta]


def main() -> int:
    """Print the tables."""
    os.environ["PHISTAR_TIER"] = "wait"
    os.environ["PHISTAR_THREADS"] = "1"
    warnings.simplefilter("ignore", PhistarWarning)
    console = Console(width=150)
    for case in cases():
        console.print()
        console.print(table(case))
    console.print(
        f"\nLargest drift as a part of the largest value, over {DURATION:g} s. Left: steps of "
        f"{1e3 * DT:g} ms;\nright: as many as fit into {BUDGET:g} s of the processor, 20 at least."
        "\nJoints of the pendulum hold it, so its momentum is no law.",
        style="dim",
    )
    for each in loop_drift.tables():
        console.print()
        console.print(each)
    console.print(f"\n{loop_drift.NOTES}", style="dim")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
