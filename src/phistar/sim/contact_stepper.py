# SPDX-License-Identifier: BSD-3-Clause
"""Steps with contacts and joint physics as machine code, each one program.

With closed loops Newton steps of the projection follow. A sample whose loops open too far for them
takes the steps of that span again, in NumPy; the others do not notice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.compile import RequestKey, traced_executable
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.sim.contact_points import ContactPoints
from phistar.sim.divergence import not_finite
from phistar.sim.general_stepper import GeneralStepper
from phistar.sim.loop_rollout import REAL, projection_calls, projection_kernel
from phistar.sim.stepper import Stepper, SteppingOptions, StepSpan
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.backends.llvm.run.machine_kernel import MachineKernel

_BUFFERS = {"q": "q0", "v": "x0", "tau": "tau", "dt": "h"}
_STATE = ("q0", "x0", "impulses")


class ContactStepper(Stepper):
    """Steps of semi-implicit Euler with the rows of a robot.

    Args:
        points: Pairs that may touch, and joints that rub and stop.
        kernel: The program of a step.
        threads: Largest number; None: by the work.
        otherwise: Takes the steps of samples whose loops open too far.
    """

    engine = "machine code"

    def __init__(
        self,
        points: ContactPoints,
        kernel: MachineKernel,
        threads: int | None,
        otherwise: GeneralStepper,
    ) -> None:
        from phistar.backends.llvm.run.step_loop import Rollout, StepCall

        self.points = points
        self._threads = threads
        self._otherwise = otherwise
        self._closed = bool(active_loops(points.model.loops))
        read = tuple(_BUFFERS.get(name, name) for name in kernel.call.signature.inputs)
        calls = [StepCall(kernel, read, _STATE)]
        if self._closed:
            calls = [StepCall(kernel, read, ("q_open", "x_open", "impulses"))]
            projection, count = projection_kernel(points.model), POLICY.simulator_projections
            assert projection is not None  # a robot without has no program of a step, either
            calls += projection_calls(points.model, projection, count, "_open", "0")
        self._rollout = Rollout(calls, ("h",))
        self.cost_ns = self._rollout.cost_ns

    def run(self, span: StepSpan) -> bool:
        """See ``Stepper``; planes of height fields are those at the beginning of each step."""
        if not self.points.on_terrain:
            return self._run(span, {})
        finite = True
        for k in range(span.steps):
            places = tuple(np.empty((1, *each.shape[1:])) for each in span.results)
            one = replace(span, tau=span.tau_at(k), steps=1, every=1, results=places)
            finite &= self._run(one, {"planes": self.points.planes(span.q)})
            q, x, impulses = (each[0] for each in places)
            span.store(k, q, x, np.zeros(len(q), dtype=bool), impulses)
            span = replace(span, q=q, x=x, impulses=impulses)
        return finite

    def _run(self, span: StepSpan, more: dict[str, Array]) -> bool:
        assert span.impulses is not None
        given = {"q0": span.q, "x0": span.x, "tau": span.tau, "impulses": span.impulses, **more}
        finite = self._rollout(
            {name: np.ascontiguousarray(each, float) for name, each in given.items()},
            dict(zip(_STATE, span.results, strict=True)),
            {"h": np.array([span.dt])},
            span.steps,
            span.every,
            self._threads,
        )
        if not self._closed or finite:
            return finite
        lost = not_finite(*(result[-1] for result in span.results))
        again = lost & ~not_finite(span.q, span.x, span.impulses)
        return span.on_some(np.flatnonzero(again), self._otherwise.run) if again.any() else False


def make_contact_stepper(
    points: ContactPoints, smooth: tuple[str, ...], options: SteppingOptions
) -> Stepper:
    """What takes steps with rows: machine code, which is waited for, or matrices in NumPy.

    Args:
        points: Pairs that may touch, and joints that rub and stop.
        smooth: Springs and dampers that push.
        options: Threads, and whether others continue when a sample diverges.
    """
    general = GeneralStepper(points, smooth, options.keep_going)
    name = "terrain_step" if points.on_terrain else "unilateral_step"
    kernel = _kernel(points.model, (name, points.rows))
    return general if kernel is None else ContactStepper(points, kernel, options.threads, general)


def _kernel(model: Model, key: RequestKey) -> MachineKernel | None:
    from phistar.backends.to_llvm import MachineCode

    code = traced_executable(model, key)
    return code.tiers((), REAL).wait_for_final() if isinstance(code, MachineCode) else None
