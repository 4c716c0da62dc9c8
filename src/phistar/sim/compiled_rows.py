# SPDX-License-Identifier: BSD-3-Clause
"""Steps with dry friction and limits of joints as machine code.

Impulses of friction and limits over a step come from the rows of ``unilateral_step``, begin with
those of the step before, and are held as joint forces while the stages of the scheme are taken, as
``joint_rows`` says. Robots that have limits and no friction take smooth steps; a sample that leads
beyond a limit takes the steps of that piece again, with rows, and keeps to them.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from phistar.arrays import Array
from phistar.compile import joint_map, traced_executable
from phistar.model.model import Model
from phistar.model.model_cache import cached_for_equal_models
from phistar.scalar.trace.unilateral_rows import StepRows
from phistar.sim.compiled_stepper import (
    CompiledStepper,
    forced_kernel,
    is_patient,
    make_compiled_stepper,
)
from phistar.sim.joint_rows import JointRows
from phistar.sim.loop_stepper import LoopStepper, LoopVelocity
from phistar.sim.row_stepper import RowStepper
from phistar.sim.schemes import EvaluateRates, Scheme
from phistar.sim.unilateral_row import joint_rows
from phistar.sim.variables import RatePrograms, Variable
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.backends.llvm.run.machine_kernel import MachineKernel
    from phistar.backends.llvm.run.rollout import StepCall


class RowProgram:
    """The program of rows, which forces its impulses are, and whether some are of limits."""

    def __init__(self, model: Model, parts: tuple[str, ...], implicit: bool) -> None:
        joints = joint_rows(model, parts, implicit=implicit)
        rows = StepRows(joints, sweeps=POLICY.joint_row_sweeps, correction=0.0)
        self.key = ("unilateral_step", rows)
        self.entries = tuple(row.v for row in rows.bounded)
        self.count = max(len(self.entries), 1)
        self.stops = "limits" in parts


class GuardedStepper(CompiledStepper):
    """Smooth steps that tell which samples went beyond a limit."""

    def _calls(self, scheme: Scheme) -> list[StepCall]:
        from phistar.backends.llvm.run.rollout import StepCall

        keep = small_kernel(self._model, "kept", (), self._real)
        flag = small_kernel(self._model, "flagged", (), self._real)
        return [
            StepCall(keep, ("q0",), ("q_kept",)),
            *self._stage_calls(scheme),
            StepCall(flag, ("q_kept", "q0", "flag"), ("flag",)),
        ]

    def run_flagged(
        self,
        q: Array,
        x: Array,
        tau: Array,
        dt: float,
        steps: int,
        every: int,
        results: tuple[Array, Array],
    ) -> tuple[bool, Array]:
        """As ``run``; and which samples (B,) went beyond a limit."""
        flags = np.zeros((steps // every, len(q), 1), self.dtype)
        start = {"flag": np.zeros((len(q), 1), self.dtype)}
        finite = self._run(q, x, tau, dt, steps, every, results, start, {"flag": flags})
        return finite, np.asarray(flags[-1, :, 0] > 0.5)


class CompiledRowStepper(CompiledStepper):
    """Steps under forces of friction and limits, which are found at the start of each."""

    def __init__(
        self,
        model: Model,
        program: RatePrograms,
        scheme: Scheme,
        work: int,
        threads: int | None,
        dtype: np.dtype[Any],
        rows: RowProgram,
        smooth: tuple[str, ...],
        rubs: bool,
    ) -> None:
        """Args:
        model, program, scheme, work, threads, dtype: As of ``CompiledStepper``.
        rows: The program of rows.
        smooth: Springs and dampers that push.
        rubs: Whether there is friction: rows count in every step then.
        """
        self.rows, self._smooth, self._rubs = rows, smooth, rubs
        super().__init__(model, program, scheme, work, threads, dtype)
        self._impulses: Array = np.zeros((0, rows.count))

    def _calls(self, scheme: Scheme) -> list[StepCall]:
        from phistar.backends.llvm.run.rollout import StepCall

        model, real = self._model, self._real
        # Where velocity is stepped first, rows that do nothing leave the smooth step as it is.
        steps_velocity = any(
            isinstance(p, EvaluateRates) and p.velocity_only for p in scheme.instructions
        )
        again = not (self._rubs or steps_velocity)
        calls = self._stage_calls(scheme, end=("q_smooth", "x_smooth")) if again else []
        given = "tau"
        if self._smooth and not scheme.implicit:
            push = forced_kernel(model, self._smooth, True, real)
            calls.append(StepCall(push, ("q0", "x0", "tau"), ("tau_pushed",)))
            given = "tau_pushed"
        solved = ("q_rows", "x_rows", "impulses_next")
        read = ("q0", "x0", given, "h", "impulses")
        calls.append(StepCall(row_kernel(model, self.rows, real), read, solved))
        hold = small_kernel(model, "held", (self.rows.entries,), real)
        calls.append(
            StepCall(hold, ("q0", "tau", "h", "impulses_next"), ("q_kept", "tau_held", "impulses"))
        )
        if again:
            calls += self._stage_calls(scheme, "tau_held", ("q_stopped", "x_stopped"))
            choose = small_kernel(model, "chosen", (), real)
            ends = ("q_kept", "q_smooth", "x_smooth", "q_stopped", "x_stopped")
            return [*calls, StepCall(choose, ends, ("q0", "x0"))]
        calls += self._stage_calls(scheme, "tau_held")
        if not self.rows.stops:
            return calls
        clamp = small_kernel(model, "clamped", (), real)
        return [*calls, StepCall(clamp, ("q_kept", "q0"), ("q0",))]

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
        """See ``CompiledStepper.run``; impulses go on from call to call."""
        if len(self._impulses) != len(q):
            self._impulses = np.zeros((len(q), self.rows.count))
        found, self._impulses = self.run_from(self._impulses, q, x, tau, dt, steps, every, results)
        return found

    def run_from(
        self,
        impulses: Array,
        q: Array,
        x: Array,
        tau: Array,
        dt: float,
        steps: int,
        every: int,
        results: tuple[Array, Array],
    ) -> tuple[bool, Array]:
        """The same from given impulses (B, rows); and those at the end."""
        kept = np.zeros((steps // every, len(q), self.rows.count), self.dtype)
        start = {"impulses": np.ascontiguousarray(impulses, self.dtype)}
        finite = self._run(q, x, tau, dt, steps, every, results, start, {"impulses": kept})
        return finite, kept[-1]


class LimitStepper:
    """Smooth steps, and steps with rows for samples that have come to a limit.

    Attributes:
        engine, failure_text, cost_ns, dtype: As of ``CompiledStepper``.
    """

    engine = CompiledStepper.engine
    failure_text = CompiledStepper.failure_text

    def __init__(self, smooth: GuardedStepper, stopped: CompiledRowStepper | RowStepper) -> None:
        self._smooth, self._stopped = smooth, stopped
        self.cost_ns, self.dtype = smooth.cost_ns, smooth.dtype
        self._touched: Array = np.zeros(0, bool)
        self._count = stopped.rows.count if isinstance(stopped, CompiledRowStepper) else 1
        self._impulses: Array = np.zeros((0, self._count))

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
        """See ``CompiledStepper.run``."""
        if len(self._touched) != len(q):
            self._touched = np.zeros(len(q), bool)
            self._impulses = np.zeros((len(q), self._count))
        inside = np.flatnonzero(~self._touched)
        finite = True
        if inside.size:
            own, place = _some(inside, q, x, tau, results)
            finite, beyond = self._smooth.run_flagged(*own, dt, steps, every, place)
            _put(results, place, inside)
            self._touched[inside[beyond]] = True
        if self._touched.any():
            finite &= self._run_stopped(q, x, tau, dt, steps, every, results)
        return finite

    def _run_stopped(
        self,
        q: Array,
        x: Array,
        tau: Array,
        dt: float,
        steps: int,
        every: int,
        results: tuple[Array, Array],
    ) -> bool:
        touched = np.flatnonzero(self._touched)
        own, place = _some(touched, q, x, tau, results)
        if isinstance(self._stopped, CompiledRowStepper):
            finite, after = self._stopped.run_from(
                self._impulses[touched], *own, dt, steps, every, place
            )
            self._impulses[touched] = after
        else:
            finite = self._stopped.run(*own, dt, steps, every, place)
        _put(results, place, touched)
        return finite


def _some(
    chosen: Array, q: Array, x: Array, tau: Array, results: tuple[Array, Array]
) -> tuple[tuple[Array, Array, Array], tuple[Array, Array]]:
    """State, forces and room for the results of some samples; of all of them what is given."""
    if len(chosen) == len(q):
        return (q, x, tau), results
    room = tuple(np.empty((len(r), len(chosen), r.shape[-1]), r.dtype) for r in results)
    return (q[chosen], x[chosen], tau[..., chosen, :]), (room[0], room[1])


def _put(results: tuple[Array, Array], place: tuple[Array, Array], chosen: Array) -> None:
    if place[0] is results[0]:
        return
    for result, each in zip(results, place, strict=True):
        result[:, chosen] = each


def make_row_stepper(
    model: Model,
    variable: Variable,
    scheme: Scheme,
    rows: JointRows,
    work: int,
    threads: int | None,
    dtype: np.dtype[Any],
    keep_going: bool,
) -> LimitStepper | CompiledRowStepper | RowStepper | LimitedLoopStepper:
    """What takes steps with friction or limits: machine code where there is some.

    Args:
        model, variable, scheme, work, threads, dtype, keep_going: As of other steppers.
        rows: Friction and limits.
    """
    numpy = RowStepper(model, variable, scheme, keep_going, rows)
    rubs = "friction" in rows.parts
    if isinstance(variable, LoopVelocity):
        if rubs:
            return numpy
        return LimitedLoopStepper(model, variable, scheme, keep_going, work, threads, numpy)
    given = (model, variable, scheme, work, threads, dtype)
    guarded = make_compiled_stepper(*given, CompiledStepper if rubs else GuardedStepper)
    program = variable.program
    if guarded is None or program is None:
        return numpy
    code = RowProgram(model, (*variable.smooth, *rows.parts), rows.implicit)
    stopped: CompiledRowStepper | RowStepper = numpy
    if _has_rows(model, program) and has_row_code(model, code, scheme, work, dtype):
        stopped = CompiledRowStepper(
            model, program, scheme, work, threads, dtype, code, variable.smooth, rubs
        )
    return LimitStepper(guarded, stopped) if isinstance(guarded, GuardedStepper) else stopped


def _has_rows(model: Model, program: RatePrograms) -> bool:
    """Whether rows may be part of the steps of a program."""
    in_order = joint_map(model).is_identity or program.is_traced
    return in_order and program.wrenches is None and program.velocity is None


class LimitedLoopStepper(LoopStepper):
    """Steps of a robot with loops, and steps with rows for samples that have come to a limit."""

    def __init__(
        self,
        model: Model,
        variable: LoopVelocity,
        scheme: Scheme,
        keep_going: bool,
        steps: int,
        threads: int | None,
        stopped: RowStepper,
    ) -> None:
        """Args:
        model, variable, scheme, keep_going, steps, threads: As of ``LoopStepper``.
        stopped: Takes the steps of samples that have come to a limit.
        """
        super().__init__(model, variable, scheme, keep_going, steps, threads)
        self._stopped = stopped
        self._touched: Array = np.zeros(0, bool)

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
        """See ``NumpyStepper.run``; every step is looked at."""
        if len(self._touched) != len(q):
            self._touched = np.zeros(len(q), bool)
        begun, finite = self._taken, True
        inside = np.flatnonzero(~self._touched)
        if inside.size:
            (own_q, own_x, own_tau), _ = _some(inside, q, x, tau, results)
            whole = tuple(np.empty((steps, len(inside), r.shape[-1])) for r in results)
            finite = super().run(own_q, own_x, own_tau, dt, steps, 1, (whole[0], whole[1]))
            before = np.concatenate([own_q[None], whole[0][:-1]])
            beyond = self._stopped.rows.beyond(before, whole[0]).any(axis=0)
            for result, each in zip(results, whole, strict=True):
                result[:, inside] = each[every - 1 :: every]
            self._touched[inside[beyond]] = True
        if self._touched.any():
            touched = np.flatnonzero(self._touched)
            own, place = _some(touched, q, x, tau, results)
            self._stopped._taken = begun
            finite = self._stopped.run(*own, dt, steps, every, place) and finite
            _put(results, place, touched)
        self._taken = begun + steps
        return finite


def has_row_code(
    model: Model, rows: RowProgram, scheme: Scheme, work: int, dtype: np.dtype[Any]
) -> bool:
    """Whether the program of rows is compiled, or worth waiting for."""
    from phistar.backends.llvm.run.batches import LLVM_REAL_BY_DTYPE
    from phistar.backends.to_llvm import MachineCode

    code = traced_executable(model, rows.key)
    if not isinstance(code, MachineCode):
        return False
    if code.program.decision.eager or is_patient(model, scheme, POLICY.steps_of_a_row_step * work):
        return True
    return code.tiers((), LLVM_REAL_BY_DTYPE[dtype], None).kernel_if_ready is not None


def row_kernel(model: Model, rows: RowProgram, real: str) -> MachineKernel:
    """The kernel of the program of rows, which is waited for."""
    from phistar.backends.to_llvm import MachineCode

    code = traced_executable(model, rows.key)
    assert isinstance(code, MachineCode)
    return code.tiers((), real, None).wait_for_final()


@cached_for_equal_models(64)
def small_kernel(model: Model, name: str, choices: tuple[Any, ...], real: str) -> MachineKernel:
    """The kernel of a program of ``scalar.trace.limit_programs``."""
    from phistar.backends.llvm.run.key import compiler_digest
    from phistar.backends.llvm.run.tiers import TieredKernel
    from phistar.scalar.trace import limit_programs

    text = "\n".join([compiler_digest(), "limits", name, model.fingerprint, repr(choices)])
    key = hashlib.sha256(text.encode()).hexdigest()
    trace = getattr(limit_programs, name)
    return TieredKernel(
        key, real, f"{model.name}: {name}", None, lambda: trace(model, *choices)
    ).kernel
