# SPDX-License-Identifier: BSD-3-Clause
"""Doubts about a log: joints that seem to be exchanged, signs that seem to be wrong, degrees.

The robot's own model, however rough, explains most of the forces of a log that belongs to it. Where
it does not, small changes of the log are tried: a sign, two joints exchanged, degrees. A change
after which the model explains far more is what probably happened, and it is said.

Velocities and positions say the same twice, whatever the robot is: what velocities add up to over a
moment is how far a joint has moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.ident.least_squares import least_squares_solution
from phistar.robot import Robot

SAMPLES = 400
"""Samples that are looked at, spread over the log."""
SUSPICIOUS = 0.05
"""Mean share of the joints' forces that has to be unexplained before anything is tried."""
CONVINCING = 0.6
"""A change must leave less than this part of what is unexplained now."""
MOVED = 0.02
"""Change of a joint's unexplained share from which on it has to do with a change of the log."""
OTHER_UNITS = 30.0
"""Forces that are so many times those of the robot's model, or its model so many times theirs."""
MOMENT = 0.05
"""Time [s] over which velocities are added up and compared with positions, at least."""
LEAST_STEPS = 8
"""Steps of a moment, at least."""
CLEAR_MOTION = 5.0
"""Times the noise of positions that a joint has to move in a moment, to be compared."""
LEAST_WAY = 0.02
"""Way [rad, m] that a joint has to move in a log, to be compared."""
SAME_RATE = 2.0
"""Factor up to which velocities may differ from the rates of positions."""
FOLLOWING = 0.5
"""Part of the squares of what velocities add up to that positions have to explain."""
SLOW_SAMPLES = 1.0
"""Time between samples [s] from which a log is none of a motion, or its times are no seconds."""
ROUNDS = 5
"""Times that rows are weighted again."""
MOST = 3
"""Changes that are made one after the other, each on top of the last."""


@dataclass(frozen=True)
class Change:
    """Something that may have happened to a log.

    Attributes:
        text: What, in words.
        order: Entries of v that the columns of the log seem to belong to, or None.
        torque_order: The same of forces alone.
        signs, torque_signs: (nv,) factors, or None.
        degrees: Whether positions seem to be in degrees.
    """

    text: str
    order: tuple[int, ...] | None = None
    torque_order: tuple[int, ...] | None = None
    signs: tuple[float, ...] | None = None
    torque_signs: tuple[float, ...] | None = None
    degrees: bool = False


Motion = tuple[Array, Array, Array, Array]


def doubts(robot: Robot, q: Array, v: Array, vdot: Array, tau: Array) -> tuple[str, ...]:
    """Sentences about what seems to be wrong with a log (N, ...); empty if nothing does.

    Only robots whose joints all have one coordinate are looked at.
    """
    if robot.nq != robot.nv or not len(q):
        return ()
    picked = np.unique(np.linspace(0, len(q) - 1, SAMPLES).astype(int))
    log: Motion = (q[picked], v[picked], vdot[picked], tau[picked])
    left = unexplained(robot, log)
    found: list[str] = []
    for _ in range(MOST):
        if left.mean() < SUSPICIOUS:
            break
        trials = [(unexplained(robot, _changed(log, each)), each) for each in _changes(robot, log)]
        best, change = min(trials, key=lambda trial: float(trial[0].mean()))
        if not _convincing(left, best):
            break
        found.append(
            f"{change.text}: the robot's model leaves {100 * left.mean():.0f} % of the joint "
            f"forces unexplained as the log is, and {100 * best.mean():.0f} % if that is put right"
        )
        log, left = _changed(log, change), best
    scale = force_scale(robot, log)
    if not 1.0 / OTHER_UNITS < scale < OTHER_UNITS:
        found.append(
            f"joint forces are {scale:.3g} times those of the robot's model; are they in N m and "
            "N, and times in seconds?"
        )
    if not found and left.mean() > 0.5:
        found.append(
            f"the robot's own model leaves {100 * left.mean():.0f} % of the joint forces "
            "unexplained; is this the log of another robot, or are its masses not yet known?"
        )
    return tuple(found)


def rate_doubts(
    names: Sequence[str], runs: Sequence[tuple[Array, Array, Array]]
) -> tuple[str, ...]:
    """Sentences about velocities that are not the rates of positions; empty if they are.

    Args:
        names: Of the joints.
        runs: Times (N,), positions and velocities (N, n) of parts without gaps.
    """
    parts = [_moments(*run) for run in runs if len(run[0]) > LEAST_STEPS]
    if not parts:
        return ()
    moved, added, noise = (np.concatenate(each) for each in zip(*parts, strict=True))
    way = np.max([np.ptp(q, axis=0) for _, q, _ in runs], axis=0)
    least = CLEAR_MOTION * np.sqrt(2.0 * np.mean(noise**2, axis=0))
    seen = np.flatnonzero((np.sqrt(np.mean(moved**2, axis=0)) > least) & (way > LEAST_WAY))
    ratios = {j: _rate_ratio(moved[:, j], added[:, j]) for j in seen}
    wrong = {j: x for j, x in ratios.items() if not 1.0 / SAME_RATE < x < SAME_RATE}
    sizes = [abs(x) for x in wrong.values()]
    if len(wrong) == len(seen) > 1 and max(sizes) < SAME_RATE * min(sizes):
        return (f"velocities of all joints {_told(float(np.median([*wrong.values()])), 'their')}",)
    return tuple(f"velocities of '{names[int(j)]}' {_told(x, 'its')}" for j, x in wrong.items())


def _rate_ratio(moved: Array, added: Array) -> float:
    """How many times the rate of positions velocities are; NaN if they are something else."""
    squares = float(added @ added)
    ratio = float(added @ moved) / float(moved @ moved)
    left = added - ratio * moved
    return np.nan if float(left @ left) > (1.0 - FOLLOWING) * squares else ratio


def _told(ratio: float, whose: str) -> str:
    """What is wrong with velocities that are so many times the rate of positions."""
    if np.isnan(ratio):
        return f"do not follow {whose} positions"
    if ratio == 0.0:
        return f"are zero, and {whose} positions move"
    usual = 1.0 / SAME_RATE < abs(ratio) < SAME_RATE
    units = "are times in s, and velocities in rad/s and m/s?"
    hint = "are both counted the same way round?" if usual else units
    return f"are {ratio:.3g} times the rate of {whose} positions; {hint}"


def _moments(t: Array, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """How far joints move in each moment of a run, what velocities add up to, noise of positions.

    Noise is what second differences leave, which a motion that is sampled well hardly has.
    """
    steps = np.diff(t)
    size = max(LEAST_STEPS, round(MOMENT / float(np.median(steps))))
    size = min(size, len(steps))
    edges = np.arange(0, len(t), size)
    added = np.concatenate(
        [np.zeros((1, v.shape[1])), np.cumsum(0.5 * (v[1:] + v[:-1]) * steps[:, None], axis=0)]
    )
    noise = np.diff(q, n=2, axis=0) / np.sqrt(6.0)
    return np.diff(q[edges], axis=0), np.diff(added[edges], axis=0), noise


def _convincing(left: Array, best: Array) -> bool:
    """Whether a change of the log explains far more, of all joints or of those it has to do with.

    Joints that move so little that noise is all they have are explained by nothing.
    """
    moved = np.abs(left - best) > MOVED
    if best.mean() <= CONVINCING * left.mean():
        return True
    gained = (left - best).mean() >= SUSPICIOUS
    return bool(gained and best[moved].mean() <= CONVINCING * left[moved].mean())


def force_scale(robot: Robot, log: Motion) -> float:
    """How many times larger the forces of a log are than the model's: the median of the joints.

    1 if no joint has a force that the model explains by half.
    """
    q, v, vdot, tau = log
    modelled = robot.inverse_dynamics(q, v, vdot, on_error="nan")
    known = (unexplained(robot, log) < 0.5) & np.isfinite(modelled).all(axis=0)
    factors = [
        _robust_left(_columns(modelled[:, j], v[:, j]), tau[:, j])[1][0]
        for j in np.flatnonzero(known)
    ]
    pushing = [x for x in factors if x > 0.0]
    return float(np.median(pushing)) if pushing else 1.0


def unexplained(robot: Robot, log: Motion) -> Array:
    """(nv,) share of each joint's force, less its median, that the model and friction leave.

    For each joint the model's force may be scaled by a positive number; damping, dry friction and
    an offset are free. Sizes are medians, and fits are robust: spikes are not what is looked for.
    """
    q, v, vdot, tau = log
    modelled = robot.inverse_dynamics(q, v, vdot, on_error="nan")
    shares = np.zeros(robot.nv)
    for j in range(robot.nv):
        size = np.median(np.abs(tau[:, j] - np.median(tau[:, j])))
        if not size > 0.0:
            continue
        own = modelled[:, j] if np.isfinite(modelled[:, j]).all() else np.zeros(len(v))
        left = _left_of_joint(own, v[:, j], tau[:, j])
        shares[j] = min((left / size) ** 2, 1.0)
    return shares


def _left_of_joint(modelled: Array, v: Array, tau: Array) -> float:
    """Median size of a joint's force that its model, with a positive factor, and friction that
    takes energy leave unexplained; what would have the wrong sign is left out.
    """
    columns = _columns(modelled, v)
    friction, one = columns[:, 1:3], columns[:, 3:]
    left, factors = _robust_left(columns, tau)
    pushes = factors[0] > 0.0
    brakes = float(np.sum(v * (friction @ factors[1:3]))) >= 0.0
    if pushes and brakes:
        return left
    kept = [x for x, good in ((modelled, pushes), (friction, brakes)) if good]
    return _robust_left(np.column_stack([*kept, one]), tau)[0]


def _columns(modelled: Array, v: Array) -> Array:
    """What a joint's force is made of: its model, damping, dry friction, an offset."""
    return np.column_stack([modelled, v, np.sign(v), np.ones(len(v))])


def _robust_left(columns: Array, wanted: Array) -> tuple[float, Array]:
    """Median size of what some columns leave, weighted again a few times; and their factors."""
    weights = np.ones(len(wanted))
    for _ in range(ROUNDS):
        rows = columns * weights[:, None]
        factors = least_squares_solution(rows, wanted * weights)
        left = np.abs(wanted - columns @ factors)
        typical = float(np.median(left))
        weights = np.sqrt(typical / np.maximum(left, typical)) if typical > 0.0 else weights
    return typical, factors


def _changes(robot: Robot, log: Motion) -> Iterator[Change]:
    """What is tried."""
    names, n = robot.joint_names, robot.nv
    if np.abs(log[0]).max() > 2.0 * np.pi:
        yield Change("positions look like degrees", degrees=True)
    for j in range(n):
        signs = tuple(-1.0 if k == j else 1.0 for k in range(n))
        yield Change(f"the force of '{names[j]}' seems to have the wrong sign", torque_signs=signs)
        yield Change(f"'{names[j]}' seems to be counted the other way round", signs=signs)
    for i in range(n):
        for j in range(i + 1, n):
            order = list(range(n))
            order[i], order[j] = j, i
            both = f"'{names[i]}' and '{names[j]}'"
            yield Change(f"{both} seem to be exchanged", order=tuple(order))
            text = f"the motions of {both} seem to be exchanged"
            yield Change(text, order=tuple(order), torque_order=tuple(order))
            yield Change(f"the forces of {both} seem to be exchanged", torque_order=tuple(order))


def _changed(log: Motion, change: Change) -> Motion:
    q, v, vdot, tau = log
    if change.degrees:
        q, v, vdot = (np.deg2rad(x) for x in (q, v, vdot))
    if change.order is not None:
        order = list(change.order)
        q, v, vdot, tau = q[:, order], v[:, order], vdot[:, order], tau[:, order]
    if change.torque_order is not None:
        tau = tau[:, list(change.torque_order)]
    if change.signs is not None:
        q, v, vdot, tau = (np.array(change.signs) * x for x in (q, v, vdot, tau))
    if change.torque_signs is not None:
        tau = np.array(change.torque_signs) * tau
    return q, v, vdot, tau
