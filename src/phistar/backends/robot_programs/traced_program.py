# SPDX-License-Identifier: BSD-3-Clause
"""A quantity that is traced for one robot directly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from phistar.backends.policy import Work
from phistar.backends.robot_programs.robot_program import RobotProgram, Shape
from phistar.model.model import Model
from phistar.model.wrenches import WrenchFrames
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.scalar.program import Unrolled


@dataclass(frozen=True, eq=False)
class TracedProgram(RobotProgram):
    """Scalar operations that are traced for the robot directly.

    Attributes:
        name: What it computes, and the choices that were made.
        model: The robot.
        inputs: Names of what it reads, in the order of the arguments.
        shapes: Shape of each output for one sample.
        size: How much work it is.
        trace: Gives the program.
        otherwise: What has results where those of this one are not numbers; None: nothing has.
        trace_single: Gives the program in single precision; None: it is the same.
        label: See ``RobotProgram``.
    """

    name: tuple[object, ...]
    model: Model
    inputs: tuple[str, ...]
    shapes: Mapping[str, Shape]
    size: Work
    trace: Callable[[], Unrolled]
    otherwise: TracedProgram | None = None
    trace_single: Callable[[], Unrolled] | None = None
    label: str = ""

    @cached_property
    def operations(self) -> int:
        """Additions, subtractions and multiplications on a sample."""
        from phistar.scalar.program import count_arithmetic

        return count_arithmetic(self.unrolled().count())

    @property
    def everywhere(self) -> TracedProgram:
        """The program that has all results there are."""
        return self.otherwise or self

    @property
    def has_loops(self) -> bool:
        """There are none."""
        return False

    @property
    def is_about_all(self) -> bool:
        """See ``RobotProgram``."""
        return True

    @property
    def work(self) -> Work:
        """See ``RobotProgram``."""
        return self.size

    @property
    def sample_shapes(self) -> Mapping[str, Shape]:
        """See ``RobotProgram``."""
        return self.shapes

    @property
    def input_axes(self) -> Mapping[str, int]:
        """See ``RobotProgram``."""
        return dict.fromkeys(self.inputs, 1)

    @property
    def key_parts(self) -> Sequence[object]:
        """See ``RobotProgram``."""
        return "traced", *self.name

    def is_eager(self, tier: str) -> bool:
        """See ``RobotProgram``."""
        del tier
        return self.decision.eager

    def is_worth_compiling(self, requests: int, samples: int, compiling: int) -> bool:
        """See ``RobotProgram``."""
        return samples >= POLICY.samples_before_compile

    def unrolled(
        self,
        absent: Set[str] = frozenset(),
        real: str = "double",
        wrenches: WrenchFrames | None = None,
    ) -> Unrolled:
        """See ``RobotProgram``."""
        if real == "float" and self.trace_single is not None:
            return self.trace_single()
        return self.trace()
