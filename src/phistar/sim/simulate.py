# SPDX-License-Identifier: BSD-3-Clause
"""A user's call to simulate: arguments checked, steps taken in pieces, results in their shape."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.arguments import refuse_nan, refuse_singular, state
from phistar.dynamics import Forces
from phistar.errors import ArgumentError, ShapeError
from phistar.model.configuration import Coordinates, tangent
from phistar.model.model import Model
from phistar.sim.compiled import compiled
from phistar.sim.loop import Loop
from phistar.sim.schemes import scheme as find_scheme
from phistar.sim.simulation import Simulation
from phistar.sim.variables import Variable, Velocity, variable

Array = NDArray[Any]

PIECE = 2e8
"""Nanoseconds of machine code after which we look at the keyboard and move the progress bar."""

SHOWN = 1e9
"""Nanoseconds that a simulation must take to be worth a progress bar."""


def simulate(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    *,
    dt: float,
    steps: int | None = None,
    duration: float | None = None,
    tau: Coordinates | None = None,
    tau_steps: Any = None,
    scheme: str = "rk4",
    variables: str = "v",
    every: int = 1,
    forces: Forces | None = None,
    reference: str = "world_aligned",
    progress: bool | None = None,
    threads: int | None = None,
) -> Simulation:
    """See ``Robot.simulate``."""
    found = find_scheme(scheme)
    count = count_of_steps(dt, steps, duration, every)
    refuse_singular(model)
    stood = variable(variables, model, forces, reference)
    q, v, push = _start(model, q, v, tau, tau_steps, count)
    batch = q.shape[:-1]
    places, rates = q.reshape(-1, model.nq), v.reshape(-1, model.nv)
    held = push.reshape(*push.shape[: push.ndim - len(batch) - 1], -1, model.nv)
    samples = len(places)
    engine = compiled(model, stood, found, samples * count) or Loop(model, stood, found)
    qs = np.empty((count // every + 1, samples, model.nq))
    xs = np.empty((count // every + 1, samples, model.nv))
    qs[0], xs[0] = places, stood.start(places, rates)
    if samples and model.nv:
        work = engine.cost * samples
        piece = max(1, int(PIECE / work) // every) * every
        with bar(progress, count, model.name, work * count) as advance:
            for first in range(0, count, piece):
                last = min(first + piece, count)
                _piece(engine, held, dt, (first, last), every, (qs, xs), threads)
                _refuse_diverged(model, (qs, xs), first, last, every, dt, batch)
                advance(last - first)
    vs = _velocities(stood, qs, xs)
    knots = count // every
    return Simulation(
        dt * every * np.arange(knots + 1),
        qs.reshape(knots + 1, *batch, model.nq),
        vs.reshape(knots + 1, *batch, model.nv),
        _held(push, batch, every, knots, model.nv),
        model,
        scheme,
        variables,
        engine.engine,
        count,
    )


def _piece(
    engine: Any,
    tau: Array,
    dt: float,
    steps: tuple[int, int],
    every: int,
    results: tuple[Array, Array],
    threads: int | None,
) -> None:
    """Some of the steps, from the knot where they begin."""
    first, last = steps
    qs, xs = results
    begin, end = first // every, last // every
    push = tau if tau.ndim == 2 else tau[first:last]
    options = {} if isinstance(engine, Loop) else {"threads": threads}
    parts = (qs[begin + 1 : end + 1], xs[begin + 1 : end + 1])
    engine.run(qs[begin], xs[begin], push, dt, last - first, every, parts, **options)


def count_of_steps(dt: float, steps: int | None, duration: float | None, every: int) -> int:
    """How many steps are meant.

    Raises:
        ArgumentError: They are not: neither or both of steps and duration, no whole number.
    """
    if not (np.isfinite(dt) and dt > 0):
        raise ArgumentError(f"dt is {dt}, expected a time greater than zero [s]")
    if (steps is None) == (duration is None):
        both = "both" if steps is not None else "neither"
        raise ArgumentError(f"{both} of steps and duration are given; pass one of them")
    if duration is not None:
        if not (np.isfinite(duration) and duration > 0):
            raise ArgumentError(f"duration is {duration}, expected a time greater than zero [s]")
        steps = round(duration / dt)
        if steps < 1 or abs(steps * dt - duration) > 1e-9 * duration:
            raise ArgumentError(
                f"duration {duration:.9g} s is {duration / dt:.9g} steps of {dt:.9g} s, expected a "
                f"whole number; dt={duration / max(math.ceil(duration / dt), 1):.9g} would do"
            )
    if steps is None or steps < 1 or steps != int(steps):
        raise ArgumentError(f"steps is {steps}, expected a whole number of at least 1")
    if every < 1 or steps % every:
        raise ArgumentError(f"every is {every}, expected a divisor of the number of steps, {steps}")
    return int(steps)


def _start(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    tau: Coordinates | None,
    tau_steps: Any,
    count: int,
) -> tuple[Array, Array, Array]:
    """The state (*batch, n) and joint forces (*batch, nv) or (steps, *batch, nv), in float64."""
    if tau is not None and tau_steps is not None:
        raise ArgumentError("both tau and tau_steps are given; pass one of them")
    q, v, push = state(model, q=q, v=v, tau=np.zeros(model.nv) if tau is None else tau)
    later: tuple[int, ...] = ()
    if tau_steps is not None:
        push = tangent(model, tau_steps, "tau_steps")
        if push.ndim < 2 or len(push) != count:
            expected = f"({count}, ..., {model.nv}): one for each step"
            raise ShapeError("tau_steps", push.shape, expected, f"robot '{model.name}'")
        refuse_nan("tau_steps", push)
        later = (count,)
    for name, array in (("q", q), ("v", v), ("tau", push)):
        if array.dtype.kind == "c":
            raise ArgumentError(f"{name} is complex; a simulation takes real numbers")
    shapes = (q.shape[:-1], v.shape[:-1], push.shape[len(later) : -1])
    try:
        batch = np.broadcast_shapes(*shapes)
    except ValueError:
        name = "tau" if tau_steps is None else "tau_steps, after its first axis,"
        raise ArgumentError(
            f"batch axes of q {shapes[0]}, v {shapes[1]} and {name} {shapes[2]} do not broadcast"
        ) from None
    if later and push.ndim - 2 < len(batch):
        push = push.reshape(count, *(1,) * (len(batch) + 2 - push.ndim), *push.shape[1:])
    q, v = (np.broadcast_to(x, (*batch, x.shape[-1])).astype(float) for x in (q, v))
    return q, v, np.broadcast_to(push, (*later, *batch, model.nv)).astype(float)


def _held(push: Array, batch: tuple[int, ...], every: int, knots: int, nv: int) -> Array:
    """Joint forces (N, ..., nv) of each knot; those of its first step if there are several."""
    if push.ndim == len(batch) + 1:
        return np.broadcast_to(push, (knots, *batch, nv))
    return push[::every]


def _velocities(stood: Variable, qs: Array, xs: Array) -> Array:
    if isinstance(stood, Velocity):
        return xs
    return np.stack([stood.velocity(q, x) for q, x in zip(qs, xs, strict=True)])


def _refuse_diverged(
    model: Model,
    results: tuple[Array, Array],
    first: int,
    last: int,
    every: int,
    dt: float,
    batch: tuple[int, ...],
) -> None:
    """Raise if a state has left the range of numbers."""
    qs, xs = results
    knots = slice(first // every + 1, last // every + 1)
    if np.isfinite(xs[knots.stop - 1]).all() and np.isfinite(qs[knots.stop - 1]).all():
        return
    lost = ~(np.isfinite(qs[knots]).all(axis=-1) & np.isfinite(xs[knots]).all(axis=-1))
    knot, sample = (int(i) for i in np.argwhere(lost)[0])
    index = tuple(int(i) for i in np.unravel_index(sample, batch)) if batch else ()
    where = f", sample {list(index)}," if batch else ""
    raise ArgumentError(
        f"the motion of robot '{model.name}'{where} diverges: not finite at "
        f"{dt * every * (knots.start + knot):.6g} s; use smaller steps, other joint forces or a "
        "scheme that keeps energy"
    )


@contextmanager
def bar(
    progress: bool | None, total: int, name: str, nanoseconds: float
) -> Iterator[Callable[[int], None]]:
    """Something to call with the number of steps done; it moves a bar if there is to be one.

    Without ``progress`` there is one on a terminal, if it takes long.
    """
    if progress is None:
        progress = sys.stderr.isatty() and nanoseconds > SHOWN
    if not progress:
        yield lambda steps: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task(f"simulating {name}", total=total)
        yield lambda steps: shown.update(task, advance=steps)
