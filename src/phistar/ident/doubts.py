# SPDX-License-Identifier: BSD-3-Clause
"""Doubts about a log: joints that seem to be exchanged, signs that seem to be wrong, degrees.

The robot's own model, however rough, explains most of the forces of a log that belongs to it. Where
it does not, small changes of the log are tried: a sign, two joints exchanged, degrees. A change
after which the model explains far more is what probably happened, and it is said.
"""

from __future__ import annotations

from collections.abc import Iterator
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
        if best.mean() > CONVINCING * left.mean():
            break
        found.append(
            f"{change.text}: the robot's model leaves {100 * left.mean():.0f} % of the joint "
            f"forces unexplained as the log is, and {100 * best.mean():.0f} % if that is put right"
        )
        log, left = _changed(log, change), best
    if not found and left.mean() > 0.5:
        found.append(
            f"the robot's own model leaves {100 * left.mean():.0f} % of the joint forces "
            "unexplained; is this the log of another robot, or are its masses not yet known?"
        )
    return tuple(found)


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
    friction, one = np.column_stack([v, np.sign(v)]), np.ones((len(v), 1))
    left, factors = _robust_left(np.column_stack([modelled, friction, one]), tau)
    pushes = factors[0] > 0.0
    brakes = float(np.sum(v * (friction @ factors[1:3]))) >= 0.0
    if pushes and brakes:
        return left
    kept = [x for x, good in ((modelled, pushes), (friction, brakes)) if good]
    return _robust_left(np.column_stack([*kept, one]), tau)[0]


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
