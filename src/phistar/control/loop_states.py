# SPDX-License-Identifier: BSD-3-Clause
"""Changes of states on the loops of a robot, in independent coordinates; what its motors can do.

    δq = X δq_R        δv = X δv_R + Ẋ δq_R

with ones of X, and zeros of Ẋ, at the independent coordinates, which are chosen at each state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.actuation import Actuation, matvec, weight_matrix
from phistar.errors import UnderactuatedError, first_index, sample_text
from phistar.loops.assembly import usual_rank
from phistar.loops.constrained_dynamics import coordinate_names, describe_motion, require_on_loops
from phistar.loops.linearization import motion_tangents
from phistar.loops.minimal import dependent_columns, independent_of, partition
from phistar.loops.rank import factored
from phistar.loops.system import loop_system, motion_at, rows_at
from phistar.model.joint_physics import Passive
from phistar.model.kinematic_loops import active_loops
from phistar.robot import Robot

_UNDRIVEN = 1e-8
"""Fraction of the size of joint forces that motors may leave out."""


def closes_loops(robot: Robot) -> bool:
    """Whether a robot has active loops."""
    return bool(active_loops(robot.model.loops))


@dataclass(frozen=True)
class LoopStates:
    """Independent changes of states on the loops.

    Attributes:
        entries: (..., n) numbers of the independent coordinates in v.
        X: (..., nv, n) with δq = X δq_R.
        Xdot: (..., nv, n) with δv = X δv_R + Ẋ δq_R.
    """

    entries: Array
    X: Array
    Xdot: Array

    @property
    def expand(self) -> Array:
        """P (..., 2 nv, 2 n): changes (δq, δv) of independent ones."""
        nv, n = self.X.shape[-2:]
        result = np.zeros((*self.X.shape[:-2], 2 * nv, 2 * n))
        result[..., :nv, :n] = result[..., nv:, n:] = self.X
        result[..., nv:, :n] = self.Xdot
        return result

    @property
    def pick(self) -> Array:
        """E (..., 2 n, 2 nv): the independent ones of changes (δq, δv); EP = 1."""
        nv, n = self.X.shape[-2:]
        rows = np.broadcast_to(np.eye(nv)[self.entries], (*self.X.shape[:-2], n, nv))
        result = np.zeros((*rows.shape[:-2], 2 * n, 2 * nv))
        result[..., :n, :nv] = result[..., n:, nv:] = rows
        return result

    def at(self, knots: slice) -> LoopStates:
        """Of some knots, the first axis."""
        return LoopStates(self.entries[knots], self.X[knots], self.Xdot[knots])


def loop_states(robot: Robot, q: Array, v: Array, entries: Array | None = None) -> LoopStates:
    """Independent changes at states (..., nq), (..., nv) on the loops.

    Args:
        robot: The robot.
        q, v: States with the same batch axes.
        entries: (..., n) independent coordinates; by default chosen afresh at each state.
    """
    model, system, rank = robot.model, loop_system(robot.model), usual_rank(robot.model)
    rows = rows_at(model, q).L
    if entries is None:
        dependent = dependent_columns(system, rows, rank)
        entries = independent_of(dependent, robot.nv)
    else:
        dependent = independent_of(entries, robot.nv)
    X = partition(system, rows, rank, np.zeros(rows.shape[:-1]), dependent)[0]
    followers = np.take_along_axis(rows, dependent[..., None, :], axis=-1)
    turned = -np.linalg.pinv(followers, rcond=1e-12) @ (motion_tangents(model, q, v) @ X)
    Xdot = np.zeros_like(X)
    np.put_along_axis(Xdot, np.broadcast_to(dependent[..., :, None], turned.shape), turned, axis=-2)
    return LoopStates(entries, X, Xdot)


def independent_motions(robot: Robot, entries: Array, q: Array, v: Array) -> tuple[Array, Array]:
    """X (..., nv, n) and x̄ (..., nv) of v̇ = X v̇_R + x̄; ``entries`` (n,) are those of v̇_R."""
    rows = motion_at(robot.model, q, v)
    dependent = independent_of(entries, robot.nv)
    system = loop_system(robot.model)
    return partition(system, rows.L, len(dependent), -rows.bias, dependent)


def free_motions(robot: Robot, q: Array) -> Array:
    """An orthonormal basis (..., nv, n) of the velocities that keep the loops."""
    return factored(rows_at(robot.model, q).L, usual_rank(robot.model)).X


def inverse_inertia_on_loops(robot: Robot, q: Array) -> Array:
    """X(X*𝓜X)⁻¹X* (..., nv, nv): accelerations on the loops by joint forces."""
    X = free_motions(robot, q)
    Xt = np.swapaxes(X, -1, -2)
    return np.asarray(X @ np.linalg.solve(Xt @ robot.mass_matrix(q) @ X, Xt))


def holding_force(actuation: Actuation, q: Array, passive: Passive = False) -> Array:
    """Joint forces (..., nv) that hold a robot against gravity as well as its motors can.

    With loops the shortest efforts; without, gravity's forces at the joints with motors, and with
    ``passive`` less those of springs.
    """
    robot, still = actuation.robot, np.zeros(actuation.robot.nv)
    if not closes_loops(robot):
        hold = robot.gravity_force(q)
        if passive is not False:
            hold = hold - robot.passive_force(q, still, passive=passive)
        return actuation.spread(actuation.pick(hold))
    return robot.constrained_inverse_dynamics(
        q, still, still, actuated=actuation.names, allow_residual=True
    ).tau


def reduced_weight(states: LoopStates, value: ArrayLike, name: str) -> Array:
    """A weight (..., 2 n, 2 n) of independent changes.

    Args:
        states: Where the changes are independent.
        value: A number, (2 nv,) or (2 nv, 2 nv), the weight of changes (δq, δv) on the loops; or
            (2 n,) or (2 n, 2 n), that of independent ones.
        name: For messages.
    """
    nv, n = states.X.shape[-2:]
    if np.ndim(value) and np.shape(value) in ((2 * n,), (2 * n, 2 * n)):
        weight = weight_matrix(value, 2 * n, name)
        return np.broadcast_to(weight, (*states.X.shape[:-2], *weight.shape))
    weight, P = weight_matrix(value, 2 * nv, name), states.expand
    return np.asarray(np.swapaxes(P, -1, -2) @ weight @ P)


def at_motors(actuation: Actuation, q: Array, tau: Array) -> Array:
    """Forces (..., nv) of motors that move the robot as joint forces (..., nv) would.

    The shortest u with X*Bu = X*τ.

    Raises:
        UnderactuatedError: The motors cannot do what these joint forces do.
    """
    robot = actuation.robot
    X = free_motions(robot, q)
    Xt = np.swapaxes(X, -1, -2)
    wanted, drive = matvec(Xt, tau), Xt[..., actuation.columns]
    u = matvec(np.linalg.pinv(drive, rcond=1e-8), wanted)
    left = wanted - matvec(drive, u)
    missing = np.abs(left).max(axis=-1, initial=0.0)
    bad = np.asarray(missing > _UNDRIVEN * np.maximum(np.abs(tau).max(axis=-1, initial=0.0), 1e-9))
    if bad.any():
        _refuse_undriven(actuation, X, left, bad)
    return actuation.spread(u)


def require_driven(actuation: Actuation, X: Array) -> None:
    """Raise unless motors drive every motion that keeps the loops; X (..., nv, n) spans them."""
    drive = np.swapaxes(X, -1, -2)[..., actuation.columns]
    U, values, _ = np.linalg.svd(drive)
    kept = (values > _UNDRIVEN * values[..., :1]).sum(axis=-1)
    bad = np.asarray(kept < X.shape[-1])
    if bad.any():
        _refuse_undriven(actuation, X, U[..., -1], bad)


def _refuse_undriven(actuation: Actuation, X: Array, left: Array, bad: Array) -> None:
    """The error of motors that do not give the forces ``left`` (..., n) along motions X."""
    robot, sample = actuation.robot, first_index(bad)
    amount = float(np.linalg.norm(left[sample]))
    motion = np.broadcast_to(X, (*left.shape[:-1], *X.shape[-2:]))[sample] @ left[sample]
    motion = motion / np.abs(motion).max()
    names = coordinate_names(robot.model)
    raise UnderactuatedError(
        robot.name,
        {name: float(x) for name, x in zip(names, motion, strict=True)},
        amount,
        f"robot '{robot.name}'{sample_text(sample)}: its motors ({', '.join(actuation.names)}) "
        f"cannot drive {describe_motion(robot.model, motion)}; name more joints in actuated=, or "
        "use lqr or tv_lqr, which need no more than that the motors can stabilise it",
        bad,
    )


def require_start_on_loops(robot: Robot, q: Array, v: Array) -> None:
    """Raise where states (..., nq), (..., nv) at which a motion starts are not on the loops."""
    if active_loops(robot.model.loops):
        precision = float(np.finfo(np.result_type(q, v)).eps)
        require_on_loops(robot.model, motion_at(robot.model, q, v), v, "ilqr", precision)
