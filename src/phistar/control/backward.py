# SPDX-License-Identifier: BSD-3-Clause
"""The backward pass of iLQR and DDP: gains of every step from a linearized motion, for a batch.

Arrays have time first and the problems of the batch second. The improved forces of step k are
u + α k - K (δq, δv), with α the length of the step that a line search chooses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from phistar.arrays import Array
from phistar.control.actuation import matvec
from phistar.control.box_qp import mask_held, solve_box_qp
from phistar.control.cost import Expansion


@dataclass(frozen=True)
class LinearizedSteps:
    """Motions linearized at every knot, with bounds.

    Attributes:
        A: (N, B, n, n).
        B: (N, B, n, m).
        u: (N, B, m) forces.
        lower, upper: (m,), infinite where there is no bound.
        cost: The expansion of the cost.
        dynamics_hessian: (N, B, n + m, n + m) second derivatives of the steps times the costate, or
            None.
        pick: (N, B, n, 2 nv) independent entries of errors (δq, δv), on the loops of a robot that
            has some; else None.
    """

    A: Array
    B: Array
    u: Array
    lower: Array
    upper: Array
    cost: Expansion
    dynamics_hessian: Array | None = None
    pick: Array | None = None

    @property
    def bounded(self) -> bool:
        """Whether any force has a bound."""
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())


@dataclass(frozen=True)
class Gains:
    """Result of a backward pass.

    Attributes:
        k: (N, B, m) changes of the forces.
        K: (N, B, m, n) gains.
        slope, curve: (B,) the cost changes by α slope + α² curve, to second order.
        failed: (B,) no minimum: a second derivative is not positive.
    """

    k: Array
    K: Array
    slope: Array
    curve: Array
    failed: Array

    def of_whole_states(self, pick: Array | None) -> Gains:
        """The same for errors (δq, δv), of which ``pick`` (N, B, n, 2 nv) takes those at hand."""
        return self if pick is None else replace(self, K=self.K @ pick)

    def where(self, chosen: Array, other: Gains) -> Gains:
        """These for the chosen problems (B,), ``other`` elsewhere."""
        return Gains(
            np.where(chosen[:, None], self.k, other.k),
            np.where(chosen[:, None, None], self.K, other.K),
            *(
                np.where(chosen, mine, yours)
                for mine, yours in (
                    (self.slope, other.slope),
                    (self.curve, other.curve),
                    (self.failed, other.failed),
                )
            ),
        )


def costates(at: LinearizedSteps) -> Array:
    """(N + 1, B, n): derivatives of the remaining cost along the nominal motion."""
    result = np.empty_like(at.cost.x)
    result[-1] = at.cost.x[-1]
    for k in range(len(at.A) - 1, -1, -1):
        result[k] = at.cost.x[k] + matvec(np.swapaxes(at.A[k], -1, -2), result[k + 1])
    return result


def gradient(at: LinearizedSteps, costate: Array) -> Array:
    """(N, B, m): the exact derivative of the cost with respect to the forces."""
    return np.asarray(at.cost.u + matvec(np.swapaxes(at.B, -1, -2), costate[1:]))


def projected_norm(at: LinearizedSteps, slope: Array) -> Array:
    """(B,): the largest entry of the gradient projected on the bounds."""
    below, above = at.u - at.lower, at.upper - at.u
    projected = np.where(slope > 0, np.minimum(slope, below), np.maximum(slope, -above))
    return np.asarray(np.abs(projected).max(axis=(0, 2)))


def backward(at: LinearizedSteps, damping: Array) -> Gains:
    """Gains from the last step to the first.

    Args:
        at: The linearized motions.
        damping: (B,) multiples of the cost's Hessian in the forces, added to shorten steps.
    """
    steps, problems, m = at.u.shape
    n = at.A.shape[-1]
    k, K = np.empty((steps, problems, m)), np.empty((steps, problems, m, n))
    slope, curve, failed = np.zeros(problems), np.zeros(problems), np.zeros(problems, dtype=bool)
    s, S = at.cost.x[-1], at.cost.xx[-1]
    for i in range(steps - 1, -1, -1):
        A, B, uu = at.A[i], at.B[i], at.cost.uu[i]
        B_T, A_T = np.swapaxes(B, -1, -2), np.swapaxes(A, -1, -2)
        B_T_S = B_T @ S
        Qx, Qu = at.cost.x[i] + matvec(A_T, s), at.cost.u[i] + matvec(B_T, s)
        Qxx, Qux, Quu = at.cost.xx[i] + A_T @ S @ A, B_T_S @ A, uu + B_T_S @ B
        if at.dynamics_hessian is not None:
            dynamics_hessian = at.dynamics_hessian[i]
            Qxx = Qxx + dynamics_hessian[..., :n, :n]
            Qux, Quu = Qux + dynamics_hessian[..., n:, :n], Quu + dynamics_hessian[..., n:, n:]
        damped = Quu + damping[:, None, None] * uu
        if at.dynamics_hessian is not None:
            indefinite = np.linalg.eigvalsh(damped)[..., 0] <= 1e-9 * np.linalg.eigvalsh(uu)[..., 0]
            failed |= indefinite
            damped = np.where(failed[:, None, None], uu, damped)
        k[i], K[i] = _step(at, i, damped, Qu, Qux)
        slope += (k[i] * Qu).sum(axis=-1)
        curve += 0.5 * (k[i] * matvec(Quu, k[i])).sum(axis=-1)
        K_T = np.swapaxes(K[i], -1, -2)
        mixed = K_T @ Qux
        s = Qx - matvec(K_T, matvec(Quu, k[i]) + Qu) + matvec(np.swapaxes(Qux, -1, -2), k[i])
        S = Qxx + K_T @ Quu @ K[i] - mixed - np.swapaxes(mixed, -1, -2)
        S = (S + np.swapaxes(S, -1, -2)) / 2
        if failed.any():
            s, S = np.where(failed[:, None], 0.0, s), np.where(failed[:, None, None], 0.0, S)
            k[i, failed], K[i, failed] = 0.0, 0.0
    return Gains(k, K, slope, curve, failed)


def _step(at: LinearizedSteps, i: int, H: Array, g: Array, cross: Array) -> tuple[Array, Array]:
    """The best change of the forces of a step, and its gains; zero for forces at a bound."""
    solution = np.linalg.solve(H, np.concatenate([-g[..., None], cross], axis=-1))
    k, K = solution[..., 0], solution[..., 1:]
    if not at.bounded:
        return k, K
    lower, upper = at.lower - at.u[i], at.upper - at.u[i]
    if ((k > lower) & (k < upper)).all():
        return k, K
    k, free = solve_box_qp(H, g, lower, upper)
    return k, np.linalg.solve(mask_held(H, free), np.where(free[..., None], cross, 0.0))
