# SPDX-License-Identifier: BSD-3-Clause
"""A scheme as a NumPy loop over steps: where there is no machine code, and as its reference."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from phistar.arrays import Array
from phistar.kinematics import integrate_unchecked
from phistar.model.model import Model
from phistar.scalar.trace.state_update import StateUpdate
from phistar.sim.divergence import call_around_singular, diverged_samples, park_lost
from phistar.sim.schemes import EvaluateRates, Scheme
from phistar.sim.stages import increments
from phistar.sim.variables import Variable


class NumpyStepper:
    """Steps of a scheme.

    Attributes:
        engine: Its name in results.
        failure_text: Message for a diverged sample.
        piece: Steps in a call, if their number must not depend on the batch.
    """

    engine = "numpy loop"
    failure_text = "diverges: not finite"
    piece: int | None = None

    def __init__(
        self, model: Model, variable: Variable, scheme: Scheme, keep_going: bool = False
    ) -> None:
        """Args:
        model: The robot.
        variable: What represents the velocity.
        scheme: Instructions of a step.
        keep_going: Whether the rest of a batch continues when a sample diverges.
        """
        self.model = model
        self.variable = variable
        self.scheme = scheme
        self.keep_going = keep_going
        self.cost_ns = 2e4
        self._taken = 0

    def run(
        self,
        q: Array,
        x: Array,
        tau: Array,
        dt: float,
        steps: int,
        every: int,
        results: tuple[Array, Array],
    ) -> bool:
        """Fill the results; diverged samples are NaN from there on. Time goes on from call to call.

        Args:
            q: (batch, nq) at the beginning.
            x: (batch, nv).
            tau: (batch, nv), or (steps, batch, nv): joint forces held during each step.
            dt: [s].
            steps: Number of steps.
            every: Steps from one result to the next; divides ``steps``.
            results: q and x after each ``every`` steps, (steps / every, batch, n).

        Returns:
            Whether all numbers are finite.
        """
        lost = diverged_samples(q, x)
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(steps):
                tau_k = tau if tau.ndim == 2 else tau[k]
                t = self._taken * dt
                q, x = self.step(*park_lost(self.model, q, x, lost), tau_k, dt, t)
                self._taken += 1
                lost |= diverged_samples(q, x)
                if lost.all() or (lost.any() and not self.keep_going):
                    for result, state in zip(results, (q, x), strict=True):
                        result[k // every :] = state
                        result[k // every :, lost] = np.nan
                    return False
                if (k + 1) % every == 0:
                    for result, state in zip(results, (q, x), strict=True):
                        result[k // every] = state
                        result[k // every][lost] = np.nan
        return not lost.any()

    def step(self, q: Array, x: Array, tau: Array, dt: float, t: float) -> tuple[Array, Array]:
        """One step from time t on; samples that diverge in it are NaN after it."""
        times = {0: t}
        stages = {0: (q, x)}
        velocities: dict[int, Array] = {}
        rates: dict[int, Array] = {}
        lost = np.zeros(len(q), dtype=bool)
        for instruction in self.scheme.instructions:
            if isinstance(instruction, EvaluateRates):
                state = stages[instruction.stage]
                if instruction.velocity_only:
                    velocities[instruction.stage] = self.variable.velocity(*state)
                else:
                    rate = partial(self.variable.rate_at, tau=tau, t=times[instruction.stage])
                    results = call_around_singular(self.model, rate, *state, self.keep_going)
                    velocities[instruction.stage], rates[instruction.stage] = results
            else:
                stage = self._next_stage(instruction.update, (q, x), velocities, rates, dt, lost)
                stages[instruction.stage] = stage
                share = sum(weight for _, weight in instruction.update.rate_weights)
                times[instruction.stage] = t + share * dt
        if lost.any():
            for array in stages[0]:
                array[lost] = np.nan
        return stages[0]

    def _next_stage(
        self,
        update: StateUpdate,
        start: tuple[Array, Array],
        velocities: Mapping[int, Array],
        rates: Mapping[int, Array],
        dt: float,
        lost: Array,
    ) -> tuple[Array, Array]:
        """A stage; diverged samples stay at the start and are marked as lost."""
        q, x = start
        step, change = increments(self.model, update, x, velocities, rates, dt)
        x_next = x + change
        diverged = diverged_samples(step, x_next)
        if diverged.any():
            step = np.where(diverged[:, None], 0.0, step)
        q_next = integrate_unchecked(self.model, q, step) if update.velocities else np.array(q)
        diverged |= diverged_samples(q_next)
        if diverged.any():
            lost |= diverged
            chosen = diverged[:, None]
            q_next, x_next = np.where(chosen, q, q_next), np.where(chosen, x, x_next)
        return q_next, x_next
