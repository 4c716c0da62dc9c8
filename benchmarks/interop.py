# SPDX-License-Identifier: BSD-3-Clause
"""Adapters: what JAX and PyTorch add to a call, and gradients of rollouts beside other ways.

``make bench`` prints it at its end, ``python -m benchmarks.interop`` alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import phistar
from benchmarks.timing import duration, interleaved
from phistar.model.kinematic_loops import active_loops

BATCH = 4096
ROBOTS, STEPS = 256, 100
BUDGET = 2.0
"""Seconds of timing for a row."""

CALL, CALL_SECONDS = 1.3, 20e-6
"""How many times a direct call, and seconds more, a call from XLA may take."""
OVER_XLA, OVER_DIFFERENCES = 10.0, 20.0
"""How many times faster the gradient of a rollout has to be."""
BACKWARD = 3.0
"""How many times longer than forward backward may take."""
GOALS = {
    "JAX": f"call <= {CALL} x direct + 20 us, gradient {OVER_XLA:g} x XLA's, "
    f"{OVER_DIFFERENCES:g} x differences",
    "PyTorch": f"backward <= {BACKWARD:g} x forward",
}
"""In words, by package, for where it is not installed."""


class DisagreementError(Exception):
    """Others have other results."""


@dataclass(frozen=True)
class InteropRow:
    """Two times and a bound.

    Attributes:
        what: What was timed.
        seconds: Of ours, best.
        beside: What it is compared with.
        other_seconds: Of that, best.
        goal: The bound in words.
        met: Whether it holds.
    """

    what: str
    seconds: float
    beside: str
    other_seconds: float
    goal: str
    met: bool


def _state(robot: phistar.Robot, samples: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    v, tau = rng.normal(size=(2, samples, robot.nv))
    if not active_loops(robot.model.loops):
        return robot.random_configuration(rng, (samples,)), v, tau
    closed = robot.assemble(robot.neutral())
    return np.tile(closed, (samples, 1)), np.zeros_like(v), tau


def _best(acts: dict[str, Callable[[], object]], budget: float = BUDGET) -> dict[str, float]:
    return {name: min(rounds) for name, rounds in interleaved(acts, budget).items()}


# -- JAX


def jax_rows(quick: bool) -> Iterator[InteropRow]:
    """A call of a batch, closed loops too, and the gradient of a rollout."""
    import jax

    from phistar.interop import jax as pj

    for name in ("panda", "quadruped", "delta"):
        robot = phistar.load(name)
        state = _state(robot, BATCH)
        run = jax.jit(pj.wrap(robot).forward_dynamics)
        held = [jax.device_put(x) for x in state]
        acts = {
            "jax": lambda run=run, held=held: jax.block_until_ready(run(*held)),
            "direct": lambda robot=robot, state=state: robot.forward_dynamics(*state),
        }
        found = _best(acts)
        most = CALL * found["direct"] + CALL_SECONDS
        what = f"JAX, ffi: forward dynamics of {BATCH} {name}s"
        goal = f"<= {CALL} x direct + 20 us"
        yield InteropRow(
            what, found["jax"], "direct call", found["direct"], goal, found["jax"] <= most
        )
    yield from _rollout_rows(quick)


def _rollout_rows(quick: bool) -> Iterator[InteropRow]:
    import jax

    from phistar.interop import jax as pj

    robot = phistar.load("panda")
    rng = np.random.default_rng(1)
    q = jax.device_put(robot.random_configuration(rng, (ROBOTS,)))
    v = jax.device_put(np.zeros((ROBOTS, robot.nv)))
    taus = jax.device_put(rng.normal(size=(STEPS, ROBOTS, robot.nv)))

    def rollout(r: Any) -> Callable[[Any], Any]:
        def cost(taus: Any) -> Any:
            def step(state: Any, tau: Any) -> Any:
                return r.step(*state, tau, 1e-3), None

            (ahead, _), _ = jax.lax.scan(step, (q, v), taus)
            return (ahead**2).sum()

        return cost

    ours = rollout(pj.wrap(robot))
    gradient, value = jax.jit(jax.grad(ours)), jax.jit(ours)
    theirs = jax.jit(jax.grad(rollout(pj.wrap(robot, engine="xla"))))
    found = _best(
        {
            "ours": lambda: jax.block_until_ready(gradient(taus)),
            "value": lambda: jax.block_until_ready(value(taus)),
        }
    )
    what = f"JAX: gradient, {STEPS} steps of {ROBOTS} Pandas"
    rollouts = 1 + STEPS * robot.nv
    differences = rollouts * found["value"]
    goal = f">= {OVER_DIFFERENCES:g} x faster"
    met = differences >= OVER_DIFFERENCES * found["ours"]
    beside = f"differences: {rollouts} rollouts, counted"
    yield InteropRow(what, found["ours"], beside, differences, goal, met)
    if quick:
        return
    a, b = gradient(taus), theirs(taus)
    if not float(abs(a - b).max()) < 1e-8 * float(abs(b).max()):
        raise DisagreementError("JAX: XLA's gradient of a rollout differs from ours")
    begin = time.perf_counter()
    jax.block_until_ready(theirs(taus))
    other = time.perf_counter() - begin
    goal, met = f">= {OVER_XLA:g} x faster", other >= OVER_XLA * found["ours"]
    yield InteropRow(what, found["ours"], "XLA's derivative of to_jax", other, goal, met)


# -- PyTorch


def torch_rows() -> Iterator[InteropRow]:
    """Backward beside forward."""
    import torch

    from phistar.interop import torch as pt

    robot = phistar.load("panda")
    wrapped = pt.wrap(robot)
    tensors = [torch.from_numpy(x).requires_grad_() for x in _state(robot, BATCH)]
    for name in ("inverse_dynamics", "forward_dynamics"):
        call = getattr(wrapped, name)
        result = call(*tensors)
        w = torch.ones_like(result)
        found = _best(
            {
                "forward": lambda call=call: call(*tensors),
                "backward": lambda result=result, w=w: torch.autograd.grad(
                    result, tensors, w, retain_graph=True
                ),
            }
        )
        yield InteropRow(
            f"PyTorch: backward of {name}, {BATCH} Pandas",
            found["backward"],
            "forward",
            found["forward"],
            f"<= {BACKWARD:g} x forward",
            found["backward"] <= BACKWARD * found["forward"],
        )


# -- what is printed


def table(rows: list[InteropRow]) -> Table:
    """Rows for the terminal."""
    found = Table(title="Inside other people's programs, float64", title_justify="left")
    for name in ("what", "time", "beside", "", "ratio", "goal", "met"):
        found.add_column(name, justify="left" if name in ("what", "beside", "goal") else "right")
    for row in rows:
        ratio = f"{row.seconds / row.other_seconds:.2f}"
        if row.other_seconds > 3 * row.seconds:
            ratio = f"1/{row.other_seconds / row.seconds:.0f}"
        times = (duration(row.seconds), row.beside, duration(row.other_seconds), ratio)
        found.add_row(row.what, *times, row.goal, "yes" if row.met else "NO")
    return found


def measure(quick: bool = False) -> list[InteropRow]:
    """All rows of packages that are installed."""
    rows: list[InteropRow] = []
    if find_spec("jax") is not None:
        import jax

        with jax.enable_x64(True):
            rows += jax_rows(quick)
    if find_spec("torch") is not None:
        rows += torch_rows()
    return rows


def show(console: Console, rows: list[InteropRow]) -> None:
    """Print rows, and which package is not there."""
    for package, extra in (("JAX", "jax"), ("PyTorch", "torch")):
        if find_spec(extra) is None:
            told = f'No {package} here: its adapter is not timed (pip install "phistar[{extra}]").'
            console.print(told)
    if rows:
        console.print(table(rows))


if __name__ == "__main__":
    show(Console(width=150), measure())
