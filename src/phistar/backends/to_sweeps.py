# SPDX-License-Identifier: BSD-3-Clause
"""Level 2 itself as a backend: the interpreter of scheduled programs, the oracle of all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phistar.backends.base import PLAIN, Backend, Quick, Tuning, Way, inputs_read, require_inputs
from phistar.backends.batch import all_finite, fill, in_precision, inexact, precision
from phistar.model.configuration import configuration
from phistar.model.model import Model
from phistar.sweeps.interpret import run
from phistar.sweeps.ir import Type
from phistar.sweeps.printing import to_text
from phistar.sweeps.schedule import Schedule

Array = NDArray[Any]


@dataclass(frozen=True)
class Interpreted:
    """A program that is walked statement by statement."""

    schedule: Schedule
    model: Model
    frames: tuple[str, ...]
    locked: Set[int]

    @property
    def source(self) -> str:
        """The passes as text."""
        return to_text(self.schedule)

    def __call__(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """See ``base.Executable``."""
        program = self.schedule.program
        read = inputs_read(program)
        require_inputs(read, inputs)
        q = configuration(self.model, q)
        given = {name: inexact(inputs[name]) for name in read if name in inputs}
        joint = {n.data for n in program.nodes if n.op == "leaf" and n.type is Type.JOINT}
        batches = [x.shape[: -1 if name in joint else -2] for name, x in given.items()]
        batch = np.broadcast_shapes(q.shape[:-1], *batches)
        real = precision([q, *given.values()])
        outputs = run(self.schedule, self.model, q, given, self.frames, self.locked)
        return {
            name: in_precision(np.broadcast_to(x, (*batch, *self._tail(name, x))), real).copy()
            for name, x in outputs.items()
        }

    def run(
        self,
        q: ArrayLike,
        inputs: Mapping[str, ArrayLike],
        out: Mapping[str, Array] | None = None,
    ) -> tuple[dict[str, Array], bool]:
        """See ``base.Executable``."""
        read = [inputs[name] for name in inputs_read(self.schedule.program) if name in inputs]
        return fill(out, self(q, inputs)), all_finite([q, *read])

    def quick(self, order: Sequence[str], keep: Callable[[Quick], None]) -> None:
        """There is no quicker way."""

    def ways(self, order: Sequence[str], keep: Callable[[Way], None]) -> None:
        """There is no quicker way."""

    def _tail(self, output: str, value: Array) -> tuple[int, ...]:
        program = self.schedule.program
        joint = program.nodes[program.outputs[output]].type is Type.JOINT
        return value.shape[-1 if joint else -2 :]


class SweepsBackend(Backend):
    """Runs programs by interpreting them."""

    name = "sweeps"

    def build(
        self,
        schedule: Schedule,
        model: Model,
        frames: Sequence[str] = (),
        locked: Set[int] = frozenset(),
        tuning: Tuning = PLAIN,
    ) -> Interpreted:
        """See ``base.Backend``."""
        return Interpreted(schedule, model, tuple(frames), locked)


backend = SweepsBackend()
