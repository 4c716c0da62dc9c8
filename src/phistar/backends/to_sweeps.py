# SPDX-License-Identifier: BSD-3-Clause
"""Level 2 itself as a backend: the interpreter of scheduled programs, the oracle of all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.backends.base import (
    Backend,
    VectorExecutable,
    inputs_read,
    require_inputs,
    with_link_forces,
)
from phistar.backends.batch_axes import (
    all_finite,
    all_valid,
    as_inexact,
    cast_to_precision,
    copy_into_out,
    real_dtype,
)
from phistar.backends.robot_programs import RobotProgram, VectorProgram
from phistar.model.configuration import normalized_configuration
from phistar.model.model_cache import Entry
from phistar.model.singular import require_finite_results
from phistar.model.wrenches import ProgramInputs, WrenchFrames
from phistar.sweeps.costs import OperationCount, count_operations
from phistar.sweeps.interpret import run
from phistar.sweeps.ir import Type
from phistar.sweeps.printing import to_text


class InterpretedCode(VectorExecutable):
    """A program that is walked statement by statement."""

    def __init__(self, program: VectorProgram) -> None:
        self.schedule = program.schedule
        self.model = program.model
        self.frames = program.frames
        self.locked = program.locked

    @property
    def source(self) -> str:
        """The passes as text."""
        return to_text(self.schedule)

    @property
    def cost(self) -> OperationCount:
        """See ``base.Executable``."""
        return count_operations(self.schedule, self.model).total

    def __call__(self, q: ArrayLike, inputs: ProgramInputs) -> dict[str, Array]:
        """See ``base.Executable``."""
        results = self._results(q, with_link_forces(self.model, q, inputs))
        if not all_finite(results.values()):
            name, one = next(iter(results.items()))
            require_finite_results(
                self.model, as_inexact(q), results, one.ndim - len(self._tail(name, one))
            )
        return results

    def _results(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        program = self.schedule.program
        read = inputs_read(program)
        require_inputs(read, inputs)
        q = normalized_configuration(self.model, q)
        given = {name: as_inexact(inputs[name]) for name in read if name in inputs}
        joint = {n.data for n in program.nodes if n.op == "leaf" and n.type is Type.JOINT}
        batches = [x.shape[: -1 if name in joint else -2] for name, x in given.items()]
        batch = np.broadcast_shapes(q.shape[:-1], *batches)
        real = real_dtype([q, *given.values()])
        outputs = run(self.schedule, self.model, q, given, self.frames, self.locked)
        return {
            name: cast_to_precision(np.broadcast_to(x, (*batch, *self._tail(name, x))), real).copy()
            for name, x in outputs.items()
        }

    def run(
        self,
        q: ArrayLike,
        inputs: ProgramInputs,
        out: Mapping[str, Array] | None = None,
    ) -> tuple[dict[str, Array], bool]:
        """See ``base.Executable``."""
        values = with_link_forces(self.model, q, inputs)
        given = [values[name] for name in inputs_read(self.schedule.program) if name in values]
        results = self._results(q, values)
        return copy_into_out(out, results), all_valid(self.model, q, [*given, *results.values()])

    def entry(
        self,
        order: Sequence[str],
        names: Mapping[str, str] | None = None,
        *,
        wrenches: WrenchFrames | None = None,
        real: str = "double",
    ) -> Entry | None:
        """There is none."""
        return None

    def _tail(self, output: str, value: Array) -> tuple[int, ...]:
        program = self.schedule.program
        axes = program.nodes[program.outputs[output]].type.output_axes
        return value.shape[value.ndim - axes :]


class SweepsBackend(Backend):
    """Runs programs by interpreting them."""

    name = "sweeps"

    def build(self, program: RobotProgram) -> InterpretedCode | None:
        """See ``base.Backend``; of vectors alone."""
        return InterpretedCode(program) if isinstance(program, VectorProgram) else None


backend = SweepsBackend()
