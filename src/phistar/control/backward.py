# SPDX-License-Identifier: BSD-3-Clause
"""The backward pass of iLQR and DDP: gains of every step from a linearized motion, for a batch.

Arrays have time first and the problems of the batch second. The improved forces of step k are
u + α k - K (δq, δv), with α the length of the step that a line search chooses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.control.box import masked, minimise
from phistar.control.cost import Expansion
from phistar.control.setting import times

Array = NDArray[Any]


@dataclass(frozen=True)
class Linear:
    """Motions linearized at every knot, with bounds.

    Attributes:
        A: (N, B, n, n).
        B: (N, B, n, m).
        u: (N, B, m) forces.
        lower, upper: (m,), infinite where there is no bound.
        cost: The expansion of the cost.
        bend: (N, B, n + m, n + m) second derivatives of the steps times the costate, or None.
    """

    A: Array
    B: Array
    u: Array
    lower: Array
    upper: Array
    cost: Expansion
    bend: Array | None = None

    @property
    def bounded(self) -> bool:
        """Whether any force has a bound."""
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())


@dataclass(frozen=True)
class Gains:
    """What a backward pass finds.

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

    def where(self, chosen: Array, other: Gains) -> Gains:
        """These for the chosen problems (B,), the other ones for the rest."""
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


def costates(at: Linear) -> Array:
    """(N + 1, B, n): derivatives of the cost that remains, along the motion as it is."""
    result = np.empty_like(at.cost.x)
    result[-1] = at.cost.x[-1]
    for k in range(len(at.A) - 1, -1, -1):
        result[k] = at.cost.x[k] + times(np.swapaxes(at.A[k], -1, -2), result[k + 1])
    return result


def gradient(at: Linear, costate: Array) -> Array:
    """(N, B, m): the exact derivative of the cost with respect to the forces."""
    return np.asarray(at.cost.u + times(np.swapaxes(at.B, -1, -2), costate[1:]))


def projected_norm(at: Linear, slope: Array) -> Array:
    """(B,): the largest entry of the gradient, bounds that hold left aside."""
    room_below, room_above = at.u - at.lower, at.upper - at.u
    useful = np.where(slope > 0, np.minimum(slope, room_below), np.maximum(slope, -room_above))
    return np.asarray(np.abs(useful).max(axis=(0, 2)))


def backward(at: Linear, damping: Array) -> Gains:
    """Gains from the last step to the first.

    Args:
        at: The linearized motions.
        damping: (B,) multiples of the cost's own curvature in the forces, added to shorten steps.
    """
    steps, problems, m = at.u.shape
    n = at.A.shape[-1]
    k, K = np.empty((steps, problems, m)), np.empty((steps, problems, m, n))
    slope, curve, failed = np.zeros(problems), np.zeros(problems), np.zeros(problems, dtype=bool)
    s, S = at.cost.x[-1], at.cost.xx[-1]
    for i in range(steps - 1, -1, -1):
        A, B, uu = at.A[i], at.B[i], at.cost.uu[i]
        across, back = np.swapaxes(B, -1, -2), np.swapaxes(A, -1, -2)
        pushed = across @ S
        Qx, Qu = at.cost.x[i] + times(back, s), at.cost.u[i] + times(across, s)
        Qxx, Qux, Quu = at.cost.xx[i] + back @ S @ A, pushed @ A, uu + pushed @ B
        if at.bend is not None:
            bend = at.bend[i]
            Qxx = Qxx + bend[..., :n, :n]
            Qux, Quu = Qux + bend[..., n:, :n], Quu + bend[..., n:, n:]
        damped = Quu + damping[:, None, None] * uu
        if at.bend is not None:
            lost = np.linalg.eigvalsh(damped)[..., 0] <= 1e-9 * np.linalg.eigvalsh(uu)[..., 0]
            failed |= lost
            damped = np.where(failed[:, None, None], uu, damped)
        k[i], K[i] = _step(at, i, damped, Qu, Qux)
        slope += (k[i] * Qu).sum(axis=-1)
        curve += 0.5 * (k[i] * times(Quu, k[i])).sum(axis=-1)
        turned = np.swapaxes(K[i], -1, -2)
        mixed = turned @ Qux
        s = Qx - times(turned, times(Quu, k[i]) + Qu) + times(np.swapaxes(Qux, -1, -2), k[i])
        S = Qxx + turned @ Quu @ K[i] - mixed - np.swapaxes(mixed, -1, -2)
        S = (S + np.swapaxes(S, -1, -2)) / 2
        if failed.any():
            s, S = np.where(failed[:, None], 0.0, s), np.where(failed[:, None, None], 0.0, S)
            k[i, failed], K[i, failed] = 0.0, 0.0
    return Gains(k, K, slope, curve, failed)


def _step(at: Linear, i: int, H: Array, g: Array, cross: Array) -> tuple[Array, Array]:
    """The best change of the forces of a step, and its gains; held forces have none."""
    whole = np.linalg.solve(H, np.concatenate([-g[..., None], cross], axis=-1))
    k, K = whole[..., 0], whole[..., 1:]
    if not at.bounded:
        return k, K
    lower, upper = at.lower - at.u[i], at.upper - at.u[i]
    if ((k > lower) & (k < upper)).all():
        return k, K
    k, free = minimise(H, g, lower, upper)
    return k, np.linalg.solve(masked(H, free), np.where(free[..., None], cross, 0.0))
