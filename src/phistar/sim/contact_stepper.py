# SPDX-License-Identifier: BSD-3-Clause
"""Steps with contacts and joint physics for a batch, by machine code or by NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.backends.policy import NUMPY, UnilateralWork, decide
from phistar.compile import TRACED, compile_request, traced_executable, traced_results
from phistar.errors import ArgumentError
from phistar.model.model import Model
from phistar.scalar.trace.unilateral_rows import StepRows
from phistar.sim.contact_pairs import Pair
from phistar.sim.unilateral_row import impulse_count, why_no_step
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.backends.llvm.run.rollout import Rollout

_BUFFERS = {"q": "q", "v": "v", "tau": "tau", "dt": "h", "impulses": "impulses", "planes": "planes"}
REAL = "double"


@dataclass
class BatchState:
    """Configurations (batch, nq), velocities (batch, nv) and impulses (batch, rows)."""

    q: Array
    v: Array
    impulses: Array


class ContactStepper:
    """Steps of semi-implicit Euler with the rows of a robot.

    Args:
        model: The robot.
        rows: Its joints that rub and stop, and pairs that may touch.
        pairs: Of the contacts.
        dt: Length of a step [s].
        threads: Largest number; None: by the work.

    Raises:
        ArgumentError: There is no such program for the robot, or it would be too long.
    """

    def __init__(
        self, model: Model, rows: StepRows, pairs: Sequence[Pair], dt: float, threads: int | None
    ) -> None:
        refuse_unknown(model, rows)
        self.model = model
        self.rows = rows
        self.pairs = pairs
        self.dt = np.array([dt])
        self._threads = threads
        self._on_terrain = rows.given_planes > 0
        self._key = ("terrain_step" if self._on_terrain else "unilateral_step", rows)
        self._rollout = self._compiled()

    @property
    def engine(self) -> str:
        """``"machine code"`` or ``"NumPy"``."""
        return "NumPy" if self._rollout is None else "machine code"

    def _compiled(self) -> Rollout | None:
        from phistar.backends.llvm.run.rollout import Rollout, StepCall
        from phistar.backends.to_llvm import MachineCode

        code = traced_executable(self.model, self._key)
        if not isinstance(code, MachineCode):
            return None
        kernel = code.tiers((), REAL).wait_for_final()
        read = tuple(_BUFFERS[name] for name in kernel.call.signature.inputs)
        return Rollout([StepCall(kernel, read, ("q", "v", "impulses"))], ("h",))

    def run(self, state: BatchState, tau: Array, steps: int) -> BatchState:
        """The state after some steps under the same forces (batch, nv)."""
        if self._on_terrain:
            for _ in range(steps):
                state = self._steps(state, tau, 1, self.planes(state.q))
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

    def planes(self, q: Array) -> Array:
        """Tangent planes (batch, 4 n) of height fields below what may touch them."""
        flat = np.tile([0.0, 0.0, 1.0, 0.0], self.rows.given_planes)
        level = np.broadcast_to(flat, (len(q), len(flat)))
        key = ("terrain_points", self.rows)
        places = traced_results(self.model, key, q, np.zeros((len(q), self.model.nv)), level)
        found = []
        for k, pair in enumerate(self.pairs):
            if pair.terrain is not None:
                x, y, _ = np.moveaxis(places["position"][:, k], -1, 0)
                found.append(pair.terrain.planes_at(x, y))
        return np.ascontiguousarray(np.concatenate(found, axis=-1))

    def points(self, q: Array, v: Array) -> dict[str, Array]:
        """Gaps, places, axes and rates of all pairs."""
        if self._on_terrain:
            return traced_results(self.model, ("terrain_points", self.rows), q, v, self.planes(q))
        return traced_results(self.model, ("contact_points", self.rows), q, v)


def refuse_unknown(model: Model, rows: StepRows) -> None:
    """Raise where there is no program of a step."""
    if why := why_no_step(model):
        raise ArgumentError(
            f"robot '{model.name}' has {why}: there is no step with contacts and joint physics for "
            "it. Use ground=False and passive=False, or simulate()."
        )
    count, bodies = impulse_count(rows), len(model.bodies)
    if decide(UnilateralWork(count), bodies).shape == NUMPY:
        touching = len(rows.contacts)
        raise ArgumentError(
            f"robot '{model.name}' with {touching} pairs that may touch has {count} rows: rows "
            f"times rows and links are {count * (count + bodies)}, at most "
            f"{POLICY.max_unilateral_pairs} make a program. Give fewer shapes or surfaces, or name "
            "points= of frames instead of shapes."
        )
