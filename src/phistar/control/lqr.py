# SPDX-License-Identifier: BSD-3-Clause
"""Linear-quadratic regulators at an equilibrium, in continuous time or in steps.

The regulator minimises ∫ (e·Q e + u·R u) dt of the linearized robot, with e = (δq, δv) the error of
the state as a tangent vector and u added to the holding forces. Weights are per second in discrete
time too (each step counts dt Q and dt R), so a regulator in short steps is nearly the continuous
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.control.actuation import Actuation, matvec, state_error, weight_matrix
from phistar.errors import EquilibriumError, ShapeError, StabilityError
from phistar.model.configuration import Coordinates
from phistar.reprs import one_line_repr
from phistar.robot import Robot

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
        K: (nu, 2 nv) gains; the driven joints get tau - K (δq, δv).
        S: (2 nv, 2 nv); e·S e is the cost of the return from an error e, to second order.
        eigenvalues: (2 nv,) of the closed loop, slowest first: exponents [1/s], or factors per
            step.
        dt: Length of a step [s]; None in continuous time.
    """

    actuation: Actuation
    q: Array
    tau: Array
    K: Array
    S: Array
    eigenvalues: Array
    dt: float | None

    def error(self, q: Coordinates, v: Coordinates) -> Array:
        """(..., 2 nv): the tangent step (δq, δv) from the equilibrium to a state."""
        robot = self.actuation.robot
        return state_error(robot, self.q, np.zeros(robot.nv), q, robot.tangent(v))

    def __call__(self, q: Coordinates, v: Coordinates) -> Array:
        """Joint forces (..., nv) in a state."""
        return self.tau - self.actuation.spread(matvec(self.K, self.error(q, v)))


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
) -> Regulator:
    """The linear-quadratic regulator of a robot at rest.

    Args:
        robot: The robot.
        q: (nq,) equilibrium.
        Q: Weight of errors (δq, δv): a number, (2 nv,) or (2 nv, 2 nv), semidefinite.
        R: Weight of forces: a number, (nu,) or (nu, nu), positive definite.
        tau: (nv,) forces that hold it; by default those against gravity, at the actuated joints.
        actuated: Names of the joints that have motors; by default all.
        dt: None for continuous time; or the length of a step [s], for semi-implicit Euler steps
            with constant forces.
        tolerance: Largest acceleration that counts as rest [rad/s^2, m/s^2].

    Raises:
        EquilibriumError: The robot does not stay at q under ``tau``.
        StabilityError: The actuated joints cannot reach a mode that does not decay by itself, or Q
            gives it no weight. The modes are named.
    """
    actuation = Actuation.of(robot, actuated)
    equilibrium = robot.configuration(q)
    if equilibrium.ndim != 1:
        raise ShapeError("q", equilibrium.shape, f"({robot.nq},)", f"robot '{robot.name}'")
    Q = weight_matrix(Q, 2 * robot.nv, "Q")
    R = weight_matrix(R, actuation.size, "R", definite=True)
    hold = _holding(actuation, equilibrium, tau, tolerance)
    A, B = _linear(robot, equilibrium, hold, dt)
    B = B[:, actuation.columns]
    _reject_lost_modes(actuation, A, B, Q, discrete=dt is not None)
    S, K = _riccati(A, B, Q, R, dt)
    closed = np.linalg.eigvals(A - B @ K)
    growth = closed.real if dt is None else np.abs(closed) - 1.0
    if growth.max() >= 0:
        raise StabilityError(
            "the closed loop is not stable: the problem is too badly scaled for the Riccati "
            "solver; bring the weights closer together",
            [(complex(x), "does not decay") for x in closed[growth >= 0]],
        )
    return Regulator(actuation, equilibrium, hold, K, S, closed[np.argsort(-growth)], dt)


def _holding(actuation: Actuation, q: Array, tau: Coordinates | None, tolerance: float) -> Array:
    """Holding forces, checked."""
    robot = actuation.robot
    if tau is None:
        hold = actuation.spread(actuation.pick(robot.gravity_force(q)))
    else:
        hold = robot.tangent(tau)
    if hold.shape != (robot.nv,):
        raise ShapeError("tau", hold.shape, f"({robot.nv},)", f"robot '{robot.name}'")
    residual = robot.forward_dynamics(q, np.zeros(robot.nv), hold)
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


def _linear(robot: Robot, q: Array, tau: Array, dt: float | None) -> tuple[Array, Array]:
    still = np.zeros(robot.nv)
    if dt is None:
        continuous = robot.linearize(q, still, tau)
        return continuous.A, continuous.B
    step = robot.discretize(q, still, tau, dt)
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
    actuation: Actuation, A: Array, B: Array, Q: Array, *, discrete: bool
) -> None:
    robot = actuation.robot
    unreached = _lost_modes(robot, A, B, discrete)
    if unreached:
        raise StabilityError(
            f"robot '{robot.name}' cannot be stabilised there by {', '.join(actuation.names)}: "
            "they do not reach",
            unreached,
        )
    unseen = _lost_modes(robot, A.T, Q, discrete)
    if unseen:
        raise StabilityError(
            "Q gives no weight to motions that do not decay by themselves, so the regulator would "
            "leave them alone; weigh the positions of the joints named here:",
            unseen,
        )


def _lost_modes(robot: Robot, A: Array, B: Array, discrete: bool) -> list[tuple[complex, str]]:
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
            lost.append((complex(value), _direction(robot, left[:, -1])))
    return lost


def _direction(robot: Robot, mode: Array) -> str:
    """The joints that take part in a mode, most of all first."""
    share = np.abs(mode).reshape(2, robot.nv).max(axis=0)
    by_name = {name: float(np.max(x)) for name, x in robot.tangent_dict(share).items()}
    total = max(by_name.values())
    order = sorted(by_name, key=lambda name: -by_name[name])
    return ", ".join(name for name in order if by_name[name] > 0.1 * total)
