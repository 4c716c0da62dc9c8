# SPDX-License-Identifier: BSD-3-Clause
"""Programs of level 2 by JAX: pure functions that XLA compiles, JAX maps and differentiates.

As any other backend it takes arrays of NumPy and gives such, in their precision, whatever
``jax_enable_x64`` says. ``pure`` is the function of one sample on arrays of JAX.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from phistar.arrays import Array
from phistar.backends.base import (
    Backend,
    Executable,
    PureExecutable,
    SweptExecutable,
    require_inputs,
    with_link_forces,
)
from phistar.backends.batch_axes import all_valid, as_inexact, copy_into_out
from phistar.backends.jax.function_arguments import read_arrays
from phistar.backends.jax.links import DepthTables
from phistar.backends.jax.mapped import CompiledFunction, Pure
from phistar.backends.jax.matrices import BundleFunction, MatrixFunction, columns_form
from phistar.backends.jax.package import jax
from phistar.backends.jax.rounds import RoundsFunction
from phistar.backends.jax.streams import StreamFunction
from phistar.backends.robot_programs import (
    BundleProgram,
    MatrixProgram,
    RobotProgram,
    VectorProgram,
)
from phistar.model.configuration import normalized_configuration
from phistar.model.wrenches import ProgramInputs
from phistar.scalar.lower_matrix import MATRIX_OUTPUT
from phistar.sweeps.costs import OperationCount
from phistar.sweeps.ir import Type
from phistar.sweeps.matrix_requests import Full


class JaxCode(PureExecutable):
    """A program for one robot.

    Attributes:
        pure: The function of one sample: q (nq,) and the inputs by name, arrays of JAX in body
            order, give the outputs by name.
    """

    def __init__(self, program: RobotProgram, pure: Pure) -> None:
        self.robot_program = program
        self.pure = pure
        self._compiled = CompiledFunction(pure, program.input_axes)

    @property
    def source(self) -> str:
        """What JAX makes of it for one sample in float64."""
        return self._compiled.text(self._sizes(), np.dtype(np.float64))

    def _sizes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of q and of the inputs that have no value of their own."""
        program = self.robot_program
        model = program.model
        leaves = {
            node.data: node
            for each in program.schedules
            for node in (each.program.nodes[s] for s in each.program.live())
            if node.spec.is_input
        }
        locked: frozenset[int] = getattr(program, "locked", frozenset())
        joints = sum(b.joint_kind.nv for b in model.bodies if b.index not in locked)
        frames = getattr(program, "frames", ())
        sizes: dict[str, tuple[int, ...]] = {"q": (model.nq,)}
        for name in program.input_axes:
            if name in leaves and name != "gravity":
                node = leaves[name]
                links = len(frames) if node.op == "scatter" else len(model.bodies)
                sizes[name] = (joints,) if node.type is Type.JOINT else (links, 6)
        return sizes

    def read(
        self, given: Mapping[str, object], samples: Mapping[str, tuple[int, ...]]
    ) -> dict[str, Array]:
        """See ``base.PureExecutable``."""
        return read_arrays(given, samples, f"robot '{self.robot_program.model.name}'")

    def map(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """See ``base.PureExecutable``."""
        return dict(self._compiled.compiled(dict(given)))

    def evaluate(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """The outputs, not looked at, for forces on the links."""
        program = self.robot_program
        read = [name for name in program.input_axes if name != "q"]
        require_inputs(read, cast(ProgramInputs, inputs))
        given = {"q": normalized_configuration(program.model, q)}
        given |= {name: as_inexact(inputs[name]) for name in read if name in inputs}
        return self._compiled(given, program.sample_shapes)

    @property
    def cost(self) -> OperationCount:
        """See ``base.Executable``; of the scalar program, which does no more than is needed."""
        return OperationCount.of_scalars(self.robot_program.final_scalars().count())

    def try_run(
        self, inputs: ProgramInputs, out: Mapping[str, Array] | None = None
    ) -> tuple[dict[str, Array], bool] | None:
        """See ``base.Executable``."""
        model, q = self.robot_program.model, cast(ArrayLike, inputs["q"])
        values = with_link_forces(model, q, inputs)
        given = [values[name] for name in self.robot_program.input_axes if name in values]
        results = self.evaluate(q, values)
        return copy_into_out(out, results), all_valid(model, q, [*given, *results.values()])


class JaxVectors(JaxCode, SweptExecutable):
    """One with vectors as outputs."""

    def __init__(self, program: VectorProgram) -> None:
        SweptExecutable.__init__(self, program)
        given = (program.model, program.frames, program.locked)
        pure: Pure = StreamFunction(program.schedule, DepthTables(*given))
        if program.parallel is not None:
            pure = RoundsFunction(program.parallel, *given)
        JaxCode.__init__(self, program, pure)

    def results(self, q: ArrayLike, inputs: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """See ``SweptExecutable``."""
        return self.evaluate(q, inputs)

    cost = SweptExecutable.cost
    try_run = SweptExecutable.try_run


def _matrix_function(program: MatrixProgram) -> Pure | None:
    form = columns_form(program.forms)
    if form is None or not isinstance(program.part, Full):
        return None
    whole = MatrixFunction(form, program.model, program.frames)
    return lambda q, inputs: {MATRIX_OUTPUT: whole(q, inputs)}


class JaxBackend(Backend):
    """Makes functions of JAX."""

    name = "jax"
    in_rounds = True

    def build(self, program: RobotProgram) -> Executable | None:
        """See ``base.Backend``; of vectors, of whole matrices and of bundles of both.

        Raises:
            MissingExtraError: JAX is not installed.
        """
        jax()
        if isinstance(program, VectorProgram):
            return JaxVectors(program)
        pure: Pure | None = None
        if isinstance(program, MatrixProgram):
            pure = _matrix_function(program)
        elif isinstance(program, BundleProgram) and program.bundle.matrices:
            pure = BundleFunction(program)
        return None if pure is None else JaxCode(program, pure)


backend = JaxBackend()
