# SPDX-License-Identifier: BSD-3-Clause
"""A scheme as a NumPy loop over steps: where there is no machine code, and as its reference."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Self

import numpy as np

from phistar.arrays import Array
from phistar.kinematics import integrate_unchecked
from phistar.model.model import Model
from phistar.scalar.trace.state_update import StateUpdate
from phistar.sim.divergence import call_around_singular, diverged_samples, park_lost
from phistar.sim.schemes import EvaluateRates
from phistar.sim.stages import increments
from phistar.sim.stepper import Stepper, SteppingOptions, StepSpan
from phistar.sim.variables import Variable


class NumpyLoop(Stepper):
    """A loop over steps.

    Args:
        model: The robot.
        keep_going: Whether the rest of a batch continues when a sample diverges.
    """

    engine = "numpy loop"

    def __init__(self, model: Model, keep_going: bool) -> None:
        self.model = model
        self.keep_going = keep_going

    def run(self, span: StepSpan) -> bool:
        """See ``Stepper``."""
        lost = diverged_samples(span.q, span.x)
        q, x = park_lost(self.model, span.q, span.x, lost)
        with np.errstate(over="ignore", invalid="ignore"):
            self.begin(q, x)
            for k in range(span.steps):
                t = (span.first + k) * span.dt
                q, x = self.advance(q, x, span.tau_at(k), span.dt, t, lost)
                if lost.all() or (lost.any() and not self.keep_going):
                    span.store_rest(k, q, x, lost, *self.carried())
                    return False
                span.store(k, q, x, lost, *self.carried())
        return not lost.any()

    def begin(self, q: Array, x: Array) -> None:
        """Look at the state from which a span begins; lost samples are parked."""

    def carried(self) -> tuple[Array, ...]:
        """What belongs to the state besides q and x."""
        return ()

    @abstractmethod
    def advance(
        self, q: Array, x: Array, tau: Array, dt: float, t: float, lost: Array
    ) -> tuple[Array, Array]:
        """One step from time t on; samples (samples,) that diverge in it are marked as lost."""


class NumpyStepper(NumpyLoop):
    """Steps of a scheme.

    Args:
        model: The robot.
        variable: What represents the velocity.
        options: Scheme, and whether others continue when a sample diverges.
    """

    def __init__(self, model: Model, variable: Variable, options: SteppingOptions) -> None:
        super().__init__(model, options.keep_going)
        self.variable = variable
        self.scheme = options.scheme
        self.cost_ns = 2e4

    def run(self, span: StepSpan) -> bool:
        """See ``Stepper``."""
        some = self if len(span.q) == span.batch else self.of_samples(span.samples)
        return NumpyLoop.run(some, span)

    def of_samples(self, chosen: Array) -> Self:
        """The same for some samples of the batch, by number."""
        part = copy.copy(self)
        part.variable = self.variable.of_samples(chosen)
        return part

    def advance(
        self, q: Array, x: Array, tau: Array, dt: float, t: float, lost: Array
    ) -> tuple[Array, Array]:
        """See ``NumpyLoop``."""
        q, x = self.step(*park_lost(self.model, q, x, lost), tau, dt, t)
        lost |= diverged_samples(q, x)
        return q, x

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
