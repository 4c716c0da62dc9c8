# SPDX-License-Identifier: BSD-3-Clause
"""The call of simulate: checks arguments, takes steps in pieces, shapes the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from phistar.arguments import refuse_singular, require_count
from phistar.arrays import Array
from phistar.errors import ArgumentError, UnknownNameError
from phistar.loops.assembly import rank_near, usual_rank
from phistar.loops.constrained_dynamics import require_on_loops, warn_where_singular
from phistar.loops.held import NOT_HELD, Drives, Held
from phistar.loops.prescribed import held_at_start, motion_in_time
from phistar.loops.system import motion_at
from phistar.model.bad_samples import check_on_error
from phistar.model.configuration import Coordinates
from phistar.model.joint_physics import Passive
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.model.wrenches import Forces, check_wrenches
from phistar.sim.adaptive_stepper import AcceptedSteps, AdaptiveStepper
from phistar.sim.compiled_rows import make_row_stepper
from phistar.sim.conserving_stepper import ConservingStepper
from phistar.sim.divergence import (
    call_around_singular,
    fill_nan_after,
    first_lost_knots,
    refuse_lost,
)
from phistar.sim.initial_state import (
    InitialState,
    count_of_steps,
    duration_of,
    read_initial_state,
    without_lost,
)
from phistar.sim.joint_rows import (
    JointRows,
    passive_used,
    refuse_scheme,
    require_inside,
    rows_error,
    used_parts,
)
from phistar.sim.loop_stepper import LoopVelocity, samples_off_loops
from phistar.sim.monitors import map_knots
from phistar.sim.numpy_stepper import NumpyStepper
from phistar.sim.result_size import refuse_large_simulation
from phistar.sim.scheme_choice import AUTO, scheme_of_simulation
from phistar.sim.schemes import IMPLICIT, SCHEMES
from phistar.sim.simulation import Simulation
from phistar.sim.smooth_stepper import make_smooth_stepper
from phistar.sim.step_pieces import progress_bar, run_in_pieces
from phistar.sim.stepper import Stepper, SteppingOptions
from phistar.sim.variables import (
    VARIABLES,
    ImplicitVelocity,
    NormalisedRate,
    Variable,
    Velocity,
    variable,
)

if TYPE_CHECKING:
    from phistar.constraints import Prescribed

ADAPTIVE, CONSERVING = "dopri5", "implicit_midpoint"

SCHEME_NAMES = (*SCHEMES, CONSERVING, ADAPTIVE)
"""Schemes by name."""

PROGRESS_TICKS = 1000
"""Resolution of the progress bar of a simulation that chooses its steps."""


def simulate(
    model: Model,
    q: Coordinates,
    v: Coordinates,
    *,
    dt: float | None = None,
    steps: int | None = None,
    duration: float | None = None,
    tau: Coordinates | None = None,
    tau_steps: ArrayLike | None = None,
    scheme: str = AUTO,
    variables: str | None = None,
    every: int = 1,
    tolerance: float = 1e-8,
    forces: Forces | None = None,
    reference: str = "world_aligned",
    progress: bool | None = None,
    threads: int | None = None,
    on_error: str = "raise",
    prescribed: Mapping[str, Prescribed | None] | None = None,
    passive: Passive = True,
) -> Simulation:
    """See ``Robot.simulate``; ``prescribed`` are constraints in time, by their loops, None what is
    held where it is at the start."""
    if threads is not None:
        require_count("threads", threads)
    asked = _asked(model, dt, scheme, variables, passive, reference, prescribed, on_error)
    if asked.scheme == ADAPTIVE:
        length = duration_of(dt, steps, duration)
        if tau_steps is not None:
            raise ArgumentError(f"{ADAPTIVE} chooses its steps; pass a constant tau, no tau_steps")
        start = read_initial_state(model, q, v, tau, None, forces, 0, on_error)
        knot_interval = None if dt is None else dt * every
        found = _adaptive(asked, start, length, knot_interval, tolerance, progress)
        return require_inside(found) if asked.rows else found
    if dt is None:
        raise ArgumentError(f"dt is missing: {asked.scheme} takes steps of a given length [s]")
    count = count_of_steps(dt, steps, duration, every)
    start = read_initial_state(model, q, v, tau, tau_steps, forces, count, on_error)
    refuse_large_simulation(model.name, count, every, 8 * len(start.q) * (model.nq + model.nv))
    return _fixed(asked, start, (dt, count, every), progress, threads)


@dataclass(frozen=True)
class _Asked:
    """What a simulation is asked for, checked as far as no numbers are needed.

    Attributes:
        model: The robot.
        scheme: Name of the scheme.
        variables: Name of what it steps.
        smooth, rows: Joint physics that pushes, and that is a row of its own.
        reference: Of wrenches.
        prescribed: Constraints in time, by their loops.
        keep_going: Whether samples may be lost.
    """

    model: Model
    scheme: str
    variables: str
    smooth: tuple[str, ...]
    rows: tuple[str, ...]
    reference: str
    prescribed: Mapping[str, Prescribed | None] | None
    keep_going: bool

    def variable(
        self, start: InitialState, duration: float, steps: int | None = None
    ) -> tuple[Variable, InitialState]:
        """What represents the velocity; and the start, without samples that are not on the loops
        where samples may be lost."""
        model = self.model
        if not active_loops(model.loops):
            wrenches = check_wrenches(model, start.q, start.forces, self.reference)
            return variable(self.variables, model, wrenches, self.smooth), start
        drives = _drives(model, start.q, self.prescribed, duration, steps)
        held = NOT_HELD if drives is None else drives.at(0.0)
        if self.keep_going:
            start = _lose_open(model, start, held)
        wrenches = check_wrenches(model, start.q, start.forces, self.reference)
        _require_on_loops(model, start, held)
        return LoopVelocity(model, wrenches, self.smooth, drives), start


def _asked(
    model: Model,
    dt: float | None,
    scheme: str,
    variables: str | None,
    passive: Passive,
    reference: str,
    prescribed: Mapping[str, Prescribed | None] | None,
    on_error: str,
) -> _Asked:
    """Raise unless scheme, variable and joint physics go together on the robot."""
    if scheme not in (AUTO, *SCHEME_NAMES):
        raise UnknownNameError("scheme", scheme, (AUTO, *SCHEME_NAMES))
    check_on_error(on_error)
    smooth, rows = used_parts(model, passive)
    if active_loops(model.loops):
        _check_loop_scheme(scheme, variables)
    else:
        refuse_singular(model)
    scheme = scheme_of_simulation(model, scheme, dt, smooth, variables)
    name = variables or ("eta" if scheme == CONSERVING else "v")
    if name not in VARIABLES:
        raise UnknownNameError("variables", name, VARIABLES)
    if scheme == CONSERVING and name != "eta":
        raise ArgumentError(
            f"variables is {name!r}, but {CONSERVING} conserves energy in η only; leave it out"
        )
    refuse_scheme(model, scheme, smooth, name)
    if "friction" in rows and scheme not in SCHEMES:
        raise rows_error(model, scheme, rows)
    return _Asked(model, scheme, name, smooth, rows, reference, prescribed, on_error == "nan")


def _implicit(var: Variable, dt: float) -> Variable:
    """The velocity with springs and dampers as they push at the end of a step of dt [s]."""
    if isinstance(var, LoopVelocity):
        return replace(var, implicit_dt=dt)
    return ImplicitVelocity(var.model, var.wrenches, var.smooth, dt)


def _check_loop_scheme(scheme: str, variables: str | None) -> None:
    """Raise for schemes and variables that do not know loops."""
    if scheme == CONSERVING:
        raise ArgumentError(
            f"{CONSERVING} does not know loops; use rk4 or dopri5, or robot.tree without its loops"
        )
    if variables not in (None, "v"):
        raise ArgumentError(
            f"variables is {variables!r}, but robots with loops step v only; leave it out"
        )


def _drives(
    model: Model,
    q: Array,
    prescribed: Mapping[str, Prescribed | None] | None,
    duration: float,
    steps: int | None,
) -> Drives | None:
    """What moves as it is told.

    Args:
        model: The robot.
        q: (B, nq) at the start.
        prescribed: Constraints in time, by their loops.
        duration: [s].
        steps: Of equal length, if they are.
    """
    if not prescribed:
        return None
    motions = {
        loop: held_at_start(model, loop, q)
        if told is None
        else motion_in_time(told, model, q, duration, steps)
        for loop, told in prescribed.items()
    }
    return Drives(motions, rank_near(model, q, Held(frozenset(motions))))


def _require_on_loops(model: Model, start: InitialState, held: Held) -> None:
    """Look at where a robot with loops begins.

    Raises:
        LoopOpenError, LoopVelocityError: The state is not on the loops, or not as it is told.
    """
    rows = held.driven(model, motion_at(model, start.q, start.v)).of_samples(~start.lost)
    precision = float(np.finfo(start.dtype).eps)
    v = start.v[~start.lost]
    require_on_loops(model, rows, v, "simulate", precision, told=bool(held.drives))
    if rank := usual_rank(model) if held.rank is None else held.rank:
        warn_where_singular(model, rows.L, "simulate", rank)


def _lose_open(model: Model, start: InitialState, held: Held) -> InitialState:
    """The start with the samples lost that are not on the loops, or not as they are told."""
    here = np.flatnonzero(~start.lost)
    precision = float(np.finfo(start.dtype).eps)
    told = held.of_batch(start.q.shape[:1])
    opened = samples_off_loops(model, start.q, start.v, precision, here, told)
    return without_lost(model, start, opened | start.lost) if opened.any() else start


def _fixed(
    asked: _Asked,
    start: InitialState,
    times: tuple[float, int, int],
    progress: bool | None,
    threads: int | None,
) -> Simulation:
    """Steps of a fixed length; of ``times``: that, how many, and how many from knot to knot."""
    (dt, count, every), model, keep_going = times, asked.model, asked.keep_going
    samples, knots = len(start.q), count // every
    var, start = asked.variable(start, dt * count, count)
    constraint: JointRows | None = None
    engine: Stepper
    if asked.scheme in SCHEMES:
        chosen = SCHEMES[asked.scheme]
        if asked.smooth and chosen.implicit:
            var = _implicit(var, float(dt))
        if asked.rows:
            constraint = JointRows(var, asked.rows, asked.scheme == IMPLICIT.name)
        options = SteppingOptions(chosen, samples * count, threads, start.dtype, keep_going)
        engine = _choose_stepper(model, var, options, constraint)
    else:
        assert isinstance(var, NormalisedRate)
        engine = ConservingStepper(model, var, keep_going)
    qs = np.empty((knots + 1, samples, model.nq), engine.dtype)
    xs = np.empty((knots + 1, samples, model.nv), engine.dtype)
    qs[0], xs[0] = start.q, _initial_variable(var, start, keep_going)
    first = np.where(start.lost, 0, -1)

    def look(last: int) -> None:
        if not (keep_going or (np.isfinite(qs[last]).all() and np.isfinite(xs[last]).all())):
            lost_knots = first_lost_knots(qs[: last + 1], xs[: last + 1])
            refuse_lost(model, lost_knots, dt * every, start.batch, engine.failure_text)

    run_in_pieces(engine, model.name, start.tau, times, (qs, xs), progress, look)
    if keep_going:
        lost_knots = first_lost_knots(qs, xs)
        first = np.where((lost_knots >= 0) & (first < 0), lost_knots, first)
        fill_nan_after((qs, xs), first)
    found = Simulation(
        dt * every * np.arange(knots + 1),
        start.to_user_shape(qs),
        start.to_user_shape(_velocities(var, qs, xs)),
        start.forces_at_knots(knots, every),
        model,
        asked.scheme,
        asked.variables,
        engine.engine,
        count,
        external=bool(start.forces),
        pushed=var.wrenches,
        passive=passive_used(var, constraint),
        told=_told(var, dt * every * np.arange(knots + 1)),
        diverged=first.reshape(start.batch) if keep_going else None,
    )
    return require_inside(found) if asked.rows and constraint is None else found


def _choose_stepper(
    model: Model, var: Variable, options: SteppingOptions, constraint: JointRows | None
) -> Stepper:
    """What takes the steps of a scheme of ``SCHEMES``."""
    if constraint is not None:
        return make_row_stepper(model, var, options, constraint)
    return make_smooth_stepper(model, var, options)


def _adaptive(
    asked: _Asked,
    start: InitialState,
    length: float,
    knot_interval: float | None,
    tolerance: float,
    progress: bool | None,
) -> Simulation:
    """Adaptive steps; knots are the steps, or at a given interval."""
    if not 1e-14 <= tolerance < 1:
        raise ArgumentError(f"tolerance is {tolerance}, expected a number from 1e-14 to 1")
    model, keep_going = asked.model, asked.keep_going
    var, start = asked.variable(start, length)
    begin = _initial_variable(var, start, keep_going)
    q, x = (np.where(start.lost[:, None], np.nan, each) for each in (start.q, begin))
    stepper = AdaptiveStepper(model, var, start.tau, tolerance, start.batch, keep_going)
    with progress_bar(progress, PROGRESS_TICKS, model.name, 0.0) as advance:
        steps = stepper.run(
            q, x, length, knot_interval, lambda h: advance(PROGRESS_TICKS * h / length)
        )

    dense = _DenseOutput(model, var, steps, start)
    if knot_interval is None:
        t, qs, vs = steps.t, steps.q, _velocities(var, steps.q, steps.x)
    else:
        t = np.linspace(0.0, length, round(length / knot_interval) + 1)
        refuse_large_simulation(model.name, len(t) - 1, 1, 8 * len(q) * (model.nq + model.nv))
        qs, vs = dense.states(t)
    first = first_lost_knots(qs, vs)
    return Simulation(
        t,
        start.to_user_shape(qs),
        start.to_user_shape(vs),
        start.forces_at_knots(len(t) - 1, 1),
        model,
        ADAPTIVE,
        asked.variables,
        NumpyStepper.engine,
        len(steps.t) - 1,
        steps.rejected,
        dense,
        external=bool(start.forces),
        pushed=var.wrenches,
        passive=passive_used(var, None),
        told=_told(var, t),
        diverged=first.reshape(start.batch) if keep_going else None,
    )


@dataclass(frozen=True)
class _DenseOutput:
    """The motion between steps, see ``Simulation.__call__``."""

    model: Model
    var: Variable
    steps: AcceptedSteps
    start: InitialState

    def __call__(self, times: Array) -> tuple[Array, Array]:
        q, v = self.states(times)
        return self.start.to_user_shape(q), self.start.to_user_shape(v)

    def states(self, times: Array) -> tuple[Array, Array]:
        """(n, B, nq) and (n, B, nv) at times (n,), on the loops of a robot that has some."""
        q, x = self.var.settle(*self.steps.interpolate(self.model, times), times)
        return q, _velocities(self.var, q, x)


def _told(var: Variable, times: Array) -> Held | None:
    """What is prescribed at times (n,)."""
    return var.drives.at(times) if isinstance(var, LoopVelocity) and var.drives else None


def _initial_variable(var: Variable, start: InitialState, keep_going: bool) -> Array:
    """x (batch, nv) at the start, NaN where the configuration is singular."""
    initial = call_around_singular(
        var.model, lambda q, v: (var.start(q, v),), start.q, start.v, keep_going
    )
    return initial[0]


def _velocities(var: Variable, qs: Array, xs: Array) -> Array:
    if isinstance(var, Velocity):
        return xs
    return map_knots(var.model, var.velocity, qs, xs)
