# SPDX-License-Identifier: BSD-3-Clause
"""Steps of the length that a tolerance asks for: the Dormand-Prince pair of orders 5 and 4.

Stages are exponential coordinates u around the state where a step begins, q ⊕ u, so that the pair
has its orders on any joints (H. Munthe-Kaas 1999). Coefficients of the pair: J. R. Dormand and
P. J. Prince, J. Comput. Appl. Math. 6 (1980); of its interpolant of fourth order: L. F. Shampine,
Math. Comput. 46 (1986). A batch takes common steps; its worst sample decides on their length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phistar.errors import ArgumentError
from phistar.model.configuration import integrate
from phistar.model.model import Model
from phistar.sim.manifold import coordinate_rate
from phistar.sim.variables import Variable

Array = NDArray[Any]

STAGES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
"""Weights of earlier rates in each stage; the last stage is the result."""

ERROR = np.array([71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
"""Weights of rates in the difference of the two results."""

BETWEEN = np.array(
    [
        [1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
        [0, 0, 0, 0],
        [0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
        [0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
        [0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
        [0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
        [0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
    ]
)
"""Weights of rates (7, 4) after a part s of a step, as polynomials s, s², s³, s⁴."""

SAFETY, LEAST, MOST = 0.9, 0.2, 5.0
"""Steps are this much shorter than what the tolerance asks for, and change by these factors."""

SHORTEST = 1e-13
"""Of the duration: steps below it do not move the time any more."""


@dataclass(frozen=True)
class Knots:
    """Accepted steps.

    Attributes:
        t: (N + 1,) times.
        q: (N + 1, batch, nq).
        x: (N + 1, batch, nv).
        rates: (N, 7, 2, batch, nv) rates of u and x at the stages of each step.
        rejected: How many steps were taken back.
    """

    t: Array
    q: Array
    x: Array
    rates: Array
    rejected: int

    def between(self, model: Model, times: Array) -> tuple[Array, Array]:
        """q and x at times (n,)."""
        left = np.clip(np.searchsorted(self.t, times, side="right") - 1, 0, len(self.t) - 2)
        h = self.t[left + 1] - self.t[left]
        s = (times - self.t[left]) / h
        powers = s[:, None] ** np.arange(1, 5)
        weights = h[:, None] * (powers @ BETWEEN.T)
        u, dx = np.moveaxis(np.einsum("ni,nikbv->nkbv", weights, self.rates[left]), 1, 0)
        return integrate(model, self.q[left], u), self.x[left] + dx


class Adaptive:
    """Steps of a state under constant joint forces."""

    def __init__(self, model: Model, variable: Variable, tau: Array, tolerance: float) -> None:
        self.model = model
        self.variable = variable
        self.tau = tau
        self.tolerance = tolerance

    def run(
        self,
        q: Array,
        x: Array,
        duration: float,
        step: float | None,
        advance: Callable[[float], None],
    ) -> Knots:
        """All steps.

        Args:
            q: (batch, nq).
            x: (batch, nv).
            duration: How long [s].
            step: Length of the first one; default: by the size of the rates.
            advance: Is told the time that each accepted step makes good.

        Raises:
            ArgumentError: Steps would have to be shorter than time can tell.
        """
        v, rate = self.variable.rate(q, x, self.tau)
        h = min(duration, self._first(v, x, rate) if step is None else step)
        times, qs, xs, rates = [0.0], [q], [x], []
        rejected = 0
        while times[-1] < duration:
            h = min(h, duration - times[-1])
            if h < SHORTEST * duration:
                raise ArgumentError(
                    f"the motion of robot '{self.model.name}' needs steps shorter than {h:.3g} s "
                    f"at {times[-1]:.6g} s for tolerance {self.tolerance:g}; it is not smooth, or "
                    "runs away"
                )
            with np.errstate(over="ignore", invalid="ignore"):
                ends, stages, last = self._step(qs[-1], xs[-1], v, rate, h)
                error = self._error(h, stages, xs[-1], ends[1])
            if not error <= 1.0:
                rejected += 1
                shorter = SAFETY * error**-0.2 if np.isfinite(error) else LEAST
                h *= max(LEAST, shorter)
                continue
            # The last step ends where it should, to the bit.
            rest = duration - times[-1]
            times.append(duration if h >= rest else times[-1] + h)
            qs.append(ends[0])
            xs.append(ends[1])
            rates.append(stages)
            v, rate = last
            advance(h)
            h *= min(MOST, SAFETY * error**-0.2) if error > 0 else MOST
        return Knots(np.array(times), np.stack(qs), np.stack(xs), np.stack(rates), rejected)

    def _first(self, v: Array, x: Array, rate: Array) -> float:
        """A step in which the state changes by a hundredth."""
        fast = max(np.abs(v).max(initial=0.0), np.abs(rate).max(initial=0.0))
        size = max(1.0, np.abs(x).max(initial=0.0))
        return float(0.01 * size / fast) if fast > 0 else 1e-3

    def _step(
        self, q: Array, x: Array, v: Array, rate: Array, h: float
    ) -> tuple[tuple[Array, Array], Array, tuple[Array, Array]]:
        """The state after a step, the rates (7, 2, batch, nv) of its stages, v and ẋ there."""
        stages = np.zeros((len(STAGES), 2, *x.shape))
        stages[0] = v, rate
        place, there = q, x
        for i, weights in enumerate(STAGES[1:], start=1):
            u, dx = h * np.einsum("i,ikbv->kbv", weights, stages[:i])
            place, there = integrate(self.model, q, u), x + dx
            v, rate = self.variable.rate(place, there, self.tau)
            stages[i] = coordinate_rate(self.model, u, v), rate
        return (place, there), stages, (v, rate)

    def _error(self, h: float, stages: Array, x: Array, end: Array) -> float:
        """The error of a step as a part of what is tolerated; worst of the batch."""
        u, dx = h * np.einsum("i,ikbv->kbv", ERROR, stages)
        size = np.maximum(np.abs(x), np.abs(end)).max(axis=-1, keepdims=True)
        parts = np.concatenate([u, dx / np.maximum(1.0, size)], axis=-1) / self.tolerance
        return float(np.sqrt((parts * parts).mean(axis=-1)).max())
