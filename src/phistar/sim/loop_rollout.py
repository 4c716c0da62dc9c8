# SPDX-License-Identifier: BSD-3-Clause
"""Steps of a robot with loops as machine code: all steps of all samples in one call.

Each step is the stages of a scheme, Newton steps of the projection onto the loops, and a look at
the gap before the last of them: where that was too wide, the sample is not a number from there on.
It then begins again with more Newton steps.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.compile import traced_executable
from phistar.loops.traced_rows import (
    ANYWHERE,
    GAP_AFTER_WHICH_CLOSED,
    dynamics_key,
)
from phistar.model.model import Model
from phistar.model.model_cache import cached_on_model
from phistar.scalar.trace.state_update import JointOffsets
from phistar.sim.compiled_stepper import update_kernel
from phistar.sim.divergence import not_finite
from phistar.sim.manifold import is_euclidean
from phistar.sim.schemes import EvaluateRates, Scheme, UpdateStage
from phistar.sim.step_kernels import small_kernel
from phistar.sim.stepper import StepSpan
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.backends.llvm.run.machine_kernel import MachineKernel
    from phistar.backends.llvm.run.step_loop import StepCall
    from phistar.scalar.program import Unrolled

REAL = "double"


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
    ) -> None:
        from phistar.backends.llvm.run.step_loop import Rollout, StepCall

        push = (
            small_kernel(model, "passive_programs.forced", (smooth, True), REAL) if smooth else None
        )
        calls: list[StepCall] = []
        for p in scheme.instructions:
            if not isinstance(p, EvaluateRates):
                calls.append(_update_call(model, p))
            elif not p.velocity_only:
                calls += _rate_calls(p, dynamics, push)
        at = "0"
        for number in range(projections):
            after = f"_projected{number}"
            read, written = (f"q{at}", f"x{at}"), (f"q{after}", f"x{after}", "gap")
            calls.append(StepCall(projection, read, written))
            at = after
        kept = _kept_kernel(model)
        calls.append(StepCall(kept, (f"q{at}", f"x{at}", "gap"), ("q0", "x0")))
        self._rollout = Rollout(calls, ("h",))
        self._threads = threads
        self.cost_ns = self._rollout.cost_ns

    def run(self, span: StepSpan) -> Array:
        """Fill the results as a ``Stepper`` does.

        Returns:
            (batch,) booleans: samples that are not finite, or left the loops.
        """
        inputs = {"q0": span.q, "x0": span.x, "tau": span.tau}
        finite = self._rollout(
            {name: np.ascontiguousarray(each, float) for name, each in inputs.items()},
            {"q0": span.results[0], "x0": span.results[1]},
            {"h": np.array([span.dt])},
            span.steps,
            span.every,
            self._threads,
        )
        last = tuple(result[-1] for result in span.results)
        if finite and all(np.isfinite(each).all() for each in last):
            return np.zeros(len(span.q), dtype=bool)
        return not_finite(*last)


def make_loop_rollouts(
    model: Model, scheme: Scheme, threads: int | None, smooth: tuple[str, ...] = ()
) -> tuple[LoopRollout, ...]:
    """The machine code of a scheme on the loops, which is waited for, with more and more Newton
    steps of the projection; nothing where there is none."""
    from phistar.backends.to_llvm import MachineCode

    codes = [
        traced_executable(model, key) for key in (dynamics_key(ANYWHERE), ("loop_projection",))
    ]
    kernels = [
        code.tiers((), REAL).wait_for_final() for code in codes if isinstance(code, MachineCode)
    ]
    if len(kernels) < len(codes):
        return ()
    dynamics, projection = kernels
    return tuple(
        LoopRollout(model, scheme, dynamics, projection, count, threads, smooth)
        for count in POLICY.loop_projections
    )


def _rate_calls(
    instruction: EvaluateRates, dynamics: MachineKernel, push: MachineKernel | None
) -> list[StepCall]:
    """v̇ at a stage, after the forces of springs and dampers there."""
    from phistar.backends.llvm.run.step_loop import StepCall

    stage = instruction.stage
    at = (f"q{stage}", f"x{stage}")
    if push is None:
        return [StepCall(dynamics, (*at, "tau"), (f"a{stage}",))]
    total = f"tau{stage}"
    pushed = StepCall(push, (*at, "tau"), (total,))
    return [pushed, StepCall(dynamics, (*at, total), (f"a{stage}",))]


def _update_call(model: Model, instruction: UpdateStage) -> StepCall:
    """The state of a stage, or the next one."""
    from phistar.backends.llvm.run.step_loop import StepCall

    update = instruction.update
    if is_euclidean(model):
        update = replace(update, bracket_weights=())
    read = ["q0", "x0", "h", *(f"x{stage}" for stage in update.velocities)]
    read += [f"a{stage}" for stage, _ in update.rate_weights]
    written = (f"q{instruction.stage}", f"x{instruction.stage}")
    # These programs have joint vectors in the robot's own order; mimics have no entries there.
    moving = (model.joints[name] for name in model.joint_names)
    joints = tuple(
        JointOffsets(joint.joint_kind, joint.q_slice.start, joint.v_slice.start) for joint in moving
    )
    return StepCall(update_kernel(joints, update, REAL), tuple(read), written)


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
