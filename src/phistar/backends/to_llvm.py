# SPDX-License-Identifier: BSD-3-Clause
"""Machine code for one robot, a SIMD lane a sample: the default backend.

It computes in float64 and, where all inputs are float32, in float32. Other dtypes (complex for
complex steps, longdouble) run on the backend ``numpy``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from phistar import settings
from phistar.arrays import Array
from phistar.backends.base import (
    Executable,
    VectorExecutable,
    build_vectors,
    inputs_read,
    require_inputs,
)
from phistar.backends.batch_axes import as_inexact
from phistar.backends.llvm.run.batches import LLVM_REAL_BY_DTYPE, run_on_batch
from phistar.backends.llvm.run.entry import make_entry
from phistar.backends.llvm.run.key import program_key
from phistar.backends.llvm.run.machine_kernel import MachineKernel, llvm_text
from phistar.backends.llvm.run.tiers import TieredKernel, count_compilations
from phistar.backends.policy import NUMPY, by_tier
from phistar.backends.robot_programs import (
    EXTERNAL_FORCE,
    OPTIONAL_INPUTS,
    MatrixProgram,
    RobotProgram,
    TracedProgram,
    VectorProgram,
)
from phistar.model.components import GROUND
from phistar.model.model import Model
from phistar.model.model_cache import Entry
from phistar.model.singular import require_finite_results
from phistar.model.wrenches import ProgramInputs, Wrenches, WrenchFrames
from phistar.scalar.program import ScalarProgram
from phistar.spatial import force_transform
from phistar.sweeps.costs import OperationCount


class MachineCode:
    """A program for one robot; a kernel for each precision and set of optional inputs.

    Attributes:
        program: What it computes.
    """

    def __init__(self, program: RobotProgram) -> None:
        self.program = program
        self._tiers: dict[tuple[frozenset[str], str, WrenchFrames | None], TieredKernel] = {}
        self._request_count = 0
        self._sample_count = 0

    @property
    def source(self) -> str:
        """The LLVM text of the final shape, in double precision, without optional inputs."""
        from phistar.backends.llvm.run import jit

        return llvm_text(self.scalars, jit.lanes_for(jit.host_cpu()))

    @property
    def cost(self) -> OperationCount:
        """Operations of the final shape on a sample, without optional inputs."""
        return OperationCount.of_scalars(self.scalars.count())

    @property
    def scalars(self) -> ScalarProgram:
        """The program of the final shape, which is waited for, without optional inputs."""
        return self.program.traced(self.tiers().wait_for_final().shape)

    def tiers(
        self, given: Sequence[str] = (), real: str = "double", wrenches: WrenchFrames | None = None
    ) -> TieredKernel:
        """The kernels for some optional inputs and a precision.

        Args:
            given: Names of inputs; only the optional ones among them count.
            real: The precision.
            wrenches: Frames on which wrenches are given in place of ``f_ext``. The unrolled program
                reads them; loops read ``f_ext`` all the same.
        """
        program = self.program
        present = given if wrenches is None else (*given, EXTERNAL_FORCE)
        absent = frozenset(name for name in OPTIONAL_INPUTS if name not in present)
        key = (absent, real, wrenches)
        if key not in self._tiers:
            self._tiers[key] = TieredKernel(
                program_key(program, absent, wrenches),
                real,
                program.title,
                partial(program.looped, absent) if program.has_loops else None,
                partial(program.unrolled, absent, real, wrenches),
                by_tier(program.work, len(program.model.bodies)),
            )
        return self._tiers[key]

    def try_run(
        self, inputs: ProgramInputs, out: Mapping[str, Array] | None = None
    ) -> tuple[dict[str, Array], bool] | None:
        """See ``base.Executable``."""
        given = self._given(inputs)
        if given is None:
            return None
        arrays, axes, wrenches = given
        dtype = np.result_type(*arrays.values())
        if dtype not in LLVM_REAL_BY_DTYPE:
            return None
        at = None if wrenches is None else wrenches.at
        kernel = self._kernel(arrays, axes, LLVM_REAL_BY_DTYPE[dtype], at)
        if kernel is None:
            return None
        program = self.program
        if wrenches is not None and EXTERNAL_FORCE in kernel.call.signature.inputs:
            arrays[EXTERNAL_FORCE] = _link_forces(program.model, arrays["q"], wrenches)
        found = run_on_batch(kernel, arrays, axes, program.sample_shapes, out)
        if self.otherwise is None or found[1]:
            return found
        return self.otherwise.filled_in(arrays, axes, found)

    def _given(
        self, inputs: ProgramInputs
    ) -> tuple[dict[str, Array], dict[str, int], Wrenches | None] | None:
        """Arrays, axes of each that belong to a sample, and wrenches that are code of their own.

        Other wrenches are forces on links. None: there is no code for an input.
        """
        program = self.program
        axes = dict(program.input_axes)
        arrays: dict[str, Array] = {}
        wrenches: Wrenches | None = None
        for name, value in inputs.items():
            if isinstance(value, Wrenches):
                wrenches = value
            elif name in axes:
                arrays[name] = as_inexact(value)
            elif name in OPTIONAL_INPUTS and not isinstance(program, VectorProgram):
                # There is no code for it.
                return None
        if wrenches is not None and program.reads_wrenches(wrenches.at):
            arrays |= wrenches.inputs
            axes |= dict.fromkeys(wrenches.inputs, 1)
        elif wrenches is not None:
            if EXTERNAL_FORCE in program.input_axes:
                arrays[EXTERNAL_FORCE] = _link_forces(program.model, arrays["q"], wrenches)
            elif not isinstance(program, MatrixProgram):
                return None
            wrenches = None
        return arrays, axes, wrenches

    @cached_property
    def otherwise(self) -> MachineCode | None:
        """What has results where this program has none."""
        program = self.program
        other = program.otherwise if isinstance(program, TracedProgram) else None
        return None if other is None else MachineCode(other)

    def wait_for_others(self) -> bool:
        """See ``base.Executable``."""
        if self.otherwise is None:
            return False
        self.otherwise.tiers().wait_for_final()
        return True

    def filled_in(
        self,
        arrays: Mapping[str, Array],
        axes: Mapping[str, int],
        found: tuple[dict[str, Array], bool],
    ) -> tuple[dict[str, Array], bool]:
        """Results in which samples that are not numbers are those of this program.

        As long as it is being compiled they stay as they are.

        Args:
            arrays: Inputs, batches broadcast.
            axes: How many axes of each belong to a sample.
            found: What another program gives; changed.
        """
        dtype = np.result_type(*arrays.values())
        kernel = self.tiers(tuple(arrays), LLVM_REAL_BY_DTYPE[dtype]).kernel_if_ready
        if kernel is None:
            return found
        shapes, results = self.program.sample_shapes, found[0]
        batch = np.broadcast_shapes(*(x.shape[: x.ndim - axes[n]] for n, x in arrays.items()))
        lost = np.zeros(batch, dtype=bool)
        for x in results.values():
            lost |= ~np.isfinite(x).all(axis=tuple(range(len(batch), x.ndim)))
        some = {
            n: np.broadcast_to(x, (*batch, *x.shape[x.ndim - axes[n] :]))[lost]
            for n, x in arrays.items()
        }
        others, finite = run_on_batch(kernel, some, axes, shapes)
        for name, x in others.items():
            results[name][lost] = x
        return results, finite

    def _kernel(
        self,
        arrays: Mapping[str, Array],
        axes: Mapping[str, int],
        real: str,
        wrenches: WrenchFrames | None,
    ) -> MachineKernel | None:
        """What is ready; programs without loops are compiled when it seems to pay."""
        program = self.program
        tiers = self.tiers(tuple(arrays), real, wrenches)
        if program.has_loops:
            return tiers.kernel
        if all(x.ndim == axes[name] for name, x in arrays.items()):
            tiers.want_single()
        tier = settings.tier()
        if tier == "auto" and not tiers.is_started:
            shapes = (x.shape[: x.ndim - axes[name]] for name, x in arrays.items())
            self._request_count += 1
            self._sample_count += math.prod(np.broadcast_shapes(*shapes))
            seen = (self._request_count, self._sample_count, count_compilations())
            if not program.is_worth_compiling(*seen):
                return None
        return tiers.kernel if program.is_eager(tier) else tiers.kernel_if_ready

    def tiers_if_ready(
        self, wrenches: WrenchFrames | None = None, real: str = "double"
    ) -> TieredKernel | None:
        """The kernels without optional inputs but wrenches; None as long as there is none."""
        tiers = self.tiers((), real, wrenches)
        return tiers if self.program.has_loops or tiers.has_kernel else None

    def entry(
        self,
        order: Sequence[str],
        names: Mapping[str, str] | None = None,
        *,
        wrenches: WrenchFrames | None = None,
        real: str = "double",
    ) -> Entry | None:
        """See ``base.Executable``; with wrenches None as long as the final shape is not there."""
        tiers = self.tiers_if_ready(wrenches, real)
        if tiers is None:
            return None
        shapes = self.program.sample_shapes
        if wrenches is None or EXTERNAL_FORCE not in tiers.kernel.call.signature.inputs:
            return make_entry(tiers, order, shapes, names, wrenches)
        if tiers.is_promoting or wrenches.held is not None or real != "double":
            return None
        after = make_entry(tiers, (*order, EXTERNAL_FORCE), shapes, names)
        if after is None:
            return None
        from phistar.backends.llvm.run.wrench_code import entry_after_link_forces

        return entry_after_link_forces(self.program.model, wrenches, after)


class VectorMachineCode(MachineCode, VectorExecutable):
    """Machine code of a program whose outputs are vectors; it runs for all inputs.

    Inputs that machine code does not take, complex ones for example, run in NumPy.
    """

    def __init__(self, program: VectorProgram) -> None:
        super().__init__(program)
        self._program = program
        nodes = program.schedule.program.nodes
        self._inputs_used = inputs_read(program.schedule.program)
        self._frame_force_inputs = {node.data for node in nodes if node.op == "scatter"}
        self._numpy: VectorExecutable | None = None

    def __call__(self, q: ArrayLike, inputs: ProgramInputs) -> dict[str, Array]:
        """See ``base.Executable``."""
        results, fine = self.run(q, inputs)
        if not fine:
            name = next(iter(results))
            axes = results[name].ndim - len(self.program.sample_shapes[name])
            require_finite_results(self.program.model, as_inexact(q), results, axes)
        return results

    def run(
        self, q: ArrayLike, inputs: ProgramInputs, out: Mapping[str, Array] | None = None
    ) -> tuple[dict[str, Array], bool]:
        """See ``base.Executable``."""
        require_inputs(self._inputs_used, inputs)
        given: dict[str, ArrayLike | Wrenches] = {"q": q, **inputs}
        for name in self._frame_force_inputs & set(given):
            forces = given[name]
            assert not isinstance(forces, Wrenches)
            given[name] = _to_link_forces(self._program, as_inexact(forces))
        found = self.try_run(given, out)
        return self._numpy_fallback().run(q, inputs, out) if found is None else found

    def _numpy_fallback(self) -> VectorExecutable:
        if self._numpy is None:
            self._numpy = build_vectors("numpy", self._program)
        return self._numpy


def _link_forces(model: Model, q: Array, wrenches: Wrenches) -> Array:
    """Wrenches on frames as forces on links, by code of its own that few programs need."""
    from phistar.backends.llvm.run.wrench_code import link_forces

    return link_forces(model, q, wrenches)


def _to_link_forces(program: VectorProgram, forces: Array) -> Array:
    """Forces (..., frames, 6) on frames, as forces (..., bodies, 6) on the bodies."""
    model: Model = program.model
    result = np.zeros((*forces.shape[:-2], len(model.bodies), 6), forces.dtype)
    for i, name in enumerate(program.frames):
        frame = model.frame(name)
        if frame.body != GROUND:
            result[..., frame.body, :] += forces[..., i, :] @ force_transform(frame.body_pose).T
    return result


class LlvmBackend:
    """Compiles programs."""

    name = "llvm"
    executes = True
    in_rounds = False

    def build(self, program: RobotProgram) -> Executable | None:
        """See ``base.Backend``; robots that do not move, and enormous matrices, are for NumPy."""
        if isinstance(program, VectorProgram):
            if program.model.bodies:
                return VectorMachineCode(program)
            return build_vectors("numpy", program)
        if not program.model.bodies or program.decision.shape == NUMPY:
            return None
        return MachineCode(program)


backend = LlvmBackend()
