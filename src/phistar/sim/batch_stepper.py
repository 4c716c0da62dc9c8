# SPDX-License-Identifier: BSD-3-Clause
"""What takes the batch of a simulator through steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from phistar.arrays import Array
from phistar.errors import SampleError
from phistar.model.model import Model
from phistar.sim.divergence import diverged_samples
from phistar.sim.step import step


@dataclass
class BatchState:
    """Configurations (batch, nq), velocities (batch, nv) and impulses (batch, rows)."""

    q: Array
    v: Array
    impulses: Array


class BatchStepper(ABC):
    """Takes a batch through steps of one length.

    Attributes:
        engine: Its name: ``"machine code"``, ``"NumPy"`` or ``"step"``.
    """

    engine: str

    @abstractmethod
    def run(self, state: BatchState, tau: Array, steps: int) -> BatchState:
        """The state after some steps under the same forces (batch, nv); NaN where there is none."""


class FiniteSamplesStepper(BatchStepper):
    """Steps one by one of the samples that are finite; the others are NaN after it.

    Args:
        model: The robot.
        dt: Length of a step [s].
        keep_going: Whether samples without a state after a step are NaN rather than an error.
    """

    def __init__(self, model: Model, dt: float, keep_going: bool) -> None:
        self.model = model
        self.dt = dt
        self.keep_going = keep_going

    def run(self, state: BatchState, tau: Array, steps: int) -> BatchState:
        """See ``BatchStepper``."""
        for _ in range(steps):
            fine = ~diverged_samples(state.q, state.v, state.impulses, tau)
            ahead = BatchState(
                np.full_like(state.q, np.nan),
                np.full_like(state.v, np.nan),
                np.full_like(state.impulses, np.nan),
            )
            if fine.any():
                self._step_some(np.flatnonzero(fine), state, tau, ahead)
            state = ahead
        return state

    def _step_some(self, chosen: Array, state: BatchState, tau: Array, ahead: BatchState) -> None:
        """A step of some samples; those without a state after it are left out and stay NaN."""
        some = BatchState(state.q[chosen], state.v[chosen], state.impulses[chosen])
        try:
            found = self.step(some, tau[chosen])
        except SampleError as error:
            good = chosen[~np.broadcast_to(error.bad, len(chosen))]
            if not self.keep_going or len(good) == len(chosen):
                raise
            if good.size:
                self._step_some(good, state, tau, ahead)
            return
        ahead.q[chosen], ahead.v[chosen], ahead.impulses[chosen] = (
            found.q,
            found.v,
            found.impulses,
        )

    @abstractmethod
    def step(self, state: BatchState, tau: Array) -> BatchState:
        """A step of finite samples."""


class PlainStepper(FiniteSamplesStepper):
    """Steps of a scheme without contacts and joint physics.

    Args:
        model, dt, keep_going: As of ``FiniteSamplesStepper``.
        scheme: As of ``robot.step``.
    """

    engine = "step"

    def __init__(self, model: Model, dt: float, keep_going: bool, scheme: str) -> None:
        super().__init__(model, dt, keep_going)
        self.scheme = scheme

    def step(self, state: BatchState, tau: Array) -> BatchState:
        """See ``FiniteSamplesStepper``."""
        q, v = step(self.model, state.q, state.v, tau, self.dt, self.scheme, passive=False)
        return BatchState(q, v, state.impulses)
