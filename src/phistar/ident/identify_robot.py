# SPDX-License-Identifier: BSD-3-Clause
"""Identification in one call: from a log to a robot with error bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from phistar.arguments import (
    checked_state,
    require_count,
    require_real,
    require_robot,
    require_time,
)
from phistar.arrays import Array
from phistar.errors import ArgumentError, ModelMismatchWarning, ShapeError, UnknownNameError, warn
from phistar.ident.balances import BALANCES
from phistar.ident.base_parameters import BaseParameters, base_parameters
from phistar.ident.columns import Columns
from phistar.ident.consistent import consistent_fit
from phistar.ident.correlation import samples_worth_one
from phistar.ident.doubts import doubts, rate_doubts
from phistar.ident.equations import Equations, TorqueEquations, accumulate, merged
from phistar.ident.filtering import differentiate
from phistar.ident.least_squares import cross_validation, weighted_fit
from phistar.ident.logs import Log, even_runs, log_samples
from phistar.ident.output_error import Windows, output_error
from phistar.ident.recording import shown
from phistar.ident.result import Identification, ResidualSample
from phistar.ident.robust import LOSSES, robust_fit
from phistar.ident.samples import Samples
from phistar.ident.triangles import RowTriangles
from phistar.model.configuration import Coordinates
from phistar.robot import Robot

REST_SHARE = 0.01
"""Share of a joint's largest speed up to which it counts as at rest."""
SHOWN_SAMPLES = 8192
"""Samples whose residuals are kept, in a few runs of the log."""
RUNS = 4
OUTPUT_ERROR = "output_error"
METHODS = ("torque", *BALANCES, OUTPUT_ERROR)
"""Ways from a log to parameters."""
BALANCE_WINDOW = 0.1
WINDOWS = {OUTPUT_ERROR: 0.5}
"""Lengths of windows [s], if none is given."""
CORRELATED = 1.5
"""Samples worth one that is independent from which it is noted."""


def identify(
    robot: Robot,
    q: Coordinates | Log,
    v: Coordinates | None = None,
    vdot: Coordinates | None = None,
    tau: Coordinates | None = None,
    *,
    dt: float | None = None,
    cutoff: float | None = None,
    friction: Sequence[str] | bool = True,
    rotors: bool = True,
    springs: bool = False,
    bodies: Sequence[str] | None = None,
    loss: str = "squares",
    consistent: bool = True,
    prior_weight: float = 1.0,
    folds: int = 5,
    rest_speed: ArrayLike | None = None,
    method: str = "torque",
    window: float | None = None,
) -> Identification:
    """Inertia, friction and rotors of a robot from a log of its motion.

    Joints are weighted by their own residuals. What the log does not tell stays as the robot has
    it; of the rest ``result.fit`` has estimates with their covariance, ``result.robot`` is a robot.

    Args:
        robot: What is known: a model with masses, exact or rough, without closed loops.
        q: (N, nq) positions; or a log of ``read_log``, which has all that follows.
        v: (N, nv) velocities; default: differentiated from q.
        vdot: (N, nv) accelerations; default: differentiated from v or q.
        tau: (N, nv) joint forces that were measured [N m, N].
        dt: Time between samples [s], if something is to be differentiated.
        cutoff: Of the filter that differentiates [Hz]; default from the spectrum of q.
        friction: True, False, or some of ``"viscous"``, ``"coulomb"``, ``"offset"``.
        rotors, springs: Whether inertia of rotors and stiffness of joints are identified.
        bodies: Links whose bodies are identified; default: all with mass.
        loss: ``"squares"``, or ``"huber"`` or ``"tukey"`` for logs with bad samples.
        consistent: Whether the robot has to be physically possible.
        prior_weight: How strongly bodies are held at the robot's own: a divergence of ½ counts as
            ``prior_weight`` standard deviations squared.
        folds: Parts of the log for cross-validation; 1 does without.
        rest_speed: Speed up to which a joint is at rest and its row left out, if dry friction is
            identified [rad/s, m/s], one number or (nv,); default: 1 % of its largest speed.
        method: ``"torque"``, the equation of motion at every sample; ``"momentum"`` or
            ``"energy"``, their balances over windows, which need no accelerations but ``dt``; or
            ``"output_error"``, simulations of windows that have to meet the positions q, which need
            neither velocities nor accelerations, forces without noise, and more time.
        window: Length of those windows [s]; default: 0.1, with ``"output_error"`` 0.5.

    Raises:
        ArgumentError: There is no force or motion in the log, too few samples, or no time.
        ShapeError, NotFiniteError: An array does not fit the robot.
        LoopError: The robot has closed loops.
    """
    require_robot(robot)
    if loss not in LOSSES:
        raise UnknownNameError("loss", loss, LOSSES)
    folds = require_count("folds", folds)
    columns = Columns.of(robot, friction=friction, rotors=rotors, springs=springs, bodies=bodies)
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    if method == OUTPUT_ERROR:
        _refuse_simulated(robot, loss, consistent)
    if window is not None and method == "torque":
        raise ArgumentError(f"window is {window}, and method 'torque' has no windows; leave it out")
    if dt is not None:
        dt = require_time("dt", dt)
    if isinstance(q, Log):
        dt = step_of(robot, q, v, vdot, tau, dt)
        _refuse_gaps(q, method)
        samples = log_samples(q, cutoff)
    else:
        if method == OUTPUT_ERROR:
            v = vdot = None
        samples = read_samples(robot, q, v, vdot, tau, dt, cutoff, method in BALANCES)
    if method != "torque" and dt is None:
        raise ArgumentError(f"dt is missing: method '{method}' goes along time")
    length = WINDOWS.get(method, BALANCE_WINDOW) if window is None else window
    base = base_parameters(columns)
    said = (
        *_rate_doubts(robot, q, v, vdot, dt),
        *doubts(robot, samples.q, samples.v, samples.vdot, samples.tau),
    )
    for text in said:
        warn(text, ModelMismatchWarning)
    if method == OUTPUT_ERROR:
        assert dt is not None
        windows = Windows.of(_positions(robot, q, tau), dt, length)
        notes = q.notes if isinstance(q, Log) else ()
        return output_error(base, windows, notes, said, prior_weight)
    equations: Equations
    if method == "torque":
        rest = rest_speeds(np.abs(samples.v).max(axis=0), rest_speed)
        equations = TorqueEquations(base, samples.q, samples.v, samples.vdot, samples.tau, rest)
    else:
        equations = _balance(base, samples, method, dt, length)
    return solve(equations, samples.notes, said, loss, consistent, prior_weight, folds)


def solve(
    equations: Equations,
    notes: Sequence[str],
    said: Sequence[str],
    loss: str = "squares",
    consistent: bool = True,
    prior_weight: float = 1.0,
    folds: int = 5,
) -> Identification:
    """The identification of equations; arguments as of ``identify``."""
    return solve_parts(
        equations, accumulate(equations, folds), notes, said, loss, consistent, prior_weight
    )


def solve_parts(
    equations: Equations,
    parts: Sequence[RowTriangles],
    notes: Sequence[str],
    said: Sequence[str],
    loss: str = "squares",
    consistent: bool = True,
    prior_weight: float = 1.0,
) -> Identification:
    """The identification of equations whose rows are in triangles, one set for each fold."""
    base = equations.base
    fit = weighted_fit(merged(parts), equations.support, base.values)
    checked = cross_validation(parts, equations.support, base.values) if len(parts) > 1 else None
    if loss != "squares":
        fit = robust_fit(equations, fit, loss, base.values)
    sample = residual_sample(equations, fit.beta)
    possible = consistent_fit(base, fit, prior_weight) if consistent else None
    told = [*notes, *_notes(base, fit.rank, fit.rows, equations, sample)]
    if possible is not None and possible.filled:
        told.append(f"without extent or impossible at first: {', '.join(possible.filled)}")
    return Identification(
        base.columns, base, equations.groups, fit, checked, possible, sample, tuple(told),
        tuple(said),
    )  # fmt: skip


def read_samples(
    robot: Robot,
    q: Coordinates,
    v: Coordinates | None,
    vdot: Coordinates | None,
    tau: Coordinates | None,
    dt: float | None,
    cutoff: float | None,
    without_vdot: bool = False,
) -> Samples:
    """Arrays of a user, checked and differentiated where something is missing."""
    if tau is None:
        raise ArgumentError("tau is missing: identification needs the joint forces of the log")
    q, tau = checked_state(robot.model, q=q, tau=tau)
    if q.ndim != 2 or tau.shape[:-1] != q.shape[:-1]:
        raise ShapeError("q", q.shape, f"(N, {robot.nq}), one row for each of tau", "a log")
    if not len(q):
        raise ArgumentError("q has no samples; a log has one row (nq,) for each of them")
    require_real(q=q, tau=tau)
    if not tau.any():
        raise ArgumentError("tau is zero everywhere; was it recorded?")
    if without_vdot and v is not None and vdot is None:
        (v,) = checked_state(robot.model, v=v)
        vdot = np.gradient(v, axis=0) / dt if dt else np.zeros_like(v)
    samples = _with_derivatives(robot, q, v, vdot, tau, dt, cutoff)
    if not samples.v.any() and not samples.vdot.any():
        raise ArgumentError("the robot is at rest in the whole log: v and vdot are zero everywhere")
    return samples


def step_of(robot: Robot, log: Log, *given: object) -> float:
    """Time between samples of a log [s], which is given alone."""
    if log.q.shape[-1] != robot.nq:
        raise ShapeError("q", log.q.shape, f"(N, {robot.nq})", f"a log of '{robot.name}'")
    if log.joints != robot.joint_names:
        raise ArgumentError(
            f"'{log.source}' was read for joints {shown(log.joints)}, and '{robot.name}' has "
            f"{shown(robot.joint_names)}; read it again: read_log(path, robot)"
        )
    if any(each is not None for each in given):
        raise ArgumentError(f"'{log.source}' is a log: v, vdot, tau and dt are its own, give none")
    return log.dt


def _rate_doubts(
    robot: Robot,
    q: Coordinates | Log,
    v: Coordinates | None,
    vdot: Coordinates | None,
    dt: float | None,
) -> tuple[str, ...]:
    """Doubts about velocities that were given along with positions and times."""
    if isinstance(q, Log):
        return q.doubts
    if v is None or vdot is not None or dt is None or robot.nq != robot.nv:
        return ()
    q, v = checked_state(robot.model, q=q, v=v)
    return rate_doubts(robot.joint_names, [(dt * np.arange(len(q)), q, v)])


def _refuse_gaps(log: Log, method: str) -> None:
    if method in BALANCES and len(log.runs) > 1:
        raise ArgumentError(
            f"'{log.source}' has {len(log.runs)} runs with gaps between them, and the balance of "
            f"{method} is integrated over time; use method='torque'"
        )


def _with_derivatives(
    robot: Robot,
    q: Array,
    v: Coordinates | None,
    vdot: Coordinates | None,
    tau: Array,
    dt: float | None,
    cutoff: float | None,
) -> Samples:
    """The samples that have all derivatives."""
    if vdot is not None:
        if v is None:
            raise ArgumentError("vdot is given and v is not; give both, or neither")
        v, vdot, _ = checked_state(robot.model, v=v, vdot=vdot, q=q)
        if v.shape != tau.shape or vdot.shape != tau.shape:
            raise ShapeError("v", v.shape, f"{tau.shape}, as tau and vdot have", "a log")
        require_real(v=v, vdot=vdot)
        return Samples(q, v, vdot, tau)
    if dt is None:
        raise ArgumentError("dt is missing: accelerations have to be differentiated; give dt in s")
    if v is None and robot.nq != robot.nv:
        raise ArgumentError(
            f"v is missing: '{robot.name}' has joints with several coordinates, whose positions "
            "are not differentiated one by one"
        )
    if v is None:
        found = differentiate(q, dt, cutoff)
        q, v, vdot, base = found.x, found.first, found.second, "q"
    else:
        (v,) = checked_state(robot.model, v=v)
        found = differentiate(v, dt, cutoff)
        q, v, vdot, base = q[found.kept], found.x, found.first, "v"
    cut = len(tau) - (found.kept.stop - found.kept.start)
    note = (
        f"{base} was smoothed up to {found.cutoff:.4g} Hz and differentiated; {cut} samples at the "
        "ends, which a symmetric filter does not reach, are left out"
    )
    return Samples(q, v, vdot, tau[found.kept], (note,))


def _refuse_simulated(robot: Robot, loss: str, consistent: bool) -> None:
    """Raise for what an identification by simulations cannot do."""
    if loss != "squares" or not consistent:
        raise ArgumentError(
            f"method '{OUTPUT_ERROR}' simulates possible robots by least squares; leave out loss= "
            "and consistent="
        )
    if robot.nq != robot.nv:
        raise ArgumentError(
            f"'{robot.name}' has joints with several coordinates, whose positions are not compared "
            "one by one; identify by method='torque', with velocities and accelerations"
        )


def _positions(
    robot: Robot, q: Coordinates | Log, tau: Coordinates | None
) -> list[tuple[int, Array, Array]]:
    """Positions and forces of each run of a log, as they were recorded."""
    if isinstance(q, Log):
        return even_runs(q)
    assert tau is not None
    q, tau = checked_state(robot.model, q=q, tau=tau)
    return [(0, q, tau)]


def _balance(
    base: BaseParameters, samples: Samples, method: str, dt: float | None, window: float
) -> Equations:
    """Equations without accelerations."""
    assert dt is not None
    steps = round(require_time("window", window) / dt)
    if steps < 1:
        raise ArgumentError(f"window is {window:g} s, expected at least one step of {dt:g} s")
    return BALANCES[method](base, samples.q, samples.v, samples.tau, dt, steps)


def rest_speeds(largest: Array, given: ArrayLike | None) -> Array:
    """(nv,) speeds up to which joints are at rest.

    Args:
        largest: (nv,) largest speeds of the log.
        given: What a user says, one number or (nv,); None: a share of the largest.

    Raises:
        ArgumentError: It is no such number.
    """
    if given is None:
        return np.asarray(REST_SHARE * largest)
    try:
        found = np.broadcast_to(np.asarray(given, dtype=float), largest.shape).copy()
    except (TypeError, ValueError):
        found = np.array([np.nan])
    if not (np.isfinite(found) & (found >= 0.0)).all():
        raise ArgumentError(
            f"rest_speed is {given}, expected one number that is not negative, or {len(largest)} "
            "of them [rad/s, m/s]"
        )
    return found


def residual_sample(equations: Equations, beta: Array) -> ResidualSample:
    """Residuals of a few runs of samples, and how they are correlated in time."""
    length = min(SHOWN_SAMPLES // RUNS, equations.samples)
    starts = np.unique(np.linspace(0, equations.samples - length, RUNS).astype(int))
    places, forces, left, runs = [], [], [], []
    for start in starts:
        blocks, counted = equations.rows(start, start + length)
        rows = [block.dense() for block in blocks]
        measured = np.column_stack([each[:, -1] for each in rows])
        predicted = np.column_stack(
            [each[:, :-1] @ beta[own] for each, own in zip(rows, equations.support, strict=True)]
        )
        error = predicted - measured
        places.append(np.arange(start, start + length))
        forces.append(np.where(counted, measured, np.nan))
        left.append(np.where(counted, error, np.nan))
        runs.append((error, counted))
    return ResidualSample(
        np.concatenate(places), np.concatenate(forces), np.concatenate(left),
        samples_worth_one(runs), equations.signal,
    )  # fmt: skip


def _notes(
    base: BaseParameters, rank: int, rows: Array, equations: Equations, sample: ResidualSample
) -> list[str]:
    """What a user should know of an estimate."""
    notes = []
    if rank < len(base):
        notes.append(
            f"{len(base) - rank} of {len(base)} directions of the base parameters are not excited "
            "by this motion and stay as the robot has them; ident.excitation finds a better motion"
        )
    unused = equations.samples * len(rows) - int(rows.sum())
    if unused:
        notes.append(
            f"{unused} rows of joints at rest are left out, where dry friction may be anything"
        )
    notes += [
        f"no row of '{name}' is left: it is at rest in the whole log"
        for name, count in zip(equations.groups, rows, strict=True)
        if not count
    ]
    worst = int(np.argmax(sample.correlation))
    if sample.correlation[worst] > CORRELATED:
        notes.append(
            f"residuals are correlated in time: {sample.correlation[worst]:.3g} samples of "
            f"'{equations.groups[worst]}' are worth one, so that standard deviations are up to "
            f"{np.sqrt(sample.correlation[worst]):.2g} times as large as given"
        )
    return notes
