# SPDX-License-Identifier: BSD-3-Clause
"""The motion under a control law, all steps of all samples in one call of machine code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phistar.arguments import refuse_singular
from phistar.arrays import Array
from phistar.model.configuration import Coordinates
from phistar.model.joint_physics import Passive
from phistar.model.model import Model
from phistar.model.wrenches import Forces, check_wrenches
from phistar.sim.compiled_rows import make_compiled_row_stepper
from phistar.sim.compiled_stepper import make_compiled_stepper
from phistar.sim.divergence import fill_nan_after, first_lost_knots
from phistar.sim.initial_state import InitialState, read_initial_state
from phistar.sim.joint_rows import JointRows, refuse_scheme, used_parts
from phistar.sim.law_calls import LawProgram, NoLawCodeError, refuse_batch, refuse_uncompiled
from phistar.sim.result_size import refuse_large_simulation
from phistar.sim.schemes import SCHEMES
from phistar.sim.step_pieces import run_in_pieces
from phistar.sim.stepper import DOUBLE, Stepper, SteppingOptions
from phistar.sim.variables import ImplicitVelocity, Velocity


@dataclass(frozen=True)
class LawSteps:
    """How steps are taken.

    Attributes:
        dt: Length of each [s].
        count: How many.
        every: Steps from one knot to the next; divides ``count``.
        scheme: One of ``SCHEMES``.
        passive: What joints do by themselves.
        forces: Wrenches on frames.
        reference: Axes and point of these.
        on_error: ``"raise"`` or ``"nan"``.
        threads: As of ``simulate``.
    """

    dt: float
    count: int
    every: int
    scheme: str
    passive: Passive
    forces: Forces | None
    reference: str
    on_error: str
    threads: int | None = None


@dataclass(frozen=True)
class LawMotion:
    """A motion under a law.

    Attributes:
        q: (knots + 1, ..., nq).
        v: (knots + 1, ..., nv).
        tau: (knots, ..., nv), of the last step before the next knot.
        diverged: (...) the first knot that is not finite, or -1.
    """

    q: Array
    v: Array
    tau: Array
    diverged: Array


def law_motion(
    model: Model, q: Coordinates, v: Coordinates, law: LawProgram, steps: LawSteps
) -> LawMotion:
    """The motion from a state; samples that diverge are NaN from there on.

    Raises:
        NoLawCodeError: There is no machine code for it; the text says why.
        ArgumentError: Something is not finite.
    """
    refuse_uncompiled(model)
    refuse_singular(model)
    start = read_initial_state(model, q, v, None, None, steps.forces, steps.count, steps.on_error)
    refuse_batch(model, law, start.batch)
    samples, knots = len(start.q), steps.count // steps.every
    refuse_large_simulation(
        model.name, steps.count, steps.every, 8 * samples * (model.nq + 2 * model.nv)
    )
    engine = _stepper(model, law, start, steps)
    results = tuple(np.empty((knots + 1, samples, size)) for size in (model.nq, model.nv, model.nv))
    results[0][0], results[1][0] = start.q, start.v
    times = (steps.dt, steps.count, steps.every)
    rows = law.rows(start.batch, DOUBLE)
    run_in_pieces(engine, model.name, rows, times, results, False, lambda last: None)
    qs, vs, taus = results[0], results[1], results[2][1:]
    first = np.where(start.lost, 0, -1)
    lost = first_lost_knots(qs, vs)
    first = np.where((lost >= 0) & (first < 0), lost, first)
    fill_nan_after((qs, vs, taus), first)
    q, v, tau = (x.reshape(len(x), *start.batch, x.shape[-1]) for x in (qs, vs, taus))
    return LawMotion(q, v, tau, first.reshape(start.batch))


def _stepper(model: Model, law: LawProgram, start: InitialState, steps: LawSteps) -> Stepper:
    smooth, rows = used_parts(model, steps.passive)
    refuse_scheme(model, steps.scheme, smooth)
    scheme = SCHEMES[steps.scheme]
    wrenches = check_wrenches(model, start.q, start.forces, steps.reference)
    var = Velocity(model, wrenches, smooth)
    if scheme.implicit and smooth:
        var = ImplicitVelocity(model, wrenches, smooth, steps.dt)
    work = len(start.q) * steps.count
    options = SteppingOptions(scheme, work, steps.threads, keep_going=True, law=law)
    found: Stepper | None
    if rows:
        constraint = JointRows(var, rows, scheme.implicit)
        found = make_compiled_row_stepper(model, var, options, constraint)
    else:
        found = make_compiled_stepper(model, var, options)
    if found is None:
        raise NoLawCodeError(f"steps of robot '{model.name}' have no machine code, or not yet")
    return found
