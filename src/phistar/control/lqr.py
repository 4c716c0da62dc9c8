# SPDX-License-Identifier: BSD-3-Clause
"""Linear-quadratic regulators at an equilibrium, in continuous time or in steps.

The regulator minimises ∫ (e·Q e + u·R u) dt of the linearized robot, with e = (δq, δv) the error of
the state as a tangent vector and u added to the holding forces. Weights are per second in discrete
time too (each step counts dt Q and dt R), so a regulator in short steps is nearly the continuous
one.

Robots with loops are regulated in independent coordinates: the full linearization has modes off the
loops that no force reaches. Gains are for the whole state all the same, with zeros for dependent
coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.actuation import Actuation, matvec, state_error, weight_matrix
from phistar.control.loop_states import (
    LoopStates,
    closes_loops,
    holding_force,
    loop_states,
    reduced_weight,
)
from phistar.control.loop_steps import reduced_steps
from phistar.errors import EquilibriumError, ShapeError, StabilityError
from phistar.model.configuration import Coordinates
from phistar.model.joint_physics import Passive
from phistar.reprs import one_line_repr
from phistar.robot import Robot
from phistar.sim.law_calls import LawProgram, gain_parts

_MARGINAL_DECAY = 1e-7
"""Modes that decay by less than this, relative to the fastest, count as not decaying."""
_RANK_TOLERANCE = 1e-10
"""Singular values below this, relative to the largest, count as zero."""


@one_line_repr
@dataclass(frozen=True)
class Regulator:
    """Feedback that holds a robot at an equilibrium: ``tau = regulator(q, v)``.

    Attributes:
        actuation: The joints that are driven.
        q: (nq,) equilibrium.
        tau: (nv,) the forces that hold it there.
        K: (nu, 2 nv) gains; the driven joints get tau - K (δq, δv). With loops the columns of
            dependent coordinates are zero.
        S: (2 nv, 2 nv); e·S e is the cost of the return from an error e, to second order.
        eigenvalues: (2 nv,) of the closed loop, slowest first: exponents [1/s], or factors per
            step. With loops (2 n,), n the number of independent coordinates.
        dt: Length of a step [s]; None in continuous time.
        independent: (n,) numbers in v of the coordinates that are fed back.
    """

    actuation: Actuation
    q: Array
    tau: Array
    K: Array
    S: Array
    eigenvalues: Array
    dt: float | None
    independent: Array

    def error(self, q: Coordinates, v: Coordinates) -> Array:
        """(..., 2 nv): the tangent step (δq, δv) from the equilibrium to a state."""
        robot = self.actuation.robot
        return state_error(robot, self.q, np.zeros(robot.nv), q, robot.tangent(v))

    def __call__(self, q: Coordinates, v: Coordinates) -> Array:
        """Joint forces (..., nv) in a state."""
        return self.tau - self.actuation.spread(matvec(self.K, self.error(q, v)))

    def at_step(self, k: int, q: Coordinates, v: Coordinates) -> Array:
        """The same as a policy, for ``rollout``; k is ignored."""
        return self(q, v)

    def program(self) -> LawProgram | None:
        """The regulator for machine code, see ``rollout``; None for a class derived from it."""
        if type(self) is not Regulator:
            return None
        numbers = {"goal": self.q, "force": self.tau, **gain_parts(self.K)}
        return LawProgram("linear", numbers, columns=tuple(self.actuation.columns.tolist()))


def lqr(
    robot: Robot,
    q: Coordinates,
    Q: ArrayLike = 1.0,
    R: ArrayLike = 1.0,
    *,
    tau: Coordinates | None = None,
    actuated: Sequence[str] | None = None,
    dt: float | None = None,
    tolerance: float = 1e-6,
    passive: Passive = False,
) -> Regulator:
    """The linear-quadratic regulator of a robot at rest.

    Args:
        robot: The robot.
        q: (nq,) equilibrium; on its loops, if the robot has any.
        Q: Weight of errors (δq, δv): a number, (2 nv,) or (2 nv, 2 nv), semidefinite. With loops it
            counts errors along them, P*QP of independent ones; or it is the weight of these, (2 n,)
            or (2 n, 2 n), in the order of ``robot.minimal(q).independent``.
        R: Weight of forces: a number, (nu,) or (nu, nu), positive definite.
        tau: (nv,) forces that hold it; by default those against gravity, at the actuated joints,
            with loops the shortest ones.
        actuated: Names of the joints that have motors; by default all.
        dt: None for continuous time; or the length of a step [s], for semi-implicit Euler steps
            with constant forces.
        tolerance: Largest acceleration that counts as rest [rad/s^2, m/s^2].
        passive: As in ``robot.linearize``: springs and damping of the joints, if wanted.

    Raises:
        EquilibriumError: The robot does not stay at q under ``tau``.
        StabilityError: The actuated joints cannot reach a mode that does not decay by itself, or Q
            gives it no weight. The modes are named.
        LoopOpenError: q is not on the loops.
    """
    actuation = Actuation.of(robot, actuated)
    equilibrium = robot.configuration(q)
    if equilibrium.ndim != 1:
        raise ShapeError("q", equilibrium.shape, f"({robot.nq},)", f"robot '{robot.name}'")
    R = weight_matrix(R, actuation.size, "R", definite=True)
    hold = _holding(actuation, equilibrium, tau, tolerance, passive)
    still = np.zeros(robot.nv)
    kept = loop_states(robot, equilibrium, still) if closes_loops(robot) else None
    Q = weight_matrix(Q, 2 * robot.nv, "Q") if kept is None else reduced_weight(kept, Q, "Q")
    A, B = _linear(robot, equilibrium, hold, dt, kept, passive)
    B = B[:, actuation.columns]
    pick = np.eye(2 * robot.nv) if kept is None else kept.pick
    _reject_lost_modes(actuation, A, B, Q, pick, discrete=dt is not None)
    S, K = _riccati(A, B, Q, R, dt)
    closed = np.linalg.eigvals(A - B @ K)
    growth = closed.real if dt is None else np.abs(closed) - 1.0
    if growth.max() >= 0:
        raise StabilityError(
            "the closed loop is not stable: the problem is too badly scaled for the Riccati "
            "solver; bring the weights closer together",
            [(complex(x), "does not decay") for x in closed[growth >= 0]],
        )
    if kept is not None:
        S, K = pick.T @ S @ pick, K @ pick
    entries = np.arange(robot.nv) if kept is None else kept.entries
    values = closed[np.argsort(-growth)]
    return Regulator(actuation, equilibrium, hold, K, S, values, dt, entries)


def _holding(
    actuation: Actuation, q: Array, tau: Coordinates | None, tolerance: float, passive: Passive
) -> Array:
    """Holding forces, checked."""
    robot = actuation.robot
    hold = holding_force(actuation, q, passive) if tau is None else robot.tangent(tau)
    if hold.shape != (robot.nv,):
        raise ShapeError("tau", hold.shape, f"({robot.nv},)", f"robot '{robot.name}'")
    residual = robot.forward_dynamics(q, np.zeros(robot.nv), hold, passive=passive)
    if np.abs(residual).max() > tolerance:
        worst = robot.tangent_dict(residual)
        shown = ", ".join(
            f"{name} {np.array2string(np.asarray(x), precision=4)}"
            for name, x in worst.items()
            if np.abs(x).max() > tolerance
        )
        raise EquilibriumError(
            f"robot '{robot.name}' does not rest there: with these forces its joints accelerate by "
            f"{shown} [rad/s^2, m/s^2]. Choose a q that the actuated joints "
            f"({', '.join(actuation.names)}) can hold, or pass tau",
            residual,
        )
    return hold


def _linear(
    robot: Robot,
    q: Array,
    tau: Array,
    dt: float | None,
    kept: LoopStates | None,
    passive: Passive,
) -> tuple[Array, Array]:
    """A and B, for independent coordinates of a robot with loops."""
    still = np.zeros(robot.nv)
    if dt is None:
        at = robot.linearize(q, still, tau, passive=passive)
        if kept is None:
            return at.A, at.B
        return kept.pick @ at.A @ kept.expand, kept.pick @ at.B
    if kept is not None:
        reduced = reduced_steps(robot, q, still, tau, dt, kept, kept.entries, passive)
        return reduced.A, reduced.B
    step = robot.discretize(q, still, tau, dt, passive=passive)
    return step.A, step.B


def _riccati(A: Array, B: Array, Q: Array, R: Array, dt: float | None) -> tuple[Array, Array]:
    """S and K of the infinite horizon."""
    from scipy.linalg import LinAlgError, solve_continuous_are, solve_discrete_are

    try:
        if dt is None:
            S = solve_continuous_are(A, B, Q, R)
            return S, np.linalg.solve(R, B.T @ S)
        S = solve_discrete_are(A, B, dt * Q, dt * R)
        return S, np.linalg.solve(dt * R + B.T @ S @ B, B.T @ S @ A)
    except LinAlgError as error:
        raise StabilityError(f"the Riccati equation has no solution: {error}") from error


def _reject_lost_modes(
    actuation: Actuation, A: Array, B: Array, Q: Array, pick: Array, *, discrete: bool
) -> None:
    robot = actuation.robot
    unreached = _lost_modes(robot, A, B, pick, discrete)
    if unreached:
        raise StabilityError(
            f"robot '{robot.name}' cannot be stabilised there by {', '.join(actuation.names)}: "
            "they do not reach",
            unreached,
        )
    unseen = _lost_modes(robot, A.T, Q, pick, discrete)
    if unseen:
        raise StabilityError(
            "Q gives no weight to motions that do not decay by themselves, so the regulator would "
            "leave them alone; weigh the positions of the joints named here:",
            unseen,
        )


def _lost_modes(
    robot: Robot, A: Array, B: Array, pick: Array, discrete: bool
) -> list[tuple[complex, str]]:
    """Modes that do not decay and that B does not reach: (A - λ, B) loses rank there (Hautus)."""
    eigenvalues = np.linalg.eigvals(A)
    scale = np.abs(eigenvalues).max(initial=1.0)
    growth = np.abs(eigenvalues) - 1.0 if discrete else eigenvalues.real / scale
    eye, unit = np.eye(len(A)), B / np.linalg.norm(B)
    lost: list[tuple[complex, str]] = []
    for value in eigenvalues[(growth > -_MARGINAL_DECAY) & (eigenvalues.imag >= 0)]:
        left, singular, _ = np.linalg.svd(np.hstack([(A - value * eye) / scale, unit]))
        known = any(abs(value - other) < 1e-6 * scale for other, _ in lost)
        if singular[-1] < _RANK_TOLERANCE * singular[0] and not known:
            lost.append((complex(value), _direction(robot, pick.T @ left[:, -1])))
    return lost


def _direction(robot: Robot, mode: Array) -> str:
    """The joints that take part in a mode, most of all first."""
    share = np.abs(mode).reshape(2, robot.nv).max(axis=0)
    by_name = {name: float(np.max(x)) for name, x in robot.tangent_dict(share).items()}
    total = max(by_name.values())
    order = sorted(by_name, key=lambda name: -by_name[name])
    return ", ".join(name for name in order if by_name[name] > 0.1 * total)
