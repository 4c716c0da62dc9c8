# SPDX-License-Identifier: BSD-3-Clause
"""Steps with dry friction and limits of joints as machine code.

Impulses of friction and limits over a step come from the rows of ``unilateral_step``, begin with
those of the step before, and are held as joint forces while the stages of the scheme are taken, as
``joint_rows`` says. Robots that have limits and no friction take smooth steps; a sample that leads
beyond a limit takes the steps of that piece again, with rows, and keeps to them.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from phistar.arrays import Array
from phistar.compile import joint_map
from phistar.model.model import Model
from phistar.sim.compiled_stepper import (
    CompiledStepper,
    has_traced_code,
    make_compiled_stepper,
)
from phistar.sim.joint_rows import JointRows
from phistar.sim.loop_rollout import LoopLevels, make_loop_rollouts
from phistar.sim.loop_stepper import LoopVelocity, make_loop_stepper
from phistar.sim.row_program import RowProgram
from phistar.sim.row_stepper import RowStepper
from phistar.sim.schemes import Scheme
from phistar.sim.step_kernels import small_kernel
from phistar.sim.stepper import PerSample, Stepper, SteppingOptions, StepSpan
from phistar.sim.variables import RatePrograms, Variable
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.backends.llvm.run.step_loop import StepCall


class TellsLimits(Stepper):
    """Takes smooth steps and can tell which samples went beyond a limit."""

    @abstractmethod
    def run_flagged(self, span: StepSpan) -> tuple[bool, Array]:
        """As ``run``; and which samples (samples,) went beyond a limit."""


class GuardedStepper(CompiledStepper, TellsLimits):
    """Smooth steps, compiled, that tell which samples went beyond a limit."""

    def _calls(self, scheme: Scheme) -> list[StepCall]:
        from phistar.backends.llvm.run.step_loop import StepCall

        keep = small_kernel(self._model, "limit_programs.kept", (), self._real)
        flag = small_kernel(self._model, "limit_programs.flagged", (), self._real)
        return [
            StepCall(keep, ("q0",), ("q_kept",)),
            *self._stage_calls(scheme),
            StepCall(flag, ("q_kept", "q0", "flag"), ("flag",)),
        ]

    def run(self, span: StepSpan) -> bool:
        """See ``Stepper``."""
        return self.run_flagged(span)[0]

    def run_flagged(self, span: StepSpan) -> tuple[bool, Array]:
        """See ``TellsLimits``."""
        count = len(span.q)
        flags = np.zeros((span.steps // span.every, count, 1), self.dtype)
        start = {"flag": np.zeros((count, 1), self.dtype)}
        finite = self._run(span, start, {"flag": flags})
        return finite, np.asarray(flags[-1, :, 0] > 0.5)


class CompiledRowStepper(CompiledStepper):
    """Steps under forces of friction and limits, which are found at the start of each.

    Args:
        model, program, options: As of ``CompiledStepper``.
        rows: The program of rows.
    """

    def __init__(
        self, model: Model, program: RatePrograms, options: SteppingOptions, rows: RowProgram
    ) -> None:
        self.rows = rows
        super().__init__(model, program, options)
        self._impulses = PerSample(rows.count, dtype=options.dtype)

    def _calls(self, scheme: Scheme) -> list[StepCall]:
        rows, real = self.rows, self._real
        hold, end = rows.hold_calls(scheme, real), rows.end_calls(scheme, real)
        if not rows.tries_smooth(scheme):
            return [*hold, *self._stage_calls(scheme, "tau_held"), *end]
        smooth = self._stage_calls(scheme, end=("q_smooth", "x_smooth"))
        stopped = self._stage_calls(scheme, "tau_held", ("q_stopped", "x_stopped"))
        return [*smooth, *hold, *stopped, *end]

    def run(self, span: StepSpan) -> bool:
        """See ``Stepper``; impulses go on from call to call."""
        kept = np.zeros((span.steps // span.every, len(span.q), self.rows.count), self.dtype)
        start = {"impulses": self._impulses.of(span)}
        finite = self._run(span, start, {"impulses": kept})
        self._impulses.put(span, kept[-1])
        return finite


class GuardedLoopStepper(TellsLimits):
    """Steps of a robot with loops that tell which samples went beyond a limit.

    Args:
        smooth: Takes the steps.
        rows: Limits.
    """

    def __init__(self, smooth: Stepper, rows: JointRows) -> None:
        self._smooth, self._rows = smooth, rows
        self.engine, self.failure_text = smooth.engine, smooth.failure_text
        self.cost_ns, self.piece = smooth.cost_ns, smooth.piece

    def run(self, span: StepSpan) -> bool:
        """See ``Stepper``."""
        return self._smooth.run(span)

    def run_flagged(self, span: StepSpan) -> tuple[bool, Array]:
        """See ``TellsLimits``; every step is looked at."""
        q, x = (np.empty((span.steps, *result.shape[1:])) for result in span.results)
        finite = self.run(replace(span, every=1, results=(q, x)))
        for result, each in zip(span.results, (q, x), strict=True):
            result[...] = each[span.every - 1 :: span.every]
        before = np.concatenate([span.q[None], q[:-1]])
        return finite, np.asarray(self._rows.beyond(before, q).any(axis=0))


class LimitStepper(Stepper):
    """Smooth steps, and steps with rows for samples that have come to a limit.

    Args:
        smooth: Takes steps of samples inside their limits.
        stopped: Takes the steps of that span again, and all later ones, of the others.
    """

    def __init__(self, smooth: TellsLimits, stopped: Stepper) -> None:
        self._smooth, self._stopped = smooth, stopped
        self.engine, self.failure_text = smooth.engine, smooth.failure_text
        self.cost_ns, self.dtype, self.piece = smooth.cost_ns, smooth.dtype, smooth.piece
        self._touched = PerSample(dtype=np.dtype(bool))

    def run(self, span: StepSpan) -> bool:
        """See ``Stepper``."""
        touched, finite = self._touched.of(span), True
        inside = np.flatnonzero(~touched)
        if inside.size:
            finite, beyond = span.on_some(inside, self._smooth.run_flagged)
            touched[inside[beyond]] = True
            self._touched.put(span, touched)
        if touched.any():
            finite &= span.on_some(np.flatnonzero(touched), self._stopped.run)
        return finite


def make_row_stepper(
    model: Model, variable: Variable, options: SteppingOptions, rows: JointRows
) -> Stepper:
    """What takes steps with friction or limits: machine code where there is some.

    Args:
        model, variable, options: As of other steppers.
        rows: Friction and limits.
    """
    if isinstance(variable, LoopVelocity):
        return _make_loop_row_stepper(model, variable, options, rows)
    numpy = RowStepper(model, variable, options, rows)
    return make_compiled_row_stepper(model, variable, options, rows, numpy) or numpy


def make_compiled_row_stepper(
    model: Model,
    variable: Variable,
    options: SteppingOptions,
    rows: JointRows,
    otherwise: RowStepper | None = None,
) -> Stepper | None:
    """The machine code of steps with friction or limits, or None where there is none.

    Args:
        model, variable, options, rows: As above.
        otherwise: What takes the steps of samples that have come to a limit, if there is no
            machine code for these alone.

    Raises:
        NoLawCodeError: A program of the law is not there.
    """
    rubs, program = "friction" in rows.parts, variable.program
    kind = CompiledStepper if rubs else GuardedStepper
    guarded = make_compiled_stepper(model, variable, options, kind)
    if guarded is None or program is None:
        return None
    code = RowProgram(model, variable.smooth, rows.parts, rows.implicit)
    stopped: Stepper | None = otherwise
    if _has_rows(model, program) and has_traced_code(model, code.key, _with_rows(options)):
        stopped = CompiledRowStepper(model, program, options, code)
    if stopped is None or not isinstance(guarded, GuardedStepper):
        return stopped
    return LimitStepper(guarded, stopped)


def _with_rows(options: SteppingOptions) -> SteppingOptions:
    """Whoever takes steps with rows waits for machine code sooner."""
    return replace(options, work=POLICY.steps_of_a_row_step * options.work)


def _make_loop_row_stepper(
    model: Model, variable: LoopVelocity, options: SteppingOptions, rows: JointRows
) -> Stepper:
    """Steps with rows of a robot with loops."""
    stopped = _loop_row_stepper(model, variable, options, rows)
    if "friction" in rows.parts:
        return stopped
    smooth = make_loop_stepper(model, variable, options)
    return LimitStepper(GuardedLoopStepper(smooth, rows), stopped)


def _loop_row_stepper(
    model: Model, variable: LoopVelocity, options: SteppingOptions, rows: JointRows
) -> Stepper:
    """The machine code of steps with rows on loops where there is some."""
    numpy = RowStepper(model, variable, options, rows)
    code = RowProgram(model, variable.smooth, rows.parts, rows.implicit)
    longer = _with_rows(options)
    patient = longer.work >= POLICY.min_loop_steps_to_wait
    if not (patient and variable.is_free and has_traced_code(model, code.key, longer)):
        return numpy
    found = make_loop_rollouts(model, options.scheme, options.threads, variable.smooth, code)
    return LoopLevels(found, numpy) if found else numpy


def _has_rows(model: Model, program: RatePrograms) -> bool:
    """Whether rows may be part of the steps of a program."""
    in_order = joint_map(model).is_identity or program.is_traced
    return in_order and program.wrenches is None and program.velocity is None
