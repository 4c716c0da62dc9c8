# SPDX-License-Identifier: BSD-3-Clause
"""The program that finds impulses of dry friction and limits over a step, as a part of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phistar.compile import traced_executable
from phistar.model.kinematic_loops import active_loops
from phistar.model.model import Model
from phistar.scalar.trace.unilateral_rows import StepRows
from phistar.sim.schemes import EvaluateRates, Scheme
from phistar.sim.step_kernels import small_kernel
from phistar.sim.unilateral_row import joint_rows
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.backends.llvm.run.machine_kernel import MachineKernel
    from phistar.backends.llvm.run.step_loop import StepCall


class RowProgram:
    """Rows of friction and limits that are held as forces during steps of a scheme.

    Args:
        model: The robot.
        smooth: Springs and dampers that push.
        parts: ``"friction"``, ``"limits"`` or both.
        implicit: Whether springs and dampers push as at the end of the step.

    Attributes:
        key: Of the program.
        entries: Which joint force each impulse is.
        count: Of impulses.
        rubs, stops: Whether some are of friction, of limits.
        closed: Whether the robot has loops.
    """

    def __init__(
        self, model: Model, smooth: tuple[str, ...], parts: tuple[str, ...], implicit: bool
    ) -> None:
        joints = joint_rows(model, (*smooth, *parts), implicit=implicit)
        rows = StepRows(joints, sweeps=POLICY.joint_row_sweeps, correction=0.0)
        self.model, self.smooth = model, smooth
        self.key = ("unilateral_step", rows)
        self.entries = tuple(row.v for row in rows.bounded)
        self.count = max(len(self.entries), 1)
        self.rubs, self.stops = "friction" in parts, "limits" in parts
        self.closed = bool(active_loops(model.loops))

    def tries_smooth(self, scheme: Scheme) -> bool:
        """Whether a step without rows comes first, and counts if it ends inside the limits.

        It need not where velocity is stepped first: rows that do nothing leave it as it is.
        """
        told = scheme.instructions
        return not (
            self.rubs or any(isinstance(p, EvaluateRates) and p.velocity_only for p in told)
        )

    def hold_calls(self, scheme: Scheme, real: str) -> list[StepCall]:
        """From ``q0``, ``x0``, ``tau``, ``h`` and ``impulses`` to ``tau_held`` and ``q_kept``."""
        from phistar.backends.llvm.run.step_loop import StepCall

        calls, given = [], "tau"
        if self.smooth and not scheme.implicit:
            choices = (self.smooth, True)
            push = small_kernel(self.model, "passive_programs.forced", choices, real)
            calls, given = [StepCall(push, ("q0", "x0", "tau"), ("tau_pushed",))], "tau_pushed"
        read, solved = ("q0", "x0", given, "h", "impulses"), ("q_rows", "x_rows", "impulses_next")
        hold = small_kernel(self.model, "limit_programs.held", (self.entries,), real)
        kept = ("q_kept", "tau_held", "impulses")
        return [
            *calls,
            StepCall(self._kernel(real), read, solved),
            StepCall(hold, ("q0", "tau", "h", "impulses_next"), kept),
        ]

    def end_calls(self, scheme: Scheme, real: str) -> list[StepCall]:
        """What follows the steps: the smooth one is chosen, or q is clamped to the limits.

        Clamping would open loops: those stay closed, and a stop is met up to dt squared.
        """
        from phistar.backends.llvm.run.step_loop import StepCall

        if self.tries_smooth(scheme):
            choose = small_kernel(self.model, "limit_programs.chosen", (not self.closed,), real)
            ends = ("q_kept", "q_smooth", "x_smooth", "q_stopped", "x_stopped")
            return [StepCall(choose, ends, ("q0", "x0"))]
        if self.closed or not self.stops:
            return []
        clamp = small_kernel(self.model, "limit_programs.clamped", (), real)
        return [StepCall(clamp, ("q_kept", "q0"), ("q0",))]

    def _kernel(self, real: str) -> MachineKernel:
        """The kernel of the program, which is waited for."""
        from phistar.backends.to_llvm import MachineCode

        code = traced_executable(self.model, self.key)
        assert isinstance(code, MachineCode)
        return code.tiers((), real, None).wait_for_final()
