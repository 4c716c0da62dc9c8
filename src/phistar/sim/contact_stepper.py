# SPDX-License-Identifier: BSD-3-Clause
"""Steps of a tree with contacts and joint physics, each one program of machine code or NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.compile import TRACED, compile_request, traced_executable
from phistar.sim.batch_stepper import BatchState, BatchStepper
from phistar.sim.contact_points import ContactPoints

if TYPE_CHECKING:
    from phistar.backends.llvm.run.step_loop import Rollout

_BUFFERS = {"q": "q", "v": "v", "tau": "tau", "dt": "h", "impulses": "impulses", "planes": "planes"}
REAL = "double"


class ContactStepper(BatchStepper):
    """Steps of semi-implicit Euler with the rows of a tree, each one program.

    Args:
        points: Pairs that may touch, and joints that rub and stop.
        dt: Length of a step [s].
        threads: Largest number; None: by the work.
    """

    def __init__(self, points: ContactPoints, dt: float, threads: int | None) -> None:
        self.points = points
        self.model = points.model
        self.dt = np.array([dt])
        self._threads = threads
        step = "terrain_step" if points.on_terrain else "unilateral_step"
        self._key = (step, points.rows)
        self._rollout = self._compiled()
        self.engine = "NumPy" if self._rollout is None else "machine code"

    def _compiled(self) -> Rollout | None:
        from phistar.backends.llvm.run.step_loop import Rollout, StepCall
        from phistar.backends.to_llvm import MachineCode

        code = traced_executable(self.model, self._key)
        if not isinstance(code, MachineCode):
            return None
        kernel = code.tiers((), REAL).wait_for_final()
        read = tuple(_BUFFERS[name] for name in kernel.call.signature.inputs)
        return Rollout([StepCall(kernel, read, ("q", "v", "impulses"))], ("h",))

    def run(self, state: BatchState, tau: Array, steps: int) -> BatchState:
        """The state after some steps under the same forces (batch, nv)."""
        if self.points.on_terrain:
            for _ in range(steps):
                state = self._steps(state, tau, 1, self.points.planes(state.q))
            return state
        return self._steps(state, tau, steps, None)

    def _steps(self, state: BatchState, tau: Array, steps: int, planes: Array | None) -> BatchState:
        given = {"q": state.q, "v": state.v, "tau": tau, "impulses": state.impulses}
        if planes is not None:
            given["planes"] = planes
        if self._rollout is None:
            return self._by_numpy(given, steps)
        names = ("q", "v", "impulses")
        results = {name: np.empty((1, *given[name].shape)) for name in names}
        self._rollout(given, results, {"h": self.dt}, steps, steps, self._threads)
        return BatchState(*(results[name][0] for name in names))

    def _by_numpy(self, given: dict[str, Array], steps: int) -> BatchState:
        code = compile_request(TRACED[self._key[0]]).build(
            self.model, backend="numpy", choices=self._key[1:]
        )
        assert code is not None
        dt = np.broadcast_to(self.dt, (len(given["q"]), 1))
        for _ in range(steps):
            found = code.try_run({**given, "dt": dt})
            assert found is not None
            for name in ("q", "v", "impulses"):
                given[name] = found[0][f"{name}_next"]
        return BatchState(given["q"], given["v"], given["impulses"])
