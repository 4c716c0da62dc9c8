# SPDX-License-Identifier: BSD-3-Clause
"""A scheme as machine code: all steps of all samples in one call."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from phistar import backends
from phistar.arrays import Array
from phistar.backends.policy import NUMPY, StepWork, decide
from phistar.compile import joint_map, kernel, traced_executable
from phistar.model.model import Model
from phistar.model.model_cache import cached_for_equal_models
from phistar.model.wrenches import Wrenches
from phistar.scalar.trace.state_update import (
    JointOffsets,
    StateUpdate,
    joint_offsets,
    own_joint_offsets,
    to_state_update,
)
from phistar.sim.manifold import is_euclidean
from phistar.sim.schemes import EvaluateRates, Scheme, UpdateStage
from phistar.sim.variables import RatePrograms, Variable

if TYPE_CHECKING:
    from phistar.backends.llvm.run.machine_kernel import MachineKernel
    from phistar.backends.llvm.run.rollout import StepCall

DOUBLE = np.dtype(np.float64)


class CompiledStepper:
    """Steps of a scheme, compiled.

    Attributes:
        engine: Its name in results.
        failure_text: Message for a diverged sample; it stays NaN, the others are unaffected.
        cost_ns: Nanoseconds per step and sample, about.
        dtype: Precision of the steps.
    """

    engine = "machine code"
    failure_text = "diverges: not finite"

    def __init__(
        self,
        model: Model,
        program: RatePrograms,
        scheme: Scheme,
        work: int,
        threads: int | None,
        dtype: np.dtype[Any] = DOUBLE,
    ) -> None:
        """Args:
        model: The robot.
        program: Rates of the state.
        scheme: Instructions of a step.
        work: Steps times samples.
        threads: Largest number; default: by the work.
        dtype: float64 or float32: precision of the steps.
        """
        from phistar.backends.llvm.run.batches import LLVM_REAL_BY_DTYPE
        from phistar.backends.llvm.run.rollout import Rollout

        self.joints = joint_map(model)
        self.dtype = dtype
        self._real = LLVM_REAL_BY_DTYPE[dtype]
        self._model = model
        self._threads = threads
        self._program = program
        self._is_euclidean = is_euclidean(model)
        # Traced programs are in the robot's own coordinates, all others in body order.
        self._in_own_coordinates = program.is_traced or self.joints.is_identity
        offsets = own_joint_offsets if program.is_traced else joint_offsets
        self._joint_offsets = offsets(model)
        self._wait_for_optimised = is_patient(model, scheme, work)
        self._rollout = Rollout(self._calls(scheme), ("h",))
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
        from phistar.backends.llvm.run.rollout import StepCall

        names, stage = self._program, instruction.stage
        stage_names = {name: f"{name}{stage}" for name in "qxva"} | {"tau": tau, "h": "h"}
        program = names.velocity if instruction.velocity_only else names.rates
        if program is None:
            return []
        calls = []
        if names.smooth and not instruction.velocity_only:
            own = self._in_own_coordinates
            pushed = forced_kernel(self._model, names.smooth, own, self._real)
            calls.append(StepCall(pushed, (f"q{stage}", f"x{stage}", tau), (f"tau{stage}",)))
            stage_names["tau"] = f"tau{stage}"
        wrenches = names.wrenches
        code = _code(
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
        from phistar.backends.llvm.run.rollout import StepCall

        # Without brackets fewer buffers are read.
        update = instruction.update
        if self._is_euclidean:
            update = replace(update, bracket_weights=())
        velocity = "x" if self._program.velocity is None else "v"
        read = ["q0", "x0", "h", *(f"{velocity}{s}" for s in update.velocities)]
        read += [f"a{stage}" for stage, _ in update.rate_weights]
        written = (f"q{instruction.stage}", f"x{instruction.stage}") if instruction.stage else end
        return StepCall(
            update_kernel(self._joint_offsets, update, self._real), tuple(read), written
        )

    def run(
        self,
        q: Array,
        x: Array,
        tau: Array,
        dt: float,
        steps: int,
        every: int,
        results: tuple[Array, Array],
    ) -> bool:
        """See ``NumpyStepper.run``; results are of ``dtype``."""
        return self._run(q, x, tau, dt, steps, every, results, {}, {})

    def _run(
        self,
        q: Array,
        x: Array,
        tau: Array,
        dt: float,
        steps: int,
        every: int,
        results: tuple[Array, Array],
        more_inputs: Mapping[str, Array],
        more_results: Mapping[str, Array],
    ) -> bool:
        """The same with more buffers that are given and kept."""
        as_is = self._in_own_coordinates
        spread = [each if as_is else self.joints.spread(each) for each in (x, tau)]
        rows = [np.ascontiguousarray(each, self.dtype) for each in spread]
        out = results[1] if as_is else np.empty_like(results[1])
        inputs = {"q0": np.ascontiguousarray(q, self.dtype), "x0": rows[0], "tau": rows[1]}
        wrenches = self._program.wrenches
        for name, wrench in () if wrenches is None else wrenches.inputs.items():
            inputs[name] = np.ascontiguousarray(np.broadcast_to(wrench, (len(q), 6)), self.dtype)
        finite = self._rollout(
            {**inputs, **more_inputs},
            {"q0": results[0], "x0": out, **more_results},
            {"h": np.array([dt], self.dtype)},
            steps,
            every,
            self._threads,
        )
        if not as_is:
            results[1][...] = self.joints.gather(out)
        return finite


def make_compiled_stepper(
    model: Model,
    variable: Variable,
    scheme: Scheme,
    work: int,
    threads: int | None = None,
    dtype: np.dtype[Any] = DOUBLE,
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
        if not _has_code(model, program, scheme, work, dtype):
            return None
    elif not joints.one_to_one or (joints.scales != 1.0).any():
        return None
    if decide(StepWork(work), len(model.bodies)).shape == NUMPY:
        return None
    if program.wrenches is not None and not _reads_wrenches(model, program, scheme, work, dtype):
        return None
    return kind(model, program, scheme, work, threads, dtype)


def _has_code(
    model: Model, program: RatePrograms, scheme: Scheme, work: int, dtype: np.dtype[Any]
) -> bool:
    """Whether a traced program is compiled, or worth waiting for; there are no loops for it."""
    from phistar.backends.llvm.run.batches import LLVM_REAL_BY_DTYPE
    from phistar.backends.to_llvm import MachineCode

    code = traced_executable(model, (program.rates, *(program.choices or ())))
    if not isinstance(code, MachineCode):
        return False
    if code.program.decision.eager or is_patient(model, scheme, work):
        return True
    return code.tiers((), LLVM_REAL_BY_DTYPE[dtype], None).kernel_if_ready is not None


def is_patient(model: Model, scheme: Scheme, work: int) -> bool:
    """Whether a simulation waits for optimised code."""
    evaluations = work * len(scheme.instructions) // 2
    return decide(StepWork(evaluations), len(model.bodies)).eager


def _reads_wrenches(
    model: Model, program: RatePrograms, scheme: Scheme, work: int, dtype: np.dtype[Any]
) -> bool:
    """Whether the code that will run has the wrenches on frames among its inputs."""
    from phistar.backends.llvm.run.batches import LLVM_REAL_BY_DTYPE

    assert program.wrenches is not None
    patient, real = is_patient(model, scheme, work), LLVM_REAL_BY_DTYPE[dtype]
    code = _code(program.rates, model, real, patient, program.wrenches)
    return set(program.wrenches.inputs) <= set(code.call.signature.inputs)


def _code(
    name: str,
    model: Model,
    real: str,
    patient: bool,
    wrenches: Wrenches | None = None,
    choices: tuple[object, ...] | None = None,
) -> MachineKernel:
    """The kernel of a program of the catalogue; the best one for who is patient."""
    from phistar.backends.to_llvm import MachineCode

    code = kernel(name, model).build(model, choices=choices or ())
    assert isinstance(code, MachineCode)
    tiers = code.tiers((), real, None if wrenches is None else wrenches.at)
    return tiers.wait_for_final() if patient else tiers.kernel


@cached_for_equal_models(64)
def forced_kernel(model: Model, parts: tuple[str, ...], own: bool, real: str) -> MachineKernel:
    """The kernel q, v, tau -> tau with the forces of springs and dampers.

    Args:
        model: The robot.
        parts: What pushes.
        own: Whether joint vectors are in the robot's own coordinates, or in body order.
        real: Precision.
    """
    from phistar.backends.llvm.run.key import compiler_digest
    from phistar.backends.llvm.run.tiers import TieredKernel
    from phistar.scalar.trace.passive_programs import forced

    text = "\n".join([compiler_digest(), "forced", model.fingerprint, repr((parts, own))])
    name = hashlib.sha256(text.encode()).hexdigest()
    title = f"{model.name}: joint forces with {', '.join(parts)}"
    return TieredKernel(name, real, title, None, lambda: forced(model, parts, own)).kernel


@lru_cache(maxsize=256)
def update_kernel(
    joints: tuple[JointOffsets, ...], update: StateUpdate, real: str
) -> MachineKernel:
    """The kernel of an update; robots with the same joints share it."""
    from phistar.backends.llvm.run.key import compiler_digest
    from phistar.backends.llvm.run.tiers import TieredKernel

    kinds = [(s.kind.name, s.kind.behaviour(), s.q, s.v) for s in joints]
    text = "\n".join([compiler_digest(), "update", repr(kinds)])
    name = hashlib.sha256(f"{text}\n{update!r}".encode()).hexdigest()
    title = f"step of time, {len(joints)} joints"
    return TieredKernel(name, real, title, None, lambda: to_state_update(joints, update)).kernel
