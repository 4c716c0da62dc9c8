# SPDX-License-Identifier: BSD-3-Clause
"""A scheme as machine code: all steps of all samples in one call."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from phistar import backends
from phistar.arrays import Array
from phistar.backends.policy import NUMPY, StepWork, decide
from phistar.compile import RequestKey, joint_map, traced_executable
from phistar.errors import pluralize
from phistar.model.model import Model
from phistar.model.model_cache import cached_for_equal_models
from phistar.scalar.trace.state_update import (
    StateUpdate,
    joint_offsets,
    own_joint_offsets,
    to_state_update,
)
from phistar.sim.law_calls import law_calls
from phistar.sim.manifold import is_euclidean
from phistar.sim.schemes import EvaluateRates, Scheme, UpdateStage
from phistar.sim.step_kernels import quantity_kernel, small_kernel
from phistar.sim.stepper import Stepper, SteppingOptions, StepSpan
from phistar.sim.variables import RatePrograms, Variable

if TYPE_CHECKING:
    from phistar.backends.llvm.run.machine_kernel import MachineKernel
    from phistar.backends.llvm.run.step_loop import StepCall


class CompiledStepper(Stepper):
    """Steps of a scheme, compiled.

    Args:
        model: The robot.
        program: Rates of the state.
        options: Scheme, work, threads and precision, and a law.

    Raises:
        NoLawCodeError: A program of the law is not there.
    """

    engine = "machine code"

    def __init__(self, model: Model, program: RatePrograms, options: SteppingOptions) -> None:
        from phistar.backends.llvm.run.batches import LLVM_REAL_BY_DTYPE
        from phistar.backends.llvm.run.step_loop import Rollout

        self.joints = joint_map(model)
        self.dtype = options.dtype
        self._real = LLVM_REAL_BY_DTYPE[options.dtype]
        self._model = model
        self._threads = options.threads
        self._program = program
        self._is_euclidean = is_euclidean(model)
        # Traced programs are in the robot's own coordinates, all others in body order.
        self._in_own_coordinates = program.is_traced or self.joints.is_identity
        self._wait_for_optimised = is_patient(model, options)
        self._law = options.law
        calls = self._calls(options.scheme)
        if self._law is not None:
            own, patient = self._in_own_coordinates, self._wait_for_optimised
            calls = [*law_calls(model, self._law, self._real, patient, own), *calls]
        self._constants = {} if self._law is None else self._law.constants(options.dtype)
        self._rollout = Rollout(calls, ("h", *self._constants))
        self.cost_ns = self._rollout.cost_ns

    def _calls(self, scheme: Scheme) -> list[StepCall]:
        """Those of a step."""
        return self._stage_calls(scheme)

    def _stage_calls(
        self, scheme: Scheme, tau: str = "tau", end: tuple[str, str] = ("q0", "x0")
    ) -> list[StepCall]:
        """The stages of a scheme.

        Args:
            scheme: Its instructions.
            tau: Buffer of the joint forces.
            end: Buffers of the next state.
        """
        calls: list[StepCall] = []
        for p in scheme.instructions:
            if isinstance(p, EvaluateRates):
                calls += self._rate_calls(p, tau)
            else:
                calls.append(self._update_call(p, end))
        return calls

    def _rate_calls(self, instruction: EvaluateRates, tau: str) -> list[StepCall]:
        """Calls that evaluate the dynamics at a stage."""
        from phistar.backends.llvm.run.step_loop import StepCall

        names, stage = self._program, instruction.stage
        stage_names = {name: f"{name}{stage}" for name in "qxva"} | {"tau": tau, "h": "h"}
        program = names.velocity if instruction.velocity_only else names.rates
        if program is None:
            return []
        calls = []
        if names.smooth and not instruction.velocity_only:
            own = self._in_own_coordinates
            pushed = small_kernel(
                self._model, "passive_programs.forced", (names.smooth, own), self._real
            )
            calls.append(StepCall(pushed, (f"q{stage}", f"x{stage}", tau), (f"tau{stage}",)))
            stage_names["tau"] = f"tau{stage}"
        wrenches = names.wrenches
        code = quantity_kernel(
            program, self._model, self._real, self._wait_for_optimised, wrenches, names.choices
        )
        buffers = {key: stage_names[name] for key, name in self._program.names.items()}
        buffers |= {} if wrenches is None else {name: name for name in wrenches.inputs}
        signature = code.call.signature
        read = tuple(buffers[each] for each in signature.inputs)
        written = tuple(buffers[each] for each in signature.outputs)
        return [*calls, StepCall(code, read, written)]

    def _update_call(self, instruction: UpdateStage, end: tuple[str, str]) -> StepCall:
        """Call that updates the state."""
        from phistar.backends.llvm.run.step_loop import StepCall

        # Without brackets fewer buffers are read.
        update = instruction.update
        if self._is_euclidean:
            update = replace(update, bracket_weights=())
        velocity = "x" if self._program.velocity is None else "v"
        read = ["q0", "x0", "h", *(f"{velocity}{s}" for s in update.velocities)]
        read += [f"a{stage}" for stage, _ in update.rate_weights]
        written = (f"q{instruction.stage}", f"x{instruction.stage}") if instruction.stage else end
        return StepCall(
            update_kernel(self._model, self._program.is_traced, update, self._real),
            tuple(read),
            written,
        )

    def run(self, span: StepSpan) -> bool:
        """See ``Stepper``."""
        return self._run(span, {}, {})

    def _run(
        self,
        span: StepSpan,
        more_inputs: Mapping[str, Array],
        more_results: Mapping[str, Array],
    ) -> bool:
        """The same with more buffers that are given and kept."""
        as_is, (q_results, *others) = self._in_own_coordinates, span.results
        inputs = {"q0": np.ascontiguousarray(span.q, self.dtype), "x0": self._spread(span.x)}
        if self._law is None:
            inputs["tau"] = self._spread(span.tau)
        else:
            inputs |= self._law.buffers(span.tau)
        outs = {
            name: each if as_is else np.empty_like(each)
            for name, each in zip(("x0", "tau"), others, strict=False)
        }
        wrenches = self._program.wrenches
        if wrenches is not None and len(span.q) < span.batch:
            wrenches = wrenches.of_samples(span.samples)
        for name, wrench in () if wrenches is None else wrenches.inputs.items():
            rows_of = np.broadcast_to(wrench, (len(span.q), 6))
            inputs[name] = np.ascontiguousarray(rows_of, self.dtype)
        finite = self._rollout(
            {**inputs, **more_inputs},
            {"q0": q_results, **outs, **more_results},
            {"h": np.array([span.dt], self.dtype), **self._constants},
            span.steps,
            span.every,
            self._threads,
        )
        if not as_is:
            for each, out in zip(others, outs.values(), strict=True):
                each[...] = self.joints.gather(out)
        return finite

    def _spread(self, x: Array) -> Array:
        """A joint vector in the order of the programs."""
        own = x if self._in_own_coordinates else self.joints.spread(x)
        return np.ascontiguousarray(own, self.dtype)


def make_compiled_stepper(
    model: Model,
    variable: Variable,
    options: SteppingOptions,
    kind: type[CompiledStepper] = CompiledStepper,
) -> CompiledStepper | None:
    """The machine code of a scheme, or None where there is none.

    Without it are robots that do not move, the variable η and, with forces on frames, ζ and robots
    whose mimic joints are reduced, robots of too many bodies (``policy.StepWork``), and every robot
    where PHISTAR_BACKEND names another backend. Straight lines read forces on frames, loops do not:
    with them robots whose dynamics stays loops, and short simulations while it still is.
    """
    program = variable.program
    if program is None or backends.default() != "llvm":
        return None
    joints = joint_map(model)
    if program.is_traced:
        key: RequestKey = (program.rates, *(program.choices or ()))
        if not has_traced_code(model, key, options):
            return None
    elif not joints.one_to_one or (joints.scales != 1.0).any():
        return None
    if decide(StepWork(options.work), len(model.bodies)).shape == NUMPY:
        return None
    if program.wrenches is not None and not _reads_wrenches(model, program, options):
        return None
    return kind(model, program, options)


def has_traced_code(model: Model, key: RequestKey, options: SteppingOptions) -> bool:
    """Whether a traced program is compiled, or worth waiting for; there are no loops for it."""
    from phistar.backends.llvm.run.batches import LLVM_REAL_BY_DTYPE
    from phistar.backends.to_llvm import MachineCode

    code = traced_executable(model, key)
    if not isinstance(code, MachineCode):
        return False
    if code.program.decision.eager or is_patient(model, options):
        return True
    return code.tiers((), LLVM_REAL_BY_DTYPE[options.dtype], None).kernel_if_ready is not None


def is_patient(model: Model, options: SteppingOptions) -> bool:
    """Whether a simulation waits for optimised code."""
    evaluations = options.work * len(options.scheme.instructions) // 2
    return decide(StepWork(evaluations), len(model.bodies)).eager


def _reads_wrenches(model: Model, program: RatePrograms, options: SteppingOptions) -> bool:
    """Whether the code that will run has the wrenches on frames among its inputs."""
    from phistar.backends.llvm.run.batches import LLVM_REAL_BY_DTYPE

    assert program.wrenches is not None
    patient, real = is_patient(model, options), LLVM_REAL_BY_DTYPE[options.dtype]
    code = quantity_kernel(program.rates, model, real, patient, program.wrenches)
    return set(program.wrenches.inputs) <= set(code.call.signature.inputs)


@cached_for_equal_models(most=64)
def update_kernel(model: Model, own: bool, update: StateUpdate, real: str) -> MachineKernel:
    """The kernel of an update of a robot's joints, in their ``own`` order or that of the bodies."""
    from phistar.backends.llvm.run.key import compiler_digest
    from phistar.backends.llvm.run.tiers import TieredKernel

    joints = own_joint_offsets(model) if own else joint_offsets(model)
    kinds = [(s.kind.name, s.kind.behaviour(), s.q, s.v) for s in joints]
    text = "\n".join([compiler_digest(), "update", repr(kinds)])
    name = hashlib.sha256(f"{text}\n{update!r}".encode()).hexdigest()
    title = f"step of time, {pluralize(len(joints), 'joint')}"
    return TieredKernel(name, real, title, None, lambda: to_state_update(joints, update)).kernel
