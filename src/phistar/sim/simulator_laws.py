# SPDX-License-Identifier: BSD-3-Clause
"""A controller in a simulator: its forces for the whole batch in one call a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from phistar import backends
from phistar.arrays import Array
from phistar.errors import ArgumentError, kind_of
from phistar.model.model import Model
from phistar.sim.law_calls import (
    Controller,
    NoLawCodeError,
    law_calls,
    refuse_batch,
    refuse_uncompiled,
)
from phistar.sim.stepper import DOUBLE

if TYPE_CHECKING:
    from phistar.backends.llvm.run.step_loop import Rollout

COMPILED, CALLED = "machine code", "Python"


class SimulatorLaw:
    """A controller of a batch of robots.

    Attributes:
        controller: The law, regulator or feedback.
        engine: What evaluates it, ``"machine code"``, or ``"Python"`` and why.
    """

    def __init__(
        self, controller: Controller, model: Model, batch: int, threads: int | None
    ) -> None:
        self.controller = controller
        self._model, self._batch, self._threads = model, batch, threads
        self._program = controller.program()
        self._rollout: Rollout | None = None
        self.engine = COMPILED
        try:
            self._rollout = self._compiled()
        except NoLawCodeError as error:
            self.engine = f"{CALLED}: {error}"

    def _compiled(self) -> Rollout:
        from phistar.backends.llvm.run.step_loop import Rollout

        law = self._program
        if law is None:
            raise NoLawCodeError(f"{kind_of(self.controller)} has no program")
        if backends.default() != "llvm":
            raise NoLawCodeError(f"the backend is {backends.default()}")
        refuse_uncompiled(self._model)
        refuse_batch(self._model, law, (self._batch,))
        calls = law_calls(self._model, law, "double", patient=True, own=True, in_step=False)
        self._constants = law.constants(DOUBLE)
        self._rows = law.rows((self._batch,), DOUBLE)
        return Rollout(calls, tuple(self._constants))

    def forces(self, k: Array, q: Array, v: Array) -> Array:
        """Joint forces (batch, nv) in states of which sample i is at step k[i]."""
        if self._rollout is None:
            return self._called(k, q, v)
        assert self._program is not None
        found = np.empty((1, *v.shape))
        state = {"q0": np.ascontiguousarray(q), "x0": np.ascontiguousarray(v)}
        given = {**state, **self._program.buffers(self._rows_at(k))}
        self._rollout(given, {"tau": found}, self._constants, 1, 1, self._threads)
        return np.asarray(found[0])

    def _rows_at(self, k: Array) -> Array:
        """The reference (batch, n) of each sample."""
        if self._rows.ndim == 2:
            return self._rows
        if (wrong := int(k.max())) >= len(self._rows):
            raise ArgumentError(
                f"step {wrong} since the last reset is not one of the {len(self._rows)} that the "
                "controller has goals for; give it more, or reset"
            )
        if (k == k[0]).all():
            return np.asarray(self._rows[k[0]])
        return np.ascontiguousarray(self._rows[k, np.arange(self._batch)])

    def _called(self, k: Array, q: Array, v: Array) -> Array:
        found = np.empty_like(v)
        for number in np.unique(k).tolist():
            chosen = k == number
            tau = np.broadcast_to(self.controller.at_step(number, q, v), v.shape)
            found[chosen] = tau[chosen]
        return found
