# SPDX-License-Identifier: BSD-3-Clause
"""A recording put into the order of a robot's joints, checked, and cut where time is not even.

What is wrong with a log is either put right and noted (gaps, repeated stamps, samples without some
joint, joints that the robot does not have) or refused in one line (no order in time, degrees,
zeros, a single sample).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from phistar.arguments import require_robot
from phistar.arrays import Array
from phistar.errors import ArgumentError, UnknownNameError, pluralize
from phistar.ident.doubts import SLOW_SAMPLES, rate_doubts
from phistar.ident.filtering import default_cutoff, differentiate
from phistar.ident.log_files import read_recording
from phistar.ident.recording import FIELDS, Recording, shown
from phistar.ident.samples import Samples
from phistar.robot import Robot

GAP = 5.0
"""Usual steps of time from which a step is a gap."""
JITTER = 0.01
"""Share of a step by which stamps may differ from an even grid before they are resampled."""
UNSORTED = 0.01
"""Share of steps back in time from which a log is not sorted at all."""
DEGREES = 3.0
"""How many times positions exceed the limits where they are degrees."""


@dataclass(frozen=True, eq=False)
class Log:
    """A log of a robot.

    Attributes:
        source: The file.
        joints: Names of the robot's joints, in its order.
        t: (N,) times from the first [s].
        q, tau: (N, n) positions and forces in the robot's order.
        v: (N, n) velocities; None if they were not recorded.
        runs: Parts without gap, each at least two samples long.
        notes: What was found and done, in sentences.
        doubts: What seems to be wrong with times and velocities, in sentences.
    """

    source: str
    joints: tuple[str, ...]
    t: Array
    q: Array
    tau: Array
    v: Array | None
    runs: tuple[slice, ...]
    notes: tuple[str, ...]
    doubts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        doubted = f", {pluralize(len(self.doubts), 'doubt')}" if self.doubts else ""
        return (
            f"<Log '{Path(self.source).name}': {len(self.t)} samples in {len(self.runs)} runs, "
            f"{self.duration:.4g} s, {len(self.notes)} notes{doubted}>"
        )

    @property
    def duration(self) -> float:
        """Of all runs together [s]."""
        return float(sum(self.t[run.stop - 1] - self.t[run.start] for run in self.runs))

    @property
    def dt(self) -> float:
        """Usual time between samples [s]."""
        return float(np.median(np.concatenate([np.diff(self.t[run]) for run in self.runs])))


def read_log(
    path: str | Path, robot: Robot, *, degrees: bool = False, topic: str | None = None
) -> Log:
    """Read a log of a robot: CSV, Parquet, NPZ, Zarr, MCAP or a bag of ROS.

    Joints are found by name, in any order. Positions, forces and, if there are any, velocities.

    Args:
        path: The file.
        robot: All its joints have one coordinate.
        degrees: Whether angles are in degrees.
        topic: Of joint states, where messages on several topics have them.

    Raises:
        ArgumentError: The log cannot be used; the reason is one line.
        UnknownNameError: None of its joints are the robot's.
        MissingExtraError: The package that reads it is not installed.
    """
    require_robot(robot)
    if robot.nq != robot.nv:
        raise ArgumentError(
            f"logs are read for joints with one coordinate each, and '{robot.name}' has others"
        )
    recording = read_recording(path, robot.joint_names, topic)
    source, notes = recording.source, list(recording.notes)
    q, v_found, tau = _by_joint(robot, recording, notes)
    kept = _complete(robot, recording, q, tau, notes)
    t, q, tau = recording.t[kept], q[kept], tau[kept]
    v = v_found[kept] if np.isfinite(v_found[kept]).all() else None
    if v is None and np.isfinite(v_found).any():
        notes.append("some velocities are missing, so all are differentiated from positions")
    _refuse_zeros(source, q, tau)
    if degrees:
        turning = _turning(robot)
        q = np.where(turning, np.deg2rad(q), q)
        v = None if v is None else np.where(turning, np.deg2rad(v), v)
    _refuse_degrees(robot, source, q)
    runs = _runs(source, t, notes)
    q = _unwrapped(robot, q, runs, notes)
    if v is not None and not v.any():
        notes.append("all velocities are zero and joints move: velocities are those of positions")
        v = None
    log = Log(source, robot.joint_names, t - t[runs[0].start], q, tau, v, runs, tuple(notes))
    return replace(log, doubts=_doubts_of(robot, log))


def _doubts_of(robot: Robot, log: Log) -> tuple[str, ...]:
    """What times and velocities say of each other and of positions."""
    said = []
    if log.dt >= SLOW_SAMPLES:
        said.append(f"samples come every {log.dt:.4g} s; are times in seconds?")
    if log.v is not None:
        runs = [(log.t[run], log.q[run], log.v[run]) for run in log.runs]
        said += rate_doubts(robot.joint_names, runs)
    return tuple(said)


def _by_joint(robot: Robot, recording: Recording, notes: list[str]) -> tuple[Array, Array, Array]:
    """Positions, velocities and forces in the robot's order."""
    followers = {
        joint.name: joint.mimic
        for joint in robot.model.joints.values()
        if joint.mimic is not None and joint.name in recording.joints
    }
    known = {*robot.joint_names, *followers}
    strange = [name for name in recording.joints if name not in known]
    missing = [name for name in robot.joint_names if name not in recording.joints]
    if len(strange) == len(recording.joints):
        raise UnknownNameError("joint", strange[0], robot.joint_names, f"'{robot.name}'")
    if missing:
        raise ArgumentError(
            f"'{recording.source}' does not have joint {shown(missing)} of '{robot.name}'; lock "
            "joints that do not move: robot.lock({name: value})"
        )
    if strange:
        notes.append(f"not joints of '{robot.name}', and not used: {shown(strange)}")
    if followers:
        notes.append(
            "these follow other joints, with which their forces count; their positions are not "
            f"used: {shown([*followers])}"
        )
    place = {name: k for k, name in enumerate(recording.joints)}
    order = [place[name] for name in robot.joint_names]
    effort = recording.effort[:, order]
    for name, law in followers.items():
        own = law.multiplier * recording.effort[:, place[name]]
        effort[:, robot.joint_names.index(law.joint)] += np.where(np.isfinite(own), own, 0.0)
    return recording.position[:, order], recording.velocity[:, order], effort


def _complete(robot: Robot, recording: Recording, q: Array, tau: Array, notes: list[str]) -> Array:
    """Indices of samples that have all positions and forces, one for each stamp."""
    source, joints = recording.source, robot.joint_names
    said = len(notes)
    for name, values, words in (("positions", q, "position"), ("joint forces", tau, "effort")):
        which = [joint for k, joint in enumerate(joints) if np.isnan(values[:, k]).all()]
        if len(values) and which:
            whose = f" of {shown(which)}" if len(which) < len(joints) else ""
            raise ArgumentError(f"'{source}' has no {name}{whose}: {' or '.join(FIELDS[words])}")
    good = np.isfinite(recording.t) & np.isfinite(q).all(axis=1) & np.isfinite(tau).all(axis=1)
    if not good.all():
        lost = pluralize(int((~good).sum()), "sample")
        notes.append(f"not used, as a position, a force or the time is missing: {lost}")
    kept = np.flatnonzero(good)
    repeated = np.diff(recording.t[kept], prepend=np.nan) == 0.0
    if repeated.any():
        lost = pluralize(int(repeated.sum()), "sample")
        notes.append(f"not used, as they repeat the stamp before: {lost}")
        kept = kept[~repeated]
    if len(kept) < 2:
        count = pluralize(len(kept), "usable sample")
        why = "".join(f"; {note}" for note in notes[said:])
        raise ArgumentError(f"'{source}' has {count} of {len(good)}; a motion takes many{why}")
    return kept


def _refuse_zeros(source: str, q: Array, tau: Array) -> None:
    for name, values in (("positions", q), ("joint forces", tau)):
        if not values.any():
            raise ArgumentError(f"'{source}': all {name} are zero; were they recorded?")
    if not np.ptp(q, axis=0).any():
        raise ArgumentError(f"'{source}': no joint moves")


def _turning(robot: Robot) -> Array:
    """(nq,) which coordinates are angles."""
    units = [robot.joints[name].joint_kind.q_units[0] for name in robot.joint_names]
    return np.array([unit == "rad" for unit in units])


def _refuse_degrees(robot: Robot, source: str, q: Array) -> None:
    """Raise if angles are far beyond all limits, or turn more often than anything does."""
    largest = np.abs(q).max(axis=0)
    lower, upper = robot.limits.lower, robot.limits.upper
    bound = np.where(np.isfinite(lower), np.maximum(np.abs(lower), np.abs(upper)), np.inf)
    for k in np.flatnonzero(_turning(robot) & (largest > DEGREES * bound)):
        raise ArgumentError(
            f"'{source}': '{robot.joint_names[k]}' reaches {largest[k]:.4g} rad, and its limit is "
            f"{bound[k]:.4g} rad; are these degrees? degrees=True (--degrees) reads them so"
        )


def _runs(source: str, t: Array, notes: list[str]) -> tuple[slice, ...]:
    """Parts without gaps or jumps of the clock."""
    steps = np.diff(t)
    back = np.flatnonzero(steps < 0.0)
    if len(back) > max(1.0, UNSORTED * len(steps)) or len(back) == len(steps):
        k = int(back[0])
        raise ArgumentError(
            f"'{source}': time is not sorted, it goes back {len(back)} times, first from "
            f"{t[k]:.9g} to {t[k + 1]:.9g} s at sample {k + 1}; sort the log"
        )
    usual = float(np.median(steps[steps > 0.0]))
    gaps = np.flatnonzero(steps > GAP * usual)
    notes += [
        f"the clock jumps back by {-steps[k]:.4g} s at sample {k + 1}: a new run begins"
        for k in back
    ]
    if len(gaps):
        notes.append(
            f"{pluralize(len(gaps), 'gap')} of up to {steps[gaps].max():.4g} s where samples come "
            f"every {usual:.4g} s, the first at sample {int(gaps[0]) + 1}"
        )
    edges = [0, *(int(k) + 1 for k in np.sort(np.concatenate([back, gaps]))), len(t)]
    found = tuple(slice(a, b) for a, b in pairwise(edges) if b - a >= 2)
    if any(_is_uneven(t[run], usual) for run in found):
        notes.append(f"stamps are not even: samples are put onto steps of {usual:.4g} s by splines")
    return found


def _is_uneven(t: Array, dt: float) -> bool:
    """Whether stamps of a run differ from an even grid so much that samples are put onto one."""
    return bool(np.abs(np.diff(t) - dt).max() > JITTER * dt)


def _unwrapped(robot: Robot, q: Array, runs: tuple[slice, ...], notes: list[str]) -> Array:
    """Angles of joints that can turn around, without jumps from one sample of a run to the next."""
    found = np.array(q)
    around = _turning(robot) & (robot.limits.upper - robot.limits.lower >= 2.0 * np.pi)
    for run in runs:
        found[run] = np.where(around, np.unwrap(q[run], axis=0), q[run])
    wrapped = np.flatnonzero((found != q).any(axis=0))
    if len(wrapped):
        names = [robot.joint_names[k] for k in wrapped]
        notes.append(f"jumps by whole turns are taken out: {shown(names)}")
    return found


def log_samples(log: Log, cutoff: float | None = None) -> Samples:
    """The samples of all runs with velocities and accelerations, each run by itself.

    Args:
        log: The log.
        cutoff: Of the filter that differentiates [Hz]; default: from the longest run.

    Raises:
        ArgumentError: No run is long enough.
    """
    dt, notes = log.dt, list(log.notes)
    longest = max(log.runs, key=lambda run: run.stop - run.start)
    if cutoff is None:
        cutoff = default_cutoff((log.q if log.v is None else log.v)[longest], dt)
    parts: list[tuple[Array, ...]] = []
    for run in log.runs:
        try:
            parts.append(_differentiated(log, run, dt, cutoff))
        except ArgumentError as error:
            if run == longest:
                raise ArgumentError(f"'{log.source}': {error}") from None
            notes.append(f"samples {run.start} to {run.stop - 1} are not used: {error}")
    q, v, vdot, tau = (np.concatenate(each) for each in zip(*parts, strict=True))
    unused = len(log.t) - len(q)
    notes.append(
        f"{'v was' if log.v is not None else 'q was'} smoothed up to {cutoff:.4g} Hz and "
        f"differentiated; {unused} samples at ends, where the filter would need more, are left out"
    )
    return Samples(q, v, vdot, tau, tuple(notes))


def even_runs(log: Log) -> list[tuple[int, Array, Array]]:
    """The first sample, positions and forces (N, n) of each run, on an even grid of ``log.dt``."""
    return [(run.start, *_even(log, run, log.dt)[:2]) for run in log.runs]


def _even(log: Log, run: slice, dt: float) -> list[Array]:
    """q, tau and, if there are any, v of a run on an even grid."""
    t = log.t[run]
    columns = [log.q[run], log.tau[run], *([] if log.v is None else [log.v[run]])]
    if not _is_uneven(t, dt):
        return columns
    from scipy.interpolate import CubicSpline

    even = np.arange(t[0], t[-1], dt)
    return [np.asarray(CubicSpline(t, each)(even)) for each in columns]


def _differentiated(log: Log, run: slice, dt: float, cutoff: float) -> tuple[Array, ...]:
    """q, v, vdot, tau of a run on an even grid."""
    columns = _even(log, run, dt)
    if log.v is None:
        found = differentiate(columns[0], dt, cutoff)
        q, v, vdot = found.x, found.first, found.second
    else:
        found = differentiate(columns[2], dt, cutoff)
        q, v, vdot = columns[0][found.kept], found.x, found.first
    return q, v, vdot, columns[1][found.kept]
