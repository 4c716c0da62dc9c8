# SPDX-License-Identifier: BSD-3-Clause
"""What takes steps of fixed length, and how all of it is called: with a span of steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from phistar.arrays import Array, DType
from phistar.sim.schemes import Scheme

if TYPE_CHECKING:
    from phistar.sim.law_calls import LawProgram

DOUBLE = np.dtype(np.float64)

T = TypeVar("T")


@dataclass(frozen=True)
class SteppingOptions:
    """How steps are to be taken.

    Attributes:
        scheme: Instructions of a step.
        work: Steps times samples; many are worth waiting for machine code.
        threads: Largest number, of machine code; None: by the work.
        dtype: float64 or float32: precision of machine code.
        keep_going: Whether the rest of a batch continues when a sample diverges.
        law: Gives the joint forces of each step from its state, in machine code; spans then have
            rows of its reference in the place of forces, and keep the forces as a third result.
    """

    scheme: Scheme
    work: int = 1
    threads: int | None = None
    dtype: DType = DOUBLE
    keep_going: bool = False
    law: LawProgram | None = None


@dataclass(frozen=True)
class StepSpan:
    """Steps that are to be taken, of all samples of a batch or some of them.

    Attributes:
        q: (samples, nq) at the beginning.
        x: (samples, nv) the variable for the velocity.
        tau: (samples, nv), or (steps, samples, nv): joint forces held during each step; under a
            law (..., n) its reference.
        dt: [s].
        steps: Number of steps.
        every: Steps from one result to the next; divides ``steps``.
        results: q and x after each ``every`` steps, (steps / every, samples, n), to be filled;
            under a law the joint forces of the last step before, too, and where impulses are given
            those of that step.
        samples: (samples,) their numbers in the batch.
        batch: Samples of the whole batch.
        first: Steps that were taken before.
        impulses: (samples, rows) of the step before, of steppers that do not keep them.
    """

    q: Array
    x: Array
    tau: Array
    dt: float
    steps: int
    every: int
    results: tuple[Array, ...]
    samples: Array
    batch: int
    first: int = 0
    impulses: Array | None = None

    @classmethod
    def of_batch(
        cls,
        state: tuple[Array, Array],
        tau: Array,
        dt: float,
        steps: int,
        every: int,
        results: tuple[Array, ...],
        first: int = 0,
    ) -> StepSpan:
        """Steps of a whole batch from q and x."""
        batch = len(state[0])
        return cls(*state, tau, dt, steps, every, results, np.arange(batch), batch, first)

    def tau_at(self, step: int) -> Array:
        """(samples, nv)."""
        return self.tau if self.tau.ndim == 2 else self.tau[step]

    def on_some(self, chosen: Array, take: Callable[[StepSpan], T]) -> T:
        """What ``take`` gives for some of the samples, by place; their results come to ours."""
        if len(chosen) == len(self.q):
            return take(self)
        places = tuple(np.empty((len(r), len(chosen), r.shape[-1]), r.dtype) for r in self.results)
        part = replace(
            self,
            q=self.q[chosen],
            x=self.x[chosen],
            tau=self.tau[..., chosen, :],
            results=places,
            samples=self.samples[chosen],
            impulses=None if self.impulses is None else self.impulses[chosen],
        )
        found = take(part)
        for result, place in zip(self.results, places, strict=True):
            result[:, chosen] = place
        return found

    def store(self, step: int, q: Array, x: Array, lost: Array, *more: Array) -> None:
        """Put a state after a step where it belongs, if it is a result; NaN where it is lost."""
        if (step + 1) % self.every:
            return
        for result, state in zip(self.results, (q, x, *more), strict=True):
            result[step // self.every] = state
            result[step // self.every][lost] = np.nan

    def store_rest(self, step: int, q: Array, x: Array, lost: Array, *more: Array) -> None:
        """The same for this and all later results."""
        for result, state in zip(self.results, (q, x, *more), strict=True):
            result[step // self.every :] = state
            result[step // self.every :, lost] = np.nan


class Stepper(ABC):
    """Takes steps of a fixed length.

    Attributes:
        engine: Its name in results.
        failure_text: Message for a diverged sample.
        cost_ns: Nanoseconds per step and sample, about.
        dtype: Precision of its results.
        piece: Steps in a call, if their number must not depend on the batch.
    """

    engine: str
    failure_text: str = "diverges: not finite"
    cost_ns: float
    dtype: DType = DOUBLE
    piece: int | None = None

    @abstractmethod
    def run(self, span: StepSpan) -> bool:
        """Fill the results; diverged samples are NaN from there on, the others are unaffected.

        What a stepper remembers of a sample (impulses, how it is to be treated) goes on from call
        to call.

        Returns:
            Whether all numbers are finite.
        """


class PerSample:
    """Numbers (batch, ...) that a stepper keeps for each sample; zero where steps begin."""

    def __init__(self, *shape: int, dtype: DType = DOUBLE) -> None:
        self._kept: Array = np.zeros((0, *shape), dtype)

    def of(self, span: StepSpan) -> Array:
        """Those of the samples of a span, (samples, ...)."""
        if len(self._kept) != span.batch:
            self._kept = np.zeros((span.batch, *self._kept.shape[1:]), self._kept.dtype)
        return np.asarray(self._kept[span.samples])

    def put(self, span: StepSpan, values: Array) -> None:
        """Keep these."""
        self._kept[span.samples] = values
