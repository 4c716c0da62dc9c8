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
from phistar.errors import ArgumentError, ShapeError, UnknownNameError
from phistar.model.configuration import Coordinates, tangent
from phistar.model.model import Model
from phistar.sim.adaptive import Adaptive
from phistar.sim.compiled import Compiled, compiled
from phistar.sim.conserving import Conserving
from phistar.sim.loop import Loop
from phistar.sim.monitors import along
from phistar.sim.schemes import SCHEMES
from phistar.sim.simulation import Simulation
from phistar.sim.variables import Normalised, Variable, Velocity, variable

Array = NDArray[Any]
Engine = Compiled | Loop | Conserving

ADAPTIVE, CONSERVING = "dopri5", "implicit_midpoint"

NAMES = (*SCHEMES, CONSERVING, ADAPTIVE)
"""Schemes that a user can name."""

PARTS = 1000
"""Of the time, for the progress bar of a simulation that chooses its steps."""

PIECE = 2e8
"""Nanoseconds of machine code after which we look at the keyboard and move the progress bar."""

SHOWN = 1e9
"""Nanoseconds that a simulation must take to be worth a progress bar."""


def simulate(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    *,
    dt: float | None = None,
    steps: int | None = None,
    duration: float | None = None,
    tau: Coordinates | None = None,
    tau_steps: Any = None,
    scheme: str = "rk4",
    variables: str | None = None,
    every: int = 1,
    tolerance: float = 1e-8,
    forces: Forces | None = None,
    reference: str = "world_aligned",
    progress: bool | None = None,
    threads: int | None = None,
) -> Simulation:
    """See ``Robot.simulate``."""
    if scheme not in NAMES:
        raise UnknownNameError("scheme", scheme, NAMES)
    refuse_singular(model)
    name = variables or ("eta" if scheme == CONSERVING else "v")
    stood = variable(name, model, forces, reference)
    if scheme == CONSERVING and not isinstance(stood, Normalised):
        raise ArgumentError(
            f"variables is {name!r}, but {CONSERVING} keeps energy in η only; leave it out"
        )
    if scheme == ADAPTIVE:
        length = _length(dt, steps, duration)
        if tau_steps is not None:
            raise ArgumentError(f"{ADAPTIVE} chooses its steps; pass a constant tau, no tau_steps")
        start = _start(model, q, v, tau, None, 0)
        apart = None if dt is None else dt * every
        return _adaptive(model, stood, name, start, length, apart, tolerance, progress)
    if dt is None:
        raise ArgumentError(f"dt is missing: {scheme} takes steps of a given length [s]")
    count = count_of_steps(dt, steps, duration, every)
    start = _start(model, q, v, tau, tau_steps, count)
    return _fixed(model, stood, name, scheme, start, (dt, count, every), progress, threads)


def _fixed(
    model: Model,
    stood: Variable,
    variables: str,
    scheme: str,
    start: tuple[Array, Array, Array],
    times: tuple[float, int, int],
    progress: bool | None,
    threads: int | None,
) -> Simulation:
    """Steps of one length."""
    q, v, push = start
    dt, count, every = times
    batch, knots = q.shape[:-1], count // every
    places, rates = q.reshape(-1, model.nq), v.reshape(-1, model.nv)
    held = push.reshape(*push.shape[: push.ndim - len(batch) - 1], -1, model.nv)
    engine = _engine(model, stood, scheme, len(places) * count, threads)
    qs = np.empty((knots + 1, len(places), model.nq))
    xs = np.empty((knots + 1, len(places), model.nv))
    qs[0], xs[0] = places, stood.start(places, rates)
    if len(places) and model.nv:
        work = engine.cost * len(places)
        piece = max(1, int(PIECE / work) // every) * every
        with bar(progress, count, model.name, work * count) as advance:
            for first in range(0, count, piece):
                last = min(first + piece, count)
                _piece(engine, held, dt, (first, last), every, (qs, xs))
                _refuse_diverged(model, (qs, xs), first, last, every, dt, batch)
                advance(last - first)
    return Simulation(
        dt * every * np.arange(knots + 1),
        qs.reshape(knots + 1, *batch, model.nq),
        _velocities(stood, qs, xs).reshape(knots + 1, *batch, model.nv),
        _held(push, batch, every, knots, model.nv),
        model,
        scheme,
        variables,
        engine.engine,
        count,
    )


def _engine(model: Model, stood: Variable, scheme: str, work: int, threads: int | None) -> Engine:
    if scheme == CONSERVING:
        assert isinstance(stood, Normalised)
        return Conserving(model, stood)
    found = SCHEMES[scheme]
    return compiled(model, stood, found, work, threads) or Loop(model, stood, found)


def _adaptive(
    model: Model,
    stood: Variable,
    variables: str,
    start: tuple[Array, Array, Array],
    length: float,
    apart: float | None,
    tolerance: float,
    progress: bool | None,
) -> Simulation:
    """Steps that a tolerance asks for; knots are the steps, or so far apart."""
    if not 1e-14 <= tolerance < 1:
        raise ArgumentError(f"tolerance is {tolerance}, expected a number from 1e-14 to 1")
    q, v, push = start
    batch = q.shape[:-1]
    places, rates = q.reshape(-1, model.nq), v.reshape(-1, model.nv)
    steps = Adaptive(model, stood, push.reshape(-1, model.nv), tolerance)
    with bar(progress, PARTS, model.name, 0.0) as advance:
        found = steps.run(
            places,
            stood.start(places, rates),
            length,
            apart,
            lambda h: advance(PARTS * h / length),
        )

    def dense(times: Array) -> tuple[Array, Array]:
        some_q, some_x = found.between(model, times)
        some_v = _velocities(stood, some_q, some_x)
        shape = (len(times), *batch)
        return some_q.reshape(*shape, model.nq), some_v.reshape(*shape, model.nv)

    t = found.t if apart is None else np.linspace(0.0, length, round(length / apart) + 1)
    shape = (len(t), *batch)
    if apart is None:
        qs, vs = found.q, _velocities(stood, found.q, found.x)
    else:
        qs, vs = dense(t)
    return Simulation(
        t,
        qs.reshape(*shape, model.nq),
        vs.reshape(*shape, model.nv),
        np.broadcast_to(push, (len(t) - 1, *batch, model.nv)),
        model,
        ADAPTIVE,
        variables,
        Loop.engine,
        len(found.t) - 1,
        found.rejected,
        dense,
    )


def _length(dt: float | None, steps: int | None, duration: float | None) -> float:
    """How long a simulation with steps of its own lasts."""
    if dt is not None:
        return dt * count_of_steps(dt, steps, duration, 1)
    if duration is None or not (np.isfinite(duration) and duration > 0) or steps is not None:
        raise ArgumentError(
            f"duration is {duration} and steps {steps}; without dt pass a duration greater than "
            "zero [s], and no steps"
        )
    return float(duration)


def _piece(
    engine: Engine,
    tau: Array,
    dt: float,
    steps: tuple[int, int],
    every: int,
    results: tuple[Array, Array],
) -> None:
    """Some of the steps, from the knot where they begin."""
    first, last = steps
    qs, xs = results
    begin, end = first // every, last // every
    push = tau if tau.ndim == 2 else tau[first:last]
    parts = (qs[begin + 1 : end + 1], xs[begin + 1 : end + 1])
    engine.run(qs[begin], xs[begin], push, dt, last - first, every, parts)


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
    return along(stood.velocity, qs, xs)


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
) -> Iterator[Callable[[float], None]]:
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
