# SPDX-License-Identifier: BSD-3-Clause
"""Level 2 itself as a backend: the interpreter of scheduled programs, the oracle of all others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.backends.base import Backend, SweptExecutable, inputs_read, require_inputs
from phistar.backends.batch_axes import as_inexact, cast_to_precision, real_dtype
from phistar.backends.robot_programs import RobotProgram, VectorProgram
from phistar.model.configuration import normalized_configuration
from phistar.sweeps.interpret import run
from phistar.sweeps.ir import Type
from phistar.sweeps.printing import to_text


class InterpretedCode(SweptExecutable):
    """A program that is walked statement by statement."""

    @property
    def source(self) -> str:
        """The passes as text."""
        return to_text(self.schedule)

    def results(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """See ``SweptExecutable``."""
        program = self.schedule.program
        read = inputs_read(program)
        require_inputs(read, inputs)
        q = normalized_configuration(self.model, q)
        given = {name: as_inexact(inputs[name]) for name in read if name in inputs}
        joint = {n.data for n in program.nodes if n.op == "leaf" and n.type is Type.JOINT}
        batches = [x.shape[: -1 if name in joint else -2] for name, x in given.items()]
        batch = np.broadcast_shapes(q.shape[:-1], *batches)
        real = real_dtype([q, *given.values()])
        outputs = run(self.schedule, self.model, q, given, self.program.frames, self.program.locked)
        return {
            name: cast_to_precision(np.broadcast_to(x, (*batch, *self._tail(name, x))), real).copy()
            for name, x in outputs.items()
        }

    def _tail(self, output: str, value: Array) -> tuple[int, ...]:
        return value.shape[value.ndim - self.sample_axes(output) :]


class SweepsBackend(Backend):
    """Runs programs by interpreting them."""

    name = "sweeps"

    def build(self, program: RobotProgram) -> InterpretedCode | None:
        """See ``base.Backend``; of vectors alone."""
        return InterpretedCode(program) if isinstance(program, VectorProgram) else None


backend = SweepsBackend()
