# SPDX-License-Identifier: BSD-3-Clause
"""``make bench-cliffs``: methods that must not be far slower than dynamics, each to its bound.

External forces against the same call without; steps on the configuration space, discretization,
rates of Jacobians, accelerations, operational inertia, regressor, log det and steps of time; a
rollout under a Python policy; and whether float32 stays float32. A method that does not exist, or
refuses what it is asked, is a missed bound, not a failure of the script.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import phistar
from benchmarks.timing import Act, interleaved
from phistar import Robot, control
from phistar.arrays import Array
from phistar.errors import PhistarError, PhistarWarning

ROBOT = "quadruped"
FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
REFERENCES = ("local", "world", "world_aligned")
SCHEMES = ("euler", "semi_implicit", "midpoint", "rk4")
BATCH = 4096
DT = 1e-3

MAX_SINGLE_MICROSECONDS = 5.0
MAX_FORCES_RATIO = 1.5
MAX_INTEGRATE_RATIO = 1.0
MAX_ROLLOUT_MICROSECONDS = 15.0
ROLLOUT_STEPS = 200

SECONDS_PER_TRY = 2e-3
"""What a timed try of short calls lasts at least."""
TABLE_COLUMNS = 130
BUDGET_SECONDS, QUICK_BUDGET_SECONDS = 0.5, 0.05
"""Time for the rounds of a row."""


@dataclass(frozen=True)
class Row:
    """A bound.

    Attributes:
        what: What is timed.
        bound: What it must not exceed, in ``unit``.
        unit: ``"us"`` or ``"x"``, times as long as ``beside``.
        act: Does it.
        beside: What it is compared with.
        calls: How many the time of ``act`` is for.
    """

    what: str
    bound: float
    unit: str
    act: Act
    beside: Act | None = None
    calls: int = 1


@dataclass(frozen=True)
class Finding:
    """What became of a row: a number, or why there is none."""

    what: str
    bound: str
    found: str
    met: bool


@dataclass(frozen=True)
class State:
    """A robot and arrays for it: one sample or a batch."""

    robot: Robot
    q: Array
    v: Array
    tau: Array
    vdot: Array
    wrenches: Mapping[str, Array]

    def forces(self, count: int) -> dict[str, Array]:
        """Wrenches on some feet."""
        return {name: self.wrenches[name] for name in FEET[:count]}

    def as_float32(self) -> State:
        """The same in single precision."""
        q, v, tau, vdot = (x.astype(np.float32) for x in (self.q, self.v, self.tau, self.vdot))
        return State(
            self.robot, q, v, tau, vdot, {n: x.astype(np.float32) for n, x in self.wrenches.items()}
        )


def draw_state(robot: Robot, shape: tuple[int, ...]) -> State:
    """A random one."""
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng, shape)
    v, tau, vdot = (rng.normal(size=(*shape, robot.nv)) for _ in range(3))
    return State(robot, q, v, tau, vdot, {name: rng.normal(size=(*shape, 6)) for name in FEET})


def rows(robot: Robot) -> Iterator[Row]:
    """All bounds."""
    one, many = draw_state(robot, ()), draw_state(robot, (BATCH,))
    for label, state in (("single", one), (f"batch {BATCH}", many)):
        yield from _force_rows(label, state)
    for name, act in quantities(one).items():
        yield Row(f"{name}, single", MAX_SINGLE_MICROSECONDS, "us", act)
    for name in ("integrate", "difference"):
        act = quantities(many)[name]
        yield Row(
            f"{name}, batch {BATCH}, beside forward_dynamics",
            MAX_INTEGRATE_RATIO,
            "x",
            act,
            lambda: robot.forward_dynamics(many.q, many.v, many.tau),
        )
    yield Row(
        "control.rollout with a Python policy, per step",
        MAX_ROLLOUT_MICROSECONDS,
        "us",
        lambda: control.rollout(robot, one.q, one.v, _policy, DT, ROLLOUT_STEPS),
        calls=ROLLOUT_STEPS,
    )


def _policy(k: int, q: Array, v: Array) -> Array:
    return -0.5 * v


def _force_rows(label: str, state: State) -> Iterator[Row]:
    robot = state.robot
    q, v = state.q, state.v
    calls: dict[str, tuple[Callable[..., Any], Array]] = {
        "inverse_dynamics": (robot.inverse_dynamics, state.vdot),
        "forward_dynamics": (robot.forward_dynamics, state.tau),
    }
    for name, (call, x) in calls.items():
        for count in (1, len(FEET)):
            for reference in REFERENCES:
                forces = state.forces(count)
                yield Row(
                    f"{name}(forces= on {count}, {reference!r}), {label}, beside without",
                    MAX_FORCES_RATIO,
                    "x",
                    # Arguments as users write them: stars would cost a dict on one side only.
                    lambda c=call, x=x, f=forces, r=reference: c(q, v, x, forces=f, reference=r),  # type: ignore[misc]
                    lambda c=call, x=x: c(q, v, x),  # type: ignore[misc]
                )


def quantities(state: State) -> dict[str, Act]:
    """Calls of methods, by what they are called in the table."""
    robot: Any = state.robot
    q, v, tau, vdot, foot = state.q, state.v, state.tau, state.vdot, FEET[0]
    found: dict[str, Act] = {
        "integrate": lambda: robot.integrate(q, v),
        "difference": lambda: robot.difference(q, q),
    }
    for scheme in SCHEMES[:2]:
        found[f"discretize {scheme}"] = lambda s=scheme: robot.discretize(q, v, tau, DT, method=s)  # type: ignore[misc]
    for reference in REFERENCES:
        found[f"jacobian_rate {reference}"] = lambda r=reference: robot.jacobian_rate(q, v, foot, r)  # type: ignore[misc]
        found[f"frame_acceleration {reference}"] = lambda r=reference: robot.frame_acceleration(  # type: ignore[misc]
            q, v, vdot, foot, r
        )
    found["operational_inertia"] = lambda: robot.operational_inertia(q, [foot])
    found["regressor"] = lambda: robot.regressor(q, v, vdot)
    found["log_determinant"] = lambda: robot.log_determinant(q)
    for scheme in SCHEMES:
        found[f"step {scheme}"] = lambda s=scheme: robot.step(
            q, v, tau, DT, scheme=s, passive=False
        )  # type: ignore[misc]
    return found


def measure(row: Row, budget: float) -> Finding:
    """Time a row."""
    sign = " µs" if row.unit == "us" else "x"
    bound = f"{row.bound:g}{sign}"
    try:
        acts = {"act": row.act, **({"beside": row.beside} if row.beside is not None else {})}
        repeated = {name: _repeated(act) for name, act in acts.items()}
        times = interleaved({name: act for name, (act, _) in repeated.items()}, budget, least=3)
    except (AttributeError, TypeError, PhistarError) as error:
        return Finding(row.what, bound, f"no result: {error}".splitlines()[0][:90], False)
    seconds = {name: min(times[name]) / repeated[name][1] for name in acts}
    value = (
        seconds["act"] / row.calls * 1e6
        if row.beside is None
        else seconds["act"] / seconds["beside"]
    )
    return Finding(row.what, bound, f"{value:.2f}{sign}", value <= row.bound)


def _repeated(act: Act) -> tuple[Act, int]:
    """An act as often as a timed try needs, after what compiles it; and how often that is."""
    for _ in range(3):
        act()
    start = time.perf_counter()
    act()
    count = max(1, int(SECONDS_PER_TRY / max(time.perf_counter() - start, 1e-7)))

    def many() -> None:
        for _ in range(count):
            act()

    return many, count


def precisions(robot: Robot) -> Iterator[Finding]:
    """Whether float32 stays float32."""
    state = draw_state(robot, (8,)).as_float32()
    named = dict(quantities(state))
    named["simulate"] = lambda: robot.simulate(
        state.q, 0.1 * state.v, tau=state.tau, dt=DT, steps=2, scheme="semi_implicit", passive=False
    )
    for name, act in named.items():
        try:
            found = sorted({str(x.dtype) for x in _arrays(act())})
            text, met = ", ".join(found), found == ["float32"]
        except (AttributeError, TypeError, PhistarError) as error:
            text, met = f"no result: {error}".splitlines()[0][:90], False
        yield Finding(f"{name}, float32 in", "float32", text, met)


def _arrays(result: object) -> Iterator[Array]:
    """The arrays of a result: one, several, or attributes of an object."""
    if isinstance(result, np.ndarray | np.floating):
        yield np.asarray(result)
    elif isinstance(result, tuple):
        for each in result:
            yield from _arrays(each)
    else:
        for name in ("q", "v", "A", "B"):
            if hasattr(result, name):
                yield getattr(result, name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; with ``--limit`` 1 if a bound is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks.cliffs", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--limit", action="store_true", help="fail if a bound is missed")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args(arguments)
    os.environ["PHISTAR_TIER"] = "wait"
    budget = QUICK_BUDGET_SECONDS if options.quick else BUDGET_SECONDS
    robot = phistar.load(ROBOT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PhistarWarning)
        found = [measure(row, budget) for row in rows(robot) if options.only in row.what]
        found += [each for each in precisions(robot) if options.only in each.what]
    table = Table("what", "bound", "found", "", title=f"no cliffs: {ROBOT}")
    for each in found:
        verdict = "met" if each.met else "[red]missed[/red]"
        table.add_row(each.what, each.bound, each.found, verdict)
    console = Console(width=TABLE_COLUMNS)
    console.print(table)
    missed = sum(not each.met for each in found)
    console.print(f"{len(found) - missed} of {len(found)} bounds met")
    return 1 if options.limit and missed else 0


if __name__ == "__main__":
    sys.exit(main())
