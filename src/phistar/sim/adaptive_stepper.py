# SPDX-License-Identifier: BSD-3-Clause
"""Steps whose length follows from a tolerance: the Dormand-Prince pair of orders 5 and 4.

Stages are exponential coordinates u around the state where a step begins, q ⊕ u, so that the pair
has its orders on any joints (H. Munthe-Kaas 1999). Coefficients of the pair: J. R. Dormand and P.
J. Prince, J. Comput. Appl. Math. 6 (1980); of its interpolant of fourth order: L. F. Shampine,
Math. Comput. 46 (1986). A batch takes common steps, whose length its worst sample decides. With
loops each step that is accepted ends with a projection onto them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from phistar.arrays import Array
from phistar.errors import DivergenceError
from phistar.model.configuration import integrate_unchecked
from phistar.model.model import Model
from phistar.sim.divergence import (
    call_around_singular,
    diverged_samples,
    map_finite_samples,
    park_lost,
)
from phistar.sim.manifold import coordinate_rate
from phistar.sim.variables import Variable

STAGE_WEIGHTS = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
"""Weights of earlier rates in each stage; the last stage is the result."""

ERROR_WEIGHTS = np.array(
    [71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]
)
"""Weights of rates in the difference of the two results."""

INTERPOLANT_WEIGHTS = np.array(
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
"""Weights of rates (7, 4) after a fraction s of a step, as polynomials s, s², s³, s⁴."""

SAFETY, MIN_STEP_FACTOR, MAX_STEP_FACTOR = 0.9, 0.2, 5.0
"""Safety factor of the step that meets the tolerance, and limits of the change of the step."""

MIN_STEP_SHARE = 1e-13
"""Shortest step relative to the duration; shorter ones do not change the time in float64."""


@dataclass(frozen=True)
class AcceptedSteps:
    """Accepted steps.

    Attributes:
        t: (N + 1,) times.
        q: (N + 1, batch, nq).
        x: (N + 1, batch, nv).
        rates: (N, 7, 2, batch, nv) rates of u and x at the stages of each step.
        rejected: Number of rejected steps.
    """

    t: Array
    q: Array
    x: Array
    rates: Array
    rejected: int

    def interpolate(self, model: Model, times: Array) -> tuple[Array, Array]:
        """q and x at times (n,)."""
        left = np.clip(np.searchsorted(self.t, times, side="right") - 1, 0, len(self.t) - 2)
        h = self.t[left + 1] - self.t[left]
        s = (times - self.t[left]) / h
        powers = s[:, None] ** np.arange(1, 5)
        weights = h[:, None] * (powers @ INTERPOLANT_WEIGHTS.T)
        u, dx = np.moveaxis(np.einsum("ni,nikbv->nkbv", weights, self.rates[left]), 1, 0)
        q = map_finite_samples(
            model, lambda start, step: integrate_unchecked(model, start, step), self.q[left], u
        )
        return q, self.x[left] + dx


class AdaptiveStepper:
    """Steps of a state under constant joint forces."""

    def __init__(
        self,
        model: Model,
        variable: Variable,
        tau: Array,
        tolerance: float,
        batch: tuple[int, ...] = (),
        keep_going: bool = False,
    ) -> None:
        """Args:
        model: The robot.
        variable: What represents the velocity.
        tau: (batch, nv) joint forces.
        tolerance: Of a step.
        batch: The user's batch axes, for messages.
        keep_going: Whether the rest of a batch continues when a sample diverges.
        """
        self.model = model
        self.variable = variable
        self.tau = tau
        self.tolerance = tolerance
        self.batch = batch
        self.keep_going = keep_going

    def run(
        self,
        q: Array,
        x: Array,
        duration: float,
        step: float | None,
        advance: Callable[[float], None],
    ) -> AcceptedSteps:
        """All steps; a sample whose steps would have to vanish is NaN from there on.

        Args:
            q: (batch, nq).
            x: (batch, nv).
            duration: [s].
            step: Length of the first step; default: by the size of the rates.
            advance: Called with the length of each accepted step.

        Raises:
            DivergenceError: Steps would have to be shorter than the resolution of the time.
        """
        lost = diverged_samples(q, x)
        self._report_diverged(lost, 0.0, 0.0, 0)
        times, qs, xs, rates = [0.0], [q], [x], []
        q, x = park_lost(self.model, q, x, lost)
        v, rate = self._rate(q, x, 0.0)
        h = min(duration, self._first_step(v, x, rate, lost) if step is None else step)
        rejected = 0
        while times[-1] < duration:
            h = min(h, duration - times[-1])
            with np.errstate(over="ignore", invalid="ignore"):
                (q_next, x_next), stages, last = self._step(q, x, v, rate, times[-1], h)
                errors = np.where(lost, 0.0, self._errors(h, stages, x, x_next))
            if self.variable.settles and errors.max(initial=0.0) <= 1.0:
                q_next, x_next, last = self._settled(q_next, x_next, times[-1] + h, lost)
                errors = np.where(lost | ~diverged_samples(q_next, x_next), errors, np.inf)
            error = float(errors.max(initial=0.0))
            if not error <= 1.0:
                rejected += 1
                shorter = SAFETY * error**-0.2 if np.isfinite(error) else MIN_STEP_FACTOR
                h *= max(MIN_STEP_FACTOR, shorter)
                if h < MIN_STEP_SHARE * duration:
                    self._report_diverged(~(errors <= 1.0), h, times[-1], len(times))
                    lost |= ~(errors <= 1.0)
                    q, x = park_lost(self.model, q, x, lost)
                    v, rate = self._rate(q, x, times[-1])
                    h = duration - times[-1] if lost.all() else self._first_step(v, x, rate, lost)
                continue
            # The last step ends exactly at the duration.
            remaining = duration - times[-1]
            times.append(duration if h >= remaining else times[-1] + h)
            if lost.any():
                stages[:, :, lost] = np.nan
            chosen = lost[:, None]
            qs.append(np.where(chosen, np.nan, q_next))
            xs.append(np.where(chosen, np.nan, x_next))
            rates.append(stages)
            (q, x), (v, rate) = (q_next, x_next), last
            if lost.any():
                q, x = park_lost(self.model, q, x, lost)
                v, rate = self._rate(q, x, times[-1])
            advance(h)
            h *= min(MAX_STEP_FACTOR, SAFETY * error**-0.2) if error > 0 else MAX_STEP_FACTOR
        return AcceptedSteps(np.array(times), np.stack(qs), np.stack(xs), np.stack(rates), rejected)

    def _settled(
        self, q: Array, x: Array, t: float, lost: Array
    ) -> tuple[Array, Array, tuple[Array, Array]]:
        """A state after a step where it belongs, NaN where that is nowhere, with v and ẋ there."""
        q, x = (np.where(lost[:, None], np.nan, each) for each in (q, x))
        q, x = self.variable.settle(q, x, t)
        away = diverged_samples(q, x)
        return q, x, self._rate(*park_lost(self.model, q, x, away), t)

    def _report_diverged(self, diverged: Array, h: float, t: float, knot: int) -> None:
        """Raise, unless the other samples continue."""
        if self.keep_going or not diverged.any():
            return
        sample = int(np.argmax(diverged))
        index = tuple(int(i) for i in np.unravel_index(sample, self.batch)) if self.batch else ()
        where = f", sample {list(index)}," if self.batch else ""
        raise DivergenceError(
            f"the motion of robot '{self.model.name}'{where} needs steps shorter than {h:.3g} s "
            f"at {t:.6g} s for tolerance {self.tolerance:g}; it is not smooth, or runs away",
            index,
            knot,
            t,
        )

    def _rate(self, q: Array, x: Array, t: float) -> tuple[Array, Array]:
        with np.errstate(over="ignore", invalid="ignore"):
            rate = partial(self.variable.rate_at, tau=self.tau, t=t)
            v, change = call_around_singular(self.model, rate, q, x, self.keep_going)
        return v, change

    def _first_step(self, v: Array, x: Array, rate: Array, lost: Array) -> float:
        """Length of a step in which the state changes by about a hundredth."""
        some = ~(lost | diverged_samples(v, rate))
        fast = max(np.abs(v[some]).max(initial=0.0), np.abs(rate[some]).max(initial=0.0))
        size = max(1.0, np.abs(x[some]).max(initial=0.0))
        return float(0.01 * size / fast) if fast > 0 else 1e-3

    def _step(
        self, q: Array, x: Array, v: Array, rate: Array, t: float, h: float
    ) -> tuple[tuple[Array, Array], Array, tuple[Array, Array]]:
        """State after a step, rates (7, 2, batch, nv) of its stages, v and ẋ after the step.

        Diverged samples stay where they are, and their rates are NaN.
        """
        stages = np.zeros((len(STAGE_WEIGHTS), 2, *x.shape))
        stages[0] = v, rate
        q_stage, x_stage = q, x
        for i, weights in enumerate(STAGE_WEIGHTS[1:], start=1):
            u, dx = h * np.einsum("i,ikbv->kbv", weights, stages[:i])
            diverged = diverged_samples(u, x + dx)
            if diverged.any():
                u, dx = (np.where(diverged[:, None], 0.0, each) for each in (u, dx))
            q_stage, x_stage = integrate_unchecked(self.model, q, u), x + dx
            v, rate = self._rate(q_stage, x_stage, t + sum(weights) * h)
            stages[i] = coordinate_rate(self.model, u, v, terms=1), rate
            stages[i][:, diverged] = np.nan
        return (q_stage, x_stage), stages, (v, rate)

    def _errors(self, h: float, stages: Array, x: Array, end: Array) -> Array:
        """(batch,): errors of a step relative to the tolerance; infinite where not a number."""
        u, dx = h * np.einsum("i,ikbv->kbv", ERROR_WEIGHTS, stages)
        size = np.maximum(np.abs(x), np.abs(end)).max(axis=-1, keepdims=True, initial=0.0)
        scaled = np.concatenate([u, dx / np.maximum(1.0, size)], axis=-1) / self.tolerance
        if not scaled.shape[-1]:
            return np.zeros(len(scaled))
        errors = np.sqrt((scaled * scaled).mean(axis=-1))
        return np.where(np.isnan(errors), np.inf, errors)
