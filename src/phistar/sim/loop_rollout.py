# SPDX-License-Identifier: BSD-3-Clause
"""Steps of a robot with loops as machine code: all steps of all samples in one call.

Each step is the stages of a scheme, Newton steps of the projection onto the loops, and a look at
the gap before the last of them: where that was too wide, the sample is not a number from there on.
It then begins again with more Newton steps.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.compile import RequestKey, traced_executable
from phistar.loops.traced_rows import (
    ANYWHERE,
    GAP_AFTER_WHICH_CLOSED,
    dynamics_key,
)
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.sim.compiled_stepper import CompiledStepper, update_kernel
from phistar.sim.divergence import not_finite
from phistar.sim.manifold import is_euclidean
from phistar.sim.row_program import RowProgram
from phistar.sim.schemes import EvaluateRates, Scheme, UpdateStage
from phistar.sim.step_kernels import small_kernel
from phistar.sim.stepper import PerSample, Stepper, StepSpan
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.backends.llvm.run.machine_kernel import MachineKernel
    from phistar.backends.llvm.run.step_loop import StepCall
    from phistar.scalar.program import Unrolled

REAL = "double"
_OPEN = "_open"
"""After names of buffers: the state after a step, before its projection."""


class LoopRollout:
    """Steps of a scheme on the loops, compiled.

    Attributes:
        cost_ns: Nanoseconds per step and sample, about.
    """

    def __init__(
        self,
        model: Model,
        scheme: Scheme,
        dynamics: MachineKernel,
        projection: MachineKernel,
        projections: int,
        threads: int | None,
        smooth: tuple[str, ...] = (),
        rows: RowProgram | None = None,
    ) -> None:
        from phistar.backends.llvm.run.step_loop import Rollout

        push = None
        if smooth and not scheme.implicit:
            push = small_kernel(model, "passive_programs.forced", (smooth, True), REAL)
        reads_dt = bool(smooth) and scheme.implicit

        def steps(tau: str, end: str) -> list[StepCall]:
            """A step under joint forces, projected."""
            calls: list[StepCall] = []
            for p in scheme.instructions:
                if not isinstance(p, EvaluateRates):
                    calls.append(_update_call(model, p))
                elif not p.velocity_only:
                    calls += _rate_calls(p, dynamics, push, tau, ("h",) if reads_dt else ())
            return [*calls, *projection_calls(model, projection, projections, _OPEN, end)]

        calls = steps("tau", "0") if rows is None else _row_calls(rows, scheme, steps)
        self._rollout = Rollout(calls, ("h",))
        self._threads = threads
        self._impulses = None if rows is None else PerSample(rows.count)
        self.cost_ns = self._rollout.cost_ns

    def run(self, span: StepSpan) -> Array:
        """Fill the results as a ``Stepper`` does.

        Returns:
            (batch,) booleans: samples that are not finite, or left the loops.
        """
        inputs = {"q0": span.q, "x0": span.x, "tau": span.tau}
        results = {"q0": span.results[0], "x0": span.results[1]}
        if self._impulses is not None:
            inputs["impulses"] = self._impulses.of(span)
            kept = (span.steps // span.every, *inputs["impulses"].shape)
            results["impulses"] = np.empty(kept)
        finite = self._rollout(
            {name: np.ascontiguousarray(each, float) for name, each in inputs.items()},
            results,
            {"h": np.array([span.dt])},
            span.steps,
            span.every,
            self._threads,
        )
        if self._impulses is not None:
            self._impulses.put(span, results["impulses"][-1])
        last = tuple(result[-1] for result in span.results)
        if finite and all(np.isfinite(each).all() for each in last):
            return np.zeros(len(span.q), dtype=bool)
        return not_finite(*last)


class LoopLevels(Stepper):
    """Steps on the loops, all at once, by ways that take more and more Newton steps.

    A sample whose loops open too far for one takes the next, in the end steps one by one, and keeps
    to it. The others do not notice.

    Args:
        rollouts: The compiled ways.
        otherwise: What takes steps one by one.
    """

    engine = CompiledStepper.engine

    def __init__(self, rollouts: Sequence[LoopRollout], otherwise: Stepper) -> None:
        self._rollouts, self._otherwise = rollouts, otherwise
        self.failure_text = otherwise.failure_text
        self.piece = POLICY.loop_steps_in_piece
        self.cost_ns = rollouts[0].cost_ns
        self._levels = PerSample(dtype=np.dtype(int))

    def run(self, span: StepSpan) -> bool:
        """See ``Stepper``."""
        levels, left = self._levels.of(span), np.ones(len(span.q), dtype=bool)
        for level, rollout in enumerate(self._rollouts):
            chosen = np.flatnonzero(left & (levels <= level))
            if chosen.size:
                bad = span.on_some(chosen, rollout.run)
                levels[chosen[bad]] = level + 1
                left[chosen[~bad]] = False
        self._levels.put(span, levels)
        return span.on_some(np.flatnonzero(left), self._otherwise.run) if left.any() else True


def _row_calls(
    rows: RowProgram, scheme: Scheme, steps: Callable[[str, str], list[StepCall]]
) -> list[StepCall]:
    """Steps of a scheme under forces of friction and limits."""
    hold, end = rows.hold_calls(scheme, REAL), rows.end_calls(scheme, REAL)
    if not rows.tries_smooth(scheme):
        return [*hold, *steps("tau_held", "0"), *end]
    return [*steps("tau", "_smooth"), *hold, *steps("tau_held", "_stopped"), *end]


def projection_calls(
    model: Model, projection: MachineKernel, count: int, at: str, end: str
) -> list[StepCall]:
    """So many Newton steps from the state in ``q{at}``, ``x{at}``, to ``q{end}``, ``x{end}``.

    That is not a number where the gap before the last of them was too wide.
    """
    from phistar.backends.llvm.run.step_loop import StepCall

    calls = []
    for number in range(count):
        after = f"_projected{number}"
        read, written = (f"q{at}", f"x{at}"), (f"q{after}", f"x{after}", "gap")
        calls.append(StepCall(projection, read, written))
        at = after
    last = StepCall(_kept_kernel(model), (f"q{at}", f"x{at}", "gap"), (f"q{end}", f"x{end}"))
    return [*calls, last]


def projection_kernel(model: Model) -> MachineKernel | None:
    """A Newton step of the projection, which is waited for; None: there is no machine code."""
    from phistar.backends.to_llvm import MachineCode

    code = traced_executable(model, ("loop_projection",))
    return code.tiers((), REAL).wait_for_final() if isinstance(code, MachineCode) else None


def rates_key(scheme: Scheme, smooth: tuple[str, ...]) -> RequestKey:
    """Key of the dynamics at the stages of a scheme, springs and dampers at the end or pushing."""
    if scheme.implicit and smooth:
        return "loop_implicit_dynamics", smooth
    return dynamics_key(ANYWHERE)


def make_loop_rollouts(
    model: Model,
    scheme: Scheme,
    threads: int | None,
    smooth: tuple[str, ...] = (),
    rows: RowProgram | None = None,
) -> tuple[LoopRollout, ...]:
    """The machine code of a scheme on the loops, which is waited for, with more and more Newton
    steps of the projection; nothing where there is none.

    Args:
        model, scheme, threads: As of other steppers.
        smooth: Springs and dampers that push.
        rows: Friction and limits, which are compiled.
    """
    from phistar.backends.to_llvm import MachineCode

    code = traced_executable(model, rates_key(scheme, smooth))
    projection = projection_kernel(model)
    if projection is None or not isinstance(code, MachineCode):
        return ()
    dynamics = code.tiers((), REAL).wait_for_final()
    return tuple(
        LoopRollout(model, scheme, dynamics, projection, count, threads, smooth, rows)
        for count in POLICY.loop_projections
    )


def _rate_calls(
    instruction: EvaluateRates,
    dynamics: MachineKernel,
    push: MachineKernel | None,
    tau: str,
    more: tuple[str, ...] = (),
) -> list[StepCall]:
    """v̇ at a stage, after the forces of springs and dampers there; ``more`` is read as well."""
    from phistar.backends.llvm.run.step_loop import StepCall

    stage = instruction.stage
    at = (f"q{stage}", f"x{stage}")
    if push is None:
        return [StepCall(dynamics, (*at, tau, *more), (f"a{stage}",))]
    total = f"tau{stage}"
    pushed = StepCall(push, (*at, tau), (total,))
    return [pushed, StepCall(dynamics, (*at, total), (f"a{stage}",))]


def _update_call(model: Model, instruction: UpdateStage) -> StepCall:
    """The state of a stage, or the next one."""
    from phistar.backends.llvm.run.step_loop import StepCall

    update = instruction.update
    if is_euclidean(model):
        update = replace(update, bracket_weights=())
    read = ["q0", "x0", "h", *(f"x{stage}" for stage in update.velocities)]
    read += [f"a{stage}" for stage, _ in update.rate_weights]
    end = str(instruction.stage) if instruction.stage else _OPEN
    written = (f"q{end}", f"x{end}")
    # These programs have joint vectors in the robot's own order; mimics have no entries there.
    return StepCall(update_kernel(model, True, update, REAL), tuple(read), written)


@cached_on_model
def _kept_kernel(model: Model) -> MachineKernel:
    """q, x, gap -> q, x: not a number where the gap was too wide."""
    from phistar.backends.llvm.run.key import compiler_digest
    from phistar.backends.llvm.run.tiers import TieredKernel

    nq, nv = model.nq, model.nv
    name = f"{compiler_digest()} kept on the loops {nq} {nv} {GAP_AFTER_WHICH_CLOSED}"
    key = hashlib.sha256(name.encode()).hexdigest()
    return TieredKernel(key, REAL, "closed loops", None, lambda: _kept(nq, nv)).kernel


def _kept(nq: int, nv: int) -> Unrolled:
    from phistar.scalar.graph import Graph, guard
    from phistar.scalar.program import BasicBlock, Signature, Store, Unrolled

    g = Graph()
    slack = GAP_AFTER_WHICH_CLOSED**2 - g.load("gap", 0)
    invalid = guard(slack, sys.float_info.min) - slack
    stores = [
        Store(f"{name}_new", i, "", g.load(name, i) + invalid)
        for name, size in (("q", nq), ("x", nv))
        for i in range(size)
    ]
    signature = Signature({"q": nq, "x": nv, "gap": 1}, {"q_new": nq, "x_new": nv}, ())
    return Unrolled(signature, BasicBlock(g, stores))
