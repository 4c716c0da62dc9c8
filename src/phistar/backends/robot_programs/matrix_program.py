# SPDX-License-Identifier: BSD-3-Clause
"""A request for a matrix, or a part of one, on one robot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from phistar.backends.policy import MatrixWork
from phistar.backends.robot_programs.robot_program import (
    DEFAULT_TUNING,
    FULL_MATRIX,
    RobotProgram,
    Shape,
    Tuning,
    column_schedules,
    leaf_axes,
)
from phistar.model.model import Model
from phistar.model.wrenches import WrenchFrames
from phistar.sweeps.matrix_plans import plan_for_form
from phistar.sweeps.matrix_requests import Diag, Full, MatrixForm, Request
from phistar.sweeps.schedule import Schedule
from phistar.thresholds import POLICY

if TYPE_CHECKING:
    from phistar.scalar.program import Looped, Unrolled


@dataclass(frozen=True, eq=False)
class MatrixProgram(RobotProgram):
    """The matrix of an operator, or a part of it, joints in body order.

    Attributes:
        forms: Programs that give the same matrix.
        model: The robot.
        frames: Names of the frames that B selects, in order.
        tuning: What a backend may do.
        part: Which part of the matrix.
        factors: Forms of the factors of the whole matrix, if it has some.
        label: See ``RobotProgram``.
    """

    forms: Sequence[MatrixForm]
    model: Model
    frames: tuple[str, ...] = ()
    tuning: Tuning = DEFAULT_TUNING
    part: Request = FULL_MATRIX
    factors: tuple[Sequence[MatrixForm], Sequence[MatrixForm]] | None = None
    label: str = ""

    @property
    def has_loops(self) -> bool:
        """Whether it is about all of the matrix: parts have none."""
        return isinstance(self.part, Full)

    @property
    def placed_frames(self) -> tuple[str, ...]:
        """See ``RobotProgram``."""
        return self.frames

    @cached_property
    def block_shapes(self) -> list[Shape]:
        """Of the matrix, or of each block on its diagonal."""
        from phistar.scalar.lower_matrix import result_blocks

        found = result_blocks(self.forms[0], self.model, self.frames, self.part)
        return [(len(rows), len(columns)) for rows, columns in found]

    @cached_property
    def work(self) -> MatrixWork:
        """See ``RobotProgram``."""
        entries = sum(math.prod(shape) for shape in self.block_shapes)
        operations = None
        if not self.has_loops:
            plan = plan_for_form(self.forms[0], self.part, self.model, self.frames)
            operations = plan.cost.total
        return MatrixWork(max(map(max, self.block_shapes), default=0), entries, operations)

    @cached_property
    def input_axes(self) -> Mapping[str, int]:
        """See ``RobotProgram``."""
        given = {*(form.argument for form in self.forms), "gravity"}
        read = leaf_axes([form.schedule.program for form in self.forms])
        return {"q": 1, **{name: axes for name, axes in read.items() if name not in given}}

    @cached_property
    def sample_shapes(self) -> Mapping[str, Shape]:
        """See ``RobotProgram``; blocks on the diagonal are one row of numbers."""
        from phistar.scalar.lower_matrix import MATRIX_OUTPUT

        shapes = self.block_shapes
        total = (sum(math.prod(shape) for shape in shapes),)
        return {MATRIX_OUTPUT: total if isinstance(self.part, Diag) else shapes[0]}

    @property
    def key_parts(self) -> Sequence[object]:
        """See ``RobotProgram``."""
        return "matrix", *self.frames, self.tuning.options, self.tuning.keeps_zeros, self.part

    @property
    def schedules(self) -> Sequence[Schedule]:
        """See ``RobotProgram``."""
        return tuple(form.schedule for form in self.forms)

    @property
    def column_schedules(self) -> Sequence[Schedule]:
        """See ``RobotProgram``."""
        return column_schedules(self.forms)

    def is_worth_compiling(self, requests: int, samples: int, compiling: int) -> bool:
        """See ``RobotProgram``; of parts."""
        enough = requests >= POLICY.part_requests_before_compile
        return enough and compiling < POLICY.max_parts_compiling

    def unrolled(
        self,
        absent: Set[str] = frozenset(),
        real: str = "double",
        wrenches: WrenchFrames | None = None,
    ) -> Unrolled:
        """See ``RobotProgram``."""
        from phistar.scalar.lower_matrix import to_unrolled_matrix

        found = to_unrolled_matrix(
            self.forms,
            self.model,
            self.frames,
            absent,
            self.tuning.options,
            self.part,
            self.factors,
        )
        return replace(found, keeps_zeros=self.tuning.keeps_zeros)

    def looped(self, absent: Set[str] = frozenset()) -> Looped:
        """See ``RobotProgram``."""
        from phistar.scalar.lower_matrix import to_looped_matrix

        return to_looped_matrix(self.forms, self.model, self.frames, absent, self.tuning.options)
